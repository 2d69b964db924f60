//! Operations that a loop gets in one turn: what each of them finds is known in advance.

use std::sync::mpsc::{Receiver, Sender, channel};

use block::{Class, Durability};
use server::cached::{PAGE, Setting, Writes};
use server::mailbox::{Contents, Letter, Mailbox, Posted};
use server::operation::{Ask, Failed};

use crate::random::BLOCKS;
use crate::station::{BLOCK, Medium, Served};

/// A write-back cache of three pages: two frames, and one page that may be newer than the volume.
fn three_pages() -> Setting {
    Setting {
        bytes: 3 * PAGE,
        replacement: "lru".to_owned(),
        prefetch: "none".to_owned(),
        coordinator: "none".to_owned(),
        writes: Writes::Back,
        ahead: Class::BestEffort(6),
    }
}

type Answer = (usize, Result<Vec<u8>, Failed>);

/// What is asked.
struct Asked {
    ask: Ask,
    offset: u64,
    length: u64,
    fill: u8,
}

fn read(offset: u64, length: u64) -> Asked {
    Asked {
        ask: Ask::Read,
        offset,
        length,
        fill: 0,
    }
}

fn write(durability: Durability, offset: u64, length: u64, fill: u8) -> Asked {
    Asked {
        ask: Ask::Write { durability },
        offset,
        length,
        fill,
    }
}

fn flush() -> Asked {
    Asked {
        ask: Ask::Flush,
        offset: 0,
        length: 0,
        fill: 0,
    }
}

fn letter(number: usize, asked: &Asked, tell: Sender<Answer>) -> Letter {
    let contents = match asked.ask {
        Ask::Write { .. } => vec![asked.fill; asked.length as usize],
        _ => Vec::new(),
    };
    Letter::Operation(Posted {
        export: 0,
        ask: asked.ask,
        offset: asked.offset,
        length: asked.length,
        contents: Contents::Owned(contents),
        reply: Box::new(move |result| {
            let _ = tell.send((number, result.map(<[u8]>::to_vec)));
        }),
    })
}

/// The loop begins all of them in one turn, before the drive has done anything of any; the answers in
/// the order of what was asked.
fn in_one_turn(served: &Served, all: Vec<Asked>) -> Vec<Result<Vec<u8>, Failed>> {
    let count = all.len();
    let (tell, told): (_, Receiver<Answer>) = channel();
    let mailbox: Mailbox = served.station.as_ref().expect("it runs").mailbox().clone();
    let same = mailbox.clone();
    // On the loop's own thread: it finds them together when it looks next.
    let posted = mailbox.call(move |_| {
        for (number, asked) in all.iter().enumerate() {
            let _ = same.post(letter(number, asked, tell.clone()));
        }
    });
    posted.expect("it runs");
    let mut answers: Vec<Answer> = (0..count)
        .map(|_| told.recv().expect("an answer"))
        .collect();
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, result)| result).collect()
}

fn asked_one(served: &Served, asked: Asked) -> Result<Vec<u8>, Failed> {
    in_one_turn(served, vec![asked]).remove(0)
}

/// A part of a page is written through, beside the rest of it that is on its way from the cache. The
/// rest is read before the volume has it, and the page is gone by then.
#[test]
fn what_is_beside_a_part_that_is_written_through_is_not_lost() {
    for medium in [Medium::CoarseFile, Medium::CoarseDrive] {
        let served = Served::behind(Some(three_pages()), medium, BLOCKS * BLOCK);
        let (volatile, durable) = (Durability::Volatile, Durability::Durable);
        let answers = in_one_turn(
            &served,
            vec![
                write(volatile, 0, PAGE, 7),
                write(durable, BLOCK, BLOCK, 9),
                flush(),
                read(10 * PAGE, 2 * PAGE),
            ],
        );
        assert!(answers.iter().all(Result::is_ok), "{medium:?}");
        let mut expected = vec![7; PAGE as usize];
        expected[BLOCK as usize..2 * BLOCK as usize].fill(9);
        let there = asked_one(&served, read(0, PAGE)).expect("it can be read");
        assert!(
            there == expected,
            "{medium:?}: what was acknowledged is lost"
        );
        let folder = served.stop();
        medium.assert_holds(&folder, &expected);
    }
}
