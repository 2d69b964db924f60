//! What is wrong with a service, with the reason and the remedy: for `headtime doctor`.
//!
//! Each finding is made from facts alone, so that its tests need no service and no disk.
//!
//! ```text
//!   status of a service ----> of_status ----.
//!   folders of files -------> of_folder -----+--> findings, the wrong ones first
//!   records of switches ----> of_switches --'
//! ```

use std::fmt::{self, Display};
use std::path::Path;

use serde::Serialize;

use crate::disk::back_end::scsi::record::AbandonedRecord;
use crate::status::{LearningReport, Status};

mod drives;
mod folders;

pub use drives::{too_late_to_judge, why_stuck};
pub use folders::{FolderUse, of_folder};

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The kind of finding, for programs.
    pub id: &'static str,
    /// What it is about, such as `drive disk`.
    pub about: String,
    /// What is so.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub action: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work, or data is in danger.
    Wrong,
    /// It works, but less well than it could, or not yet.
    Notice,
}

impl Severity {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Wrong => "wrong",
            Severity::Notice => "notice",
        }
    }
}

impl Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Finding {
    /// Something that does not work.
    pub fn wrong(
        id: &'static str,
        about: impl Into<String>,
        what: impl Into<String>,
        why: impl Into<String>,
        action: impl Into<String>,
    ) -> Self {
        Finding {
            severity: Severity::Wrong,
            id,
            about: about.into(),
            what: what.into(),
            why: why.into(),
            action: action.into(),
        }
    }

    /// The same, as a notice.
    #[must_use]
    pub fn noticed(self) -> Self {
        Finding {
            severity: Severity::Notice,
            ..self
        }
    }
}

/// The findings about a running service.
pub fn of_status(status: &Status) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(of_state(status));
    for drive in &status.drives {
        findings.extend(drives::of_drive(drive));
    }
    findings.extend(drives::of_slow_drives(&status.drives));
    for scrub in &status.scrubs {
        findings.extend(drives::of_scrub(scrub));
    }
    if status.connections_refused_total > 0 {
        findings.push(
            Finding::wrong(
                "connections-refused",
                "service",
                format!(
                    "{} connections were closed, because they violated the protocol or a limit",
                    status.connections_refused_total
                ),
                "their clients have seen errors",
                "look into the log for the clients and the limits; [limits] of the configuration has the limits",
            )
            .noticed(),
        );
    }
    findings
}

fn of_state(status: &Status) -> Option<Finding> {
    use crate::status::ServiceState;
    let (what, action) = match status.state {
        ServiceState::Serving => return None,
        ServiceState::Starting => (
            "it is starting",
            "wait, and look into its log if it stays so",
        ),
        ServiceState::Draining => (
            "it is draining: it ends what was begun, and then stops",
            "wait, and unmount file systems on loop devices over its files; `headtime ctl stop` stops it at once",
        ),
        ServiceState::Stopping => ("it is stopping", "start it again if that was not wanted"),
    };
    let finding = Finding::wrong(
        "not-serving",
        "service",
        what,
        "new clients are refused",
        action,
    );
    Some(finding.noticed())
}

/// The finding about a profile that was learned in service and is not used.
pub fn of_learning(report: &LearningReport) -> Option<Finding> {
    let doubt = report.doubt.as_ref()?;
    let reasons: Vec<String> = report.failed.iter().map(|why| format!("; {why}")).collect();
    Some(Finding::wrong(
        "profile-refused",
        format!("drive {}", report.drive),
        format!(
            "what was learned of it is refused: {doubt}{}",
            reasons.concat()
        ),
        "a profile that does not predict the drive is worth nothing: the service goes on without one",
        format!(
            "learn for longer: `headtime ctl profile {} --minutes 60`, with --percent 5 if it is never idle",
            report.drive
        ),
    ))
}

/// The findings about switches of drives that a killed process has left turned.
pub fn of_switches(abandoned: &[AbandonedRecord]) -> Vec<Finding> {
    let finding = |record: &AbandonedRecord| {
        let switches: Vec<String> = record
            .turned
            .iter()
            .map(|turned| turned.to_string())
            .collect();
        Finding::wrong(
            "switches-left",
            format!("drive {}", record.drive),
            format!(
                "a killed service has left its switches turned: {}",
                switches.join(", ")
            ),
            "other programs use the drive with these switches: writes are slower without its write cache",
            "start the service again, which puts them back first; or by hand: `hdparm -W1 /dev/sdX` for the write \
             cache, `hdparm -A1 /dev/sdX` for look-ahead. A power cycle does it as well",
        )
    };
    abandoned.iter().map(finding).collect()
}

/// A service that does not answer at its socket.
pub fn of_silence(socket: &Path, problem: &std::io::Error) -> Finding {
    use std::io::ErrorKind;
    let about = format!("socket {}", socket.display());
    let why = "nothing is served, and no task goes on";
    let (what, action) = match problem.kind() {
        ErrorKind::NotFound => (
            "no service listens there: there is no such socket".to_owned(),
            "start one: `headtime serve CONFIG.toml`, or `systemctl start headtime@NAME`; or name the socket of the \
             one that runs: `headtime doctor SOCKET` (its configuration has it in [control])",
        ),
        ErrorKind::ConnectionRefused => (
            "no service listens there any more: the socket is left of one that was killed"
                .to_owned(),
            "start it again: `headtime serve CONFIG.toml`; it replaces the socket, and puts back the switches of its \
             drives. Its log says why it ended",
        ),
        ErrorKind::PermissionDenied => (
            format!("it cannot be asked: {problem}"),
            "ask as root or as the user of the service; or let a group ask: `group` and `members` in [control]",
        ),
        _ => (
            format!("it does not answer: {problem}"),
            "look into its log; `headtime ctl stop`, or a signal to its process, ends it",
        ),
    };
    Finding::wrong("no-service", about, what, why, action)
}

#[cfg(test)]
mod tests;
