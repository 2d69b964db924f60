//! Writes and zeroes of any bytes, on a drive that has blocks.
//!
//! ```text
//!   blocks   |          |          |          |
//!   write        [=============]                  some bytes
//!   read     |oooo      |    oooooo|              the blocks at its ends, first
//!   write    |oooo======|======oooo|              then whole blocks
//! ```
//!
//! The engine keeps the order of reads and writes that overlap, in which they are posted. Between
//! the read and the write of one that is not of whole blocks another could slip in, whose bytes the
//! write would then undo. Space that is given back takes no part in the engine's order. So a change
//! of either kind holds its blocks until it has ended, and whatever overlaps them waits.

use std::array;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use block::Durability;

use crate::mailbox::{Contents, Letter, Mailbox, Posted, Reply};
use crate::operation::{Ask, Failed, Pace, Space};

/// Who is told how a change ended.
pub(super) type End = Box<dyn FnOnce(Result<(), Failed>) + Send>;

/// A volume whose bytes can be changed.
pub(super) struct Volume {
    mailbox: Mailbox,
    export: usize,
    block: u64,
    order: Mutex<Order>,
}

/// What may not be passed. All of it is bounded by the gate, which every change has come through.
#[derive(Default)]
struct Order {
    /// Blocks of changes under way that hold them, in bytes.
    held: Vec<Range<u64>>,
    /// Changes that wait for those or for each other, in their order.
    waiting: VecDeque<Change>,
}

/// New bytes and their place.
struct Patch {
    /// A multiple of a block.
    offset: u64,
    /// Whole blocks.
    bytes: Vec<u8>,
    /// What is known of them.
    known: Range<usize>,
    durability: Durability,
}

/// Zeroes that are still to be made.
struct Zeroes {
    /// Pieces of whole blocks or of one; some are empty.
    pieces: array::IntoIter<Range<u64>, 3>,
    space: Space,
    pace: Pace,
    durability: Durability,
}

/// A change that has not ended. It ends by being dropped: also if the loop is gone.
struct Change {
    volume: Arc<Volume>,
    blocks: Range<u64>,
    holds: Holds,
    patch: Option<Patch>,
    zeroes: Option<Zeroes>,
    end: Option<End>,
    result: Result<(), Failed>,
}

/// What a change does to others that overlap it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Nothing: the engine orders it.
    Nothing,
    /// They wait from now on, but it has not begun.
    Soon,
    /// They wait.
    Blocks,
}

impl Volume {
    pub(super) fn new(mailbox: Mailbox, export: usize, block: u64) -> Self {
        Volume {
            mailbox,
            export,
            block,
            order: Mutex::default(),
        }
    }

    /// Writes some bytes, at least one.
    pub(super) fn write(
        self: &Arc<Self>,
        offset: u64,
        bytes: &[u8],
        durability: Durability,
        end: End,
    ) {
        let patch = Patch::new(offset, bytes, durability, self.block);
        let is_whole = patch.missing(self.block).is_none();
        let blocks = patch.offset..patch.offset + patch.bytes.len() as u64;
        let holds = if is_whole {
            Holds::Nothing
        } else {
            Holds::Soon
        };
        self.begin(Change {
            volume: Arc::clone(self),
            blocks,
            holds,
            patch: Some(patch),
            zeroes: None,
            end: Some(end),
            result: Err(Failed::ShuttingDown),
        });
    }

    /// Makes some bytes zeroes, at least one.
    pub(super) fn zero(
        self: &Arc<Self>,
        bytes: Range<u64>,
        (space, pace): (Space, Pace),
        durability: Durability,
        end: End,
    ) {
        let blocks = floor(bytes.start, self.block)..ceiling(bytes.end, self.block);
        self.begin(Change {
            volume: Arc::clone(self),
            blocks,
            holds: Holds::Soon,
            patch: None,
            zeroes: Some(Zeroes {
                pieces: pieces(bytes, self.block).into_iter(),
                space,
                pace,
                durability,
            }),
            end: Some(end),
            result: Err(Failed::ShuttingDown),
        });
    }

    /// Has the loop do something. If it is gone, `reply` is dropped.
    pub(super) fn post(&self, ask: Ask, bytes: Range<u64>, contents: Vec<u8>, reply: Reply) {
        let _ = self.mailbox.post(Letter::Operation(Posted {
            export: self.export,
            ask,
            offset: bytes.start,
            length: bytes.end - bytes.start,
            contents: Contents::Owned(contents),
            reply,
        }));
    }

    /// Begins a change, or has it wait for its turn.
    fn begin(&self, mut change: Change) {
        {
            let mut order = self.order();
            if !order.is_free(&change.blocks, order.waiting.len()) {
                order.waiting.push_back(change);
                return;
            }
            order.take(&mut change);
        }
        change.step();
    }

    /// A change that held blocks has ended: the first of those that may now begin does so.
    fn give_back(&self, blocks: &Range<u64>) {
        {
            let mut order = self.order();
            let place = order.held.iter().position(|held| held == blocks);
            order
                .held
                .swap_remove(place.expect("what is held was taken"));
        }
        loop {
            // Not in the loop's head, where it would stay locked while the change begins.
            let next = self.order().next();
            match next {
                Some(next) => next.step(),
                None => return,
            }
        }
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Order {
    /// Whether nothing that is held, nor any of the first `before` that wait, overlaps.
    fn is_free(&self, blocks: &Range<u64>, before: usize) -> bool {
        let waiting = self.waiting.iter().take(before);
        let waiting = waiting.map(|change| &change.blocks);
        let mut all = self.held.iter().chain(waiting);
        all.all(|other| other.end <= blocks.start || blocks.end <= other.start)
    }

    /// The change begins.
    fn take(&mut self, change: &mut Change) {
        if change.holds == Holds::Soon {
            change.holds = Holds::Blocks;
            self.held.push(change.blocks.clone());
        }
    }

    /// The first that need not wait any more.
    fn next(&mut self) -> Option<Change> {
        let mut places = 0..self.waiting.len();
        let place = places.find(|&place| self.is_free(&self.waiting[place].blocks, place))?;
        let mut change = self.waiting.remove(place)?;
        self.take(&mut change);
        Some(change)
    }
}

impl Patch {
    /// The bytes with room around them up to whole blocks.
    fn new(offset: u64, bytes: &[u8], durability: Durability, block: u64) -> Self {
        let start = floor(offset, block);
        let end = ceiling(offset + bytes.len() as u64, block);
        let before = (offset - start) as usize;
        let known = before..before + bytes.len();
        let mut whole = Vec::with_capacity((end - start) as usize);
        whole.resize(before, 0);
        whole.extend_from_slice(bytes);
        whole.resize((end - start) as usize, 0);
        Patch {
            offset: start,
            bytes: whole,
            known,
            durability,
        }
    }

    /// The block that has to be read next: its place in the patch.
    fn missing(&self, block: u64) -> Option<usize> {
        if self.known.start > 0 {
            return Some(0);
        }
        let is_short = self.known.end < self.bytes.len();
        is_short.then(|| self.bytes.len() - block as usize)
    }

    /// That block as it is on the drive: its bytes go where there are no new ones.
    fn fill(&mut self, place: usize, block: &[u8]) {
        let end = place + block.len();
        if place < self.known.start {
            let before = place..self.known.start;
            self.bytes[before].copy_from_slice(&block[..self.known.start - place]);
            self.known.start = place;
        }
        if self.known.end < end {
            let after = self.known.end..end;
            self.bytes[after].copy_from_slice(&block[self.known.end - place..]);
            self.known.end = end;
        }
    }
}

/// Whole blocks, and what is left before and behind them. Whole blocks are first: if the drive
/// refuses those, nothing has changed.
fn pieces(Range { start, end }: Range<u64>, block: u64) -> [Range<u64>; 3] {
    let first = ceiling(start, block);
    let last = floor(end, block).max(first);
    let before = start..first.min(end);
    let behind = last.min(end).max(before.end)..end;
    [first..last, before, behind]
}

impl Change {
    /// Does what comes next. Called where it begins, and then on the loop's thread.
    fn step(mut self) {
        let volume = Arc::clone(&self.volume);
        let block = volume.block;
        if let Some(patch) = self.patch.take() {
            return match patch.missing(block) {
                Some(place) => self.read(patch, place),
                None => self.write(patch),
            };
        }
        let Some(zeroes) = &mut self.zeroes else {
            return self.ended(Ok(()));
        };
        let Some(piece) = zeroes.pieces.find(|piece| !piece.is_empty()) else {
            return self.ended(Ok(()));
        };
        let durability = zeroes.durability;
        let (space, pace) = (zeroes.space, zeroes.pace);
        if (piece.end - piece.start).is_multiple_of(block) {
            let ask = Ask::Zero {
                durability,
                space,
                pace,
            };
            return volume.post(ask, piece, Vec::new(), self.then_step());
        }
        let bytes = vec![0; (piece.end - piece.start) as usize];
        self.patch = Some(Patch::new(piece.start, &bytes, durability, block));
        self.step();
    }

    fn read(mut self, mut patch: Patch, place: usize) {
        let volume = Arc::clone(&self.volume);
        let start = patch.offset + place as u64;
        let reply: Reply = Box::new(move |result| match result {
            Ok(bytes) => {
                patch.fill(place, bytes);
                self.patch = Some(patch);
                self.step();
            }
            Err(failed) => self.ended(Err(failed)),
        });
        volume.post(Ask::Read, start..start + volume.block, Vec::new(), reply);
    }

    fn write(self, patch: Patch) {
        let volume = Arc::clone(&self.volume);
        let durability = patch.durability;
        let span = patch.offset..patch.offset + patch.bytes.len() as u64;
        let ask = Ask::Write { durability };
        volume.post(ask, span, patch.bytes, self.then_step());
    }

    fn then_step(self) -> Reply {
        Box::new(move |result| match result {
            Ok(_) => self.step(),
            Err(failed) => self.ended(Err(failed)),
        })
    }

    fn ended(mut self, result: Result<(), Failed>) {
        self.result = result;
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end(self.result);
        }
        if self.holds == Holds::Blocks {
            self.volume.give_back(&self.blocks);
        }
    }
}

pub(super) fn floor(at: u64, block: u64) -> u64 {
    at / block * block
}

pub(super) fn ceiling(at: u64, block: u64) -> u64 {
    at.div_ceil(block) * block
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_cover_every_byte_once_and_never_two_blocks_in_part() {
        const BLOCK: u64 = 4;
        for start in 0..3 * BLOCK {
            for end in start + 1..=4 * BLOCK {
                let mut covered: Vec<u64> = Vec::new();
                for piece in pieces(start..end, BLOCK) {
                    let is_whole = piece.start % BLOCK == 0 && piece.end % BLOCK == 0;
                    let is_within =
                        piece.is_empty() || piece.start / BLOCK == (piece.end - 1) / BLOCK;
                    assert!(is_whole || is_within, "{start}..{end}: {piece:?}");
                    covered.extend(piece);
                }
                covered.sort_unstable();
                assert!(covered.into_iter().eq(start..end), "{start}..{end}");
            }
        }
    }

    const BLOCK: u64 = 4;
    const BYTES: u64 = 8 * BLOCK;

    /// What a drive's loop promises, and no more: reads and writes that overlap are done in their
    /// order, everything else in any.
    struct Loop {
        mailbox: Mailbox,
        pending: Vec<Posted>,
        contents: Vec<u8>,
        durable: usize,
    }

    impl Loop {
        fn new() -> (Self, Arc<Volume>) {
            let mailbox = Mailbox::new().expect("a mailbox");
            let volume = Arc::new(Volume::new(mailbox.clone(), 0, BLOCK));
            let this = Loop {
                mailbox,
                pending: Vec::new(),
                contents: vec![0xFF; BYTES as usize],
                durable: 0,
            };
            (this, volume)
        }

        fn take(&mut self) {
            for letter in self.mailbox.take() {
                let Letter::Operation(posted) = letter else {
                    panic!("only operations are posted");
                };
                assert!(posted.offset % BLOCK == 0 && posted.length % BLOCK == 0);
                self.pending.push(posted);
            }
        }

        fn may_end(&self, place: usize) -> bool {
            let is_ordered = |posted: &Posted| !matches!(posted.ask, Ask::Zero { .. });
            let this = &self.pending[place];
            let mut before = self.pending[..place].iter();
            !is_ordered(this)
                || !before.any(|other| {
                    is_ordered(other)
                        && other.offset < this.offset + this.length
                        && this.offset < other.offset + other.length
                })
        }

        /// Ends one of those that may, the `choice`th of them; whether there was one.
        fn end_one(&mut self, choice: usize) -> bool {
            self.take();
            let places = 0..self.pending.len();
            let places: Vec<usize> = places.filter(|&place| self.may_end(place)).collect();
            if places.is_empty() {
                return false;
            }
            let posted = self.pending.remove(places[choice % places.len()]);
            let start = posted.offset as usize;
            let here = &mut self.contents[start..start + posted.length as usize];
            let read = match posted.ask {
                Ask::Read => here.to_vec(),
                Ask::Write { durability } => {
                    let Contents::Owned(bytes) = &posted.contents else {
                        panic!("nothing is lent");
                    };
                    here.copy_from_slice(bytes);
                    self.durable += usize::from(durability == Durability::Durable);
                    Vec::new()
                }
                Ask::Zero { durability, .. } => {
                    here.fill(0);
                    self.durable += usize::from(durability == Durability::Durable);
                    Vec::new()
                }
                _ => panic!("neither flushes nor trims"),
            };
            (posted.reply)(Ok(&read));
            true
        }
    }

    /// Bytes of its own that a client changes, how, and how many operations end before the next.
    type Part = (u8, usize, Vec<usize>);

    fn change(volume: &Arc<Volume>, bytes: Range<u64>, new: u8, ended: &Arc<AtomicUsize>) {
        let ended = Arc::clone(ended);
        let end: End = Box::new(move |result| {
            result.expect("nothing fails");
            ended.fetch_add(1, Ordering::SeqCst);
        });
        match new {
            0 => {
                let how = (Space::MayBeFreed, Pace::Fast);
                volume.zero(bytes, how, Durability::Durable, end);
            }
            new => {
                let written = vec![new; (bytes.end - bytes.start) as usize];
                volume.write(bytes.start, &written, Durability::Durable, end);
            }
        }
    }

    proptest! {
        /// Clients that change different bytes at the same time never undo what another did.
        #[test]
        fn nothing_is_undone(parts in prop::collection::vec(
            (0..3u8, 1..7usize, prop::collection::vec(0..8usize, 0..4)), 1..12,
        ).prop_shuffle(), turns in prop::collection::vec(any::<prop::sample::Index>(), 12)) {
            let (mut event_loop, volume) = Loop::new();
            let mut expected = event_loop.contents.clone();
            let ended = Arc::new(AtomicUsize::new(0));
            // Side by side on the volume, and begun in any order.
            let mut at = 0;
            let mut begun: Vec<(Range<u64>, Part)> = Vec::new();
            for part in parts {
                let until = (at + part.1 as u64).min(BYTES);
                if at < until {
                    let turn = turns[begun.len()].index(begun.len() + 1);
                    begun.insert(turn, (at..until, part));
                }
                at = until;
            }
            let count = begun.len();
            for (bytes, (new, _, ends)) in begun {
                expected[bytes.start as usize..bytes.end as usize].fill(new);
                change(&volume, bytes, new, &ended);
                for choice in ends {
                    event_loop.end_one(choice);
                }
            }
            while event_loop.end_one(0) {}
            prop_assert_eq!(&event_loop.contents, &expected);
            prop_assert_eq!(ended.load(Ordering::SeqCst), count);
            prop_assert!(event_loop.durable >= count, "a write that is only volatile");
            let order = volume.order();
            prop_assert!(order.held.is_empty() && order.waiting.is_empty());
        }
    }

    #[test]
    fn what_overlaps_a_part_of_a_block_waits_and_the_rest_does_not() {
        let (mut event_loop, volume) = Loop::new();
        let ended = Arc::new(AtomicUsize::new(0));
        change(&volume, 1..2, 1, &ended);
        change(&volume, 0..4, 2, &ended);
        change(&volume, 4..8, 3, &ended);
        event_loop.take();
        let asked: Vec<(Ask, u64)> = event_loop
            .pending
            .iter()
            .map(|posted| (posted.ask, posted.offset))
            .collect();
        let durability = Durability::Durable;
        assert_eq!(asked, [(Ask::Read, 0), (Ask::Write { durability }, 4)]);
        while event_loop.end_one(0) {}
        assert_eq!(event_loop.contents[..8], [2, 2, 2, 2, 3, 3, 3, 3]);
        assert_eq!(ended.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_loop_that_is_gone_ends_all_that_waits() {
        let (mut event_loop, volume) = Loop::new();
        let failed = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let failed = Arc::clone(&failed);
            let end: End = Box::new(move |result| {
                assert_eq!(result, Err(Failed::ShuttingDown));
                failed.fetch_add(1, Ordering::SeqCst);
            });
            volume.write(1, &[7], Durability::Volatile, end);
        }
        event_loop.take();
        event_loop.mailbox.close();
        event_loop.pending.clear();
        assert_eq!(failed.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_part_that_cannot_be_read_is_not_written() {
        let (mut event_loop, volume) = Loop::new();
        let failed = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&failed);
        let end: End = Box::new(move |result| {
            assert_eq!(result, Err(Failed::Io));
            theirs.fetch_add(1, Ordering::SeqCst);
        });
        volume.write(1, &[7], Durability::Volatile, end);
        event_loop.take();
        let read = event_loop.pending.pop().expect("the block is read");
        (read.reply)(Err(Failed::Io));
        assert!(!event_loop.end_one(0), "nothing more is asked");
        assert_eq!(failed.load(Ordering::SeqCst), 1);
    }
}
