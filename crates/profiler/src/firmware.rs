//! What the drive's electronics cost and how they behave, from completion times.
//!
//! ```text
//!   given            b begins    b ends        done
//!     |<-- overhead -->|===========|<-- lag -->|          a block that is just caught
//!     |<------- threshold -------------------->|  less one block
//! ```
//!
//! What only shows as a sum is split like this. The *lag*, from a block's end under the head to the
//! end of its one-block read, holds bus, reselection and completion. Nothing tells a completion
//! from an overhead, if both directions have it: the shorter one of the completions of reads and
//! writes is taken to be zero, and all overheads hold it. The reselection of writes is in their
//! overhead, the bus's time of a write's block, where it does not show, is that of a read's.
//!
//! A [`Clock`] has the angles at which one-block reads *end*. A profile's spindle has those under
//! the heads: the clock's, the lag earlier. [`Firmware::spindle`] makes one of the other.

mod ahead;
mod chunk;
mod hits;
mod queue;
mod seek;
mod segments;
mod site;
mod turnaround;
mod turns;
mod writes;

use block::{Action, Duration, Switch};
use drive::firmware::{AfterPrevious, BufferRules, Bus, Overheads, QueueRules};
use drive::{Geometry, Spindle};

use crate::clock::Clock;
use crate::confidence::Confidence;
use crate::device::Writes;
use crate::prober::Prober;
pub use chunk::{Chunk, ENOUGH, FULL, MOSTLY, Rate, SLOW, STRETCH, commands};
use hits::Hits;
pub use segments::Found;
use site::Site;
use turnaround::Thresholds;

/// The electronics, as found.
#[derive(Clone, Debug, PartialEq)]
pub struct Firmware {
    /// What commands cost; see the module for how sums are split. Zero for writes if none were
    /// allowed.
    pub overheads: Overheads,
    /// The bus.
    pub bus: Bus,
    /// The buffer. The write watermark is only looked for where no writes are done early.
    pub buffer: BufferRules,
    /// Whether there are just so many segments.
    pub segments: Found,
    /// What is known of the write buffer, if writes are allowed.
    pub write_buffer: Option<WriteBuffer>,
    /// The queue.
    pub queue: QueueRules,
    /// Whether a seek without transfer moves the arm, if that was tried.
    pub seek_command: Option<Switch>,
    /// The chunk sizes of sequential reads that keep the full rate.
    pub chunk: Option<Chunk>,
    /// How far each part can be trusted.
    pub confidence: Parts,
}

/// When written data are on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBuffer {
    /// Whether writes that must be on the medium are.
    pub durable: Honesty,
    /// When a write that counts as done is destaged.
    pub destage: Destage,
}

/// Whether a write with FUA ends when its blocks are on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Honesty {
    /// It ends a constant time after its block has passed under the head.
    Honest,
    /// It ends whenever the buffer has it.
    Lies,
    /// Neither fits.
    Unknown,
}

/// When the write buffer is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destage {
    /// As soon as the arm is idle.
    Idle,
    /// Later.
    Later,
    /// There is nothing to destage.
    None,
}

/// The confidence of each part: fresh checks that came true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Overheads of reads from the medium.
    pub read_miss: Confidence,
    /// Overheads of writes to the medium.
    pub write_miss: Confidence,
    /// Answers of the buffer: overhead and bus.
    pub hits: Confidence,
    /// Number and size of the segments.
    pub segments: Confidence,
    /// What is read ahead.
    pub look_ahead: Confidence,
    /// Which writes are done early.
    pub write_back: Confidence,
    /// Whether reading begins anywhere on a track; `None` behind a bus that hides it.
    pub zero_latency_read: Option<Confidence>,
    /// The same for writing.
    pub zero_latency_write: Confidence,
    /// The order of the queue.
    pub queue: Confidence,
    /// The chunk sizes.
    pub chunk: Confidence,
}

impl Firmware {
    /// From a block's end under the head to the end of its one-block read.
    pub fn lag(&self) -> Duration {
        self.bus.read_block + self.overheads.read_reselect + self.overheads.read_completion
    }

    /// The spindle of a believed profile: what is under the heads, not what reads just end.
    pub fn spindle(&self, clock: &Clock) -> Spindle {
        let seen = clock.spindle();
        let at = clock.anchored_at();
        let turning = Spindle::from_period_ps(seen.period_ps());
        turning.with_phase(seen.angle_at(at + self.lag()) - turning.angle_at(at))
    }
}

/// Measures the electronics, on a drive whose spindle and geometry are known. What cannot be
/// found has no confidence. The switches of the drive are on afterwards.
pub async fn measure(prober: &Prober, geometry: &Geometry) {
    let Some(clock) = prober.findings(|findings| findings.clock) else {
        return;
    };
    let device = prober.device();
    let mut site = Site::new(prober.clone(), geometry.clone(), clock);
    let mut found = Findings::default();
    site.switch(Action::SetLookAhead(Switch::Off)).await;
    found.thresholds = turnaround::measure(&mut site).await;
    found.hits = hits::measure(&mut site).await;
    let mut buffer = BufferRules::default();
    let mut parts = Parts::default();
    let segments = segments::measure(&mut site, &mut buffer, &mut parts).await;
    hits::measure_bus(&mut site, &mut found.hits, &buffer, &mut parts).await;
    turns::measure(&mut site, found.hits.per_block, &mut buffer, &mut parts).await;
    site.switch(Action::SetLookAhead(Switch::On)).await;
    ahead::measure(&mut site, &mut buffer, &mut parts).await;
    let queue = queue::measure(&mut site, &mut parts).await;
    let chunk = chunk::measure(&mut site, &mut parts).await;
    let write_buffer = match device.writes {
        Writes::Forbidden => None,
        Writes::Allowed => {
            Some(writes::measure(&mut site, &mut found, &mut buffer, &mut parts).await)
        }
    };
    let (overheads, bus) = found.split(&mut buffer, &site);
    parts.read_miss = found.thresholds.reads;
    parts.write_miss = found.thresholds.writes;
    let firmware = Firmware {
        overheads,
        bus,
        buffer,
        segments,
        write_buffer,
        queue,
        seek_command: None,
        chunk,
        confidence: parts,
    };
    prober.findings(|findings| findings.firmware = Some(firmware));
}

/// Tries what needs nothing but the electronics that [`measure`] has found, and what they need not:
/// a seek without transfer, and whether written data go to the medium first.
pub async fn measure_rest(prober: &Prober, geometry: &Geometry) {
    let (clock, found) = prober.findings(|findings| (findings.clock, findings.firmware.clone()));
    let (Some(clock), Some(mut firmware)) = (clock, found) else {
        return;
    };
    let mut site = Site::new(prober.clone(), geometry.clone(), clock);
    firmware.seek_command = Some(seek::measure(&mut site).await);
    if firmware.write_buffer.is_some() {
        firmware.buffer.destage_first = writes::go_first(&mut site, &firmware.buffer).await;
    }
    prober.findings(|findings| findings.firmware = Some(firmware));
}

/// The sums that were found, in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Findings {
    thresholds: Thresholds,
    hits: Hits,
}

/// A length in nanoseconds; what noise has made negative is zero.
fn nanos(length: f64) -> Duration {
    Duration::from_nanos(length.max(0.0).round() as u64)
}

impl Findings {
    /// Splits the sums as the module says.
    fn split(&self, buffer: &mut BufferRules, site: &Site) -> (Overheads, Bus) {
        let Findings { thresholds, hits } = self;
        let bus_read = hits.per_block.max(0.0);
        let (reselect, watermark) = thresholds.overlap(bus_read, site.period());
        buffer.read_watermark = watermark;
        let lag = bus_read + reselect;
        let (bus_write, watermark) = match hits.write_per_block {
            Some(per_block) => (per_block.max(0.0), 0),
            None => thresholds.write_bus(bus_read),
        };
        buffer.write_watermark = watermark;
        let completion = thresholds.write_ends.map_or(0.0, |ends| ends + lag);
        // The shorter completion is zero.
        let shift = completion.min(0.0);
        let read = |sum: Option<f64>| nanos(sum.map_or(0.0, |sum| sum - lag + shift));
        let write = |sum: Option<f64>| nanos(sum.map_or(0.0, |sum| sum - lag - bus_write + shift));
        let early = |sum: f64| nanos(sum - bus_write - completion + shift);
        let mut overheads = Overheads {
            read_reselect: nanos(reselect),
            read_completion: nanos(-shift),
            write_completion: nanos(completion),
            ..Overheads::default()
        };
        overheads.read_miss.read = read(thresholds.read_after_read);
        overheads.read_miss.write =
            read(thresholds.read_after_write.or(thresholds.read_after_read));
        overheads.write_miss.read = write(thresholds.write_after_read);
        overheads.write_miss.write = write(thresholds.write_after_write);
        overheads.read_hit.read = read(hits.after_read);
        overheads.read_hit.write = read(hits.after_write.or(hits.after_read));
        // Where no write is done early, one that would be costs what all others do: a choice.
        overheads.write_hit = match hits.write_after_read {
            None => overheads.write_miss,
            Some(sum) => AfterPrevious {
                read: early(sum),
                write: early(hits.write_after_write.unwrap_or(sum)),
            },
        };
        let bus = Bus {
            read_block: nanos(bus_read),
            write_block: nanos(bus_write),
        };
        (overheads, bus)
    }
}
