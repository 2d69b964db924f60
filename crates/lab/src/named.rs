//! Drives and policies by their names.

use drive::{Profile, catalog};
use scheduler::NamedPolicy;
use scheduler::policy::UnknownPolicy;

use crate::{Failure, text_file};

/// The shipped drive with this name, or the drive of a profile file.
///
/// # Errors
/// If there is no such drive, or the file is not a profile.
pub fn drive(name: &str) -> Result<Profile, Failure> {
    let text = drive_text(name)?;
    Profile::parse(&text, name).map_err(Failure::input)
}

/// The text of a drive's profile.
///
/// # Errors
/// If there is no such drive, or the file cannot be read.
pub fn drive_text(name: &str) -> Result<String, Failure> {
    if is_drive_file(name) {
        return text_file::read(name.as_ref());
    }
    let entry = catalog::find(name).map_err(Failure::input)?;
    Ok(entry.text().to_owned())
}

/// Whether a drive's name is the path of a file.
pub fn is_drive_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// The policy with this name.
///
/// # Errors
/// If there is no such policy, or its parameter is invalid.
pub fn policy(name: &str) -> Result<NamedPolicy, Failure> {
    scheduler::policy::find(name).map_err(|error| match error {
        UnknownPolicy::Name { name } => {
            let usages = scheduler::policy::usages();
            let usages: Vec<&str> = usages.iter().map(String::as_str).collect();
            Failure::unknown("policy", &name, &usages)
        }
        UnknownPolicy::Parameter { .. } => Failure::input(format!("--policy {error}")),
    })
}

/// The drive with this name; without a name all shipped drives.
///
/// # Errors
/// If there is no such drive, or the file is not a profile.
pub fn drive_or_all(name: Option<&str>) -> Result<Vec<Profile>, Failure> {
    match name {
        Some(name) => Ok(vec![drive(name)?]),
        None => catalog::ALL
            .iter()
            .map(|entry| entry.profile().map_err(Failure::failed))
            .collect(),
    }
}
