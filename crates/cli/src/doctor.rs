//! `headtime doctor`: what is wrong with a service, a configuration or a path, and what to do.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use headtime_client::default_socket;
use lab::adoption::look::PathLook;
use lab::adoption::suitability::OwnAccess;
use serde::Serialize;
use server::config::Places;
use server::control::protocol::Ask;
use server::control::{self, AskError, LearningReport};
use server::diagnosis::{
    Finding, FolderUse, Severity, of_folder, of_learning, of_silence, of_status, of_switches,
};
use server::disk::back_end::scsi::record;
use server::status::{Mode, Status};

use crate::output::{Exit, json, print_answer};

mod configuration;

/// The arguments of `headtime doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// A configuration (NAME.toml), the control socket of a service, a block device, or a file
    /// [default: the service that `headtime ctl` asks]
    #[arg(value_name = "CONFIG|SOCKET|PATH")]
    subject: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime doctor
      the running service
  headtime doctor /dev/sdb
      is this disk one to serve, and who uses it?
  headtime doctor sdb.toml --json | jq '.findings[] | .what, .action'
      a configuration, and its service if it runs

Nothing is opened for writing, and nothing is changed. Each finding says what is so, why it
matters and what to do; docs/how-to/find-what-is-wrong.md has them all.

Exit codes: 0 nothing is wrong (there may be notices); 1 the doctor failed; 2 wrong input;
3 something is wrong.";

/// The exit code if something is wrong.
const WRONG: u8 = 3;

/// What was found about a subject.
#[derive(Debug, Serialize)]
struct Diagnosis {
    /// What was looked at.
    subject: String,
    /// What is as it should be, in words.
    state: String,
    /// The number of findings that are wrong.
    wrong: usize,
    /// The findings, the wrong ones first.
    findings: Vec<Finding>,
}

/// Looks, and prints what was found.
///
/// # Errors
/// [`WRONG`] if something is wrong; or if there is no such subject.
pub fn run(arguments: &DoctorArgs) -> Result<(), Exit> {
    let mut diagnosis = match &arguments.subject {
        None => of_service(&default_socket()),
        Some(subject) => of_subject(subject)?,
    };
    diagnosis.findings.extend(of_host());
    diagnosis.findings.sort_by_key(|finding| finding.severity);
    diagnosis.wrong = diagnosis
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Wrong)
        .count();
    print_answer(&match arguments.json {
        true => json(&diagnosis)?,
        false => text(&diagnosis),
    })?;
    match diagnosis.wrong {
        0 => Ok(()),
        1 => Err(Exit::verdict(WRONG, "1 thing is wrong".to_owned())),
        count => Err(Exit::verdict(WRONG, format!("{count} things are wrong"))),
    }
}

impl Diagnosis {
    fn new(subject: impl Into<String>, state: impl Into<String>, findings: Vec<Finding>) -> Self {
        Diagnosis {
            subject: subject.into(),
            state: state.into(),
            wrong: 0,
            findings,
        }
    }
}

fn of_subject(subject: &Path) -> Result<Diagnosis, Exit> {
    let found = subject.metadata();
    if found
        .as_ref()
        .is_ok_and(|found| found.file_type().is_socket())
    {
        return Ok(of_service(subject));
    }
    let ends_with = |end: &str| {
        subject
            .extension()
            .is_some_and(|extension| extension == end)
    };
    if ends_with("toml") {
        return configuration::of_configuration(subject);
    }
    if found.is_err() && ends_with("sock") {
        return Ok(of_service(subject));
    }
    let text = subject.to_string_lossy();
    let look = PathLook::at(&text)?;
    let findings = look.findings(OwnAccess::to(Path::new(&look.target)));
    Ok(Diagnosis::new(text, look.described(), findings))
}

/// The service at a control socket.
fn of_service(socket: &Path) -> Diagnosis {
    let subject = format!("the service at {}", socket.display());
    match status_of(socket) {
        Ok(status) => {
            let state = state_of(&status);
            Diagnosis::new(subject, state, of_running(socket, &status))
        }
        Err(silence) => Diagnosis::new(subject, "no answer", vec![silence]),
    }
}

/// The findings about a service that answers.
fn of_running(socket: &Path, status: &Status) -> Vec<Finding> {
    let mut findings = of_status(status);
    for drive in &status.drives {
        if drive.mode != Mode::Plain {
            continue;
        }
        let drive = drive.name.clone();
        // A drive that was never learned has no report.
        let report = control::ask(socket, &Ask::Learned { drive }).ok();
        let report = report.and_then(|report| serde_json::from_value(report).ok());
        findings.extend(report.and_then(|report: LearningReport| of_learning(&report)));
    }
    findings
}

/// The status of the service at a socket, or the finding that there is none.
fn status_of(socket: &Path) -> Result<Status, Finding> {
    let about = || format!("socket {}", socket.display());
    let answer = control::ask(socket, &Ask::Status).map_err(|error| match error {
        AskError::Unreachable { error, .. } => of_silence(socket, &error),
        AskError::Refused(problem) => Finding::wrong(
            "not-permitted",
            about(),
            format!("the service does not answer this user: {problem}"),
            "its state is unknown",
            "ask as root or as the user of the service; or allow it: members = \"status\" in [control]",
        ),
        AskError::Misunderstood { problem, .. } => of_another_version(&about(), &problem),
    })?;
    serde_json::from_value(answer)
        .map_err(|problem| of_another_version(&about(), &problem.to_string()))
}

fn of_another_version(about: &str, problem: &str) -> Finding {
    Finding::wrong(
        "other-version",
        about,
        format!("its answer is not that of this version: {problem}"),
        "the commands of this version may not understand the service",
        "use the `headtime` that the service was started with, or start it again with this one",
    )
}

/// A service in one line.
fn state_of(status: &Status) -> String {
    let modes: Vec<String> = status
        .drives
        .iter()
        .map(|drive| format!("{} {}", drive.name, drive.mode.title()))
        .collect();
    format!(
        "version {}, running for {:.0} s; drives: {}; {} connected",
        status.version,
        status.uptime_s,
        match modes.is_empty() {
            true => "none".to_owned(),
            false => modes.join(", "),
        },
        status.connections.len()
    )
}

/// The findings about this user's folders, and about what killed services have left.
fn of_host() -> Vec<Finding> {
    let user = rustix::process::geteuid().as_raw();
    let places = Places::of_this_user(Path::new("."));
    let folders = [
        (&places.data, FolderUse::Data),
        (&places.runtime, FolderUse::Runtime),
    ];
    let folders = folders
        .into_iter()
        .filter_map(|(folder, its_use)| of_folder(folder, its_use, user));
    let abandoned = record::abandoned(&record::folder(), &record::this_boot());
    folders.chain(of_switches(&abandoned)).collect()
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut text = format!("{}: {}\n", diagnosis.subject, diagnosis.state);
    for finding in &diagnosis.findings {
        text += &format!(
            "\n{:<8}{}: {}\n  why   {}\n  do    {}\n",
            finding.severity.name(),
            finding.about,
            finding.what,
            finding.why,
            finding.action
        );
    }
    let notices = diagnosis.findings.len() - diagnosis.wrong;
    text += &match (diagnosis.wrong, notices) {
        (0, 0) => "\nNothing is wrong.\n".to_owned(),
        (0, 1) => "\nNothing is wrong; 1 notice.\n".to_owned(),
        (0, notices) => format!("\nNothing is wrong; {notices} notices.\n"),
        _ => String::new(),
    };
    text
}
