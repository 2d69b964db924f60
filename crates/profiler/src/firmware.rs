//! Costs and behaviour of the drive's electronics, from completion times.
//!
//! ```text
//!   given            b begins    b ends        done
//!     |<-- overhead -->|===========|<-- lag -->|          a block that is just caught
//!     |<------- threshold -------------------->|  less one block
//! ```
//!
//! Some quantities show only as sums, which are split as follows. The *lag*, from the end of a
//! block under the head to the end of its one-block read, contains bus, reselection and completion.
//! A completion common to both directions cannot be distinguished from an overhead: the shorter of
//! the two completions is set to zero, and all overheads contain it. The reselection of writes is
//! part of their overhead. The bus time of a written block, where it does not show, is that of a
//! read.
//!
//! A [`PlatterClock`](crate::clock::PlatterClock) has the angles at which one-block reads *end*. A
//! profile's spindle has those under the heads, earlier by the lag. [`Firmware::spindle`] converts
//! one to the other.

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
use drive::Geometry;
use drive::firmware::{AfterPrevious, BufferRules, Bus, Overheads};

use crate::belief::defaults;
use crate::device::{Offers, WritePermission};
use crate::findings::{CountBound, Firmware, FirmwareConfidence};
use crate::prober::Prober;
pub use chunk::{ENOUGH, FULL, MOSTLY, SLOW, STRETCH, commands};
use hits::Hits;
use site::TestSite;
use turnaround::Thresholds;

/// Measures the electronics of a drive with known spindle and geometry. Parts that cannot be found
/// have no confidence. All switches of the drive are on afterwards.
pub async fn measure(prober: &Prober, geometry: &Geometry) {
    let Some(clock) = prober.findings(|findings| findings.clock) else {
        return;
    };
    let device = prober.device();
    let mut site = TestSite::new(prober.clone(), geometry.clone(), clock);
    let mut found = Sums::default();
    site.switch(Action::SetLookAhead(Switch::Off)).await;
    // Without cache control the buffer answers some of these tests. The arm's measurement, where there
    // is one, has the same sum from fresh tracks.
    let thresholds = Thresholds::of_arm(prober).filter(|_| device.offers == Offers::Nothing);
    found.thresholds = match thresholds {
        Some(thresholds) => thresholds,
        None => turnaround::measure(&mut site).await,
    };
    found.hits = hits::measure(&mut site).await;
    let mut buffer = BufferRules::default();
    let mut parts = FirmwareConfidence::default();
    let segments = segments::measure(&mut site, &mut buffer, &mut parts).await;
    hits::measure_bus(&mut site, &mut found.hits, &buffer, &mut parts).await;
    keep_times(prober, &found, (&buffer, segments), (&site, parts));
    turns::measure(&mut site, found.hits.per_block, &mut buffer, &mut parts).await;
    site.switch(Action::SetLookAhead(Switch::On)).await;
    ahead::measure(&mut site, &mut buffer, &mut parts).await;
    let queue = queue::measure(&mut site, &mut parts).await;
    let chunk = chunk::measure(&mut site, &mut parts).await;
    let write_buffer = match device.writes {
        WritePermission::Forbidden => None,
        WritePermission::Allowed => {
            Some(writes::measure(&mut site, &mut found, &mut buffer, &mut parts).await)
        }
    };
    let (overheads, bus) = found.split(&mut buffer, &site);
    parts.read_miss = found.thresholds.reads;
    parts.write_miss = found.thresholds.writes;
    let firmware = Firmware {
        overheads,
        of_arm: of_arm(prober),
        bus,
        buffer,
        segments,
        write_buffer,
        queue,
        seek_command: None,
        chunk,
        confidence: parts,
        is_whole: true,
    };
    prober.findings(|findings| findings.firmware = Some(firmware));
}

/// The time between blocks of one track that the arm's measurement has found, by reads alone.
fn of_arm(prober: &Prober) -> Option<Duration> {
    let overhead = prober.findings(|found| Some(found.arm.as_ref()?.overhead));
    overhead.filter(|_| prober.device().offers == Offers::Nothing)
}

/// Keeps what predicts the head, in case that the time for the rest is over: a profile without it is not usable.
fn keep_times(
    prober: &Prober,
    found: &Sums,
    (buffer, segments): (&BufferRules, CountBound),
    (site, mut parts): (&TestSite, FirmwareConfidence),
) {
    let mut buffer = *buffer;
    let (overheads, bus) = found.split(&mut buffer, site);
    parts.read_miss = found.thresholds.reads;
    parts.write_miss = found.thresholds.writes;
    let firmware = Firmware {
        overheads,
        of_arm: of_arm(prober),
        bus,
        buffer,
        segments,
        write_buffer: None,
        queue: defaults::queue(prober.device().depth),
        seek_command: None,
        chunk: None,
        confidence: parts,
        is_whole: false,
    };
    prober.findings(|findings| {
        let before = findings.firmware.as_ref();
        if before.is_none_or(|before| !before.is_whole) {
            findings.firmware = Some(firmware);
        }
    });
}

/// Tests features that build on [`measure`]: a seek without transfer, and whether written data go
/// to the medium first.
pub async fn measure_rest(prober: &Prober, geometry: &Geometry) {
    let (clock, found) = prober.findings(|findings| (findings.clock, findings.firmware.clone()));
    let (Some(clock), Some(mut firmware)) = (clock, found) else {
        return;
    };
    let mut site = TestSite::new(prober.clone(), geometry.clone(), clock);
    firmware.seek_command = Some(seek::measure(&mut site).await);
    if firmware.write_buffer.is_some() {
        firmware.buffer.destage_first = writes::go_first(&mut site, &firmware.buffer).await;
    }
    prober.findings(|findings| findings.firmware = Some(firmware));
}

/// The measured sums, in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Sums {
    thresholds: Thresholds,
    hits: Hits,
}

/// A length in nanoseconds; negative values, caused by noise, become zero.
fn nanos(length: f64) -> Duration {
    Duration::from_nanos(length.max(0.0).round() as u64)
}

impl Sums {
    /// Splits the sums as the module describes.
    fn split(&self, buffer: &mut BufferRules, site: &TestSite) -> (Overheads, Bus) {
        let Sums { thresholds, hits } = self;
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
