//! Seeks that are split, beside each block that could be the stop.

use drive::{SeekCurve, SeekTable};
use scheduler::preemption::Split;

use super::*;

/// A long seek is made in two parts.
fn hopping(longest: u32, cost: SplitCost) -> Preemption {
    Preemption {
        split: Some(Split { longest, cost }),
        ..HOLD
    }
}

/// The first block of the track to pass `landing` after the arm has come there, by looking at each.
fn naive_hop(bench: &mut SlackBench, cylinder: u32) -> Option<(Extent, Course)> {
    let cx = bench.bench.cx();
    let (head, belief) = (cx.expected_head(), cx.profile());
    let track = belief.geometry.track_at(cylinder, head.position.head)?;
    let all = (0..track.sectors)
        .filter_map(|sector| belief.geometry.lba_at(track.cylinder, track.head, sector))
        .filter_map(|lba| {
            let extent = Extent::block(lba);
            let route = cx.belief.route_of(extent, Direction::Read)?;
            let there = head.course(belief, cx.now, &route);
            (there.pass.rotation >= LANDING).then_some((extent, there))
        });
    all.min_by_key(|(_, there)| there.pass.rotation)
}

/// The cylinder that is so far from `source` on the way to `target`.
fn toward(source: u32, target: u32, part: u32) -> u32 {
    if target > source {
        source + part
    } else {
        source - part
    }
}

#[test]
fn a_long_seek_is_split_where_the_slack_before_its_sector_hides_that() {
    let (mut hops, mut others) = (0, 0);
    for (from, to) in places() {
        let cylinders = plain().geometry.cylinders();
        let longest = cylinders / 3;
        let mut bench = SlackBench::new(plain(), hopping(longest, SplitCost::Hidden));
        bench.put_head(from);
        let piece = bench.choose(to, 8);
        let course = bench.course(piece, bench.bench.now);
        let (source, target) = (
            bench.bench.belief.head.position.cylinder,
            bench.bench.belief.route(piece).target().position.cylinder,
        );
        let distance = source.abs_diff(target);
        assert_eq!(course.distance, distance);
        let (answer, _) = bench.depart(piece, HeldBack::No);
        let hop = match answer {
            StageAnswer::Give(Draft::Hop(hop)) => Some(hop),
            _ => None,
        };
        if distance <= longest {
            assert_eq!(hop, None);
            continue;
        }
        // As few hops as possible, of one length.
        let count = (1..)
            .find(|count| count * longest >= distance)
            .expect("enough");
        let part = distance / count;
        let cylinder = toward(source, target, part);
        let (block, there) = naive_hop(&mut bench, cylinder).expect("a block to pass");
        let cx = bench.bench.cx();
        let stop = cx.belief.route_of(block, Direction::Read).expect("mapped");
        let given = there.head.free + stop.tail(cx.profile(), &there.pass);
        let after = there.head.course(cx.profile(), given, cx.route(piece));
        let is_hidden = arrives(&after) <= arrives(&course) && after.pass.rotation >= LANDING;
        assert_eq!(hop, is_hidden.then_some(block), "{distance} cylinders");
        hops += u32::from(is_hidden);
        others += u32::from(!is_hidden);
    }
    assert!(hops > 5 && others > 5, "{hops} and {others}");
}

/// With a command that only moves the arm, no block of the stop has to pass.
#[test]
fn a_drive_that_can_seek_without_a_transfer_is_sent_to_the_stop_alone() {
    let mut hops = [0, 0];
    for (from, to) in places() {
        let found = [Switch::Off, Switch::On].map(|seek_command| {
            let mut belief = plain();
            belief.seek_command = seek_command;
            let longest = belief.geometry.cylinders() / 3;
            let mut bench = SlackBench::new(belief, hopping(longest, SplitCost::Hidden));
            bench.put_head(from);
            let piece = bench.choose(to, 8);
            let course = bench.course(piece, bench.bench.now);
            let (StageAnswer::Give(Draft::Hop(hop)), _) = bench.depart(piece, HeldBack::No) else {
                return false;
            };
            let cx = bench.bench.cx();
            let stop = cx.belief.route_of(hop, Direction::Read).expect("mapped");
            if seek_command == Switch::On {
                let there = cx.expected_head().sought(cx.profile(), cx.now, &stop);
                let after = there
                    .head
                    .course(cx.profile(), there.head.free, cx.route(piece));
                assert!(arrives(&after) <= arrives(&course));
                assert!(after.pass.rotation >= LANDING);
            }
            true
        });
        assert!(
            found[1] || !found[0],
            "it takes no longer without a transfer"
        );
        hops[0] += u32::from(found[0]);
        hops[1] += u32::from(found[1]);
    }
    assert!(hops[1] > hops[0], "{hops:?}");
}

#[test]
fn a_hop_that_costs_head_time_is_made_if_urgent_ones_win_more_by_it() {
    let mut linear = plain();
    let cylinders = linear.geometry.cylinders();
    // An arm that takes as long for each cylinder gains by stops.
    let points = vec![
        (1, Duration::from_millis(1)),
        (cylinders - 1, Duration::from_millis(30)),
    ];
    let table = || SeekTable::new(points.clone(), cylinders).expect("a table");
    linear.seek = SeekCurve::new(table(), table());
    let (mut hops, mut others) = (0, 0);
    for (n, (from, to)) in places().enumerate() {
        let rate = [20, 200, 2_000][n % 3];
        let belief = linear.clone();
        let longest = cylinders / 4;
        let rules = Preemption {
            when: When::Worth,
            ..hopping(longest, SplitCost::Revolution)
        };
        let mut bench = SlackBench::new(belief, rules);
        bench.see_urgent(rate);
        bench.put_head(from);
        let piece = bench.choose(to, 8);
        let course = bench.course(piece, bench.bench.now);
        if course.distance <= longest {
            continue;
        }
        let (source, target) = (
            bench.bench.belief.head.position.cylinder,
            bench.bench.belief.route(piece).target().position.cylinder,
        );
        let part = course.distance / course.distance.div_ceil(longest);
        let cylinder = toward(source, target, part);
        let (block, there) = naive_hop(&mut bench, cylinder).expect("a block to pass");
        let cx = bench.bench.cx();
        let stop = cx.belief.route_of(block, Direction::Read).expect("mapped");
        let given = there.head.free + stop.tail(cx.profile(), &there.pass);
        let after = there.head.course(cx.profile(), given, cx.route(piece));
        let period = cx.profile().spindle.period().as_nanos() as f64;
        let late = arrives(&after).since(arrives(&course)).as_nanos() as f64;
        let whole = cost(rate, course.pass.seek + LANDING + course.pass.transfer);
        let first = cost(rate, there.pass.total());
        let second = cost(rate, after.pass.seek + LANDING + after.pass.transfer);
        let risk = bench.preemption.landings.chance(LANDING) * period;
        let (won, lost) = (whole - first - second, late + risk);
        let is_worth = won > lost;
        let (answer, _) = bench.depart(piece, HeldBack::No);
        let is_hop = matches!(answer, StageAnswer::Give(Draft::Hop(hop)) if hop == block);
        assert_eq!(is_hop, is_worth, "{won} won, {lost} lost");
        hops += u32::from(is_hop);
        others += u32::from(!is_hop);
    }
    assert!(hops > 5 && others > 5, "{hops} and {others}");
}
