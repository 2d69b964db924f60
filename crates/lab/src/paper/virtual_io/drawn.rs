//! Figures 9 to 15: over request sizes, over command lengths, over rates of urgent requests.

use crate::plot::{Curve, Panel};
use block::Direction;

use super::{
    COMPONENT_WAYS, RATES, READ, READS, SIZES, TABLE_SIZES, VirtualIoPaper, WAIT_TABLE, WRITES,
    alone, at_rate,
};
use crate::Failure;
use crate::claims::{Paper, Theirs};
use crate::paper::Drawing;
use crate::paper::delivery::Delivery;
use crate::paper::serving::{ServedLoad, ServingSetup};

/// All drawings.
pub(super) fn all(paper: &VirtualIoPaper<'_>) -> Result<Vec<Drawing>, Failure> {
    let both = [Delivery::Single, Delivery::Paper];
    let [chunks, seeks, prefetch] = COMPONENT_WAYS;
    let parts = [Delivery::Single, chunks, seeks, Delivery::Paper];
    let rates = [chunks, seeks, Delivery::Paper, prefetch];
    let published = crate::paper::paper("virtual-io")?;
    Ok(vec![
        Drawing {
            name: "figure-9",
            panels: vec![
                paper
                    .over_sizes(
                        "Expected wait, reads",
                        WAIT_MS,
                        READ,
                        &both,
                        ServedLoad::wait,
                    )?
                    .with(waits_of_table_2(&published, "read")),
                paper
                    .over_sizes(
                        "Expected wait, writes",
                        WAIT_MS,
                        WRITE,
                        &both,
                        ServedLoad::wait,
                    )?
                    .with(waits_of_table_2(&published, "write")),
            ],
        },
        Drawing {
            name: "figure-10",
            panels: vec![
                paper
                    .over_sizes("Throughput, reads", MB_S, READ, &both, rate)?
                    .with(rates_of_tables(&published, READ, &RATE_COLUMNS[..2])),
                paper
                    .over_sizes("Throughput, writes", MB_S, WRITE, &both, rate)?
                    .with(rates_of_tables(&published, WRITE, &RATE_COLUMNS[..2])),
            ],
        },
        figure_11(paper)?,
        Drawing {
            name: "figure-12",
            panels: vec![paper.over_sizes(
                "What each part takes from the expected wait, reads",
                WAIT_MS,
                READ,
                &parts,
                ServedLoad::wait,
            )?],
        },
        Drawing {
            name: "figure-13",
            panels: vec![
                paper
                    .over_sizes(
                        "What each part does to throughput, reads",
                        MB_S,
                        READ,
                        &rates,
                        rate,
                    )?
                    .with(rates_of_tables(&published, READ, &RATE_COLUMNS[1..])),
            ],
        },
        figure_14(paper, &published)?,
        figure_15(paper, &published)?,
    ])
}

fn rate(served: &ServedLoad) -> Result<f64, Failure> {
    Ok(served.rate_with_read_ahead())
}

impl VirtualIoPaper<'_> {
    /// A line for each delivery over the sizes, without urgent requests.
    fn over_sizes(
        &self,
        title: &str,
        y_label: &str,
        direction: Direction,
        deliveries: &[Delivery],
        figure: impl Fn(&ServedLoad) -> Result<f64, Failure>,
    ) -> Result<Panel, Failure> {
        let curve = |&delivery: &Delivery| {
            let values = self.over(&SIZES, |kib| alone(delivery, direction, kib), &figure)?;
            Ok(Curve {
                name: delivery.name().to_owned(),
                points: SIZES.map(f64::from).into_iter().zip(values).collect(),
            })
        };
        let curves: Result<_, Failure> = deliveries.iter().map(curve).collect();
        Ok(Panel::Lines {
            title: format!("{title}, ST318437LW, external"),
            x_label: "size of requests, kB".to_owned(),
            y_label: y_label.to_owned(),
            curves: curves?,
        })
    }

    /// A line for each size and delivery over the rates.
    fn over_rates(
        &self,
        named: &[(Delivery, &str)],
        direction: Direction,
        figure: impl Fn(&ServedLoad) -> Result<f64, Failure>,
    ) -> Result<Vec<Curve>, Failure> {
        let mut curves = Vec::new();
        for kib in TABLE_SIZES {
            for &(delivery, name) in named {
                let serving = |rate| at_rate(delivery, direction, kib, rate);
                let values = self.over(&RATES, serving, &figure)?;
                curves.push(Curve {
                    name: format!("{kib} kB, {name}"),
                    points: RATES.into_iter().zip(values).collect(),
                });
            }
        }
        Ok(curves)
    }
}

/// The distribution of command lengths.
fn figure_11(paper: &VirtualIoPaper<'_>) -> Result<Drawing, Failure> {
    let panel = |delivery: Delivery| {
        let curve = |kib| {
            Ok(Curve {
                name: format!("{kib} kB"),
                points: shares(paper, alone(delivery, READ, kib))?,
            })
        };
        let curves: Result<_, Failure> = TABLE_SIZES.into_iter().map(curve).collect();
        Ok::<_, Failure>(Panel::Cdf {
            title: format!("Lengths of commands, reads, {}", delivery.name()),
            x_label: "ms".to_owned(),
            curves: curves?,
        })
    };
    Ok(Drawing {
        name: "figure-11",
        panels: vec![panel(Delivery::Single)?, panel(Delivery::Prefetch)?],
    })
}

/// The cumulative distribution of command lengths.
fn shares(paper: &VirtualIoPaper<'_>, serving: ServingSetup) -> Result<Vec<(f64, f64)>, Failure> {
    let lengths = &paper.of(serving)?.lengths;
    let all: u64 = lengths.iter().map(|(_, count)| count).sum();
    let mut so_far = 0;
    let shares = lengths.iter().map(|&(upto, count)| {
        so_far += count;
        (upto, so_far as f64 / all.max(1) as f64)
    });
    Ok(shares.collect())
}

/// Response times of urgent requests over their rate.
fn figure_14(paper: &VirtualIoPaper<'_>, published: &Paper) -> Result<Drawing, Failure> {
    let mean = |served: &ServedLoad| Ok(served.response()?.mean_ms);
    let panel = |title: &str, direction| {
        let panel = Panel::Lines {
            title: format!(
                "Mean response of urgent requests beside {title}, with and without preemption"
            ),
            x_label: RATE_HZ.to_owned(),
            y_label: "ms".to_owned(),
            curves: paper.over_rates(&NAMES[..2], direction, mean)?,
        };
        Ok::<_, Failure>(panel.with(over_rates_of_tables(published, direction, "vio_response")))
    };
    Ok(Drawing {
        name: "figure-14",
        panels: vec![panel("reads", READ)?, panel("writes", WRITE)?],
    })
}

/// Throughput over the rate of urgent requests.
fn figure_15(paper: &VirtualIoPaper<'_>, published: &Paper) -> Result<Drawing, Failure> {
    let panel = |title: &str, direction, named| {
        let panel = Panel::Lines {
            title: format!(
                "Throughput of {title} beside urgent requests, with and without preemption"
            ),
            x_label: RATE_HZ.to_owned(),
            y_label: MB_S.to_owned(),
            curves: paper.over_rates(named, direction, rate)?,
        };
        Ok::<_, Failure>(panel.with(over_rates_of_tables(published, direction, "vio_rate")))
    };
    Ok(Drawing {
        name: "figure-15",
        panels: vec![
            panel("reads", READ, &NAMES)?,
            panel("writes", WRITE, &NAMES[..2])?,
        ],
    })
}

/// The paper's expected waits at 1 Hz. Its Figure 9 is without urgent requests.
fn waits_of_table_2(published: &Paper, direction: &str) -> Vec<Curve> {
    let ways = [
        ("npio", "theirs, one command (Table 2)"),
        ("vio", "theirs, Virtual IO (Table 2)"),
    ];
    let curve = |(way, name): (&str, &str)| Curve {
        name: name.to_owned(),
        points: SIZES
            .into_iter()
            .filter_map(|kib| {
                let figure = format!("{way}_{direction}_{kib}kb");
                Some((f64::from(kib), cell(published, WAIT_TABLE, &figure)?))
            })
            .collect(),
    };
    ways.map(curve).to_vec()
}

/// The paper's throughputs at its lowest rate of urgent requests, by size. Its Figures 10 and 13 are without any.
fn rates_of_tables(
    published: &Paper,
    direction: Direction,
    columns: &[(&str, &str)],
) -> Vec<Curve> {
    let claims = match direction {
        Direction::Read => READS,
        Direction::Write => WRITES,
    };
    let curve = |&(column, name): &(&str, &str)| Curve {
        name: format!("theirs, {name}, {} Hz", RATES[0]),
        points: claims
            .into_iter()
            .zip(TABLE_SIZES)
            .filter_map(|(claim, kib)| {
                let figure = format!("{column}_{}hz", RATES[0]);
                Some((f64::from(kib), cell(published, claim, &figure)?))
            })
            .collect(),
    };
    columns.iter().map(curve).collect()
}

/// A column of the paper's Tables 1 or 3, by size.
fn over_rates_of_tables(published: &Paper, direction: Direction, column: &str) -> Vec<Curve> {
    let (claims, table) = match direction {
        Direction::Read => (READS, 1),
        Direction::Write => (WRITES, 3),
    };
    let curve = |(claim, kib): (&str, u32)| Curve {
        name: format!("theirs, {kib} kB (Table {table})"),
        points: RATES
            .into_iter()
            .filter_map(|rate| Some((rate, cell(published, claim, &format!("{column}_{rate}hz"))?)))
            .collect(),
    };
    claims.into_iter().zip(TABLE_SIZES).map(curve).collect()
}

/// A cell of the paper's tables.
fn cell(published: &Paper, claim: &str, figure: &str) -> Option<f64> {
    match published.claim(claim)?.figure(Some(figure))?.theirs {
        Theirs::Lower(value) | Theirs::Higher(value) => Some(value),
        _ => None,
    }
}

const WRITE: Direction = Direction::Write;
const WAIT_MS: &str = "ms";
const MB_S: &str = "MB/s";
const RATE_HZ: &str = "urgent requests a second";

/// The columns of throughput in Tables 1 and 3.
const RATE_COLUMNS: [(&str, &str); 3] = [
    ("npio_rate", "one command"),
    ("vio_rate", "Virtual IO"),
    ("vio_prefetch_rate", "with prefetch"),
];

/// Short names for plots with many lines.
const NAMES: [(Delivery, &str); 3] = [
    (Delivery::Patient, "no preemption"),
    (Delivery::Paper, "Virtual IO"),
    (Delivery::Prefetch, "with prefetch"),
];
