//! The old bytes of writes that may not be on the emulated medium: writes in flight and in the drive's
//! buffer.
//!
//! ```text
//!   writes to one block   w1 (on the medium)   w2 (in the buffer)   w3 (under way)
//!   the power is cut      stays                is undone            old or new: a coin is tossed
//! ```
//!
//! The old bytes are bounded by the drive's buffer and the commands in flight. Older writes count as
//! written. That can happen where two arms take turns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use block::{CommandId, Extent};
use drive::{Lost, Profile};

/// The old bytes of recent writes.
pub(super) struct Volatile {
    block_bytes: usize,
    /// The largest number of blocks of ended writes in the drive's buffer.
    most: u64,
    /// The writes in the order in which they reached the image. Writes with common blocks were never in
    /// flight together.
    records: VecDeque<Record>,
    coin: Coin,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

/// A write.
struct Record {
    id: CommandId,
    extent: Extent,
    old: Vec<u8>,
    has_ended: bool,
}

/// The fate of a write in a power cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// All of it is on the medium.
    Written,
    /// None of it is on the medium.
    Undone,
    /// Each block may be on the medium.
    Undecided,
}

/// The number of buffers for reuse. A choice: the commands at the drive with most policies, and some in its
/// buffer.
const SPARE: usize = 16;

impl Volatile {
    /// No writes, on a drive like `truth`.
    pub(super) fn of(truth: &Profile, seed: u64) -> Self {
        let rules = truth.buffer;
        let segment = u64::from(rules.segment_blocks);
        // One more for each arm: what is on its way to the medium has left the buffer's count.
        let segments = u64::from(rules.write_segments) + 2;
        Volatile {
            block_bytes: truth.block_bytes as usize,
            most: segments * segment,
            records: VecDeque::new(),
            coin: Coin(seed),
            spare: Vec::new(),
        }
    }

    /// A buffer for the old bytes of some blocks.
    pub(super) fn room(&mut self, extent: Extent) -> Vec<u8> {
        let mut room = self.spare.pop().unwrap_or_default();
        room.resize(extent.length().0 as usize * self.block_bytes, 0);
        room
    }

    /// Records a write to the image, which had `old` in its place.
    pub(super) fn remember(&mut self, id: CommandId, extent: Extent, old: Vec<u8>) {
        self.records.push_back(Record {
            id,
            extent,
            old,
            has_ended: false,
        });
    }

    /// Notes that a command has ended. A write may still be in the drive's buffer.
    pub(super) fn ended(&mut self, id: CommandId) {
        let mut records = self.records.iter_mut();
        let Some(record) = records.find(|record| record.id == id) else {
            return;
        };
        record.has_ended = true;
        let ended = self.records.iter().filter(|record| record.has_ended);
        let mut blocks: u64 = ended.map(|record| record.extent.length().0).sum();
        while blocks > self.most {
            let first = self.records.iter().position(|record| record.has_ended);
            let Some(record) = first.and_then(|first| self.records.remove(first)) else {
                return;
            };
            blocks -= record.extent.length().0;
            if self.spare.len() < SPARE {
                self.spare.push(record.old);
            }
        }
    }

    /// The blocks whose bytes change in a power cut, and their old bytes.
    pub(super) fn resolve(&mut self, lost: &Lost) -> BTreeMap<u64, Vec<u8>> {
        let fates = self.fates(lost);
        let mut settled = BTreeSet::new();
        let mut back = BTreeMap::new();
        let records = std::mem::take(&mut self.records);
        for (record, fate) in records.iter().zip(fates).rev() {
            let olds = record.old.chunks_exact(self.block_bytes);
            for (block, old) in (record.extent.start().0..).zip(olds) {
                let is_written = match fate {
                    _ if settled.contains(&block) => continue,
                    Fate::Written => true,
                    Fate::Undone => false,
                    Fate::Undecided => self.coin.toss(),
                };
                match is_written {
                    true => drop(settled.insert(block)),
                    false => drop(back.insert(block, old.to_vec())),
                }
            }
        }
        back
    }

    /// The fates of all writes, in their order. The drive writes the blocks of one place in the order of
    /// arrival, so its entries mean the latest writes.
    fn fates(&self, lost: &Lost) -> Vec<Fate> {
        let mut written = lost.written.clone();
        let mut undecided = lost.undecided.clone();
        let mut fates: Vec<Fate> = Vec::with_capacity(self.records.len());
        for record in self.records.iter().rev() {
            let has_ended = lost.commands.iter().all(|command| command.id != record.id);
            // What waits in the buffer came after what is on its way from there.
            let fate = match () {
                () if has_ended && take(&mut written, record.extent) => Fate::Undone,
                () if take(&mut undecided, record.extent) => Fate::Undecided,
                () => Fate::Written,
            };
            fates.push(fate);
        }
        fates.reverse();
        fates
    }
}

/// Removes an extent from a list. The answer is whether it was there.
fn take(list: &mut Vec<Extent>, extent: Extent) -> bool {
    let place = list.iter().position(|&other| other == extent);
    place.is_some_and(|place| {
        list.swap_remove(place);
        true
    })
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
struct Coin(u64);

impl Coin {
    /// Whether the next toss is heads.
    fn toss(&mut self) -> bool {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) & 1 == 1
    }
}
