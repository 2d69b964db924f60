//! Power cuts: what is lost, what is undecided, what has ended.

use std::collections::BTreeSet;

use block::{Action, CommandId, Durability, Duration, Instant, Status};
use drive::firmware::{LookAhead, WriteBack};
use drive::{Imperfections, Lost, VirtualDrive};
use proptest::prelude::*;

use crate::play::Play;
use crate::properties::{loads, luck, play, profiles};
use crate::small::*;

fn write_back() -> Play {
    let profile = buffered(|rules| {
        rules.write_back = WriteBack::All;
        rules.write_segments = 4;
    });
    Play::new(VirtualDrive::new(arc(profile)))
}

#[test]
fn what_the_buffer_held_is_lost() {
    let mut play = write_back();
    for start in [500, 1_500, 200] {
        play.then(write(start, 3));
    }
    let lost = play.drive.power_cut(play.now);
    // The first was on its way to the medium.
    let all: BTreeSet<_> = lost
        .written
        .iter()
        .chain(&lost.undecided)
        .copied()
        .collect();
    assert_eq!(
        all,
        [extent(200, 3), extent(500, 3), extent(1_500, 3)].into()
    );
    assert_eq!(lost.torn, [], "the arm had not arrived yet");
    assert_eq!(lost.commands, []);
}

#[test]
fn a_flush_under_way_has_written_only_what_it_has_written() {
    let mut play = write_back();
    for start in [500, 1_500, 200, 900] {
        play.then(write(start, 3));
    }
    let mut flushed = Play::new(play.drive.clone());
    let end = flushed.serve(play.now, Action::Flush).outcome.at;
    play.submit(play.now, Action::Flush);
    let mut open = Vec::new();
    while play.now < end {
        let mut copy = play.drive.clone();
        let lost = copy.power_cut(play.now);
        open.push(lost.written.len() + lost.undecided.len());
        assert!(lost.commands.len() == 1, "the flush has not ended");
        play.run_until(play.now + micros(500));
    }
    assert_eq!(open.first(), Some(&4));
    assert!(
        open.is_sorted_by(|a, b| a >= b),
        "written, then lost: {open:?}"
    );
    assert!(
        open.contains(&3) && open.contains(&2) && open.contains(&1),
        "{open:?}"
    );
    assert_eq!(play.drive.power_cut(play.now), Lost::default());
}

#[test]
fn a_write_under_way_tears_one_sector_of_the_medium() {
    let mut profile = bare();
    profile.physical_block_bytes = 4096;
    let end = Play::new(VirtualDrive::new(arc(profile.clone())))
        .then(write(20, 12))
        .outcome
        .at;
    let mut torn = BTreeSet::new();
    for back in 0..60 {
        let mut play = Play::new(VirtualDrive::new(arc(profile.clone())));
        play.submit(at(0), write(20, 12));
        let cut = Instant::from_nanos(end.as_nanos() - 1 - back * 200_000);
        play.run_until(cut);
        let lost = play.drive.power_cut(cut);
        assert_eq!(lost.undecided, [extent(20, 12)]);
        assert_eq!(lost.written, []);
        // 0.06 ms of completion, then 12 sectors of half a millisecond, backwards.
        let on_medium = (1..=30).contains(&back);
        assert_eq!(!lost.torn.is_empty(), on_medium, "{back}: {lost:?}");
        torn.extend(lost.torn);
    }
    // The physical sectors of 8 blocks that 20..32 lies in.
    let whole = [extent(16, 8), extent(24, 8)];
    assert_eq!(torn, whole.into());
}

#[test]
fn what_had_ended_can_still_be_polled() {
    let mut drive = VirtualDrive::new(arc(bare()));
    let command = |id, action| block::Command::new(CommandId(id), action);
    for id in 0..3 {
        drive
            .submit(at(0), command(id, read(id * 100, 4)))
            .expect("accepted");
    }
    let first = Play::new(VirtualDrive::new(arc(bare())))
        .then(read(0, 4))
        .outcome
        .at;
    let lost = drive.power_cut(first);
    let ids: Vec<u64> = lost.commands.iter().map(|command| command.id.0).collect();
    assert_eq!(ids, [1, 2]);
    let ended = drive.poll(first).expect("it had ended");
    assert_eq!((ended.id, ended.at), (CommandId(0), first));
    assert_eq!(drive.poll(at(10_000_000)), None);
    assert_eq!(drive.held(), 0);
}

#[test]
fn the_same_blocks_written_twice_are_lost_once_and_undecided_once() {
    let mut play = write_back();
    play.then(write(500, 3));
    play.run_until(play.now + micros(200_000));
    play.then(write(1_500, 3));
    play.then(write(500, 3));
    let early = play.submit(play.now, write(500, 3));
    let lost = play.drive.power_cut(play.now);
    assert_eq!(lost.commands.len(), 1);
    assert_eq!(lost.commands[0].id, early);
    assert!(
        lost.written.contains(&extent(500, 3)),
        "the one that had ended: {lost:?}"
    );
    assert!(
        lost.undecided.contains(&extent(500, 3)),
        "the one that had not: {lost:?}"
    );
}

#[test]
fn the_drive_goes_on_after_a_power_cut() {
    let mut play = write_back();
    play.then(Action::SetWriteCache(block::Switch::Off));
    play.then(read(0, 4));
    play.drive.power_cut(play.now);
    let again = play.then(read(0, 4));
    assert_eq!(again.hit(), block::BufferHit::Miss, "the buffer is empty");
    let early = play.then(write(0, 4));
    assert_eq!(
        early.hit(),
        block::BufferHit::Full,
        "switches are as after power-up"
    );
}

#[test]
fn a_write_pointer_falls_back_to_what_is_on_the_medium() {
    let shingled = Imperfections {
        sequential_zone: Some(100),
        ..Imperfections::default()
    };
    let profile = buffered(|rules| {
        rules.write_back = WriteBack::All;
        rules.look_ahead = LookAhead::None;
    });
    let mut play = Play::new(VirtualDrive::imperfect(arc(profile), shingled, 1));
    play.then(write(100, 4));
    play.then(Action::Flush);
    play.then(write(104, 4));
    assert_ne!(play.drive.power_cut(play.now), Lost::default());
    let refused = play.then(write(108, 4)).status();
    assert_eq!(
        refused,
        Status::WritePointer {
            expected: block::Lba(104)
        }
    );
    assert_eq!(play.then(write(104, 4)).status(), Status::Good);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever was written since the last flush is lost, undecided or on the medium; what was
    /// written durably, or before a flush that ended, is on the medium.
    #[test]
    fn a_power_cut_accounts_for_every_write(
        profile in profiles(), luck in luck(), load in loads(), seed: u64,
        later in 0..50_000_000u64,
    ) {
        let mut player = Play::new(VirtualDrive::imperfect(arc(profile), luck, seed));
        play(&mut player, &load);
        let cut = player.now + Duration::from_nanos(later);
        player.run_until(cut);
        let lost = player.drive.power_cut(cut);
        player.collect();
        let open: BTreeSet<CommandId> = player.open().map(|command| command.id).collect();
        let gone: BTreeSet<CommandId> = lost.commands.iter().map(|command| command.id).collect();
        prop_assert_eq!(&open, &gone, "each command has ended or never will");
        for command in &lost.commands {
            if let Action::Write { extent, .. } = command.action {
                prop_assert!(lost.undecided.contains(&extent));
            }
        }
        // Volatile writes that ended after the last flush had begun may be lost, no others.
        let flushes = player.done.iter().filter(|done| {
            done.command.action == Action::Flush && done.status() == Status::Good
        });
        let flushed = flushes.map(|done| done.submitted).max();
        let early: Vec<_> = player.done.iter().filter(|done| {
            done.status() == Status::Good && flushed.is_none_or(|at| done.outcome.at > at)
        }).filter_map(|done| match done.command.action {
            Action::Write { extent, durability: Durability::Volatile } => Some(extent),
            _ => None,
        }).collect();
        for extent in &lost.written {
            prop_assert!(early.contains(extent), "{extent} is lost: {lost:?}");
        }
        for extent in &lost.undecided {
            let asked = lost.commands.iter().any(|c| c.action.extent() == Some(*extent));
            prop_assert!(asked || early.contains(extent), "{extent} is undecided: {lost:?}");
        }
        for torn in lost.torn {
            prop_assert!(lost.undecided.iter().any(|extent| extent.overlaps(torn)));
        }
        prop_assert_eq!(player.drive.next_wakeup(), None);
        prop_assert_eq!(player.drive.held(), 0);
    }
}
