//! The tables of a description of a system that only a simulation uses.
//!
//! ```toml
//! [[load]]                      # a client: it reads and writes
//! export = "db"                 # whose class and volume it has
//! workload = "oltp"             # or trace = "mine.csv"
//! tasks = 4                     # flags of `headtime simulate`, with _ for -
//! cache = ["64 MiB,lru,linux-6"]   # its own, above that of the volume
//! link = "lan"
//! [[stream]]                    # as in a set of `headtime streams plan`
//! export = "films"
//! name = "film"
//! mode = "play"
//! rate = "1 MB"
//! [[task]]                      # reads a volume in free blocks and idle time
//! volume = "db"
//! deadline_s = 600
//! ```

use document::{Document, DocumentError, Field, Section};
use server::config::{Config, Places};
use simulator::replay::AddressFit;
use simulator::workload::LARGEST_COUNT;

use super::{SystemFile, SystemLoad, SystemStream, SystemTask};
use crate::comparison::load::LoadSettings;
use crate::stream_plan;

/// The keys of `[[load]]`.
const LOAD: [&str; 18] = [
    "name",
    "export",
    "workload",
    "trace",
    "seed",
    "tasks",
    "think_ms",
    "size_kib",
    "rate",
    "read_fraction",
    "device",
    "format",
    "closed",
    "scale_time",
    "fit",
    "skip_bad",
    "cache",
    "link",
];

/// Keys of a workload, and keys of a trace.
const OF_WORKLOADS: [&str; 6] = [
    "seed",
    "tasks",
    "think_ms",
    "size_kib",
    "rate",
    "read_fraction",
];
const OF_TRACES: [&str; 6] = [
    "device",
    "format",
    "closed",
    "scale_time",
    "fit",
    "skip_bad",
];

/// Tables that only a service uses.
const SERVED: [&str; 7] = ["nbd", "fuse", "ublk", "control", "log", "hooks", "limits"];

/// Keys of a volume that only a service uses.
const SERVED_OF_VOLUMES: [&str; 4] = ["read_only", "checksums", "bitmaps", "scrub"];

/// Keys of a volume's cache that only a service uses: in a simulation a write is a read of its blocks.
const SERVED_OF_CACHES: [&str; 3] = ["readmore", "write", "ahead_class"];

pub(super) fn parse(file: &str, text: &str, places: &Places) -> Result<SystemFile, DocumentError> {
    let config = Config::parse(file, text, places)?;
    let document = Document::parse(file, text)?;
    let root = document.root();
    let exports: Vec<&str> = config
        .drives
        .iter()
        .flat_map(|drive| drive.exports.iter().map(|export| export.name.as_str()))
        .collect();
    let mut loads: Vec<SystemLoad> = Vec::new();
    for table in &root.sections("load")? {
        let load = load(table, &exports, places)?;
        if loads.iter().any(|other| other.name == load.name) {
            let problem = format!("name \"{}\" is there twice: expected each once", load.name);
            return Err(table.error(problem));
        }
        loads.push(load);
    }
    let streams = root.sections("stream")?;
    let streams = streams.iter().map(|table| stream(table, &exports));
    let volumes: Vec<&str> = config
        .drives
        .iter()
        .flat_map(|drive| drive.volumes.iter().map(|volume| volume.name.as_str()))
        .collect();
    let tasks = root.sections("task")?;
    let tasks = tasks.iter().map(|table| task(table, &volumes));
    Ok(SystemFile {
        file: file.to_owned(),
        loads,
        streams: streams.collect::<Result<_, _>>()?,
        tasks: tasks.collect::<Result<_, _>>()?,
        served_only: served_only(&root)?,
        config,
    })
}

fn load(
    table: &Section<'_>,
    exports: &[&str],
    places: &Places,
) -> Result<SystemLoad, DocumentError> {
    table.only(&LOAD)?;
    let export = one_of(&table.need("export", "an export of a drive")?, exports)?;
    let given = (table.has("workload"), table.has("trace"));
    let others = match given {
        (true, false) => &OF_TRACES[..],
        (false, true) => &OF_WORKLOADS[..],
        _ => return Err(table.error("expected a workload or a trace")),
    };
    if let Some(key) = others.iter().find(|key| table.has(key))
        && let Some(field) = table.get(key)
    {
        let of = if given.0 { "a trace" } else { "a workload" };
        return Err(field.error(format!("a key of {of}: expected none")));
    }
    let text = |key: &str, expected: &str| match table.get(key) {
        None => Ok(None),
        Some(field) => field.text(expected).map(|text| Some(text.to_owned())),
    };
    let settings = LoadSettings {
        workload: text("workload", "a built-in load, or a file")?
            .map(|name| of_file(&name, places)),
        trace: text("trace", "the file of a trace")?.map(|name| places.base.join(name)),
        seed: whole(table, "seed", 0..=u64::MAX)?,
        tasks: count(table, "tasks")?,
        think_ms: number(table, "think_ms")?,
        size_kib: number(table, "size_kib")?,
        rate: number(table, "rate")?,
        read_fraction: number(table, "read_fraction")?,
        device: text("device", "a device of the trace, or \"all\"")?,
        format: text("format", "a format of traces")?,
        closed: count(table, "closed")?,
        scale_time: number(table, "scale_time")?,
        fit: table
            .get("fit")
            .map(|field| field.choice(&FITS))
            .transpose()?,
        skip_bad: match table.get("skip_bad") {
            None => false,
            Some(field) => field.boolean()?,
        },
        ..LoadSettings::default()
    };
    let cache = table.get("cache").map(|list| {
        list.list_of(|cache| {
            Ok(cache
                .text("a cache such as \"64 MiB,lru,linux-6\"")?
                .to_owned())
        })
    });
    let name = text("name", "a name that no other load has")?;
    Ok(SystemLoad {
        name: name.unwrap_or_else(|| export.clone()),
        export,
        load: settings,
        caches: cache.transpose()?.unwrap_or_default(),
        link: match table.get("link") {
            None => "none".to_owned(),
            Some(link) => link.choice(&[("none", "none"), ("lan", "lan")])?.to_owned(),
        },
    })
}

const FITS: [(&str, AddressFit); 2] = [("wrap", AddressFit::Wrap), ("scale", AddressFit::Scale)];

/// The name of a built-in load, or the path of a file beside the description.
fn of_file(name: &str, places: &Places) -> String {
    match name.contains(['/', '.']) {
        true => places.base.join(name).display().to_string(),
        false => name.to_owned(),
    }
}

fn stream(table: &Section<'_>, exports: &[&str]) -> Result<SystemStream, DocumentError> {
    let mut known = stream_plan::GROUP_KEYS.to_vec();
    known.retain(|key| *key != "blocks");
    known.push("export");
    table.only(&known)?;
    Ok(SystemStream {
        export: one_of(&table.need("export", "an export of a drive")?, exports)?,
        group: stream_plan::read_group(table)?,
    })
}

fn task(table: &Section<'_>, volumes: &[&str]) -> Result<SystemTask, DocumentError> {
    table.only(&["volume", "deadline_s"])?;
    let deadline = table.get("deadline_s").map(|field| {
        // A century: the longest run.
        field.number(1e-3..=3.2e9, "seconds from the begin, more than 0")
    });
    Ok(SystemTask {
        volume: one_of(&table.need("volume", "a volume of a drive")?, volumes)?,
        deadline_s: deadline.transpose()?,
    })
}

/// The name, if it is one of these.
fn one_of(field: &Field<'_>, known: &[&str]) -> Result<String, DocumentError> {
    let choices: Vec<(&str, &str)> = known.iter().map(|name| (*name, *name)).collect();
    field.choice(&choices).map(str::to_owned)
}

fn whole(
    table: &Section<'_>,
    key: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, DocumentError> {
    let (low, high) = (*range.start(), *range.end());
    let expected = match high {
        u64::MAX => format!("a whole number from {low}"),
        _ => format!("a whole number from {low} to {high}"),
    };
    let field = table.get(key);
    field.map(|field| field.whole(range, &expected)).transpose()
}

fn count(table: &Section<'_>, key: &str) -> Result<Option<u32>, DocumentError> {
    let count = whole(table, key, 1..=LARGEST_COUNT.into())?;
    Ok(count.map(|count| count as u32))
}

/// A number. The load itself checks its range.
fn number(table: &Section<'_>, key: &str) -> Result<Option<f64>, DocumentError> {
    let field = table.get(key);
    field
        .map(|field| field.number(f64::MIN..=f64::MAX, "a number"))
        .transpose()
}

/// What only a service uses, as it stands in the file.
fn served_only(root: &Section<'_>) -> Result<Vec<String>, DocumentError> {
    let mut served = Vec::new();
    for table in SERVED {
        if root.has(table) {
            served.push(match table {
                "nbd" => "[[nbd]]".to_owned(),
                table => format!("[{table}]"),
            });
        }
    }
    for drive in root.sections("drive")? {
        if drive.has("capture") {
            served.push("drive.capture".to_owned());
        }
        for volume in drive.sections("volume")? {
            let keys = SERVED_OF_VOLUMES.iter().filter(|key| volume.has(key));
            served.extend(keys.map(|key| format!("drive.volume.{key}")));
            if let Some(cache) = volume.get("cache") {
                let cache = cache.table("a cache")?;
                let keys = SERVED_OF_CACHES.iter().filter(|key| cache.has(key));
                served.extend(keys.map(|key| format!("drive.volume.cache.{key}")));
            }
        }
        for export in drive.sections("export")? {
            if export.has("classify") {
                served.push("drive.export.classify".to_owned());
            }
        }
    }
    served.sort();
    served.dedup();
    Ok(served)
}
