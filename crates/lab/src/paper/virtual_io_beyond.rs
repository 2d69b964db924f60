//! Preemption of large transfers where it pays: on the paper's drive beside the paper's rules, and
//! on a drive of today.

use super::delivery::Delivery;
use super::finding::Finding;
use super::grounds::OtherSetup;
use super::serving::{PAGE_KIB, ServedLoad, ServingSetup, Servings};
use super::virtual_io::{alone, at_rate};
use super::{Effort, Measurement, MeasurementOutcome, PaperBench};
use crate::{Failure, Label};
use block::Direction;

pub mod modern;
mod queue;

/// The measurement on the paper's drive.
pub const MEASUREMENT: Measurement = Measurement {
    what: "stepping aside where it is worth it",
    claims: &[SMALL, SMALLER, BUSY],
    run,
};

const SMALL: &str = "vio-beyond.small-reads";
const SMALLER: &str = "vio-beyond.small-reads.small-chunks";
const BUSY: &str = "vio-beyond.busy";

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let mut all: Vec<ServingSetup> = Vec::new();
    for delivery in DELIVERIES {
        all.extend([small(delivery), busy(delivery), calm(delivery)]);
        all.extend([small(delivery), busy(delivery)].map(of_pages));
        all.extend(OTHER_SEEDS.map(|(_, seed)| seeded(busy(delivery), seed)));
    }
    all.push(small(SMALLER_CHUNKS));
    let servings = Servings::of(bench, all)?;
    let beyond = VirtualIoBeyond {
        servings: &servings,
        effort: bench.effort,
    };
    Ok(MeasurementOutcome::figures(vec![
        beyond.small_reads(SMALL, OWN)?,
        beyond.small_reads(SMALLER, SMALL_CHUNKS)?,
        beyond.busy()?,
    ]))
}

fn small(delivery: Delivery) -> ServingSetup {
    at_rate(delivery, Direction::Read, SMALL_KIB, SLOW)
}

fn busy(delivery: Delivery) -> ServingSetup {
    at_rate(delivery, Direction::Read, LARGE_KIB, FAST)
}

fn calm(delivery: Delivery) -> ServingSetup {
    alone(delivery, Direction::Read, LARGE_KIB)
}

/// The same with urgent reads of a page.
fn of_pages(setup: ServingSetup) -> ServingSetup {
    ServingSetup {
        urgent_kib: PAGE_KIB,
        ..setup
    }
}

/// The same with another seed of the load.
fn seeded(setup: ServingSetup, seed: u32) -> ServingSetup {
    ServingSetup { seed, ..setup }
}

/// The runs of all findings.
struct VirtualIoBeyond<'a> {
    servings: &'a Servings,
    effort: Effort,
}

impl VirtualIoBeyond<'_> {
    fn of(&self, serving: ServingSetup) -> Result<&ServedLoad, Failure> {
        self.servings.get(&serving)
    }

    fn note(&self, serving: ServingSetup, more: &str) -> Result<String, Failure> {
        note(serving, self.effort, more)
    }

    /// Small requests: no throughput is lost, and waits are shorter.
    fn small_reads(&self, claim: &'static str, judged: Delivery) -> Result<Finding, Failure> {
        let single = self.of(small(Delivery::Single))?;
        let share = |delivery| {
            let served = self.of(small(delivery))?;
            Ok::<_, Failure>(served.rate() / single.rate() * 100.0)
        };
        let mut all = Vec::new();
        for delivery in DELIVERIES {
            let served = self.of(small(delivery))?;
            all.push(format!(
                "{}: {:.2} ms, {:.1} %, response {:.2} ms",
                delivery.name(),
                served.wait()?,
                share(delivery)?,
                served.response()?.mean_ms,
            ));
        }
        let both = |own: ServingSetup, single: ServingSetup| {
            let (own, single) = (self.of(own)?, self.of(single)?);
            Ok::<_, Failure>([
                ("expected_wait_ms", own.wait()?),
                ("throughput_percent", own.rate() / single.rate() * 100.0),
            ])
        };
        let [own, single] = [judged, Delivery::Single].map(small);
        let setups = [
            OtherSetup::several(OF_PAGES, &both(of_pages(own), of_pages(single))?),
            OtherSetup::several(IN_QUARTERS, &both(small(SMALLER_CHUNKS), single)?),
        ];
        let note = self.note(own, &all.join("; "))?;
        let finding = Finding::several(claim, Label::External, &both(own, single)?, note);
        Ok(finding.beside(setups))
    }

    /// Many urgent requests beside large transfers.
    fn busy(&self) -> Result<Finding, Failure> {
        let judged = self.busy_of(busy)?;
        let whole = self.of(busy(Delivery::Single))?.rate();
        let calm_rate = self.of(calm(Delivery::Paper))?.rate();
        let lost = |from: f64, delivery| Ok::<_, Failure>(from - self.of(busy(delivery))?.rate());
        let calm_share = lost(calm_rate, OWN)? / lost(calm_rate, Delivery::Paper)? * 100.0;
        let mut all = Vec::new();
        for delivery in DELIVERIES {
            let served = self.of(busy(delivery))?;
            all.push(format!(
                "{}: {:.2} of {:.2} MB/s, response {:.2} ms, p99 {:.2} ms",
                delivery.name(),
                served.rate(),
                self.of(calm(delivery))?.rate(),
                served.response()?.mean_ms,
                served.response()?.p99_ms,
            ));
        }
        let more = format!(
            "both losses from the {whole:.2} MB/s that are left beside the same urgent requests by one \
             command a request; from the {calm_rate:.2} MB/s of the paper's delivery without any: {calm_share:.1} %; {}",
            all.join("; ")
        );
        let note = self.note(busy(OWN), &more)?;
        let finding = Finding::several(BUSY, Label::External, &judged, note);
        let pages = self.busy_of(|delivery| of_pages(busy(delivery)))?;
        let mut setups = vec![OtherSetup::several(OF_PAGES, &pages)];
        for (name, seed) in OTHER_SEEDS {
            let other = self.busy_of(|delivery| seeded(busy(delivery), seed))?;
            setups.push(OtherSetup::several(name, &other));
        }
        Ok(finding.beside(setups))
    }

    /// Our loss of throughput in percent of that by the paper's rules, and our response.
    fn busy_of(
        &self,
        setup: impl Fn(Delivery) -> ServingSetup,
    ) -> Result<[(&'static str, f64); 2], Failure> {
        let rate = |delivery| Ok::<_, Failure>(self.of(setup(delivery))?.rate());
        let whole = rate(Delivery::Single)?;
        let share = (whole - rate(OWN)?) / (whole - rate(Delivery::Paper)?) * 100.0;
        Ok([
            ("loss_percent_of_theirs", share),
            ("response_ms", self.of(setup(OWN))?.response()?.mean_ms),
        ])
    }
}

/// The note of a run.
fn note(serving: ServingSetup, effort: Effort, more: &str) -> Result<String, Failure> {
    let remark = match effort {
        Effort::Full => "",
        Effort::Quick | Effort::Requests(_) => "SHORT RUNS; ",
    };
    Ok(format!(
        "{remark}greedy requests are always there, {} at the drive; urgent: reads of {} KiB at a constant \
         rate; {}; {more}",
        serving.delivery.at_drive(),
        serving.urgent_kib,
        serving.scene()?,
    ))
}

const OWN: Delivery = Delivery::Own;

/// Chunks of half the paper's size. A choice.
const SMALL_CHUNKS: Delivery = Delivery::OwnOf(25);

/// Chunks of a quarter of the paper's size. A choice.
const SMALLER_CHUNKS: Delivery = Delivery::OwnOf(12);

/// The deliveries of all findings.
const DELIVERIES: [Delivery; 4] = [Delivery::Single, Delivery::Paper, OWN, SMALL_CHUNKS];

/// The names of the other setups.
const OF_PAGES: &str = "urgent reads of 4 KiB";
const IN_QUARTERS: &str = "chunks of a quarter of the paper's size";

/// Seeds that chose nothing. The verdicts have seed 1.
const OTHER_SEEDS: [(&str, u32); 2] = [("seed 2", 2), ("seed 3", 3)];

/// The paper's smallest and largest requests.
const SMALL_KIB: u32 = 50;
const LARGE_KIB: u32 = 2000;

/// Urgent requests a second: as in the paper's Table 2, and its most.
const SLOW: f64 = 1.0;
const FAST: f64 = 20.0;
