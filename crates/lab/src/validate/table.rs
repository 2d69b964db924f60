//! Judgements as a table.

use super::judgement::{DemeritFigures, Judgement};
use crate::table::{Column, ColumnTable};

/// The table of judgements: two rows for each drive, all requests and the second half.
pub fn judgements(judgements: &[Judgement]) -> ColumnTable {
    type Row<'a> = (&'a Judgement, &'static str, &'a DemeritFigures);
    let rows: Vec<Row<'_>> = judgements
        .iter()
        .flat_map(|judged| {
            [
                (judged, "all", &judged.whole),
                (judged, "second half", &judged.held_out),
            ]
        })
        .collect();
    let number = |name, what, of: fn(&DemeritFigures) -> Option<f64>| {
        Column::number(name, what, rows.iter().map(|row| of(row.2)))
    };
    ColumnTable {
        name: "judgements",
        version: 1,
        columns: vec![
            Column::text(
                "drive",
                "the drive",
                rows.iter().map(|row| Some(row.0.drive.clone())),
            ),
            Column::text(
                "part",
                "requests of the trace: all, or the second half, which no fit saw",
                rows.iter().map(|row| Some(row.1)),
            ),
            Column::count(
                "fitted",
                "1: the profile has fitted constants",
                rows.iter().map(|row| Some(u64::from(row.0.fitted))),
            ),
            Column::count(
                "requests",
                "requests of the part",
                rows.iter().map(|row| Some(row.2.requests as u64)),
            ),
            number("demerit_ms", "demerit of our model", |row| {
                Some(row.demerit_ms)
            }),
            number("demerit_read_ms", "reads only", |row| {
                Some(row.demerit_read_ms)
            }),
            number("demerit_write_ms", "writes only", |row| {
                Some(row.demerit_write_ms)
            }),
            number("disksim_demerit_ms", "demerit of DiskSim", |row| {
                row.disksim_demerit_ms
            }),
            number("measured_mean_ms", "mean measured service time", |row| {
                Some(row.measured_mean_ms)
            }),
            number(
                "simulated_mean_ms",
                "mean service time of our model",
                |row| Some(row.simulated_mean_ms),
            ),
            number(
                "median_error_ms",
                "median of |simulated - measured|, if the clock is coherent",
                |row| row.median_error_ms,
            ),
        ],
    }
}
