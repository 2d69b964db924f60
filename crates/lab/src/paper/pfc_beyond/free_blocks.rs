//! Readmore from free blocks: a coordinator's readmore uses gaps before requests and idle time,
//! compared with fetching it with the requests. Both run over our engine.
//!
//! In-firmware the engine's belief is the truth, and it keeps no guard. External it has a profiled
//! belief, tracks the platter and learns guards within its budget, while seeks scatter. The rule
//! that trusts standing reads was developed with seed 1; the results use seed 2 unless another one is asked for.

use std::sync::Arc;

use block::Duration;
use simulator::caching::cases::{ALGORITHMS, CachingCase, Upper};
use simulator::caching::{EngineScheduling, ExternalBelief, Readmore, Scheduler};

use super::super::finding::{Finding, MeasuredFigure};
use super::super::pfc::loads::{NAMES, Which};
use super::super::pfc::named;
use super::super::pfc::served::{CachingRun, CachingRuns, ServedCase};
use super::super::scene::{Model, Noise, PaperScene};
use super::super::{Measurement, MeasurementOutcome, PaperBench, Table};
use super::{ADAPTIVE, PFC, WORSE, mean};
use crate::{Failure, Label};

/// The in-firmware measurement.
pub const IN_FIRMWARE: Measurement = Measurement {
    what: "readmore on free blocks",
    claims: &[FREE_BLOCKS],
    run: |bench| run(bench, &BeliefKind::All),
};

/// The external measurement.
pub const EXTERNAL: Measurement = Measurement {
    what: "readmore on free blocks, external",
    claims: &[FREE_BLOCKS_EXTERNAL],
    run: |bench| {
        let scene = PaperScene::external(Model::Cheetah9lp, NOISE)?;
        run(bench, &BeliefKind::Found(scene.outside()))
    },
};

const FREE_BLOCKS: &str = "pfc-beyond.free-blocks";
const FREE_BLOCKS_EXTERNAL: &str = "pfc-beyond.free-blocks-external";

/// The engine's knowledge of the drive.
enum BeliefKind {
    /// The truth.
    All,
    /// The profiler's findings, shared by all runs.
    Found(Arc<ExternalBelief>),
}

/// Noise of all external results beyond the papers (`freeblock-beyond`).
const NOISE: Noise = Noise::sigma(Duration::from_micros(60));

/// Divisor of each load's length, for less than a minute. A choice.
const PART: u64 = 3;

/// Sizes of L2 in percent of L1, at the paper's setting H: the same size, and a tenth.
const PERCENT: [u64; 2] = [100, 10];

const COORDINATORS: [&str; 2] = [PFC, ADAPTIVE];

/// The variants of readmore, in the table's order.
const WAYS: [Readmore; 3] = [
    Readmore::Fetched,
    Readmore::Wished,
    Readmore::WishedWhileGranted,
];

fn run(bench: &PaperBench, known: &BeliefKind) -> Result<MeasurementOutcome, Failure> {
    let mut wanted = Vec::new();
    for case in cases() {
        wanted.push(known.alone(case));
        for coordinator in COORDINATORS {
            let one = |way| known.run(case, coordinator, way);
            wanted.extend(WAYS.map(one));
        }
    }
    let runs = CachingRuns::of(bench, PART, wanted)?;
    Ok(MeasurementOutcome {
        findings: vec![known.finding(&runs)?],
        tables: vec![known.table(&runs)?],
        ..MeasurementOutcome::default()
    })
}

fn cases() -> Vec<(Which, CachingCase)> {
    let mut all = Vec::new();
    for load in 0..NAMES.len() {
        for algorithm in ALGORITHMS {
            for percent in PERCENT {
                let case = CachingCase::homogeneous(algorithm, Upper::High, percent);
                all.push((Which::Calibrated(load, 1), case));
            }
        }
    }
    all
}

impl BeliefKind {
    fn mode(&self) -> Label {
        match self {
            BeliefKind::All => Label::InFirmware,
            BeliefKind::Found(_) => Label::External,
        }
    }

    /// The engine's configuration.
    fn engine(&self, readmore: Readmore) -> Scheduler {
        Scheduler::Engine(match self {
            BeliefKind::All => EngineScheduling::exact(readmore),
            BeliefKind::Found(outside) => EngineScheduling::external(Arc::clone(outside), readmore),
        })
    }

    fn alone(&self, (load, case): (Which, CachingCase)) -> CachingRun {
        CachingRun::new(load, case, "none").over(self.engine(Readmore::Fetched))
    }

    fn run(
        &self,
        (load, case): (Which, CachingCase),
        coordinator: &str,
        way: Readmore,
    ) -> CachingRun {
        CachingRun::new(load, case, coordinator).over(self.engine(way))
    }

    /// The mean response without coordination, then of all variants in the order of [`WAYS`].
    fn means(
        &self,
        runs: &CachingRuns,
        coordinator: &str,
        case: (Which, CachingCase),
    ) -> Result<[f64; 4], Failure> {
        let way = |way| runs.get(&self.run(case, coordinator, way));
        Ok([
            runs.get(&self.alone(case))?.mean_ms,
            way(WAYS[0])?.mean_ms,
            way(WAYS[1])?.mean_ms,
            way(WAYS[2])?.mean_ms,
        ])
    }

    fn finding(&self, runs: &CachingRuns) -> Result<Finding, Failure> {
        let mut ours = Vec::new();
        let mut parts = Vec::new();
        let mut loss = f64::MIN;
        for coordinator in COORDINATORS {
            let mut worse = 0.0;
            for (at, name) in NAMES.into_iter().enumerate() {
                let mut gains = [const { Vec::new() }; 3];
                for case in cases() {
                    if case.0 != Which::Calibrated(at, 1) {
                        continue;
                    }
                    let [alone, ways @ ..] = self.means(runs, coordinator, case)?;
                    for (gains, way) in gains.iter_mut().zip(ways) {
                        gains.push(100.0 * (1.0 - way / alone.max(f64::MIN_POSITIVE)));
                    }
                    worse += f64::from(u8::from(ways[2] > ways[0] * (1.0 + WORSE / 100.0)));
                    for way in &WAYS[1..] {
                        let run = self.run(case, coordinator, *way);
                        loss = loss.max(runs.get(&run)?.lost_percent);
                    }
                }
                let gains = gains.map(|gains| mean(&gains));
                parts.push(format!(
                    "{coordinator}, {name} {:.1}, {:.1}, {:.1}",
                    gains[0], gains[1], gains[2]
                ));
            }
            ours.push((format!("{coordinator}_worse"), worse));
        }
        ours.push(("loss_percent".to_owned(), loss));
        let figure = |(name, value)| MeasuredFigure {
            name: Some(name),
            value,
        };
        Ok(Finding {
            grounds: Default::default(),
            id: match self {
                BeliefKind::All => FREE_BLOCKS,
                BeliefKind::Found(_) => FREE_BLOCKS_EXTERNAL,
            },
            mode: Some(self.mode()),
            ours: ours.into_iter().map(figure).collect(),
            shape: None,
            note: format!(
                "synthetic loads, seed {}, over the engine with sptf, {}; mean gains in % where it is fetched, wished, wished \
             while granted: {}",
                runs.seed,
                self.said(),
                parts.join("; ")
            ),
        })
    }

    fn table(&self, runs: &CachingRuns) -> Result<Table, Failure> {
        let title = format!(
            "Readmore on free blocks ({}): gains in % over no coordination where it is fetched, wished, wished \
         while\ngranted, then of each of the three: p99, blocks fetched ahead and not used, disk busy; blocks wished, \
         granted, used,\nand what requests lost, while granted",
            self.mode().name(),
        );
        let mut table = Table::new(
            title,
            &[
                "case",
                "coordinator",
                "ms",
                "fetched",
                "wished",
                "granted",
                "p99 ms",
                "unused",
                "disk busy s",
                "wished",
                "granted",
                "used",
                "lost %",
            ],
        );
        table.words = 2;
        for case in cases() {
            for coordinator in COORDINATORS {
                let [alone, ways @ ..] = self.means(runs, coordinator, case)?;
                let served = |way| runs.get(&self.run(case, coordinator, way));
                let all = [served(WAYS[0])?, served(WAYS[1])?, served(WAYS[2])?];
                let gains = ways.map(|way| 100.0 * (1.0 - way / alone.max(f64::MIN_POSITIVE)));
                let each = |figure: &dyn Fn(&ServedCase) -> f64, digits: usize| {
                    let figures = all.map(|served| format!("{:.digits$}", figure(served)));
                    figures.join(" / ")
                };
                let last = all[2];
                table.rows.push(vec![
                    named(case),
                    coordinator.to_string(),
                    format!("{alone:.2}"),
                    format!("{:.1}", gains[0]),
                    format!("{:.1}", gains[1]),
                    format!("{:.1}", gains[2]),
                    each(&|served| served.percentiles_ms[1], 1),
                    each(&|served| served.unused as f64, 0),
                    each(&|served| served.busy_s, 0),
                    last.wishes.wished.to_string(),
                    last.wishes.granted.to_string(),
                    last.wishes.used.to_string(),
                    format!("{:.2}", last.lost_percent),
                ]);
            }
        }
        Ok(table)
    }

    fn said(&self) -> String {
        match self {
            BeliefKind::All => "belief = truth".to_owned(),
            BeliefKind::Found(_) => format!("belief profiled, seek noise {NOISE}"),
        }
    }
}
