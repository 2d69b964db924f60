//! Readmore on free blocks: what a coordinator reads more rides on the gaps before requests and on idle time, beside
//! the same fetched with the requests, both over our engine.
//!
//! The engine knows the drive as it is and keeps no distance, as a scheduler in the firmware can. The rule by which
//! wishes are trusted was made with seed 1; what is judged here is seed 2.

use std::fmt::Write as _;

use simulator::caching::cases::{ALGORITHMS, Case, Upper};
use simulator::caching::{Readmore, Scheduled, Scheduler};

use super::super::finding::{Finding, Measured, Mode};
use super::super::pfc::loads::{NAMES, Which};
use super::super::pfc::named;
use super::super::pfc::served::{Run, Runs, Served};
use super::super::{Bench, Found, Measurement};
use super::{OURS, PFC, WORSE, mean};
use crate::output::Failure;

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "readmore on free blocks",
    claims: &[FREE_BLOCKS],
    run,
};

const FREE_BLOCKS: &str = "pfc-beyond.free-blocks";

/// One part in so many of each load, so that it takes less than a minute. A choice.
const PART: u64 = 3;

/// L2 in percent of L1, which is the paper's H: the same size, and a tenth of it.
const PERCENT: [u64; 2] = [100, 10];

const COORDINATORS: [&str; 2] = [PFC, OURS];

/// What becomes of what is read more, as the table has it.
const WAYS: [Readmore; 3] = [
    Readmore::Fetched,
    Readmore::Wished,
    Readmore::WishedWhileGranted,
];

fn run(bench: &Bench) -> Result<Found, Failure> {
    let mut wanted = Vec::new();
    for (load, case) in cases() {
        wanted.push(alone(load, case));
        for coordinator in COORDINATORS {
            let one = |way| run_of(load, case, coordinator, way);
            wanted.extend(WAYS.map(one));
        }
    }
    let runs = Runs::of(bench, PART, wanted)?;
    Ok(Found {
        findings: vec![finding(&runs)?],
        tables: vec![table(&runs)?],
        ..Found::default()
    })
}

fn cases() -> Vec<(Which, Case)> {
    let mut all = Vec::new();
    for load in 0..NAMES.len() {
        for algorithm in ALGORITHMS {
            for percent in PERCENT {
                let case = Case::homogeneous(algorithm, Upper::High, percent);
                all.push((Which::Calibrated(load, 1), case));
            }
        }
    }
    all
}

/// The engine before the disk.
fn engine(readmore: Readmore) -> Scheduler {
    Scheduler::Engine(Scheduled::exact(readmore))
}

fn alone(load: Which, case: Case) -> Run {
    Run::new(load, case, "none").over(engine(Readmore::Fetched))
}

fn run_of(load: Which, case: Case, coordinator: &str, way: Readmore) -> Run {
    Run::new(load, case, coordinator).over(engine(way))
}

/// The mean responses of all ways, in the order of [`WAYS`], and before them without coordination.
fn means(runs: &Runs, coordinator: &str, (load, case): (Which, Case)) -> Result<[f64; 4], Failure> {
    let way = |way| runs.get(&run_of(load, case, coordinator, way));
    Ok([
        runs.get(&alone(load, case))?.mean_ms,
        way(WAYS[0])?.mean_ms,
        way(WAYS[1])?.mean_ms,
        way(WAYS[2])?.mean_ms,
    ])
}

fn finding(runs: &Runs) -> Result<Finding, Failure> {
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
                let [alone, ways @ ..] = means(runs, coordinator, case)?;
                for (gains, way) in gains.iter_mut().zip(ways) {
                    gains.push(100.0 * (1.0 - way / alone.max(f64::MIN_POSITIVE)));
                }
                worse += f64::from(u8::from(ways[2] > ways[0] * (1.0 + WORSE / 100.0)));
                for way in &WAYS[1..] {
                    let run = run_of(case.0, case.1, coordinator, *way);
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
    let figure = |(name, value)| Measured {
        name: Some(name),
        value,
    };
    Ok(Finding {
        id: FREE_BLOCKS,
        mode: Some(Mode::InFirmware),
        ours: ours.into_iter().map(figure).collect(),
        shape: None,
        note: format!(
            "synthetic loads, seed 2, over the engine with sptf; mean gains in % where it is fetched, wished, wished \
             while granted: {}",
            parts.join("; ")
        ),
    })
}

fn table(runs: &Runs) -> Result<String, Failure> {
    let mut text = String::from(
        "Readmore on free blocks (in-firmware): gains in % over no coordination where it is fetched, wished, wished \
         while\ngranted, then of each of the three: p99, blocks fetched ahead and not used, disk busy; blocks wished, \
         granted, used,\nand what requests lost, while granted\n\n\
         | case | coordinator | ms | fetched | wished | granted | p99 ms | unused | disk busy s | wished | granted | \
         used | lost % |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for case in cases() {
        for coordinator in COORDINATORS {
            let [alone, ways @ ..] = means(runs, coordinator, case)?;
            let served = |way| runs.get(&run_of(case.0, case.1, coordinator, way));
            let all = [served(WAYS[0])?, served(WAYS[1])?, served(WAYS[2])?];
            let gains = ways.map(|way| 100.0 * (1.0 - way / alone.max(f64::MIN_POSITIVE)));
            let each = |figure: &dyn Fn(&Served) -> f64, digits: usize| {
                let figures = all.map(|served| format!("{:.digits$}", figure(served)));
                figures.join(" / ")
            };
            let last = all[2];
            let _ = writeln!(
                text,
                "| {} | {coordinator} | {alone:.2} | {:.1} | {:.1} | {:.1} | {} | {} | {} | {} | {} | {} | {:.2} |",
                named(case),
                gains[0],
                gains[1],
                gains[2],
                each(&|served| served.percentiles_ms[1], 1),
                each(&|served| served.unused as f64, 0),
                each(&|served| served.busy_s, 0),
                last.wishes.wished,
                last.wishes.granted,
                last.wishes.used,
                last.lost_percent,
            );
        }
    }
    Ok(text)
}
