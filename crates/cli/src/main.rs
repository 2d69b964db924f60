//! `headtime`: the command line of the simulator and the server.

mod adopt;
mod backup;
mod bar;
mod bench;
mod cache;
mod ctl;
mod demo;
mod doctor;
mod drives;
mod emulate;
mod experiment;
mod fit;
mod help;
mod install;
mod interrupt;
mod mirror;
mod output;
mod paper;
mod profile;
mod replay;
mod restore;
mod scan;
mod schema;
mod scrub;
mod serve;
mod service;
mod settings;
mod simulate;
mod state_file;
mod streams;
mod top;
mod trace;
mod validate;
mod verbosity;
mod why;

use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use server::config::{Log, LogFormat};
use tracing::Level;

use output::Exit;
use verbosity::VerbosityArgs;

/// The version of the package and the commit of which it was built, as `build.rs` found it.
const VERSION: &str = env!("HEADTIME_VERSION");

/// Block I/O that knows where the head is.
#[derive(Debug, Parser)]
#[command(name = "headtime", version, long_version = VERSION, max_term_width = 100)]
struct Headtime {
    #[command(flatten)]
    verbosity: VerbosityArgs,
    #[command(subcommand)]
    command: HeadtimeCommand,
}

#[derive(Debug, Subcommand)]
enum HeadtimeCommand {
    /// Learn a disk that nobody has described, and write a configuration for it: it is only read.
    Adopt(Box<adopt::AdoptArgs>),
    /// Write an image of one moment of a live volume, or what was changed since the last one.
    Backup(Box<backup::BackupArgs>),
    /// Measure the speed of the simulator and the service, and our policies beside the kernel's
    /// schedulers
    Bench(bench::BenchArgs),
    /// Print the miss ratios of a trace by cache size and replacement policy.
    Cache(cache::CacheArgs),
    /// Print what lets a shell complete commands and options.
    Completions(install::CompletionsArgs),
    /// Inspect and control a running service.
    Ctl(ctl::CtlArgs),
    /// Demonstrate the service live in a minute: a load over NBD, without and with a scan.
    Demo(demo::DemoArgs),
    /// Say what is wrong with a running service, a configuration or a path, and what to do.
    Doctor(doctor::DoctorArgs),
    /// List the known drives, draw one, or locate blocks.
    Drives(drives::DrivesArgs),
    /// Serve an emulated drive over NBD, with the drive's timing.
    Emulate(Box<emulate::EmulateArgs>),
    /// Run a sweep from an experiment file on all cores: a table, JSON, plots.
    Experiment(experiment::ExperimentArgs),
    /// Fit a drive's unpublished constants to half of a measured trace, and validate them on the
    /// other half.
    Fit(fit::FitArgs),
    /// Write the manual pages, one for each command.
    ManPages(install::ManPagesArgs),
    /// Make mirrors of two disks, look at their legs, and prepare new legs.
    Mirror(mirror::MirrorArgs),
    /// Measure the claims of papers again, and print their figures beside ours.
    Paper(paper::PaperArgs),
    /// Read a file at a guaranteed rate, and log the delay of every read.
    Play(Box<streams::play::PlayArgs>),
    /// Find a drive's profile from block numbers and completion times alone.
    Profile(Box<profile::ProfileArgs>),
    /// Write a test pattern to a new file at a guaranteed rate, and log the delay of every write.
    Record(Box<streams::record::RecordArgs>),
    /// Replay a captured live run in virtual time, and compare every decision.
    Replay(replay::ReplayArgs),
    /// Write an image to a live volume, in the gaps of its drive.
    Restore(Box<restore::RestoreArgs>),
    /// Read every block of a live volume in the gaps of its drive.
    Scan(scan::ScanArgs),
    /// Print JSON Schemas of what `--json` prints
    Schema(schema::SchemaArgs),
    /// Verify the checksums of a live volume in the gaps of its drive.
    Scrub(scrub::ScrubArgs),
    /// Serve drives over NBD and as files, from a configuration file.
    Serve(serve::ServeArgs),
    /// Run a load or a trace on a drive under one policy or several, in virtual time.
    Simulate(Box<simulate::SimulateArgs>),
    /// List the streams of a running service: terms, status, late batches.
    Streams(streams::StreamsArgs),
    /// Show a running service in the terminal: head time, drives, tasks, clients, slow requests.
    Top(top::TopArgs),
    /// Show the statistics of a trace of block requests, or convert it.
    Trace(trace::TraceArgs),
    /// Compare the drive models with service times of real drives, and with DiskSim.
    Validate(validate::ValidateArgs),
    /// Explain slow requests of a running service: where their time went.
    Why(why::WhyArgs),
}

fn main() -> ExitCode {
    let parsed = help::grouped::<Headtime>().try_get_matches();
    let parsed = parsed.and_then(|matches| Headtime::from_arg_matches(&matches));
    let command = match parsed {
        Ok(headtime) => {
            headtime.verbosity.keep();
            headtime.command
        }
        Err(error) => return misunderstood(&error),
    };
    if verbosity::is_logged() && !command.has_log() {
        serve::log_as(&CLIENT_LOG);
    }
    let begun = Instant::now();
    let ended = match command {
        HeadtimeCommand::Adopt(arguments) => adopt::run(&arguments),
        HeadtimeCommand::Backup(arguments) => backup::run(&arguments),
        HeadtimeCommand::Bench(arguments) => bench::run(&arguments),
        HeadtimeCommand::Cache(arguments) => cache::run(&arguments),
        HeadtimeCommand::Completions(arguments) => {
            install::completions(&arguments, Headtime::command())
        }
        HeadtimeCommand::Ctl(arguments) => ctl::run(&arguments),
        HeadtimeCommand::Demo(arguments) => demo::run(&arguments),
        HeadtimeCommand::Doctor(arguments) => doctor::run(&arguments),
        HeadtimeCommand::Drives(arguments) => drives::print(&arguments),
        HeadtimeCommand::Emulate(arguments) => emulate::run(&arguments),
        HeadtimeCommand::Experiment(arguments) => experiment::run(&arguments),
        HeadtimeCommand::Fit(arguments) => fit::run(&arguments),
        HeadtimeCommand::ManPages(arguments) => install::man_pages(&arguments, Headtime::command()),
        HeadtimeCommand::Mirror(arguments) => mirror::run(&arguments),
        HeadtimeCommand::Paper(arguments) => paper::run(&arguments),
        HeadtimeCommand::Play(arguments) => streams::play::run(&arguments),
        HeadtimeCommand::Profile(arguments) => profile::run(&arguments),
        HeadtimeCommand::Record(arguments) => streams::record::run(&arguments),
        HeadtimeCommand::Replay(arguments) => replay::run(&arguments),
        HeadtimeCommand::Restore(arguments) => restore::run(&arguments),
        HeadtimeCommand::Scan(arguments) => scan::run(&arguments),
        HeadtimeCommand::Schema(arguments) => schema::run(&arguments),
        HeadtimeCommand::Scrub(arguments) => scrub::run(&arguments),
        HeadtimeCommand::Serve(arguments) => serve::run(&arguments),
        HeadtimeCommand::Simulate(mut arguments) => simulate::run(&mut arguments),
        HeadtimeCommand::Streams(arguments) => streams::run(&arguments),
        HeadtimeCommand::Top(arguments) => top::run(&arguments),
        HeadtimeCommand::Trace(arguments) => trace::run(&arguments).map_err(Exit::from),
        HeadtimeCommand::Validate(arguments) => validate::run(&arguments),
        HeadtimeCommand::Why(arguments) => why::run(&arguments),
    };
    if verbosity::is_logged() {
        tracing::info!(seconds = begun.elapsed().as_secs_f64(), "the command ends");
    }
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The log of a command that has none of its own, before `-v` raises its level.
const CLIENT_LOG: Log = Log {
    level: Level::WARN,
    format: LogFormat::Text,
};

impl HeadtimeCommand {
    /// Whether the command begins a log itself.
    fn has_log(&self) -> bool {
        matches!(
            self,
            HeadtimeCommand::Serve(_) | HeadtimeCommand::Emulate(_) | HeadtimeCommand::Demo(_)
        )
    }
}

/// Prints help as it is, also that of an incomplete command. Any other error becomes one line.
fn misunderstood(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    };
    if let DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand = error.kind() {
        // A closed output is no failure.
        let _ = error.print();
        return ExitCode::from(u8::from(error.use_stderr()) * 2);
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = ["\nUsage:", "\nFor more information", "\n  tip:"];
    let end = end.into_iter().filter_map(|mark| text.find(mark)).min();
    let problem = in_plain_words(text[..end.unwrap_or(text.len())].trim_end());
    let meant = match meant(error).as_slice() {
        [] => String::new(),
        names => format!(", did you mean {}?", names.join(" or ")),
    };
    Exit::input(format!("{problem}{meant}; --help says more")).report()
}

/// The error of a number in the words of all others: found, and expected. The texts are those of the standard library.
fn in_plain_words(problem: &str) -> String {
    let known = [
        (
            "invalid digit found in string",
            "expected a whole number, not negative",
        ),
        ("invalid float literal", "expected a number"),
        (
            "cannot parse integer from empty string",
            "expected a whole number",
        ),
        ("cannot parse float from empty string", "expected a number"),
        (
            "number too large to fit in target type",
            "expected a smaller number",
        ),
    ];
    let found = known.iter().find(|(words, _)| problem.ends_with(words));
    match found {
        Some((words, plain)) => problem[..problem.len() - words.len()].to_owned() + plain,
        None => problem.to_owned(),
    }
}

/// The names that are similar to the one that was not understood.
fn meant(error: &clap::Error) -> Vec<String> {
    use clap::error::{ContextKind, ContextValue};
    let kinds = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ];
    let names = kinds.into_iter().filter_map(|kind| error.get(kind));
    names
        .flat_map(|names| match names {
            ContextValue::String(name) => vec![name.clone()],
            ContextValue::Strings(names) => names.clone(),
            _ => Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_under_one_heading_of_the_help() {
        let all = Headtime::command();
        let names: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
        let grouped: Vec<&str> = help::GROUPS
            .iter()
            .flat_map(|(_, commands)| commands.iter().copied())
            .collect();
        for name in &names {
            let times = grouped.iter().filter(|other| *other == name).count();
            assert_eq!(times, 1, "{name}");
        }
        assert_eq!(grouped.len(), names.len());
    }

    #[test]
    fn a_number_that_is_none_is_told_in_plain_words() {
        for (words, plain) in [
            (
                &["headtime", "simulate", "--seed=-1"][..],
                "expected a whole number, not negative",
            ),
            (
                &["headtime", "simulate", "--seed="],
                "expected a whole number",
            ),
            (&["headtime", "simulate", "--rate=x"], "expected a number"),
            (
                &["headtime", "simulate", "--tasks=5000000000"],
                "4294967295",
            ),
        ] {
            let error = Headtime::try_parse_from(words).unwrap_err();
            let text = error.render().to_string();
            let line = text.lines().next().unwrap();
            let said = in_plain_words(line);
            assert!(said.contains(plain), "{said}");
        }
    }

    #[test]
    fn a_typing_error_is_told_what_was_meant() {
        for (words, name) in [
            (&["headtime", "simulat"][..], "simulate"),
            (&["headtime", "simulate", "--drve", "x"], "--drive"),
            (&["headtime", "completions", "bsh"], "bash"),
        ] {
            let error = Headtime::try_parse_from(words).unwrap_err();
            assert!(meant(&error).contains(&name.to_owned()), "{error}");
        }
        let error = Headtime::try_parse_from(["headtime", "xyzzy"]).unwrap_err();
        assert!(meant(&error).is_empty(), "{error}");
    }

    #[test]
    fn the_help_has_its_headings_in_order() {
        let help = help::grouped::<Headtime>().render_help().to_string();
        let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
        let mut marks: Vec<usize> = help::GROUPS
            .iter()
            .map(|(heading, _)| place(&format!("\n{heading}:\n")))
            .collect();
        marks.push(place("\nOptions:\n"));
        assert!(marks.is_sorted(), "{help}");
        let [serve, simulate] = [place("\n  serve "), place("\n  simulate ")];
        assert!(marks[0] < serve && serve < marks[1] && marks[1] < simulate);
        assert!(help.lines().all(|line| line.chars().count() <= 100));
    }
}
