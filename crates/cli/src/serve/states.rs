//! The states of a service where people look: a line in the log at each change, and systemd's status text.
//!
//! ```text
//!   status every 5 s --> findings --twice in a row?--> begun, over --> log
//!                                                        '--> OK, or the first that is wrong --> STATUS=
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use server::control::Service as _;
use server::control::notify::{Message, Notifier};
use server::diagnosis::{Finding, Severity, of_status};
use server::service::Running;
use server::status::Status;
use tracing::{info, warn};

use super::say;
use crate::output::Exit;

/// Time between two looks. A choice: rates and latenesses are of the last ten seconds.
const LOOK: Duration = Duration::from_secs(5);

/// Watches a service from now on.
///
/// # Errors
/// If the system has no more threads.
pub(super) fn watch(running: &Arc<Running>, notifier: Notifier) -> Result<(), Exit> {
    let service = Arc::clone(running);
    let watching = thread::Builder::new().name("states".into());
    watching
        .spawn(move || {
            let mut states = States::default();
            let mut last = String::new();
            loop {
                let status = service.status();
                let findings = of_status(&status);
                for change in states.changes(&findings) {
                    change.log();
                }
                let line = summary(&status, &findings);
                if line != last {
                    say(&notifier, &Message::Status(line.clone()));
                    last = line;
                }
                thread::sleep(LOOK);
            }
        })
        .map_err(Exit::failed)?;
    Ok(())
}

/// A state that began, or that is over.
#[derive(Debug, PartialEq)]
enum Change {
    Begun(Finding),
    Over(Finding),
}

impl Change {
    fn log(&self) {
        match self {
            Change::Begun(finding) if finding.severity == Severity::Wrong => warn!(
                state = finding.id,
                "{}: {}; {}", finding.about, finding.what, finding.action
            ),
            Change::Begun(finding) => {
                info!(state = finding.id, "{}: {}", finding.about, finding.what);
            }
            Change::Over(finding) => {
                info!(
                    state = finding.id,
                    "{}: over: {}", finding.about, finding.what
                );
            }
        }
    }
}

/// The states that were told, and those of the last look.
#[derive(Debug, Default)]
struct States {
    told: BTreeMap<Key, Finding>,
    before: BTreeMap<Key, Finding>,
}

/// The kind of a finding, and what it is about. Its words have numbers, which change.
type Key = (&'static str, String);

impl States {
    /// What has changed for two looks in a row, so that a state at its bound is not told again and again.
    fn changes(&mut self, findings: &[Finding]) -> Vec<Change> {
        let key = |finding: &Finding| (finding.id, finding.about.clone());
        let now: BTreeMap<Key, Finding> = findings
            .iter()
            .map(|finding| (key(finding), finding.clone()))
            .collect();
        let mut changes = Vec::new();
        for (key, finding) in &now {
            if self.before.contains_key(key) && !self.told.contains_key(key) {
                changes.push(Change::Begun(finding.clone()));
                self.told.insert(key.clone(), finding.clone());
            }
        }
        let is_over = |key: &Key| !now.contains_key(key) && !self.before.contains_key(key);
        let over: Vec<Key> = self
            .told
            .keys()
            .filter(|key| is_over(key))
            .cloned()
            .collect();
        for key in over {
            changes.extend(self.told.remove(&key).map(Change::Over));
        }
        self.before = now;
        changes
    }
}

/// The service in one line: OK, or the first thing that is wrong. It has no numbers that change all the time.
fn summary(status: &Status, findings: &[Finding]) -> String {
    let modes: Vec<String> = status
        .drives
        .iter()
        .map(|drive| format!("{} {}", drive.name, drive.mode.title()))
        .collect();
    let mut wrong = findings
        .iter()
        .filter(|one| one.severity == Severity::Wrong);
    let verdict = match wrong.next() {
        None => "OK".to_owned(),
        Some(first) => format!("wrong: {} ({})", first.about, first.id),
    };
    format!(
        "{verdict}; drives: {}; headtime doctor says more",
        modes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use server::status::{DriveStatus, Mode, ServiceState};

    fn finding(id: &'static str, what: &str) -> Finding {
        Finding::wrong(id, "drive disk", what, "why", "action")
    }

    #[test]
    fn a_state_is_told_once_when_it_lasts_and_once_when_it_is_over() {
        let mut states = States::default();
        let safe = |share: u32| finding("safe-mode", &format!("{share} %"));
        assert_eq!(states.changes(&[]), []);
        assert_eq!(states.changes(&[safe(40)]), [], "it may be a moment's");
        assert_eq!(states.changes(&[safe(41)]), [Change::Begun(safe(41))]);
        assert_eq!(states.changes(&[safe(42)]), [], "its numbers change");
        assert_eq!(states.changes(&[]), [], "it may be back at once");
        assert_eq!(states.changes(&[safe(40)]), []);
        assert_eq!(states.changes(&[]), []);
        assert_eq!(states.changes(&[]), [Change::Over(safe(41))]);
        assert_eq!(states.changes(&[]), []);
        // A state that comes and goes each time is not told at all.
        for _ in 0..3 {
            assert_eq!(states.changes(&[finding("over-budget", "3 %")]), []);
            assert_eq!(states.changes(&[]), []);
        }
    }

    #[test]
    fn the_status_text_is_ok_or_the_first_that_is_wrong() {
        let drive = DriveStatus {
            name: "disk".to_owned(),
            mode: Mode::Safe,
            model: Some("Atlas".to_owned()),
            ..DriveStatus::default()
        };
        let mut status = Status {
            state: ServiceState::Serving,
            drives: vec![drive],
            ..Status::default()
        };
        let line = |status: &Status| summary(status, &of_status(status));
        assert_eq!(
            line(&status),
            "wrong: drive disk (safe-mode); drives: disk safe mode; headtime doctor says more"
        );
        status.drives[0].mode = Mode::Learning;
        assert_eq!(
            line(&status),
            "OK; drives: disk learning; headtime doctor says more",
            "a notice is not wrong"
        );
    }
}
