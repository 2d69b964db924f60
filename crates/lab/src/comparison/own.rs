//! A policy of the caller's, to try an idea.

use std::sync::Arc;

use engine::Engine;
use scheduler::Policy;
use scheduler::policy::NamedPolicy;
use simulator::run::Watch;

use super::ComparisonSetup;
use super::figures::PolicyRun;
use crate::{Failure, named};

/// A policy of the caller's.
pub struct OwnPolicy<'a> {
    /// The name in results.
    pub name: &'a str,
    /// The constructor.
    pub make: &'a dyn Fn() -> Box<dyn Policy>,
}

impl ComparisonSetup {
    /// Runs the load under a policy of the caller's, with the limits of `fcfs`.
    ///
    /// # Errors
    /// As [`ComparisonSetup::run`]; if the belief is not the truth, or the setup has a scan, preemption or a mirror.
    pub fn run_own(
        &self,
        policy: &OwnPolicy<'_>,
        watch: &mut dyn Watch,
    ) -> Result<PolicyRun, Failure> {
        let like: NamedPolicy = named::policy("fcfs")?;
        let scenario = self.scenario(like)?;
        let others = scenario.background.is_some()
            || scenario.preemption.is_some()
            || scenario.mirror.is_some();
        if others || !scenario.is_in_firmware() {
            return Err(Failure::input(format!(
                "{} with noise, a belief, a scan, preemption or a mirror: expected a policy by name",
                policy.name
            )));
        }
        let options = self.options();
        let engine = Engine::new(Arc::clone(&scenario.belief), policy.make, scenario.limits);
        let (played, counts) = self.play_on(engine, &scenario, &options, watch, None)?;
        let run = PolicyRun::new(like, scenario.limits, &played.ledger, &played.ran, counts);
        Ok(PolicyRun {
            name: policy.name.to_owned(),
            ..run
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ComparisonSettings;
    use super::super::load::LoadSettings;
    use super::*;

    #[test]
    fn a_policy_of_the_caller_s_runs_as_the_same_one_by_name() {
        let settings = ComparisonSettings {
            drive: "quantum-atlas-10k".to_owned(),
            load: LoadSettings {
                workload: Some("oltp".to_owned()),
                ..LoadSettings::default()
            },
            policies: vec!["sstf".to_owned()],
            requests: Some(500),
            ..ComparisonSettings::default()
        };
        let setup = settings.setup().expect("good settings");
        let named = setup.run(setup.policies[0], &mut ()).expect("it runs");
        let own = OwnPolicy {
            name: "mine",
            make: &|| setup.policies[0].make(),
        };
        let own = setup.run_own(&own, &mut ()).expect("it runs");
        assert_eq!((own.name.as_str(), own.report), ("mine", named.report));
    }
}
