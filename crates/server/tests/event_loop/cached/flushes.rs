//! What could not be written, or may not be on the medium, and who is told.

use std::sync::{Arc, Mutex};

use ::nbd::{Style, request as nbd};
use block::Durability;
use block::operation::{Ask, OperationError};
use server::cache_setting::PAGE;

use super::posted::{Asked, alone, in_one_turn, writing_back};
use crate::client::Client;
use crate::fickle::{Fails, Mood};
use crate::model::contents;
use crate::station::{BLOCK, Served};

/// Two volumes of a drive in this mood; both write back.
fn two_volumes(fails: Fails) -> (Served, Mood) {
    let mood = Arc::new(Mutex::new(fails));
    let lengths = [64 * PAGE; 2];
    let served = Served::fickle(Arc::clone(&mood), &writing_back(3), &lengths);
    (served, mood)
}

fn change(mood: &Mood, fails: Fails) {
    *mood.lock().expect("a mood") = fails;
}

fn page(number: u64) -> Asked {
    Asked::write(Durability::Volatile, (number * PAGE, PAGE), 7)
}

/// A client of whom the loop knows: it was answered.
fn known(served: &Served) -> Client {
    let mut client = Client::connect(&served.socket(), Style::Structured);
    client.ask(nbd::Asked::Of(Ask::Read), 0, BLOCK, &[]);
    client
}

/// How a flush of a client ends.
fn flushed(client: &mut Client) -> Result<(), OperationError> {
    client.ask(nbd::Asked::Of(Ask::Flush), 0, 0, &[]).result
}

const DONE: Result<(), OperationError> = Ok(());
const FAILED: Result<(), OperationError> = Err(OperationError::Io);

/// How all of them end that begin in one turn.
fn ends(served: &Served, all: Vec<Asked>) -> Vec<Result<(), OperationError>> {
    let answers = in_one_turn(served, all).into_iter();
    answers.map(|result| result.map(drop)).collect()
}

#[test]
fn what_could_not_be_written_fails_all_flushes_of_its_volume_under_way_and_no_later_one() {
    let (served, mood) = two_volumes(Fails::Writes);
    let all = vec![
        page(0),
        Asked::flush(),
        Asked::flush(),
        Asked::flush().of(1),
    ];
    assert_eq!(ends(&served, all), [DONE, FAILED, FAILED, DONE]);
    change(&mood, Fails::Nothing);
    assert_eq!(ends(&served, vec![Asked::flush()]), [DONE]);
    // Nobody knows what the volume has: it is read anew.
    let there = alone(&served, Asked::read(0, PAGE)).expect("it can be read");
    assert!(there.iter().all(|&byte| byte == 0), "it was not written");
}

/// Whoever was connected may have had it acknowledged; whoever comes when somebody was told has not.
#[test]
fn what_could_not_be_written_is_told_once_to_each_client_that_was_there() {
    let (served, mood) = two_volumes(Fails::Writes);
    let (mut one, mut other, mut third) = (known(&served), known(&served), known(&served));
    let write = nbd::Asked::Of(Ask::Write {
        durability: Durability::Volatile,
    });
    let bytes = contents(0, PAGE / BLOCK, 1);
    assert_eq!(one.ask(write, 0, PAGE, &bytes).result, DONE);
    assert_eq!(flushed(&mut other), FAILED);
    change(&mood, Fails::Nothing);
    assert_eq!(flushed(&mut one), FAILED);
    let mut late = known(&served);
    assert_eq!(flushed(&mut late), DONE);
    for client in [&mut one, &mut other, &mut late] {
        assert_eq!(flushed(client), DONE);
    }
    // Another loss is told to everybody anew, whether they knew of the first or not.
    change(&mood, Fails::Writes);
    assert_eq!(late.ask(write, 0, PAGE, &bytes).result, DONE);
    for client in [&mut third, &mut one, &mut other, &mut late] {
        assert_eq!(flushed(client), FAILED);
        change(&mood, Fails::Nothing);
    }
    assert_eq!(flushed(&mut third), DONE);
    drop((one, other, third, late));
    served.wait_for_connections(0);
    served.stop();
}

#[test]
fn a_service_that_could_not_write_acknowledged_data_ends_with_an_error() {
    for (fails, problem) in [
        (Fails::Nothing, None),
        (
            Fails::Writes,
            Some("acknowledged bytes could not be written"),
        ),
        (Fails::Flushes, Some("acknowledged writes may be lost")),
    ] {
        let (served, _mood) = two_volumes(fails);
        assert_eq!(ends(&served, vec![page(0)]), [DONE]);
        let (_folder, ended) = served.end();
        let text = ended.err().map(|error| error.to_string());
        assert_eq!(text.is_some(), problem.is_some(), "{text:?}");
        assert!(
            text.unwrap_or_default()
                .contains(problem.unwrap_or_default())
        );
    }
}

/// A drive that failed once, and said so, is no reason for an exit code for ever.
#[test]
fn a_failed_flush_that_a_client_was_told_of_does_not_end_the_service_with_an_error() {
    let (served, mood) = two_volumes(Fails::Flushes);
    let mut client = known(&served);
    assert_eq!(flushed(&mut client), FAILED);
    change(&mood, Fails::Nothing);
    drop(client);
    served.wait_for_connections(0);
    served
        .end()
        .1
        .expect("the loss was told, and nothing new is lost");
}

/// A flush of another volume, or what is to be durable by itself, is not told in its place.
#[test]
fn what_could_not_be_written_is_told_to_a_flush_of_its_volume_whatever_comes_between() {
    let (served, mood) = two_volumes(Fails::Writes);
    let between = vec![
        page(0),
        Asked::durable_trim(8 * PAGE, PAGE),
        Asked::flush().of(1),
    ];
    assert_eq!(ends(&served, between), [DONE, DONE, DONE]);
    assert_eq!(ends(&served, vec![Asked::flush()]), [FAILED]);
    change(&mood, Fails::Nothing);
    assert_eq!(ends(&served, vec![Asked::flush()]), [DONE]);
}

#[test]
fn a_failed_flush_of_the_drive_fails_all_that_wait_for_it() {
    let (served, mood) = two_volumes(Fails::Flushes);
    let all = vec![page(0), Asked::flush(), Asked::flush().of(1)];
    assert_eq!(ends(&served, all), [DONE, FAILED, FAILED]);
    let trim = vec![Asked::durable_trim(8 * PAGE, PAGE)];
    assert_eq!(ends(&served, trim), [FAILED]);
    change(&mood, Fails::Nothing);
    // The flush of the trim came after the others had been told: what they wrote since may be lost.
    assert_eq!(ends(&served, vec![Asked::flush()]), [FAILED]);
    assert_eq!(ends(&served, vec![Asked::flush()]), [DONE]);
}

/// Its flush is what tells a client that its data are safe: whoever wrote and did not flush then has to learn
/// of it, too.
#[test]
fn a_failed_flush_of_the_drive_is_told_once_to_each_client_that_was_there() {
    let (served, mood) = two_volumes(Fails::Flushes);
    let (mut one, mut other) = (known(&served), known(&served));
    assert_eq!(flushed(&mut one), FAILED);
    change(&mood, Fails::Nothing);
    let mut late = known(&served);
    assert_eq!(flushed(&mut late), DONE);
    assert_eq!(flushed(&mut other), FAILED);
    for client in [&mut one, &mut other, &mut late] {
        assert_eq!(flushed(client), DONE);
    }
    drop((one, other, late));
    served.wait_for_connections(0);
    served.stop();
}
