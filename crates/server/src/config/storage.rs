//! Drives and their volumes in the configuration file.

use std::path::PathBuf;

use block::Switch;
use document::quantity::Unit;
use document::{DocumentError, Field, Section, most_similar};
use scheduler::freeblock::SameTrackRule;
use scheduler::policy::{self, NamedPolicy};

use super::fields::{NAME, PATH, access, name, path, size, switch};
use super::size::{PERIOD, bytes, period};
use super::{ALIGN_BYTES, BackEnd, Belief, DriveConfig, DriveModel, Leg, Places, Volume};
use super::{
    caching, device, emulated, exports, foreseen, grace, mirror, phases, preemption, remote,
    streams,
};

/// All drives of the file.
pub(super) fn drives(
    root: &Section<'_>,
    places: &Places,
) -> Result<Vec<DriveConfig>, DocumentError> {
    let tables = root.sections("drive")?;
    if tables.is_empty() {
        let problem = "missing: expected at least one table [[drive]]";
        return Err(root.missing("drive", problem));
    }
    let mut drives: Vec<DriveConfig> = Vec::new();
    for table in &tables {
        let drive = drive(table, &drives, places)?;
        drives.push(drive);
    }
    Ok(drives)
}

fn drive(
    table: &Section<'_>,
    before: &[DriveConfig],
    places: &Places,
) -> Result<DriveConfig, DocumentError> {
    table.only(&[
        "name",
        "back_end",
        "belief",
        "belief_unchecked",
        "policy",
        "phases",
        grace::KEY,
        "preemption",
        "streams",
        "impact_percent",
        "same_track",
        "cpu_latency_us",
        "capture",
        "leg",
        "volume",
        "export",
    ])?;
    let names = before.iter().map(|drive| drive.name.as_str());
    let name = name(&table.need("name", NAME)?, names)?;
    let field = table.need("back_end", BACK_END)?;
    let back_end = back_end(table, &field, places)?;
    let belief = match &back_end {
        BackEnd::Mirror(mirror) => mirror.legs[0].belief.clone(),
        _ => belief(table, &back_end, places)?,
    };
    let learned_policy = policy(table, WITH_BELIEF)?;
    let policy = match belief {
        Belief::Nothing => policy(table, WITHOUT_BELIEF)?,
        _ => learned_policy,
    };
    let impact = table.get("impact_percent").map(|value| {
        let percent = value.quantity(
            Unit::Percent,
            0.0..=100.0,
            "a number of percent from 0 to 100",
        )?;
        Ok((percent * 1e4).round() as u32)
    });
    let same_track = table.get("same_track");
    let same_track = same_track.map(|value| value.choice(&SameTrackRule::ALL));
    let capture = table.get("capture").map(|value| path(&value, places));
    let volumes = volumes(table, &back_end, (&belief, policy), places)?;
    let taken = before.iter().flat_map(|drive| &drive.exports);
    let taken: Vec<&str> = taken.map(|export| export.name.as_str()).collect();
    Ok(DriveConfig {
        exports: exports::exports(table, &volumes, &taken)?,
        phases: phases::phases(table)?,
        grace: grace::grace(table)?,
        preemption: preemption::preemption(table, &belief, policy)?,
        streams: streams::streams(table, &belief, policy)?,
        name,
        back_end,
        belief,
        belief_unchecked: switch(table, "belief_unchecked", Switch::Off)?,
        policy,
        learned_policy,
        impact_ppm: impact.transpose()?.unwrap_or(foreseen::IMPACT_PPM),
        same_track: same_track.transpose()?.unwrap_or_default(),
        cpu_latency_us: cpu_latency(table)?,
        capture: capture.transpose()?,
        volumes,
    })
}

/// How late a CPU may wake up, in microseconds.
fn cpu_latency(drive: &Section<'_>) -> Result<Option<u32>, DocumentError> {
    let latency = drive.get("cpu_latency_us").map(|value| {
        let expected = "a whole number of microseconds from 0 to 1000000";
        let micros = value.whole_quantity(Unit::Microseconds, 0..=1_000_000, expected)?;
        Ok(micros as u32)
    });
    latency.transpose()
}

fn back_end(
    drive: &Section<'_>,
    field: &Field<'_>,
    places: &Places,
) -> Result<BackEnd, DocumentError> {
    if let Some(kind) = drive.section("back_end", &all_keys())?
        && kind
            .get("kind")
            .is_some_and(|kind| kind.text(KINDS) == Ok("mirror"))
    {
        kind.only(&mirror::KEYS)?;
        let mirror = mirror::mirror(drive, &kind, |table| leg(table, places))?;
        return Ok(BackEnd::Mirror(Box::new(mirror)));
    }
    if let Some(leg) = drive.get("leg") {
        return Err(leg.mismatch("legs only of a back end of kind \"mirror\""));
    }
    leg_back_end(drive, field, places)
}

/// A leg of a mirror.
fn leg(table: &Section<'_>, places: &Places) -> Result<Leg, DocumentError> {
    table.only(&["back_end", "belief", "belief_unchecked"])?;
    let field = table.need("back_end", BACK_END)?;
    let back_end = leg_back_end(table, &field, places)?;
    Ok(Leg {
        belief: belief(table, &back_end, places)?,
        belief_unchecked: switch(table, "belief_unchecked", Switch::Off)?,
        back_end,
    })
}

/// The keys of all kinds.
fn all_keys() -> Vec<&'static str> {
    let kinds = Kind::ALL.iter().flat_map(|(_, kind)| kind.keys()).copied();
    kinds.chain(mirror::KEYS).collect()
}

/// A back end that is no mirror, in a table of a drive or a leg.
fn leg_back_end(
    drive: &Section<'_>,
    field: &Field<'_>,
    places: &Places,
) -> Result<BackEnd, DocumentError> {
    // An inline table and a table of its own are the same here.
    let keys = all_keys();
    // A mistyped key is found before the kind is known.
    let table = drive
        .section("back_end", &keys)?
        .ok_or_else(|| field.mismatch(BACK_END))?;
    let kind = table.need("kind", KINDS)?.choice(&Kind::ALL)?;
    table.only(kind.keys())?;
    Ok(match kind {
        Kind::Memory => BackEnd::Memory {
            size: size(&table.need("size", "how many bytes it has")?)?,
        },
        Kind::File => BackEnd::File {
            path: path(&table.need("path", PATH)?, places)?,
            size: table.get("size").map(|value| size(&value)).transpose()?,
            direct: switch(&table, "direct", Switch::On)?,
        },
        Kind::Emulated => BackEnd::Emulated(Box::new(emulated::emulated(&table, places)?)),
        Kind::Device => BackEnd::Device(device::device(&table)?),
        Kind::Nbd => BackEnd::Nbd(remote::remote(&table, places)?),
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Memory,
    File,
    Emulated,
    Device,
    Nbd,
}

impl Kind {
    const ALL: [(&'static str, Kind); 5] = [
        ("memory", Kind::Memory),
        ("file", Kind::File),
        ("emulated", Kind::Emulated),
        ("device", Kind::Device),
        ("nbd", Kind::Nbd),
    ];

    fn keys(self) -> &'static [&'static str] {
        match self {
            Kind::Memory => &["kind", "size"],
            Kind::File => &["kind", "path", "size", "direct"],
            Kind::Emulated => &emulated::KEYS,
            Kind::Device => &[
                "kind",
                "path",
                "confirm",
                "passthrough",
                "write_cache",
                "look_ahead",
            ],
            Kind::Nbd => &remote::KEYS,
        }
    }
}

const KINDS: &str = "\"memory\", \"file\", \"emulated\", \"device\", \"nbd\" or \"mirror\"";
const BACK_END: &str = "a table such as { kind = \"memory\", size = \"1 GiB\" }";

fn belief(
    table: &Section<'_>,
    back_end: &BackEnd,
    places: &Places,
) -> Result<Belief, DocumentError> {
    let emulated = matches!(back_end, BackEnd::Emulated(_));
    let Some(field) = table.get("belief") else {
        return Ok(match emulated {
            true => Belief::Emulated,
            false => Belief::Nothing,
        });
    };
    match field.text(BELIEF)? {
        "nothing" => Ok(Belief::Nothing),
        "emulated" if emulated => Ok(Belief::Emulated),
        "emulated" => Err(field.mismatch("that only of a back end of kind \"emulated\"")),
        _ => Ok(Belief::Profile(emulated::model(&field, places)?)),
    }
}

const BELIEF: &str = "\"nothing\", \"emulated\", the name of a drive, or the path of a profile \
                      that ends with .toml";

/// The default policies: one that uses positions needs a belief.
const WITH_BELIEF: &str = "sptf-sw";
const WITHOUT_BELIEF: &str = "c-look";

/// The policy of a drive, or this default.
fn policy(table: &Section<'_>, default: &str) -> Result<NamedPolicy, DocumentError> {
    let Some(field) = table.get("policy") else {
        return policy::find(default).map_err(|error| table.error(error.to_string()));
    };
    let expected = format!("one of {}", policy::usages().join(", "));
    let name = field.text(&expected)?;
    policy::find(name).map_err(|error| {
        let names = policy::ALL.iter().map(|entry| entry.name);
        match most_similar(name, names) {
            Some(near) => field.error(format!("{error}; did you mean \"{near}\"?")),
            None => field.error(error.to_string()),
        }
    })
}

fn volumes(
    drive: &Section<'_>,
    back_end: &BackEnd,
    (belief, policy): (&Belief, NamedPolicy),
    places: &Places,
) -> Result<Vec<Volume>, DocumentError> {
    let tables = drive.sections("volume")?;
    if tables.is_empty() {
        let problem = "missing: expected at least one table [[drive.volume]]";
        return Err(drive.missing("volume", problem));
    }
    let mut volumes: Vec<Volume> = Vec::new();
    for table in &tables {
        table.only(&[
            "name",
            "offset",
            "size",
            "read_only",
            "cache",
            "checksums",
            "bitmaps",
            "scrub",
        ])?;
        let names = volumes.iter().map(|volume| volume.name.as_str());
        let offset = table.get("offset").map(|value| bytes(&value, ALIGN_BYTES));
        let volume = Volume {
            name: name(&table.need("name", NAME)?, names)?,
            offset: offset.transpose()?.unwrap_or(0),
            size: table.get("size").map(|value| size(&value)).transpose()?,
            access: access(table)?,
            cache: caching::cache(table)?,
            checksums: checksums(table, back_end, &volumes, places)?,
            bitmaps: bitmaps(table, back_end, &volumes, places)?,
            scrub_every_s: scrub(table)?,
        };
        if let Some(other) = volumes.iter().find(|other| overlap(other, &volume)) {
            let problem = format!(
                "\"{}\" has bytes of \"{}\", too: expected volumes without common bytes",
                volume.name, other.name
            );
            return Err(table.error(problem));
        }
        fits(table, &volume, back_end)?;
        volumes.push(volume);
    }
    caching::beside_streams(drive, &tables)?;
    caching::on_free_blocks(&tables, belief, policy)?;
    Ok(volumes)
}

/// The file of a volume's checksums, which no other volume has.
fn checksums(
    table: &Section<'_>,
    back_end: &BackEnd,
    before: &[Volume],
    places: &Places,
) -> Result<Option<PathBuf>, DocumentError> {
    let Some(field) = table.get("checksums") else {
        return Ok(None);
    };
    let file = path(&field, places)?;
    if matches!(back_end, BackEnd::Memory { .. }) {
        return Err(field.mismatch("no checksums: memory does not outlive the service"));
    }
    if matches!(back_end, BackEnd::Mirror(_)) {
        return Err(field.mismatch("no checksums: a mirror has none yet"));
    }
    let mut others = before.iter().filter_map(|volume| volume.checksums.as_ref());
    match others.any(|other| *other == file) {
        true => Err(field.mismatch("a file that no other volume has")),
        false => Ok(Some(file)),
    }
}

/// The folder of a volume's dirty bitmaps, which no other volume has.
fn bitmaps(
    table: &Section<'_>,
    back_end: &BackEnd,
    before: &[Volume],
    places: &Places,
) -> Result<Option<PathBuf>, DocumentError> {
    let Some(field) = table.get("bitmaps") else {
        return Ok(None);
    };
    let folder = path(&field, places)?;
    if matches!(back_end, BackEnd::Memory { .. }) {
        return Err(field.mismatch("no dirty bitmaps: memory does not outlive the service"));
    }
    let mut others = before.iter().filter_map(|volume| volume.bitmaps.as_ref());
    match others.any(|other| *other == folder) {
        true => Err(field.mismatch("a folder that no other volume has")),
        false => Ok(Some(folder)),
    }
}

/// The period of a volume's scrubs.
fn scrub(table: &Section<'_>) -> Result<Option<u64>, DocumentError> {
    let Some(scrub) = table.section("scrub", &["every"])? else {
        return Ok(None);
    };
    if table.get("checksums").is_none() {
        return Err(scrub.error("a volume without checksums: expected the key `checksums`, too"));
    }
    period(&scrub.need("every", PERIOD)?).map(Some)
}

fn overlap(a: &Volume, b: &Volume) -> bool {
    let end = |volume: &Volume| match volume.size {
        Some(size) => volume.offset.saturating_add(size),
        None => u64::MAX,
    };
    a.offset < end(b) && b.offset < end(a)
}

/// Checks that the volume is within the drive, if the file states the drive's size.
fn fits(table: &Section<'_>, volume: &Volume, back_end: &BackEnd) -> Result<(), DocumentError> {
    let capacity = match back_end {
        BackEnd::Memory { size } => Some(*size),
        BackEnd::File { size, .. } => *size,
        BackEnd::Emulated(emulated) => match &emulated.drive {
            DriveModel::Shipped(name) => {
                let profile = drive::catalog::find(name)
                    .ok()
                    .and_then(|entry| entry.profile().ok());
                profile.map(|profile| profile.capacity_bytes())
            }
            _ => None,
        },
        _ => None,
    };
    let least = volume
        .offset
        .saturating_add(volume.size.unwrap_or(ALIGN_BYTES));
    match capacity {
        Some(capacity) if capacity < least => Err(table.error(format!(
            "it ends at byte {least} of a drive of {capacity} bytes: expected a volume within it"
        ))),
        _ => Ok(()),
    }
}
