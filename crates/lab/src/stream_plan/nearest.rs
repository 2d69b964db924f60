//! Sets near a refused one that are granted, each found by the same admission.
//!
//! The service sets memory stream by stream, and a stream keeps what it has. Streams that come first then have buffers
//! that are too short for many others. With memory that is named for all, more of them fit.

use serde::Serialize;

use super::{AfterRefusal, PlannedDisk, StreamGroup};
use crate::Failure;

/// Sets near a refused one. Each changes one thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NearestSets {
    /// The same streams, as many of each group as are granted in order.
    pub fewer: Vec<FewerStreams>,
    /// The same streams with memory that is named; none if no memory is enough.
    pub larger_buffers: Option<LargerBuffers>,
    /// All streams at a share of their rates, with the service's memory divided among them; none if not even slow
    /// ones are granted.
    pub slower: Option<SlowerStreams>,
}

/// A group of fewer streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FewerStreams {
    /// The name of the group.
    pub name: String,
    /// The number of streams.
    pub count: u32,
}

/// All streams, with this memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LargerBuffers {
    /// Bytes of each stream, by group.
    pub memory: Vec<u64>,
    /// Bytes of all streams together, which the service must have.
    pub total: u64,
}

/// All streams at a share of their rates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowerStreams {
    /// The share, in percent, to a tenth.
    pub percent: f64,
    /// Bytes a second of each stream, by group.
    pub rates: Vec<u64>,
    /// Bytes of memory of each stream, by group.
    pub memory: Vec<u64>,
}

/// Looks for them.
pub(super) fn nearest(disk: &PlannedDisk, groups: &[StreamGroup]) -> Result<NearestSets, Failure> {
    Ok(NearestSets {
        fewer: fewer(disk, groups)?,
        larger_buffers: larger_buffers(disk, groups)?,
        slower: slower(disk, groups)?,
    })
}

fn fewer(disk: &PlannedDisk, groups: &[StreamGroup]) -> Result<Vec<FewerStreams>, Failure> {
    let granting = disk.grant_by(groups, AfterRefusal::NextGroup)?;
    let counts = groups.iter().zip(granting.groups);
    let fewer = counts.map(|(group, granted)| FewerStreams {
        name: group.name.clone(),
        count: granted.count,
    });
    Ok(fewer.collect())
}

/// More memory is a longer buffer, so that halving finds the least.
fn larger_buffers(
    disk: &PlannedDisk,
    groups: &[StreamGroup],
) -> Result<Option<LargerBuffers>, Failure> {
    let unbounded = disk.with_memory(MOST_MEMORY);
    let at = |millis: u64| -> Vec<StreamGroup> {
        let larger = groups.iter().map(|group| {
            let memory = disk.memory_for(group, millis);
            StreamGroup {
                memory: Some(memory.max(group.memory.unwrap_or(0))),
                ..group.clone()
            }
        });
        larger.collect()
    };
    let (mut refused, mut granted) = (0, LONGEST_BUFFER);
    if unbounded.grant(&at(granted))?.refusal.is_some() {
        return Ok(None);
    }
    while granted - refused > 1 {
        let middle = (granted + refused) / 2;
        match unbounded.grant(&at(middle))?.refusal {
            None => granted = middle,
            Some(_) => refused = middle,
        }
    }
    let larger = at(granted);
    let total = larger
        .iter()
        .map(|group| u64::from(group.count) * memory_of(group));
    Ok(Some(LargerBuffers {
        total: total.sum(),
        memory: larger.iter().map(memory_of).collect(),
    }))
}

/// A lower rate is a smaller load and a longer buffer, so that halving finds the share.
fn slower(disk: &PlannedDisk, groups: &[StreamGroup]) -> Result<Option<SlowerStreams>, Failure> {
    let at = |permille: u64| {
        let slowed = groups.iter().map(|group| StreamGroup {
            rate: (u128::from(group.rate) * u128::from(permille) / 1000).max(1) as u64,
            ..group.clone()
        });
        divided(disk, slowed.collect())
    };
    let (mut granted, mut refused) = (0, 1001);
    while refused - granted > 1 {
        let middle = (granted + refused) / 2;
        match disk.grant(&at(middle))?.refusal {
            None => granted = middle,
            Some(_) => refused = middle,
        }
    }
    let slowed = at(granted);
    Ok((granted > 0).then(|| SlowerStreams {
        percent: granted as f64 / 10.0,
        rates: slowed.iter().map(|group| group.rate).collect(),
        memory: slowed.iter().map(memory_of).collect(),
    }))
}

/// The groups with the service's memory divided, so that all buffers last equally long.
fn divided(disk: &PlannedDisk, groups: Vec<StreamGroup>) -> Vec<StreamGroup> {
    let sum = |of: &dyn Fn(&StreamGroup) -> u64| -> u64 {
        let open = groups.iter().filter(|group| group.memory.is_none());
        open.map(|group| u64::from(group.count).saturating_mul(of(group)))
            .fold(0, u64::saturating_add)
    };
    let taken = groups
        .iter()
        .map(|group| u64::from(group.count).saturating_mul(memory_of(group)));
    let fixed = taken.fold(sum(&|group| disk.memory_for(group, 0)), u64::saturating_add);
    let left = disk.memory.total.saturating_sub(fixed);
    let millis = u128::from(left) * 1000 / u128::from(sum(&|group| group.rate).max(1));
    let millis = u64::try_from(millis)
        .unwrap_or(LONGEST_BUFFER)
        .min(LONGEST_BUFFER);
    let each = groups.iter().map(|group| StreamGroup {
        memory: group.memory.or(Some(disk.memory_for(group, millis))),
        ..group.clone()
    });
    each.collect()
}

impl PlannedDisk {
    /// The memory of a stream whose buffer lasts so long beyond what its application has.
    fn memory_for(&self, group: &StreamGroup, millis: u64) -> u64 {
        let beyond = u128::from(group.rate) * u128::from(millis) / 1000;
        let beyond = u64::try_from(beyond).unwrap_or(u64::MAX);
        let parts = [group.buffer, self.memory.page * 4, beyond];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

fn memory_of(group: &StreamGroup) -> u64 {
    group.memory.unwrap_or(0)
}

/// Memory of a machine at most. A choice.
const MOST_MEMORY: u64 = 1 << 44;

/// The longest buffer, in milliseconds. A choice: two minutes.
const LONGEST_BUFFER: u64 = 120_000;
