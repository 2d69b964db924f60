//! `headtime validate`: the models against times measured on real drives.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use block::Duration;
use clap::Args;
use drive::Profile;
use lab::plot::{self, Series};
use lab::validate::judgement::{Figures, Judged, Judgement, judge};
use lab::validate::measurement::Measurements;
use simulator::trace::OnBad;

use crate::output::{Failure, print, write_file};
use crate::{drives, shared};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Only this drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME|FILE")]
    drive: Option<String>,
    /// This trace in the `validate` format instead of the drive's own
    #[arg(long, value_name = "FILE", requires = "drive")]
    trace: Option<PathBuf>,
    /// Leave out bad lines of that trace and requests past the end of the drive, and count them
    #[arg(long, requires = "trace")]
    skip_bad: bool,
    /// Without the constants that were fitted: the profile as it was published
    #[arg(long)]
    published: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Draw measured, DiskSim's and our distributions, a file for each drive
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

impl Arguments {
    fn on_bad(&self) -> OnBad {
        match self.skip_bad {
            true => OnBad::Skip,
            false => OnBad::Refuse,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  headtime validate
      every drive of ../shared/drives that has a measured trace
  headtime validate --drive hp-c2247a --svg out/validate
  headtime validate --drive seagate-barracuda-4lp --trace barracuda.trace --json
      a trace of your own: direction, cache action, block, blocks, measured and think microseconds

The demerit is the root mean square distance of the two distributions of service times, in ms.";

/// One drive with its trace.
struct Case {
    profile: Profile,
    measurements: Measurements,
    disksim: Option<Vec<Duration>>,
}

/// Runs the command.
///
/// # Errors
/// If a drive or trace is not what it should be, or the output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (cases, remarks) = cases(arguments)?;
    let mut judgements = Vec::new();
    for case in &cases {
        let samples = &case.measurements.samples;
        let judged = judge(&case.profile, samples, case.disksim.as_deref());
        if let Some(folder) = &arguments.svg {
            draw(folder, case, &judged)?;
        }
        judgements.push(judged.judgement);
    }
    if arguments.json {
        // Where standard error is closed there is nobody to tell.
        let _ = io::stderr().write_all(remarks.as_bytes());
        let json = serde_json::to_string_pretty(&judgements).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&(table(&judgements) + &remarks))
}

/// What is to be judged, and remarks about what is not.
fn cases(arguments: &Arguments) -> Result<(Vec<Case>, String), Failure> {
    let mut profiles = drives::named_or_all(arguments.drive.as_deref())?;
    if arguments.published {
        profiles = profiles.iter().map(Profile::published).collect();
    }
    if let (Some(file), Some(profile)) = (&arguments.trace, profiles.first()) {
        return users_own(file, profile, arguments.on_bad());
    }
    let folder = shared::folder();
    if !folder.join("drives").is_dir() {
        return Ok((Vec::new(), shared::missing("measured traces")? + "\n"));
    }
    let (mut cases, mut without) = (Vec::new(), Vec::new());
    for profile in profiles {
        let Some(file) = shared::trace_of(&profile) else {
            without.push(profile.name);
            continue;
        };
        let measurements = shared::measurements(&file, &profile, OnBad::Refuse)?;
        let disksim = shared::disksim_of(&profile, &measurements.samples)?;
        cases.push(Case {
            profile,
            measurements,
            disksim,
        });
    }
    if let (Some(name), Some(_)) = (without.first(), &arguments.drive) {
        return Err(Failure::input(format!(
            "{name} has no measured trace in {}: give one with --trace FILE",
            folder.display()
        )));
    }
    if cases.is_empty() {
        return Ok((cases, shared::missing("measured traces")? + "\n"));
    }
    let remarks = match without.is_empty() {
        true => String::new(),
        false => format!("skipped: no measured trace for {}\n", without.join(", ")),
    };
    Ok((cases, remarks))
}

/// A trace that the user has, of which DiskSim knows nothing.
fn users_own(
    file: &Path,
    profile: &Profile,
    on_bad: OnBad,
) -> Result<(Vec<Case>, String), Failure> {
    let measurements = shared::measurements(file, profile, on_bad)?;
    let remarks = match measurements.left_out() {
        0 => String::new(),
        _ => format!(
            "{}; {} requests past the end of {} left out\n",
            measurements.bad_lines, measurements.past_end, profile.name
        ),
    };
    let case = Case {
        profile: profile.clone(),
        measurements,
        disksim: None,
    };
    Ok((vec![case], remarks))
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

fn row(judgement: &Judgement, figures: &Figures) -> String {
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

/// Three distributions in one plot.
fn draw(folder: &Path, case: &Case, judged: &Judged) -> Result<(), Failure> {
    let millis = |times: &[Duration]| times.iter().map(|time| time.as_millis_f64()).collect();
    let samples = &case.measurements.samples;
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
    if let Some(disksim) = &case.disksim {
        series.push(Series {
            name: "DiskSim 4.0".to_owned(),
            values: millis(disksim),
        });
    }
    let title = format!(
        "{}: {} requests, demerit {:.3} ms",
        case.profile.model,
        samples.len(),
        judged.judgement.whole.demerit_ms
    );
    let svg = plot::cdf(&title, "service time, ms", &series);
    write_file(&folder.join(format!("{}.svg", case.profile.name)), &svg)
}
