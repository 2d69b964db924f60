//! Operations of several requests, the next of which finds no room in the engine: they wait, and do not fail.

use std::sync::{Arc, mpsc};

use block::{Durability, Extent, Lba, Sectors};
use engine::{Engine, Limits};
use scheduler::policy::find;

use crate::cached::posted::{Asked, alone, begun};
use crate::drives;
use crate::gate::{COARSE, Closed};
use crate::station::{BLOCK, Served};

/// Bytes of a block of the drive.
const PAGE: u64 = COARSE * BLOCK;

const VOLATILE: Durability = Durability::Volatile;

fn gated() -> (Served, Closed) {
    let closed = Closed::default();
    (Served::gated(Arc::clone(&closed)), closed)
}

fn close(closed: &Closed) {
    let block = Extent::new(Lba(0), Sectors(1)).expect("a block");
    *closed.lock().expect("a gate") = Some(block);
}

/// An operation on parts of blocks has read its first block when the engine takes no requests any more, because
/// another one takes its place (seed 1282 of the swarm).
fn amid_a_new_engine(changes: &Asked) {
    let (served, closed) = gated();
    let before = Asked::write(VOLATILE, (0, 4 * PAGE), 1);
    alone(&served, before).expect("it is written");
    close(&closed);
    let changed = begun(&served, changes);
    assert!(changed.try_recv().is_err(), "the drive keeps it back");
    let (taken, told) = mpsc::channel();
    let begun = served.ask(move |event_loop| {
        let make = |now| {
            let policy = find("sptf-sw60").expect("a policy");
            let belief = Arc::new(drives::coarse());
            let limits = Limits::suited_to(policy, &belief);
            Engine::new(belief, &|| policy.make(), limits).starting_at(now)
        };
        event_loop.take_up(Box::new(make), taken)
    });
    assert_eq!(begun, Ok(()));
    *closed.lock().expect("a gate") = None;
    served.ask(|_| ());
    let (_, result) = changed.recv().expect("an answer");
    assert_eq!(result, Ok(Vec::new()));
    assert_eq!(told.recv(), Ok(()), "the other engine is there");
    let read = alone(&served, Asked::read(0, 4 * PAGE)).expect("it can be read");
    let before = read[..100].iter().chain(&read[3 * PAGE as usize - 100..]);
    assert!(
        before.into_iter().all(|&byte| byte == 1),
        "what is around it stays"
    );
    let within = &read[100..3 * PAGE as usize - 100];
    let first = within[0];
    assert!(first != 1 && within.iter().all(|&byte| byte == first));
    served.stop();
}

#[test]
fn zeroes_on_parts_of_blocks_go_on_with_a_new_engine() {
    amid_a_new_engine(&Asked::zero(VOLATILE, (100, 3 * PAGE - 200)));
}

#[test]
fn writes_of_parts_of_blocks_go_on_with_a_new_engine() {
    amid_a_new_engine(&Asked::write(VOLATILE, (100, 3 * PAGE - 200), 7));
}

/// More flushes wait for the drive than the engine holds requests.
#[test]
fn flushes_wait_for_room() {
    let (served, closed) = gated();
    close(&closed);
    let most = Limits::default().requests;
    let flushes: Vec<_> = (0..most + 100)
        .map(|_| begun(&served, &Asked::flush()))
        .collect();
    let holds = served.ask(|event_loop| event_loop.holds().operations);
    // Before anything may fail: a service that ends waits for its drive.
    *closed.lock().expect("a gate") = None;
    served.ask(|_| ());
    assert_eq!(holds, flushes.len(), "none is answered");
    for flush in flushes {
        assert_eq!(flush.recv().expect("an answer").1, Ok(Vec::new()));
    }
    served.stop();
}
