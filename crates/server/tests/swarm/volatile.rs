//! A drive whose write cache keeps everything until a flush: the most that a power cut or a failed flush may take.
//!
//! ```text
//!   write  --> the image has the new bytes, the journal the old ones
//!   flush  --> forgets what had ended before it
//!   cut    --> each sector gets what one of its writes, or none, has left
//!   a flush that fails --> the same, but for sectors that a command is changing
//! ```

#![allow(unsafe_code, reason = "a back end is given memory by address")]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::operation::OperationError;
use block::{Action, Command, CommandId, Durability, Extent, Instant};
use drive::Lost;
use server::arena::Memory;
use server::disk::back_end::{BackEnd, Ended, Punch, Run, Shape, Span};
use server::ring::Ring;

use crate::plan::Dice;

/// The drive, and the image that it writes.
pub struct VolatileCache {
    inner: Box<dyn BackEnd>,
    image: File,
    sector: u64,
    /// Commands at the drive whose end matters.
    under_way: BTreeMap<CommandId, UnderWay>,
    /// Trims at the drive by their keys.
    punches: BTreeMap<u32, Span>,
    /// What the last flush has not covered, in the order of its end.
    journal: Vec<Sector>,
    ended: u64,
    dice: Dice,
    /// Changes of sectors that cuts and failed flushes have taken.
    lost: Arc<AtomicU64>,
}

enum UnderWay {
    Write {
        sectors: Vec<Sector>,
        is_durable: bool,
    },
    /// A flush covers writes that had ended before it.
    Flush { ended: u64 },
}

/// A sector before a write.
#[derive(Clone, Debug)]
struct Sector {
    offset: u64,
    old: Vec<u8>,
    /// The number of its write, by the order of their ends.
    ended: u64,
}

impl Sector {
    fn overlaps(&self, from: u64, to: u64) -> bool {
        self.offset < to && from < self.offset + self.old.len() as u64
    }
}

impl VolatileCache {
    pub fn over(
        inner: Box<dyn BackEnd>,
        image: &Path,
        (sector, seed): (u32, u64),
        lost: Arc<AtomicU64>,
    ) -> Self {
        let image = File::options().read(true).write(true).open(image);
        VolatileCache {
            inner,
            image: image.expect("an image"),
            sector: sector.into(),
            under_way: BTreeMap::new(),
            punches: BTreeMap::new(),
            journal: Vec::new(),
            ended: 0,
            dice: Dice::new(seed),
            lost,
        }
    }

    /// The sectors of an extent with their bytes.
    fn sectors(&self, extent: Extent) -> Vec<Sector> {
        let (mut at, end) = (extent.start().0 * self.sector, extent.end().0 * self.sector);
        let mut sectors = Vec::new();
        while at < end {
            let mut old = vec![0; self.sector as usize];
            self.image.read_exact_at(&mut old, at).expect("an image");
            sectors.push(Sector {
                offset: at,
                old,
                ended: 0,
            });
            at += self.sector;
        }
        sectors
    }

    fn has_ended(&mut self, what: UnderWay) {
        match what {
            UnderWay::Flush { ended } => self.journal.retain(|sector| sector.ended > ended),
            UnderWay::Write {
                sectors,
                is_durable,
            } => {
                self.ended += 1;
                for mut sector in sectors {
                    sector.ended = self.ended;
                    match is_durable {
                        // The medium has it, and whatever was there before cannot come back.
                        true => self.forget(sector.offset, sector.offset + sector.old.len() as u64),
                        false => self.journal.push(sector),
                    }
                }
            }
        }
    }

    fn forget(&mut self, from: u64, to: u64) {
        self.journal.retain(|sector| !sector.overlaps(from, to));
    }

    /// A flush has failed. What a command is changing stays in the cache.
    fn lose_beside(&mut self) {
        let mut changing: Vec<(u64, u64)> = Vec::new();
        for what in self.under_way.values() {
            if let UnderWay::Write { sectors, .. } = what {
                let ends = sectors.iter().map(|sector| {
                    let length = sector.old.len() as u64;
                    (sector.offset, sector.offset + length)
                });
                changing.extend(ends);
            }
        }
        let punches = self.punches.values();
        changing.extend(punches.map(|span| (span.offset, span.offset + span.length)));
        let is_changing =
            |sector: &mut Sector| changing.iter().any(|&(from, to)| sector.overlaps(from, to));
        let kept: Vec<Sector> = self.journal.extract_if(.., is_changing).collect();
        self.lose();
        self.journal = kept;
    }

    /// Each sector goes back to what it had before some of its writes, or keeps what it has.
    fn lose(&mut self) {
        let mut by_place: BTreeMap<u64, Vec<Sector>> = BTreeMap::new();
        for sector in std::mem::take(&mut self.journal) {
            by_place.entry(sector.offset).or_default().push(sector);
        }
        for (offset, writes) in by_place {
            let kept = self.dice.below(writes.len() as u64 + 1);
            let Some(first) = writes.get(kept as usize) else {
                continue;
            };
            self.image
                .write_all_at(&first.old, offset)
                .expect("an image");
            let lost = writes.len() as u64 - kept;
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }
}

impl BackEnd for VolatileCache {
    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        let what = match command.action {
            Action::Write { extent, durability } => Some(UnderWay::Write {
                sectors: self.sectors(extent),
                is_durable: durability == Durability::Durable,
            }),
            Action::Flush => Some(UnderWay::Flush { ended: self.ended }),
            _ => None,
        };
        if let Some(what) = what {
            self.under_way.insert(command.id, what);
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.start(now, command, memory, ring) };
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.inner.ring_ended(now, key, result, ring);
    }

    fn advance(&mut self, now: Instant, ring: &mut Ring) {
        self.inner.advance(now, ring);
    }

    fn is_busy(&self) -> bool {
        self.inner.is_busy()
    }

    fn depth(&self) -> u32 {
        self.inner.depth()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.inner.next_wakeup()
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        let ended = self.inner.poll(now)?;
        match (self.under_way.remove(&ended.id), &ended.result) {
            (Some(what), Ok(_)) => self.has_ended(what),
            // Drives drop what they could not write, and say so once.
            (Some(UnderWay::Flush { .. }), Err(_)) => self.lose_beside(),
            _ => (),
        }
        Some(ended)
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.punches.insert(key, span);
        self.inner.punch(key, what, span, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        let (key, result) = self.inner.poll_punched()?;
        if let Some(span) = self.punches.remove(&key) {
            self.forget(span.offset, span.offset + span.length);
        }
        Some((key, result))
    }

    fn runs(&mut self, span: Span) -> Vec<Run> {
        self.inner.runs(span)
    }

    fn power_cut(&mut self, now: Instant, ring: &mut Ring) -> Option<Lost> {
        let lost = self.inner.power_cut(now, ring)?;
        // Flushes at the drive end with the power.
        self.under_way
            .retain(|_, what| !matches!(what, UnderWay::Flush { .. }));
        self.lose();
        Some(lost)
    }
}
