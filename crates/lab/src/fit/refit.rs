//! Fits drives to their measured traces again.

use std::path::{Path, PathBuf};

use drive::Profile;
use simulator::trace::OnBad;

use super::{Fit, document, fit, halves};
use crate::validate::Sample;
use crate::validate::judgement::{DemeritFigures, judge};
use crate::validate::measurement;
use crate::{Failure, Progress, lent, named};

/// The selection of drives and traces.
#[derive(Clone, Debug, Default)]
pub struct RefitSettings {
    /// Only this drive: a name, or a profile file.
    pub drive: Option<String>,
    /// This trace instead of the drive's own.
    pub trace: Option<PathBuf>,
}

/// A drive and the requests of its fit.
#[derive(Debug)]
pub struct RefitCase {
    /// The profile with its present fit.
    profile: Profile,
    trace: PathBuf,
    samples: Vec<Sample>,
}

/// The result of a fit.
#[derive(Debug)]
pub struct Refitted {
    /// The profile with its former fit.
    kept: Profile,
    /// The profile without a fit.
    pub published: Profile,
    /// The fit.
    pub found: Fit,
    /// The `[fitted]` table of the profile file.
    pub table: String,
    /// The figures on the held-out half: published, then fitted.
    pub held_out: [(&'static str, DemeritFigures); 2],
}

/// The selected drives that have a measured trace.
///
/// # Errors
/// If a drive or a trace is invalid, or there are no traces.
pub fn cases(settings: &RefitSettings) -> Result<Vec<RefitCase>, Failure> {
    let folder = lent::folder();
    if settings.trace.is_none() && !folder.join("drives").is_dir() {
        return Err(lent::no_measured_traces());
    }
    let mut cases = Vec::new();
    for profile in named::drive_or_all(settings.drive.as_deref())? {
        let trace = settings.trace.clone();
        if let Some(trace) = trace.or_else(|| lent::trace_of(&profile)) {
            let published = profile.published();
            let samples = measurement::read_trace(&trace, &published, OnBad::Refuse)?.samples;
            cases.push(RefitCase {
                profile,
                trace,
                samples,
            });
        }
    }
    match (cases.is_empty(), &settings.drive) {
        (false, _) => Ok(cases),
        (true, Some(name)) => Err(Failure::input(format!(
            "{name} has no measured trace in {}: give one with --trace FILE",
            folder.display()
        ))),
        (true, None) => Err(lent::no_measured_traces()),
    }
}

impl RefitCase {
    /// Fits the drive. The progress counts replays.
    pub fn refit(self, progress: &dyn Progress) -> Refitted {
        let RefitCase {
            profile,
            trace,
            samples,
        } = self;
        let published = profile.published();
        progress.begin(&published.name);
        let found = fit(&published, &samples, || progress.advance(1));
        let trace = trace
            .file_name()
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        let origin = format!(
            "fitted to the first {} requests of {trace} by `headtime fit --drive {}`; the others \
             judge it (`headtime validate`)",
            halves(&samples).0.len(),
            published.name
        );
        let held_out = [("published", &published), ("fitted", &found.profile)];
        let held_out = held_out
            .map(|(which, profile)| (which, judge(profile, &samples, None).judgement.held_out));
        Refitted {
            table: document::table(&published, &found.profile, &origin),
            kept: profile,
            published,
            found,
            held_out,
        }
    }
}

impl Refitted {
    /// Whether the fit equals that of the profile.
    pub fn is_kept(&self) -> bool {
        document::same_constants(&self.kept, &self.found.profile)
    }

    /// The text of the drive's profile in `file`, with this fit.
    ///
    /// # Errors
    /// If the result is not a valid profile.
    pub fn profile_text(&self, file: &Path, text: &str) -> Result<String, Failure> {
        let profile = document::replaced(text, &self.table);
        Profile::parse(&profile, &file.display().to_string()).map_err(Failure::failed)?;
        Ok(profile)
    }
}
