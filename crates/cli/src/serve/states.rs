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
                    change.log(&status);
                }
                let (state, line) = summary(&status, &findings);
                if state != last {
                    say(&notifier, &Message::Status(line));
                    last = state;
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
    fn log(&self, status: &Status) {
        match self {
            Change::Begun(finding) if finding.severity == Severity::Wrong => warn!(
                state = finding.id,
                "{}: {}; {}", finding.about, finding.what, finding.action
            ),
            Change::Begun(finding) => {
                info!(state = finding.id, "{}: {}", finding.about, finding.what);
            }
            Change::Over(finding) => {
                let now = now(status, &finding.about);
                info!(
                    state = finding.id,
                    "{}: over: what began with \"{}\"{now}", finding.about, finding.what
                );
            }
        }
    }
}

/// How a drive uses its belief now, behind a finding about it that is over: its words have the numbers of its begin.
fn now(status: &Status, about: &str) -> String {
    let name = about.strip_prefix("drive ");
    let mut drives = status.drives.iter();
    let drive = drives.find(|drive| name == Some(&drive.name));
    drive.map_or_else(String::new, |drive| {
        format!("; now {}: {}", drive.mode.title(), drive.mode_reason)
    })
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

/// The service in one line: OK, or the first thing that is wrong, with its reason and what to do. Before it comes what the
/// line is told anew for: its numbers change all the time.
fn summary(status: &Status, findings: &[Finding]) -> (String, String) {
    let modes: Vec<String> = status
        .drives
        .iter()
        .map(|drive| format!("{} {}", drive.name, drive.mode.title()))
        .collect();
    let mut wrong = findings
        .iter()
        .filter(|one| one.severity == Severity::Wrong);
    let (id, verdict) = match wrong.next() {
        None => (String::new(), "OK".to_owned()),
        Some(first) => {
            let Finding {
                about,
                what,
                action,
                ..
            } = first;
            (
                format!("{} of {about}", first.id),
                format!("wrong: {about}: {what}; {action}"),
            )
        }
    };
    let modes = modes.join(", ");
    let line = format!("{verdict}; drives: {modes}; headtime doctor says more");
    (format!("{id}; {modes}"), line)
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
        status.drives[0].mode_reason = "12 % agree".to_owned();
        let (state, wrong) = line(&status);
        assert!(
            wrong.starts_with("wrong: drive disk: safe mode: 12 % agree; wait a minute"),
            "{wrong}"
        );
        let more = "; drives: disk safe mode; headtime doctor says more";
        assert!(wrong.ends_with(more), "{wrong}");
        status.drives[0].mode_reason = "13 % agree".to_owned();
        assert_eq!(line(&status).0, state, "its numbers change");
        status.drives[0].mode = Mode::Learning;
        let (other, ok) = line(&status);
        assert_eq!(
            ok, "OK; drives: disk learning; headtime doctor says more",
            "a notice is not wrong"
        );
        assert_ne!(other, state);
    }
}
