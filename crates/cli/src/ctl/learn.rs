//! `headtime ctl profile`: profiles a drive in service, writes its profile, and lets the service follow it.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use document::quantity::Unit;
use indicatif::{ProgressBar, ProgressStyle};
use server::control::protocol::Ask;
use server::control::{self, AskError, Learn, LearningReport};

use super::{Format, parts_per_million};
use crate::bar::ProgressLines;
use crate::output::{self, Exit, NewFile, grouped};
use crate::service::{asked, understood};
use crate::settings::units::{in_unit, whole_in};
use crate::verbosity::bar_target;

/// The arguments of `headtime ctl profile`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LearnArgs {
    /// The drive's name in the configuration
    drive: String,
    /// Limit of the drive's time
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = whole_in::<u32>(Unit::Minutes, 1..=10_080))]
    minutes: u32,
    /// Share of time for reads of the profiler between clients' requests, in addition to idle time
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = in_unit(Unit::Percent))]
    percent: f64,
    /// Write the profile to this file [default: DRIVE.toml]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Do not wait for the end. The same command without it waits, writes the profile, and lets the service
    /// follow it
    #[arg(long, conflicts_with_all = ["output", "stop"])]
    detach: bool,
    /// End profiling now. What was found can still be written
    #[arg(long, conflicts_with = "output")]
    stop: bool,
}

const EXAMPLES: &str = "Examples:
  headtime ctl profile disk --percent 5
      profile a busy disk; Ctrl-C leaves it being profiled
  headtime ctl profile disk -o disk.toml
      wait for the end, write the profile, and let the service follow it without a restart";

/// The time between two looks at the progress. A choice: as often as the status page.
const LOOK: Duration = Duration::from_secs(1);

impl LearnArgs {
    /// The request that begins or ends profiling.
    pub(super) fn ask(&self) -> Result<Ask, Exit> {
        let drive = self.drive.clone();
        Ok(match self.stop {
            true => Ask::StopLearning { drive },
            false => Ask::Learn(Learn {
                drive,
                seconds: self.minutes * 60,
                granted_ppm: parts_per_million(self.percent)?,
            }),
        })
    }

    /// Begins profiling, or joins it where it has begun; waits for its end, writes the profile, and lets the
    /// service follow it.
    ///
    /// # Errors
    /// If the service refuses, the profile is not usable, or the file cannot be written.
    pub(super) fn run(&self, socket: &Path, format: Format) -> Result<(), Exit> {
        let (report, hint) = self.learned(socket)?;
        output::print_answer(&match format {
            Format::Json => format!(
                "{:#}\n",
                serde_json::to_value(report).map_err(Exit::failed)?
            ),
            Format::Text => described(&report) + &hint,
        })
    }

    /// The last report, and what to do with it.
    fn learned(&self, socket: &Path) -> Result<(LearningReport, String), Exit> {
        let order = self.ask()?;
        let output = match (&self.output, self.detach || self.stop) {
            (_, true) => None,
            (Some(path), false) => Some((path.clone(), NewFile::begin(path)?)),
            (None, false) => {
                let path = PathBuf::from(format!("{}.toml", self.drive));
                let file = NewFile::begin(&path)?;
                Some((path, file))
            }
        };
        if self.stop || !self.has_begun(socket)? {
            asked(socket, &order)?;
        }
        let report = match self.detach {
            true => self.report(socket)?,
            // A read of the profiler may still be at the disk when it is told to stop.
            false => self.wait(socket)?,
        };
        let Some((path, file)) = output else {
            return Ok((report, String::new()));
        };
        let Some(profile) = &report.profile else {
            return Err(Exit::failed(refused(&report)));
        };
        file.write(profile)?;
        let drive = self.drive.clone();
        asked(socket, &Ask::Follow { drive })?;
        let hint = format!(
            "{}: a profile. The service follows it from now on, and after a restart with belief = \"{0}\" for the \
             drive {}\n",
            path.display(),
            self.drive
        );
        Ok((report, hint))
    }

    /// Whether the drive is being profiled, or was profiled and nobody has taken the profile.
    fn has_begun(&self, socket: &Path) -> Result<bool, Exit> {
        let drive = self.drive.clone();
        match control::ask(socket, &Ask::Learned { drive }) {
            Ok(report) => {
                let report: LearningReport = understood(socket, report)?;
                Ok(report.active || report.profile.is_some())
            }
            Err(AskError::Refused(_)) => Ok(false),
            Err(error) => Err(Exit::failed(error)),
        }
    }

    fn report(&self, socket: &Path) -> Result<LearningReport, Exit> {
        let drive = self.drive.clone();
        understood(socket, asked(socket, &Ask::Learned { drive })?)
    }

    fn wait(&self, socket: &Path) -> Result<LearningReport, Exit> {
        let target = bar_target(2);
        let bar = ProgressBar::with_draw_target(Some(u64::from(self.minutes) * 60), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:20} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(self.drive.clone());
        let _lines = ProgressLines::of(&bar);
        let report = loop {
            let report = self.report(socket)?;
            if !report.active {
                break report;
            }
            bar.set_position(report.seconds as u64);
            bar.set_message(format!(
                "{:.0} s, at {}; tracks of {:.1} % known",
                report.seconds,
                report.stage,
                report.known * 100.0
            ));
            thread::sleep(LOOK);
        };
        bar.finish_and_clear();
        Ok(report)
    }
}

/// The reason for which there is no profile.
fn refused(report: &LearningReport) -> String {
    let doubt = report.doubt.as_deref().unwrap_or("nothing was found");
    let reasons: Vec<String> = report.failed.iter().map(|why| format!("; {why}")).collect();
    format!(
        "{}: {doubt}{}: no profile is written; more --minutes or a larger --percent may find more",
        report.drive,
        reasons.concat()
    )
}

/// The report for people.
fn described(report: &LearningReport) -> String {
    let state = match report.active {
        true => "being profiled",
        false => "profiled",
    };
    let period = match report.period_ms {
        Some(period) => format!("{period:.4} ms a revolution"),
        None => String::from("no period yet"),
    };
    format!(
        "{}: {state} for {:.0} s, at {}: {period}, tracks of {:.1} % of the blocks, {} reads in {:.1} % of the \
         time\n",
        report.drive,
        report.seconds,
        report.stage,
        report.known * 100.0,
        grouped(report.probes),
        report.probing * 100.0
    )
}
