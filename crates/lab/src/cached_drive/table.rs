//! The caches of a run as a table.

use super::{CacheLevelFigures, CachedFigures};
use crate::table::{Column, ColumnTable};

impl CachedFigures {
    /// A row for each cache, from the one that clients reach.
    pub fn table(&self) -> ColumnTable {
        levels(std::slice::from_ref(self))
    }
}

/// A cache of a run: the run, the cache's place, and its figures.
type Row<'a> = (&'a CachedFigures, u64, &'a CacheLevelFigures);

/// The table of the caches of these runs.
pub fn levels(runs: &[CachedFigures]) -> ColumnTable {
    let rows = runs.iter().flat_map(|run| {
        let levels = (0..).zip(&run.levels);
        levels.map(move |(place, level)| (run, place, level))
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let mut columns = of_caches(&rows);
    columns.extend(of_runs(&rows));
    ColumnTable {
        name: "levels",
        version: 1,
        columns,
    }
}

fn of_caches(rows: &[Row<'_>]) -> Vec<Column> {
    let text = |name, what, of: fn(&Row<'_>) -> String| {
        Column::text(name, what, rows.iter().map(|row| Some(of(row))))
    };
    let count = |name, what, of: fn(&CacheLevelFigures) -> u64| {
        Column::count(name, what, rows.iter().map(|row| Some(of(row.2))))
    };
    vec![
        text("drive", "the drive", |row| row.0.drive.clone()),
        text("mode", "the relation between belief and truth", |row| {
            row.0.mode.name().to_owned()
        }),
        Column::count(
            "level",
            "0: the cache that clients reach",
            rows.iter().map(|row| Some(row.1)),
        ),
        text(
            "cache",
            "size, replacement, prefetcher, coordinator",
            |row| row.2.cache.clone(),
        ),
        count(
            "hits",
            "demanded blocks that were resident or in flight",
            |l| l.hits,
        ),
        count("misses", "demanded blocks that were not", |l| l.misses),
        count("prefetched", "blocks that the prefetcher fetched", |l| {
            l.prefetched
        }),
        count("readmore", "blocks that the coordinator added", |l| {
            l.readmore
        }),
        count("unused", "blocks fetched ahead and never demanded", |l| {
            l.unused
        }),
        Column::number(
            "hit_ratio",
            "hits among demanded blocks, 0 to 1",
            rows.iter().map(|row| Some(row.2.hit_ratio)),
        ),
    ]
}

fn of_runs(rows: &[Row<'_>]) -> Vec<Column> {
    let count = |name, what, of: fn(&CachedFigures) -> u64| {
        Column::count(name, what, rows.iter().map(|row| Some(of(row.0))))
    };
    let number = |name, what, of: fn(&CachedFigures) -> f64| {
        Column::number(name, what, rows.iter().map(|row| Some(of(row.0))))
    };
    vec![
        count("requests", "requests of the trace", |run| run.requests),
        number("mean_ms", "mean response of the run", |run| run.mean_ms),
        number("p50_ms", "median response of the run", |run| run.p50_ms),
        number("p99_ms", "99th percentile of the run", |run| run.p99_ms),
        count("disk_commands", "commands of the drive", |run| {
            run.disk_commands
        }),
        count("disk_blocks", "their blocks of 4 KiB", |run| {
            run.disk_blocks
        }),
        number("disk_busy_percent", "time with a command, %", |run| {
            run.disk_busy_percent
        }),
    ]
}
