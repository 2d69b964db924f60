//! A drive of 20 TB: urgent reads of 4 KiB beside greedy readers of 1 MiB.

use block::{Direction, Duration};

use super::note;
use super::queue::{QueueHint, by_the_drive};
use crate::paper::delivery::Delivery;
use crate::paper::finding::{Finding, ShapeVerdict};
use crate::paper::grounds::OtherSetup;
use crate::paper::scene::Model;
use crate::paper::serving::{Bulk, PAGE_KIB, SEED, ServedLoad, ServingSetup, Servings, Urgent};
use crate::paper::{Effort, Measurement, MeasurementOutcome, PaperBench};
use crate::{Failure, Label};

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "stepping aside on 20 TB",
    claims: &[DEPTH_1, DEPTH_4, DEPTH_16, BESIDE],
    run,
};

const DEPTH_1: &str = "vio-beyond.20tb.depth-1";
const DEPTH_4: &str = "vio-beyond.20tb.depth-4";
const DEPTH_16: &str = "vio-beyond.20tb.depth-16";
const BESIDE: &str = "vio-beyond.20tb.beside";

/// Who serves: so many greedy readers, in which order, by which way.
#[derive(Clone, Copy)]
struct ModernService {
    clients: u32,
    policy: &'static str,
    delivery: Delivery,
}

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let mut all: Vec<ServingSetup> = Vec::new();
    for service in SERVICES {
        for margin in MARGINS {
            for &seed in seeds(bench.effort) {
                all.extend(RATES.map(|rate| service.on(margin, seed, rate)));
            }
        }
    }
    all.push(FOUR_SSTF.at(Urgent::Poisson(BESIDE_RATE)));
    all.push(FOUR_SINGLE.at(Urgent::Constant(BESIDE_RATE)));
    let servings = Servings::of(bench, all)?;
    let modern = Modern {
        servings: &servings,
        effort: bench.effort,
    };
    Ok(MeasurementOutcome::figures(vec![
        modern.worst(DEPTH_1, &[("p999_ms", ONE), ("split_p999_ms", ONE_SPLIT)])?,
        modern.worst(
            DEPTH_4,
            &[("sptf_p999_ms", FOUR_SPTF), ("sstf_p999_ms", FOUR_SSTF)],
        )?,
        modern.worst(DEPTH_16, &[("sstf_p999_ms", SIXTEEN)])?,
        modern.beside(bench)?,
    ]))
}

impl ModernService {
    /// At a constant rate, on this drive, with this seed of the load.
    fn on(self, model: Model, seed: u32, rate: f64) -> ServingSetup {
        ServingSetup {
            model,
            seed,
            ..self.at(Urgent::Constant(rate))
        }
    }

    fn at(self, urgent: Urgent) -> ServingSetup {
        let rate = match urgent {
            Urgent::Never => 1.0,
            Urgent::Constant(rate) | Urgent::Poisson(rate) => rate,
        };
        ServingSetup {
            model: Model::Modern20tb,
            delivery: self.delivery,
            policy: self.policy,
            bulk: Bulk {
                direction: Direction::Read,
                kib: 1024,
                clients: self.clients,
            },
            urgent,
            urgent_kib: PAGE_KIB,
            seconds: (URGENT_REQUESTS / rate) as u32,
            seed: SEED,
        }
    }
}

/// What the findings are made from.
struct Modern<'a> {
    servings: &'a Servings,
    effort: Effort,
}

impl Modern<'_> {
    /// The worst p99.9 of all rates, of each of the services: the mean of the seeds.
    fn worst(
        &self,
        claim: &'static str,
        named: &[(&'static str, ModernService)],
    ) -> Result<Finding, Failure> {
        let [narrow, wide] = MARGINS;
        let mut ours = Vec::new();
        let mut with_margin = Vec::new();
        let mut said = Vec::new();
        for &(name, service) in named {
            let worst = self.of_seeds(service, narrow)?;
            ours.push((name, mean(&worst)));
            with_margin.push((name, mean(&self.of_seeds(service, wide)?)));
            let each: Vec<String> = worst.iter().map(|worst| format!("{worst:.2}")).collect();
            said.push(format!("{name} by seed: {}", each.join(", ")));
            for rate in RATES {
                let served = self.servings.get(&service.at(Urgent::Constant(rate)))?;
                said.push(format!(
                    "{name} at {rate} Hz, seed 1: {}",
                    described(served)?
                ));
            }
        }
        let first = named.first().map(|(_, service)| *service);
        let first = first.ok_or_else(|| Failure::failed("a claim about no service"))?;
        let serving = first.at(Urgent::Constant(RATES[0]));
        let more = format!(
            "{URGENT_REQUESTS} urgent requests in each run; {}",
            said.join("; ")
        );
        let note = note(serving, self.effort, &more)?;
        let finding = Finding::several(claim, Label::External, &ours, note);
        Ok(finding
            .beside([OtherSetup::several(WIDE, &with_margin)])
            .read_as(READING))
    }

    /// The worst p99.9 of all rates for each seed.
    fn of_seeds(&self, service: ModernService, model: Model) -> Result<Vec<f64>, Failure> {
        let mut all = Vec::new();
        for &seed in seeds(self.effort) {
            let mut worst = 0.0f64;
            for rate in RATES {
                let served = self.servings.get(&service.on(model, seed, rate))?;
                worst = worst.max(served.response()?.p999_ms);
            }
            all.push(worst);
        }
        Ok(all)
    }

    /// Beside the drive's own queue.
    fn beside(&self, bench: &PaperBench) -> Result<Finding, Failure> {
        let serving = FOUR_SSTF.at(Urgent::Constant(BESIDE_RATE));
        let ours = self.servings.get(&serving)?;
        let poisson = self
            .servings
            .get(&FOUR_SSTF.at(Urgent::Poisson(BESIDE_RATE)))?;
        let single = self
            .servings
            .get(&FOUR_SINGLE.at(Urgent::Constant(BESIDE_RATE)))?;
        let mut said = vec![
            format!("ours, shortest seek first: {}", described(ours)?),
            format!("ours, Poisson arrivals: {}", described(poisson)?),
            format!(
                "one command a request, shortest seek first: {}",
                described(single)?
            ),
        ];
        let limit = ours.response()?.p999_ms;
        let mut holds = Vec::new();
        bench.expect(TOLD.len());
        for hint in TOLD {
            let served = by_the_drive(&serving, hint, self.effort)?;
            bench.done();
            holds.push(limit < served.response()?.p999_ms);
            said.push(format!(
                "the drive's own queue, {}: {}, {} ended with an error",
                hint.name(),
                described(&served)?,
                served.errors(),
            ));
        }
        let more = said.join("; ");
        let note = note(serving, self.effort, &more)?;
        let none: [(&str, f64); 0] = [];
        let finding = Finding::several(BESIDE, Label::External, &none, note);
        Ok(finding.shaped(ShapeVerdict::of(&holds)))
    }
}

/// The seeds of the loads: in short runs the first alone.
fn seeds(effort: Effort) -> &'static [u32] {
    match effort {
        Effort::Full => &SEEDS,
        Effort::Quick | Effort::Requests(_) => &SEEDS[..1],
    }
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

/// What a run came to, in words.
fn described(served: &ServedLoad) -> Result<String, Failure> {
    let response = served.response()?;
    Ok(format!(
        "mean {:.2}, p99 {:.2}, p99.9 {:.2}, at most {:.2} ms, bulk {:.1} MB/s",
        response.mean_ms,
        response.p99_ms,
        response.p999_ms,
        response.max_ms,
        served.rate(),
    ))
}

const ONE: ModernService = ModernService {
    clients: 1,
    policy: "fcfs",
    delivery: Delivery::Prompt,
};

/// Over a quarter of the stroke.
const ONE_SPLIT: ModernService = ModernService {
    delivery: Delivery::PromptSplit(250),
    ..ONE
};

const FOUR_SPTF: ModernService = ModernService {
    clients: 4,
    policy: "sptf",
    ..ONE
};

const FOUR_SSTF: ModernService = ModernService {
    policy: "sstf",
    ..FOUR_SPTF
};

const FOUR_SINGLE: ModernService = ModernService {
    delivery: Delivery::Single,
    ..FOUR_SSTF
};

const SIXTEEN: ModernService = ModernService {
    clients: 16,
    ..FOUR_SSTF
};

/// The reading of the claims, and the other setup. The margin is a choice of the drive's maker: one of 21 us does
/// not cover seeks that scatter by 60 us, so that reads over several tracks lose revolutions.
const READING: &str =
    "mean of seeds 1 to 3 (short runs: 1); a skew that leaves 21 us beyond a switch of tracks";
const WIDE: &str = "a skew that leaves 120 us";
const MARGINS: [Model; 2] = [Model::Modern20tb, Model::Modern20tbWideMargin];

/// The seeds of the loads. A choice: three tell a difference from noise.
const SEEDS: [u32; 3] = [1, 2, 3];

/// Those that are judged.
const SERVICES: [ModernService; 5] = [ONE, ONE_SPLIT, FOUR_SPTF, FOUR_SSTF, SIXTEEN];

/// Urgent requests a second: those of the goal.
const RATES: [f64; 5] = [1.0, 2.0, 5.0, 10.0, 20.0];

/// Where the drive's own queue stands beside.
const BESIDE_RATE: f64 = 10.0;

/// The hints to the drive about urgent commands.
const TOLD: [QueueHint; 4] = [
    QueueHint::Nothing,
    QueueHint::Priority,
    QueueHint::Limit(LIMIT),
    QueueHint::PriorityAndLimit(LIMIT),
];

/// A choice: about what one of the greedy commands takes, so that the limit is also met with priority.
const LIMIT: Duration = Duration::from_millis(15);

/// So many urgent requests are in each run: ten are above p99.9.
const URGENT_REQUESTS: f64 = 10_000.0;
