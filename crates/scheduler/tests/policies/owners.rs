//! What the policies that know owners do for each of them. Requests of unknown owners have their tests in `stateful`.

use std::collections::BTreeMap;

use block::{Direction, Duration, Instant, Owner};
use scheduler::{Choice, PieceId};

use super::stateful::{Bench, SERVICE};

fn patience(bench: &Bench) -> Choice {
    Choice::WaitUntil(bench.now + Duration::from_millis(6))
}

/// Another program's read does not continue the first one's, however near it is.
#[test]
fn anticipatory_idles_for_the_owner_of_the_read_and_for_nobody_else() {
    let mut bench = Bench::new("anticipatory6");
    bench.read_for(1, 100);
    bench.serve().expect("it is alone");
    let other = bench.read_for(2, 104);
    let nobody = bench.add_for(Owner::NOBODY, Direction::Read, 108);
    let until = patience(&bench);
    assert_eq!(bench.select(), until);
    bench.wait(2);
    assert_eq!(bench.select(), until, "neither is what it waits for");
    let own = bench.read_for(1, 120);
    assert_eq!(bench.serve(), Some(own));
    bench.select();
    bench.wait(6);
    let rest = [bench.serve(), bench.serve()];
    assert!(rest.contains(&Some(nobody)) || rest.contains(&Some(other)));
}

/// The owner's own read goes first if it is near, in either direction. If it is far away, the elevator goes on.
#[test]
fn anticipatory_serves_the_owner_first_where_it_is_near() {
    for (own, is_first) in [(1950, true), (1200, true), (2600, false), (1, false)] {
        let mut bench = Bench::new("anticipatory6");
        bench.belief.block_bytes = 4096;
        bench.read_for(1, 1500);
        bench.serve().expect("it is alone");
        let other = bench.read_for(2, 1900);
        let own = bench.read_for(1, own);
        let first = if is_first { own } else { other };
        assert_eq!(bench.serve(), Some(first));
    }
}

#[test]
fn anticipatory_no_longer_waits_for_an_owner_that_writes() {
    let mut bench = Bench::new("anticipatory6");
    bench.read_for(1, 100);
    bench.serve().expect("it is alone");
    let other = bench.read_for(2, 2000);
    assert_eq!(bench.select(), patience(&bench));
    bench.add_for(Owner::process(2), Direction::Write, 500);
    assert_eq!(bench.select(), patience(&bench), "another program writes");
    bench.add_for(Owner::process(1), Direction::Write, 104);
    assert_eq!(bench.select(), Choice::Serve(other));
}

/// Whether the policy idles before it serves a read that is pending: then 6 ms pass.
fn idles_before(bench: &mut Bench, read: PieceId) -> bool {
    let choice = bench.select();
    if choice == Choice::Serve(read) {
        bench.end();
        return false;
    }
    assert!(matches!(choice, Choice::WaitUntil(_)));
    bench.wait(6);
    assert_eq!(bench.serve(), Some(read));
    true
}

/// One program mostly reads on at once, and another never does while the disk idles for it.
#[test]
fn anticipatory_learns_for_each_owner() {
    let mut bench = Bench::new("anticipatory6");
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let mut at = 0;
    let mut read_on = |bench: &mut Bench| {
        at += 4;
        bench.read_for(1, at)
    };
    for round in 0..40 {
        let own = read_on(&mut bench);
        other.push(idles_before(&mut bench, own));
        let far = bench.read_for(2, 2_900 - 50 * round);
        for _ in 0..2 {
            one.push(matches!(bench.select(), Choice::WaitUntil(_)));
            bench.wait(1);
            let own = read_on(&mut bench);
            assert_eq!(bench.serve(), Some(own));
        }
        one.push(idles_before(&mut bench, far));
    }
    assert!(one.iter().all(|&idles| idles), "{one:?}");
    assert!(other[1..4].contains(&true), "{other:?}");
    let late = other[10..].iter().filter(|&&idles| idles).count();
    assert!(late <= 8, "of 30: {other:?}");
}

/// Programs that read once: after some of them nobody waits for the next such one to go on, and a program that has gone on before
/// is still waited for.
#[test]
fn anticipatory_learns_that_newcomers_do_not_read_on() {
    let mut bench = Bench::new("anticipatory6");
    bench.read_for(1, 0);
    bench.serve().expect("it is alone");
    let mut known = vec![bench.read_for(1, 4)];
    let mut idled = Vec::new();
    for process in 100..130 {
        bench.serve().expect("the known program reads on");
        let newcomer = bench.read_for(process, u64::from(process) * 20);
        assert!(idles_before(&mut bench, newcomer), "for the known program");
        known.push(bench.read_for(1, 4 * known.len() as u64));
        let own = *known.last().expect("it was added");
        idled.push(idles_before(&mut bench, own));
        known.push(bench.read_for(1, 4 * known.len() as u64));
    }
    let late = idled[10..].iter().filter(|&&idles| idles).count();
    assert!(idled[0] && late <= 2, "{idled:?}");
}

#[test]
fn anticipatory_does_not_wait_for_an_owner_that_thinks_longer() {
    for (think, idles) in [(4, true), (8, false)] {
        let mut bench = Bench::new("anticipatory6");
        for round in 0..10 {
            bench.read_for(1, 100 + 4 * round);
            bench.serve().expect("it is alone");
            bench.wait(think);
        }
        bench.read_for(1, 200);
        bench.serve().expect("it is alone");
        bench.read_for(2, 2_000);
        assert_eq!(
            matches!(bench.select(), Choice::WaitUntil(_)),
            idles,
            "{think} ms"
        );
    }
}

#[test]
fn anticipatory_takes_a_read_that_is_nearer_than_the_owners_usually_are() {
    for (stride, idles) in [(4, true), (900, false)] {
        let mut bench = Bench::new("anticipatory6");
        for round in 0..10 {
            bench.read_for(1, 4 + stride * (round % 3));
            bench.serve().expect("it is alone");
            bench.wait(1);
        }
        // The last one was the first of three, again.
        bench.read_for(2, 300);
        assert_eq!(
            matches!(bench.select(), Choice::WaitUntil(_)),
            idles,
            "{stride} blocks"
        );
    }
}

/// Two programs that read the same part of the disk, one with many reads at once, have a slice each.
#[test]
fn cfq_like_gives_each_owner_its_slice() {
    let mut bench = Bench::new("cfq-like100");
    for number in 0..60 {
        bench.read_for(1, 2 * number);
        bench.read_for(2, 2 * number + 1);
        bench.write(1400 + number);
    }
    let owner = |ticket: PieceId| ticket.0 % 3;
    let turns: Vec<u32> = (0..96)
        .map(|_| owner(bench.serve().expect("something is pending")))
        .collect();
    let turns: Vec<(u32, usize)> = turns
        .chunk_by(|one, other| one == other)
        .map(|turn| (turn[0], turn.len()))
        .collect();
    // At 5 ms each.
    assert_eq!(turns, [(0, 20), (1, 20), (2, 8), (0, 20), (1, 20), (2, 8)]);
}

/// A program with one read at a time has as much of the disk as one with 32.
#[test]
fn cfq_like_shares_the_disk_between_owners_and_not_between_requests() {
    let mut bench = Bench::new("cfq-like100");
    let mut owners = BTreeMap::new();
    let mut at = [0, 1500];
    let mut next = |bench: &mut Bench, owners: &mut BTreeMap<PieceId, u32>, process: u32| {
        let place = &mut at[process as usize - 1];
        *place = (*place + 4) % 2_900;
        owners.insert(bench.read_for(process, *place), process);
    };
    next(&mut bench, &mut owners, 1);
    (0..32).for_each(|_| next(&mut bench, &mut owners, 2));
    let mut served = [0u32; 2];
    let end = Instant::ZERO + Duration::from_secs(20);
    while bench.now < end {
        match bench.serve() {
            Some(ticket) => {
                let process = owners.remove(&ticket).expect("it is pending");
                served[process as usize - 1] += 1;
                // The program with one read thinks for 2 ms.
                bench.wait(2 * u64::from(process == 1));
                next(&mut bench, &mut owners, process);
            }
            None => bench.wait(1),
        }
    }
    let took = served.map(|count| u64::from(count) * SERVICE.as_nanos());
    // 5 of 7 ms of its slices, because it thinks within them.
    let share = took[0] as f64 / (took[0] + took[1]) as f64;
    assert!((0.36..0.47).contains(&share), "{share}: {served:?}");
}

/// More owners than are remembered: each read is served, and each owner waits for a slice of every other at most.
#[test]
fn more_owners_than_are_remembered_are_all_served() {
    for name in ["anticipatory", "cfq-like"] {
        let mut bench = Bench::new(name);
        for process in 1..=1000 {
            bench.read_for(process, u64::from(process) * 7 % 2_900);
        }
        let mut served = 0;
        while served < 1000 {
            match bench.serve() {
                Some(_) => served += 1,
                None => bench.wait(1),
            }
            assert!(
                bench.now < Instant::ZERO + Duration::from_secs(1000),
                "{name}"
            );
        }
        assert_eq!(bench.select(), Choice::Nothing, "{name}");
    }
}
