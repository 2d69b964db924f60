//! The stage alone: the position of the head, calibration, and the log.

use block::{Direction, Duration, Lba};
use scheduler::policy::find;

use super::*;
use crate::command::Purpose;
use crate::context::tests::{StageBench, blocks, good, sent};

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

#[test]
fn the_head_is_where_the_last_command_ended_whole_revolutions_later_or_not() {
    for revolutions in 0..3 {
        let mut bench = StageBench::new();
        let route = bench.route(blocks(1_000_000, 8));
        let id = bench.send(Purpose::Hop, blocks(1_000_000, 8));
        let sent = bench.dispatch.take(id);
        let course = sent.course(&bench.belief.head, bench.belief.profile(), &route);
        let period = bench.belief.profile().spindle.period();
        let tail = route.tail(bench.belief.profile(), &course.pass);
        let free = course.head.free + period * revolutions;
        let now = free + tail;

        assert_eq!(bench.belief.resync(now, &sent, &route), course);
        assert_eq!(bench.belief.head.position, course.head.position);
        assert_eq!(bench.belief.head.free, free);
        let late = bench.belief.revolutions(now, &course, &route);
        assert_eq!(late, Some(revolutions as i64));
    }
}

#[test]
fn routes_of_pieces_are_kept_by_index_and_replaced() {
    let mut bench = StageBench::new();
    let piece = bench.submit(Direction::Read, blocks(0, 8), block::Class::default());
    let there = bench.route(blocks(4_000_000, 8));
    assert_ne!(bench.belief.route(piece).target(), there.target());
    bench.belief.reroute(piece, there);
    assert_eq!(bench.belief.route(piece).target(), there.target());
    let target = bench.belief.keep(piece, None);
    assert_eq!(target.position, Position::default());
    assert_eq!(bench.belief.route(piece).target(), there.target());
}

#[test]
fn calibration_reads_are_due_on_a_drive_that_is_tracked_and_idle() {
    let mut bench = StageBench::new();
    let hour = Instant::ZERO + Duration::from_secs(3_600);
    assert_eq!(bench.belief.calibration(hour, Instant::ZERO), None);
    assert_eq!(bench.belief.confidence(), None);

    let policy = find("sptf").expect("a policy of the table");
    bench.belief.follow(Instant::ZERO, policy);
    let due = bench.belief.calibration_due(hour).expect("it is tracked");
    assert!(due > hour, "not soon after a request");
    assert_eq!(bench.belief.calibration(hour, hour), None);
    let read = bench.belief.calibration(due, hour).expect("it is due");
    assert_eq!(read.length(), Sectors(1));
    let next = bench.belief.calibration_due(hour).expect("it is tracked");
    assert!(next > due, "one at a time");

    let route = bench.route(read);
    let calibration = sent(block::CommandId(0), due, Purpose::Calibration, route);
    let mut outcome = good(calibration.id, due);
    outcome.account = Some(block::Account {
        seek: Duration::from_millis(3),
        ..block::Account::default()
    });
    bench.belief.count_calibration(&calibration, &outcome);
    let tallies = bench.belief.tallies().expect("it is tracked");
    assert_eq!(tallies.calibrations, 1);
    assert_eq!(tallies.calibration_time, Duration::from_millis(3));
}

#[test]
fn ends_that_the_buffer_answers_teach_nothing() {
    let mut bench = StageBench::new();
    bench.belief.track_silently();
    assert_eq!(bench.belief.tallies(), None);
    let policy = find("sptf").expect("a policy of the table");
    bench.belief.follow(Instant::ZERO, policy);
    let profile = Arc::clone(bench.belief.profile());
    bench.belief.track_silently();
    assert_eq!(
        bench.belief.tallies().map(|tallies| tallies.silent),
        Some(1)
    );
    assert!(Arc::ptr_eq(bench.belief.profile(), &profile));
}

#[test]
fn only_what_is_logged_is_explained() {
    let mut bench = StageBench::new();
    let request =
        crate::context::tests::request(Direction::Read, blocks(0, 8), block::Class::default());
    let finished = Finished {
        request,
        submitted: at(100),
        at: at(9_000),
        status: block::Status::Good,
        waited: Duration::ZERO,
        waited_order: Duration::ZERO,
        account: None,
    };
    assert_eq!(bench.belief.explain(&finished, at(0)), None);
    bench.belief.remember(Known::Profile);
    let id = bench.send(Purpose::Hop, blocks(1_000_000, 8));
    let sent = bench.dispatch.take(id);
    let hop = explanation::Whose::Hop;
    bench
        .belief
        .log_end(at(5_000), &sent, hop, &good(id, at(5_000)));
    let explanation = bench.belief.explain(&finished, at(0)).expect("a log");
    assert_eq!(explanation.outside(), Duration::from_micros(100));
    let upkeep = explanation.share(explanation::Ahead::AtDrive);
    assert_eq!(upkeep.commands, 1);
    assert_eq!(upkeep.time, Duration::from_micros(4_900));
}

/// Counts that are all different, and `n` times as many.
fn counted(n: u64) -> Tallies {
    Tallies {
        buffered: n,
        as_believed: 2 * n,
        late: 3 * n,
        elsewhere: 4 * n,
        silent: 5 * n,
        changes: 6 * n,
        refinements: 7 * n,
        calibrations: 8 * n,
        calibration_time: Duration::from_nanos(9 * n),
    }
}

#[test]
fn the_counts_of_two_actuators_are_added() {
    assert_eq!(counted(30).and(counted(12)), counted(42));
}

/// The known blocks of a drive, end to end: the n-th place is where that many of them are left.
#[test]
fn calibration_reads_are_spread_over_the_known_blocks_alone() {
    let mut belief = crate::context::tests::profile();
    let known = vec![blocks(1_000, 50), blocks(9_000, 200), blocks(70_000, 3)];
    let everywhere: Vec<Lba> = (1..500).map(|n| following::place(&belief, n)).collect();
    assert!(
        everywhere
            .iter()
            .any(|lba| lba.0 > belief.geometry.sectors().0 / 2)
    );
    let places: std::collections::BTreeSet<u64> = {
        belief.confidence = Some(drive::Confidence::default().with_known(known.clone()));
        (1..500).map(|n| following::place(&belief, n).0).collect()
    };
    let is_known = |&block: &u64| known.iter().any(|extent| extent.contains(Lba(block)));
    assert!(places.iter().all(is_known), "{places:?}");
    assert!(
        known
            .iter()
            .all(|extent| places.iter().any(|&block| extent.contains(Lba(block))))
    );
    assert!(places.len() > 180, "{}", places.len());
}
