//! The steps of histories.

use proptest::prelude::*;

use super::{BLOCK, LENGTH};

/// When the drive reads or changes the bytes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// At its begin.
    Early,
    /// At its end.
    Late,
}

/// A step of a history. Numbers choose among what is possible.
#[derive(Clone, Debug)]
pub enum Step {
    /// A write is submitted. It goes to the drive when its intents are durable.
    Write {
        first: u64,
        count: u64,
        value: u8,
        moment: Moment,
    },
    /// A trim of some blocks is submitted.
    Punch { first: u64, count: u64 },
    /// A command at the drive ends.
    End { which: u64, ending: bool },
    /// The drive begins to flush, or ends a flush.
    Flush,
    /// A flush fails, and the drive drops some of what is not on the medium. The commands at the drive go on.
    FlushFails { seed: u64 },
    /// The region carries out its next requests.
    Region { count: u64 },
    /// Time passes. The drive flushes if that is wanted.
    Pass { seconds: u64 },
    /// Time passes, and the drive has no room for a flush.
    Look { seconds: u64 },
    /// A scrub begins to read some blocks.
    Read {
        first: u64,
        count: u64,
        moment: Moment,
    },
    /// A read ends.
    EndRead { which: u64 },
    /// The service is killed after some operations of its region. The page cache stays.
    Kill { operations: u64 },
    /// The machine loses its power after some operations of its region.
    PowerCut { operations: u64, seed: u64 },
    /// The drive loses its power, and the service lives on.
    DriveCut { seed: u64 },
}

pub fn step() -> impl Strategy<Value = Step> {
    let place = || 0..LENGTH / BLOCK;
    let count = || prop_oneof![3 => 1..16_u64, 2 => Just(8_u64), 1 => 100..400_u64];
    let moment = || prop_oneof![Just(Moment::Early), Just(Moment::Late)];
    // Many steps of few places meet each other.
    let near = || prop_oneof![place(), 0..256_u64];
    prop_oneof![
        12 => (near(), count(), any::<u8>(), any::<bool>(), moment()).prop_map(
            |(first, count, value, aligned, moment)| {
                let first = if aligned { first / 8 * 8 } else { first };
                Step::Write { first, count, value, moment }
            }
        ),
        2 => (near(), count()).prop_map(|(first, count)| Step::Punch { first, count }),
        12 => (any::<u64>(), prop::bool::weighted(0.95)).prop_map(|(which, ending)| Step::End { which, ending }),
        8 => Just(Step::Flush),
        1 => any::<u64>().prop_map(|seed| Step::FlushFails { seed }),
        12 => (1..6_u64).prop_map(|count| Step::Region { count }),
        4 => (1..12_u64).prop_map(|seconds| Step::Pass { seconds }),
        1 => (1..12_u64).prop_map(|seconds| Step::Look { seconds }),
        6 => (near(), count(), moment()).prop_map(|(first, count, moment)| Step::Read { first, count, moment }),
        3 => (0..LENGTH / BLOCK / 128, 1..4_u64, moment()).prop_map(|(chunk, count, moment)| Step::Read {
            first: chunk * 128,
            count: count * 128,
            moment,
        }),
        8 => any::<u64>().prop_map(|which| Step::EndRead { which }),
        1 => (0..6_u64).prop_map(|operations| Step::Kill { operations }),
        1 => (0..6_u64, any::<u64>()).prop_map(|(operations, seed)| Step::PowerCut { operations, seed }),
        1 => any::<u64>().prop_map(|seed| Step::DriveCut { seed }),
    ]
}
