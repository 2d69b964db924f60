//! Operations that a loop gets in one turn.

use std::sync::mpsc::{Receiver, Sender, channel};

use block::operation::{Ask, OperationError, Space, ZeroingPace};
use block::{Class, Durability};
use server::cache_setting::{CacheSetting, PAGE, Readmore, Writes};
use server::event_loop::mailbox::{Letter, Mailbox};
use server::volume::posted::{Contents, Posted};

use crate::station::Served;

/// A write-back cache of so many pages. One in eight of them, and one at least, may be newer than the
/// volume; with one it is written at once, with more when a second has passed.
pub fn writing_back(pages: u64) -> CacheSetting {
    CacheSetting {
        bytes: pages * PAGE,
        replacement: "lru".to_owned(),
        prefetch: "none".to_owned(),
        coordinator: "none".to_owned(),
        readmore: Readmore::Ordinary,
        writes: Writes::Back,
        ahead: Class::BestEffort(6),
    }
}

pub type Answer = (usize, Result<Vec<u8>, OperationError>);

/// What is asked.
pub struct Asked {
    export: usize,
    ask: Ask,
    offset: u64,
    length: u64,
    fill: u8,
}

impl Asked {
    fn new(ask: Ask, (offset, length): (u64, u64)) -> Self {
        Asked {
            export: 0,
            ask,
            offset,
            length,
            fill: 0,
        }
    }

    pub fn read(offset: u64, length: u64) -> Self {
        Asked::new(Ask::Read, (offset, length))
    }

    pub fn write(durability: Durability, place: (u64, u64), fill: u8) -> Self {
        Asked {
            fill,
            ..Asked::new(Ask::Write { durability }, place)
        }
    }

    pub fn zero(durability: Durability, place: (u64, u64)) -> Self {
        let (space, pace) = (Space::Kept, ZeroingPace::Any);
        let ask = Ask::Zero {
            durability,
            space,
            pace,
        };
        Asked::new(ask, place)
    }

    pub fn durable_trim(offset: u64, length: u64) -> Self {
        let durability = Durability::Durable;
        Asked::new(Ask::Trim { durability }, (offset, length))
    }

    pub fn flush() -> Self {
        Asked::new(Ask::Flush, (0, 0))
    }

    /// The same of another export.
    pub fn of(self, export: usize) -> Self {
        Asked { export, ..self }
    }

    fn letter(&self, number: usize, tell: Sender<Answer>) -> Letter {
        let contents = match self.ask {
            Ask::Write { .. } => vec![self.fill; self.length as usize],
            _ => Vec::new(),
        };
        Letter::Operation(Posted {
            export: self.export,
            ask: self.ask,
            offset: self.offset,
            length: self.length,
            contents: Contents::Owned(contents),
            owner: block::Owner::NOBODY,
            reply: Box::new(move |result| {
                let _ = tell.send((number, result.map(<[u8]>::to_vec)));
            }),
        })
    }
}

/// The loop begins all of them in one turn, before the drive has done anything of any; the answers in
/// the order of what was asked.
pub fn in_one_turn(served: &Served, all: Vec<Asked>) -> Vec<Result<Vec<u8>, OperationError>> {
    let count = all.len();
    let (tell, told): (_, Receiver<Answer>) = channel();
    let mailbox: Mailbox = served.station.as_ref().expect("it runs").mailbox().clone();
    let same = mailbox.clone();
    // On the loop's own thread: it finds them together when it looks next.
    let posted = mailbox.call(move |_| {
        for (number, asked) in all.iter().enumerate() {
            let _ = same.post(asked.letter(number, tell.clone()));
        }
    });
    posted.expect("it runs");
    let answers = (0..count).map(|_| told.recv().expect("an answer"));
    let mut answers: Vec<Answer> = answers.collect();
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, result)| result).collect()
}

/// One that the loop has begun, or has found that it has to wait.
pub fn begun(served: &Served, asked: &Asked) -> Receiver<Answer> {
    let (tell, told) = channel();
    let mailbox = served.station.as_ref().expect("it runs").mailbox();
    mailbox.post(asked.letter(0, tell)).expect("it runs");
    // In the turn before the second answer it was looked at.
    for _ in 0..2 {
        served.ask(|_| ());
    }
    told
}

/// One by itself.
pub fn alone(served: &Served, asked: Asked) -> Result<Vec<u8>, OperationError> {
    in_one_turn(served, vec![asked]).remove(0)
}
