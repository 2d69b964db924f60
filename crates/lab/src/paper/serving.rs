//! Greedy clients beside an urgent one: the run of all claims about preemption.
//!
//! ```text
//!   urgent   '         '         '         '      small reads, at a constant rate or as they come
//!   bulk     |=======|=======|=======|=======|    always waiting, one after the other, anywhere
//! ```

use block::{Direction, Duration};
use rayon::prelude::*;
use scheduler::Preemption;
use simulator::ledger::{CommandFigures, Ledger, ResponseTimes, RunReport, RunTotals};
use simulator::run::Options;
use simulator::workload::{MixedLoad, Mixture};

use super::delivery::Delivery;
use super::scene::{Model, Noise, PaperScene};
use super::{Effort, PaperBench};
use crate::Failure;

/// A run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServingSetup {
    /// The drive.
    pub model: Model,
    /// The delivery of large requests.
    pub delivery: Delivery,
    /// The policy among the greedy requests.
    pub policy: &'static str,
    /// The greedy clients.
    pub bulk: Bulk,
    /// The urgent client.
    pub urgent: Urgent,
    /// The size of an urgent read, in KiB.
    pub urgent_kib: f64,
    /// The length in virtual seconds.
    pub seconds: u32,
    /// The seed of the load.
    pub seed: u32,
}

/// Greedy clients: random requests, always outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// The direction.
    pub direction: Direction,
    /// The size of a request, in KiB.
    pub kib: u32,
    /// The number of clients.
    pub clients: u32,
}

/// The arrival of urgent reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Urgent {
    /// No urgent reads.
    Never,
    /// A constant rate, per second.
    Constant(f64),
    /// Poisson arrivals, with a mean rate per second.
    Poisson(f64),
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct ServedLoad {
    report: RunReport,
    /// The bytes that were read ahead.
    read_ahead: u64,
    /// The number of commands within each step of length, in milliseconds, ascending.
    pub lengths: Vec<(f64, u64)>,
}

/// The results of runs.
#[derive(Debug, Default)]
pub struct Servings {
    all: Vec<(ServingSetup, ServedLoad)>,
}

impl ServingSetup {
    /// The drive, and what its profiler has found of it.
    ///
    /// # Errors
    /// If the drive is not shipped, or cannot be profiled.
    pub fn scene(&self) -> Result<PaperScene, Failure> {
        PaperScene::external(self.model, NOISE)
    }

    /// The load on a drive.
    ///
    /// # Errors
    /// If it does not fit on it.
    pub fn load(&self, scene: &PaperScene) -> Result<MixedLoad, Failure> {
        let mixture = Mixture::parse(self.model.name(), &self.text()).map_err(Failure::failed)?;
        let belief = scene.belief();
        let capacity = belief.geometry.sectors().0;
        MixedLoad::new(&mixture, belief.block_bytes, capacity).map_err(Failure::failed)
    }

    fn text(&self) -> String {
        let Bulk {
            direction,
            kib,
            clients,
        } = self.bulk;
        let reads = match direction {
            Direction::Read => 1,
            Direction::Write => 0,
        };
        let anywhere = "[part.placement]\nkind = \"uniform\"\nalign_kib = 4\n";
        let urgent = |rate: f64, gaps: &str| {
            format!(
                "[[part]]\nname = \"urgent\"\nclass = \"foreground\"\n[part.arrivals]\nmodel = \"open\"\n\
                 per_second = {rate}\ngaps = \"{gaps}\"\n[part.size]\nkind = \"fixed\"\nkib = {}\n{anywhere}",
                self.urgent_kib
            )
        };
        let urgent = match self.urgent {
            Urgent::Never => String::new(),
            Urgent::Constant(rate) => urgent(rate, "constant"),
            Urgent::Poisson(rate) => urgent(rate, "exponential"),
        };
        format!(
            "name = \"served\"\nseed = {}\n[[part]]\nname = \"bulk\"\nread_fraction = {reads}\n\
             [part.arrivals]\nmodel = \"closed\"\ntasks = {clients}\n[part.size]\nkind = \"fixed\"\n\
             kib = {kib}\n{anywhere}{urgent}",
            self.seed
        )
    }

    /// The end of a run.
    pub fn options(&self, effort: Effort) -> Options {
        let seconds = match effort {
            Effort::Full => self.seconds,
            Effort::Quick => (self.seconds / 10).max(1),
            Effort::Requests(requests) => {
                return Options {
                    requests: Some(requests),
                    ..Options::default()
                };
            }
        };
        let until = block::Instant::ZERO + Duration::from_secs(u64::from(seconds));
        Options {
            until: Some(until),
            ..Options::default()
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// If the drive is not shipped or cannot be profiled, or the load does not fit on it.
    pub fn run(&self, effort: Effort) -> Result<ServedLoad, Failure> {
        let scene = self.scene()?;
        let mut scenario = scene.scenario(self.policy)?;
        scenario.limits.commands_at_drive = self.delivery.at_drive();
        scenario.preemption = self.rules(&scene);
        let mut load = self.load(&scene)?;
        let played = scenario.play(&mut load, &self.options(effort), &mut ());
        let played = played.map_err(Failure::failed)?;
        let ahead = played.preempted.read_ahead.0 * u64::from(scene.belief().block_bytes);
        Ok(ServedLoad::new(&played.ledger, &played.ran, ahead))
    }

    /// The rules of preemption; `None` for whole requests.
    pub fn rules(&self, scene: &PaperScene) -> Option<Preemption> {
        self.delivery.rules(scene.belief())
    }
}

impl ServedLoad {
    /// Creates the results of a run with this many bytes of read-ahead.
    pub fn new(ledger: &Ledger, ran: &RunTotals, read_ahead: u64) -> ServedLoad {
        let mut lengths: Vec<(f64, u64)> = Vec::new();
        for (length, count) in ledger.command_distribution() {
            let upto = (length.as_millis_f64() / LENGTHS).ceil() * LENGTHS;
            match lengths.last_mut() {
                Some((last, sum)) if *last >= upto => *sum += count,
                _ => lengths.push((upto, count)),
            }
        }
        ServedLoad {
            report: ledger.report(ran),
            read_ahead,
            lengths,
        }
    }

    /// The figures of the commands.
    pub fn commands(&self) -> Result<&CommandFigures, Failure> {
        let commands = self.report.commands.as_ref();
        commands.ok_or_else(|| Failure::failed("a run without commands"))
    }

    /// The expected wait of an arrival, in milliseconds.
    pub fn wait(&self) -> Result<f64, Failure> {
        Ok(self.commands()?.expected_wait_ms)
    }

    /// The rate of the greedy clients, in MB/s.
    pub fn rate(&self) -> f64 {
        let bulk = self.report.parts.first();
        bulk.map_or(f64::NAN, |bulk| bulk.megabytes_per_second)
    }

    /// The rate of the greedy clients including read-ahead, in MB/s.
    pub fn rate_with_read_ahead(&self) -> f64 {
        self.rate() + self.read_ahead as f64 / self.report.span_ms / 1e3
    }

    /// The response times of the urgent requests.
    pub fn response(&self) -> Result<&ResponseTimes, Failure> {
        let urgent = self.report.parts.get(1);
        let response = urgent.and_then(|urgent| urgent.side.response.as_ref());
        response.ok_or_else(|| Failure::failed("a run without urgent requests"))
    }

    /// The number of requests that ended with an error.
    pub fn errors(&self) -> u64 {
        self.report.all.errors
    }
}

impl Servings {
    /// Runs each of them once, on all cores.
    ///
    /// # Errors
    /// If one of them cannot be run.
    pub fn of(
        bench: &PaperBench,
        servings: impl IntoIterator<Item = ServingSetup>,
    ) -> Result<Servings, Failure> {
        let mut new: Vec<ServingSetup> = Vec::new();
        for serving in servings {
            if !new.contains(&serving) {
                new.push(serving);
            }
        }
        bench.expect(new.len());
        let run = |serving: ServingSetup| {
            let served = serving.run(bench.effort)?;
            bench.done();
            Ok((serving, served))
        };
        let all: Result<Vec<_>, Failure> = new.into_par_iter().map(run).collect();
        Ok(Servings { all: all? })
    }

    /// What a run came to.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn get(&self, serving: &ServingSetup) -> Result<&ServedLoad, Failure> {
        let found = self.all.iter().find(|(other, _)| other == serving);
        let found = found.ok_or_else(|| Failure::failed(format!("not run: {serving:?}")));
        found.map(|(_, served)| served)
    }
}

/// The paper's urgent reads: one block of 512 bytes (Dimitrijevic, Rangaswami, Chang, FAST 2003, section 4, which
/// has the same drive and rates).
pub const ONE_BLOCK_KIB: f64 = 0.5;

/// The urgent reads of our own goals: a page.
pub const PAGE_KIB: f64 = 4.0;

/// Noise of seek times: that of our goals for free blocks. A choice.
pub const NOISE: Noise = Noise::sigma(Duration::from_micros(60));

/// The seed of the loads of single runs. A choice.
pub const SEED: u32 = 1;

/// Step of the commands' lengths, in milliseconds: a tenth of a pixel of a plot.
const LENGTHS: f64 = 0.05;
