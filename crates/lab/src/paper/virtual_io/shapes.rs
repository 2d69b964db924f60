//! The shapes of the paper's figures: growth, fall and order.

use super::{
    ALONE_SECONDS, COMPONENT_WAYS, COMPONENTS, FACTOR, LARGE, LONG, LONGEST, RATE, RATES, READ,
    SIZES, TABLE_RATE, TABLE_SIZES, VirtualIoPaper, WAIT, alone, at_rate, listed,
};
use crate::paper::delivery::Delivery;
use crate::paper::finding::{Finding, ShapeVerdict};
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
        let finding = Finding::several(WAIT, Label::External, &ours, note);
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
        Ok(Finding::several(LONG, Label::External, &ours, note))
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

    /// Figure 14.
    pub(super) fn factor(&self) -> Result<Finding, Failure> {
        let mean = |delivery, rate| {
            let served = self.of(at_rate(delivery, READ, LARGE, rate))?;
            Ok::<_, Failure>(served.response()?.mean_ms)
        };
        let factor =
            |rate| Ok::<_, Failure>(mean(Delivery::Single, rate)? / mean(Delivery::Paper, rate)?);
        let all = RATES.iter().map(|&rate| factor(rate));
        let all: Vec<f64> = all.collect::<Result<_, _>>()?;
        let ours = factor(TABLE_RATE)?;
        let serving = at_rate(Delivery::Paper, READ, LARGE, TABLE_RATE);
        let more = format!("at 0.5 to 20 Hz: {}", listed(&all));
        let finding = Finding::one(FACTOR, Label::External, ours, self.note(serving, &more)?);
        Ok(finding.shaped(ShapeVerdict::of(&[ours >= LEAST_FACTOR])))
    }

    pub(super) fn longest(&self) -> Result<Finding, Failure> {
        let longest = |delivery| {
            let serving = |rate| at_rate(delivery, READ, LARGE, rate);
            self.over(&RATES, serving, |served| Ok(served.response()?.max_ms))
        };
        let (with, without) = (longest(Delivery::Paper)?, longest(Delivery::Single)?);
        let judged = RATES.iter().position(|&rate| rate == TABLE_RATE);
        let judged =
            judged.ok_or_else(|| Failure::failed("Table 2's rate is none of Table 1's"))?;
        let ours = [("with_ms", with[judged]), ("without_ms", without[judged])];
        let checks = [with[judged] <= MOST_WITH_MS, with[judged] < without[judged]];
        let serving = at_rate(Delivery::Paper, READ, LARGE, TABLE_RATE);
        let more = format!(
            "of {} requests; at 0.5 to 20 Hz, of 500 to 4,000 requests: with {}, without {}; ours with {}",
            serving.seconds,
            listed(&with),
            listed(&without),
            listed(&longest(Delivery::Own)?),
        );
        let note = self.note(serving, &more)?;
        let finding = Finding::several(LONGEST, Label::External, &ours, note);
        Ok(finding.shaped(ShapeVerdict::of(&checks)))
    }
}

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

/// Required factor (issue 6).
const LEAST_FACTOR: f64 = 3.6;

/// Longest response of the paper with preemption, in milliseconds.
const MOST_WITH_MS: f64 = 34.6;

/// Share of npIO's throughput that the paper keeps at 50 kB: 2.833 of 3.386 MB/s (Table 1, 0.5 Hz).
const SMALL_SHARE: f64 = 0.84;

/// Smallest share of throughput from 250 kB on that counts as little or no loss. A choice.
const LARGE_SHARE: f64 = 0.95;
