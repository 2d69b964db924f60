//! What a configured service promises to streams: drive, time scale and `[drive.streams]` of its configuration.

use std::path::Path;

use server::clock::TimeScale;
use server::config::{BackEnd, Belief, Config, DriveConfig, DriveModel, Places};

use super::StreamSet;
use crate::{Failure, text_file};

impl StreamSet {
    /// A set without streams on a drive of a service: the one of this name, or the only one that promises something.
    ///
    /// # Errors
    /// If the configuration is invalid, or no such drive promises anything to streams.
    pub fn of_service(file: &Path, drive: Option<&str>) -> Result<StreamSet, Failure> {
        let name = file.display().to_string();
        let text = text_file::read(file)?;
        let base = file.parent().unwrap_or(Path::new(""));
        let config = Config::parse(&name, &text, &Places::of_this_user(base));
        let config = config.map_err(Failure::input)?;
        let found = chosen(&config, drive).map_err(|problem| format!("{name}: {problem}"));
        let found = found.map_err(Failure::input)?;
        let refused =
            |problem: &str| Failure::input(format!("{name}: drive {}: {problem}", found.name));
        let promise = found.streams.clone().ok_or_else(|| {
            refused("promises nothing to streams: expected a table [drive.streams]")
        })?;
        let model = believed(found).ok_or_else(|| {
            refused("has no belief: streams are granted where the times of the drive are known")
        })?;
        Ok(StreamSet {
            drive: match model {
                DriveModel::Shipped(name) => (*name).to_owned(),
                DriveModel::File(path) => path.display().to_string(),
            },
            time_scale: match &found.back_end {
                BackEnd::Emulated(emulated) => {
                    TimeScale::new(emulated.time_scale).ok_or_else(|| {
                        refused(&format!(
                            "time scale {}: expected 0.001 to 1000",
                            emulated.time_scale
                        ))
                    })?
                }
                _ => TimeScale::REAL,
            },
            promise,
            groups: Vec::new(),
        })
    }
}

/// The drive with this name, or the only one with a promise.
fn chosen<'a>(config: &'a Config, name: Option<&str>) -> Result<&'a DriveConfig, String> {
    let all = &config.drives;
    let names = |drives: &[&DriveConfig]| {
        let names: Vec<&str> = drives.iter().map(|drive| &*drive.name).collect();
        names.join(", ")
    };
    if let Some(name) = name {
        let found = all.iter().find(|drive| drive.name == name);
        let expected = names(&all.iter().collect::<Vec<_>>());
        return found.ok_or_else(|| format!("no drive {name}: expected one of {expected}"));
    }
    let promising: Vec<&DriveConfig> = all.iter().filter(|drive| drive.streams.is_some()).collect();
    match promising[..] {
        [only] => Ok(only),
        [] => Err(
            "no drive has a table [drive.streams], which promises something to streams".to_owned(),
        ),
        _ => Err(format!(
            "several drives promise something: expected --drive with one of {}",
            names(&promising)
        )),
    }
}

/// The model that the service believes in.
fn believed(drive: &DriveConfig) -> Option<&DriveModel> {
    match (&drive.belief, &drive.back_end) {
        (Belief::Profile(model), _) => Some(model),
        (Belief::Emulated, BackEnd::Emulated(emulated)) => Some(&emulated.drive),
        (Belief::Emulated | Belief::Nothing, _) => None,
    }
}
