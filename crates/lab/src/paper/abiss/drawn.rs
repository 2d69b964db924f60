//! Figure 18 and Table 1 as plots.

use crate::claims::{self, Theirs};
use crate::plot::{Curve, Panel};
use simulator::playing::PlayingReport;

use super::run::Machine;
use super::{AbissPaper, AbissRow, BACKGROUND, FIGURE_18, PAGES, ROWS, STREAMS, cell, ours};
use crate::Failure;
use crate::paper::Drawing;

/// All drawings.
pub(super) fn all(paper: &AbissPaper<'_>) -> Result<Vec<Drawing>, Failure> {
    Ok(vec![figure_18(paper)?, table_1(paper)?])
}

/// The delay of every read of four streams.
fn figure_18(paper: &AbissPaper<'_>) -> Result<Drawing, Failure> {
    let theirs = AbissRow::Batch(FIGURE_18).run(Machine::Paper, 4);
    let mut reports = vec![
        ("their scheme, batch 20", paper.of(theirs)?),
        ("our guarantees", paper.of(ours(FIGURE_18, 4))?),
    ];
    for row in ROWS {
        if let AbissRow::Elevator(name @ ("anticipatory" | "deadline" | "cfq" | "noop"), _) = row {
            reports.push((name, paper.of(row.run(Machine::Paper, 4))?));
        }
    }
    let over_time = reports.iter().map(|&(name, report)| Curve {
        name: name.to_owned(),
        points: delays(report),
    });
    let distribution = reports.iter().map(|&(name, report)| Curve {
        name: name.to_owned(),
        points: distribution(report),
    });
    Ok(Drawing {
        name: "figure-18",
        panels: vec![
            Panel::Lines {
                title:
                    "From read() to data, 4 streams of 1 MB/s beside a greedy reader, in-firmware"
                        .to_owned(),
                x_label: "since all play, s".to_owned(),
                y_label: "ms".to_owned(),
                curves: over_time.collect(),
            },
            Panel::Cdf {
                title: "The same as distributions".to_owned(),
                x_label: "ms".to_owned(),
                curves: distribution.collect(),
            },
        ],
    })
}

/// The time and the delay of each read, over the first seconds.
fn delays(report: &PlayingReport) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = report
        .reads()
        .map(|read| (read.at.as_secs_f64(), read.took.as_millis_f64()))
        .filter(|(at, _)| *at <= SHOWN)
        .collect();
    all.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    all
}

/// The distribution of the delays, in steps of a percentile, and the longest delay.
fn distribution(report: &PlayingReport) -> Vec<(f64, f64)> {
    let mut all: Vec<f64> = report
        .reads()
        .map(|read| read.took.as_millis_f64())
        .collect();
    all.sort_unstable_by(f64::total_cmp);
    let last = all.len().saturating_sub(1);
    let at = |percent: usize| Some((*all.get(last * percent / 100)?, percent as f64 / 100.0));
    (0..=100).filter_map(at).collect()
}

/// The rate left to the background reader over the batch.
fn table_1(paper: &AbissPaper<'_>) -> Result<Drawing, Failure> {
    let mut panels = Vec::new();
    for streams in STREAMS {
        let over = |rate: &dyn Fn(u64) -> Result<f64, Failure>| {
            let points = PAGES
                .into_iter()
                .map(|pages| Ok((pages as f64, rate(pages)?)));
            points.collect::<Result<Vec<_>, Failure>>()
        };
        let curves = vec![
            Curve {
                name: "the paper".to_owned(),
                points: theirs(streams)?,
            },
            Curve {
                name: "their scheme".to_owned(),
                points: over(&|pages| paper.left(Machine::Paper, AbissRow::Batch(pages), streams))?,
            },
            Curve {
                name: "our guarantees".to_owned(),
                points: over(&|pages| Ok(paper.of(ours(pages, streams))?.background_rate()))?,
            },
        ];
        panels.push(Panel::Lines {
            title: format!(
                "Left to the background reader beside {streams} of the streams, in-firmware"
            ),
            x_label: "batch, pages of 4 kB".to_owned(),
            y_label: "MB/s".to_owned(),
            curves,
        });
    }
    Ok(Drawing {
        name: "table-1",
        panels,
    })
}

/// The paper's cells, by batch.
fn theirs(streams: usize) -> Result<Vec<(f64, f64)>, Failure> {
    let built_in = claims::ALL.iter().find(|paper| paper.name == "abiss");
    let paper = built_in.ok_or_else(|| Failure::failed("the claims of abiss"))?;
    let paper = paper.paper().map_err(Failure::failed)?;
    let claim = paper.claim(BACKGROUND);
    let points = PAGES.into_iter().filter_map(|pages| {
        let name = cell(AbissRow::Batch(pages), streams);
        match claim?.figure(Some(&name))?.theirs {
            Theirs::Within(value, _) => Some((pages as f64, value)),
            _ => None,
        }
    });
    Ok(points.collect())
}

/// Seconds of the drawn delays: enough to show their variation.
const SHOWN: f64 = 4.0;
