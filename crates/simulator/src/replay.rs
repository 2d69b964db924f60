//! A trace as a load: at its own times, or as fast as the drive answers.
//!
//! ```text
//!   record --device?--> bytes --outward--> blocks --fit--> blocks of this drive --> arrival
//!             |                    |                |
//!          left out            counted           counted
//! ```
//!
//! A replay reads the trace once, from the beginning to the end, and holds one record; only a scaled
//! one reads it twice.

use std::num::NonZeroU64;
use std::path::PathBuf;

use block::{Class, Extent, Finished, Instant, Lba, Sectors};
use serde::Serialize;

use crate::load::{Arrival, Demand, Load, LoadError, LoadPart};
use crate::trace::{Format, OnBad, Record, TraceError, TraceReader};

/// Which trace, and how it is replayed.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// The file.
    pub path: PathBuf,
    /// Its format, if it is not to be told from the file.
    pub format: Option<&'static Format>,
    /// What becomes of bad lines.
    pub on_bad: OnBad,
    /// Whose requests.
    pub devices: DeviceChoice,
    /// When they come.
    pub pace: ReplayPace,
    /// How the addresses of the trace become those of the drive.
    pub fit: AddressFit,
}

/// Whose requests are replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The trace's only device; a trace of several is refused.
    Only,
    /// The device of this name.
    Named(String),
    /// All, as if they were one.
    All,
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayPace {
    /// At the trace's times from its first request on, multiplied by this.
    Timed {
        /// One is real time, a half is twice as fast.
        factor: f64,
    },
    /// As fast as they are answered, always so many at once.
    Closed {
        /// How many.
        depth: u32,
    },
}

/// How the addresses of the trace become those of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFit {
    /// They are; what is not on the drive is the run's business.
    AsTheyAre,
    /// Modulo the drive's capacity; a request over the end moves down to end there.
    Wrap,
    /// If the trace goes past the end of the drive, shrunk in proportion; lengths stay.
    Scale,
}

/// What a replay had to do to a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayCounts {
    /// Requests that were handed out.
    pub requests: u64,
    /// Those that were not whole blocks of the drive and were made larger.
    pub rounded: u64,
    /// Those that `AddressFit` put elsewhere.
    pub moved: u64,
    /// Requests of other devices, left out.
    pub of_other_devices: u64,
}

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It is no proper trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Addresses of several devices mean different places.
    #[error(
        "{place}: a request for device \"{second}\" after some for \"{first}\": expected one \
         device; choose with --device NAME, or take them as one with --device all"
    )]
    SeveralDevices {
        /// Where.
        place: String,
        /// The device before.
        first: String,
        /// The other one.
        second: String,
    },
    /// The device is not in the trace.
    #[error("{file}: no request for device \"{device}\": expected one of {known}")]
    NoSuchDevice {
        /// The trace.
        file: String,
        /// Whose requests were asked for.
        device: String,
        /// Those that there are.
        known: String,
    },
}

/// A trace under way.
pub struct Replay {
    plan: ReplayPlan,
    reader: TraceReader,
    block_bytes: NonZeroU64,
    capacity: u64,
    /// Blocks that the trace needs, if it is to be scaled and needs more than there are.
    scaled_from: Option<u64>,
    /// The time of the first request.
    origin: Option<Instant>,
    /// Requests that are still to come unasked, of a closed replay.
    unasked: u32,
    counts: ReplayCounts,
}

impl Replay {
    /// Opens the trace, for a drive of `capacity` blocks.
    ///
    /// # Errors
    /// If the trace cannot be read; if it is to be scaled, also if anything in it is bad.
    pub fn new(
        plan: ReplayPlan,
        block_bytes: NonZeroU64,
        capacity: u64,
    ) -> Result<Self, ReplayError> {
        let reader = TraceReader::open(&plan.path, plan.format, plan.on_bad)?;
        let unasked = match plan.pace {
            ReplayPace::Timed { .. } => 0,
            ReplayPace::Closed { depth } => depth,
        };
        let mut replay = Replay {
            reader,
            block_bytes,
            capacity,
            scaled_from: None,
            origin: None,
            unasked,
            counts: ReplayCounts::default(),
            plan,
        };
        if replay.plan.fit == AddressFit::Scale {
            replay.scaled_from = replay.measured()?.filter(|&needed| needed > capacity);
        }
        Ok(replay)
    }

    /// What was done so far.
    pub fn counts(&self) -> ReplayCounts {
        self.counts
    }

    /// The trace.
    pub fn reader(&self) -> &TraceReader {
        &self.reader
    }

    /// Blocks that the trace needs, if it was scaled to the drive.
    pub fn scaled_from(&self) -> Option<u64> {
        self.scaled_from
    }

    /// The block after the last one that the trace touches: a first reading of all of it.
    fn measured(&self) -> Result<Option<u64>, ReplayError> {
        let mut reader = TraceReader::open(&self.plan.path, self.plan.format, self.plan.on_bad)?;
        let mut end = None;
        while let Some(record) = reader.next() {
            let record = record?;
            if self.wants(&reader, &record)? {
                end = end.max(Some(record.bytes.blocks(self.block_bytes).end().0));
            }
        }
        Ok(end)
    }

    /// The next request of the chosen devices.
    fn record(&mut self) -> Result<Option<Record>, ReplayError> {
        loop {
            let Some(record) = self.reader.next() else {
                return self.ended().map(|()| None);
            };
            let record = record?;
            if self.wants(&self.reader, &record)? {
                self.counts.requests += 1;
                return Ok(Some(record));
            }
            self.counts.of_other_devices += 1;
        }
    }

    fn wants(&self, reader: &TraceReader, record: &Record) -> Result<bool, ReplayError> {
        let device = reader.devices().name(record.device);
        match &self.plan.devices {
            DeviceChoice::All => Ok(true),
            DeviceChoice::Named(name) => Ok(device == name),
            DeviceChoice::Only if record.device.place() == 0 => Ok(true),
            DeviceChoice::Only => Err(ReplayError::SeveralDevices {
                place: place(reader),
                first: reader.devices().names().next().unwrap_or("").to_owned(),
                second: device.to_owned(),
            }),
        }
    }

    fn ended(&self) -> Result<(), ReplayError> {
        match &self.plan.devices {
            DeviceChoice::Named(device) if self.counts.requests == 0 => {
                let names: Vec<&str> = self.reader.devices().names().collect();
                Err(ReplayError::NoSuchDevice {
                    file: self.reader.file().to_owned(),
                    device: device.clone(),
                    known: names.join(", "),
                })
            }
            _ => Ok(()),
        }
    }

    /// The blocks of the drive that stand for a record's bytes.
    fn fitted(&mut self, record: &Record) -> Extent {
        let asked = record.bytes.blocks(self.block_bytes);
        let block = self.block_bytes.get();
        if !(record.bytes.offset().is_multiple_of(block)
            && record.bytes.length().is_multiple_of(block))
        {
            self.counts.rounded += 1;
        }
        let (start, length) = (asked.start().0, asked.length().0);
        let Some(last_start) = self.capacity.checked_sub(length) else {
            return asked;
        };
        let fitted = match (self.plan.fit, self.scaled_from) {
            (AddressFit::AsTheyAre, _) | (AddressFit::Scale, None) => return asked,
            (AddressFit::Wrap, _) => start % self.capacity,
            (AddressFit::Scale, Some(needed)) => {
                (u128::from(start) * u128::from(self.capacity) / u128::from(needed)) as u64
            }
        };
        let fitted = fitted.min(last_start);
        self.counts.moved += u64::from(fitted != start);
        Extent::new(Lba(fitted), Sectors(length)).unwrap_or(asked)
    }

    fn arrival(&mut self, now: Option<Instant>) -> Result<Option<Arrival>, LoadError> {
        let Some(record) = self.record().map_err(LoadError::new)? else {
            return Ok(None);
        };
        let origin = *self.origin.get_or_insert(record.at);
        let at = match (now, self.plan.pace) {
            (Some(now), _) => now,
            (None, ReplayPace::Closed { .. }) => Instant::ZERO,
            (None, ReplayPace::Timed { factor }) => {
                let nanos = record.at.since(origin).as_nanos() as f64 * factor;
                Instant::from_nanos(nanos.round() as u64)
            }
        };
        let demand = Demand {
            direction: record.direction,
            extent: self.fitted(&record),
            class: Class::default(),
            part: LoadPart::ONLY,
        };
        Ok(Some(Arrival { at, demand }))
    }

    fn answered(&mut self, now: Instant) -> Result<Option<Arrival>, LoadError> {
        match self.plan.pace {
            ReplayPace::Timed { .. } => Ok(None),
            ReplayPace::Closed { .. } => self.arrival(Some(now)),
        }
    }
}

impl Load for Replay {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        match self.plan.pace {
            ReplayPace::Timed { .. } => self.arrival(None),
            ReplayPace::Closed { .. } if self.unasked == 0 => Ok(None),
            ReplayPace::Closed { .. } => {
                self.unasked -= 1;
                self.arrival(None)
            }
        }
    }

    fn on_finished(
        &mut self,
        now: Instant,
        _: LoadPart,
        _: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        self.answered(now)
    }

    fn on_skipped(&mut self, now: Instant, _: &Arrival) -> Result<Option<Arrival>, LoadError> {
        self.answered(now)
    }

    fn place(&self) -> Option<String> {
        Some(place(&self.reader))
    }
}

fn place(reader: &TraceReader) -> String {
    format!("{}:{}", reader.file(), reader.line())
}

#[cfg(test)]
mod tests;
