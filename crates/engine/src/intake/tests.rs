//! The stage alone: admission, slots, and completions.

use block::{Direction, Duration, Extent, Status};

use super::slots::{End, Parts};
use super::*;
use crate::context::tests::{blocks, request};

fn intake() -> Intake {
    let limits = Limits {
        requests: 4,
        reserved_for_real_time: 1,
        ..Limits::default()
    };
    Intake::new(Sectors(1_000), limits)
}

fn read(extent: Extent, class: Class) -> Request {
    request(Direction::Read, extent, class)
}

fn end(status: Status) -> End {
    End {
        at: Instant::ZERO + Duration::from_millis(7),
        status,
        waited: Duration::from_millis(2),
        waited_order: Duration::from_millis(1),
        account: None,
    }
}

#[test]
fn a_request_is_admitted_by_extent_then_class_then_limit() {
    let intake = intake();
    let real_time = Class::RealTime {
        deadline: Instant::ZERO,
    };
    let last = blocks(999, 1);
    assert!(intake.admit(&read(last, real_time), 3).is_ok());
    assert_eq!(
        intake.admit(&read(last, Class::default()), 3),
        Err(Refused::Full { limit: 3 })
    );
    assert_eq!(
        intake.admit(&read(last, Class::BestEffort(7)), 9),
        Err(Refused::Priority { priority: 7 })
    );
    let past = blocks(999, 2);
    let refused = intake.admit(&read(past, Class::BestEffort(7)), 9);
    let (extent, capacity) = (past, 1_000);
    assert_eq!(refused, Err(Refused::PastEnd { extent, capacity }));
}

#[test]
fn a_request_is_reported_once_with_the_first_bad_status_of_its_pieces() {
    let mut intake = intake();
    let request = read(blocks(0, 8), Class::default());
    let slot = intake.slots.accept(Instant::ZERO, request);
    intake.slots.divided(slot, 2);
    for status in [Status::Good, Status::TimedOut] {
        assert_eq!(intake.slots.part_ended(slot, end(status)), Parts::Some);
        assert_eq!(intake.poll_finished(), None);
    }
    assert_eq!(
        intake.slots.part_ended(slot, end(Status::Aborted)),
        Parts::All
    );
    intake.ended.push_back(slot);
    let finished = intake.poll_finished().expect("it has ended");
    assert_eq!(
        (finished.request, finished.status),
        (request, Status::TimedOut)
    );
    assert_eq!(finished.waited, Duration::from_millis(2));
    assert_eq!((intake.poll_finished(), intake.slots.held()), (None, 0));
}

#[test]
fn requests_are_found_by_name_from_the_first_time_that_a_client_names_one() {
    let mut intake = intake();
    let mut named = read(blocks(0, 8), Class::default());
    let first = intake.slots.accept(Instant::ZERO, named);
    assert_eq!(intake.slots.find(named.id), Some(first));
    named.id = RequestId(2);
    let second = intake.slots.accept(Instant::ZERO, named);
    assert_eq!(intake.slots.find(named.id), Some(second));
    intake.slots.part_ended(second, end(Status::Good));
    intake.slots.give_back(second);
    assert_eq!(intake.slots.find(named.id), None);
    let unchanged = intake.give_back_found(named.id, Vec::new());
    assert_eq!(unchanged, Err(Unchanged::NotWaiting { id: named.id }));
}
