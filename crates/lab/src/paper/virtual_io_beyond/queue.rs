//! The drive's own queue: it receives all commands at once, perhaps with hints about the ones that are urgent.

use std::sync::Arc;

use block::{Command, Duration, Instant, Outcome, Refused, Sectors, Urgency};
use drive::VirtualDrive;
use engine::Engine;
use simulator::driver::{Driver, SimulatedDrive};
use simulator::ledger::Ledger;
use simulator::run::{self, Load as _};

use crate::Failure;
use crate::paper::Effort;
use crate::paper::serving::{ServedLoad, ServingSetup};

/// The hint to a drive about urgent commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueHint {
    /// Nothing.
    Nothing,
    /// That they have priority.
    Priority,
    /// To give them up when they have waited for so long. They are then given once more.
    Limit(Duration),
    /// Both.
    PriorityAndLimit(Duration),
}

impl QueueHint {
    /// As a report has it.
    pub(super) fn name(self) -> String {
        match self {
            QueueHint::Nothing => "told nothing".to_owned(),
            QueueHint::Priority => "with priority".to_owned(),
            QueueHint::Limit(limit) => format!("with a duration limit of {limit}"),
            QueueHint::PriorityAndLimit(limit) => format!("with both, the limit {limit}"),
        }
    }
}

/// A drive whose shortest commands are urgent: there are only two sizes.
struct Hinted {
    drive: VirtualDrive,
    hint: QueueHint,
}

impl SimulatedDrive for Hinted {
    fn submit(&mut self, now: Instant, mut command: Command) -> Result<(), Refused> {
        let extent = command.action.extent();
        let is_urgent = extent.is_some_and(|extent| extent.length() == Sectors(1));
        if is_urgent {
            (command.urgency, command.duration_limit) = match self.hint {
                QueueHint::Nothing => (Urgency::Normal, None),
                QueueHint::Priority => (Urgency::High, None),
                QueueHint::Limit(limit) => (Urgency::Normal, Some(limit)),
                QueueHint::PriorityAndLimit(limit) => (Urgency::High, Some(limit)),
            };
        }
        self.drive.submit(now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        self.drive.poll(now)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.drive.next_wakeup()
    }
}

/// The same load, served by the drive's own queue.
///
/// # Errors
/// If the drive is not shipped or cannot be profiled, or the load does not fit on it.
pub(super) fn by_the_drive(
    serving: &ServingSetup,
    hint: QueueHint,
    effort: Effort,
) -> Result<ServedLoad, Failure> {
    let scene = serving.scene()?;
    let scenario = scene.scenario("drive")?;
    let policy = scenario.policy;
    let belief = Arc::clone(&scenario.belief);
    let engine = Engine::new(belief, &|| policy.make(), scenario.limits).with_tracking(policy);
    let drive = Hinted {
        drive: scene.drive(),
        hint,
    };
    let mut load = serving.load(&scene)?;
    let bytes = scenario.belief.block_bytes;
    let mut ledger = Ledger::new(bytes, scenario.belief.actuators).with_parts(load.parts());
    let options = serving.options(effort);
    let ran = run::run(
        &mut Driver::new(engine, drive),
        &mut load,
        &options,
        &mut ledger,
        &mut (),
    );
    let ran = ran.map_err(Failure::failed)?;
    Ok(ServedLoad::new(&ledger, &ran, 0))
}
