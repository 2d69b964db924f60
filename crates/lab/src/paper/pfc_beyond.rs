//! The coordinator `adaptive` beyond PFC: never worse than no coordination, and better than DU and
//! PFC in most cases.
//!
//! `adaptive` was developed with seed 1 of the calibrated loads and the genuine prefixes. The
//! results use seed 2 unless another one is asked for.

use simulator::caching::cases::{ALGORITHMS, CachingCase, Upper};

use super::finding::{Finding, MeasuredFigure};
use super::grounds::{Grounds, OtherSetup};
use super::pfc::loads::{self, NAMES, Which};
use super::pfc::served::{CachingRun, CachingRuns, ServedCase};
use super::pfc::{
    COMBINATION, COMBINED, IN_PAGES, IN_TRACKS, SEED_6, SEED_7, WITHOUT, cases, in_tracks,
    is_artefact, named, pfc, seeded,
};
use super::{Measurement, MeasurementOutcome, PaperBench, Table};
use crate::Failure;

pub mod free_blocks;
mod traces;

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "coordination beyond PFC",
    claims: &[LITERAL, GENUINE_TRACES, NEVER_WORSE, GAIN, BEATS, TAILS],
    run,
};

const LITERAL: &str = "pfc-beyond.literal";
const GENUINE_TRACES: &str = "pfc-beyond.genuine";
const NEVER_WORSE: &str = "pfc-beyond.never-worse";
const GAIN: &str = "pfc-beyond.gain";
const BEATS: &str = "pfc-beyond.beats";
const TAILS: &str = "pfc-beyond.tails";

const PFC: &str = "pfc";
const ADAPTIVE: &str = "adaptive";

/// Smallest loss that counts as worse, in percent: the goal's.
const WORSE: f64 = 1.0;

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let groups = Groups::all(loads::are_lent(bench)?);
    let runs = CachingRuns::of(bench, 1, groups.runs())?;
    let beyond = PfcBeyond { groups, runs };
    let mut findings = vec![
        beyond.literal()?,
        beyond.never_worse()?,
        beyond.gain()?,
        beyond.beats()?,
        beyond.tails()?,
    ];
    let mut tables = vec![beyond.homogeneous()?, beyond.others()?];
    if !beyond.groups.genuine.is_empty() {
        findings.push(beyond.genuine()?);
        tables.push(beyond.by_trace()?);
    }
    Ok(MeasurementOutcome {
        findings,
        tables,
        ..MeasurementOutcome::default()
    })
}

type Cases = Vec<(Which, CachingCase)>;

/// All cases, by arrangement.
struct Groups {
    homogeneous: Cases,
    heterogeneous: Cases,
    clients: Cases,
    levels: Cases,
    genuine: Cases,
}

struct PfcBeyond {
    groups: Groups,
    runs: CachingRuns,
}

impl Groups {
    fn all(are_lent: bool) -> Groups {
        let mut groups = Groups {
            homogeneous: cases(),
            heterogeneous: Vec::new(),
            clients: Vec::new(),
            levels: Vec::new(),
            genuine: Vec::new(),
        };
        for load in 0..NAMES.len() {
            let alone = Which::Calibrated(load, 1);
            for above in ALGORITHMS {
                let case = CachingCase::homogeneous(above, Upper::Low, 100);
                groups
                    .levels
                    .push((alone, CachingCase { levels: 3, ..case }));
                for below in ALGORITHMS {
                    groups
                        .heterogeneous
                        .push((alone, CachingCase { below, ..case }));
                }
                for clients in [4, 16] {
                    let which = Which::Calibrated(load, clients);
                    groups
                        .clients
                        .push((which, CachingCase { clients, ..case }));
                }
            }
        }
        if are_lent {
            groups.genuine = traces::genuine();
        }
        groups
    }

    /// The groups of synthetic loads.
    fn synthetic(&self) -> [&Cases; 4] {
        [
            &self.homogeneous,
            &self.heterogeneous,
            &self.clients,
            &self.levels,
        ]
    }

    /// The homogeneous cases with SARC in tracks.
    fn in_tracks(&self) -> Cases {
        changed(&self.homogeneous, in_tracks)
    }

    /// The homogeneous cases without those in which SARC in pages overloads the disk.
    fn without_artefact(&self) -> Cases {
        let rest = self.homogeneous.iter().copied();
        rest.filter(|&case| !is_artefact(case)).collect()
    }

    fn runs(&self) -> Vec<CachingRun> {
        let mut runs = Vec::new();
        let mut add = |cases: &Cases, coordinators: &[&str]| {
            for &(load, case) in cases {
                runs.extend(
                    coordinators
                        .iter()
                        .map(|name| CachingRun::new(load, case, name)),
                );
            }
        };
        add(&self.homogeneous, &["none", "du", PFC, ADAPTIVE]);
        add(&self.homogeneous, &[&pfc(COMBINATION, "")]);
        add(&self.in_tracks(), &["none", PFC, ADAPTIVE]);
        for (_, other) in OTHER_CASES {
            for group in self.synthetic() {
                add(&changed(group, other), &["none", ADAPTIVE]);
            }
        }
        for others in [
            &self.heterogeneous,
            &self.clients,
            &self.levels,
            &self.genuine,
        ] {
            add(others, &["none", PFC, ADAPTIVE]);
        }
        for (_, other) in traces::OTHERS {
            let others = self.genuine.iter().copied().map(other).collect();
            add(&others, &["none", PFC, ADAPTIVE]);
        }
        runs
    }
}

impl PfcBeyond {
    fn gains(&self, cases: &Cases, coordinator: &str) -> Result<Vec<f64>, Failure> {
        let gain = |&(load, case): &(Which, CachingCase)| {
            self.runs.gain(&CachingRun::new(load, case, coordinator))
        };
        cases.iter().map(gain).collect()
    }

    fn worse(&self, cases: &Cases) -> Result<f64, Failure> {
        let gains = self.gains(cases, ADAPTIVE)?;
        Ok(gains.iter().filter(|&&gain| gain < -WORSE).count() as f64)
    }

    /// The case with the smallest gain of `adaptive`.
    fn worst(&self, cases: &Cases) -> Result<String, Failure> {
        let mut worst = (f64::MAX, String::new());
        for &(load, case) in cases {
            let gain = self.runs.gain(&CachingRun::new(load, case, ADAPTIVE))?;
            if gain < worst.0 {
                worst = (gain, named((load, case)));
            }
        }
        Ok(format!("{}: {:.2} %", worst.1, worst.0))
    }

    fn finding(&self, id: &'static str, ours: &[(&str, f64)], note: &str) -> Finding {
        let figure = |&(name, value): &(&str, f64)| MeasuredFigure {
            name: Some(name.to_owned()),
            value,
        };
        Finding {
            grounds: Grounds::default(),
            id,
            mode: None,
            ours: ours.iter().map(figure).collect(),
            shape: None,
            note: format!("synthetic loads, seed {}; {note}", self.runs.seed),
        }
    }

    fn literal(&self) -> Result<Finding, Failure> {
        let both = |cases: &Cases, coordinator: &str| {
            let gains = self.gains(cases, coordinator)?;
            let improved = gains.iter().filter(|&&gain| gain > 0.0).count() as f64;
            Ok::<_, Failure>([("improved", improved), ("mean_gain_percent", mean(&gains))])
        };
        let groups = &self.groups;
        let ours = both(&groups.homogeneous, PFC)?;
        let combined = both(&groups.homogeneous, &pfc(COMBINATION, ""))?;
        let setups = [
            OtherSetup::several(IN_TRACKS, &both(&groups.in_tracks(), PFC)?),
            OtherSetup::several(WITHOUT, &both(&groups.without_artefact(), PFC)?),
            OtherSetup::several(COMBINED, &combined),
        ];
        let finding = self.finding(LITERAL, &ours, "readings as used");
        Ok(finding.beside(setups).read_as(IN_PAGES))
    }

    fn never_worse(&self) -> Result<Finding, Failure> {
        let groups = &self.groups;
        let worse = |other: OtherCase| {
            let [own, mixed, clients, levels] = groups.synthetic();
            let count = |cases| self.worse(&changed(cases, other));
            Ok::<_, Failure>([
                ("homogeneous", count(own)?),
                ("heterogeneous", count(mixed)?),
                ("clients", count(clients)?),
                ("three_levels", count(levels)?),
            ])
        };
        let ours = worse(|case| case)?;
        let mut setups = Vec::new();
        for (name, other) in OTHER_CASES {
            setups.push(OtherSetup::several(name, &worse(other)?));
        }
        let note = format!(
            "of {}, {}, {} and {} cases; worst: {}; {}; {}; {}",
            groups.homogeneous.len(),
            groups.heterogeneous.len(),
            groups.clients.len(),
            groups.levels.len(),
            self.worst(&groups.homogeneous)?,
            self.worst(&groups.heterogeneous)?,
            self.worst(&groups.clients)?,
            self.worst(&groups.levels)?,
        );
        Ok(self.finding(NEVER_WORSE, &ours, &note).beside(setups))
    }

    fn gain(&self) -> Result<Finding, Failure> {
        let both = |cases: &Cases| {
            let gains = self.gains(cases, ADAPTIVE)?;
            let best = gains.iter().copied().fold(f64::MIN, f64::max);
            Ok::<_, Failure>([("mean_percent", mean(&gains)), ("best_percent", best)])
        };
        let ours = both(&self.groups.homogeneous)?;
        let setups = [
            OtherSetup::several(IN_TRACKS, &both(&self.groups.in_tracks())?),
            OtherSetup::several(WITHOUT, &both(&self.groups.without_artefact())?),
        ];
        let mut parts = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            let of_load = |case: &&(Which, CachingCase)| case.0 == Which::Calibrated(at, 1);
            let some = self.groups.homogeneous.iter().filter(of_load).copied();
            let gains = self.gains(&some.collect(), ADAPTIVE)?;
            parts.push(format!("{name} {:.1} %", mean(&gains)));
        }
        let finding = self.finding(GAIN, &ours, &parts.join(", "));
        Ok(finding.beside(setups).read_as(IN_PAGES))
    }

    fn beats(&self) -> Result<Finding, Failure> {
        let own = self.gains(&self.groups.homogeneous, ADAPTIVE)?;
        let share = |others: Vec<f64>| {
            let pairs = own.iter().zip(&others);
            100.0 * pairs.filter(|(own, other)| own > other).count() as f64 / own.len() as f64
        };
        let du = share(self.gains(&self.groups.homogeneous, "du")?);
        let pfc = share(self.gains(&self.groups.homogeneous, PFC)?);
        let ours = [("du_percent", du), ("pfc_percent", pfc)];
        Ok(self.finding(BEATS, &ours, "the mean response decides"))
    }

    /// The cases in which the 99th percentile, and that of one in a thousand, are worse.
    fn worse_tails(&self, cases: &Cases) -> Result<[(&'static str, f64); 2], Failure> {
        let mut worse = [0.0; 2];
        for &(load, case) in cases {
            let own = self.runs.get(&CachingRun::new(load, case, ADAPTIVE))?;
            let alone = self.runs.get(&CachingRun::new(load, case, "none"))?;
            for (at, worse) in worse.iter_mut().enumerate() {
                let (own, alone) = (own.percentiles_ms[at + 1], alone.percentiles_ms[at + 1]);
                *worse += f64::from(u8::from(own > alone * (1.0 + WORSE / 100.0)));
            }
        }
        Ok([("p99_worse", worse[0]), ("p999_worse", worse[1])])
    }

    fn tails(&self) -> Result<Finding, Failure> {
        let mut sums = [(0u64, 0u64, 0.0); 2];
        for &(load, case) in &self.groups.homogeneous {
            let own = self.runs.get(&CachingRun::new(load, case, ADAPTIVE))?;
            let alone = self.runs.get(&CachingRun::new(load, case, "none"))?;
            for (sum, served) in sums.iter_mut().zip([alone, own]) {
                sum.0 += served.unused;
                sum.1 += served.duplicated;
                sum.2 += served.busy_s;
            }
        }
        let note = format!(
            "without coordination and with adaptive, sums: {} and {} blocks fetched ahead and not used, {} and {} \
             in both caches at the end, disk busy {:.0} and {:.0} s",
            sums[0].0, sums[1].0, sums[0].1, sums[1].1, sums[0].2, sums[1].2
        );
        let mut setups = Vec::new();
        for (name, other) in OTHER_CASES {
            let cases = changed(&self.groups.homogeneous, other);
            setups.push(OtherSetup::several(name, &self.worse_tails(&cases)?));
        }
        let ours = self.worse_tails(&self.groups.homogeneous)?;
        Ok(self.finding(TAILS, &ours, &note).beside(setups))
    }

    /// The 96 cases, one per line.
    fn homogeneous(&self) -> Result<Table, Failure> {
        let mut table = Table::new(
            "The 96 cases: gains in %, then what adaptive does to L2 (without / with)",
            &[
                "case",
                "ms",
                "DU",
                "pfc",
                "adaptive",
                "p99 ms",
                "p99.9 ms",
                "unused",
                "in both caches",
                "disk busy s",
            ],
        );
        for &(load, case) in &self.groups.homogeneous {
            let run = |coordinator| CachingRun::new(load, case, coordinator);
            let (alone, own) = (self.runs.get(&run("none"))?, self.runs.get(&run(ADAPTIVE))?);
            let both = |figure: &dyn Fn(&ServedCase) -> f64, digits: usize| {
                format!("{:.digits$} / {:.digits$}", figure(alone), figure(own))
            };
            table.rows.push(vec![
                named((load, case)),
                format!("{:.2}", alone.mean_ms),
                format!("{:.1}", self.runs.gain(&run("du"))?),
                format!("{:.1}", self.runs.gain(&run(PFC))?),
                format!("{:.1}", self.runs.gain(&run(ADAPTIVE))?),
                both(&|served| served.percentiles_ms[1], 1),
                both(&|served| served.percentiles_ms[2], 1),
                both(&|served| served.unused as f64, 0),
                both(&|served| served.duplicated as f64, 0),
                both(&|served| served.busy_s, 0),
            ]);
        }
        Ok(table)
    }

    /// All other cases.
    fn others(&self) -> Result<Table, Failure> {
        let mut table = Table::new(
            "Other caches, several clients, three levels, genuine traces: gains in %",
            &["case", "ms", "pfc", "adaptive"],
        );
        let groups = &self.groups;
        let others = [
            &groups.heterogeneous,
            &groups.clients,
            &groups.levels,
            &groups.genuine,
        ];
        for &(load, case) in others.into_iter().flatten() {
            let run = |coordinator| CachingRun::new(load, case, coordinator);
            table.rows.push(vec![
                named((load, case)),
                format!("{:.2}", self.runs.get(&run("none"))?.mean_ms),
                format!("{:.1}", self.runs.gain(&run(PFC))?),
                format!("{:.1}", self.runs.gain(&run(ADAPTIVE))?),
            ]);
        }
        Ok(table)
    }
}

/// Changes the load or the caches of a case.
type OtherCase = fn((Which, CachingCase)) -> (Which, CachingCase);

/// The synthetic cases with another unit of SARC, and with other seeds.
const OTHER_CASES: [(&str, OtherCase); 3] = [
    (IN_TRACKS, in_tracks),
    (SEED_6, seeded::<6>),
    (SEED_7, seeded::<7>),
];

/// The same cases, each of them changed.
fn changed(cases: &Cases, other: OtherCase) -> Cases {
    cases.iter().copied().map(other).collect()
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}
