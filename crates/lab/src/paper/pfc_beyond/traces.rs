//! PFC and `adaptive` on genuine traces: the paper's own two apart, larger caches, a replay without times, the other
//! algorithms, and writes that are written.

use simulator::caching::cases::{ALGORITHMS, Algorithm, CachingCase, L2_PERCENT, Upper};

use super::{ADAPTIVE, Cases, GENUINE_TRACES, PFC, PfcBeyond, mean};
use crate::Failure;
use crate::paper::Table;
use crate::paper::finding::Finding;
use crate::paper::grounds::OtherSetup;
use crate::paper::pfc::loads::{GENUINE, Which};
use crate::paper::pfc::served::CachingRun;

/// The prefixes of the paper's own traces are the first of all.
const PAPERS_OWN: usize = 2;

/// Outstanding requests of a replay without times. A choice: more than the clients of the traces' hosts had
/// at the disk, and few enough that no queue grows.
const OUTSTANDING: u32 = 8;

/// Least frames of L2: those of the paper's smallest one, OLTP with L and 5 %
/// (`specs/cache-and-pfc.md`, A13).
const LEAST: u64 = 67;

/// A mean response without coordination above which the recorded times overload the disk, in milliseconds. A
/// choice: fifty times a random read.
const OVERLOADED_MS: f64 = 500.0;

type OtherCase = fn((Which, CachingCase)) -> (Which, CachingCase);

/// The other setups that are run.
pub(super) const OTHERS: [(&str, OtherCase); 6] = [
    ("L2 of at least 67 frames", larger),
    ("8 requests outstanding, times ignored", replayed),
    ("both", |case| larger(replayed(case))),
    ("SARC in place of RA, AMP in place of Linux", sarc_and_amp),
    ("writes through both levels to the disk", written),
    ("writes through both levels; SARC and AMP", |case| {
        written(sarc_and_amp(case))
    }),
];

/// The case with the other two algorithms of the paper.
fn sarc_and_amp((load, case): (Which, CachingCase)) -> (Which, CachingCase) {
    let other = |of: Algorithm| match ALGORITHMS.iter().position(|one| *one == of) {
        Some(at) => ALGORITHMS[(at + 2) % ALGORITHMS.len()],
        None => of,
    };
    let case = CachingCase {
        above: other(case.above),
        below: other(case.below),
        ..case
    };
    (load, case)
}

/// The case with writes that are written.
fn written((load, case): (Which, CachingCase)) -> (Which, CachingCase) {
    match load {
        Which::Genuine(at) => (Which::Written(at), case),
        _ => (load, case),
    }
}

fn larger((load, case): (Which, CachingCase)) -> (Which, CachingCase) {
    (
        load,
        CachingCase {
            least: LEAST,
            ..case
        },
    )
}

fn replayed((load, case): (Which, CachingCase)) -> (Which, CachingCase) {
    match load {
        Which::Genuine(at) => (Which::Replayed(at, OUTSTANDING), case),
        _ => (load, case),
    }
}

/// RA and Linux at both levels, on each prefix.
pub(super) fn genuine() -> Cases {
    let mut all = Vec::new();
    for trace in 0..GENUINE.len() {
        for algorithm in &ALGORITHMS[..2] {
            for upper in Upper::ALL {
                for percent in [L2_PERCENT[0], L2_PERCENT[3]] {
                    let case = CachingCase::homogeneous(*algorithm, upper, percent);
                    all.push((Which::Genuine(trace), case));
                }
            }
        }
    }
    all
}

impl PfcBeyond {
    pub(super) fn genuine(&self) -> Result<Finding, Failure> {
        let all = &self.groups.genuine;
        let mut setups = Vec::new();
        let mut setup = |name: &str, cases: &Cases| {
            setups.push(OtherSetup::several(name, &self.counted(cases)?));
            Ok::<_, Failure>(())
        };
        let own: Cases = all.iter().copied().filter(is_the_paper_s).collect();
        setup("the paper's own two traces", &own)?;
        for (name, other) in OTHERS {
            setup(name, &all.iter().copied().map(other).collect())?;
            let name = format!("the paper's own two traces: {name}");
            setup(&name, &own.iter().copied().map(other).collect())?;
        }
        let mut suited = Cases::new();
        for &case in all {
            suited.push(match self.overloads(case.0)? {
                true => larger(replayed(case)),
                false => larger(case),
            });
        }
        let name = format!(
            "L2 of at least {LEAST} frames; {OUTSTANDING} requests outstanding where the recorded times overload the disk"
        );
        setup(&name, &suited)?;
        let gains = self.gains(&own, PFC)?;
        let improved = gains.iter().filter(|&&gain| gain > 0.0).count();
        let note = format!(
            "genuine traces, {} runs; of the paper's own two pfc improves {improved} of {} runs, by {:.1} % in the \
             mean; adaptive is worst in {}",
            all.len(),
            gains.len(),
            mean(&gains),
            self.worst(all)?
        );
        let finding = Finding {
            note,
            ..self.finding(GENUINE_TRACES, &self.counted(all)?, "")
        };
        Ok(finding.beside(setups))
    }

    /// The figures of the claim.
    fn counted(&self, cases: &Cases) -> Result<[(&'static str, f64); 2], Failure> {
        let gains = self.gains(cases, PFC)?;
        let not_improved = gains.iter().filter(|&&gain| gain <= 0.0).count() as f64;
        Ok([
            ("pfc_not_improved", not_improved),
            ("adaptive_worse", self.worse(cases)?),
        ])
    }

    /// Whether the recorded times overload the disk in some caches, without coordination.
    fn overloads(&self, trace: Which) -> Result<bool, Failure> {
        let mut is_overloaded = false;
        for &(load, case) in &self.groups.genuine {
            if load == trace {
                let alone = self.runs.get(&CachingRun::new(load, case, "none"))?;
                is_overloaded |= alone.mean_ms > OVERLOADED_MS;
            }
        }
        Ok(is_overloaded)
    }

    /// Each trace by itself, in all setups.
    pub(super) fn by_trace(&self) -> Result<Table, Failure> {
        let mut table = Table::new(
            "Genuine traces, 8 runs each (RA and Linux unless SARC and AMP, H and L, 200 and 5 %)",
            &[
                "trace",
                "setup",
                "largest mean ms",
                "pfc improves",
                "pfc, mean gain %",
                "adaptive, mean gain %",
                "adaptive, worst %",
            ],
        );
        let as_recorded: OtherCase = |case| case;
        for (trace, file) in GENUINE.into_iter().enumerate() {
            for (name, other) in [("as recorded", as_recorded)].into_iter().chain(OTHERS) {
                let of_trace = |case: &(Which, CachingCase)| case.0 == Which::Genuine(trace);
                let cases = self.groups.genuine.iter().copied().filter(of_trace);
                let cases: Cases = cases.map(other).collect();
                table.rows.push(self.row(file, name, &cases)?);
            }
        }
        Ok(table)
    }

    fn row(&self, trace: &str, setup: &str, cases: &Cases) -> Result<Vec<String>, Failure> {
        let mut slowest = 0.0f64;
        for &(load, case) in cases {
            let alone = self.runs.get(&CachingRun::new(load, case, "none"))?;
            slowest = slowest.max(alone.mean_ms);
        }
        let pfc = self.gains(cases, PFC)?;
        let adaptive = self.gains(cases, ADAPTIVE)?;
        let improved = pfc.iter().filter(|&&gain| gain > 0.0).count();
        let worst = adaptive.iter().copied().fold(f64::MAX, f64::min);
        Ok(vec![
            trace.to_owned(),
            setup.to_owned(),
            format!("{slowest:.1}"),
            format!("{improved} of {}", pfc.len()),
            format!("{:.1}", mean(&pfc)),
            format!("{:.1}", mean(&adaptive)),
            format!("{worst:.1}"),
        ])
    }
}

fn is_the_paper_s((load, _): &(Which, CachingCase)) -> bool {
    matches!(load, Which::Genuine(at) if *at < PAPERS_OWN)
}
