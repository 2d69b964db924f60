//! The comparison of a drive's heads.

use profiler::slow_heads::SlowHeads;
use serde::{Deserialize, Serialize};

/// The reads of a drive that were compared with its belief, for slow heads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadComparison {
    /// Reads whose ends were compared since the start.
    pub compared_total: u64,
    /// Those of them that were late by a revolution or more.
    pub late_total: u64,
    /// The time of these revolutions, in percent of the head time that was believed.
    pub lost_percent: f64,
    /// The same of the last 2,048 compared reads; null before so many.
    pub recent_percent: Option<f64>,
    /// The same of all compared reads before those.
    pub past_percent: Option<f64>,
    /// How often a head was found slow since the start.
    pub found_total: u64,
    /// The heads that are slow.
    pub slow: Vec<SlowHead>,
}

/// A head whose reads take longer than those of the other heads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowHead {
    /// The head, counted from 0.
    pub head: u32,
    /// The actuator of the drive, or the leg of the mirror, that has this head: 0 or 1.
    pub arm: u32,
    /// By how much its reads take longer.
    pub slower_percent: f64,
    /// The same before it became slow, if it had been used enough.
    pub before_percent: Option<f64>,
    /// The time since it was found.
    pub found_s: f64,
    /// Its compared reads since it is slow.
    pub reads: u64,
    /// Those of them that were late.
    pub late: u64,
    /// The first of the only cylinders where it is slow; null if it is slow on all.
    pub first_cylinder: Option<u32>,
    /// The last of them.
    pub last_cylinder: Option<u32>,
}

impl HeadComparison {
    /// The comparisons of a drive's arms; `None` without any.
    pub(crate) fn of<'a>(
        arms: impl Iterator<Item = &'a SlowHeads>,
        now: block::Instant,
    ) -> Option<HeadComparison> {
        let mut all: Option<HeadComparison> = None;
        for (arm, heads) in arms.enumerate() {
            let compared = heads.compared();
            let (reads, late) = (compared.reads, compared.late);
            let sum = all.get_or_insert_default();
            let (before, mine) = (sum.compared_total as f64, reads as f64);
            // Weighed by reads.
            sum.lost_percent = (sum.lost_percent * before + percent(compared.lost_ppm) * mine)
                / (before + mine).max(1.0);
            // Of the two arms, the one that loses more at present.
            let recent = compared.recent_ppm.map(percent);
            if recent > sum.recent_percent {
                sum.recent_percent = recent;
                sum.past_percent = compared.past_ppm.map(percent);
            }
            sum.compared_total += reads;
            sum.late_total += late;
            sum.found_total += heads.alarms();
            sum.slow.extend(heads.slow().map(|slow| SlowHead {
                head: slow.head,
                arm: arm as u32,
                slower_percent: percent(slow.slower_ppm),
                before_percent: slow.before_ppm.map(percent),
                found_s: now.since(slow.found).as_secs_f64(),
                reads: slow.reads,
                late: slow.late,
                first_cylinder: slow.only.map(|(first, _)| first),
                last_cylinder: slow.only.map(|(_, last)| last),
            }));
        }
        all
    }
}

fn percent(ppm: u64) -> f64 {
    ppm as f64 / 1e4
}
