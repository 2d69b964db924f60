//! `headtime serve --check`: what a start would do.

use server::config::Config;
use server::service::dry_run::{PlannedStep, StepOutcome, dry_run};

use crate::output::{Exit, json, print};

/// Prints the steps of a start.
///
/// # Errors
/// If the start would be refused, or the output cannot be written.
pub(super) fn run(config: &Config, simulated: &[&str], as_json: bool) -> Result<(), Exit> {
    let mut steps = dry_run(config);
    if !simulated.is_empty() {
        steps.push(PlannedStep {
            part: "simulation".to_owned(),
            outcome: StepOutcome::Unused,
            step: format!(
                "{}: `headtime simulate` runs them, and a service does not",
                simulated.join(", ")
            ),
        });
    }
    match as_json {
        true => print(&json(&steps)?)?,
        false => print(&text(&steps))?,
    }
    let is_refused = |step: &&PlannedStep| step.outcome == StepOutcome::Refused;
    match steps.iter().filter(is_refused).count() {
        0 => Ok(()),
        count => Err(Exit::input(format!(
            "a start would be refused: {count} of {} steps",
            steps.len()
        ))),
    }
}

/// One line a step, under the name of its part.
fn text(steps: &[PlannedStep]) -> String {
    let mut text = String::new();
    let mut part = "";
    for step in steps {
        if step.part != part {
            part = &step.part;
            text.push_str(part);
            text.push('\n');
        }
        text.push_str(&format!("  {:8}{}\n", step.outcome.name(), step.step));
    }
    text.push_str("Nothing was opened for writing, made or changed.\n");
    text
}
