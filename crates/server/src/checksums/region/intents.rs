//! The intents of a region: a bit for each mebibyte with one, and the codes of its chunks.

use std::io;

use super::{CHUNKS_PER_CODES, Contents, Medium, Region, codes_sector, marks_sector};
use super::{CHUNKS_PER_MARK, MARKS_PER_SECTOR, chunks};
use crate::checksums::intent::{CODE_BITS, decode, encode};

impl<M: Medium> Region<M> {
    /// Makes intents of these chunks and pages durable: writes of the pages may begin.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn intend(&mut self, intents: &[(u64, u16)]) -> io::Result<()> {
        self.put_intents(intents)?;
        self.medium.sync()
    }

    /// Removes the intents of chunks, once everything before is durable.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn clear(&mut self, chunks: &[u64]) -> io::Result<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        self.medium.sync()?;
        let none: Vec<(u64, u16)> = chunks.iter().map(|&chunk| (chunk, 0)).collect();
        self.put_intents(&none)
    }

    /// The chunks with an intent, and its pages.
    pub(super) fn intents(&mut self) -> io::Result<Vec<(u64, u16)>> {
        let mut found = Vec::new();
        let end = chunks(self.length);
        let marks = end.div_ceil(CHUNKS_PER_MARK);
        for first in (0..marks).step_by(MARKS_PER_SECTOR as usize) {
            let marked = self.load_full(marks_sector(first))?;
            let here = (first..marks.min(first + MARKS_PER_SECTOR)).filter(|&mark| {
                let bit = mark % MARKS_PER_SECTOR;
                marked[(bit / 8) as usize] >> (bit % 8) & 1 == 1
            });
            // Each mebibyte has one sector of codes. It is loaded once for all of its neighbours.
            let mut loaded: Option<(u64, Contents)> = None;
            for mark in here {
                let of_mark = mark * CHUNKS_PER_MARK..end.min((mark + 1) * CHUNKS_PER_MARK);
                let sector = codes_sector(of_mark.start);
                let codes = match loaded {
                    Some((number, codes)) if number == sector => codes,
                    _ => self.load_full(sector)?,
                };
                loaded = Some((sector, codes));
                found.extend(of_mark.filter_map(|chunk| {
                    let pages = decode(code(&codes, chunk));
                    (pages != 0).then_some((chunk, pages))
                }));
            }
        }
        Ok(found)
    }

    /// Gives chunks these pages as their intent. A volume that became shorter has none past its end.
    fn put_intents(&mut self, intents: &[(u64, u16)]) -> io::Result<()> {
        let end = chunks(self.length);
        let mut sorted: Vec<(u64, u16)> = (intents.iter().copied())
            .filter(|(chunk, _)| *chunk < end)
            .collect();
        // Of two intents of a chunk the later one has the pages of both, and is the greater number.
        sorted.sort_unstable();
        for here in sorted.chunk_by(|(a, _), (b, _)| codes_sector(*a) == codes_sector(*b)) {
            let sectors = (
                marks_sector(here[0].0 / CHUNKS_PER_MARK),
                codes_sector(here[0].0),
            );
            let old = (self.load_full(sectors.0)?, self.load_full(sectors.1)?);
            let (mut marks, mut codes) = old;
            for of_mark in
                here.chunk_by(|(a, _), (b, _)| a / CHUNKS_PER_MARK == b / CHUNKS_PER_MARK)
            {
                let mark = of_mark[0].0 / CHUNKS_PER_MARK;
                let bit = mark % MARKS_PER_SECTOR;
                let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
                let all = mark * CHUNKS_PER_MARK..(mark + 1) * CHUNKS_PER_MARK;
                if marks[byte] & mask == 0 {
                    // A power cut may have kept codes whose mark it lost. They are of no write.
                    all.clone().for_each(|chunk| set_code(&mut codes, chunk, 0));
                }
                for &(chunk, pages) in of_mark {
                    set_code(&mut codes, chunk, encode(pages));
                }
                match all.clone().any(|chunk| code(&codes, chunk) != 0) {
                    true => marks[byte] |= mask,
                    false => marks[byte] &= !mask,
                }
            }
            if codes != old.1 {
                self.store(sectors.1, &codes)?;
            }
            if marks != old.0 {
                self.store(sectors.0, &marks)?;
            }
        }
        Ok(())
    }

    /// The contents of a sector of marks or codes. Any write of a damaged one may have been interrupted.
    fn load_full(&mut self, sector: u64) -> io::Result<Contents> {
        let before = self.damaged_sectors;
        let mut contents = self.load(sector)?;
        if self.damaged_sectors > before {
            contents.fill(0xFF);
            self.store(sector, &contents)?;
        }
        Ok(contents)
    }
}

/// The bits of a chunk's code in its sector: the first of them, and the byte.
fn place(chunk: u64) -> (usize, u32) {
    let bit = chunk % CHUNKS_PER_CODES * CODE_BITS;
    ((bit / 8) as usize, (bit % 8) as u32)
}

const MASK: u16 = (1 << CODE_BITS) - 1;

/// The code of a chunk.
fn code(codes: &Contents, chunk: u64) -> u8 {
    let (byte, shift) = place(chunk);
    let next = codes.get(byte + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([codes[byte], next]) >> shift & MASK) as u8
}

fn set_code(codes: &mut Contents, chunk: u64, code: u8) {
    let (byte, shift) = place(chunk);
    let next = codes.get(byte + 1).copied().unwrap_or(0);
    let word = u16::from_le_bytes([codes[byte], next]) & !(MASK << shift);
    let [low, high] = (word | u16::from(code) << shift).to_le_bytes();
    codes[byte] = low;
    if let Some(place) = codes.get_mut(byte + 1) {
        *place = high;
    }
}
