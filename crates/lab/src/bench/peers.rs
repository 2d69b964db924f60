//! Replays of traces by us and by libCacheSim, in one run: misses, and speed with the reading of the trace.
//!
//! libCacheSim is PyPI's package `libcachesim`, whose loop is C. Its CPU time begins when it opens the trace; that of
//! the interpreter and its imports does not count. Ours begins there, too. Runs alternate, and medians of the rounds
//! are reported.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use crate::cache_curve::{CurveSettings, ReplayCounts, Sampling};
use crate::{Failure, Progress, cpu_time};

mod traces;
mod zipf;

use traces::ObjectTrace;

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct PeersBench {
    /// A Python interpreter with the package `libcachesim`.
    pub python: PathBuf,
    /// Traces of block requests beside the Zipf law.
    pub traces: Vec<PathBuf>,
    /// The policies, by our names; empty: all that both have.
    pub policies: Vec<String>,
    /// Demands of the Zipf law.
    pub demands: u64,
    /// Blocks of the Zipf law.
    pub blocks: u64,
    /// Demands for the curve of lru, over as many blocks; 0: no curve.
    pub curve_demands: u64,
    /// The share of the blocks that is sampled for the second curve.
    pub sample: f64,
    /// Runs of each program, in turns.
    pub rounds: u32,
}

/// What the benchmark measures.
#[derive(Clone, Debug, Serialize)]
pub struct PeersReport {
    /// The other program and its version.
    pub peer: String,
    /// By trace, by size, by policy.
    pub runs: Vec<PeerRun>,
    /// The curve of lru; null without one.
    pub curve: Option<CurveSpeed>,
}

/// A policy on a trace.
#[derive(Clone, Debug, Serialize)]
pub struct PeerRun {
    /// The trace.
    pub trace: String,
    /// Demands for single blocks.
    pub demands: u64,
    /// Different blocks.
    pub blocks: u64,
    /// The size of the cache, in blocks.
    pub capacity: u64,
    /// The policy, by our name.
    pub policy: &'static str,
    /// Our misses.
    pub misses_ours: u64,
    /// Theirs.
    pub misses_theirs: u64,
    /// Blocks that we replay in a second of CPU time, the reading of the trace included: the median.
    pub ours_per_cpu_second: f64,
    /// Theirs, with a hash table for twice the cache's blocks, which is faster than the default.
    pub theirs_per_cpu_second: f64,
    /// The median of the ratios of the pairs.
    pub ratio: f64,
    /// Theirs, with the hash table that the program has by default.
    pub theirs_default_per_cpu_second: f64,
    /// The median of the ratios of these pairs.
    pub ratio_default: f64,
}

/// The miss-ratio curve of lru over a Zipf law.
#[derive(Clone, Debug, Serialize)]
pub struct CurveSpeed {
    /// Demands.
    pub demands: u64,
    /// CPU seconds for the exact curve, the reading of the trace included: the median.
    pub exact_cpu_s: f64,
    /// The share of the blocks in the sample.
    pub sample: f64,
    /// CPU seconds for the sampled curve: the median.
    pub sampled_cpu_s: f64,
    /// The largest difference between the two, in miss ratio.
    pub largest_error: f64,
}

/// A policy that both programs have.
struct SharedPolicy {
    ours: &'static str,
    theirs: &'static str,
}

/// All of them. In LIRS the programs differ: libCacheSim bounds the whole stack at twice the cache, where ours bounds
/// the remembered blocks. It also demotes a low block when a hit finds its block in the queue only.
const SHARED: [SharedPolicy; 6] = [
    SharedPolicy {
        ours: "lru",
        theirs: "LRU",
    },
    SharedPolicy {
        ours: "fifo",
        theirs: "FIFO",
    },
    SharedPolicy {
        ours: "arc",
        theirs: "ARC",
    },
    SharedPolicy {
        ours: "s3-fifo(fill=main)",
        theirs: "S3FIFO",
    },
    SharedPolicy {
        ours: "sieve",
        theirs: "Sieve",
    },
    SharedPolicy {
        ours: "lirs",
        theirs: "LIRS",
    },
];

impl SharedPolicy {
    /// Our name, without parameters.
    fn name(&self) -> &'static str {
        self.ours.split('(').next().unwrap_or(self.ours)
    }
}

/// Sizes of caches: the trace's blocks over these numbers.
const DIVISORS: [u64; 2] = [10, 100];

impl PeersBench {
    /// Writes the traces, and runs both programs on them. The progress counts runs.
    ///
    /// # Errors
    /// If a policy is unknown, a trace cannot be read, or the other program does not run.
    pub fn run(&self, progress: &dyn Progress) -> Result<PeersReport, Failure> {
        let shared = self.shared()?;
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let peer = self.version()?;
        let traces = self.written(folder.path(), progress)?;
        let cases = traces.len() * DIVISORS.len() * shared.len();
        progress.expect(cases as u64 * u64::from(self.rounds) * 2);
        let mut runs = Vec::with_capacity(cases);
        for trace in &traces {
            progress.begin(&trace.name);
            for divisor in DIVISORS {
                for policy in &shared {
                    runs.push(self.compared(trace, trace.capacity(divisor), policy, progress)?);
                }
            }
        }
        progress.begin("curve of lru");
        let curve = match self.curve_demands {
            0 => None,
            _ => Some(self.curve(folder.path(), progress)?),
        };
        Ok(PeersReport { peer, runs, curve })
    }

    fn shared(&self) -> Result<Vec<&'static SharedPolicy>, Failure> {
        if self.policies.is_empty() {
            return Ok(SHARED.iter().collect());
        }
        let named = self.policies.iter().map(|name| {
            let known = SHARED.iter().find(|shared| shared.name() == name);
            known.ok_or_else(|| {
                let names: Vec<&str> = SHARED.iter().map(SharedPolicy::name).collect();
                Failure::unknown("policy of both programs", name, &names)
            })
        });
        named.collect()
    }

    /// The name and the version of the package.
    fn version(&self) -> Result<String, Failure> {
        let script = "import libcachesim, importlib.metadata as m; print('libcachesim', m.version('libcachesim'))";
        Ok(self.python(&["-c", script])?.trim().to_owned())
    }

    fn written(&self, folder: &Path, progress: &dyn Progress) -> Result<Vec<ObjectTrace>, Failure> {
        let zipf = zipf::demands(self.demands as usize, self.blocks);
        let name = format!("zipf of {} blocks", self.blocks);
        let mut traces = vec![ObjectTrace::write(name, &zipf, folder)?];
        for path in &self.traces {
            traces.push(ObjectTrace::convert(path, folder, progress)?);
        }
        Ok(traces)
    }

    /// Runs both programs in turns.
    fn compared(
        &self,
        trace: &ObjectTrace,
        capacity: u64,
        policy: &SharedPolicy,
        progress: &dyn Progress,
    ) -> Result<PeerRun, Failure> {
        let mut pairs = Vec::new();
        let mut misses = (0, 0);
        for _ in 0..self.rounds {
            progress.check()?;
            let their_run = self.theirs(trace, capacity, policy.theirs, HashTable::Fitting)?;
            let default = self.theirs(trace, capacity, policy.theirs, HashTable::Default)?;
            progress.advance(1);
            let our_run = ours_once(trace, capacity, policy.ours)?;
            progress.advance(1);
            misses = (our_run.misses, their_run.misses);
            pairs.push([our_run.cpu_s, their_run.cpu_s, default.cpu_s]);
        }
        let rate = |which: usize| {
            let each = pairs
                .iter()
                .map(|times| trace.demands as f64 / times[which]);
            median(each.collect())
        };
        let ratio =
            |which: usize| median(pairs.iter().map(|times| times[which] / times[0]).collect());
        Ok(PeerRun {
            trace: trace.name.clone(),
            demands: trace.demands,
            blocks: trace.blocks,
            capacity,
            policy: policy.ours,
            misses_ours: misses.0,
            misses_theirs: misses.1,
            ours_per_cpu_second: rate(0),
            theirs_per_cpu_second: rate(1),
            ratio: ratio(1),
            theirs_default_per_cpu_second: rate(2),
            ratio_default: ratio(2),
        })
    }

    fn theirs(
        &self,
        trace: &ObjectTrace,
        capacity: u64,
        policy: &str,
        table: HashTable,
    ) -> Result<OneRun, Failure> {
        let power = match table {
            HashTable::Fitting => (2 * capacity)
                .next_power_of_two()
                .trailing_zeros()
                .to_string(),
            HashTable::Default => "default".to_owned(),
        };
        let path = trace.path.display().to_string();
        let capacity = capacity.to_string();
        let script = include_str!("peers/one_run.py");
        let printed = self.python(&["-c", script, &path, policy, &capacity, &power])?;
        let mut numbers = printed
            .split_whitespace()
            .map(|word| word.parse::<f64>().ok());
        let (Some(Some(ratio)), Some(Some(cpu_s))) = (numbers.next(), numbers.next()) else {
            return Err(Failure::failed(format!(
                "libcachesim printed {printed:?}: expected a miss ratio and seconds"
            )));
        };
        Ok(OneRun {
            misses: (ratio * trace.demands as f64).round() as u64,
            cpu_s,
        })
    }

    fn python(&self, arguments: &[&str]) -> Result<String, Failure> {
        let python = self.python.display();
        let output = Command::new(&self.python).args(arguments).output();
        let output = output.map_err(|error| {
            Failure::input(format!(
                "--libcachesim {python}: {error}: expected a Python interpreter"
            ))
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("no message");
            return Err(Failure::input(format!(
                "--libcachesim {python}: {last}: expected an interpreter after `pip install libcachesim`"
            )));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The curve of lru, exact and sampled.
    fn curve(&self, folder: &Path, progress: &dyn Progress) -> Result<CurveSpeed, Failure> {
        let zipf = zipf::demands(self.curve_demands as usize, self.blocks);
        let trace = ObjectTrace::write("curve".to_owned(), &zipf, folder)?;
        drop(zipf);
        let (mut exact, mut sampled) = (Vec::new(), Vec::new());
        let mut largest_error = 0.0f64;
        for _ in 0..self.rounds {
            progress.check()?;
            let whole = timed_curve(&trace, Sampling::WHOLE, &mut exact)?;
            let part = timed_curve(&trace, Sampling::of(self.sample)?, &mut sampled)?;
            largest_error = whole
                .iter()
                .zip(&part)
                .map(|(whole, part)| (whole - part).abs())
                .fold(0.0, f64::max);
        }
        Ok(CurveSpeed {
            demands: self.curve_demands,
            exact_cpu_s: median(exact),
            sample: self.sample,
            sampled_cpu_s: median(sampled),
            largest_error,
        })
    }
}

/// The hash table of libCacheSim.
#[derive(Clone, Copy)]
enum HashTable {
    /// Slots for twice the cache's blocks.
    Fitting,
    /// 2^24 slots.
    Default,
}

/// A run of one program.
struct OneRun {
    misses: u64,
    cpu_s: f64,
}

fn ours_once(trace: &ObjectTrace, capacity: u64, policy: &str) -> Result<OneRun, Failure> {
    let begin = cpu_time();
    let ReplayCounts { demands, misses } = ReplayCounts::of(&trace.path, policy, capacity)?;
    let cpu_s = seconds(cpu_time().saturating_sub(begin));
    match demands == trace.demands {
        true => Ok(OneRun { misses, cpu_s }),
        false => Err(Failure::failed(format!(
            "{}: {demands} demands of {} were read",
            trace.name, trace.demands
        ))),
    }
}

/// The miss ratios of lru at the sizes of the whole trace's curve.
fn timed_curve(
    trace: &ObjectTrace,
    sampling: Sampling,
    times: &mut Vec<f64>,
) -> Result<Vec<f64>, Failure> {
    let settings = CurveSettings {
        trace: trace.path.clone(),
        format: None,
        columns: None,
        skip_bad: false,
        replacement: vec!["lru".to_owned()],
        prefetch: Vec::new(),
        sizes: (0..12).map(|half| (trace.blocks >> half).max(1)).collect(),
        sampling,
    };
    let begin = cpu_time();
    let curves = settings.run(&())?;
    times.push(seconds(cpu_time().saturating_sub(begin)));
    Ok(curves.ratios.iter().map(|point| point.miss_ratio).collect())
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64().max(1e-9)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
