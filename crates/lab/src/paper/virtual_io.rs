//! Preemptible large transfers (Virtual IO): a greedy client beside urgent requests, with whole
//! requests, with the paper's rules, and with free prefetch.

use block::Direction;

use super::delivery::Delivery;
use super::finding::{Finding, MeasuredFigure};
use super::grounds::{Grounds, OtherSetup};
use super::scene::{Model, WriteTruth};
use super::serving::{Bulk, ONE_BLOCK_KIB, SEED, ServedLoad, ServingSetup, Servings, Urgent};
use super::{Effort, Measurement, MeasurementOutcome, PaperBench};
use crate::claims::Claim;
use crate::{Failure, Label};

pub mod chunks;
mod drawn;
pub mod example;
pub mod ide;
mod shapes;
mod writes;

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "large transfers that step aside",
    claims: &[
        WAIT,
        RATE,
        LONG,
        COMPONENTS,
        FACTOR,
        LONGEST,
        WAIT_TABLE,
        RESPONSE_TABLE,
        READS[0],
        READS[1],
        READS[2],
        WRITES[0],
        WRITES[1],
        WRITES[2],
    ],
    run,
};

const WAIT: &str = "vio.expected-wait.flat";
const RATE: &str = "vio.throughput";
const LONG: &str = "vio.long-command-share";
const COMPONENTS: &str = "vio.components";
const FACTOR: &str = "vio.response.factor";
const LONGEST: &str = "vio.response.max";
const WAIT_TABLE: &str = "vio.expected-wait.table2";
const RESPONSE_TABLE: &str = "vio.response.table2";

/// Table 1, by size.
const READS: [&str; 3] = ["vio.table1.50kb", "vio.table1.500kb", "vio.table1.2000kb"];

/// Table 3, by size.
const WRITES: [&str; 3] = ["vio.table3.50kb", "vio.table3.500kb", "vio.table3.2000kb"];

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let servings = Servings::of(bench, servings())?;
    let paper = VirtualIoPaper {
        servings: &servings,
        effort: bench.effort,
    };
    let mut findings = vec![
        paper.waits_over_sizes()?,
        paper.rates_over_sizes()?,
        paper.long_commands()?,
        paper.components()?,
        paper.factor()?,
        paper.longest()?,
        paper.waits()?,
        paper.responses()?,
    ];
    let built_in = super::paper("virtual-io")?;
    let claim_of = |(id, kib)| Some((kib, built_in.claim(id)?));
    let sizes = WRITES.into_iter().zip(TABLE_SIZES);
    let paper_claims: Vec<(u32, &Claim)> = sizes.filter_map(claim_of).collect();
    for (direction, claims) in [(Direction::Read, READS), (Direction::Write, WRITES)] {
        for (claim, kib) in claims.into_iter().zip(TABLE_SIZES) {
            findings.push(paper.table(claim, direction, kib)?);
        }
    }
    Ok(MeasurementOutcome {
        findings,
        drawings: drawn::all(&paper)?,
        tables: vec![paper.writes(&paper_claims)?],
    })
}

/// The runs of all findings and drawings.
fn servings() -> Vec<ServingSetup> {
    let mut all = Vec::new();
    for direction in [Direction::Read, Direction::Write] {
        for kib in SIZES {
            all.extend(COMPARED.map(|delivery| alone(delivery, direction, kib)));
            all.extend(COMPARED.map(|delivery| at_rate(delivery, direction, kib, TABLE_RATE)));
        }
        for (delivery, kib) in pairs(
            &[Delivery::Single, Delivery::Paper, Delivery::Own],
            &TABLE_SIZES,
        ) {
            all.extend(RATES.map(|rate| at_rate(delivery, direction, kib, rate)));
        }
    }
    all.extend(pairs(&COMPONENT_WAYS, &SIZES).map(|(delivery, kib)| alone(delivery, READ, kib)));
    for kib in TABLE_SIZES {
        all.extend(RATES.map(|rate| at_rate(Delivery::Prefetch, READ, kib, rate)));
        all.push(alone(Delivery::PrefetchWhole, READ, kib));
        for direction in [Direction::Read, Direction::Write] {
            all.extend(RATES.map(|rate| at_rate(Delivery::Patient, direction, kib, rate)));
        }
    }
    all.extend(writes::servings());
    for delivery in [Delivery::Single, Delivery::Paper, Delivery::Patient] {
        all.extend(SEEDS.map(|seed| seeded(delivery, seed)));
    }
    all
}

fn pairs<'a>(
    deliveries: &'a [Delivery],
    sizes: &'a [u32],
) -> impl Iterator<Item = (Delivery, u32)> + 'a {
    let with = |&delivery| sizes.iter().map(move |&kib| (delivery, kib));
    deliveries.iter().flat_map(with)
}

/// Greedy clients without urgent reads.
pub fn alone(delivery: Delivery, direction: Direction, kib: u32) -> ServingSetup {
    ServingSetup {
        model: Model::St318437lw,
        delivery,
        policy: FCFS,
        bulk: Bulk {
            direction,
            kib,
            clients: CLIENTS,
        },
        urgent: Urgent::Never,
        urgent_kib: ONE_BLOCK_KIB,
        seconds: ALONE_SECONDS,
        seed: SEED,
    }
}

/// Greedy clients beside urgent reads at a constant rate.
pub fn at_rate(delivery: Delivery, direction: Direction, kib: u32, rate: f64) -> ServingSetup {
    let seconds = (URGENT_REQUESTS / rate).clamp(LEAST_SECONDS, MOST_SECONDS);
    ServingSetup {
        urgent: Urgent::Constant(rate),
        seconds: seconds as u32,
        ..alone(delivery, direction, kib)
    }
}

/// The run of Figure 14's quoted point with another load.
fn seeded(delivery: Delivery, seed: u32) -> ServingSetup {
    ServingSetup {
        seed,
        ..at_rate(delivery, READ, LARGE, TABLE_RATE)
    }
}

/// The runs of all findings.
pub struct VirtualIoPaper<'a> {
    servings: &'a Servings,
    effort: Effort,
}

impl VirtualIoPaper<'_> {
    fn of(&self, serving: ServingSetup) -> Result<&ServedLoad, Failure> {
        self.servings.get(&serving)
    }

    /// A figure over runs that differ in one setting.
    fn over<T: Copy>(
        &self,
        all: &[T],
        serving: impl Fn(T) -> ServingSetup,
        figure: impl Fn(&ServedLoad) -> Result<f64, Failure>,
    ) -> Result<Vec<f64>, Failure> {
        let all = all.iter();
        all.map(|&one| figure(self.of(serving(one))?)).collect()
    }

    fn note(&self, serving: ServingSetup, more: &str) -> Result<String, Failure> {
        let remark = match self.effort {
            Effort::Full => "",
            Effort::Quick | Effort::Requests(_) => "SHORT RUNS; ",
        };
        Ok(format!(
            "{remark}two greedy requests always there, first come first served, 1 command at the drive; \
             urgent: reads of one block at a constant rate; {}; {more}",
            serving.scene()?,
        ))
    }

    /// One half of Table 2.
    fn at_one_hertz(
        &self,
        claim: &'static str,
        figure: impl Fn(&ServedLoad) -> Result<f64, Failure>,
        more: &str,
    ) -> Result<Finding, Failure> {
        let all = |writing: Option<WriteTruth>| {
            let mut ours = Vec::new();
            for (delivery, of_way) in NAMED {
                for (direction, of_direction) in DIRECTIONS {
                    for kib in SIZES {
                        let serving = at_rate(delivery, direction, kib, TABLE_RATE);
                        ours.push(MeasuredFigure {
                            name: Some(format!("{of_way}_{of_direction}_{kib}kb")),
                            value: figure(self.of(writes::on(writing, serving))?)?,
                        });
                    }
                }
            }
            Ok::<_, Failure>(ours)
        };
        let serving = at_rate(Delivery::Paper, READ, TABLE_SIZES[0], TABLE_RATE);
        let mut finding = self.external(claim, all(None)?, self.note(serving, more)?)?;
        for (name, writing) in writes::CANDIDATES.into_iter().skip(1) {
            finding = finding.beside([OtherSetup {
                name: name.to_owned(),
                ours: all(writing)?,
                shape: None,
            }]);
        }
        Ok(finding)
    }

    fn waits(&self) -> Result<Finding, Failure> {
        let busy = |delivery| {
            let waits = self.over(
                &SIZES,
                |kib| at_rate(delivery, READ, kib, TABLE_RATE),
                |served| Ok(served.commands()?.expected_wait_if_busy_ms),
            );
            Ok::<_, Failure>(listed(&waits?))
        };
        let more = format!(
            "half the sum of the squares of all commands' head times over all of the time; over the sum \
             of the head times: npIO {}, Virtual IO {} (reads)",
            busy(Delivery::Single)?,
            busy(Delivery::Paper)?,
        );
        self.at_one_hertz(WAIT_TABLE, ServedLoad::wait, &more)
    }

    fn responses(&self) -> Result<Finding, Failure> {
        let p99 = |delivery| {
            let serving = |kib| at_rate(delivery, READ, kib, TABLE_RATE);
            let responses = self.over(&SIZES, serving, |served| Ok(served.response()?.p99_ms));
            Ok::<_, Failure>(listed(&responses?))
        };
        let more = format!(
            "p99 of reads: npIO {}, Virtual IO {}",
            p99(Delivery::Single)?,
            p99(Delivery::Paper)?,
        );
        let mean = |served: &ServedLoad| Ok(served.response()?.mean_ms);
        self.at_one_hertz(RESPONSE_TABLE, mean, &more)
    }

    /// The rows of one size in Tables 1 and 3.
    fn table(
        &self,
        claim: &'static str,
        direction: Direction,
        kib: u32,
    ) -> Result<Finding, Failure> {
        let mut ours = Vec::new();
        let mut errors = 0;
        for rate in RATES {
            let mut cell = |name: &str, value: f64| {
                ours.push(MeasuredFigure {
                    name: Some(format!("{name}_{rate}hz")),
                    value,
                });
            };
            for (delivery, of_way) in NAMED {
                let served = self.of(at_rate(delivery, direction, kib, rate))?;
                cell(&format!("{of_way}_response"), served.response()?.mean_ms);
                cell(&format!("{of_way}_rate"), served.rate());
                errors += served.errors();
            }
            if direction == READ {
                let served = self.of(at_rate(Delivery::Prefetch, READ, kib, rate))?;
                cell("vio_prefetch_rate", served.rate_with_read_ahead());
            }
        }
        let own = |rate| at_rate(Delivery::Own, direction, kib, rate);
        let more = format!(
            "MB/s of 1,000,000 bytes; ours, where it is worth it: responses {} ms, {} MB/s{}",
            listed(&self.over(&RATES, own, |served| Ok(served.response()?.mean_ms))?),
            listed(&self.over(&RATES, own, |served| Ok(served.rate()))?),
            match errors {
                0 => String::new(),
                _ => format!("; {errors} REQUESTS ENDED WITH AN ERROR"),
            },
        );
        let note = self.note(at_rate(Delivery::Paper, direction, kib, TABLE_RATE), &more)?;
        let mut finding = self.external(claim, ours, note)?;
        if direction == Direction::Write {
            for (name, writing) in writes::CANDIDATES.into_iter().skip(1) {
                let figures = self.writes_of(writing, kib)?;
                let figures: Vec<(&str, f64)> = figures
                    .iter()
                    .map(|(name, value)| (name.as_str(), *value))
                    .collect();
                finding = finding.beside([OtherSetup::several(name, &figures)]);
            }
        }
        Ok(finding)
    }

    fn external(
        &self,
        id: &'static str,
        ours: Vec<MeasuredFigure>,
        note: String,
    ) -> Result<Finding, Failure> {
        Ok(Finding {
            grounds: Grounds::default(),
            id,
            mode: Some(Label::External),
            ours,
            shape: None,
            note,
        })
    }
}

/// Figures as a list.
fn listed(figures: &[f64]) -> String {
    let figures: Vec<String> = figures.iter().map(|one| format!("{one:.2}")).collect();
    figures.join(" / ")
}

const READ: Direction = Direction::Read;
const FCFS: &str = "fcfs";

/// The names of the tables' columns.
const NAMED: [(Delivery, &str); 2] = [(Delivery::Single, "npio"), (Delivery::Paper, "vio")];
const DIRECTIONS: [(Direction, &str); 2] = [(READ, "read"), (Direction::Write, "write")];

/// The deliveries that the whole paper compares.
const COMPARED: [Delivery; 2] = [Delivery::Single, Delivery::Paper];

/// The further deliveries of Figures 12 and 13.
const COMPONENT_WAYS: [Delivery; 3] = [Delivery::Chunks, Delivery::JustInTime, Delivery::Prefetch];

/// Sizes of the paper in kB, here KiB. 1024 bytes per kB are a choice: the paper's requests are
/// whole blocks of 512.
const SIZES: [u32; 5] = [50, 250, 500, 1000, 2000];

/// The largest size.
const LARGE: u32 = 2000;

/// The sizes of Tables 1 and 3.
const TABLE_SIZES: [u32; 3] = [50, 500, 2000];

/// Rates of urgent requests in Tables 1 and 3, per second.
const RATES: [f64; 6] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// The rate of Table 2.
const TABLE_RATE: f64 = 1.0;

/// Outstanding greedy requests: one at the drive, and the next one. A choice, as the paper's are
/// always waiting.
const CLIENTS: u32 = 2;

/// Seeds of the loads of a maximum or a ratio. None of them chose anything; the first is that of the
/// tables.
const SEEDS: [u32; 5] = [1, 2, 3, 4, 5];

/// Urgent requests of a run, and bounds of its length in seconds: means are then exact to 1 or 2 %.
const URGENT_REQUESTS: f64 = 1_000.0;
const LEAST_SECONDS: f64 = 200.0;
const MOST_SECONDS: f64 = 1_000.0;

/// Length of a run without urgent requests: rates are then exact to half a percent.
const ALONE_SECONDS: u32 = 200;
