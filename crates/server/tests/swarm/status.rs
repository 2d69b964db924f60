//! What a service says of itself at its end, beside what its world has seen of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headtime_client::wire::StreamUpdate;
use server::status::{DriveStatus, Mode, Queue};

/// What was seen of the streams of a service.
#[derive(Clone, Default)]
pub struct Seen(Arc<[AtomicU64; 3]>);

/// What a drive and its host did while a service ran.
pub struct Facts {
    /// The commands that failed, if that is known.
    pub failed: Option<u64>,
    /// Whether no command may take longer than its worst case.
    pub is_punctual: bool,
    pub drive: Truth,
}

/// Whether a drive does what is believed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    AsBelieved,
    /// Its platter turns at another speed.
    Other,
    /// It does, but not always in time, or nothing is believed of it.
    Unknown,
}

impl Seen {
    /// A stream was granted or refused.
    pub fn attached(&self, is_granted: bool) {
        self.0[usize::from(!is_granted)].fetch_add(1, Ordering::Relaxed);
    }

    /// A client was told something of its stream.
    pub fn told(&self, update: &StreamUpdate) {
        if let StreamUpdate::Late { .. } = update {
            self.0[2].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What a service says agrees with what was seen.
    pub fn assert_agrees(&self, told: &DriveStatus, facts: &Facts) {
        let seen = [0, 1, 2].map(|place| self.0[place].load(Ordering::Relaxed));
        let streams = &told.streams;
        let totals = [
            streams.granted_total,
            streams.refused_total,
            streams.late_total,
        ];
        assert_eq!(totals, seen, "streams granted, refused, batches late");
        assert_eq!(told.queue, Queue::default(), "nothing waits");
        let errors = &told.errors;
        let failed = errors.reads_total + errors.writes_total + errors.flushes_total;
        if let Some(seen) = facts.failed {
            assert_eq!(failed, seen, "commands that failed: {errors:?}");
        }
        if facts.is_punctual {
            let overruns = (streams.overruns_total, streams.longest_overrun_us);
            assert_eq!(overruns, (0, 0), "commands that took too long, the longest");
        }
        let wrong = match facts.drive {
            Truth::AsBelieved => Some(Mode::Safe),
            Truth::Other => Some(Mode::Following),
            Truth::Unknown => None,
        };
        assert_ne!(Some(told.mode), wrong, "{}", told.mode_reason);
    }
}
