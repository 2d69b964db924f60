//! Large transfers that step aside where it is worth it: on the paper's drive beside the paper's own
//! way, and on a drive of today.

use super::finding::{Finding, Mode};
use super::serving::{Served, Serving, Servings};
use super::virtual_io::{alone, at_rate};
use super::way::Way;
use super::{Bench, Extent, Found, Measurement};
use crate::output::Failure;
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

fn run(bench: &Bench) -> Result<Found, Failure> {
    let ways = [Way::Single, Way::Paper, OWN, SMALL_CHUNKS];
    let small = ways.map(small);
    let large = ways.map(busy).into_iter().chain(ways.map(calm));
    let servings = Servings::of(bench, small.into_iter().chain(large))?;
    let beyond = Beyond {
        servings: &servings,
        extent: bench.extent,
    };
    Ok(Found::figures(vec![
        beyond.small_reads(SMALL, OWN)?,
        beyond.small_reads(SMALLER, SMALL_CHUNKS)?,
        beyond.busy()?,
    ]))
}

fn small(way: Way) -> Serving {
    at_rate(way, Direction::Read, SMALL_KIB, SLOW)
}

fn busy(way: Way) -> Serving {
    at_rate(way, Direction::Read, LARGE_KIB, FAST)
}

fn calm(way: Way) -> Serving {
    alone(way, Direction::Read, LARGE_KIB)
}

/// What the findings are made from.
struct Beyond<'a> {
    servings: &'a Servings,
    extent: Extent,
}

impl Beyond<'_> {
    fn of(&self, serving: Serving) -> Result<&Served, Failure> {
        self.servings.get(&serving)
    }

    fn note(&self, serving: Serving, more: &str) -> Result<String, Failure> {
        note(serving, self.extent, more)
    }

    /// Short requests: nothing is lost, and less is waited.
    fn small_reads(&self, claim: &'static str, judged: Way) -> Result<Finding, Failure> {
        let single = self.of(small(Way::Single))?;
        let share = |way| Ok::<_, Failure>(self.of(small(way))?.rate() / single.rate() * 100.0);
        let mut all = Vec::new();
        for way in [Way::Single, Way::Paper, OWN, SMALL_CHUNKS] {
            let served = self.of(small(way))?;
            all.push(format!(
                "{}: {:.2} ms, {:.1} %, response {:.2} ms",
                way.name(),
                served.wait()?,
                share(way)?,
                served.response()?.mean_ms,
            ));
        }
        let ours = [
            ("expected_wait_ms", self.of(small(judged))?.wait()?),
            ("throughput_percent", share(judged)?),
        ];
        let note = self.note(small(judged), &all.join("; "))?;
        Ok(Finding::several(claim, Mode::External, &ours, note))
    }

    /// Many urgent requests beside large transfers.
    fn busy(&self) -> Result<Finding, Failure> {
        let before = self.of(calm(Way::Paper))?.rate();
        let lost = |way| Ok::<_, Failure>(before - self.of(busy(way))?.rate());
        let mut all = Vec::new();
        for way in [Way::Single, Way::Paper, OWN, SMALL_CHUNKS] {
            let served = self.of(busy(way))?;
            all.push(format!(
                "{}: {:.2} of {:.2} MB/s, response {:.2} ms, p99 {:.2} ms",
                way.name(),
                served.rate(),
                self.of(calm(way))?.rate(),
                served.response()?.mean_ms,
                served.response()?.p99_ms,
            ));
        }
        let ours = [
            (
                "loss_percent_of_theirs",
                lost(OWN)? / lost(Way::Paper)? * 100.0,
            ),
            ("response_ms", self.of(busy(OWN))?.response()?.mean_ms),
        ];
        let more = format!(
            "both losses from the {before:.2} MB/s of the paper's way; {}",
            all.join("; ")
        );
        let note = self.note(busy(OWN), &more)?;
        Ok(Finding::several(BUSY, Mode::External, &ours, note))
    }
}

/// What a reader of a figure has to know of a run.
fn note(serving: Serving, extent: Extent, more: &str) -> Result<String, Failure> {
    let remark = match extent {
        Extent::Full => "",
        Extent::Quick | Extent::Requests(_) => "SHORT RUNS; ",
    };
    Ok(format!(
        "{remark}greedy requests are always there, {} at the drive; urgent: 4 KiB reads at a constant \
         rate; {}; {more}",
        serving.at_drive,
        serving.scene()?,
    ))
}

const OWN: Way = Way::Own;

/// Chunks of 8 KiB. A choice.
const SMALL_CHUNKS: Way = Way::OwnOf(16);

/// The paper's smallest and largest requests.
const SMALL_KIB: u32 = 50;
const LARGE_KIB: u32 = 2000;

/// Urgent requests a second: as in the paper's Table 2, and its most.
const SLOW: f64 = 1.0;
const FAST: f64 = 20.0;
