//! `headtime validate`: compares the models with service times of real drives.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use lab::plot;
use lab::validate::cases::{Constants, ValidationSettings, validate};
use lab::validate::judgement::{DemeritFigures, Judgement};
use lab::validate::table::judgements;
use simulator::trace::OnBad;

use crate::bar::Bar;
use crate::output::{Exit, NewTable, json, note, print, write_beside};

/// The arguments of `headtime validate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ValidateArgs {
    /// Validate only this drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME|FILE")]
    drive: Option<String>,
    /// Use this trace in the `validate` format instead of the drive's own
    #[arg(long, value_name = "FILE", requires = "drive")]
    trace: Option<PathBuf>,
    /// Skip and count bad lines of that trace and requests past the end of the drive
    #[arg(long, requires = "trace")]
    skip_bad: bool,
    /// Use the profile as it was published, without fitted constants
    #[arg(long)]
    published: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Write the rows to this file: .parquet or .arrow
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw the distributions (measured, DiskSim, ours) into this folder: an SVG and a PNG for each
    /// drive
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

impl ValidateArgs {
    fn settings(&self) -> ValidationSettings {
        ValidationSettings {
            drive: self.drive.clone(),
            trace: self.trace.clone(),
            on_bad: match self.skip_bad {
                true => OnBad::Skip,
                false => OnBad::Refuse,
            },
            constants: match self.published {
                true => Constants::Published,
                false => Constants::Fitted,
            },
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  headtime validate
      validate every drive in ../shared/drives with a measured trace
  headtime validate --drive hp-c2247a --svg out/validate
  headtime validate --drive seagate-barracuda-4lp --trace barracuda.trace --json
      use another trace: direction, cache action, block, blocks, measured and think microseconds

The demerit is the root mean square distance of the two distributions of service times, in ms.";

/// Runs the command.
///
/// # Errors
/// If a drive or trace is invalid, or the output cannot be written.
pub fn run(arguments: &ValidateArgs) -> Result<(), Exit> {
    let out = NewTable::begin(arguments.out.as_deref())?;
    let bar = Bar::new("{bar:40} {pos} of {len} drives  {msg}").with_prefix("validate".to_owned());
    let validation = validate(&arguments.settings(), &bar);
    bar.finish();
    let validation = validation?;
    if let Some(file) = out {
        file.write(&judgements(&validation.judgements))?;
    }
    if let Some(folder) = &arguments.svg {
        for (drive, panel) in validation.drawings {
            write_beside(folder, &drive, &plot::page(&[panel]))?;
        }
    }
    let remarks = &validation.remarks;
    if arguments.json {
        note(remarks);
        return print(&json(&validation.judgements)?);
    }
    print(&(table(&validation.judgements) + remarks))
}

fn table(judgements: &[Judgement]) -> String {
    if judgements.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "                              demerit, ms: ours | DiskSim 4.0                   mean, ms\
         \x20          per request, median ms\n\
         drive                      all            reads          writes         measured  ours   \
         \x20 ours    DiskSim\n",
    );
    text.push_str("all requests of each trace\n");
    for judgement in judgements {
        let _ = writeln!(text, "{}", row(judgement, &judgement.whole).trim_end());
    }
    text.push_str("second half of each trace: `headtime fit` sees the first one only\n");
    for judgement in judgements {
        let _ = writeln!(text, "{}", row(judgement, &judgement.held_out).trim_end());
    }
    let fitted = judgements
        .iter()
        .filter(|judgement| judgement.fitted)
        .count();
    let _ = writeln!(
        text,
        "\n* {fitted} of {} profiles have constants fitted on the first half of their traces: \
         `headtime fit`; --published leaves them out",
        judgements.len()
    );
    text
}

fn row(judgement: &Judgement, figures: &DemeritFigures) -> String {
    let or_none = |value: Option<f64>| value.map_or("  -  ".to_owned(), |v| format!("{v:5.3}"));
    let pair = |ours: f64, theirs: Option<f64>| format!("{ours:5.3} | {}", or_none(theirs));
    let star = if judgement.fitted { '*' } else { ' ' };
    format!(
        "  {:23}{star} {}  {}  {}  {:7.3}  {:7.3}   {}   {}",
        judgement.drive,
        pair(figures.demerit_ms, figures.disksim_demerit_ms),
        pair(figures.demerit_read_ms, figures.disksim_demerit_read_ms),
        pair(figures.demerit_write_ms, figures.disksim_demerit_write_ms),
        figures.measured_mean_ms,
        figures.simulated_mean_ms,
        or_none(figures.median_error_ms),
        or_none(figures.disksim_median_error_ms),
    )
}
