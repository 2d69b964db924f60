//! A plan as a table: a row for each group.

use super::{PlannedGroup, StreamPlan};
use crate::table::{Column, ColumnTable};

impl StreamPlan {
    /// The groups.
    pub fn table(&self) -> ColumnTable {
        planned(&self.drive, &self.groups)
    }
}

/// The table of groups on a drive.
pub fn planned(drive: &str, groups: &[PlannedGroup]) -> ColumnTable {
    let groups = || groups.iter();
    let count = |name, what, of: fn(&PlannedGroup) -> Option<u64>| {
        Column::count(name, what, groups().map(of))
    };
    ColumnTable {
        name: "streams",
        version: 1,
        columns: vec![
            Column::text(
                "drive",
                "the drive",
                groups().map(|_| Some(drive.to_owned())),
            ),
            Column::text(
                "name",
                "the group",
                groups().map(|group| Some(group.name.clone())),
            ),
            Column::text(
                "mode",
                "play, record or record-sync",
                groups().map(|group| Some(group.mode)),
            ),
            count("asked", "streams of the group", |group| {
                Some(group.count.into())
            }),
            count(
                "granted",
                "streams that are granted before the first refusal",
                |group| Some(group.granted.into()),
            ),
            count("rate_bytes_per_second", "rate of each", |group| {
                Some(group.rate)
            }),
            count("buffer_bytes", "read or written at once by each", |group| {
                Some(group.buffer)
            }),
            count("memory_bytes", "memory of each, the largest", |group| {
                Some(group.memory)
            }),
            count(
                "batch_bytes",
                "batch of each, once all are granted",
                |group| Some(group.batch),
            ),
            count(
                "more",
                "such streams that would be granted besides; null if one is refused",
                |group| group.more.map(u64::from),
            ),
        ],
    }
}
