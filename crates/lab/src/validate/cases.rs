//! The drives and traces of a validation.

use std::path::{Path, PathBuf};

use block::Duration;
use drive::Profile;
use simulator::trace::OnBad;

use super::judgement::{JudgedModel, Judgement, judge};
use super::measurement::{self, Measurements};
use crate::plot::{Panel, Series, distributions};
use crate::{Failure, Progress, lent, named};

/// The selection of drives and traces.
#[derive(Clone, Debug)]
pub struct ValidationSettings {
    /// Only this drive: a name, or a profile file.
    pub drive: Option<String>,
    /// This trace instead of the drive's own.
    pub trace: Option<PathBuf>,
    /// The treatment of bad lines and of requests past the end of the drive.
    pub on_bad: OnBad,
    /// The constants in use.
    pub constants: Constants,
}

/// The origin of a profile's constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constants {
    /// The fitted constants, where they exist.
    Fitted,
    /// The published constants only.
    Published,
}

/// The result of a validation.
#[derive(Debug)]
pub struct Validation {
    /// The judgement of each drive.
    pub judgements: Vec<Judgement>,
    /// The distributions of each drive: measured, DiskSim's and ours.
    pub drawings: Vec<(String, Panel)>,
    /// Remarks on skipped data.
    pub remarks: String,
}

/// A drive with its trace.
struct ValidationCase {
    profile: Profile,
    measurements: Measurements,
    disksim: Option<Vec<Duration>>,
}

/// Judges the models of drives by their measured traces.
///
/// # Errors
/// If a drive or trace is invalid; with `CI=true` also if there are no traces.
pub fn validate(
    settings: &ValidationSettings,
    progress: &dyn Progress,
) -> Result<Validation, Failure> {
    let (cases, remarks) = cases(settings)?;
    let (mut judgements, mut drawings) = (Vec::new(), Vec::new());
    progress.expect(cases.len() as u64);
    for case in &cases {
        progress.begin(&case.profile.name);
        let samples = &case.measurements.samples;
        let judged = judge(&case.profile, samples, case.disksim.as_deref());
        drawings.push((case.profile.name.clone(), case.drawing(&judged)));
        judgements.push(judged.judgement);
        progress.advance(1);
    }
    Ok(Validation {
        judgements,
        drawings,
        remarks,
    })
}

/// The cases, and remarks on missing ones.
fn cases(settings: &ValidationSettings) -> Result<(Vec<ValidationCase>, String), Failure> {
    let mut profiles = named::drive_or_all(settings.drive.as_deref())?;
    if settings.constants == Constants::Published {
        profiles = profiles.iter().map(Profile::published).collect();
    }
    if let (Some(file), Some(profile)) = (&settings.trace, profiles.first()) {
        return users_own(file, profile, settings.on_bad);
    }
    let folder = lent::folder();
    if !folder.join("drives").is_dir() {
        return Err(lent::no_measured_traces());
    }
    let (mut cases, mut without) = (Vec::new(), Vec::new());
    for profile in profiles {
        let Some(file) = lent::trace_of(&profile) else {
            without.push(profile.name);
            continue;
        };
        let measurements = measurement::read_trace(&file, &profile, OnBad::Refuse)?;
        let disksim = measurement::disksim_of(&profile, &measurements.samples)?;
        cases.push(ValidationCase {
            profile,
            measurements,
            disksim,
        });
    }
    if let (Some(name), Some(_)) = (without.first(), &settings.drive) {
        return Err(Failure::input(format!(
            "{name} has no measured trace in {}: give one with --trace FILE",
            folder.display()
        )));
    }
    if cases.is_empty() {
        return Err(lent::no_measured_traces());
    }
    let remarks = match without.is_empty() {
        true => String::new(),
        false => format!("skipped: no measured trace for {}\n", without.join(", ")),
    };
    Ok((cases, remarks))
}

/// A user's own trace, for which DiskSim has no results.
fn users_own(
    file: &Path,
    profile: &Profile,
    on_bad: OnBad,
) -> Result<(Vec<ValidationCase>, String), Failure> {
    let measurements = measurement::read_trace(file, profile, on_bad)?;
    let remarks = match measurements.left_out() {
        0 => String::new(),
        _ => format!(
            "{}; {} requests past the end of {} left out\n",
            measurements.bad_lines, measurements.past_end, profile.name
        ),
    };
    let case = ValidationCase {
        profile: profile.clone(),
        measurements,
        disksim: None,
    };
    Ok((vec![case], remarks))
}

impl ValidationCase {
    /// The distributions in one plot.
    fn drawing(&self, judged: &JudgedModel) -> Panel {
        let millis = |times: &[Duration]| times.iter().map(|time| time.as_millis_f64()).collect();
        let samples = &self.measurements.samples;
        let measured: Vec<Duration> = samples.iter().map(|sample| sample.service).collect();
        let mut series = vec![
            Series {
                name: "measured".to_owned(),
                values: millis(&measured),
            },
            Series {
                name: "Headtime".to_owned(),
                values: millis(&judged.simulated),
            },
        ];
        if let Some(disksim) = &self.disksim {
            series.push(Series {
                name: "DiskSim 4.0".to_owned(),
                values: millis(disksim),
            });
        }
        let title = format!(
            "{}: {} requests, demerit {:.3} ms",
            self.profile.model,
            samples.len(),
            judged.judgement.whole.demerit_ms
        );
        distributions(&title, "service time, ms", &series)
    }
}
