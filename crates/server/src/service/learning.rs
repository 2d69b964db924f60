//! Profiling of drives in service.

use block::Duration;
use drive::Profile;
use profiler::belief;

use super::Running;
use super::drives::Drive;
use crate::control::{Learn, LearningReport, MOST_GRANTED_PPM};
use crate::disk::learning::{Learned, LearningGrant};

/// The answer of a drive whose loop is stuck or has ended.
const SILENT: &str = "the drive does not answer";

impl Running {
    /// Begins to profile a drive behind its load.
    ///
    /// # Errors
    /// Why not, and what was expected.
    pub(super) fn begin_learning(&self, order: &Learn) -> Result<(), String> {
        if order.granted_ppm > MOST_GRANTED_PPM {
            return Err(format!(
                "a share of {} %: expected 0 to {}",
                f64::from(order.granted_ppm) / 1e4,
                f64::from(MOST_GRANTED_PPM) / 1e4
            ));
        }
        if order.seconds == 0 {
            return Err(String::from("no time: expected at least a second"));
        }
        let drive = self.drive_named(&order.drive)?;
        let name = drive.name().to_owned();
        let grant = LearningGrant {
            budget: Duration::from_secs(u64::from(order.seconds)),
            granted_ppm: order.granted_ppm,
        };
        let begun = Self::asked(drive.mailbox(), move |event_loop| {
            event_loop.learn(&name, &grant)
        });
        begun.ok_or(SILENT)?
    }

    /// The findings about a drive that is profiled behind its load.
    ///
    /// # Errors
    /// If there is no such drive, or it was not profiled.
    pub(super) fn learning_report(&self, name: &str) -> Result<LearningReport, String> {
        let drive = self.drive_named(name)?;
        let learned = Self::asked(drive.mailbox(), |event_loop| event_loop.learned());
        match learned.ok_or(SILENT)? {
            Some(learned) => Ok(report(drive.name(), &learned)),
            None => Err(not_profiled(name)),
        }
    }

    /// Ends the profiling of a drive. What was found stays.
    ///
    /// # Errors
    /// If there is no such drive.
    pub(super) fn end_learning(&self, name: &str) -> Result<(), String> {
        let drive = self.drive_named(name)?;
        let told = Self::asked(drive.mailbox(), |event_loop| event_loop.stop_learning());
        Ok(told.ok_or(SILENT)?)
    }

    /// Follows what was found about a drive, from now on.
    ///
    /// # Errors
    /// If nothing usable was found, or the drive has a belief: then nothing changes.
    pub(super) fn follow_findings(&self, name: &str) -> Result<(), String> {
        let drive = self.drive_named(name)?;
        let learned = Self::asked(drive.mailbox(), |event_loop| event_loop.learned());
        let Some(learned) = learned.ok_or(SILENT)? else {
            return Err(not_profiled(name));
        };
        if learned.is_active {
            return Err(format!(
                "drive {name} is being profiled: expected the end of that"
            ));
        }
        let belief = usable(name, &learned);
        let belief = belief.map_err(|doubt| format!("drive {name}: {doubt}"))?;
        let clock = learned.findings.clock.as_ref();
        drive.follow(match clock {
            Some(clock) => belief::live(&belief, clock),
            None => belief,
        })
    }

    /// The drive with this name.
    ///
    /// # Errors
    /// If there is none: the names that there are.
    pub(super) fn drive_named(&self, name: &str) -> Result<&Drive, String> {
        self.drives
            .iter()
            .find(|drive| drive.name() == name)
            .ok_or_else(|| {
                let names: Vec<&str> = self.drives.iter().map(Drive::name).collect();
                format!("no drive {name}: expected one of {}", names.join(", "))
            })
    }
}

/// The report of what was found. The text of a profile is made on the caller's thread.
fn report(drive: &str, learned: &Learned) -> LearningReport {
    let Learned {
        identity, findings, ..
    } = learned;
    let failed = findings.progress.failed.iter();
    let clock = findings.clock.as_ref();
    let seconds = learned.since.as_secs_f64();
    let (doubt, profile) = match learned.is_active {
        true => (None, None),
        false => judged(drive, learned),
    };
    LearningReport {
        drive: drive.to_owned(),
        active: learned.is_active,
        seconds,
        stage: findings.progress.step.name().to_owned(),
        known: findings.map.known() as f64 / identity.blocks.max(1) as f64,
        period_ms: clock.map(|clock| clock.spindle().period_ps() as f64 / 1e9),
        probes: learned.probes,
        probing: learned.took.as_secs_f64() / seconds.max(f64::MIN_POSITIVE),
        failed: failed
            .map(|(stage, why)| format!("{}: {why}", stage.name()))
            .collect(),
        doubt,
        profile,
    }
}

fn not_profiled(name: &str) -> String {
    format!("drive {name} was not profiled since the start of the service")
}

/// The reason for which a service would refuse the profile, or its text.
fn judged(drive: &str, learned: &Learned) -> (Option<String>, Option<String>) {
    let Learned {
        identity, findings, ..
    } = learned;
    match usable(drive, learned) {
        Err(doubt) => (Some(doubt), None),
        Ok(_) => (
            None,
            Some(belief::text(findings, identity, &belief::kebab(drive))),
        ),
    }
}

/// The profile of what was found.
///
/// # Errors
/// The reason for which a service would refuse it.
fn usable(drive: &str, learned: &Learned) -> Result<Profile, String> {
    let Learned {
        identity, findings, ..
    } = learned;
    if findings.clock.is_none() {
        return Err(String::from("no period was found"));
    }
    let profile = belief::profile(findings, identity, &belief::kebab(drive))
        .map_err(|error| format!("what was found is no profile: {error}"))?;
    let doubt = profile.confidence.as_ref().and_then(|found| found.doubt());
    match doubt {
        Some(doubt) => Err(doubt.to_string()),
        None => Ok(profile),
    }
}
