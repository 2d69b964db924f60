//! The loads: three calibrated ones in place of the paper's traces, and genuine prefixes.

use std::sync::Arc;

use block::Instant;
use drive::Profile;
use drive::catalog;
use simulator::caching::cases;
use simulator::caching::figures::LoadFigures;
use simulator::caching::synthetic::{
    self, BuiltInCacheLoad, CacheLoadSlice, Ends, SyntheticCacheLoad,
};
use simulator::caching::{ArrivalTiming, BadSetup, CacheArrival, FileEnds, Writes, traced};
use simulator::trace::{OnBad, Record, TraceReader};

use crate::Failure;
use crate::lent;
use crate::paper::{PaperBench, Table};

/// The identity of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// A calibrated load, by its index among the built-in ones, and its number of clients.
    Calibrated(usize, u32),
    /// A calibrated load with another seed, and its number of clients.
    Seeded(usize, u64, u32),
    /// A calibrated load with one client whose ends of files all levels know.
    KnownEnds(usize),
    /// A calibrated load with one client whose times are divided by this.
    Hastened(usize, u64),
    /// Another reading of a calibrated load with one client, by its index in [`OTHER_READINGS`].
    OtherReading(usize),
    /// A genuine prefix, by its index in [`GENUINE`].
    Genuine(usize),
    /// A genuine prefix whose writes go through all levels to the disk.
    Written(usize),
    /// The requests of a genuine prefix without their times: so many of them are outstanding.
    Replayed(usize, u32),
}

/// A load in memory.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The requests.
    pub arrivals: Vec<CacheArrival>,
    /// The times of the requests.
    pub pace: ArrivalTiming,
    /// The statistics of the load.
    pub figures: LoadFigures,
    /// The factor of the recorded times.
    pub stretch: u64,
    /// The levels that know where files end.
    pub file_ends: FileEnds,
    /// The treatment of writes.
    pub writes: Writes,
}

/// The drive of the paper.
pub const DRIVE: &str = "seagate-cheetah-9lp";

/// Seed of the results unless another one is asked for. Generators were calibrated, and `adaptive` was tuned, with
/// seed 1.
pub const SEED: u64 = 2;

/// The files of the genuine prefixes; the paper's two are first.
pub const GENUINE: [&str; 8] = [
    "financial1_first10000",
    "websearch1_first24783",
    "financial1_asu0_12h_4k",
    "ms_dtrs_5min",
    "hadoop_e10",
    "mobile_youcut_exec",
    "msr_web_3",
    "diskmon_sys1",
];

/// Limit of requests of a genuine trace: all of the paper's two. A choice, for time.
pub const MOST_GENUINE: usize = 25_000;

/// Limit of blocks of a genuine trace, for the same reason: a gigabyte.
const MOST_BLOCKS: u64 = 1 << 18;

/// Other readings of the calibrated loads: the index of the paper's trace, the words of a table, and the load.
const OTHER_READINGS: [(usize, &str, BuiltInCacheLoad); 3] = [
    (0, "by volume", synthetic::OLTP_BY_VOLUME),
    (0, "in a loop", synthetic::OLTP_IN_A_LOOP),
    (2, "in 32 KiB", synthetic::MULTI_IN_32_KIB),
];

/// OLTP calibrated to the paper's volume.
pub(super) const BY_VOLUME: Which = Which::OtherReading(0);
/// OLTP at the mean rate of its trace, read again in a loop.
pub(super) const IN_A_LOOP: Which = Which::OtherReading(1);
/// Multi in requests of eight blocks.
pub(super) const IN_32_KIB: Which = Which::OtherReading(2);

/// The paper's traces, in the order of the built-in loads.
pub const NAMES: [&str; 3] = ["oltp", "websearch", "multi"];

/// The drive, and its size in blocks.
///
/// # Errors
/// Never: the drive is built in.
pub fn drive() -> Result<(Arc<Profile>, u64), Failure> {
    let entry = catalog::find(DRIVE).map_err(Failure::failed)?;
    let profile = entry.profile().map_err(Failure::failed)?;
    let blocks = profile.geometry.sectors().0 * u64::from(profile.block_bytes) / 4096;
    Ok((Arc::new(profile), blocks))
}

/// The file of a calibrated load.
///
/// # Errors
/// Never: the files are built in.
pub fn calibrated(at: usize) -> Result<SyntheticCacheLoad, Failure> {
    synthetic::ALL[at].load().map_err(Failure::failed)
}

impl Which {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Which::Calibrated(at, _)
            | Which::Seeded(at, ..)
            | Which::KnownEnds(at)
            | Which::Hastened(at, _) => NAMES[at],
            Which::OtherReading(at) => NAMES[OTHER_READINGS[at].0],
            Which::Genuine(at) | Which::Written(at) | Which::Replayed(at, _) => GENUINE[at],
        }
    }

    /// The file of a calibrated load; `None` for genuine ones.
    ///
    /// # Errors
    /// Never: the files are built in.
    pub fn calibrated(self) -> Result<Option<SyntheticCacheLoad>, Failure> {
        match self {
            Which::Calibrated(at, _)
            | Which::Seeded(at, ..)
            | Which::KnownEnds(at)
            | Which::Hastened(at, _) => calibrated(at).map(Some),
            Which::OtherReading(at) => {
                let load = OTHER_READINGS[at].2.load().map_err(Failure::failed)?;
                Ok(Some(load))
            }
            Which::Genuine(_) | Which::Written(_) | Which::Replayed(..) => Ok(None),
        }
    }

    /// All its requests, or one part in so many of them. Calibrated loads without a seed of their own have `seed`.
    ///
    /// # Errors
    /// If a trace cannot be read, or does not fit the drive.
    pub fn ready(self, part: u64, seed: u64) -> Result<Ready, Failure> {
        let (_, disk) = drive()?;
        if let Some(load) = self.calibrated()? {
            return Ok(self.generated(&load, (part, seed), disk));
        }
        match self {
            Which::Replayed(at, outstanding) => Ok(Ready {
                pace: ArrivalTiming::Outstanding(outstanding),
                ..genuine(at, part, Writes::AsReads)?
            }),
            Which::Written(at) => genuine(at, part, Writes::Through),
            Which::Genuine(at) => genuine(at, part, Writes::AsReads),
            _ => Err(Failure::failed(format!("not a load: {self:?}"))),
        }
    }

    /// One part in so many of a calibrated load.
    fn generated(self, load: &SyntheticCacheLoad, (part, seed): (u64, u64), disk: u64) -> Ready {
        let clients = match self {
            Which::Calibrated(_, clients) | Which::Seeded(_, _, clients) => clients,
            _ => 1,
        };
        let seed = match self {
            Which::Seeded(_, own, _) => own,
            _ => seed,
        };
        let mut ready = synthetic(load, (part, clients, seed), disk);
        match self {
            Which::KnownEnds(_) => ready.file_ends = FileEnds::AllLevels,
            Which::Hastened(_, factor) => {
                for arrival in &mut ready.arrivals {
                    let nanos = arrival.at.as_nanos() / factor.max(1);
                    arrival.at = Instant::from_nanos(nanos);
                }
            }
            _ => (),
        }
        ready
    }
}

/// A genuine prefix; its times are stretched until the disk can serve it.
fn genuine(at: usize, part: u64, writes: Writes) -> Result<Ready, Failure> {
    let (drive, disk) = drive()?;
    let records = records(GENUINE[at], part)?;
    let bad = |error: BadSetup| Failure::input(format!("{}: {error}", GENUINE[at]));
    let arrivals = traced::arrivals(&records, disk, 1).map_err(bad)?;
    let figures = LoadFigures::of(&arrivals);
    let stretch = cases::stretch(&arrivals, figures.footprint, &drive, writes);
    let stretch = stretch.map_err(bad)?;
    Ok(Ready {
        arrivals: traced::arrivals(&records, disk, stretch).map_err(bad)?,
        pace: ArrivalTiming::Open,
        figures,
        stretch,
        file_ends: FileEnds::AllLevels,
        writes,
    })
}

/// One part in `part` of a calibrated load.
fn synthetic(
    load: &SyntheticCacheLoad,
    (part, clients, seed): (u64, u32, u64),
    disk: u64,
) -> Ready {
    let extent = CacheLoadSlice {
        part,
        clients,
        seed,
    };
    let arrivals = load.arrivals(&extent, disk);
    Ready {
        figures: LoadFigures::of(&arrivals),
        arrivals,
        pace: match load.is_open() {
            true => ArrivalTiming::Open,
            false => ArrivalTiming::Closed,
        },
        stretch: 1,
        file_ends: match load.ends {
            Ends::Above => FileEnds::FirstLevel,
            Ends::Known | Ends::Unknown => FileEnds::AllLevels,
        },
        writes: Writes::AsReads,
    }
}

/// Whether the genuine prefixes are there; remarks it where they are not.
///
/// # Errors
/// With `CI=true`, if they are not.
pub fn are_lent(bench: &PaperBench) -> Result<bool, Failure> {
    let path = lent::folder().join("traces");
    if path.is_dir() {
        return Ok(true);
    }
    bench.progress.remark(&lent::missing("traces")?);
    Ok(false)
}

fn records(name: &str, part: u64) -> Result<Vec<Record>, Failure> {
    let path = lent::folder()
        .join("traces")
        .join(format!("{name}.csv.zst"));
    let reader = TraceReader::open(&path, None, OnBad::Refuse).map_err(Failure::input)?;
    let mut records = Vec::new();
    let mut blocks = 0;
    for record in reader.take(MOST_GENUINE / part.max(1) as usize) {
        let record = record.map_err(Failure::input)?;
        blocks += record.bytes.length().div_ceil(4096);
        if blocks > MOST_BLOCKS {
            break;
        }
        records.push(record);
    }
    Ok(records)
}

/// The calibration: targets beside results, and the genuine prefix beside both.
pub fn calibration(
    loads: &[(Which, &Ready)],
    genuine: &[(Which, &Ready)],
) -> Result<Table, Failure> {
    let mut table = Table::new(
        "Calibration (synthetic loads; target: the paper's figures)",
        &[
            "",
            "requests",
            "random %",
            "footprint MB",
            "files",
            "blocks a request",
            "first-time blocks %",
            "reuse below 2^8 %",
            "below 2^12 %",
            "next %",
            "late %",
            "in runs of 8+ %",
            "spread",
            "gap ms",
            "deviation",
        ],
    );
    for (which, ready) in loads {
        let name = match which {
            Which::OtherReading(at) => format!("{} {}", which.name(), OTHER_READINGS[*at].1),
            _ => which.name().to_owned(),
        };
        if let Some(load) = which.calibrated()? {
            let target = load.target;
            let mut row = vec![
                format!("{name}, target"),
                String::new(),
                target.random_percent.to_string(),
                (target.footprint_mb * target.scale).to_string(),
                target
                    .files
                    .map_or(String::new(), |files| files.to_string()),
            ];
            row.resize(table.columns.len(), String::new());
            table.rows.push(row);
        }
        let name = format!("{name}, reached");
        table.rows.push(row(name, ready));
    }
    for (which, ready) in genuine {
        let name = format!("{}, genuine, times x{}", which.name(), ready.stretch);
        table.rows.push(row(name, ready));
    }
    Ok(table)
}

fn row(name: String, ready: &Ready) -> Vec<String> {
    let figures = &ready.figures;
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let gap = |value: String| match ready.pace {
        ArrivalTiming::Open => value,
        ArrivalTiming::Closed | ArrivalTiming::Outstanding(_) => "-".to_owned(),
    };
    vec![
        name,
        figures.requests.to_string(),
        percent(figures.random),
        format!("{:.0}", figures.footprint_mb()),
        figures.files.to_string(),
        format!("{:.2}", figures.blocks),
        percent(figures.cold),
        percent(figures.near_reuse),
        percent(figures.far_reuse),
        percent(figures.next),
        percent(figures.late),
        percent(figures.long_runs),
        format!("{:.2}", figures.spread),
        gap(format!("{:.1}", figures.gap_ms * ready.stretch as f64)),
        gap(format!("{:.2}", figures.gap_deviation)),
    ]
}
