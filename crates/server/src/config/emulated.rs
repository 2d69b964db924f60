//! An emulated drive in the configuration file: its model, and what no belief about it contains.

use block::{Duration, Extent, Lba, Sectors, Switch};
use document::quantity::Unit;
use document::{DocumentError, Field, Section};
use drive::host::MeasuredPath;
use drive::imperfection::{
    AheadTrigger, Chance, HeldLookAhead, Periodic, SlowHead, UnalignedWrites,
};
use drive::{HostJitter, Imperfections};

use super::fields::{PATH, path, switch};
use super::{DriveModel, Emulated, Places};

/// The keys of the table.
pub(super) const KEYS: [&str; 17] = [
    "kind",
    "drive",
    "image",
    "time_scale",
    "look_ahead",
    "write_cache",
    "bus_mb_s",
    "seek_noise_us",
    "late_seeks",
    "held_ahead",
    "own_scan",
    "read_first",
    "slow_head",
    "unreadable",
    "host_jitter",
    "host_jitter_us",
    "seed",
];

const MODEL: &str = "the name of a drive that `headtime drives` lists, or the path of a profile \
                     that ends with .toml";

pub(super) fn emulated(table: &Section<'_>, places: &Places) -> Result<Emulated, DocumentError> {
    let scale = table.get("time_scale").map(|value| {
        // Choice: a thousandth is faster than any machine, and a thousand slower than patience.
        value.number(0.001..=1000.0, "a number from 0.001 to 1000")
    });
    let bus = table.get("bus_mb_s").map(|value| {
        // Choices: a tenth of the first SCSI bus, and more than 32 lanes of today.
        let expected = "megabytes a second, from 0.1 to 1000000";
        value.quantity(Unit::MegabytesPerSecond, 0.1..=1e6, expected)
    });
    let seed = table.get("seed");
    let seed = seed.map(|value| value.whole(0..=i64::MAX as u64, "a whole number from 0"));
    Ok(Emulated {
        drive: model(&table.need("drive", MODEL)?, places)?,
        image: path(&table.need("image", PATH)?, places)?,
        time_scale: scale.transpose()?.unwrap_or(1.0),
        look_ahead: switch(table, "look_ahead", Switch::On)?,
        write_cache: switch(table, "write_cache", Switch::On)?,
        bus_mb_s: bus.transpose()?,
        imperfections: imperfections(table)?,
        seed: seed.transpose()?.unwrap_or(1),
    })
}

/// What no belief about the drive contains.
fn imperfections(table: &Section<'_>) -> Result<Imperfections, DocumentError> {
    let micros = |key| match table.get(key) {
        None => Ok(Duration::ZERO),
        // Choice: a tenth of a second, the longest access of known drives.
        Some(value) => {
            let expected = "microseconds, from 0 to 100000";
            let us = value.quantity(Unit::Microseconds, 0.0..=100_000.0, expected);
            us.map(|us| Duration::from_nanos((us * 1e3).round() as u64))
        }
    };
    Ok(Imperfections {
        seek_noise: micros("seek_noise_us")?,
        settle_retry: late_seeks(table)?,
        held_look_ahead: held_ahead(table)?,
        irregular_scan: own_scan(table)?,
        unaligned_writes: match switch(table, "read_first", Switch::Off)? {
            Switch::On => UnalignedWrites::ReadFirst,
            Switch::Off => UnalignedWrites::Free,
        },
        slow_head: slow_head(table)?,
        unreadable: unreadable(table)?,
        host: match table.get("host_jitter") {
            Some(field) => HostJitter {
                measured: Some(field.choice(&MeasuredPath::ALL)?),
                ..HostJitter::exponential(micros("host_jitter_us")?)
            },
            None => HostJitter::exponential(micros("host_jitter_us")?),
        },
        ..Imperfections::default()
    })
}

/// Blocks that cannot be read until they are written.
fn unreadable(table: &Section<'_>) -> Result<Vec<Extent>, DocumentError> {
    let Some(list) = table.get("unreadable") else {
        return Ok(Vec::new());
    };
    list.list_of(|block| {
        // Choice: more than any disk has.
        let first = block.whole(0..=1 << 48, "the number of a block")?;
        Extent::new(Lba(first), Sectors(1)).map_err(|error| block.error(error.to_string()))
    })
}

fn late_seeks(table: &Section<'_>) -> Result<Chance, DocumentError> {
    let Some(late) = table.section("late_seeks", &["permille", "ms"])? else {
        return Ok(Chance::default());
    };
    let permille = late.need("permille", "how many seeks in 1,000 are late")?;
    let permille = permille.number(0.0..=1000.0, "a number from 0 to 1000")?;
    Ok(Chance {
        per_million: (permille * 1e3).round() as u32,
        costs: millis(&late, "ms", 0.0)?,
    })
}

fn held_ahead(table: &Section<'_>) -> Result<HeldLookAhead, DocumentError> {
    let Some(held) = table.section("held_ahead", &["blocks", "after"])? else {
        return Ok(HeldLookAhead::default());
    };
    let blocks = held.need("blocks", "how many blocks the drive still reads")?;
    let after = held.get("after").map(|value| {
        value.choice(&[
            ("same-track", AheadTrigger::SameTrack),
            ("every", AheadTrigger::EveryRead),
        ])
    });
    Ok(HeldLookAhead {
        blocks: blocks.whole(0..=u32::MAX.into(), "a whole number of blocks")? as u32,
        after: after.transpose()?.unwrap_or_default(),
    })
}

fn own_scan(table: &Section<'_>) -> Result<Periodic, DocumentError> {
    let Some(scan) = table.section("own_scan", &["every_ms", "ms"])? else {
        return Ok(Periodic::default());
    };
    Ok(Periodic {
        every: millis(&scan, "every_ms", 1.0)?,
        costs: millis(&scan, "ms", 0.0)?,
    })
}

/// A head that the drive does not have is never used, so that it slows nothing down.
fn slow_head(table: &Section<'_>) -> Result<Option<SlowHead>, DocumentError> {
    let Some(slow) = table.section("slow_head", &["head", "percent"])? else {
        return Ok(None);
    };
    let head = slow.need("head", "the number of a head, from 0")?;
    // Choice: no disk has as many heads, and none that is so slow serves.
    let head = head.whole(0..=255, "the number of a head, from 0 to 255")?;
    let expected = "a number of percent from 0 to 1000";
    let percent = slow.need("percent", expected)?;
    let percent = percent.quantity(Unit::Percent, 0.0..=1000.0, expected)?;
    Ok(Some(SlowHead {
        head: head as u32,
        slower_ppm: (percent * 1e4).round() as u32,
    }))
}

/// Milliseconds, up to a minute: the time-outs of hosts are shorter.
fn millis(table: &Section<'_>, key: &str, least: f64) -> Result<Duration, DocumentError> {
    let expected = format!("milliseconds, from {least} to 60000");
    let ms =
        table
            .need(key, &expected)?
            .quantity(Unit::Milliseconds, least..=60_000.0, &expected)?;
    Ok(Duration::from_nanos((ms * 1e6).round() as u64))
}

/// A model or a profile file, whose name has a dot.
pub(super) fn model(value: &Field<'_>, places: &Places) -> Result<DriveModel, DocumentError> {
    let text = value.text(MODEL)?;
    if text.ends_with(".toml") {
        return path(value, places).map(DriveModel::File);
    }
    match drive::catalog::find(text) {
        Ok(entry) => Ok(DriveModel::Shipped(entry.name)),
        Err(error) => Err(value.error(error.to_string())),
    }
}
