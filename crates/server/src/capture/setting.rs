//! The setting of a captured engine, from which it can be built again.

use std::sync::Arc;

use block::{Duration, Sectors, Switch};
use drive::Profile;
use drive::firmware::Bus;
use engine::{Engine, Limits, Rules};
use scheduler::Preemption;
use scheduler::freeblock::Caution;
use scheduler::policy::{NamedPolicy, find};
use serde::{Deserialize, Serialize};

/// The setting of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSetting {
    /// The belief of the drive.
    pub belief: Belief,
    /// The policy.
    pub policy: String,
    /// Whether the engine tracks its drive.
    pub tracking: Tracking,
    /// Whether the engine has background tasks.
    pub tasks: Tasks,
    /// The limits.
    pub limits: Limits,
    /// The preemption of larger requests, if it is on.
    pub preemption: Option<Preemption>,
}

/// The belief of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Belief {
    /// The text of the profile.
    pub text: String,
    /// The host's setting of look-ahead.
    pub look_ahead: Switch,
    /// The host's setting of the write cache.
    pub write_cache: Switch,
    /// The bus time of a block, if it differs from the text.
    pub bus_block: Option<Duration>,
}

/// Whether an engine tracks its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tracking {
    /// It does not.
    Off,
    /// It does.
    On,
}

/// Whether an engine has background tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tasks {
    /// It has none.
    None,
    /// It has tasks under these rules.
    By(Rules),
}

/// The error of a setting from which no engine can be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the capture's {what}: {why}")]
pub struct UnfitSetting {
    what: &'static str,
    why: String,
}

/// The largest number of requests of an engine: a million, a choice far above all limits.
const MOST_REQUESTS: usize = 1 << 20;
/// The largest value in a rule. A choice: a million tracks or blocks, and as many stops as a route can
/// have.
const MOST: u32 = 1 << 20;
const MOST_STOPS: u8 = 8;
/// The whole, in parts per million.
const WHOLE: u32 = 1_000_000;
/// The largest number of blocks of a chunk: a terabyte, a choice far above all requests.
const MOST_BLOCKS: u64 = 1 << 31;

impl Belief {
    /// The belief that the text of a profile states.
    pub fn plain(text: impl Into<String>) -> Self {
        Belief {
            text: text.into(),
            look_ahead: Switch::On,
            write_cache: Switch::On,
            bus_block: None,
        }
    }

    /// The profile of the belief.
    ///
    /// # Errors
    /// If the text is no profile.
    pub fn profile(&self) -> Result<Profile, UnfitSetting> {
        let unfit = |why: String| UnfitSetting {
            what: "belief",
            why,
        };
        let profile = Profile::parse(&self.text, "the belief").map_err(|e| unfit(e.to_string()))?;
        let mut belief = profile.switched(self.look_ahead, self.write_cache);
        if let Some(block) = self.bus_block {
            belief.bus = Bus {
                read_block: block,
                write_block: block,
            };
        }
        Ok(belief)
    }
}

impl EngineSetting {
    /// An engine without tracking and background tasks.
    pub fn plain(belief: Belief, policy: NamedPolicy, limits: Limits) -> Self {
        EngineSetting {
            belief,
            policy: policy.name(),
            tracking: Tracking::Off,
            tasks: Tasks::None,
            limits,
            preemption: None,
        }
    }

    /// A new engine.
    ///
    /// # Errors
    /// If the belief is no profile, or the policy is unknown.
    pub fn engine(&self) -> Result<Engine, UnfitSetting> {
        let belief = Arc::new(self.belief.profile()?);
        let policy = find(&self.policy).map_err(|unknown| UnfitSetting {
            what: "policy",
            why: unknown.to_string(),
        })?;
        let mut engine = Engine::new(belief, &|| policy.make(), self.limits);
        if self.tracking == Tracking::On {
            engine = engine.with_tracking(policy);
        }
        if let Tasks::By(rules) = self.tasks {
            engine = engine.with_background(rules);
        }
        if let Some(rules) = self.preemption {
            engine = engine.with_preemption(rules);
        }
        Ok(engine)
    }

    /// The expected setting, if an engine with this one could serve no request, divide by zero, or take
    /// unbounded memory.
    pub(super) fn unmet_condition(&self) -> Option<&'static str> {
        let Limits {
            requests,
            reserved_for_real_time,
            commands_at_drive,
            ..
        } = self.limits;
        // Free reads are given while the command before them is in service.
        let least = match self.tasks {
            Tasks::None => 1,
            Tasks::By(_) => 2,
        };
        if requests.max(commands_at_drive) > MOST_REQUESTS {
            return Some("limits of at most 2^20");
        }
        if reserved_for_real_time >= requests || commands_at_drive < least {
            return Some("limits under which something can be served");
        }
        if let Tasks::By(rules) = self.tasks {
            let impact_ppm = match rules.caution {
                Caution::Fixed { .. } => 0,
                Caution::Learned { impact_ppm } => impact_ppm,
            };
            if rules.stops > MOST_STOPS || rules.tracks.max(rules.idle_blocks) > MOST {
                return Some("at most eight stops on a way, 2^20 tracks, and 2^20 blocks");
            }
            if impact_ppm.max(rules.paid_ppm) > WHOLE {
                return Some("at most a million parts per million");
            }
        }
        let rules = self.preemption?;
        let has_parts = |chunk: Sectors| (1..=MOST_BLOCKS).contains(&chunk.0);
        if !rules.chunk.is_none_or(has_parts) {
            return Some("chunks of one to 2^31 blocks");
        }
        if rules.split.is_some_and(|split| split.longest == 0) {
            return Some("stops that are at least a cylinder apart");
        }
        let is_too_much = rules.aside.is_some_and(|aside| aside.most_permille > 1000);
        is_too_much.then_some("at most a thousand permille")
    }
}
