//! The tables of the electronics: `[overhead]`, `[bus]`, `[buffer]`, `[queue]`, `[commands]`.

use block::{Duration, Switch};

use document::{DocumentError, Field, Section};

use super::{Provenance, millis};
use crate::firmware::{BufferRules, Bus, LookAhead, Overheads, QueueOrder, QueueRules, WriteBack};

/// The words for [`LookAhead`].
pub(super) const LOOK_AHEADS: [(&str, LookAhead); 5] = [
    ("none", LookAhead::None),
    ("segment", LookAhead::Segment),
    ("track", LookAhead::Track),
    ("cylinder", LookAhead::Cylinder),
    ("track-if-sequential", LookAhead::TrackIfSequential),
];

/// The words for [`WriteBack`].
pub(super) const WRITE_BACKS: [(&str, WriteBack); 3] = [
    ("none", WriteBack::None),
    ("append", WriteBack::Append),
    ("all", WriteBack::All),
];

/// The words for [`QueueOrder`].
pub(super) const QUEUE_ORDERS: [(&str, QueueOrder); 3] = [
    ("fcfs", QueueOrder::Fcfs),
    ("sptf", QueueOrder::Sptf),
    ("aged-sptf", QueueOrder::AgedSptf),
];

/// Where a time of a profile's electronics is.
type Time = fn(&mut Electronics) -> &mut Duration;

/// What the tables of the electronics say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Electronics {
    pub overheads: Overheads,
    pub bus: Bus,
    pub buffer: BufferRules,
}

/// The keys of `[overhead]`, and where their times go.
pub(super) const OVERHEADS: [(&str, Time); 12] = [
    ("read_hit_after_read_ms", |e| &mut e.overheads.read_hit.read),
    ("read_hit_after_write_ms", |e| {
        &mut e.overheads.read_hit.write
    }),
    ("read_miss_after_read_ms", |e| {
        &mut e.overheads.read_miss.read
    }),
    ("read_miss_after_write_ms", |e| {
        &mut e.overheads.read_miss.write
    }),
    ("write_hit_after_read_ms", |e| {
        &mut e.overheads.write_hit.read
    }),
    ("write_hit_after_write_ms", |e| {
        &mut e.overheads.write_hit.write
    }),
    ("write_miss_after_read_ms", |e| {
        &mut e.overheads.write_miss.read
    }),
    ("write_miss_after_write_ms", |e| {
        &mut e.overheads.write_miss.write
    }),
    ("read_completion_ms", |e| &mut e.overheads.read_completion),
    ("write_completion_ms", |e| &mut e.overheads.write_completion),
    ("read_reselect_ms", |e| &mut e.overheads.read_reselect),
    ("write_reselect_ms", |e| &mut e.overheads.write_reselect),
];

/// The keys of `[bus]`, and where their times go.
pub(super) const BUS: [(&str, Time); 2] = [
    ("read_block_ms", |e| &mut e.bus.read_block),
    ("write_block_ms", |e| &mut e.bus.write_block),
];

/// How a key of `[buffer]` is read.
type Rule = fn(&Field, &mut BufferRules) -> Result<(), DocumentError>;

/// The keys of `[buffer]`, in the order in which they are read.
pub(super) const BUFFER: [(&str, Rule); 13] = [
    ("segments", |field, rules| {
        rules.segments = field.integer(0..=MAX_SEGMENTS.into())? as u32;
        Ok(())
    }),
    ("segment_blocks", |field, rules| {
        rules.segment_blocks = field.u32(u32::from(rules.segments > 0))?;
        let (segments, blocks) = (u64::from(rules.segments), u64::from(rules.segment_blocks));
        if segments * blocks > MAX_BUFFER_BLOCKS {
            return Err(field.error(format!(
                "{segments} segments of {blocks} blocks: expected at most {MAX_BUFFER_BLOCKS} \
                 blocks together"
            )));
        }
        Ok(())
    }),
    ("write_segments", |field, rules| {
        rules.write_segments = field.integer(0..=rules.segments.into())? as u32;
        Ok(())
    }),
    ("read_written", |field, rules| {
        rules.read_written = field.boolean()?;
        Ok(())
    }),
    ("look_ahead", |field, rules| {
        rules.look_ahead = field.choice(&LOOK_AHEADS)?;
        Ok(())
    }),
    ("look_ahead_blocks", |field, rules| {
        rules.look_ahead_blocks = field.u32(0)?;
        Ok(())
    }),
    ("look_ahead_on_hit", |field, rules| {
        rules.look_ahead_on_hit = field.boolean()?;
        Ok(())
    }),
    ("read_on_arrival", |field, rules| {
        rules.read_on_arrival = field.boolean()?;
        Ok(())
    }),
    ("zero_latency_read", |field, rules| {
        rules.zero_latency_read = field.boolean()?;
        Ok(())
    }),
    ("zero_latency_write", |field, rules| {
        rules.zero_latency_write = field.boolean()?;
        Ok(())
    }),
    ("write_back", |field, rules| {
        rules.write_back = field.choice(&WRITE_BACKS)?;
        Ok(())
    }),
    ("read_watermark_permille", |field, rules| {
        rules.read_watermark = field.integer(0..=1000)? as u16;
        Ok(())
    }),
    ("write_watermark_permille", |field, rules| {
        rules.write_watermark = field.integer(0..=1000)? as u16;
        Ok(())
    }),
];

/// The keys of `[buffer]` that may be left out, from the rarer rules: their defaults are those of
/// most drives.
pub(super) const RARE: [(&str, Rule); 4] = [
    ("segment_per_write", |field, rules| {
        rules.segment_per_write = field.boolean()?;
        Ok(())
    }),
    ("destage_order", |field, rules| {
        rules.destage_order = field.choice(&QUEUE_ORDERS)?;
        Ok(())
    }),
    ("destage_first", |field, rules| {
        rules.destage_first = field.boolean()?;
        Ok(())
    }),
    ("writes_in_parts", |field, rules| {
        rules.writes_in_parts = field.boolean()?;
        Ok(())
    }),
];

/// At most how many segments: a buffer of single-block segments of the largest drives.
const MAX_SEGMENTS: u32 = 1 << 20;

/// At most how many blocks a buffer holds: 8 GiB of 512-byte blocks, thirty times the largest
/// buffers of 2020.
const MAX_BUFFER_BLOCKS: u64 = 1 << 24;

/// Reads `[overhead]`, `[bus]` and `[buffer]`, in which every key is needed but the rare ones.
pub(super) fn read(root: &Section) -> Result<Electronics, DocumentError> {
    let mut electronics = Electronics::default();
    for (table, times) in [("overhead", &OVERHEADS[..]), ("bus", &BUS[..])] {
        let field = root.need(table, &format!("a table [{table}]"))?;
        let keys: Vec<&str> = times
            .iter()
            .map(|(key, _)| *key)
            .chain(["origin"])
            .collect();
        let section = field.section(&keys)?;
        for (key, place) in times {
            *place(&mut electronics) = millis(&section.need(key, "milliseconds")?)?;
        }
    }
    let field = root.need("buffer", "a table [buffer]")?;
    let keys: Vec<&str> = BUFFER
        .iter()
        .chain(&RARE)
        .map(|(key, _)| *key)
        .chain(["origin"])
        .collect();
    let section = field.section(&keys)?;
    for (key, rule) in BUFFER {
        rule(
            &section.need(key, "a rule of the buffer")?,
            &mut electronics.buffer,
        )?;
    }
    for (key, rule) in RARE {
        if let Some(field) = section.get(key) {
            rule(&field, &mut electronics.buffer)?;
        }
    }
    Ok(electronics)
}

/// Overrides what a `[fitted]` table has of the same keys.
pub(super) fn fit(section: &Section, electronics: &mut Electronics) -> Result<(), DocumentError> {
    for (key, place) in OVERHEADS.iter().chain(&BUS) {
        if let Some(field) = section.get(key) {
            *place(electronics) = millis(&field)?;
        }
    }
    for (key, rule) in BUFFER.iter().chain(&RARE) {
        if let Some(field) = section.get(key) {
            rule(&field, &mut electronics.buffer)?;
        }
    }
    Ok(())
}

/// At most how many commands a drive holds: a hundred times SCSI's usual limit.
const MAX_DEPTH: i64 = 65_536;

/// Reads `[queue]`.
pub(super) fn read_queue(field: &Field) -> Result<QueueRules, DocumentError> {
    let section = field.section(&["origin", "depth", "order"])?;
    Ok(QueueRules {
        depth: section
            .need("depth", "a number of commands")?
            .integer(1..=MAX_DEPTH)? as u32,
        order: section
            .need("order", "the order of the queue")?
            .choice(&QUEUE_ORDERS)?,
    })
}

/// Reads `[commands]`. Without it a drive has them all, as those with a SCSI bus do; but of a
/// profiled one nobody has seen it.
pub(super) fn read_commands(
    root: &Section,
    provenance: Provenance,
) -> Result<Switch, DocumentError> {
    let Some(field) = root.get("commands") else {
        return Ok(match provenance {
            Provenance::Profiled => Switch::Off,
            _ => Switch::On,
        });
    };
    let section = field.section(&["origin", "seek"])?;
    Ok(match section.need("seek", "true or false")?.boolean()? {
        true => Switch::On,
        false => Switch::Off,
    })
}
