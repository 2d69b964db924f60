//! What an engine reports of all its arms together.

use block::{Finished, Instant, Sectors};
use profiler::Confidence;
use profiler::slow_heads::SlowHeads;
use profiler::tracker::BeliefMode;

use super::Engine;
use crate::belief::explanation::Explanation;
use crate::engine::ArmEngine;
use crate::{Preempted, Tallies};

impl Engine {
    /// The number of commands at the drive.
    pub fn at_drive(&self) -> usize {
        self.arms().map(|arm| arm.dispatch().at_drive()).sum()
    }

    /// Whether nothing is held: no request, no flush, and no command at the drive.
    pub fn is_idle(&self) -> bool {
        self.held() == 0 && self.arms().all(ArmEngine::is_idle)
    }

    /// The number of waiting pieces of requests.
    pub fn waiting(&self) -> usize {
        self.arms().map(|arm| arm.ordering().waiting()).sum()
    }

    /// How often patience overruled the policies.
    pub fn overruled(&self) -> u64 {
        self.arms().map(|arm| arm.ordering().overruled()).sum()
    }

    /// The use of the belief that is used least.
    pub fn mode(&self) -> BeliefMode {
        let modes = self.arms().map(|arm| arm.belief().mode());
        modes.fold(BeliefMode::Positioning, |one, other| match (one, other) {
            (BeliefMode::Positioning, other) => other,
            (BeliefMode::Safe, _) | (_, BeliefMode::Safe) => BeliefMode::Safe,
            (BeliefMode::Unconfirmed, _) => BeliefMode::Unconfirmed,
        })
    }

    /// How far the belief can be trusted that is trusted least, if the engine follows its drive.
    pub fn confidence(&self) -> Option<Confidence> {
        let found = self.arms().filter_map(|arm| arm.belief().confidence());
        found.min_by(|one, other| one.share().total_cmp(&other.share()))
    }

    /// What the ends of commands have said of the beliefs, if the engine follows its drive.
    pub fn tallies(&self) -> Option<Tallies> {
        let tallies = self.arms().filter_map(|arm| arm.belief().tallies());
        tallies.reduce(Tallies::and)
    }

    /// The heads of each actuator, or of each drive of a mirror, beside each other; nothing if the engine does not follow
    /// its drive.
    pub fn slow_heads(&self) -> impl Iterator<Item = &SlowHeads> {
        self.arms().filter_map(|arm| arm.belief().slow_heads())
    }

    /// The nanoseconds by which commands arrive later at the drive than in the original belief, of the actuator
    /// for which they are most; zero if the engine does not follow its drive.
    pub fn host_delay(&self) -> i64 {
        let delays = self.arms().map(|arm| arm.belief().host_delay());
        delays.max_by_key(|delay| delay.abs()).unwrap_or(0)
    }

    /// The results of preemption.
    pub fn preempted(&self) -> Preempted {
        let tallies = self.arms().map(|arm| arm.preemption().tally());
        tallies.fold(Preempted::default(), sum)
    }

    /// Where the time of a request went that has just been reported and came at `came`; `None` if the
    /// engine was made without explanations, or two arms served the request.
    pub fn explain(&self, finished: &Finished, came: Instant) -> Option<Explanation> {
        let Some(joint) = &self.joint else {
            return self.first.belief().explain(finished, came);
        };
        let (side, extent) = joint.only_of(&finished.request)?;
        let mut finished = *finished;
        finished.request.extent = extent;
        self.arm(side).belief().explain(&finished, came)
    }
}

/// The sum of two counts, of two actuators.
pub(super) fn sum(one: Preempted, other: Preempted) -> Preempted {
    Preempted {
        parts: one.parts + other.parts,
        aside: one.aside + other.aside,
        back: one.back + other.back,
        filled: one.filled + other.filled,
        held: one.held + other.held,
        missed: one.missed + other.missed,
        hops: one.hops + other.hops,
        read_ahead: Sectors(one.read_ahead.0 + other.read_ahead.0),
    }
}
