//! A trace as a load: at its own times, or as fast as the drive completes its requests.
//!
//! ```text
//!   record --device?--> bytes --outward--> blocks --fit--> blocks of this drive --> arrival
//!             |                    |                |
//!          left out            counted           counted
//! ```
//!
//! A replay reads the trace once from beginning to end and holds one record. A scaled replay reads
//! it twice.

use std::num::NonZeroU64;
use std::path::PathBuf;

use block::{Class, Extent, Finished, Instant, Lba, Sectors};
use serde::Serialize;

use crate::load::{Arrival, Demand, Load, LoadError, LoadPart};
use crate::trace::{OnBad, Record, TraceError, TraceForm, TraceReader};

/// A trace and the parameters of its replay.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// The file.
    pub path: PathBuf,
    /// The format or the columns; by default detected from the file.
    pub form: TraceForm,
    /// Treatment of bad lines.
    pub on_bad: OnBad,
    /// The devices whose requests are replayed.
    pub devices: DeviceChoice,
    /// The times of requests.
    pub pace: ReplayPace,
    /// The mapping of the trace's addresses to those of the drive.
    pub fit: AddressFit,
}

/// The devices whose requests are replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The only device of the trace; a trace of several devices is refused.
    Only,
    /// The device of this name.
    Named(String),
    /// All devices, merged into one.
    All,
}

/// The times of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayPace {
    /// The trace's times from its first request on, multiplied by a factor.
    Timed {
        /// 1 is real time, 0.5 is twice as fast.
        factor: f64,
    },
    /// As fast as requests complete, with a constant number outstanding.
    Closed {
        /// Number of outstanding requests.
        depth: u32,
    },
}

/// The mapping of the trace's addresses to those of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFit {
    /// Unchanged; [`PastEnd`](crate::run::PastEnd) applies to blocks that are not on the drive.
    AsTheyAre,
    /// Modulo the capacity of the drive; a request across the end moves down to end there.
    Wrap,
    /// Scaled down in proportion if the trace extends past the end of the drive; lengths are
    /// unchanged.
    Scale,
}

/// The changes that a replay made to a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayCounts {
    /// Number of replayed requests.
    pub requests: u64,
    /// Number of requests that were extended to whole blocks of the drive.
    pub rounded: u64,
    /// Number of requests that [`AddressFit`] moved.
    pub moved: u64,
    /// Number of skipped requests of other devices.
    pub of_other_devices: u64,
}

/// An error of a replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace is malformed.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace has several devices, whose addresses are unrelated.
    #[error(
        "{place}: a request for device \"{second}\" after some for \"{first}\": expected one \
         device; choose with --device NAME, or take them as one with --device all"
    )]
    SeveralDevices {
        /// The source position.
        place: String,
        /// The first device.
        first: String,
        /// The second device.
        second: String,
    },
    /// The device is not in the trace.
    #[error("{file}: no request for device \"{device}\": expected one of {known}")]
    NoSuchDevice {
        /// The trace.
        file: String,
        /// The requested device.
        device: String,
        /// The devices of the trace.
        known: String,
    },
}

/// A trace during its replay.
pub struct Replay {
    plan: ReplayPlan,
    reader: TraceReader,
    block_bytes: NonZeroU64,
    capacity: u64,
    /// Number of blocks that the trace needs, if it is scaled down.
    scaled_from: Option<u64>,
    /// The time of the first request.
    origin: Option<Instant>,
    /// Number of initial requests of a closed replay that are still to come.
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
        let reader = TraceReader::open(&plan.path, plan.form.clone(), plan.on_bad)?;
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

    /// The changes so far.
    pub fn counts(&self) -> ReplayCounts {
        self.counts
    }

    /// The reader of the trace.
    pub fn reader(&self) -> &TraceReader {
        &self.reader
    }

    /// Number of blocks that the trace needs, if it was scaled down.
    pub fn scaled_from(&self) -> Option<u64> {
        self.scaled_from
    }

    /// The block after the last one that the trace touches, from a first pass over all of it.
    fn measured(&self) -> Result<Option<u64>, ReplayError> {
        let mut reader =
            TraceReader::open(&self.plan.path, self.plan.form.clone(), self.plan.on_bad)?;
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

    /// The blocks of the drive that represent a record's bytes.
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
            owner: record.owner,
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
