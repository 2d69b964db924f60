//! One pass of a scrub: the chunks that were verified, those that are left, and what was found.
//!
//! ```text
//!   pieces of reads --> chunk complete --> compared: sound ------------------> verified
//!                                             '----> differs --> read again --> differs: damaged
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::cover::{Cover, Piece};
use super::record::PageSums;
use super::region::Verified;
use super::schedule::slice_of;
use super::{ALL_PAGES, CHUNK, PAGE, PAGES};

/// A pass over all chunks of a volume.
pub struct Pass {
    length: u64,
    is_active: bool,
    /// A bit for each chunk.
    done: Vec<u64>,
    left: u64,
    /// Chunks of which a part was read.
    parts: BTreeMap<u64, Cover>,
    /// Chunks that are being compared.
    compared: BTreeSet<u64>,
    /// Chunks that differed once.
    suspects: BTreeSet<u64>,
    /// Sectors of chunks whose last read failed.
    failed: BTreeMap<u64, u128>,
    /// Sectors of these chunks that were read since the first failure.
    read: BTreeMap<u64, u128>,
    /// Chunks whose pages without unreadable sectors were compared.
    beside: BTreeSet<u64>,
    /// Chunks without a checksum of these pages.
    unguarded: BTreeSet<u64>,
    counts: PassCounts,
    damaged: Vec<Damage>,
}

/// Chunks by the result of their comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassCounts {
    /// Chunks with their checksum.
    pub sound: u64,
    /// Chunks without a checksum, which have one now.
    pub adopted: u64,
    /// Chunks that differed where a write had been interrupted. Their new checksum was kept.
    pub adopted_after_crash: u64,
    /// The pages of these chunks that may be damaged.
    pub adopted_pages: u64,
    /// Chunks with trimmed bytes, which have no checksum.
    pub undefined: u64,
    /// Chunks that differed once and not again.
    pub transient: u64,
    /// Bytes of pages beside unreadable sectors that could not be compared. They are counted at the end.
    pub unverified_bytes: u64,
}

/// Damaged bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The first byte in the volume.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
    /// What is wrong with them.
    pub kind: DamageKind,
}

/// The kind of a damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamageKind {
    /// The drive cannot read them.
    Unreadable,
    /// The drive reads other bytes than those that were written.
    Changed,
}

/// The smallest place that a drive cannot read.
const SECTOR: u64 = 512;

/// The largest number of chunks of which a part was read. A choice: 40 MB. The others are read again.
const MOST_PARTS: usize = 1 << 18;

impl Pass {
    /// A pass over a volume of `length` bytes.
    pub(super) fn new(length: u64) -> Self {
        let chunks = length.div_ceil(CHUNK);
        Pass {
            length,
            is_active: true,
            done: vec![0; chunks.div_ceil(64) as usize],
            left: chunks,
            parts: BTreeMap::new(),
            compared: BTreeSet::new(),
            suspects: BTreeSet::new(),
            failed: BTreeMap::new(),
            read: BTreeMap::new(),
            beside: BTreeSet::new(),
            unguarded: BTreeSet::new(),
            counts: PassCounts::default(),
            damaged: Vec::new(),
        }
    }

    /// A pass over a slice of such a volume.
    pub(super) fn of_slice(length: u64, slice: usize) -> Self {
        let mut pass = Pass::new(length);
        for chunk in (0..length.div_ceil(CHUNK)).filter(|chunk| slice_of(chunk * CHUNK) != slice) {
            pass.set_done(chunk);
        }
        pass
    }

    /// Leaves out the chunks that are not wanted. Chunks that are being compared stay.
    pub fn narrow(&mut self, is_wanted: impl Fn(u64) -> bool) {
        for chunk in 0..self.length.div_ceil(CHUNK) {
            if is_wanted(chunk) || self.is_done(chunk) || self.compared.contains(&chunk) {
                continue;
            }
            self.parts.remove(&chunk);
            self.failed.remove(&chunk);
            self.read.remove(&chunk);
            self.beside.remove(&chunk);
            self.unguarded.remove(&chunk);
            self.set_done(chunk);
        }
    }

    /// Whether reads count.
    pub fn is_active(&self) -> bool {
        self.is_active
    }

    /// Ends the pass. Bytes whose last read failed are unreadable.
    pub fn end(&mut self) {
        self.is_active = false;
        for bytes in self.unreadable() {
            self.damaged.push(Damage {
                offset: bytes.start,
                length: bytes.end - bytes.start,
                kind: DamageKind::Unreadable,
            });
        }
        let failed = self.failed.iter();
        let unverified = failed.filter(|(chunk, _)| !self.beside.contains(chunk));
        self.counts.unverified_bytes = unverified
            .map(|(&chunk, &sectors)| {
                let bad = u64::from(pages_of(sectors).count_ones()) * PAGE;
                self.length_of(chunk).saturating_sub(bad)
            })
            .sum();
        self.parts.clear();
    }

    /// The chunks of which all pages without unreadable sectors were read: the sums of these pages, and the others. They
    /// are compared once.
    pub(super) fn read_beside(&mut self) -> Vec<(u64, PageSums, u16)> {
        let mut all = Vec::new();
        for (&chunk, &sectors) in &self.failed {
            if self.is_compared_beside(chunk) || self.compared.contains(&chunk) {
                continue;
            }
            let Some(cover) = self.parts.get(&chunk) else {
                continue;
            };
            let (changes, bad) = (cover.changes(self.length_of(chunk)), pages_of(sectors));
            if changes.known | bad == ALL_PAGES {
                all.push((chunk, changes.sums, bad));
            }
        }
        for (chunk, _, _) in &all {
            self.parts.remove(chunk);
            self.compared.insert(*chunk);
        }
        all
    }

    /// Readable bytes of chunks with unreadable ones that are to be read again, because they were not compared or
    /// differed once.
    pub fn remaining_beside(&self) -> Vec<Range<u64>> {
        let mut all: Vec<Range<u64>> = Vec::new();
        let failed = self.failed.iter();
        for (&chunk, &sectors) in failed.filter(|(chunk, _)| !self.is_compared_beside(**chunk)) {
            let bad = pages_of(sectors);
            for page in (0..PAGES as u64).filter(|page| bad >> page & 1 == 0) {
                let start = chunk * CHUNK + page * PAGE;
                let end = (start + PAGE).min(chunk * CHUNK + self.length_of(chunk));
                match all.last_mut() {
                    _ if start >= end => (),
                    Some(last) if last.end == start => last.end = end,
                    _ => all.push(start..end),
                }
            }
        }
        all
    }

    fn is_compared_beside(&self, chunk: u64) -> bool {
        self.beside.contains(&chunk) || self.unguarded.contains(&chunk)
    }

    fn length_of(&self, chunk: u64) -> u64 {
        self.length.saturating_sub(chunk * CHUNK).min(CHUNK)
    }

    /// The results so far.
    pub fn counts(&self) -> PassCounts {
        self.counts
    }

    /// Damaged bytes that were found. Those that cannot be read are listed at the end.
    pub fn damaged(&self) -> &[Damage] {
        &self.damaged
    }

    /// The number of chunks that are not verified.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Whether comparisons are under way.
    pub fn is_comparing(&self) -> bool {
        !self.compared.is_empty()
    }

    /// Bytes of the chunks that are not verified, in ascending order.
    pub fn remaining(&self) -> Vec<Range<u64>> {
        self.bytes_of(|chunk| !self.is_done(chunk))
    }

    /// Those without a place that cannot be read.
    pub fn remaining_readable(&self) -> Vec<Range<u64>> {
        self.bytes_of(|chunk| !self.is_done(chunk) && !self.failed.contains_key(&chunk))
    }

    fn bytes_of(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
        let mut all: Vec<Range<u64>> = Vec::new();
        let chunks = self.length.div_ceil(CHUNK);
        for chunk in (0..chunks).filter(|&chunk| is_wanted(chunk)) {
            let bytes = chunk * CHUNK..((chunk + 1) * CHUNK).min(self.length);
            match all.last_mut() {
                Some(last) if last.end == bytes.start => last.end = bytes.end,
                _ => all.push(bytes),
            }
        }
        all
    }

    /// Adds a part of a chunk of `length` bytes. The answer is the checksums of a complete one.
    pub(super) fn put(&mut self, chunk: u64, piece: Piece, length: u64) -> Option<PageSums> {
        if self.is_done(chunk) || self.compared.contains(&chunk) {
            return None;
        }
        if self.parts.len() >= MOST_PARTS && !self.parts.contains_key(&chunk) {
            return None;
        }
        let cover = self.parts.entry(chunk).or_default();
        cover.put(piece, length);
        let changes = cover.changes(length);
        if changes.known != u16::MAX {
            return None;
        }
        self.parts.remove(&chunk);
        self.compared.insert(chunk);
        Some(changes.sums)
    }

    /// These bytes are being changed: what was read of their chunks is void, and a write mends what is unreadable.
    pub(super) fn spoil(&mut self, bytes: &Range<u64>) {
        self.readable(bytes);
        let parts: Vec<u64> = (self.parts.range(chunks(bytes)))
            .map(|(&chunk, _)| chunk)
            .collect();
        for chunk in parts {
            self.parts.remove(&chunk);
        }
    }

    /// A read of these bytes has failed. Sectors of them that were read apart are not the reason, unless all were: a client
    /// may read beside a bad sector at any time.
    pub(super) fn failed(&mut self, bytes: &Range<u64>) {
        for chunk in chunks(bytes)
            .filter(|&chunk| !self.is_done(chunk))
            .collect::<Vec<_>>()
        {
            let (all, read) = (sectors(chunk, bytes), self.read.entry(chunk).or_default());
            let suspects = match all & !*read {
                0 => all,
                others => others,
            };
            *read &= !suspects;
            *self.failed.entry(chunk).or_default() |= suspects;
        }
    }

    /// These bytes were read, or are being changed.
    pub(super) fn readable(&mut self, bytes: &Range<u64>) {
        for (&chunk, failed) in self.failed.range_mut(chunks(bytes)) {
            *failed &= !sectors(chunk, bytes);
            *self.read.entry(chunk).or_default() |= sectors(chunk, bytes);
        }
        if self
            .failed
            .range(chunks(bytes))
            .any(|(_, &failed)| failed == 0)
        {
            self.failed.retain(|_, failed| *failed != 0);
            self.read.retain(|chunk, _| self.failed.contains_key(chunk));
        }
    }

    /// Bytes whose last read failed, in ascending order.
    pub fn unreadable(&self) -> Vec<Range<u64>> {
        let mut all: Vec<Range<u64>> = Vec::new();
        for (&chunk, &failed) in &self.failed {
            for sector in (0..CHUNK / SECTOR).filter(|sector| failed >> sector & 1 == 1) {
                let start = chunk * CHUNK + sector * SECTOR;
                let end = (start + SECTOR).min(self.length);
                match all.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => all.push(start..end),
                }
            }
        }
        all
    }

    /// A chunk was compared.
    pub(super) fn verified(&mut self, chunk: u64, verified: Verified) {
        if !self.compared.remove(&chunk) {
            return;
        }
        let was_suspect = self.suspects.remove(&chunk);
        let is_beside = self.failed.contains_key(&chunk);
        let counts = &mut self.counts;
        match verified {
            Verified::Damaged(_) if !was_suspect => {
                // It may have been the way from the drive: it is read again.
                self.suspects.insert(chunk);
                return;
            }
            Verified::Damaged(pages) => self.add_changed(chunk, pages),
            Verified::SoundBeside => (),
            Verified::Unverified => {
                self.unguarded.insert(chunk);
                return;
            }
            Verified::Sound => counts.sound += 1,
            Verified::Adopted => counts.adopted += 1,
            Verified::AdoptedAfterCrash(pages) => {
                counts.adopted_after_crash += 1;
                counts.adopted_pages += u64::from(pages.count_ones());
            }
            Verified::Undefined => counts.undefined += 1,
        }
        if was_suspect && matches!(verified, Verified::Sound | Verified::SoundBeside) {
            self.counts.transient += 1;
        }
        // A write of the unreadable sectors may have come meanwhile.
        let is_whole = !matches!(verified, Verified::SoundBeside | Verified::Damaged(_));
        if is_beside && !is_whole {
            self.beside.insert(chunk);
        }
        if verified == Verified::SoundBeside || is_beside && !is_whole {
            return;
        }
        self.failed.remove(&chunk);
        self.read.remove(&chunk);
        self.set_done(chunk);
    }

    fn set_done(&mut self, chunk: u64) {
        self.done[(chunk / 64) as usize] |= 1 << (chunk % 64);
        self.left -= 1;
    }

    /// Adds runs of damaged pages of a chunk.
    fn add_changed(&mut self, chunk: u64, pages: u16) {
        let end = self.length.min((chunk + 1) * CHUNK);
        let is_damaged = |page: usize| pages >> page & 1 == 1;
        for first in (0..PAGES).filter(|&page| is_damaged(page)) {
            if first > 0 && is_damaged(first - 1) {
                continue;
            }
            let count = (first..PAGES).take_while(|&page| is_damaged(page)).count();
            let offset = chunk * CHUNK + first as u64 * PAGE;
            let length = (count as u64 * PAGE).min(end.saturating_sub(offset));
            if length > 0 {
                self.damaged.push(Damage {
                    offset,
                    length,
                    kind: DamageKind::Changed,
                });
            }
        }
    }

    fn is_done(&self, chunk: u64) -> bool {
        self.done[(chunk / 64) as usize] >> (chunk % 64) & 1 == 1
    }
}

fn chunks(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / CHUNK..bytes.end.div_ceil(CHUNK)
}

/// The pages with some of these sectors of a chunk.
fn pages_of(failed: u128) -> u16 {
    let per_page = PAGE / SECTOR;
    let of_page = (1 << per_page) - 1;
    let is_bad = |page: &u64| failed >> (page * per_page) & of_page != 0;
    (0..PAGES as u64)
        .filter(is_bad)
        .fold(0, |pages, page| pages | 1 << page)
}

/// The sectors of a chunk with some of these bytes.
fn sectors(chunk: u64, bytes: &Range<u64>) -> u128 {
    let place = |byte: u64| byte.clamp(chunk * CHUNK, (chunk + 1) * CHUNK) - chunk * CHUNK;
    let first = place(bytes.start) / SECTOR;
    let end = place(bytes.end).div_ceil(SECTOR);
    (first..end).fold(0, |mask, sector| mask | 1 << sector)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of so many sectors.
    fn bytes(first: u64, end: u64) -> Range<u64> {
        first * SECTOR..end * SECTOR
    }

    #[test]
    fn chunks_that_are_not_wanted_are_left_out() {
        let mut pass = Pass::new(10 * CHUNK);
        pass.failed(&bytes(0, 3 * 128));
        pass.narrow(|chunk| [1, 9].contains(&chunk));
        assert_eq!(pass.left(), 2);
        assert_eq!(pass.remaining(), [CHUNK..2 * CHUNK, 9 * CHUNK..10 * CHUNK]);
        assert_eq!(pass.unreadable(), [bytes(128, 256)]);
        pass.end();
        let places: Vec<u64> = pass.damaged().iter().map(|damage| damage.offset).collect();
        assert_eq!(places, [CHUNK]);
    }

    #[test]
    fn a_failed_read_of_a_client_does_not_blame_sectors_that_were_read_apart() {
        let mut pass = Pass::new(4 * CHUNK);
        pass.failed(&bytes(128, 256));
        // The search for the bad sector, 200.
        for (first, end) in [(128, 192), (192, 200), (201, 256)] {
            pass.readable(&bytes(first, end));
        }
        let bad = bytes(200, 201);
        assert_eq!(pass.unreadable(), std::slice::from_ref(&bad));
        pass.failed(&bytes(100, 256));
        assert_eq!(pass.unreadable(), [bytes(100, 128), bad.clone()]);
        pass.readable(&bytes(100, 128));
        assert_eq!(pass.unreadable(), std::slice::from_ref(&bad));
        // One that was read has become bad, too.
        pass.failed(&bytes(130, 131));
        assert_eq!(pass.unreadable(), [bytes(130, 131), bad]);
        pass.readable(&bytes(128, 256));
        assert_eq!(pass.unreadable(), [] as [Range<u64>; 0]);
        pass.failed(&bytes(128, 256));
        assert_eq!(
            pass.unreadable(),
            [bytes(128, 256)],
            "nothing is known any more"
        );
    }
}
