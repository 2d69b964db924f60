//! Sets that users declare: pieces in any order, of which all or any `k` will do.
//!
//! ```text
//!   declared   [ piece ]   [ piece ]        [ piece ]      any 2 of 3
//!   read         ####      ##########                      0 complete
//!   read       #########   ##########                      2 complete: the task may end
//! ```

use block::{Extent, Lba, Sectors};
use drive::Geometry;

use crate::freeblock::{PastEnd, WantedBlocks};

/// The largest number of pieces of a set. A choice: as many as one line of the control socket holds.
pub const MOST_PIECES: usize = 16_000;

/// Pieces of a drive, in ascending order and disjoint, and how many of them are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredSet {
    pieces: Vec<Extent>,
    needed: usize,
}

/// The reason that a set was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetRefused {
    /// The set has no pieces.
    #[error("an empty set: expected at least one piece")]
    Empty,
    /// The set has too many pieces.
    #[error("{0} pieces: expected at most {MOST_PIECES}, and further tasks for the others")]
    TooManyPieces(usize),
    /// Two pieces have a block in common.
    #[error("pieces {0} and {1} overlap: expected each block once")]
    Overlap(Extent, Extent),
    /// No piece is needed, or more than there are.
    #[error("any {needed} of {pieces} pieces: expected 1 to {pieces}")]
    Needed {
        /// The requested number.
        needed: usize,
        /// The number of pieces.
        pieces: usize,
    },
}

impl DeclaredSet {
    /// A set of which all pieces are needed, in any order.
    ///
    /// # Errors
    /// If there are no pieces or too many, or two of them overlap.
    pub fn all(mut pieces: Vec<Extent>) -> Result<Self, SetRefused> {
        if pieces.is_empty() {
            return Err(SetRefused::Empty);
        }
        if pieces.len() > MOST_PIECES {
            return Err(SetRefused::TooManyPieces(pieces.len()));
        }
        pieces.sort_by_key(|piece| piece.start());
        for pair in pieces.windows(2) {
            if pair[0].overlaps(pair[1]) {
                return Err(SetRefused::Overlap(pair[0], pair[1]));
            }
        }
        let needed = pieces.len();
        Ok(DeclaredSet { pieces, needed })
    }

    /// The same pieces, of which any `needed` will do.
    ///
    /// # Errors
    /// If `needed` is zero or more than there are.
    pub fn any(mut self, needed: usize) -> Result<Self, SetRefused> {
        let pieces = self.pieces.len();
        if needed == 0 || needed > pieces {
            return Err(SetRefused::Needed { needed, pieces });
        }
        self.needed = needed;
        Ok(self)
    }

    /// The pieces in ascending order.
    pub fn pieces(&self) -> &[Extent] {
        &self.pieces
    }

    /// The number of pieces that are needed.
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// The blocks of all pieces.
    pub fn blocks(&self) -> Sectors {
        Sectors(self.pieces.iter().map(|piece| piece.length().0).sum())
    }

    /// The parts of `extent` that are in pieces, in ascending order.
    pub fn parts(&self, extent: Extent) -> impl Iterator<Item = Extent> + '_ {
        let first = self
            .pieces
            .partition_point(|piece| piece.end() <= extent.start());
        let touched = self.pieces[first..].iter();
        let touched = touched.take_while(move |piece| piece.start() < extent.end());
        touched.filter_map(move |piece| {
            let start = piece.start().max(extent.start());
            let end = piece.end().min(extent.end());
            Extent::new(start, Sectors(end.0 - start.0)).ok()
        })
    }

    /// The wanted blocks of all pieces, rounded up to slices.
    ///
    /// # Errors
    /// If a piece ends past the end of the drive.
    pub fn wanted(&self, geometry: &Geometry) -> Result<WantedBlocks, PastEnd> {
        let mut wanted = WantedBlocks::none(geometry);
        for &piece in &self.pieces {
            wanted.add(piece)?;
        }
        Ok(wanted)
    }
}

/// The delivered blocks of a declared set.
#[derive(Clone, Debug)]
pub struct SetProgress {
    set: DeclaredSet,
    /// Blocks of each piece that were not delivered.
    lacking: Vec<u64>,
    /// Pieces of which a block was delivered.
    begun: usize,
    complete: usize,
    missing: WantedBlocks,
    /// Blocks of the pieces that were given up, if that was decided.
    given_up: Option<u64>,
}

/// How many pieces are begun before the others are given up, in thousandths of the needed ones. A choice: half of the
/// pieces of 64 KiB are read nearly as fast with 1,100 as with any of 1,000 to 1,800, and more slows smaller pieces less
/// (`headtime bench care --case tasks --unprofiled`, seeds 1 to 3).
const BEGUN_PPT: usize = 1_100;

impl SetProgress {
    /// A set of which the blocks of `missing` were not delivered. The rest of it was.
    pub fn new(set: DeclaredSet, missing: WantedBlocks) -> Self {
        let mut lacking = vec![0; set.pieces.len()];
        for extent in missing.extents() {
            each_overlap(&set.pieces, extent, |place, blocks| {
                lacking[place] += blocks
            });
        }
        let complete = lacking.iter().filter(|&&blocks| blocks == 0).count();
        let each = set.pieces.iter().zip(&lacking);
        let begun = each
            .filter(|(piece, lacking)| **lacking < piece.length().0)
            .count();
        SetProgress {
            set,
            lacking,
            begun,
            complete,
            missing,
            given_up: None,
        }
    }

    /// Gives up the pieces of which no block was delivered, once so many others are begun that these will do. Returns
    /// their blocks, which need not be read any more: whole slices that no other piece has a part of. Nothing if it is
    /// not time, or if it was done before.
    ///
    /// A gap often brings a part of a piece. Without this call, parts of all pieces are read when the needed ones are complete.
    pub fn give_up_surplus(&mut self) -> Vec<Extent> {
        let SetProgress { set, begun, .. } = &*self;
        let is_choice = set.needed < set.pieces.len() && *begun < set.pieces.len();
        if !is_choice || self.given_up.is_some() || begun * 1_000 < set.needed * BEGUN_PPT {
            return Vec::new();
        }
        let mut surplus = WantedBlocks::none(self.missing.geometry());
        let each = || set.pieces.iter().zip(&self.lacking);
        let is_untouched = |piece: &Extent, lacking: u64| lacking == piece.length().0;
        for (&piece, _) in each().filter(|(piece, lacking)| is_untouched(piece, **lacking)) {
            // A piece past the end of the drive has no blocks there.
            let _ = surplus.add(piece);
        }
        for (&piece, _) in each().filter(|(piece, lacking)| !is_untouched(piece, **lacking)) {
            surplus.remove_touched(piece);
        }
        self.given_up = Some(surplus.left());
        surplus.extents().collect()
    }

    /// All pieces count again, and none is given up any more. The chosen ones did not suffice: a read failed, or its
    /// blocks could not be delivered.
    pub fn take_up_all(&mut self) {
        self.given_up = Some(0);
    }

    /// The blocks that are still to be read if nothing fails: those of pieces that were not given up.
    pub fn to_come(&self) -> u64 {
        let given_up = self.given_up.unwrap_or(0);
        self.missing.left().saturating_sub(given_up)
    }

    /// The blocks of a read are here. Calls `each` with the runs that were not delivered before.
    pub fn deliver(&mut self, extent: Extent, mut each: impl FnMut(Extent)) {
        let lbas = || (extent.start().0..extent.end().0).map(Lba);
        let had: Vec<bool> = lbas().map(|lba| self.missing.contains(lba)).collect();
        if self.missing.remove(extent) == 0 {
            return;
        }
        let is_new = |(lba, had): (Lba, bool)| had && !self.missing.contains(lba);
        let new: Vec<bool> = lbas().zip(had).map(is_new).collect();
        let mut start = extent.start().0;
        for run in new.chunk_by(|a, b| a == b) {
            let length = Sectors(run.len() as u64);
            if run[0]
                && let Ok(blocks) = Extent::new(Lba(start), length)
            {
                self.count(blocks);
                each(blocks);
            }
            start += length.0;
        }
    }

    fn count(&mut self, blocks: Extent) {
        let SetProgress {
            set,
            lacking,
            begun,
            complete,
            ..
        } = self;
        each_overlap(&set.pieces, blocks, |place, delivered| {
            *begun += usize::from(lacking[place] == set.pieces[place].length().0);
            lacking[place] -= delivered;
            *complete += usize::from(lacking[place] == 0);
        });
    }

    /// The set.
    pub fn set(&self) -> &DeclaredSet {
        &self.set
    }

    /// The blocks that were not delivered.
    pub fn missing(&self) -> &WantedBlocks {
        &self.missing
    }

    /// The number of pieces of which all blocks were delivered.
    pub fn complete(&self) -> usize {
        self.complete
    }

    /// Whether as many pieces are complete as are needed.
    pub fn is_enough(&self) -> bool {
        self.complete >= self.set.needed
    }
}

/// Calls `each` with the index of every piece that overlaps `extent`, and the blocks in common.
fn each_overlap(pieces: &[Extent], extent: Extent, mut each: impl FnMut(usize, u64)) {
    let first = pieces.partition_point(|piece| piece.end() <= extent.start());
    let touched = pieces.iter().enumerate().skip(first);
    for (place, piece) in touched.take_while(|(_, piece)| piece.start() < extent.end()) {
        let start = piece.start().max(extent.start());
        let end = piece.end().min(extent.end());
        each(place, end.0 - start.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use drive::catalog;
    use proptest::prelude::*;

    use super::*;

    fn extent(start: u64, length: u64) -> Extent {
        Extent::new(Lba(start), Sectors(length)).expect("a valid extent")
    }

    #[test]
    fn sets_that_make_no_sense_are_refused() {
        assert_eq!(DeclaredSet::all(Vec::new()), Err(SetRefused::Empty));
        let (one, other) = (extent(10, 10), extent(15, 3));
        let overlapping = DeclaredSet::all(vec![other, one]);
        assert_eq!(overlapping, Err(SetRefused::Overlap(one, other)));
        let touching = DeclaredSet::all(vec![extent(20, 5), one]).expect("disjoint pieces");
        assert_eq!(touching.pieces(), [one, extent(20, 5)]);
        for needed in [0, 3] {
            let pieces = 2;
            let refused = SetRefused::Needed { needed, pieces };
            assert_eq!(touching.clone().any(needed), Err(refused));
        }
        let many = (0..=MOST_PIECES as u64).map(|place| extent(place, 1));
        let refused = SetRefused::TooManyPieces(MOST_PIECES + 1);
        assert_eq!(DeclaredSet::all(many.collect()), Err(refused));
        let drive = catalog::find("dec-rz26").expect("it is shipped");
        let geometry = drive.profile().expect("a profile").geometry;
        let past = DeclaredSet::all(vec![extent(geometry.sectors().0 - 1, 2)]);
        assert!(past.expect("one piece").wanted(&geometry).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Against sets of numbers, on a drive whose slices are blocks and on one whose slices are many.
        #[test]
        fn a_piece_is_complete_when_all_its_blocks_were_delivered(
            lengths in proptest::collection::vec((0_u64..40, 1_u64..40), 1..12),
            reads in proptest::collection::vec((0_u64..500, 1_u64..120), 0..30),
            is_large in any::<bool>(),
            share in 1_usize..=12,
        ) {
            let name = if is_large { "modern-20tb" } else { "dec-rz26" };
            let drive = catalog::find(name).expect("it is shipped").profile().expect("a profile");
            let mut next = 1_000;
            let mut pieces = Vec::new();
            for (gap, length) in lengths {
                pieces.push(extent(next + gap, length));
                next += gap + length;
            }
            let needed = share.min(pieces.len());
            let set = DeclaredSet::all(pieces.clone()).and_then(|set| set.any(needed)).expect("a set");
            let wanted = set.wanted(&drive.geometry).expect("blocks of the drive");
            let mut naive: BTreeSet<u64> = BTreeSet::new();
            let mut progress = SetProgress::new(set.clone(), wanted);
            for (start, length) in reads {
                let read = extent(990 + start, length);
                progress.deliver(read, |run| {
                    for lba in run.start().0..run.end().0 {
                        assert!(naive.insert(lba), "block {lba} was delivered twice");
                        assert!(read.start().0 <= lba && lba < read.end().0);
                    }
                });
                let is_complete = |piece: &&Extent| {
                    (piece.start().0..piece.end().0).all(|lba| naive.contains(&lba))
                };
                let complete = pieces.iter().filter(is_complete).count();
                prop_assert_eq!(progress.complete(), complete);
                prop_assert_eq!(progress.is_enough(), complete >= needed);
                let mut resumed = SetProgress::new(set.clone(), progress.missing().clone());
                prop_assert_eq!(resumed.complete(), complete);
                let is_untouched = |piece: &&Extent| {
                    (piece.start().0..piece.end().0).all(|lba| !naive.contains(&lba))
                };
                let untouched: Vec<Extent> = pieces.iter().filter(is_untouched).copied().collect();
                let begun = pieces.len() - untouched.len();
                let is_time = needed < pieces.len() && begun * 10 >= needed * 11 && begun < pieces.len();
                let surplus = resumed.give_up_surplus();
                prop_assert_eq!(&progress.clone().give_up_surplus(), &surplus);
                let blocks = |extents: &[Extent]| -> BTreeSet<u64> {
                    extents.iter().flat_map(|extent| extent.start().0..extent.end().0).collect()
                };
                let (given_up, others) = (blocks(&surplus), blocks(&untouched));
                match (is_time, is_large) {
                    (false, _) => prop_assert!(given_up.is_empty()),
                    (true, false) => prop_assert_eq!(&given_up, &others),
                    // A slice goes as a whole, unless a chosen piece has a part of it.
                    (true, true) => {
                        let chosen: Vec<Extent> =
                            pieces.iter().filter(|piece| !untouched.contains(piece)).copied().collect();
                        prop_assert!(given_up.is_disjoint(&blocks(&chosen)));
                    }
                }
                prop_assert_eq!(resumed.to_come(), resumed.missing().left() - given_up.len() as u64);
                prop_assert_eq!(resumed.give_up_surplus(), Vec::new(), "once");
                resumed.take_up_all();
                prop_assert_eq!(resumed.to_come(), resumed.missing().left());
                prop_assert_eq!(resumed.give_up_surplus(), Vec::new(), "never again");
            }
        }
    }
}
