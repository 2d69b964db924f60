//! `headtime validate`: the models against times measured on real drives.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use block::Duration;
use clap::Args;
use drive::{Profile, catalog};
use simulator::plot::{self, Series};
use simulator::validate::judgement::{Figures, Judged, Judgement, judge};
use simulator::validate::{Sample, measurement};

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
    samples: Vec<Sample>,
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
        let judged = judge(&case.profile, &case.samples, case.disksim.as_deref());
        if let Some(folder) = &arguments.svg {
            draw(folder, case, &judged)?;
        }
        judgements.push(judged.judgement);
    }
    if arguments.json {
        let json = serde_json::to_string_pretty(&judgements).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&(table(&judgements) + &remarks))
}

/// What is to be judged, and remarks about what is not.
fn cases(arguments: &Arguments) -> Result<(Vec<Case>, String), Failure> {
    let mut remarks = String::new();
    let profiles = match &arguments.drive {
        Some(name) => vec![drives::load(name).map_err(Failure::input)?],
        None => {
            let all = catalog::ALL
                .iter()
                .map(|entry| entry.profile().map_err(Failure::failed));
            all.collect::<Result<Vec<_>, _>>()?
        }
    };
    let folder = shared::folder();
    if arguments.trace.is_none() && !folder.join("drives").is_dir() {
        return Ok((Vec::new(), shared::missing("measured traces")? + "\n"));
    }
    let (mut cases, mut without) = (Vec::new(), Vec::new());
    for profile in profiles {
        let profile = if arguments.published {
            profile.published()
        } else {
            profile
        };
        let found = match &arguments.trace {
            Some(file) => Some((file.clone(), None)),
            None => own_trace(&folder, &profile),
        };
        let Some((file, directory)) = found else {
            without.push(profile.name.clone());
            continue;
        };
        let samples = measurement::samples(&file, &profile).map_err(Failure::input)?;
        let disksim = match directory {
            Some(directory) => {
                measurement::disksim(&folder, &directory, &samples).map_err(Failure::input)?
            }
            None => None,
        };
        cases.push(Case {
            profile,
            samples,
            disksim,
        });
    }
    if let Some(name) = without.first()
        && arguments.drive.is_some()
    {
        return Err(Failure::input(format!(
            "{name} has no measured trace in {}: give one with --trace FILE",
            folder.display()
        )));
    }
    if !without.is_empty() {
        let _ = writeln!(
            remarks,
            "skipped: no measured trace for {}",
            without.join(", ")
        );
    }
    Ok((cases, remarks))
}

/// The trace that belongs to a drive, and the directory of its results.
fn own_trace(folder: &Path, profile: &Profile) -> Option<(PathBuf, Option<String>)> {
    let directory = profile.source.clone()?;
    let file = measurement::trace_of(folder, &directory)?;
    Some((file, Some(directory)))
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
    let parts: [(&str, fn(&Judgement) -> &Figures); 2] = [
        ("all requests of each trace", |judgement| &judgement.whole),
        (
            "second half of each trace: nothing was fitted on it",
            |judgement| &judgement.held_out,
        ),
    ];
    for (title, figures) in parts {
        let _ = writeln!(text, "{title}");
        for judgement in judgements {
            let _ = writeln!(text, "{}", row(judgement, figures(judgement)));
        }
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
    let measured: Vec<Duration> = case.samples.iter().map(|sample| sample.service).collect();
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
        case.samples.len(),
        judged.judgement.whole.demerit_ms
    );
    let svg = plot::cdf(&title, "service time, ms", &series);
    write_file(&folder.join(format!("{}.svg", case.profile.name)), &svg)
}
