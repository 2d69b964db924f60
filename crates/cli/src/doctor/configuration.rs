//! A configuration for the doctor: what a start would refuse, its disks, and its service if it runs.

use std::io;
use std::path::Path;

use lab::Failure;
use lab::adoption::look::PathLook;
use lab::adoption::suitability::OwnAccess;
use server::config::{BackEnd, Config};
use server::control::{self, AskError, protocol::Ask};
use server::diagnosis::{Finding, Severity};
use server::service::dry_run::{StepOutcome, dry_run};

use super::{Diagnosis, of_running, state_of, status_of};
use crate::output::Exit;
use crate::serve;

/// Looks at the configuration in a file.
///
/// # Errors
/// If there is no such file.
pub(super) fn of_configuration(file: &Path) -> Result<Diagnosis, Exit> {
    let subject = format!("the configuration {}", file.display());
    if let Err(error) = file.metadata() {
        return Err(Exit::input(format!("{}: {error}", file.display())));
    }
    let config = match serve::read(Some(file)) {
        Ok(config) => config,
        Err(Exit::Failure(Failure::Input(problem))) => {
            let finding = Finding::wrong(
                "configuration",
                file.display().to_string(),
                problem,
                "a service refuses to start with it, and a reload keeps the one before",
                "mend it; docs/reference/configuration.md has each key with its values",
            );
            return Ok(Diagnosis::new(subject, "not understood", vec![finding]));
        }
        Err(error) => return Err(error),
    };
    Ok(of_config(subject, &config, file))
}

fn of_config(subject: String, config: &Config, file: &Path) -> Diagnosis {
    let socket = &config.control.socket;
    match control::ask(socket, &Ask::Status) {
        Err(AskError::Unreachable { error, .. }) if is_absent(&error) => {
            let mut findings = of_disks(config, Service::Stopped);
            findings.extend(of_start(config, &findings));
            findings.push(
                Finding::wrong(
                    "not-running",
                    "service",
                    format!(
                        "no service runs with it: nothing listens at {}",
                        socket.display()
                    ),
                    "nothing is served",
                    format!("`headtime serve {}` starts one", file.display()),
                )
                .noticed(),
            );
            Diagnosis::new(subject, "understood", findings)
        }
        _ => match status_of(socket) {
            Ok(status) => {
                let mut findings = of_running(socket, &status);
                findings.extend(of_disks(config, Service::Running));
                let state = format!("its service: {}", state_of(&status));
                Diagnosis::new(subject, state, findings)
            }
            Err(silence) => Diagnosis::new(subject, "understood", vec![silence]),
        },
    }
}

/// Whether this error means that no service was started, or that it ended.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// Whether the service of a configuration runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    Running,
    Stopped,
}

/// The findings about the devices and files of a configuration.
fn of_disks(config: &Config, service: Service) -> Vec<Finding> {
    let drives = config.drives.iter();
    drives
        .flat_map(|drive| of_back_end(&drive.back_end, service))
        .collect()
}

fn of_back_end(back_end: &BackEnd, service: Service) -> Vec<Finding> {
    let path = match back_end {
        BackEnd::Device(device) => &device.path,
        BackEnd::File { path, .. } => path,
        BackEnd::Mirror(mirror) => {
            let legs = mirror.legs.iter();
            return legs
                .flat_map(|leg| of_back_end(&leg.back_end, service))
                .collect();
        }
        BackEnd::Memory { .. } | BackEnd::Emulated(_) | BackEnd::Nbd(_) => return Vec::new(),
    };
    // What is not there is refused by the start, or made by it.
    let Ok(look) = PathLook::at(&path.to_string_lossy()) else {
        return Vec::new();
    };
    let access = match service {
        // It has the disk already.
        Service::Running => OwnAccess::Full,
        Service::Stopped => OwnAccess::to(path),
    };
    let findings = look.findings(access).into_iter();
    findings
        .map(|finding| match finding.id {
            // The configuration says so on purpose.
            "no-disk" => finding.noticed(),
            _ => finding,
        })
        .collect()
}

/// What a start would refuse, and is not among the findings before.
fn of_start(config: &Config, before: &[Finding]) -> Vec<Finding> {
    let told = |step: &str| {
        let mut wrong = before.iter().filter(|one| one.severity == Severity::Wrong);
        wrong.any(|one| step.contains(&one.about))
    };
    let steps = dry_run(config).into_iter();
    let refused = steps.filter(|step| step.outcome == StepOutcome::Refused && !told(&step.step));
    refused
        .map(|step| {
            Finding::wrong(
                "start-refused",
                step.part,
                step.step,
                "a service refuses to start with it",
                "do what was expected there; `headtime serve --check` shows all steps of a start",
            )
        })
        .collect()
}
