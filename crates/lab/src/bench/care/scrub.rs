//! Scrubs: damage in data of a verify load with kills in between, the rate beside a scan, and a whole disk.
//!
//! ```text
//!   fill -> scrub -> [load, flips, kill, latent errors, restart] x kills -> scrub beside the load -> judged
//!                ^                                                              |
//!                '------------- next part of the units <- scrub <- repair <-----'
//! ```

use std::thread;
use std::time::Duration;

use serde::Serialize;
use server::checksums::report::{ScrubReport, ScrubState};
use server::control::protocol::Ask;
use server::control::{ScrubBlocks, ScrubOrder};
use tempfile::TempDir;

use super::{CareBench, CareFigures, CareLength};
use crate::bench::rig::ServeProcess;
use crate::dice::SplitMix;
use crate::{Failure, Label, Progress};

pub(super) mod book;
mod judged;
mod medium;
pub(super) mod rates;
pub(super) mod verify_load;
mod whole;

use book::{Book, Injected, Injury, SECTOR, UNIT};
use judged::{Judged, judge};
use medium::Medium;
use verify_load::{PARTS, VerifyCounts, VerifyLoad};
pub use whole::WholeScrub;

/// What only this case measures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScrubFigures {
    /// Bytes of the damaged volume.
    pub volume_bytes: u64,
    /// SIGKILLs of the service under the load.
    pub kills: u64,
    /// Flips in units that were being written when the service was killed, which are not among `injected`: a
    /// scrub takes them for the interrupted write.
    pub in_doubt_injected: u64,
    /// Those that were found.
    pub in_doubt_found: u64,
    /// Reads that failed without damage.
    pub failed_reads: u64,
    /// CPU time of checksums at 200 MB/s, in per cent of a core.
    pub checksum_cpu_percent: f64,
    /// A scrub of a whole disk in virtual time, of long runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeScrub>,
}

/// The sizes of the runs.
struct Sizes {
    /// Units of the volume.
    units: u64,
    /// Rounds with a scrub each.
    rounds: u64,
    /// Kills of a round.
    kills: u64,
    /// Flips after each kill, and as many latent errors.
    flips: u64,
    /// Requests of the load before each kill.
    requests: u64,
    /// Seconds of each measurement of rates.
    seconds: u64,
}

/// The long sizes are the issue's: 1,000 flips, 1,000 latent errors, 200 kills, 4 GiB. The rest are choices.
impl Sizes {
    fn of(length: CareLength) -> Self {
        match length {
            CareLength::Short => Sizes {
                units: 512,
                rounds: 1,
                kills: 3,
                flips: 5,
                requests: 200,
                seconds: 5,
            },
            CareLength::Long => Sizes {
                units: 65_536,
                rounds: 4,
                kills: 50,
                flips: 5,
                requests: 400,
                seconds: 120,
            },
        }
    }
}

/// The interval of looks at a scrub, in requests of the load. A choice.
const LOOK_EVERY: u64 = 100;

/// The pause before a service is asked again. A choice.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The volume of all services of this case.
const VOLUME: &str = "disk";

/// Measures the case.
pub(super) fn measure(bench: &CareBench, progress: &dyn Progress) -> Result<CareFigures, Failure> {
    let sizes = Sizes::of(bench.length);
    let folder = temporary()?;
    let mut trial = Trial {
        medium: Medium::new(
            &bench.drive,
            &bench.policy,
            sizes.units * UNIT,
            folder.path(),
        )?,
        book: Book::new(bench.seed, sizes.units),
        dice: SplitMix::new(bench.seed),
        folder,
        totals: Totals::default(),
    };
    trial.rounds(&sizes, progress)?;
    let totals = trial.totals;
    let figures = ScrubFigures {
        volume_bytes: sizes.units * UNIT,
        kills: sizes.rounds * sizes.kills,
        in_doubt_injected: totals.in_doubt.0,
        in_doubt_found: totals.in_doubt.1,
        failed_reads: totals.load.failed_reads,
        checksum_cpu_percent: rates::checksum_cpu_percent(),
        whole: match bench.length {
            CareLength::Short => None,
            CareLength::Long => Some(whole::measure(bench, progress)?),
        },
    };
    let rates = rates::measure(bench, sizes.seconds, progress)?;
    Ok(CareFigures {
        injected: totals.injected,
        found: totals.found,
        repaired: totals.repaired,
        false_alarms: totals.false_alarms,
        wrong_bytes: totals.load.wrong_bytes,
        free_mb_s: rates.scrub.mb_s,
        free_mb_s_scan: rates.scan.mb_s,
        foreground_loss_percent: (rates.scrub.mean_ms / rates.alone_mean_ms - 1.0) * 100.0,
        budget_percent: f64::from(bench.impact_ppm) / 1e4,
        scrub: Some(figures),
        ..CareFigures::of("scrub", Label::InFirmware.with_noise())
    })
}

/// A new folder, which goes when it is dropped.
pub(super) fn temporary() -> Result<TempDir, Failure> {
    let mut builder = tempfile::Builder::new();
    let folder = builder.prefix("headtime-bench-").tempdir();
    folder.map_err(|error| Failure::failed(format!("a temporary folder: {error}")))
}

/// The counts of all rounds.
#[derive(Debug, Default)]
struct Totals {
    injected: u64,
    found: u64,
    repaired: u64,
    false_alarms: u64,
    load: VerifyCounts,
    /// Injected and found.
    in_doubt: (u64, u64),
}

/// A volume under a verify load.
struct Trial {
    medium: Medium,
    book: Book,
    dice: SplitMix,
    folder: TempDir,
    totals: Totals,
}

impl Trial {
    fn rounds(&mut self, sizes: &Sizes, progress: &dyn Progress) -> Result<(), Failure> {
        progress.begin("scrub: filling the volume");
        let service = self.begin()?;
        self.with_load(|load| {
            (0..sizes.units).try_for_each(|unit| load.write(unit))?;
            load.flush()?;
            load.settle()
        })?;
        self.scrub(&service, 0)?;
        drop(service);
        for round in 0..sizes.rounds {
            let part = round % PARTS;
            for kill in 0..sizes.kills {
                progress.begin(&format!(
                    "scrub: round {} of {}, kill {} of {}",
                    round + 1,
                    sizes.rounds,
                    kill + 1,
                    sizes.kills
                ));
                let service = self.begin()?;
                self.kill(service, (sizes, part))?;
            }
            progress.begin(&format!("scrub: round {}, scrubs", round + 1));
            self.judged_round(part)?;
        }
        progress.begin("scrub: reading the volume");
        let _service = self.begin()?;
        self.with_load(|load| {
            (0..sizes.units).try_for_each(|unit| load.read(unit))?;
            load.settle()
        })
    }

    fn begin(&self) -> Result<ServeProcess, Failure> {
        let latent = self
            .book
            .injected()
            .filter(|one| one.injury == Injury::Latent);
        let bytes: Vec<u64> = latent.map(|one| one.byte).collect();
        let config = self.medium.configuration(&bytes);
        ServeProcess::start("scrubbed", &config, self.folder.path())
    }

    /// Connects a load to the service, and adds its counts.
    fn with_load(
        &mut self,
        run: impl FnOnce(&mut VerifyLoad<'_>) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let socket = self.folder.path().join("scrubbed.nbd");
        let known = (&mut self.book, &mut self.dice);
        self.totals.load.add(&socket, known, run)
    }

    /// Runs the load with flips in units at rest, kills the service while requests are in flight, and chooses the
    /// sectors that cannot be read from now on.
    fn kill(
        &mut self,
        mut service: ServeProcess,
        (sizes, part): (&Sizes, u64),
    ) -> Result<(), Failure> {
        let half = sizes.requests / 2;
        let mut written = Vec::new();
        let flips = self.chosen(sizes.flips, part);
        let medium = self.medium.clone();
        self.with_load(|load| {
            load.exercise(half, part)?;
            for byte in flips {
                medium.flip(byte)?;
                load.book().inject(Injected {
                    injury: Injury::Flip,
                    byte,
                    in_doubt: false,
                });
            }
            load.exercise(half, part)?;
            written = load.written();
            service.server.kill()
        })?;
        self.book.killed();
        for byte in self.chosen(sizes.flips, part) {
            self.book.inject(Injected {
                injury: Injury::Latent,
                byte,
                in_doubt: false,
            });
        }
        self.totals.injected += 2 * sizes.flips;
        let doubted = written.into_iter().find(|&unit| self.book.is_at_rest(unit));
        if let Some(unit) = doubted {
            let byte = unit * UNIT + self.dice.below(UNIT);
            self.medium.flip(byte).map_err(Failure::failed)?;
            self.book.inject(Injected {
                injury: Injury::Flip,
                byte,
                in_doubt: true,
            });
            self.totals.in_doubt.0 += 1;
        }
        Ok(())
    }

    /// Bytes in different units that the load does not write now.
    fn chosen(&mut self, count: u64, part: u64) -> Vec<u64> {
        let mut units = std::collections::BTreeSet::new();
        while (units.len() as u64) < count {
            let unit = self.dice.below(self.book.units());
            if unit % PARTS != part && self.book.is_at_rest(unit) {
                units.insert(unit);
            }
        }
        let each = units.into_iter();
        each.map(|unit| unit * UNIT + self.dice.below(UNIT))
            .collect()
    }

    /// Scrubs beside the load, judges the findings, repairs from the book and scrubs again.
    fn judged_round(&mut self, part: u64) -> Result<(), Failure> {
        let service = self.begin()?;
        let report = self.scrub(&service, part)?;
        let judged = judge(report.present(), self.book.injected());
        self.count(&judged);
        let units = |all: &[Injected]| all.iter().map(|one| one.byte / UNIT).collect::<Vec<_>>();
        let found = units(&judged.found);
        // What was not found is mended for the next round, and does not count as repaired.
        let all = [found.clone(), units(&judged.missed)].concat();
        self.with_load(|load| {
            for &unit in &all {
                load.book().mended(unit);
                load.write(unit)?;
            }
            load.flush()?;
            load.settle()
        })?;
        let again = self.scrub(&service, part)?;
        let is_gone = |one: &&Injected| {
            !again
                .present()
                .any(|finding| finding.offset_bytes / UNIT == one.byte / UNIT)
        };
        let guarded = judged.found.iter().filter(|one| !one.in_doubt);
        self.totals.repaired += guarded.filter(is_gone).count() as u64;
        self.totals.false_alarms += judge(again.present(), std::iter::empty()).false_alarms;
        Ok(())
    }

    fn count(&mut self, judged: &Judged) {
        let is_doubted = |one: &&Injected| one.in_doubt;
        let doubted = judged.found.iter().filter(is_doubted).count() as u64;
        self.totals.found += judged.found.len() as u64 - doubted;
        self.totals.in_doubt.1 += doubted;
        self.totals.false_alarms += judged.false_alarms;
    }

    /// Scrubs the volume beside the load.
    fn scrub(&mut self, service: &ServeProcess, part: u64) -> Result<ScrubReport, Failure> {
        service.ask(&Ask::Scrub(whole_volume()))?;
        let mut ended = None;
        self.with_load(|load| {
            while ended.is_none() {
                load.exercise(LOOK_EVERY, part)?;
                // Faster than the drive nothing is predicted, and the scrub has only idle time.
                load.settle()?;
                thread::sleep(LOOK_AGAIN);
                let report = look(service).map_err(std::io::Error::other)?;
                ended = (report.state != ScrubState::Running).then_some(report);
            }
            load.settle()
        })?;
        match ended {
            Some(report) if report.state == ScrubState::Finished => Ok(report),
            Some(report) => Err(Failure::failed(format!(
                "a scrub was given up: {}",
                report.problem.unwrap_or_default()
            ))),
            None => Err(Failure::failed("a scrub did not end")),
        }
    }
}

fn whole_volume() -> ScrubOrder {
    ScrubOrder {
        volume: VOLUME.to_owned(),
        priority: 0,
        deadline_s: None,
        blocks: ScrubBlocks::All,
    }
}

fn look(service: &ServeProcess) -> Result<ScrubReport, Failure> {
    let reports: Vec<ScrubReport> =
        serde_json::from_value(service.ask(&Ask::Scrubs)?).map_err(Failure::failed)?;
    let report = reports.into_iter().find(|report| report.volume == VOLUME);
    report.ok_or_else(|| Failure::failed("the service knows no scrub"))
}

/// Waits for the end of a scrub without a load.
fn wait(service: &ServeProcess) -> Result<(), Failure> {
    while look(service)?.state == ScrubState::Running {
        thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}
