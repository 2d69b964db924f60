//! Guaranteed streams: who has them, and the bytes that are kept for them.
//!
//! ```text
//!   control socket --attach, position--> engine: what is to be read or written by when
//!   front end ------ reads, writes ----> memory of the stream, or as always   (`serving`)
//!   engine --------- transfers --------> back end, into and out of that memory (`moving`)
//!   flushes -------- copies of what is not written yet                         (`copies`)
//! ```
//!
//! **Nothing is ever stale.** What is in a stream's memory is changed by every write through any
//! door before that is answered; what was on its way from the drive meanwhile is left out; and what
//! a recording has in memory is written to the drive before anybody reads it there, or is told that
//! a flush has ended.

use std::time;

use block::{Extent, Terms};
use engine::streams::StreamEvent;
use headtime_client::wire::{self, Event, Mode};
use stream::LocationMap;
use stream::admission::Promises;
use stream::location::Change;
use stream::playout::Standing;
use stream::streams::{Answer, Notice, StreamId};

use super::Volumes;
use super::exports::Exports;
use crate::disk::Disk;
use crate::status;

mod copies;
mod granting;
mod kept;
mod moving;
mod preferring;
mod serving;
mod teller;

use copies::Copy;
use kept::Kept;
use moving::StreamCommand;
use preferring::Preferred;
pub(super) use serving::Meeting;
use serving::Waiting;
pub use teller::Teller;

/// What streams may take up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of all buffers together.
    pub memory: u64,
    /// How long a batch should last, if the client has not said how much memory it may take: in real
    /// time.
    pub batch: time::Duration,
    /// The unit of buffers, as the engine knows it.
    pub page: u64,
    /// How late the host may notice anything, in real time.
    pub latency: time::Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            // Choices: 64 streams of 4 MB; batches of a second leave the disk to others for long
            // stretches, and are what ABISS' figures have; what Linux needs to wake somebody up on
            // a busy machine.
            memory: 256 << 20,
            batch: time::Duration::from_secs(1),
            page: 4096,
            latency: time::Duration::from_millis(10),
        }
    }
}

/// A stream that is asked for.
pub struct StreamRequest {
    /// What it is called everywhere; never used twice.
    pub stream: u64,
    /// Whose it is.
    pub user: u32,
    /// What is asked for.
    pub attach: wire::Attach,
    /// Where it is told what happens.
    pub teller: Teller,
}

/// All streams of a loop.
#[derive(Default)]
pub(crate) struct Streams {
    settings: Settings,
    table: Vec<Entry>,
    /// Files that have a priority and no guarantee.
    preferred: Vec<Preferred>,
    /// Their commands at the back end.
    in_flight: Vec<StreamCommand>,
    /// Copies that wait for room at the engine.
    copies: Vec<Copy>,
    /// Copies that the engine has.
    copying: usize,
    /// Operations that are to be served as all others, and wait for room.
    again: Vec<usize>,
    /// What was acknowledged and could not be written: the next flush says so.
    lost: Vec<Extent>,
    totals: Totals,
}

/// What was counted since the loop began.
#[derive(Default)]
struct Totals {
    granted: u64,
    refused: u64,
    /// Batches that came too late.
    late: u64,
    /// Guarantees that lapsed.
    lapsed: u64,
}

/// A stream.
struct Entry {
    number: u64,
    id: StreamId,
    export: usize,
    teller: Teller,
    terms: Terms,
    user: u32,
    kept: Kept,
    standing: Standing,
    /// Reads and writes that the engine has not answered.
    waiting: Vec<Waiting>,
    /// Of a recording: before this byte a flush has written what is in memory.
    copied: u64,
    /// Of a recording: the byte after what it has written last, and how often it went on elsewhere.
    written: u64,
    leaps: u64,
    from_memory: u64,
    waited: u64,
    late: u64,
    lapsed: u64,
}

impl Entry {
    fn records(&self) -> bool {
        self.terms.mode != Mode::Play
    }

    fn tell(&self, event: Event) {
        self.teller.tell(self.number, event);
    }
}

impl Streams {
    /// Limits the memory and the batches of streams that are asked for from now on.
    pub(crate) fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    fn place(&self, number: u64) -> Option<usize> {
        self.table.iter().position(|entry| entry.number == number)
    }

    fn place_of(&self, id: StreamId) -> Option<usize> {
        self.table.iter().position(|entry| entry.id == id)
    }

    /// Whether an operation was not served by a stream, and waits for room to be served as all others.
    pub(super) fn is_left_to_others(&self, key: usize) -> bool {
        self.again.contains(&key)
    }

    /// Whether there is nothing that has to end. Copies outlive the streams that they are of.
    pub(super) fn is_empty(&self) -> bool {
        let copies = self.copies.len() + self.copying;
        self.table.is_empty() && copies == 0 && self.again.is_empty()
    }

    /// Whether a stream is of an export.
    pub(super) fn uses(&self, export: usize) -> bool {
        let mut files = self.preferred.iter();
        let mut streams = self.table.iter();
        files.any(|file| file.export == export) || streams.any(|entry| entry.export == export)
    }

    /// A stream's file has grown, or lies elsewhere.
    fn refresh(
        &mut self,
        disk: &mut Disk,
        exports: &Exports,
        refresh: &wire::Refresh,
    ) -> Result<wire::Change, wire::Refused> {
        if let Some(done) = self.refresh_preferred(exports, refresh) {
            return done;
        }
        let place = self.place(refresh.stream);
        let place = place.ok_or_else(|| refused(format!("no stream {}", refresh.stream)))?;
        let (id, export) = (self.table[place].id, self.table[place].export);
        let map = exports.map(export, &refresh.places).map_err(refused)?;
        let changed = disk.engine.refresh(disk.now, id, map.clone());
        let change = changed.map_err(|error| refused(error.to_string()))?;
        self.relocate(place, &map, change);
        Ok(match change {
            Change::Same => wire::Change::Same,
            Change::Grown => wire::Change::Grown,
            Change::Shrunk => wire::Change::Shrunk,
            Change::Moved(at) => wire::Change::Moved(at),
            Change::Punched(at) => wire::Change::Punched(at),
        })
    }

    fn close(&mut self, disk: &mut Disk, number: u64) {
        self.forget_preferred(disk, number);
        if let Some(place) = self.place(number) {
            // One that is being closed is no matter.
            let _ = disk.engine.detach(disk.now, self.table[place].id);
        }
    }

    fn relocate(&mut self, place: usize, map: &LocationMap, change: Change) {
        let entry = &mut self.table[place];
        let kept = match change {
            Change::Same => return,
            Change::Grown => u64::MAX,
            Change::Shrunk => map.length(),
            Change::Moved(at) | Change::Punched(at) => at,
        };
        match entry.records() {
            // What is not written yet is written where the file is now.
            true => {
                entry.kept.moved(map, u64::MAX);
                entry.copied = entry.copied.min(kept);
            }
            false => {
                entry.kept.moved(map, kept);
                let id = entry.id;
                self.supersede_from(id, kept);
            }
        }
    }

    /// All streams, for those who look. The drive's name is added by who asks.
    pub(crate) fn listed(&self, disk: &Disk) -> Vec<wire::Listed> {
        let files = self.preferred.iter().map(Preferred::listed);
        let each = self.table.iter();
        let each = each.map(|entry| {
            let (from, to) = disk
                .engine
                .guarantees()
                .window(entry.id)
                .unwrap_or_default();
            wire::Listed {
                stream: entry.number,
                drive: String::new(),
                user: entry.user,
                terms: Terms {
                    memory: Some(entry.kept.bytes()),
                    ..entry.terms.clone()
                },
                standing: match entry.standing {
                    Standing::Filling => wire::Standing::Filling,
                    Standing::Serving => wire::Standing::Serving,
                    Standing::Behind => wire::Standing::Behind,
                },
                from,
                to,
                from_memory_total: entry.from_memory,
                waited_total: entry.waited,
                late_total: entry.late,
                lapsed_total: entry.lapsed,
            }
        });
        each.chain(files).collect()
    }

    /// All of them in a few numbers.
    pub(crate) fn summary(&self, disk: &Disk) -> status::Streams {
        let Streams { table, totals, .. } = self;
        status::Streams {
            now: table.len() as u64,
            memory_bytes: table.iter().map(|entry| entry.kept.bytes()).sum(),
            granted_total: totals.granted,
            refused_total: totals.refused,
            late_total: totals.late,
            lapsed_total: totals.lapsed,
            strained: disk.engine.guarantees().promises() == Some(Promises::Strained),
        }
    }

    fn notice(&mut self, disk: &Disk, id: StreamId, notice: Notice) {
        let Some(place) = self.place_of(id) else {
            return;
        };
        let scale = disk.clock.scale();
        let unguaranteed = match &notice {
            Notice::Unguaranteed(refusal) => Some(granting::told(disk, refusal)),
            _ => None,
        };
        let entry = &mut self.table[place];
        match notice {
            Notice::Stands(standing) => {
                let before = std::mem::replace(&mut entry.standing, standing);
                match standing {
                    Standing::Serving => entry.tell(Event::Serving),
                    Standing::Behind => entry.tell(Event::Behind),
                    Standing::Filling if before == Standing::Filling => (),
                    Standing::Filling => {
                        entry.lapsed += 1;
                        self.totals.lapsed += 1;
                        entry.tell(Event::Lapsed);
                    }
                }
            }
            Notice::Late(late) => {
                entry.late += 1;
                self.totals.late += 1;
                let us = scale.real(late).as_micros() as u64;
                entry.tell(Event::Late { us });
            }
            Notice::WriteFailed { from, to } => {
                entry.tell(Event::WriteFailed { from, to });
                let block = disk.block();
                let lost = entry.kept.places_of(from / block, to / block);
                self.lost.extend(lost);
            }
            Notice::Unguaranteed(_) => {
                if let Some(refused) = unguaranteed {
                    entry.tell(Event::Unguaranteed(refused));
                }
            }
            Notice::Closed => {
                self.table.remove(place);
            }
        }
    }
}

impl Volumes {
    /// A stream's playout point has moved. A client whose stream is gone was told so.
    pub(crate) fn position(&mut self, disk: &mut Disk, position: wire::Position) {
        if let Some(place) = self.streams.place(position.stream) {
            let id = self.streams.table[place].id;
            // A stream that is being closed takes no more of them.
            let _ = disk.engine.position(disk.now, id, position.offset);
            self.hear_streams(disk);
        }
    }

    /// A stream's file has grown, or lies elsewhere.
    ///
    /// # Errors
    /// If there is no such stream, or the places are not in its volume.
    pub(crate) fn refresh(
        &mut self,
        disk: &mut Disk,
        refresh: &wire::Refresh,
    ) -> Result<wire::Change, wire::Refused> {
        let change = self.streams.refresh(disk, &self.exports, refresh)?;
        self.hear_streams(disk);
        Ok(change)
    }

    /// A stream is over, or its client has gone. What a recording has in memory is still written.
    pub(crate) fn close_stream(&mut self, disk: &mut Disk, number: u64) {
        self.streams.close(disk, number);
        self.hear_streams(disk);
    }

    /// Ends all streams, and tells their clients why.
    pub(crate) fn end_streams(&mut self, disk: &mut Disk, reason: &str) {
        let files = std::mem::take(&mut self.streams.preferred);
        for file in files {
            let reason = reason.to_owned();
            file.teller.tell(file.number, Event::Ended { reason });
        }
        let entries = self.streams.table.iter();
        let numbers: Vec<u64> = entries.map(|entry| entry.number).collect();
        for number in numbers {
            self.end_stream(disk, number, reason);
        }
    }

    fn end_stream(&mut self, disk: &mut Disk, number: u64, reason: &str) {
        if let Some(place) = self.streams.place(number) {
            self.streams.table[place].tell(Event::Ended {
                reason: reason.to_owned(),
            });
            self.close_stream(disk, number);
        }
    }

    /// Does what the engine says of streams, before it gives another command. The answer is whether it
    /// says anything.
    pub(crate) fn hear_streams(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        self.streams.keep_written(disk, &self.pending);
        while let Some(event) = disk.engine.poll_stream() {
            is_any = true;
            match event {
                StreamEvent::Moved { .. } => (),
                StreamEvent::Answer(Answer::Access {
                    stream,
                    access,
                    served,
                }) => self.access_answered(disk, stream, access, served),
                StreamEvent::Answer(Answer::Notice { stream, notice }) => {
                    self.streams.notice(disk, stream, notice);
                }
            }
        }
        is_any
    }
}

fn refused(reason: impl Into<String>) -> wire::Refused {
    wire::Refused {
        reason: reason.into(),
        ..wire::Refused::default()
    }
}
