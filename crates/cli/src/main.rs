//! `headtime`: the one binary over the simulator and the server.

mod bar;
mod bench;
mod ctl;
mod demo;
mod drives;
mod emulate;
mod experiment;
mod fit;
mod help;
mod output;
mod paper;
mod profile;
mod replay;
mod scan;
mod serve;
mod settings;
mod simulate;
mod streams;
mod trace;
mod validate;
mod why;

use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};

use output::Exit;

/// Block I/O that knows where the head is.
#[derive(Debug, Parser)]
#[command(name = "headtime", version, max_term_width = 100)]
struct Headtime {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// How fast it is: the simulator, the service, and our order beside the kernel's
    Bench(bench::Arguments),
    /// Look at a running service, and tell it what to do.
    Ctl(ctl::Arguments),
    /// The service live, in a minute: a load over NBD without and with a scan beside it.
    Demo(demo::Arguments),
    /// The drives that are known: list them, draw one, or ask where a block is.
    Drives(drives::DrivesArgs),
    /// Serve a drive that does not exist over NBD, with the times that it would take.
    Emulate(Box<emulate::Arguments>),
    /// Run a sweep from an experiment file on all cores: a table, JSON, a plot.
    Experiment(experiment::Arguments),
    /// Fit a drive's unpublished constants to a measured trace, and judge them on its other half.
    Fit(fit::Arguments),
    /// What papers claim, measured again: theirs beside ours.
    Paper(paper::Arguments),
    /// Read a file at a guaranteed rate, and log the delay of every read.
    Play(Box<streams::play::Arguments>),
    /// Find a drive's profile from block numbers and completion times alone.
    Profile(Box<profile::Arguments>),
    /// Write a new file at a guaranteed rate, and log the delay of every write.
    Record(Box<streams::record::Arguments>),
    /// Replay a captured live run in virtual time, and compare every decision.
    Replay(replay::Arguments),
    /// Read every block of a live volume in the gaps of its drive.
    Scan(scan::Arguments),
    /// Serve drives over NBD and as files, as a configuration says.
    Serve(serve::Arguments),
    /// Run a load or a trace on a drive under one policy or several, in virtual time.
    Simulate(Box<simulate::Arguments>),
    /// List the streams of a running service: what was granted, how they stand, what came late.
    Streams(streams::Arguments),
    /// Look into a trace of block requests, or convert it.
    Trace(trace::Trace),
    /// Hold the models against times measured on real drives, with DiskSim's results beside ours.
    Validate(validate::Arguments),
    /// Why requests of a running service were slow: where their time went.
    Why(why::Arguments),
}

fn main() -> ExitCode {
    let parsed = help::grouped::<Headtime>().try_get_matches();
    let parsed = parsed.and_then(|matches| Headtime::from_arg_matches(&matches));
    let command = match parsed {
        Ok(headtime) => headtime.command,
        Err(error) => return misunderstood(&error),
    };
    let ended = match command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Ctl(arguments) => ctl::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Drives(arguments) => drives::print(&arguments),
        Command::Emulate(arguments) => emulate::run(&arguments),
        Command::Experiment(arguments) => experiment::run(&arguments),
        Command::Fit(arguments) => fit::run(&arguments),
        Command::Paper(arguments) => paper::run(&arguments),
        Command::Play(arguments) => streams::play::run(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Record(arguments) => streams::record::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Scan(arguments) => scan::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Streams(arguments) => streams::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments).map_err(Exit::from),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Why(arguments) => why::run(&arguments),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Help is printed as it is, and so is that of a command which cannot do without more; what is wrong
/// is said in one line, as everything that is wrong is.
fn misunderstood(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    };
    if let DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand = error.kind() {
        // A reader that has gone is no failure.
        let _ = error.print();
        return ExitCode::from(u8::from(error.use_stderr()) * 2);
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = ["\nUsage:", "\nFor more information"];
    let end = end.into_iter().filter_map(|mark| text.find(mark)).min();
    let problem = &text[..end.unwrap_or(text.len())];
    Exit::input(format!("{}; --help says more", problem.trim_end())).report()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

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
