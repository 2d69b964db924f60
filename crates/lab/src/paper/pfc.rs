//! Coordinated prefetching in two cache levels: PFC to the letter in 96 cases, on calibrated loads.

use simulator::caching::cases::{ALGORITHMS, Algorithm, CachingCase, L2_PERCENT, Upper};

use super::finding::{Finding, MeasuredFigure, ShapeVerdict};
use super::grounds::{Grounds, OtherSetup};
use super::{Measurement, MeasurementOutcome, PaperBench};
use crate::Failure;
use loads::{NAMES, Which};
use served::{CachingRun, CachingRuns};

mod combinations;
mod drawn;
pub mod loads;
mod sensitivity;
pub mod served;
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
    /// PFC in the chosen reading, then bypass alone, then readmore alone.
    readings: [String; 3],
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
fn pfc(readings: &str, more: &str) -> String {
    let parts: Vec<&str> = [readings, more]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    format!("pfc({})", parts.join(","))
}

impl PfcPaper {
    fn of(bench: &PaperBench) -> Result<PfcPaper, Failure> {
        let readings = ["", "actions=bypass", "actions=readmore"];
        let readings = readings.map(|more| pfc(bench.readings, more));
        let mut wanted = Vec::new();
        for (load, case) in cases() {
            let others = ["none", "du"].into_iter();
            for coordinator in others.chain(readings.iter().map(String::as_str)) {
                wanted.push(CachingRun::new(load, case, coordinator));
            }
            let (load, case) = in_tracks((load, case));
            for coordinator in ["none", "du", &readings[0]] {
                wanted.push(CachingRun::new(load, case, coordinator));
            }
        }
        for (_, other) in OTHERS {
            for case in cases() {
                let (load, case) = other(case);
                for coordinator in ["none", &readings[0]] {
                    wanted.push(CachingRun::new(load, case, coordinator));
                }
            }
        }
        let mut runs = CachingRuns::of(bench, 1, wanted)?;
        if loads::are_lent(bench)? {
            // To stand beside what is calibrated on them.
            runs.also(bench, &[Which::Genuine(0), Which::Genuine(1)])?;
        }
        Ok(PfcPaper { runs, readings })
    }

    fn pfc(&self, (load, case): (Which, CachingCase)) -> CachingRun {
        CachingRun::new(load, case, &self.readings[0])
    }

    /// PFC's gains in all cases.
    fn gains(&self) -> Result<Vec<f64>, Failure> {
        let gain = |case| self.runs.gain(&self.pfc(case));
        cases().into_iter().map(gain).collect()
    }

    /// The number of cases with a property.
    fn count(
        &self,
        mut is_so: impl FnMut((Which, CachingCase)) -> Result<bool, Failure>,
    ) -> Result<f64, Failure> {
        let mut count = 0;
        for case in cases() {
            count += u32::from(is_so(case)?);
        }
        Ok(f64::from(count))
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
            note: format!("synthetic loads, seed 2; {}; {note}", self.readings[0]),
        }
    }

    fn wins(&self) -> Result<Finding, Failure> {
        let wins = self.count(|case| Ok(self.runs.gain(&self.pfc(case))? > 0.0))?;
        let tracks = self.count(|case| Ok(self.runs.gain(&self.pfc(in_tracks(case)))? > 0.0))?;
        let mut setups = vec![OtherSetup::one(IN_TRACKS, tracks)];
        for (name, other) in OTHERS {
            let wins = self.count(|case| Ok(self.runs.gain(&self.pfc(other(case)))? > 0.0))?;
            setups.push(OtherSetup::one(name, wins));
        }
        let finding = self.one(WINS, wins, &self.by_load()?);
        Ok(finding.beside(setups).read_as(IN_PAGES))
    }

    fn mean(&self) -> Result<Finding, Failure> {
        let finding = self.one(MEAN, average(&self.gains()?), &self.by_load()?);
        let mut rest = Vec::new();
        for case in cases() {
            if !is_artefact(case) {
                rest.push(self.runs.gain(&self.pfc(case))?);
            }
        }
        let mut setups = vec![
            OtherSetup::one(IN_TRACKS, average(&self.gains_in_tracks()?)),
            OtherSetup::one(WITHOUT, average(&rest)),
        ];
        for (name, other) in OTHERS {
            let gain = |case| self.runs.gain(&self.pfc(other(case)));
            let gains: Result<Vec<f64>, Failure> = cases().into_iter().map(gain).collect();
            setups.push(OtherSetup::one(name, average(&gains?)));
        }
        Ok(finding.beside(setups).read_as(IN_PAGES))
    }

    fn max(&self) -> Result<Finding, Failure> {
        let mut best = (f64::MIN, String::new());
        let mut rest = f64::MIN;
        for case in cases() {
            let gain = self.runs.gain(&self.pfc(case))?;
            if gain > best.0 {
                best = (gain, named(case));
            }
            if !is_artefact(case) {
                rest = rest.max(gain);
            }
        }
        let tracks = self.gains_in_tracks()?.into_iter().fold(f64::MIN, f64::max);
        let setups = [
            OtherSetup::one(IN_TRACKS, tracks),
            OtherSetup::one(WITHOUT, rest),
        ];
        let finding = self.one(MAX, best.0, &best.1);
        Ok(finding.beside(setups).read_as(IN_PAGES))
    }

    /// PFC's gains in all cases, with SARC in tracks.
    fn gains_in_tracks(&self) -> Result<Vec<f64>, Failure> {
        let gain = |case| self.runs.gain(&self.pfc(in_tracks(case)));
        cases().into_iter().map(gain).collect()
    }

    fn beats_du(&self) -> Result<Finding, Failure> {
        let beats = |(load, case)| {
            let du = self.runs.gain(&CachingRun::new(load, case, "du"))?;
            Ok(self.runs.gain(&self.pfc((load, case)))? > du)
        };
        let share = |beaten: f64| 100.0 * beaten / cases().len() as f64;
        let finding = self.one(
            BEATS_DU,
            share(self.count(beats)?),
            "DU with each prefetcher, SARC's too",
        );
        let tracks = share(self.count(|case| beats(in_tracks(case)))?);
        Ok(finding
            .beside([OtherSetup::one(IN_TRACKS, tracks)])
            .read_as(IN_PAGES))
    }

    fn table(&self) -> Result<Finding, Failure> {
        let of = |setup: fn((Which, CachingCase)) -> (Which, CachingCase)| {
            let cells = table_cases().into_iter().map(|case| {
                Ok(MeasuredFigure {
                    name: Some(cell(case)),
                    value: self.runs.gain(&self.pfc(setup(case)))?,
                })
            });
            cells.collect::<Result<Vec<_>, Failure>>()
        };
        let finding = self.several(TABLE, of(|case| case)?, "deviations are in the table below");
        let setup = |name: &str, ours| OtherSetup {
            name: name.to_owned(),
            ours,
            shape: None,
        };
        let setups = [
            setup(IN_TRACKS, of(in_tracks)?),
            setup(KNOWN_ENDS, of(known_ends)?),
        ];
        Ok(finding.beside(setups).read_as(IN_PAGES))
    }

    fn direction(&self) -> Result<Finding, Failure> {
        let ahead = |run: &CachingRun| Ok::<_, Failure>(self.runs.get(run)?.ahead);
        let both = |case| {
            let pfc = self.pfc(case);
            Ok::<_, Failure>((ahead(&pfc)?, ahead(&pfc.alone())?))
        };
        let figure = |name: &str, value| MeasuredFigure {
            name: Some(name.to_owned()),
            value,
        };
        let faster = self.count(|case| both(case).map(|(with, without)| with > without))?;
        let slower = self.count(|case| both(case).map(|(with, without)| with < without))?;
        let ours = vec![figure("faster", faster), figure("slower", slower)];
        Ok(self.several(
            DIRECTION,
            ours,
            "blocks that L2 fetches ahead, readmore included",
        ))
    }

    fn hit_ratio(&self) -> Result<Finding, Failure> {
        let falls = self.count(|case| {
            let pfc = self.pfc(case);
            let (with, without) = (self.runs.get(&pfc)?, self.runs.get(&pfc.alone())?);
            Ok(with.hit_ratio < without.hit_ratio && with.mean_ms < without.mean_ms)
        })?;
        let share = 100.0 * falls / cases().len() as f64;
        let is_half = (30.0..=70.0).contains(&share);
        let finding = self.one(HIT_RATIO, share, "percent of the cases");
        Ok(finding.shaped(ShapeVerdict::of(&[is_half])))
    }

    fn actions(&self) -> Result<Finding, Failure> {
        let (mut best, mut others, mut readmore, mut amp) = (0, 0, 0, 0);
        for (load, case) in cases() {
            let gain =
                |coordinator: &String| self.runs.gain(&CachingRun::new(load, case, coordinator));
            let [both, bypass, more] = &self.readings;
            let (both, bypass, more) = (gain(both)?, gain(bypass)?, gain(more)?);
            if case.below.name == "amp" {
                amp += 1;
                readmore += u32::from(more > both);
            } else {
                others += 1;
                best += u32::from(both >= bypass && both >= more);
            }
        }
        let note = format!(
            "both is the best in {best} of {others} cases of RA, Linux and SARC; readmore alone beats both in {readmore} of {amp} of AMP"
        );
        let is_so = ShapeVerdict::of(&[2 * best > others, 2 * readmore > amp]);
        Ok(self.several(ACTIONS, Vec::new(), &note).shaped(is_so))
    }

    fn best_case(&self) -> Result<Finding, Failure> {
        let case = (
            Which::Calibrated(0, 1),
            CachingCase::homogeneous(ALGORITHMS[0], Upper::Low, 100),
        );
        let pfc = self.pfc(case);
        let without = self.runs.get(&pfc.alone())?.hit_ratio;
        let with = self.runs.get(&pfc)?.hit_ratio;
        let figure = |name: &str, value| MeasuredFigure {
            name: Some(name.to_owned()),
            value,
        };
        let ours = vec![
            figure("hit_ratio_percent", 100.0 * without),
            figure("hit_ratio_rise_percent", 100.0 * (with / without - 1.0)),
            figure("gain_percent", self.runs.gain(&pfc)?),
        ];
        Ok(self.several(BEST, ours, "blocks on their way count as hits"))
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

/// The case with SARC in tracks of eight pages, the unit of its paper.
pub fn in_tracks((load, case): (Which, CachingCase)) -> (Which, CachingCase) {
    let tracks = |of: Algorithm| match of.name {
        "sarc" => SARC_IN_TRACKS,
        _ => of,
    };
    let case = CachingCase {
        above: tracks(case.above),
        below: tracks(case.below),
        ..case
    };
    (load, case)
}

/// The case with ends of files that all levels know.
fn known_ends((load, case): (Which, CachingCase)) -> (Which, CachingCase) {
    match load {
        Which::Calibrated(at, 1) => (Which::KnownEnds(at), case),
        _ => (load, case),
    }
}

/// The case with the load of a seed that chose nothing.
fn seeded<const SEED: u64>((load, case): (Which, CachingCase)) -> (Which, CachingCase) {
    match load {
        Which::Calibrated(at, 1) => (Which::Seeded(at, SEED), case),
        _ => (load, case),
    }
}

/// Whether SARC in pages overloads the disk: every cold read of two blocks is sequential to it.
pub fn is_artefact((load, case): (Which, CachingCase)) -> bool {
    load == Which::Calibrated(1, 1) && case.below.name == "sarc"
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

/// The rows and columns of Table 1.
const TABLE_PERCENT: [u64; 2] = [200, 5];
const TABLE_COLUMNS: [&str; 4] = ["amp", "sarc", "ra", "linux"];

/// SARC with a group of as many pages as before, eight, which are one track (Gill, Modha, USENIX ATC
/// 2005: tracks of eight pages).
const SARC_IN_TRACKS: Algorithm = Algorithm {
    name: "sarc",
    prefetcher: "sarc(p=1,g=0,track=8)",
    replacement: "sarc",
};

/// The reading of claims about all cases, and two others.
pub const IN_PAGES: &str = "SARC counts pages, so that every cold read of two blocks is sequential; L1 alone knows where Multi's \
                            files end";
pub const IN_TRACKS: &str = "SARC counts tracks of eight pages, as in its paper";
pub const WITHOUT: &str = "without the eight cases of WebSearch under SARC";
const KNOWN_ENDS: &str = "L2 knows where Multi's files end, too";

/// Changes the load or the caches of a case.
type OtherCase = fn((Which, CachingCase)) -> (Which, CachingCase);

/// Other setups of all cases. The two seeds chose nothing: no generator and no parameter was set with them.
const OTHERS: [(&str, OtherCase); 3] = [
    (KNOWN_ENDS, known_ends),
    ("seed 4, which chose nothing", seeded::<4>),
    ("seed 5, which chose nothing", seeded::<5>),
];
