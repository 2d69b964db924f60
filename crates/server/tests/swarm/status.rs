//! What a service says of itself at its end, beside what its world has seen of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::operation::Ask;
use headtime_client::wire::StreamUpdate;
use server::status::{DriveStatus, Flow, Mode, Queue, Traffic};

/// What was seen of the streams of a service.
#[derive(Clone, Default)]
pub struct Seen(Arc<[AtomicU64; 3]>);

/// Bytes of operations that a service has answered, and that nothing but requests can have read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    read: u64,
    written: u64,
    /// Zeroed and trimmed: written, or not.
    cleared: u64,
    /// Whether there were no others.
    pub are_all: bool,
}

impl Served {
    /// A service begins.
    pub fn nothing() -> Served {
        Served {
            read: 0,
            written: 0,
            cleared: 0,
            are_all: true,
        }
    }

    /// The same, if there were others unless all answers were `seen` and nobody asks for parts of sectors, of which the
    /// whole ones are read.
    pub fn among(self, seen: bool) -> Served {
        Served {
            are_all: self.are_all && seen,
            ..self
        }
    }

    /// An operation on so many bytes has ended well.
    pub fn answered(&mut self, ask: Ask, bytes: u64) {
        let sum = match ask {
            // Without a cache it is the drive's that is to have them.
            Ask::Read | Ask::Cache => &mut self.read,
            Ask::Write { .. } => &mut self.written,
            Ask::Zero { .. } | Ask::Trim { .. } => &mut self.cleared,
            Ask::Flush => return,
        };
        *sum += bytes;
    }

    /// The traffic that a service tells agrees with it.
    fn assert_agrees(&self, traffic: &[Traffic]) {
        let sum = |of: fn(&Traffic) -> Flow| {
            let flows = traffic.iter().map(of);
            flows.map(|flow| flow.bytes_total).sum::<u64>()
        };
        let (read, written) = (sum(|told| told.read), sum(|told| told.write));
        let is_less = read < self.read || written < self.written;
        assert!(!is_less, "{read} bytes read, {written} written: {self:?}");
        let most = self.written + self.cleared;
        let is_more = self.are_all && (read > self.read || written > most);
        assert!(!is_more, "{read} bytes read, {written} written: {self:?}");
    }
}

/// What a drive and its host did while a service ran.
pub struct Facts {
    /// The commands that failed, if that is known.
    pub failed: Option<u64>,
    /// Whether no command may take longer than its worst case.
    pub is_punctual: bool,
    /// The operations, if that is known.
    pub served: Option<Served>,
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
        if let Some(served) = &facts.served {
            served.assert_agrees(&told.traffic);
        }
        let wrong = match facts.drive {
            Truth::AsBelieved => Some(Mode::Safe),
            Truth::Other => Some(Mode::Following),
            Truth::Unknown => None,
        };
        assert_ne!(Some(told.mode), wrong, "{}", told.mode_reason);
    }
}
