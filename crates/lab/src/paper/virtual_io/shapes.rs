//! The shapes of the paper's figures: growth, fall and order.

use super::{
    ALONE_SECONDS, COMPONENT_WAYS, COMPONENTS, FACTOR, LARGE, LONG, LONGEST, RATE, RATES, READ,
    READS, SEEDS, SIZES, TABLE_RATE, TABLE_SIZES, VirtualIoPaper, WAIT, alone, at_rate, listed,
    seeded, writes,
};
use crate::claims::Theirs;
use crate::paper::delivery::Delivery;
use crate::paper::finding::{Finding, ShapeVerdict};
use crate::paper::grounds::OtherSetup;
use crate::paper::serving::ServedLoad;
use crate::{Failure, Label};
use block::Direction;

impl VirtualIoPaper<'_> {
    /// Expected waits over the sizes.
    fn waits_of(&self, delivery: Delivery, direction: Direction) -> Result<Vec<f64>, Failure> {
        self.over(
            &SIZES,
            |kib| alone(delivery, direction, kib),
            ServedLoad::wait,
        )
    }

    pub(super) fn rates_of(
        &self,
        delivery: Delivery,
        direction: Direction,
    ) -> Result<Vec<f64>, Failure> {
        let rate = |served: &ServedLoad| Ok(served.rate_with_read_ahead());
        self.over(&SIZES, |kib| alone(delivery, direction, kib), rate)
    }

    /// Figure 9.
    pub(super) fn waits_over_sizes(&self) -> Result<Finding, Failure> {
        let [read, write] = [READ, Direction::Write];
        let single = [
            self.waits_of(Delivery::Single, read)?,
            self.waits_of(Delivery::Single, write)?,
        ];
        let paper = [
            self.waits_of(Delivery::Paper, read)?,
            self.waits_of(Delivery::Paper, write)?,
        ];
        let checks = [
            single.iter().all(|waits| grows(waits)),
            is_linear(&single[0]),
            paper.iter().all(|waits| falls(waits)),
        ];
        let more = format!(
            "50 to 2000 kB, {ALONE_SECONDS} s each; reads: npIO {}, Virtual IO {}; writes: npIO {}, \
             Virtual IO {}",
            listed(&single[0]),
            listed(&paper[0]),
            listed(&single[1]),
            listed(&paper[1]),
        );
        let note = self.note(alone(Delivery::Paper, read, SIZES[0]), &more)?;
        let ours: [(&str, f64); 0] = [];
        let mut finding = Finding::several(WAIT, Label::External, &ours, note);
        for (name, writing) in writes::CANDIDATES.into_iter().skip(1) {
            let of = |delivery| {
                let setup = |kib| writes::on(writing, alone(delivery, write, kib));
                self.over(&SIZES, setup, ServedLoad::wait)
            };
            let (npio, chunked) = (of(Delivery::Single)?, of(Delivery::Paper)?);
            let so = [
                grows(&single[0]) && grows(&npio),
                checks[1],
                falls(&paper[0]) && falls(&chunked),
            ];
            let setup = OtherSetup::several(
                format!("{name}: Virtual IO's writes {}", listed(&chunked)),
                &ours,
            );
            finding = finding.beside([setup.shaped(ShapeVerdict::of(&so))]);
        }
        Ok(finding.shaped(ShapeVerdict::of(&checks)))
    }

    /// Figure 10.
    pub(super) fn rates_over_sizes(&self) -> Result<Finding, Failure> {
        let of = |direction| {
            Ok::<_, Failure>([
                self.rates_of(Delivery::Single, direction)?,
                self.rates_of(Delivery::Paper, direction)?,
            ])
        };
        let ([single, paper], written) = (of(READ)?, of(Direction::Write)?);
        let share: Vec<f64> = paper.iter().zip(&single).map(|(a, b)| a / b).collect();
        let checks = [
            share[0] >= SMALL_SHARE,
            share[1..].iter().all(|&share| share >= LARGE_SHARE),
            share[SIZES.len() - 1] > 1.0,
        ];
        let more = format!(
            "50 to 2000 kB, MB/s; reads: npIO {}, Virtual IO {}; writes: npIO {}, Virtual IO {}",
            listed(&single),
            listed(&paper),
            listed(&written[0]),
            listed(&written[1]),
        );
        let note = self.note(alone(Delivery::Paper, READ, SIZES[0]), &more)?;
        let ours: [(&str, f64); 0] = [];
        let finding = Finding::several(RATE, Label::External, &ours, note);
        Ok(finding.shaped(ShapeVerdict::of(&checks)))
    }

    /// Figure 11.
    pub(super) fn long_commands(&self) -> Result<Finding, Failure> {
        let share = |served: &ServedLoad| Ok(served.commands()?.share_3_to_16_ms);
        let of = |delivery| self.over(&TABLE_SIZES, |kib| alone(delivery, READ, kib), share);
        let shares = of(Delivery::Prefetch)?;
        let ours = [
            ("50kb", shares[0]),
            ("500kb", shares[1]),
            ("2000kb", shares[2]),
        ];
        let more = format!(
            "reads with free prefetch, whose commands count; without: {}; npIO: {}",
            listed(&of(Delivery::Paper)?),
            listed(&of(Delivery::Single)?),
        );
        let note = self.note(alone(Delivery::Prefetch, READ, TABLE_SIZES[0]), &more)?;
        let busy = |kib| at_rate(Delivery::Prefetch, READ, kib, TABLE_RATE);
        let mut setups = Vec::new();
        for (name, shares) in [
            (
                "beside an urgent request a second",
                self.over(&TABLE_SIZES, busy, share)?,
            ),
            ("without free prefetch", of(Delivery::Paper)?),
            ("without splitting of seeks", of(Delivery::PrefetchWhole)?),
        ] {
            let figures = [
                ("50kb", shares[0]),
                ("500kb", shares[1]),
                ("2000kb", shares[2]),
            ];
            setups.push(OtherSetup::several(name, &figures));
        }
        let finding = Finding::several(LONG, Label::External, &ours, note).beside(setups);
        Ok(finding.bounded(one_long_command()?))
    }

    /// Figures 12 and 13.
    pub(super) fn components(&self) -> Result<Finding, Failure> {
        let [chunks, seeks, prefetch] = COMPONENT_WAYS;
        let deliveries = [Delivery::Single, chunks, seeks, Delivery::Paper];
        let mut waits = Vec::new();
        let mut rates = Vec::new();
        for delivery in deliveries {
            waits.push(self.waits_of(delivery, READ)?);
            rates.push(self.rates_of(delivery, READ)?);
        }
        let ahead = self.rates_of(prefetch, READ)?;
        let (small, large) = (0, SIZES.len() - 1);
        let [single, chunked, _, all] = [0, 1, 2, 3].map(|delivery: usize| &waits[delivery]);
        let checks = [
            single[large] - chunked[large] > single[large] / 2.0,
            chunked[small] - all[small] > single[small] - chunked[small],
            rates[3][small] < rates[2][small],
            ahead
                .iter()
                .zip(&rates[3])
                .all(|(with, without)| with > without),
        ];
        let said = |figures: &[Vec<f64>]| {
            let lines = deliveries.iter().zip(figures);
            let lines = lines.map(|(delivery, of)| format!("{}: {}", delivery.name(), listed(of)));
            lines.collect::<Vec<_>>().join(", ")
        };
        let more = format!(
            "50 to 2000 kB; expected waits: {}; MB/s: {}, {}: {}",
            said(&waits),
            said(&rates),
            prefetch.name(),
            listed(&ahead),
        );
        let note = self.note(alone(Delivery::Paper, READ, SIZES[0]), &more)?;
        let ours: [(&str, f64); 0] = [];
        let finding = Finding::several(COMPONENTS, Label::External, &ours, note);
        Ok(finding.shaped(ShapeVerdict::of(&checks)))
    }

    /// Figure 14: with preemption against without, both in chunks.
    pub(super) fn factor(&self) -> Result<Finding, Failure> {
        let mean = |serving| Ok::<_, Failure>(self.of(serving)?.response()?.mean_ms);
        let factors = |without: Delivery| {
            let of = |seed| {
                let with = mean(seeded(Delivery::Paper, seed))?;
                Ok::<_, Failure>(mean(seeded(without, seed))? / with)
            };
            SEEDS.into_iter().map(of).collect::<Result<Vec<f64>, _>>()
        };
        let patient = factors(Delivery::Patient)?;
        let over_rates = RATES.iter().map(|&rate| {
            let of = |delivery| mean(at_rate(delivery, READ, LARGE, rate));
            Ok::<_, Failure>(of(Delivery::Patient)? / of(Delivery::Paper)?)
        });
        let over_rates: Vec<f64> = over_rates.collect::<Result<_, _>>()?;
        let serving = seeded(Delivery::Paper, SEEDS[0]);
        let more = format!(
            "seeds 1 to 5: {}; at 0.5 to 20 Hz, seed 1: {}",
            listed(&patient),
            listed(&over_rates)
        );
        let finding = Finding::one(
            FACTOR,
            Label::External,
            average(&patient),
            self.note(serving, &more)?,
        );
        let npio = OtherSetup::one(
            "against one command a request (npIO)",
            average(&factors(Delivery::Single)?),
        );
        Ok(finding.beside([npio]).read_as(
            "Virtual IO with against without preemption, both in chunks; mean of five seeds",
        ))
    }

    /// The longest responses, by the mean of several loads.
    pub(super) fn longest(&self) -> Result<Finding, Failure> {
        let longest = |delivery| {
            let of = |seed| Ok::<_, Failure>(self.of(seeded(delivery, seed))?.response()?.max_ms);
            SEEDS.into_iter().map(of).collect::<Result<Vec<f64>, _>>()
        };
        let (with, without) = (longest(Delivery::Paper)?, longest(Delivery::Patient)?);
        let single = longest(Delivery::Single)?;
        let figures = |without: &[f64]| {
            [
                ("with_ms", average(&with)),
                ("without_ms", average(without)),
            ]
        };
        let serving = seeded(Delivery::Paper, SEEDS[0]);
        let more = format!(
            "of {} requests, seeds 1 to 5: with {}, without {}, npIO {}",
            serving.seconds,
            listed(&with),
            listed(&without),
            listed(&single),
        );
        let note = self.note(serving, &more)?;
        let finding = Finding::several(LONGEST, Label::External, &figures(&without), note);
        let least = |all: &[f64]| all.iter().copied().fold(f64::MAX, f64::min);
        let most = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
        let best = [("with_ms", least(&with)), ("without_ms", least(&without))];
        let worst = [("with_ms", most(&with)), ("without_ms", most(&without))];
        Ok(finding
            .beside([
                OtherSetup::several("the shortest of the five seeds", &best),
                OtherSetup::several("the longest of the five seeds", &worst),
                OtherSetup::several("against one command a request (npIO)", &figures(&single)),
            ])
            .read_as(
                "Virtual IO with and without preemption, both in chunks; mean of five seeds' maxima",
            ))
    }
}

fn average(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// The share of long commands by the paper's own Table 1, if each request of 50 kB has one.
fn one_long_command() -> Result<String, Failure> {
    let published = crate::paper::paper("virtual-io")?;
    let table = published.claim(READS[0]);
    let cell = |name| match table?.figure(Some(name))?.theirs {
        Theirs::Higher(value) => Some(value),
        _ => None,
    };
    let rates = cell("vio_prefetch_rate_0.5hz").zip(cell("vio_rate_0.5hz"));
    let (ahead, alone) = rates.ok_or_else(|| Failure::failed("Table 1 has no rates at 0.5 Hz"))?;
    let chunks = f64::from(TABLE_SIZES[0]) * 1024.0 * ahead / alone / CHUNK_BYTES;
    Ok(format!(
        "theirs of 50 kB is not that of their Table 1: {ahead} MB/s with free prefetch and {alone} without are {chunks:.1} \
         chunks a request, so that one command a request with a seek is a share of {:.3}",
        1.0 / chunks
    ))
}

/// Bytes of the paper's chunk: 50 blocks of 512.
const CHUNK_BYTES: f64 = 50.0 * 512.0;

fn grows(figures: &[f64]) -> bool {
    figures.windows(2).all(|pair| pair[0] < pair[1])
}

fn falls(figures: &[f64]) -> bool {
    figures.windows(2).all(|pair| pair[0] > pair[1])
}

/// Whether each step is nearly as steep as the line from 500 to 2000 kB.
fn is_linear(figures: &[f64]) -> bool {
    let step =
        |from: usize, to: usize| (figures[to] - figures[from]) / f64::from(SIZES[to] - SIZES[from]);
    let line = step(2, SIZES.len() - 1);
    (1..SIZES.len()).all(|to| (0.7..=1.3).contains(&(step(to - 1, to) / line)))
}

/// Share of npIO's throughput that the paper keeps at 50 kB: 2.833 of 3.386 MB/s (Table 1, 0.5 Hz).
const SMALL_SHARE: f64 = 0.84;

/// Smallest share of throughput from 250 kB on that counts as little or no loss. A choice.
const LARGE_SHARE: f64 = 0.95;
