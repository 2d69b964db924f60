//! A hypothesis about the writes of the paper's drive: a forced chunk behind a cached one loses a
//! revolution, and writes settle in no additional time. Both together, or neither.
//!
//! The rows of Table 3 are dealt alternately to two halves. One half chooses, the other judges.

use block::{Direction, Switch};

use super::{NAMED, RATES, SIZES, TABLE_RATE, TABLE_SIZES, VirtualIoPaper, alone, at_rate};
use crate::Failure;
use crate::claims::{Claim, Theirs};
use crate::paper::Table;
use crate::paper::delivery::Delivery;
use crate::paper::scene::{Model, WriteTruth};
use crate::paper::serving::ServingSetup;

/// The candidates: as shipped, each part alone, both.
pub(super) const CANDIDATES: [(&str, Option<WriteTruth>); 4] = [
    ("as shipped", None),
    (
        "a forced chunk loses a revolution",
        part(Switch::On, Switch::Off),
    ),
    ("writes settle at once", part(Switch::Off, Switch::On)),
    ("both", part(Switch::On, Switch::On)),
];

const fn part(loses_revolution: Switch, settles_at_once: Switch) -> Option<WriteTruth> {
    Some(WriteTruth {
        loses_revolution,
        settles_at_once,
    })
}

/// A row of Table 3 with a candidate's drive.
pub(super) fn row(
    writing: Option<WriteTruth>,
    delivery: Delivery,
    kib: u32,
    rate: f64,
) -> ServingSetup {
    on(writing, at_rate(delivery, Direction::Write, kib, rate))
}

/// A run with a candidate's drive, if it writes.
pub(super) fn on(writing: Option<WriteTruth>, setup: ServingSetup) -> ServingSetup {
    let writing = writing.filter(|_| setup.bulk.direction == Direction::Write);
    ServingSetup {
        model: writing.map_or(setup.model, Model::St318437lwWriting),
        ..setup
    }
}

/// The runs of all candidates.
pub(super) fn servings() -> Vec<ServingSetup> {
    let mut all = Vec::new();
    for (_, writing) in CANDIDATES {
        for (delivery, _) in NAMED {
            for kib in TABLE_SIZES {
                all.extend(RATES.map(|rate| row(writing, delivery, kib, rate)));
            }
            for kib in SIZES {
                all.push(row(writing, delivery, kib, TABLE_RATE));
                all.push(on(writing, alone(delivery, Direction::Write, kib)));
            }
        }
    }
    all
}

impl VirtualIoPaper<'_> {
    /// The figures of one size in Table 3 with a candidate's drive, by their names in the claim.
    pub(super) fn writes_of(
        &self,
        writing: Option<WriteTruth>,
        kib: u32,
    ) -> Result<Vec<(String, f64)>, Failure> {
        let mut ours = Vec::new();
        for rate in RATES {
            for (delivery, of_way) in NAMED {
                let served = self.of(row(writing, delivery, kib, rate))?;
                ours.push((
                    format!("{of_way}_response_{rate}hz"),
                    served.response()?.mean_ms,
                ));
                ours.push((format!("{of_way}_rate_{rate}hz"), served.rate()));
            }
        }
        Ok(ours)
    }

    /// The mean distance of each candidate from both halves of Table 3.
    pub(super) fn writes(&self, claims: &[(u32, &Claim)]) -> Result<Table, Failure> {
        let columns = [
            "writes",
            "rows at 0.5, 2, 10 Hz, mean distance %",
            "rows at 1, 5, 20 Hz, mean distance %",
            "cells off of 72",
        ];
        let mut table = Table::new(
            "Table 3 by a hypothesis about its writes: chosen by the first half, judged by the second",
            &columns,
        );
        let mut errors = Vec::new();
        for (name, writing) in CANDIDATES {
            let (mut halves, mut off) = ([Vec::new(), Vec::new()], 0);
            for &(kib, claim) in claims {
                for (cell, ours) in self.writes_of(writing, kib)? {
                    let Some(theirs) = claim.figure(Some(&cell)).map(|figure| figure.theirs) else {
                        return Err(Failure::failed(format!("{cell}: no cell of {}", claim.id)));
                    };
                    let (Theirs::Lower(value) | Theirs::Higher(value)) = theirs else {
                        return Err(Failure::failed(format!(
                            "{cell}: expected a cell of a table"
                        )));
                    };
                    off += u32::from(!theirs.agrees(ours));
                    let half = usize::from(
                        !CHOOSING
                            .iter()
                            .any(|rate| cell.ends_with(&format!("_{rate}hz"))),
                    );
                    halves[half].push((ours / value - 1.0).abs() * 100.0);
                }
            }
            let mean = halves.map(|half| half.iter().sum::<f64>() / half.len() as f64);
            let mut line = vec![name.to_owned()];
            line.extend(mean.map(|mean| format!("{mean:.1}")));
            line.push(off.to_string());
            table.rows.push(line);
            errors.push((name, mean));
        }
        // Both together or neither: the parts alone are shown and not chosen.
        let [neither, .., both] = errors.as_slice() else {
            return Ok(table);
        };
        let chosen = if both.1[0] < neither.1[0] {
            both
        } else {
            neither
        };
        let better = if both.1[1] < neither.1[1] {
            both
        } else {
            neither
        };
        table.summary = Some(format!(
            "The first half chooses: {}. On the second half the better one of neither and both is: {}.",
            chosen.0, better.0
        ));
        Ok(table)
    }
}

/// The rates of the half that chooses.
const CHOOSING: [f64; 3] = [0.5, 2.0, 10.0];
