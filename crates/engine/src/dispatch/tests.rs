//! The stage alone: room at the drive, rest, and what the end of a command moves.

use scheduler::background::Means;
use scheduler::freeblock::Kind;

use super::*;
use crate::command::{BackgroundRead, Planned, UnplannedEnd};
use crate::context::tests::{StageBench, blocks};

const LIMITS: Limits = Limits {
    requests: 8,
    reserved_for_real_time: 0,
    commands_at_drive: 2,
    patience: Duration::from_millis(100),
    phases: scheduler::ordering::Phases::Mixed,
    grace: None,
};

fn is_pass(answer: StageAnswer) -> bool {
    matches!(answer, StageAnswer::Pass)
}

fn waits(answer: StageAnswer) -> Option<Instant> {
    match answer {
        StageAnswer::WaitUntil(then) => then,
        other => panic!("{other:?}"),
    }
}

#[test]
fn there_is_room_for_as_many_commands_as_the_limit_and_none_behind_a_starved_one() {
    let mut bench = StageBench::new();
    assert!(is_pass(bench.dispatch.room(bench.now, &LIMITS, None)));
    bench.send(Purpose::Hop, blocks(0, 8));
    assert!(is_pass(bench.dispatch.room(bench.now, &LIMITS, None)));

    // The drive takes the first one up before it gets a second one.
    let take_up = Duration::from_micros(20);
    let answer = bench.dispatch.room(bench.now, &LIMITS, Some(take_up));
    assert_eq!(waits(answer), Some(bench.now + take_up));
    let later = bench.now + take_up;
    assert!(is_pass(bench.dispatch.room(later, &LIMITS, Some(take_up))));

    let starved = bench.now + LIMITS.patience;
    assert_eq!(waits(bench.dispatch.room(starved, &LIMITS, None)), None);
    bench.send(Purpose::Hop, blocks(8, 8));
    assert_eq!(waits(bench.dispatch.room(later, &LIMITS, None)), None);
}

#[test]
fn a_settled_row_rests_until_its_wakeup() {
    let mut dispatch = Dispatch::default();
    let then = Instant::ZERO + Duration::from_millis(1);
    assert!(is_pass(dispatch.rest(Instant::ZERO)));
    (dispatch.settled, dispatch.wakeup) = (true, Some(then));
    assert_eq!(waits(dispatch.rest(Instant::ZERO)), Some(then));
    assert!(is_pass(dispatch.rest(then)));
    assert_eq!(dispatch.wakeup, None);
    dispatch.settled = true;
    assert_eq!(waits(dispatch.rest(then)), None);
}

#[test]
fn commands_leave_by_name_and_unsettle_the_row() {
    let mut bench = StageBench::new();
    let first = bench.send(Purpose::Hop, blocks(0, 8));
    let second = bench.send(Purpose::Calibration, blocks(8, 8));
    bench.dispatch.settled = true;
    assert!(bench.dispatch.is_background(first));
    assert_eq!(bench.dispatch.background_of(second), None);
    assert_eq!(bench.dispatch.take(first).id, first);
    assert!(!bench.dispatch.settled && !bench.dispatch.is_at_drive(first));
    assert_eq!(bench.dispatch.last().map(|sent| sent.id), Some(second));
    let again = std::panic::catch_unwind(move || bench.dispatch.take(first).id);
    assert!(again.is_err(), "no command ends twice");
}

#[test]
fn the_end_of_a_command_shifts_what_was_expected_after_it() {
    let mut bench = StageBench::new();
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    let before = bench.send(Purpose::Hop, blocks(0, 8));
    let unplanned = UnplannedEnd {
        end: at(900),
        after: Some((before, at(500))),
        luck: Duration::ZERO,
        paid: 0,
        gap: GapUse::UnusedAtEdge,
        on_bus: Duration::ZERO,
    };
    let piece = bench.submit_chosen(block::Direction::Read, blocks(800, 8));
    bench.dispatch.chosen.clear();
    bench.dispatch.chosen.push_back(Draft::Request {
        piece,
        planned: Planned::Yes,
        was_held: false,
        merged: None,
        unplanned: Some(unplanned),
    });
    assert_eq!(bench.dispatch.chosen_piece(), Some(piece));
    // Twice: only the command that it was reckoned from counts, and once.
    for end in [520, 700] {
        bench.dispatch.resync(before, at(end));
        let Some(Draft::Request {
            unplanned: Some(now),
            ..
        }) = bench.dispatch.chosen.back()
        else {
            panic!("the draft is gone");
        };
        assert_eq!(now.end, at(920));
    }
}

#[test]
fn a_free_read_is_given_for_what_is_chosen_once_its_draft_is_gone() {
    let mut bench = StageBench::new();
    let piece = bench.submit_chosen(block::Direction::Read, blocks(800, 8));
    let read = BackgroundRead {
        extent: blocks(400, 8),
        kind: Kind::Detour,
        means: Means::Free,
    };
    let request = |gap| Draft::Request {
        piece,
        planned: Planned::Yes,
        was_held: false,
        merged: None,
        unplanned: Some(UnplannedEnd {
            end: Instant::ZERO,
            after: None,
            luck: Duration::ZERO,
            paid: 0,
            gap,
            on_bus: Duration::ZERO,
        }),
    };
    let planned = request(GapUse::Apart(Duration::ZERO));
    for (drafts, is_given) in [
        (vec![request(GapUse::Unused)], false),
        (vec![request(GapUse::Merged(Duration::ZERO))], false),
        (vec![Draft::Background(read), planned], false),
        (vec![planned], true),
    ] {
        bench.dispatch.chosen = drafts.into();
        assert_eq!(bench.dispatch.is_read_given(), is_given);
    }
    // The first of two stops is at the drive.
    bench.dispatch.chosen.push_front(Draft::Background(read));
    bench.send(Purpose::Background(read), read.extent);
    assert!(bench.dispatch.is_read_given());
}
