//! The tables of the electronics: `[overhead]`, `[bus]`, `[buffer]`, `[queue]`, `[scsi]`.

use block::Duration;

use super::document::{Field, Section};
use super::{ProfileError, millis};
use crate::firmware::{BufferRules, Bus, LookAhead, Overheads, QueueOrder, QueueRules, WriteBack};
use crate::scsi::{EarlyDisconnect, ScsiRules};

/// The words for [`LookAhead`].
const LOOK_AHEADS: [(&str, LookAhead); 5] = [
    ("none", LookAhead::None),
    ("segment", LookAhead::Segment),
    ("track", LookAhead::Track),
    ("cylinder", LookAhead::Cylinder),
    ("track-if-sequential", LookAhead::TrackIfSequential),
];

/// The words for [`WriteBack`].
const WRITE_BACKS: [(&str, WriteBack); 3] = [
    ("none", WriteBack::None),
    ("append", WriteBack::Append),
    ("all", WriteBack::All),
];

/// The words for [`QueueOrder`].
const QUEUE_ORDERS: [(&str, QueueOrder); 3] = [
    ("fcfs", QueueOrder::Fcfs),
    ("sptf", QueueOrder::Sptf),
    ("aged-sptf", QueueOrder::AgedSptf),
];

/// Where a number of [`Overheads`] is.
type Place = fn(&mut Overheads) -> &mut Duration;

/// The keys of `[overhead]`, and where their numbers go.
pub(super) const OVERHEADS: [(&str, Place); 11] = [
    ("read_hit_after_read_ms", |o| &mut o.read_hit.read),
    ("read_hit_after_write_ms", |o| &mut o.read_hit.write),
    ("read_miss_after_read_ms", |o| &mut o.read_miss.read),
    ("read_miss_after_write_ms", |o| &mut o.read_miss.write),
    ("write_hit_after_read_ms", |o| &mut o.write_hit.read),
    ("write_hit_after_write_ms", |o| &mut o.write_hit.write),
    ("write_miss_after_read_ms", |o| &mut o.write_miss.read),
    ("write_miss_after_write_ms", |o| &mut o.write_miss.write),
    ("read_completion_ms", |o| &mut o.read_completion),
    ("write_completion_ms", |o| &mut o.write_completion),
    ("reselect_ms", |o| &mut o.reselect),
];

/// Reads `[overhead]`.
pub(super) fn read_overheads(field: &Field) -> Result<Overheads, ProfileError> {
    let mut keys = vec!["origin"];
    keys.extend(OVERHEADS.map(|(key, _)| key));
    let section = field.section(&keys)?;
    let mut overheads = Overheads::default();
    for (key, place) in OVERHEADS {
        *place(&mut overheads) = millis(&section.need(key)?)?;
    }
    Ok(overheads)
}

/// Reads `[bus]`.
pub(super) fn read_bus(field: &Field) -> Result<Bus, ProfileError> {
    let section = field.section(&["origin", "read_block_ms", "write_block_ms"])?;
    Ok(Bus {
        read_block: millis(&section.need("read_block_ms")?)?,
        write_block: millis(&section.need("write_block_ms")?)?,
    })
}

/// At most how many segments: a buffer of single-block segments of the largest drives.
const MAX_SEGMENTS: u32 = 1 << 20;

/// At most how many blocks a buffer holds: 8 GiB of 512-byte blocks, thirty times the largest
/// buffers of 2020.
const MAX_BUFFER_BLOCKS: u64 = 1 << 24;

/// Reads `[buffer]`.
pub(super) fn read_buffer(field: &Field) -> Result<BufferRules, ProfileError> {
    let section = field.section(&[
        "origin",
        "segments",
        "segment_blocks",
        "write_segments",
        "read_written",
        "look_ahead",
        "look_ahead_blocks",
        "zero_latency_read",
        "zero_latency_write",
        "write_back",
        "read_watermark_permille",
    ])?;
    let segments = section.need("segments")?.integer(0..=MAX_SEGMENTS.into())? as u32;
    let blocks = section.need("segment_blocks")?;
    let segment_blocks = blocks.u32(u32::from(segments > 0))?;
    if u64::from(segments) * u64::from(segment_blocks) > MAX_BUFFER_BLOCKS {
        return Err(blocks.error(format!(
            "{segments} segments of {segment_blocks} blocks: expected at most \
             {MAX_BUFFER_BLOCKS} blocks together"
        )));
    }
    let watermark = section.need("read_watermark_permille")?.integer(0..=1000)?;
    Ok(BufferRules {
        segments,
        segment_blocks,
        write_segments: section
            .need("write_segments")?
            .integer(0..=segments.into())? as u32,
        read_written: section.need("read_written")?.boolean()?,
        look_ahead: section.need("look_ahead")?.choice(&LOOK_AHEADS)?,
        look_ahead_blocks: section.need("look_ahead_blocks")?.u32(0)?,
        zero_latency_read: section.need("zero_latency_read")?.boolean()?,
        zero_latency_write: section.need("zero_latency_write")?.boolean()?,
        write_back: section.need("write_back")?.choice(&WRITE_BACKS)?,
        read_watermark: watermark as u16,
        ..BufferRules::default()
    })
}

/// At most how many commands a drive holds: a hundred times SCSI's usual limit.
const MAX_DEPTH: i64 = 65_536;

/// Reads `[queue]`.
pub(super) fn read_queue(field: &Field) -> Result<QueueRules, ProfileError> {
    let section = field.section(&["origin", "depth", "order"])?;
    Ok(QueueRules {
        depth: section.need("depth")?.integer(1..=MAX_DEPTH)? as u32,
        order: section.need("order")?.choice(&QUEUE_ORDERS)?,
    })
}

/// Reads `[scsi]`.
pub(super) fn read_scsi(field: &Field) -> Result<ScsiRules, ProfileError> {
    let section = field.section(&[
        "origin",
        "hold_bus_read",
        "hold_bus_write",
        "never_disconnect",
        "separate_write_segment",
        "look_ahead_on_idle_hit",
        "read_passing_blocks",
        "stop_look_ahead_in_sector",
        "write_watermark_permille",
        "data_preparation_ms",
        "first_reselect_ms",
        "other_reselect_ms",
        "read_disconnect_after_read_ms",
        "read_disconnect_after_write_ms",
        "write_disconnect_ms",
        "minimum_seek_delay_ms",
        "early_disconnect",
    ])?;
    let flag = |key| section.need(key)?.boolean();
    let time = |key| millis(&section.need(key)?);
    let watermark = section
        .need("write_watermark_permille")?
        .integer(0..=1000)?;
    Ok(ScsiRules {
        hold_bus_read: flag("hold_bus_read")?,
        hold_bus_write: flag("hold_bus_write")?,
        never_disconnect: flag("never_disconnect")?,
        separate_write_segment: flag("separate_write_segment")?,
        look_ahead_on_idle_hit: flag("look_ahead_on_idle_hit")?,
        read_passing_blocks: flag("read_passing_blocks")?,
        stop_look_ahead_in_sector: flag("stop_look_ahead_in_sector")?,
        write_watermark: watermark as u16,
        data_preparation: time("data_preparation_ms")?,
        first_reselect: time("first_reselect_ms")?,
        other_reselect: time("other_reselect_ms")?,
        read_disconnect_after_read: time("read_disconnect_after_read_ms")?,
        read_disconnect_after_write: time("read_disconnect_after_write_ms")?,
        write_disconnect: time("write_disconnect_ms")?,
        minimum_seek_delay: time("minimum_seek_delay_ms")?,
        early_disconnect: match section.get("early_disconnect") {
            Some(field) => Some(read_early_disconnect(&field)?),
            None => None,
        },
    })
}

/// Reads `[scsi.early_disconnect]`.
fn read_early_disconnect(field: &Field) -> Result<EarlyDisconnect, ProfileError> {
    let section = field.section(&[
        "command_ms",
        "first_ms",
        "between_ms",
        "second_ms",
        "seek_delay_ms",
    ])?;
    let time = |section: &Section, key| millis(&section.need(key)?);
    Ok(EarlyDisconnect {
        command: time(&section, "command_ms")?,
        first: time(&section, "first_ms")?,
        between: time(&section, "between_ms")?,
        second: time(&section, "second_ms")?,
        seek_delay: time(&section, "seek_delay_ms")?,
    })
}
