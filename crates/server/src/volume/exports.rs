//! The exports of a drive, and the blocks of the drive under their bytes.
//!
//! ```text
//!   blocks     |  first  |         |         |  last   |
//!   operation       |-----------------------------|
//!   around     |---------------------------------------|
//!   within               |-------------------|
//!   edges      |^^^^|                              ^^^^|   blocks that are changed in part
//! ```

use block::{Class, Extent, Lba, Sectors};
use headtime_client::wire;
use stream::location::MapError;
use stream::{LocationMap, Piece};

use super::operation::Operation;
use crate::disk::back_end::Span;
use block::operation::Ask;

/// A volume as clients reach it: a part of the drive, and the class of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Where its volume begins, in bytes of the drive; a multiple of a block.
    pub offset: u64,
    /// How many bytes it has; a multiple of a block.
    pub length: u64,
    /// The class of requests from its clients.
    pub class: Class,
}

/// All exports of a drive. One that is there stays at its place, for the clients that use it.
pub(crate) struct Exports {
    all: Vec<Export>,
    /// Bytes in a block of the drive.
    block: u64,
}

impl Exports {
    pub(crate) fn new(all: Vec<Export>, block: u64) -> Self {
        Exports { all, block }
    }

    pub(crate) fn all(&self) -> &[Export] {
        &self.all
    }

    pub(crate) fn get(&self, export: usize) -> Option<&Export> {
        self.all.get(export)
    }

    /// Bytes in a block of the drive.
    pub(crate) fn block(&self) -> u64 {
        self.block
    }

    /// The place of an export, which is added if it is new.
    pub(crate) fn add(&mut self, export: Export) -> usize {
        let same = self.all.iter().position(|other| *other == export);
        same.unwrap_or_else(|| {
            self.all.push(export);
            self.all.len() - 1
        })
    }

    /// Gives the exports of a volume another length.
    pub(crate) fn resize(&mut self, offset: u64, from: u64, to: u64) {
        for export in &mut self.all {
            if export.offset == offset && export.length == from {
                export.length = to;
            }
        }
    }

    /// The class of an operation: its own, or that of its export.
    pub(crate) fn class(&self, operation: &Operation) -> Class {
        operation.class.unwrap_or(self.all[operation.export].class)
    }

    /// Where the volume of an export begins, in bytes of the drive.
    pub(crate) fn offset(&self, export: usize) -> u64 {
        self.all[export].offset
    }

    /// The bytes of the drive under an operation.
    pub(crate) fn span(&self, operation: &Operation) -> Span {
        Span {
            offset: self.offset(operation.export) + operation.offset,
            length: operation.length,
        }
    }

    /// All blocks of which an operation has a byte.
    pub(crate) fn around(&self, operation: &Operation) -> Extent {
        let span = self.span(operation);
        let first = span.offset / self.block;
        let end = (span.offset + span.length).div_ceil(self.block);
        Extent::new(Lba(first), Sectors(end - first)).expect("blocks of the drive, at least one")
    }

    /// The blocks of which it has all bytes.
    pub(crate) fn within(&self, operation: &Operation) -> Option<Extent> {
        let span = self.span(operation);
        let first = span.offset.div_ceil(self.block);
        let end = (span.offset + span.length) / self.block;
        Extent::new(Lba(first), Sectors(end.saturating_sub(first))).ok()
    }

    /// The blocks that it changes in part.
    pub(crate) fn edges(&self, operation: &Operation) -> [Option<Lba>; 2] {
        if !operation.is_change() || matches!(operation.ask, Ask::Trim { .. }) {
            return [None; 2];
        }
        let (span, block) = (self.span(operation), self.block);
        let end = span.offset + span.length;
        let is_part = |at: u64| !at.is_multiple_of(block);
        let first = is_part(span.offset).then_some(Lba(span.offset / block));
        let last = is_part(end).then_some(Lba(end / block));
        [first, last.filter(|&last| first != Some(last))]
    }

    /// Whether an operation begins or ends within a block.
    pub(crate) fn is_partial(&self, operation: &Operation) -> bool {
        self.within(operation) != Some(self.around(operation))
    }

    /// How many bytes of memory an operation needs, and how many of them its client fills or gets.
    pub(crate) fn memory_for(&self, operation: &Operation) -> (usize, usize) {
        let around = || (self.around(operation).length().0 * self.block) as usize;
        let edges = self.edges(operation).iter().flatten().count() * self.block as usize;
        let length = operation.length as usize;
        match operation.ask {
            _ if operation.length == 0 => (0, 0),
            Ask::Read | Ask::Cache => (around(), around()),
            Ask::Write { .. } => (around() + edges, length),
            Ask::Zero { .. } => (edges, edges),
            Ask::Trim { .. } | Ask::Flush => (0, 0),
        }
    }

    /// The blocks of an export.
    pub(crate) fn extent(&self, export: usize) -> Option<Extent> {
        let export = self.all.get(export)?;
        let (start, length) = (export.offset / self.block, export.length / self.block);
        Extent::new(Lba(start), Sectors(length)).ok()
    }

    /// Where the bytes of a file are on the drive.
    pub(crate) fn map(&self, export: usize, places: &wire::Places) -> Result<LocationMap, String> {
        let (export, block) = (&self.all[export], self.block);
        if places.pieces.len() > wire::PIECES {
            let limit = wire::PIECES;
            return Err(format!(
                "{} pieces: expected at most {limit}",
                places.pieces.len()
            ));
        }
        let mut pieces = Vec::with_capacity(places.pieces.len());
        for &wire::FilePiece(offset, start, length) in &places.pieces {
            let end = start.checked_add(length);
            if end.is_none_or(|end| end > export.length) {
                return Err(format!(
                    "{length} bytes at {start}: expected places within the {} bytes of export {}",
                    export.length, export.name
                ));
            }
            let is_whole = [offset, start, length]
                .iter()
                .all(|at| at.is_multiple_of(block));
            let first = Lba((export.offset + start) / block);
            let extent = Extent::new(first, Sectors(length / block)).ok();
            match extent.filter(|_| is_whole) {
                Some(extent) => pieces.push(Piece { offset, extent }),
                None => {
                    return Err(format!(
                        "{length} bytes at {start}: expected whole blocks of {block} bytes"
                    ));
                }
            }
        }
        let map = LocationMap::new(pieces, block, places.length);
        map.map_err(|error: MapError| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use block::Durability;
    use block::operation::{Space, ZeroingPace};
    use headtime_client::wire::{FilePiece, Places};
    use proptest::prelude::*;

    use super::*;

    fn exports() -> Exports {
        let export = Export {
            name: "all".to_owned(),
            offset: 8192,
            length: 1 << 20,
            class: Class::default(),
        };
        Exports::new(vec![export], 4096)
    }

    fn write(offset: u64, length: u64) -> Operation {
        Operation {
            export: 0,
            ask: Ask::Write {
                durability: Durability::Volatile,
            },
            offset,
            length,
            owner: block::Owner::NOBODY,
            class: None,
        }
    }

    fn blocks(first: u64, count: u64) -> Extent {
        Extent::new(Lba(first), Sectors(count)).expect("blocks")
    }

    #[test]
    fn blocks_are_those_of_the_drive_and_edges_those_that_are_changed_in_part() {
        let exports = exports();
        let across = write(4000, 4192);
        assert_eq!(exports.around(&across), blocks(2, 2));
        assert_eq!(exports.within(&across), Some(blocks(3, 1)));
        assert_eq!(exports.edges(&across), [Some(Lba(2)), None]);
        assert_eq!(exports.memory_for(&across), (3 * 4096, 4192));
        let inside = write(100, 10);
        assert_eq!(exports.within(&inside), None);
        assert_eq!(exports.edges(&inside), [Some(Lba(2)), None], "one block");
        assert!(!exports.is_partial(&write(4096, 8192)));
    }

    #[test]
    fn an_export_keeps_its_place_and_is_added_once() {
        let mut exports = exports();
        let again = exports.all()[0].clone();
        assert_eq!(exports.add(again.clone()), 0);
        let other = Export {
            class: Class::Background,
            ..again
        };
        assert_eq!(exports.add(other), 1);
        exports.resize(8192, 1 << 20, 1 << 21);
        assert!(exports.all().iter().all(|export| export.length == 1 << 21));
    }
    const VOLATILE: Durability = Durability::Volatile;
    const ALL: [Ask; 6] = [
        Ask::Read,
        Ask::Write {
            durability: VOLATILE,
        },
        Ask::Zero {
            durability: VOLATILE,
            space: Space::Kept,
            pace: ZeroingPace::Any,
        },
        Ask::Trim {
            durability: VOLATILE,
        },
        Ask::Cache,
        Ask::Flush,
    ];

    proptest! {
        /// Beside a look at each byte's block. The volume begins with block 2.
        #[test]
        fn blocks_and_memory_of_an_operation_are_those_of_its_bytes(
            offset in 0..20_000u64,
            length in 1..20_000u64,
        ) {
            let exports = exports();
            let bytes = 8192 + offset..8192 + offset + length;
            let count = |block: u64| bytes.clone().filter(|at| at / 4096 == block).count();
            let touched: Vec<u64> = (0..20).filter(|&block| count(block) > 0).collect();
            let whole: Vec<u64> = (0..20).filter(|&block| count(block) == 4096).collect();
            let of = |extent: Extent| (extent.start().0..extent.end().0).collect::<Vec<u64>>();
            for ask in ALL {
                let operation = Operation { ask, ..write(offset, length) };
                let span = exports.span(&operation);
                prop_assert_eq!((span.offset, span.length), (bytes.start, length));
                prop_assert_eq!(of(exports.around(&operation)), touched.clone());
                let within = exports.within(&operation).map_or_else(Vec::new, of);
                prop_assert_eq!(&within, &whole);
                prop_assert_eq!(exports.is_partial(&operation), whole != touched);
                let edges: Vec<u64> =
                    exports.edges(&operation).into_iter().flatten().map(|lba| lba.0).collect();
                let in_part: Vec<u64> = match ask {
                    Ask::Write { .. } | Ask::Zero { .. } => {
                        touched.iter().copied().filter(|block| !whole.contains(block)).collect()
                    }
                    _ => Vec::new(),
                };
                prop_assert_eq!(&edges, &in_part);
                let (around, edges) = (touched.len() * 4096, in_part.len() * 4096);
                let expected = match ask {
                    Ask::Read | Ask::Cache => (around, around),
                    Ask::Write { .. } => (around + edges, length as usize),
                    Ask::Zero { .. } => (edges, edges),
                    Ask::Trim { .. } | Ask::Flush => (0, 0),
                };
                prop_assert_eq!(exports.memory_for(&operation), expected);
                let nothing = Operation { length: 0, ..operation };
                prop_assert_eq!(exports.memory_for(&nothing), (0, 0));
            }
        }
    }

    #[test]
    fn places_of_a_file_are_whole_blocks_within_the_export() {
        let exports = exports();
        let places = |pieces: &[(u64, u64, u64)]| Places {
            length: 1 << 20,
            pieces: pieces.iter().map(|&(a, b, c)| FilePiece(a, b, c)).collect(),
        };
        let map = exports.map(
            0,
            &places(&[(0, 4096, 8192), (8192, (1 << 20) - 4096, 4096)]),
        );
        let map = map.expect("a map");
        assert_eq!(map.length(), 1 << 20);
        let pieces: Vec<(u64, Extent)> = map
            .pieces()
            .iter()
            .map(|piece| (piece.offset, piece.extent))
            .collect();
        assert_eq!(pieces, [(0, blocks(3, 2)), (8192, blocks(257, 1))]);
        for (refused, reason) in [
            ((0, 1 << 20, 4096), "within the 1048576 bytes of export all"),
            (
                (0, u64::MAX, 4096),
                "within the 1048576 bytes of export all",
            ),
            ((0, 0, 4095), "whole blocks of 4096 bytes"),
            ((0, 1, 4096), "whole blocks of 4096 bytes"),
            ((1, 0, 4096), "whole blocks of 4096 bytes"),
            ((0, 0, 0), "whole blocks of 4096 bytes"),
        ] {
            let problem = exports.map(0, &places(&[refused])).expect_err("refused");
            assert!(problem.contains(reason), "{refused:?}: {problem}");
        }
        let overlapping = places(&[(0, 0, 8192), (4096, 8192, 4096)]);
        assert!(exports.map(0, &overlapping).is_err(), "in the file");
        let piece = |number: u64| (2 * 4096 * number, number % 256 * 4096, 4096);
        let many: Vec<(u64, u64, u64)> = (0..wire::PIECES as u64).map(piece).collect();
        exports.map(0, &places(&many)).expect("as many as may be");
        let more: Vec<(u64, u64, u64)> = (0..=wire::PIECES as u64).map(piece).collect();
        let problem = exports.map(0, &places(&more)).expect_err("too many");
        assert!(problem.contains("expected at most 16000"), "{problem}");
    }

    #[test]
    fn a_volume_has_its_blocks_and_another_length_only_from_the_one_that_it_had() {
        let mut exports = exports();
        let far = Export {
            name: "far".to_owned(),
            offset: 8192 + (1 << 20),
            ..exports.all()[0].clone()
        };
        assert_eq!(exports.add(far), 1);
        assert_eq!(exports.extent(0), Some(blocks(2, 256)));
        assert_eq!(exports.extent(1), Some(blocks(258, 256)));
        assert_eq!(exports.extent(2), None);
        exports.resize(8192, 4096, 1 << 16);
        exports.resize(8192 + (1 << 20), 1 << 20, 1 << 19);
        let lengths: Vec<u64> = exports.all().iter().map(|export| export.length).collect();
        assert_eq!(lengths, [1 << 20, 1 << 19]);
    }
}
