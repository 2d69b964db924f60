//! What follows from the belief of a drive in service, and a belief that is taken up there.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, mpsc};
use std::time;

use drive::Profile;
use engine::explanation::Known;
use scheduler::policy::Depth;
use tracing::info;

use super::Drive;
use super::running::{engine_of, limits_of, uses};
use crate::config;
use crate::disk::taking_up::MakeEngine;
use crate::service::Running;

/// What follows from the belief of a drive.
#[derive(Clone, Debug)]
pub(super) struct FollowedBelief {
    /// The model of the belief, if there is one.
    pub(super) model: Option<String>,
    /// The name of the policy.
    pub(super) policy: String,
    /// Whether the drive has background tasks with an impact budget.
    pub(super) keeps_to_budget: bool,
    /// The reason for which the drive guarantees no streams.
    pub(super) no_streams: Option<&'static str>,
}

impl FollowedBelief {
    /// What follows from the belief of the start.
    pub(super) fn of(config: &config::DriveConfig, belief: Option<&Profile>) -> Self {
        let keeps_to_budget = belief.is_some() && config.policy.depth() == Depth::JustInTime;
        FollowedBelief {
            model: belief.map(|belief| belief.model.clone()),
            policy: config.policy.name(),
            keeps_to_budget,
            no_streams: match (&config.streams, keeps_to_budget) {
                (Some(_), true) => None,
                (_, false) => Some(
                    "its head times are not known: expected a belief, such as the profile that \
                     `headtime profile` finds, and a policy such as sptf-sw60",
                ),
                (None, true) => Some(NO_TABLE),
            },
        }
    }
}

const NO_TABLE: &str = "expected a table [drive.streams] in its configuration";

/// The longest time until all requests in flight have ended. A choice: servers behind may take half a
/// minute, and clients wait meanwhile.
const PATIENCE: time::Duration = time::Duration::from_secs(60);

impl Drive {
    /// What follows from the present belief.
    pub(super) fn following(&self) -> MutexGuard<'_, FollowedBelief> {
        let following = self.following.lock();
        following.unwrap_or_else(PoisonError::into_inner)
    }

    /// The reason for which the drive guarantees no streams.
    pub(in crate::service) fn no_streams(&self) -> Option<&'static str> {
        self.following().no_streams
    }

    /// Follows a belief that was found in service. It returns when the engine has been replaced.
    ///
    /// # Errors
    /// Why not; the service then goes on as before.
    pub(in crate::service) fn follow(&self, belief: Profile) -> Result<(), String> {
        let named = |why: &str| format!("drive {}: {why}", self.name);
        let (policy, rule, phases, grace) = self.learned;
        let limits = limits_of(policy, &belief, phases, grace.with_belief());
        if policy.depth() != Depth::JustInTime {
            let policy = policy.name();
            return Err(named(&format!(
                "policy {policy} leaves the order to the drive: expected one that does not, such as sptf-sw60"
            )));
        }
        let model = belief.model.clone();
        let impact = self.impact_ppm.load(Ordering::Relaxed);
        let rules = config::background(&belief, impact, rule);
        let make: MakeEngine = Box::new(move |now| {
            let (belief, uses) = (Arc::new(belief), uses(limits, || rules));
            engine_of(belief, policy, (limits, Known::Profile), uses, now)
        });
        let (taken, told) = mpsc::channel();
        let begun = Running::asked(&self.mailbox, move |event_loop| {
            event_loop.take_up(make, taken)
        });
        let gone = || named("it does not answer");
        begun.ok_or_else(gone)?.map_err(named)?;
        if told.recv_timeout(PATIENCE).is_err() {
            let kept = Running::asked(&self.mailbox, |event_loop| event_loop.keep_engine());
            if kept.ok_or_else(gone)? {
                let seconds = PATIENCE.as_secs();
                return Err(named(&format!(
                    "its requests did not end within {seconds} s: the service goes on as before"
                )));
            }
        }
        info!(drive = self.name, model, "a belief is taken up");
        *self.following() = FollowedBelief {
            model: Some(model),
            policy: policy.name(),
            keeps_to_budget: true,
            no_streams: Some(NO_TABLE),
        };
        Ok(())
    }
}
