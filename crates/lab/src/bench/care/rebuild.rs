//! Rebuilds of a mirror's leg: under a verify load with kills in between, and the rate beside a scan of the survivor.
//!
//! ```text
//!   leg away -> load -> [leg back, attached -> load, kill -> load until in sync -> legs compared] x rounds
//! ```

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use server::mirror::storage;
use server::status::Mirror;
use tempfile::TempDir;

use super::scrub::book::Book;
use super::scrub::temporary;
use super::scrub::verify_load::{PARTS, VerifyCounts, VerifyLoad};
use super::{CareBench, CareFigures, CareLength};
use crate::bench::rig::ServeProcess;
use crate::dice::SplitMix;
use crate::{Failure, Progress};

mod pair;
mod rates;

use pair::{Missing, Pair};

/// What only this case measures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RebuildFigures {
    /// SIGKILLs of the service in the middle of a rebuild.
    pub kills: u64,
    /// Bytes of each leg that were compared after each round.
    pub compared_bytes: u64,
    /// Bytes in which the legs differed.
    pub differing_bytes: u64,
    /// Megabytes a second that were copied past the engine beside OLTP.
    pub paid_mb_s: f64,
    /// The share of the time that these took, in per cent.
    pub paid_percent: f64,
    /// The foreground's mean response time on the survivor alone, in milliseconds.
    pub alone_mean_ms: f64,
    /// How much longer it is beside the scan, in per cent.
    pub scan_loss_percent: f64,
}

/// The sizes of the runs.
struct Sizes {
    /// Units of the volume under the verify load.
    units: u64,
    /// Rounds with a rebuild each.
    rounds: u64,
    /// Requests of the load before the kill of each.
    requests: u64,
    /// Seconds of each measurement of rates.
    seconds: u64,
}

/// The 200 kills of long runs are the issue's. The rest are choices.
impl Sizes {
    fn of(length: CareLength) -> Self {
        match length {
            CareLength::Short => Sizes {
                units: 512,
                rounds: 3,
                requests: 200,
                seconds: 5,
            },
            CareLength::Long => Sizes {
                units: 1024,
                rounds: 200,
                requests: 300,
                seconds: 120,
            },
        }
    }
}

/// The drive under the verify load: the smallest one, because whole legs are compared.
const SMALL_DRIVE: &str = "dec-rz26";

/// How much faster than the drive the emulation runs under the verify load: nothing is timed then. A choice.
const TIME_SCALE: f64 = 0.01;

/// Requests of the load from one look at the mirror to the next. A choice.
const LOOK_EVERY: u64 = 50;

/// The pause before a mirror is looked at again. A choice.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Measures the case.
pub(super) fn measure(bench: &CareBench, progress: &dyn Progress) -> Result<CareFigures, Failure> {
    let sizes = Sizes::of(bench.length);
    let folder = temporary()?;
    let mut trial = Trial {
        pair: Pair::new(SMALL_DRIVE, &bench.policy, folder.path())?,
        book: Book::new(bench.seed, sizes.units),
        dice: SplitMix::new(bench.seed),
        folder,
        totals: Totals::default(),
    };
    trial.pair.make_equal()?;
    for round in 0..sizes.rounds {
        progress.begin(&format!("rebuild: {} of {}", round + 1, sizes.rounds));
        trial.round(&sizes, round)?;
    }
    let totals = trial.totals;
    let rates = rates::measure(bench, sizes.seconds, progress)?;
    let loss = |mean_ms: f64| (mean_ms / rates.alone.mean_ms - 1.0) * 100.0;
    Ok(CareFigures {
        injected: sizes.rounds,
        found: totals.found,
        repaired: totals.repaired,
        false_alarms: totals.load.failed_reads,
        wrong_bytes: totals.load.wrong_bytes + totals.differing_bytes,
        free_mb_s: rates.rebuild.free_mb_s,
        free_mb_s_scan: rates.scan.free_mb_s,
        foreground_loss_percent: loss(rates.rebuild.mean_ms),
        budget_percent: f64::from(bench.impact_ppm) / 1e4,
        rebuild: Some(RebuildFigures {
            kills: sizes.rounds,
            compared_bytes: trial.pair.data_bytes(),
            differing_bytes: totals.differing_bytes,
            paid_mb_s: rates.rebuild.paid_mb_s,
            paid_percent: rates.rebuild.paid_percent,
            alone_mean_ms: rates.alone.mean_ms,
            scan_loss_percent: loss(rates.scan.mean_ms),
        }),
        ..CareFigures::of("rebuild", rates.label)
    })
}

/// The counts of all rounds.
#[derive(Debug, Default)]
struct Totals {
    /// Rounds in which the leg that was away was known to lack data.
    found: u64,
    /// Rounds after which both legs had the same data.
    repaired: u64,
    differing_bytes: u64,
    load: VerifyCounts,
}

/// A mirror under a verify load.
struct Trial {
    pair: Pair,
    book: Book,
    dice: SplitMix,
    folder: TempDir,
    totals: Totals,
}

impl Trial {
    /// A leg misses writes, comes back, and is rebuilt under the load with a kill in between.
    fn round(&mut self, sizes: &Sizes, round: u64) -> Result<(), Failure> {
        let (away, part) = ((round % 2) as usize, round % PARTS);
        let (path, hidden) = (self.pair.leg(away), self.hidden());
        fs::rename(&path, &hidden).map_err(Failure::failed)?;
        let service = self.begin(Missing::Allowed)?;
        self.with_load(|load| {
            load.exercise(sizes.requests, part)?;
            load.settle()
        })?;
        drop(service);
        fs::rename(&hidden, &path).map_err(Failure::failed)?;
        let legs = [self.pair.leg(0), self.pair.leg(1)];
        storage::attach([&legs[0], &legs[1]], away).map_err(Failure::failed)?;
        let mut service = self.begin(Missing::Refused)?;
        let state = mirror(&service)?;
        self.totals.found += u64::from(!state.legs[away].is_in_sync());
        let requests = 1 + self.dice.below(sizes.requests);
        self.with_load(|load| {
            load.exercise(requests, part)?;
            service.server.kill()
        })?;
        self.book.killed();
        let service = self.begin(Missing::Refused)?;
        self.rebuild(&service, part)?;
        drop(service);
        let differing = self.pair.differing_bytes()?;
        self.totals.differing_bytes += differing;
        self.totals.repaired += u64::from(differing == 0);
        Ok(())
    }

    /// Goes on with the load until both legs are in sync, and reads everything then.
    fn rebuild(&mut self, service: &ServeProcess, part: u64) -> Result<(), Failure> {
        let units = self.book.units();
        self.with_load(|load| {
            loop {
                load.exercise(LOOK_EVERY, part)?;
                // Faster than the drive there are no gaps: what reads for the leg is idle time.
                load.settle()?;
                let state = mirror(service).map_err(std::io::Error::other)?;
                if state.legs.iter().all(server::status::Leg::is_in_sync) {
                    break;
                }
                thread::sleep(LOOK_AGAIN);
            }
            (0..units).try_for_each(|unit| load.read(unit))?;
            load.settle()
        })
    }

    fn hidden(&self) -> PathBuf {
        self.folder.path().join("away")
    }

    fn begin(&self, missing: Missing) -> Result<ServeProcess, Failure> {
        let config = self.pair.configuration(TIME_SCALE, missing);
        ServeProcess::start("pair", &config, self.folder.path())
    }

    /// Connects a load to the service, and adds its counts.
    fn with_load(
        &mut self,
        run: impl FnOnce(&mut VerifyLoad<'_>) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let socket = self.folder.path().join("pair.nbd");
        let known = (&mut self.book, &mut self.dice);
        self.totals.load.add(&socket, known, run)
    }
}

/// The mirror of a service. A service that does not tell is a failure, and not in sync.
fn mirror(service: &ServeProcess) -> Result<Mirror, Failure> {
    let drives = service.status()?.drives;
    let found = drives.into_iter().find_map(|drive| drive.mirror);
    let found = found.filter(|mirror| mirror.legs.len() == 2);
    found.ok_or_else(|| Failure::failed("the service knows no mirror of two legs"))
}
