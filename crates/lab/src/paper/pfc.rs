//! Coordinated prefetching in two cache levels: PFC to the letter in 96 cases, on calibrated loads.

use simulator::caching::cases::{ALGORITHMS, Algorithm, CachingCase, L2_PERCENT, Upper};

use super::finding::{Finding, MeasuredFigure, ShapeVerdict};
use super::grounds::{Grounds, OtherSetup};
use super::{Measurement, MeasurementOutcome, PaperBench};
use crate::Failure;
use crate::claims::{self, Theirs};
use loads::{NAMES, Which};
use served::{CachingRun, CachingRuns};
use setups::{BestActions, JUDGED, REASONS, ReasonSetup, SEEDS};
pub use setups::{
    COMBINATION, COMBINED, IN_PAGES, IN_TRACKS, SEED_6, SEED_7, WITHOUT, in_tracks, is_artefact,
    seeded,
};

mod bounds;
mod combinations;
mod drawn;
pub mod loads;
mod sensitivity;
pub mod served;
mod setups;
mod tables;

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "PFC in two levels of caches",
    claims: &[
        WINS, MEAN, MAX, BEATS_DU, TABLE, DIRECTION, HIT_RATIO, ACTIONS, BEST,
    ],
    run,
};

const WINS: &str = "pfc.wins";
const MEAN: &str = "pfc.mean";
const MAX: &str = "pfc.max";
const BEATS_DU: &str = "pfc.beats-du";
const TABLE: &str = "pfc.table1";
const DIRECTION: &str = "pfc.direction";
const HIT_RATIO: &str = "pfc.hit-ratio";
const ACTIONS: &str = "pfc.actions";
const BEST: &str = "pfc.best-case";

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let paper = PfcPaper::of(bench)?;
    let findings = vec![
        paper.wins()?,
        paper.mean()?,
        paper.max()?,
        paper.beats_du()?,
        paper.table()?,
        paper.direction()?,
        paper.hit_ratio()?,
        paper.actions()?,
        paper.best_case()?,
    ];
    let tables = vec![
        paper.calibration()?,
        paper.deviations()?,
        paper.all_cases()?,
        sensitivity::table(bench)?,
        combinations::table(bench)?,
    ];
    Ok(MeasurementOutcome {
        findings,
        drawings: drawn::all(&paper)?,
        tables,
    })
}

/// The runs of all findings.
struct PfcPaper {
    runs: CachingRuns,
    /// PFC in each set of readings: both actions, bypass alone, readmore alone.
    coordinators: [[String; 3]; 3],
}

/// The 96 cases: loads, algorithms, caches.
pub fn cases() -> Vec<(Which, CachingCase)> {
    let mut all = Vec::new();
    for load in 0..NAMES.len() {
        for algorithm in ALGORITHMS {
            for upper in Upper::ALL {
                for percent in L2_PERCENT {
                    let case = CachingCase::homogeneous(algorithm, upper, percent);
                    all.push((Which::Calibrated(load, 1), case));
                }
            }
        }
    }
    all
}

/// PFC with these readings, and further settings.
pub fn pfc(readings: &str, more: &str) -> String {
    let parts: Vec<&str> = [readings, more]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    format!("pfc({})", parts.join(","))
}

impl PfcPaper {
    fn of(bench: &PaperBench) -> Result<PfcPaper, Failure> {
        let coordinators = setups::coordinators(bench);
        let wanted = [setups::runs(&coordinators), bounds::runs()].concat();
        let mut runs = CachingRuns::of(bench, 1, wanted)?;
        if loads::are_lent(bench)? {
            // To stand beside what is calibrated on them.
            runs.also(bench, &[Which::Genuine(0), Which::Genuine(1)])?;
        }
        Ok(PfcPaper { runs, coordinators })
    }

    fn pfc(&self, case: (Which, CachingCase)) -> CachingRun {
        self.run_in(&JUDGED, case, 0)
    }

    fn one(&self, id: &'static str, value: f64, note: &str) -> Finding {
        self.several(id, vec![MeasuredFigure { name: None, value }], note)
    }

    fn several(&self, id: &'static str, ours: Vec<MeasuredFigure>, note: &str) -> Finding {
        Finding {
            grounds: Grounds::default(),
            id,
            mode: None,
            ours,
            shape: None,
            note: format!(
                "synthetic loads, seed {}; {}; {note}",
                self.runs.seed, self.coordinators[0][0]
            ),
        }
    }

    /// The figure of a claim in each of these setups.
    fn beside(
        &self,
        setups: &[ReasonSetup],
        figure: impl Fn(&ReasonSetup) -> Result<f64, Failure>,
    ) -> Result<Vec<OtherSetup>, Failure> {
        let setups = setups.iter();
        let one = |setup: &ReasonSetup| Ok(OtherSetup::one(setup.name, figure(setup)?));
        setups.map(one).collect()
    }

    fn wins(&self) -> Result<Finding, Failure> {
        let finding = self.one(WINS, self.wins_in(&JUDGED)?, &self.by_load()?);
        let setups = [&REASONS[..], &SEEDS[..]].concat();
        let setups = self.beside(&setups, |setup| self.wins_in(setup))?;
        Ok(finding.beside(setups).read_as(IN_PAGES))
    }

    fn mean(&self) -> Result<Finding, Failure> {
        let mean = |setup: &ReasonSetup| Ok(average(&self.gains_in(setup)?));
        let finding = self.one(MEAN, mean(&JUDGED)?, &self.by_load()?);
        let setups = self.beside(&[&REASONS[..], &SEEDS[..]].concat(), mean)?;
        let without = OtherSetup::one(WITHOUT, average(&self.gains_without_artefact()?));
        let finding = finding.beside([without]).beside(setups);
        Ok(finding.read_as(IN_PAGES))
    }

    fn max(&self) -> Result<Finding, Failure> {
        let most = |gains: Vec<f64>| gains.into_iter().fold(f64::MIN, f64::max);
        let max = |setup: &ReasonSetup| Ok(most(self.gains_in(setup)?));
        let best = max(&JUDGED)?;
        let mut name = String::new();
        for case in cases() {
            if self.gain_in(&JUDGED, case)? >= best {
                name = named(case);
            }
        }
        let finding = self.one(MAX, best, &name);
        let without = OtherSetup::one(WITHOUT, most(self.gains_without_artefact()?));
        let finding = finding.beside(self.beside(&REASONS, max)?);
        Ok(finding.beside([without]).read_as(IN_PAGES))
    }

    /// PFC's gains in all cases but those of WebSearch under SARC.
    fn gains_without_artefact(&self) -> Result<Vec<f64>, Failure> {
        let rest = cases().into_iter().filter(|&case| !is_artefact(case));
        rest.map(|case| self.gain_in(&JUDGED, case)).collect()
    }

    fn beats_du(&self) -> Result<Finding, Failure> {
        let share = |setup: &ReasonSetup| self.beats_du_in(setup);
        let note = "DU with each prefetcher, SARC's too";
        let finding = self.one(BEATS_DU, share(&JUDGED)?, note);
        let setups = self.beside(&REASONS, share)?;
        Ok(finding.beside(setups).read_as(IN_PAGES))
    }

    fn table(&self) -> Result<Finding, Failure> {
        let of = |setup: &ReasonSetup| {
            let cells = table_cases().into_iter().map(|case| {
                Ok(MeasuredFigure {
                    name: Some(cell(case)),
                    value: self.gain_in(setup, case)?,
                })
            });
            cells.collect::<Result<Vec<_>, Failure>>()
        };
        let ours = of(&JUDGED)?;
        let bound = self.bound_of_table(&ours)?;
        let finding = self.several(TABLE, ours, "deviations are in the table below");
        let mut setups = Vec::new();
        for setup in &REASONS {
            setups.push(OtherSetup {
                name: setup.name.to_owned(),
                ours: of(setup)?,
                shape: None,
            });
        }
        Ok(finding.beside(setups).bounded(bound).read_as(IN_PAGES))
    }

    fn direction(&self) -> Result<Finding, Failure> {
        let note = "blocks that L2 fetches ahead, readmore included";
        let ours = figures(&self.direction_in(&JUDGED)?);
        let mut finding = self.several(DIRECTION, ours, note);
        for setup in &REASONS {
            let other = OtherSetup::several(setup.name, &self.direction_in(setup)?);
            finding = finding.beside([other]);
        }
        Ok(finding.read_as(IN_PAGES))
    }

    fn hit_ratio(&self) -> Result<Finding, Failure> {
        let shape = |share: f64| ShapeVerdict::of(&[(30.0..=70.0).contains(&share)]);
        let share = self.hit_ratio_in(&JUDGED)?;
        let finding = self.one(HIT_RATIO, share, "percent of the cases");
        let mut finding = finding.shaped(shape(share));
        for setup in &REASONS {
            let share = self.hit_ratio_in(setup)?;
            finding = finding.beside([OtherSetup::one(setup.name, share).shaped(shape(share))]);
        }
        Ok(finding.read_as(IN_PAGES))
    }

    fn actions(&self) -> Result<Finding, Failure> {
        let shape = |of: &BestActions| {
            ShapeVerdict::of(&[2 * of.both > of.others, 2 * of.readmore > of.amp])
        };
        let of = self.actions_in(&JUDGED)?;
        let note = format!(
            "both is the best in {} of {} cases of RA, Linux and SARC; readmore alone beats both in {} of {} of AMP",
            of.both, of.others, of.readmore, of.amp
        );
        let mut finding = self.several(ACTIONS, Vec::new(), &note).shaped(shape(&of));
        for setup in &REASONS {
            let of = self.actions_in(setup)?;
            let counts = [
                ("both_best", f64::from(of.both)),
                ("amp_readmore_best", f64::from(of.readmore)),
            ];
            let other = OtherSetup::several(setup.name, &counts).shaped(shape(&of));
            finding = finding.beside([other]);
        }
        let bound = self.bound_of_actions()?;
        Ok(finding.bounded(bound).read_as(IN_PAGES))
    }

    fn best_case(&self) -> Result<Finding, Failure> {
        let ours = figures(&self.best_case_in(&JUDGED)?);
        let mut finding = self.several(BEST, ours, "blocks on their way count as hits");
        for setup in &REASONS {
            let other = OtherSetup::several(setup.name, &self.best_case_in(setup)?);
            finding = finding.beside([other]);
        }
        let bound = self.bound_of_best_case()?;
        Ok(finding.bounded(bound).read_as(IN_PAGES))
    }

    /// The mean gain of each load.
    fn by_load(&self) -> Result<String, Failure> {
        let mut parts = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            let mut gains = Vec::new();
            for case in cases() {
                if case.0 == Which::Calibrated(at, 1) {
                    gains.push(self.runs.gain(&self.pfc(case))?);
                }
            }
            let better = gains.iter().filter(|&&gain| gain > 0.0).count();
            let mean = gains.iter().sum::<f64>() / gains.len() as f64;
            parts.push(format!(
                "{name} {better} of {}, mean {mean:.1} %",
                gains.len()
            ));
        }
        Ok(parts.join("; "))
    }
}

/// OLTP under RA with L and 100 %.
fn best_case() -> (Which, CachingCase) {
    let case = CachingCase::homogeneous(ALGORITHMS[0], Upper::Low, 100);
    (Which::Calibrated(0, 1), case)
}

fn figures(of: &[(&str, f64)]) -> Vec<MeasuredFigure> {
    OtherSetup::several("", of).ours
}

fn average(gains: &[f64]) -> f64 {
    gains.iter().sum::<f64>() / gains.len() as f64
}

/// The name of a case in reports.
pub fn named((load, case): (Which, CachingCase)) -> String {
    let algorithm = match case.above.name == case.below.name {
        true => case.above.name.to_owned(),
        false => format!("{} over {}", case.above.name, case.below.name),
    };
    let mut text = format!(
        "{}, {algorithm}, {}, {} %",
        load.name(),
        case.upper.name(),
        case.percent
    );
    if case.clients > 1 {
        text.push_str(&format!(", {} clients", case.clients));
    }
    if case.levels > 2 {
        text.push_str(&format!(", {} levels", case.levels));
    }
    text
}

/// The cases of Table 1, in its order.
fn table_cases() -> Vec<(Which, CachingCase)> {
    let mut all = Vec::new();
    for load in 0..NAMES.len() {
        for percent in TABLE_PERCENT {
            for upper in Upper::ALL {
                for name in TABLE_COLUMNS {
                    let algorithm = algorithm(name);
                    let case = CachingCase::homogeneous(algorithm, upper, percent);
                    all.push((Which::Calibrated(load, 1), case));
                }
            }
        }
    }
    all
}

fn algorithm(name: &str) -> Algorithm {
    let found = ALGORITHMS.into_iter().find(|one| one.name == name);
    found.expect("a column of the table is an algorithm")
}

/// The name of a cell of Table 1 in its claim.
fn cell((load, case): (Which, CachingCase)) -> String {
    let (upper, algorithm) = (case.upper.name(), case.below.name);
    format!("{}_{}_{upper}_{algorithm}", load.name(), case.percent)
}

/// The published figure of a cell of Table 1.
///
/// # Errors
/// If the claims lack it.
fn figure_of_cell(case: (Which, CachingCase)) -> Result<Theirs, Failure> {
    let built_in = claims::ALL.iter().find(|paper| paper.name == "pfc");
    let built_in = built_in.ok_or_else(|| Failure::failed("no claims of pfc"))?;
    let paper = built_in.paper().map_err(Failure::failed)?;
    let claim = paper.claim(TABLE);
    let claim = claim.ok_or_else(|| Failure::failed("no claim about Table 1"))?;
    let figure = claim.figure(Some(&cell(case)));
    let figure = figure.ok_or_else(|| Failure::failed("a cell without a figure"))?;
    Ok(figure.theirs)
}

/// The rows and columns of Table 1.
const TABLE_PERCENT: [u64; 2] = [200, 5];
const TABLE_COLUMNS: [&str; 4] = ["amp", "sarc", "ra", "linux"];
