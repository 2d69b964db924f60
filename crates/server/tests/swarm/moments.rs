//! Checkpoints of the volume: a moment has what was acknowledged before its order, and nothing that is submitted once
//! it is open.
//!
//! ```text
//!   order --- changes under way may be in it --- open --- reads of it: each block always the same
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use block::operation::{Ask, OperationError};
use block::{Class, Owner};
use server::checkpoint::CHUNK;
use server::checkpoint::store::StoreOrder;
use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;
use server::volume::posted::{Contents, Posted};
use server::volume::{CheckpointOrder, Release};

use crate::history::History;
use crate::model::{Stamp, stamp_of};
use crate::plan::{Dice, Setting};
use crate::run::BLOCK;
use crate::world::{Tell, Told, tell};

/// What happens to checkpoints.
#[derive(Clone, Copy, Debug)]
pub enum MomentStep {
    /// With room for the old bytes of so many chunks.
    Order {
        chunks: u64,
    },
    Read {
        first: u64,
        count: u64,
    },
    Release(Release),
}

/// Chunks of so many blocks: a store of so many is never full.
fn chunks(blocks: u64) -> u64 {
    blocks * BLOCK / CHUNK
}

impl MomentStep {
    pub fn draw(setting: &Setting, dice: &mut Dice) -> MomentStep {
        match dice.below(10) {
            0..2 => MomentStep::Order {
                chunks: 1 + dice.below(2 * chunks(setting.blocks)),
            },
            2..9 => {
                let first = dice.below(setting.blocks);
                let count = 1 + dice.below((setting.blocks - first).min(2048));
                MomentStep::Read { first, count }
            }
            _ => MomentStep::Release(match dice.percent(50) {
                true => Release::Done,
                false => Release::Abandoned,
            }),
        }
    }
}

/// The checkpoints of a service: one at a time.
#[derive(Default)]
pub struct Moments {
    current: Option<Moment>,
    /// Reads under way.
    reads: BTreeMap<u64, Read>,
}

struct Moment {
    number: u64,
    /// The export, once it is open.
    export: Option<usize>,
    /// What each block may have.
    possible: Vec<Vec<Stamp>>,
    chunks: u64,
    /// Blocks of the volume.
    blocks: u64,
    cuts: usize,
}

struct Read {
    moment: u64,
    first: u64,
    count: u64,
}

impl Moments {
    /// Does a step.
    pub fn act(
        &mut self,
        step: MomentStep,
        number: u64,
        (setting, history, blocks): (&Setting, &History, u64),
        (mailbox, told): (&Mailbox, &Tell),
    ) {
        match step {
            MomentStep::Order { chunks } if self.current.is_none() => {
                self.current = Some(Moment {
                    number,
                    export: None,
                    possible: history.possible(0, setting.blocks),
                    chunks,
                    blocks,
                    cuts: history.cuts(),
                });
                order(number, (setting, blocks, chunks), mailbox, told);
            }
            MomentStep::Order { .. } => (),
            MomentStep::Read { first, count } => self.read(number, (first, count), (mailbox, told)),
            // One that is not open yet is refused to its client, and nobody knows when.
            MomentStep::Release(_) if self.current.as_ref().is_none_or(Moment::is_coming) => (),
            MomentStep::Release(release) => {
                self.current = None;
                let released = mailbox.call(move |event_loop: &mut EventLoop| {
                    let mut checkpoints = event_loop.checkpoints();
                    // One that is lost is no base of a backup, and can only be abandoned.
                    let released = match checkpoints.release("v", release) {
                        Err(lost) if lost.contains("is lost") => {
                            checkpoints.release("v", Release::Abandoned)
                        }
                        released => released,
                    };
                    released.expect("a checkpoint");
                });
                released.expect("it runs");
            }
        }
    }

    /// Reads blocks of the moment, if it is open.
    pub fn read(
        &mut self,
        number: u64,
        (first, count): (u64, u64),
        (mailbox, told): (&Mailbox, &Tell),
    ) {
        let Some(moment) = &self.current else { return };
        let Some(export) = moment.export else { return };
        let count = count.min(moment.blocks.saturating_sub(first));
        if count == 0 {
            return;
        }
        let read = Read {
            moment: moment.number,
            first,
            count,
        };
        self.reads.insert(number, read);
        let told = Arc::clone(told);
        mailbox.submit(Posted {
            export,
            ask: Ask::Read,
            offset: first * BLOCK,
            length: count * BLOCK,
            contents: Contents::Owned(Vec::new()),
            owner: Owner::NOBODY,
            reply: Box::new(move |result| {
                tell(&told, Told::MomentRead(number, result.map(<[u8]>::to_vec)));
            }),
        });
    }

    /// A moment is open, or refused.
    pub fn opened(&mut self, number: u64, opened: Result<usize, String>) {
        let Some(moment) = self.current.as_mut().filter(|one| one.number == number) else {
            return;
        };
        match opened {
            Ok(export) => moment.export = Some(export),
            // The world learns of a cut after that.
            Err(problem) if problem.contains("has lost its power") => self.current = None,
            Err(problem) => panic!("a checkpoint is refused: {problem}"),
        }
    }

    /// A read has ended. The answer is how many blocks were checked.
    pub fn ended(
        &mut self,
        number: u64,
        result: Result<Vec<u8>, OperationError>,
        (cuts, is_stopped): (usize, bool),
    ) -> u64 {
        let read = self.reads.remove(&number).expect("each ends once");
        let Some(moment) = self
            .current
            .as_mut()
            .filter(|one| one.number == read.moment)
        else {
            return 0;
        };
        match result {
            Ok(bytes) if moment.cuts == cuts => {
                moment.check(&read, &bytes);
                read.count
            }
            // A cut loses the moment.
            Ok(_) => 0,
            Err(OperationError::ShuttingDown) if is_stopped => 0,
            // Sectors that were being written are unreadable after a cut, and a store may be full.
            Err(_) if cuts > 0 || moment.chunks < chunks(moment.possible.len() as u64) => 0,
            Err(failed) => panic!("a checkpoint is not readable at {}: {failed:?}", read.first),
        }
    }

    /// What the moment may have, as long as changes may come into it.
    pub fn coming(&mut self) -> Option<&mut Vec<Vec<Stamp>>> {
        let coming = self.current.as_mut().filter(|one| one.is_coming());
        coming.map(|moment| &mut moment.possible)
    }

    /// Whether nothing is under way.
    pub fn are_idle(&self) -> bool {
        self.reads.is_empty() && !self.current.as_ref().is_some_and(Moment::is_coming)
    }
}

impl Moment {
    fn is_coming(&self) -> bool {
        self.export.is_none()
    }

    /// Each block has a possible value, which it keeps from now on.
    fn check(&mut self, read: &Read, bytes: &[u8]) {
        assert_eq!(bytes.len() as u64, read.count * BLOCK, "a whole read");
        let blocks = bytes.chunks_exact(BLOCK as usize);
        for (block, bytes) in (read.first..).zip(blocks) {
            let possible = &mut self.possible[block as usize];
            let found = stamp_of(block, bytes);
            match found.filter(|found| possible.contains(found)) {
                Some(found) => *possible = vec![found],
                None => panic!(
                    "block {block} of a checkpoint has {found:?}, expected one of {possible:?}"
                ),
            }
        }
    }
}

fn order(
    number: u64,
    (setting, blocks, chunks): (&Setting, u64, u64),
    mailbox: &Mailbox,
    told: &Tell,
) {
    let order = CheckpointOrder {
        volume: "v".to_owned(),
        bytes: setting.origin()..setting.origin() + blocks * BLOCK,
        class: Class::default(),
        bitmap: None,
        store: StoreOrder {
            folder: None,
            bytes: chunks * CHUNK,
        },
    };
    let told = Arc::clone(told);
    let opened = Box::new(move |opened| tell(&told, Told::Opened(number, opened)));
    let ordered = mailbox.call(move |event_loop: &mut EventLoop| {
        event_loop.checkpoints().begin(order, opened);
    });
    ordered.expect("it runs");
}
