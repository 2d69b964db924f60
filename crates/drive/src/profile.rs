//! The profile of a drive: the truth inside a `VirtualDrive`, or a belief.
//!
//! A profile is a TOML file. The key `origin` of every table states the source of its numbers:
//!
//! | table | contents |
//! |---|---|
//! | (top) | name, model, year, provenance, block sizes, capacity |
//! | `[spindle]` | revolutions per minute |
//! | `[seek]` | the arm: points or a formula, head switch, write settle |
//! | `[layout]` | the positions of blocks: `kind = "zoned"` or `"indexed"` |
//! | `[overhead]`, `[bus]`, `[buffer]`, `[queue]` | the electronics |
//! | `[commands]` | the optional commands that the drive has |
//! | `[chunks]` | the sizes of commands at which sequential reads keep the full rate |
//! | `[confidence]` | the confidence of each part, if it was found from timings |
//! | `[fitted]` | constants that were fitted to measured traces; [`Profile::published`] omits them |
//!
//! A drive of two actuators that were profiled separately has two tables `[[range]]` instead, each with all
//! of these.

mod arm;
mod chunks;
pub mod confidence;
mod electronics;
mod fitted;
mod layout;
mod ranges;
mod share;
mod write;

pub use write::LayoutDescription;

use std::sync::Arc;

use block::{Duration, Extent, Sectors, Switch};
use document::{Document, DocumentError, Field, Section};

use crate::angle::Spindle;
use crate::firmware::{BufferRules, Bus, LookAhead, Overheads, QueueRules, WriteBack};
use crate::geometry::Geometry;
use crate::seek::{SeekCurve, SeekTable};
pub use chunks::Chunks;
use confidence::{Certainty, Confidence};

/// The source of a profile's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provenance {
    /// Extracted from a real drive of this model.
    Measured,
    /// Found by Headtime's profiler from block numbers and completion times.
    Profiled,
    /// Taken from data sheets and a paper's tables; gaps filled with typical values.
    Approximate,
    /// Extrapolated from published measurements of similar drives.
    Extrapolated,
    /// Invented for tests of the software.
    Invented,
}

impl Provenance {
    /// The names in profile files.
    const NAMES: [(&'static str, Provenance); 5] = [
        ("measured", Provenance::Measured),
        ("profiled", Provenance::Profiled),
        ("approximate", Provenance::Approximate),
        ("extrapolated", Provenance::Extrapolated),
        ("invented", Provenance::Invented),
    ];

    /// The name in profile files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Provenance::Measured => "measured",
            Provenance::Profiled => "profiled",
            Provenance::Approximate => "approximate",
            Provenance::Extrapolated => "extrapolated",
            Provenance::Invented => "invented",
        }
    }
}

/// The source of the numbers of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOrigin {
    /// The table; empty for the top of the file.
    pub table: String,
    /// The text of its `origin`.
    pub text: String,
}

/// The profile of a drive.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Vendor and model in kebab case.
    pub name: String,
    /// Vendor and model as on the label.
    pub model: String,
    /// The year of its introduction; `None` if unknown, because timings do not reveal it.
    pub year: Option<u16>,
    /// The source of its numbers.
    pub provenance: Provenance,
    /// The sources of each table.
    pub origins: Vec<TableOrigin>,
    /// The directory of shared measurements of this drive, if there is one.
    pub source: Option<String>,
    /// Bytes of a logical block: 512 or 4096.
    pub block_bytes: u32,
    /// Bytes of a sector of the medium: 512, or 4096 behind 512-byte blocks (512e) or not (4Kn).
    pub physical_block_bytes: u32,
    /// The number of actuators that serve equal shares of the blocks independently: 1 or 2.
    pub actuators: u8,
    /// The rotation.
    pub spindle: Spindle,
    /// The seek times.
    pub seek: SeekCurve,
    /// The standard deviation of a seek time by distance, if it was measured.
    pub seek_deviation: Option<SeekTable>,
    /// The switch to another surface of the same cylinder; a lower bound of any repositioning.
    pub head_switch: Duration,
    /// The addition to a write's positioning if arm or head moved, in nanoseconds. It is negative
    /// on drives that settle faster for writes than their seek table says.
    pub write_settle_nanos: i64,
    /// The positions of blocks.
    pub geometry: Arc<Geometry>,
    /// The overheads of the electronics.
    pub overheads: Overheads,
    /// The buffer.
    pub buffer: BufferRules,
    /// The host bus.
    pub bus: Bus,
    /// The drive's own queue.
    pub queue: QueueRules,
    /// Whether the drive has a seek without transfer (SCSI's SEEK). Without it,
    /// [`block::Action::Seek`] ends at once and moves nothing.
    pub seek_command: Switch,
    /// The sizes of commands at which sequential reads keep the full rate, if they were measured.
    pub chunks: Option<Chunks>,
    /// The confidence of each part, if the profile states it.
    pub confidence: Option<Confidence>,
    /// The profile without fitted constants, if it has some.
    unfitted: Option<Arc<Profile>>,
    /// The profiles of two actuators, if they were described separately.
    arms: Option<Arc<[Profile; 2]>>,
}

impl Profile {
    /// Parses a profile; `file` names the text in errors.
    ///
    /// # Errors
    /// The first mistake, with its line and key.
    pub fn parse(text: &str, file: &str) -> Result<Self, DocumentError> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        if root.get("range").is_some() {
            return ranges::read(&root);
        }
        read_profile(&root)
    }

    /// The profile without constants that were fitted to measurements.
    pub fn published(&self) -> Profile {
        match &self.unfitted {
            Some(unfitted) => Profile::clone(unfitted),
            None => self.clone(),
        }
    }

    /// Whether some of its numbers were fitted to measurements.
    pub fn is_fitted(&self) -> bool {
        self.unfitted.is_some()
    }

    /// The profile after the host has switched look-ahead and write cache. `Off` removes a feature;
    /// `On` keeps the profile's.
    pub fn switched(&self, look_ahead: Switch, write_cache: Switch) -> Profile {
        let mut switched = self.clone();
        if look_ahead == Switch::Off {
            switched.buffer.look_ahead = LookAhead::None;
        }
        if write_cache == Switch::Off {
            switched.buffer.write_back = WriteBack::None;
        }
        let unfitted = self.unfitted.as_ref();
        switched.unfitted = unfitted.map(|drive| Arc::new(drive.switched(look_ahead, write_cache)));
        let arms = self.arms.as_deref();
        let arms = arms.map(|arms| {
            arms.each_ref()
                .map(|arm| arm.switched(look_ahead, write_cache))
        });
        switched.arms = arms.map(Arc::new);
        switched
    }

    /// Whether the positions of all blocks of `extent` were measured.
    #[inline]
    pub fn certainty(&self, extent: Extent) -> Certainty {
        let confidence = self.confidence.as_ref();
        confidence.map_or(Certainty::Known, |known| known.certainty(extent))
    }

    /// The capacity in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        let Sectors(blocks) = self.geometry.sectors();
        blocks * u64::from(self.block_bytes)
    }

    /// The speed in revolutions per minute.
    pub fn rpm(&self) -> f64 {
        60e12 / self.spindle.period_ps() as f64
    }
}

/// The keys at the top of a file.
const TOP: [&str; 21] = [
    "name",
    "model",
    "year",
    "provenance",
    "origin",
    "source",
    "block_bytes",
    "physical_block_bytes",
    "blocks",
    "actuators",
    "spindle",
    "seek",
    "layout",
    "overhead",
    "bus",
    "buffer",
    "queue",
    "commands",
    "chunks",
    "confidence",
    "fitted",
];

/// The tables that state their origin.
const TABLES: [&str; 10] = [
    "spindle",
    "seek",
    "layout",
    "overhead",
    "bus",
    "buffer",
    "queue",
    "commands",
    "chunks",
    "confidence",
];

/// A profile of one file, or of one range.
fn read_profile(root: &Section) -> Result<Profile, DocumentError> {
    root.only(&TOP)?;
    let published = read_published(root)?;
    match root.get("fitted") {
        None => Ok(published),
        Some(field) => fitted::read(&field, published),
    }
}

/// The profile without its fitted table.
fn read_published(root: &Section) -> Result<Profile, DocumentError> {
    let mut origins = read_origins(root)?;
    let name = read_name(&root.need("name", "the name of the drive")?)?;
    let block_bytes = read_block_bytes(&root.need("block_bytes", "512 or 4096")?)?;
    let field = root.need("physical_block_bytes", "512 or 4096")?;
    let physical_block_bytes = read_block_bytes(&field)?;
    if physical_block_bytes < block_bytes {
        return Err(field.error(format!(
            "sectors of {physical_block_bytes} bytes for blocks of {block_bytes}: expected not less"
        )));
    }
    let spindle = read_spindle(&root.need("spindle", "a table [spindle]")?)?;
    let geometry = layout::read(root)?;
    let arm = arm::read(&root.need("seek", "a table [seek]")?, geometry.cylinders())?;
    origins.extend(arm.formula);
    let electronics = electronics::read(root)?;
    let provenance = root
        .need("provenance", "how the numbers came about")?
        .choice(&Provenance::NAMES)?;
    let confidence = root.get("confidence");
    let Sectors(blocks) = geometry.sectors();
    Ok(Profile {
        name,
        model: root
            .need("model", "vendor and model")?
            .text(TEXT)?
            .to_owned(),
        // The first disk drive, the IBM 350, was of 1956.
        year: match root.get("year") {
            Some(field) => Some(field.integer(1956..=2100)? as u16),
            None => None,
        },
        provenance,
        origins,
        source: match root.get("source") {
            Some(field) => Some(field.text(TEXT)?.to_owned()),
            None => None,
        },
        block_bytes,
        physical_block_bytes,
        actuators: root.need("actuators", "1 or 2")?.integer(1..=2)? as u8,
        spindle,
        seek: arm.seek,
        seek_deviation: arm.deviation,
        head_switch: arm.head_switch,
        write_settle_nanos: arm.write_settle_nanos,
        geometry: Arc::new(geometry),
        overheads: electronics.overheads,
        buffer: electronics.buffer,
        bus: electronics.bus,
        queue: electronics::read_queue(&root.need("queue", "a table [queue]")?)?,
        seek_command: electronics::read_commands(root, provenance)?,
        chunks: chunks::read(root, blocks)?,
        confidence: match confidence {
            Some(field) => Some(confidence::read(&field, blocks)?),
            None => None,
        },
        unfitted: None,
        arms: None,
    })
}

/// The origins of all tables, before the rest of them is read.
fn read_origins(root: &Section) -> Result<Vec<TableOrigin>, DocumentError> {
    let mut origins = vec![TableOrigin {
        table: String::new(),
        text: root
            .need("origin", "the source of the numbers")?
            .text(TEXT)?
            .to_owned(),
    }];
    for table in TABLES {
        if let Some(field) = root.get(table) {
            origins.push(TableOrigin {
                table: table.to_owned(),
                text: origin_of(&field)?,
            });
        }
    }
    Ok(origins)
}

/// A table's origin, before the rest of it is looked at.
fn origin_of(field: &Field) -> Result<String, DocumentError> {
    let section = field.table("a table")?;
    Ok(section
        .need("origin", "the source of the numbers")?
        .text(TEXT)?
        .to_owned())
}

/// A name that can be a file's and needs no quotes.
fn read_name(field: &Field) -> Result<String, DocumentError> {
    let name = field.text(TEXT)?;
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(kebab) {
        return Err(field.error(format!(
            "\"{name}\": expected lower-case letters, digits and hyphens"
        )));
    }
    Ok(name.to_owned())
}

fn read_block_bytes(field: &Field) -> Result<u32, DocumentError> {
    match field.u32(1)? {
        bytes @ (512 | 4096) => Ok(bytes),
        bytes => Err(field.error(format!("{bytes} bytes: expected 512 or 4096"))),
    }
}

/// The range of spindles: the slowest drives of the 1950s turned at 1,200 rpm, the fastest ever
/// sold at 15,000; twice that is absurd.
const RPM: std::ops::RangeInclusive<f64> = 1_000.0..=30_000.0;

fn read_spindle(field: &Field) -> Result<Spindle, DocumentError> {
    let section = field.section(&["origin", "rpm"])?;
    let rpm = section
        .need("rpm", "revolutions per minute")?
        .number_within(RPM)?;
    Ok(Spindle::from_period_ps((60e12 / rpm).round() as u64))
}

/// The texts of a profile.
const TEXT: &str = "a string that is not empty";

/// The longest time that a number in milliseconds may mean: no phase of a command takes as long.
const LONGEST_MS: f64 = 10_000.0;

/// A time in milliseconds.
fn millis(field: &Field) -> Result<Duration, DocumentError> {
    let millis = field.number_within(0.0..=LONGEST_MS)?;
    Duration::from_millis_f64(millis)
        .ok_or_else(|| field.error(format!("{millis} ms: expected a time")))
}
