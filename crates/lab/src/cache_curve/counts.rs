//! One policy at one size in one pass over a trace of objects, which is nowhere kept as a whole.

use std::ops::ControlFlow;
use std::path::Path;

use cache::{Numbers, Replay};
use simulator::trace::objects::{self, ObjectFormat};

use crate::Failure;

/// Demands of a trace, and misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Demands for single blocks.
    pub demands: u64,
    /// Demands whose block the cache did not have.
    pub misses: u64,
}

impl ReplayCounts {
    /// Replays a trace in `oracleGeneral` under the policy that a user names.
    ///
    /// # Errors
    /// If the trace cannot be read or has too many blocks, or the policy or the size is illegal.
    pub fn of(trace: &Path, policy: &str, capacity: u64) -> Result<Self, Failure> {
        let mut replay = Replay::named(policy, capacity).map_err(Failure::input)?;
        let mut numbers = Numbers::new();
        let mut blocks = Vec::new();
        let mut counts = Self {
            demands: 0,
            misses: 0,
        };
        let mut ended = Ok(());
        let mut each = |names: &[u64]| {
            blocks.clear();
            if let Err(many) = numbers.extend(names, &mut blocks) {
                ended = Err(Failure::input(format!("{}: {many}", trace.display())));
                return ControlFlow::Break(());
            }
            let demands = blocks.len() as u64;
            counts.demands += demands;
            counts.misses += demands - replay.demand(&blocks, numbers.count());
            ControlFlow::Continue(())
        };
        let read = objects::read(trace, &ObjectFormat::OracleGeneral, &mut each);
        read.map_err(Failure::input)?;
        ended.map(|()| counts)
    }
}
