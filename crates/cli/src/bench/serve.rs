//! `headtime bench serve`: what the service itself costs.
//!
//! Memory behind it, random reads of 4 KiB at depth 32 through fio's NBD client, one core for the
//! server: beside `nbdkit memory` and the null driver of `qemu-storage-daemon`, in turn, several
//! rounds. A ratio is that of a round; what is printed is the median of all rounds.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use tempfile::TempDir;

use super::rig::{self, Core, FIO, Load, Needed, Server, Service, median, on};
use crate::output::{Exit, print};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How often each server takes its turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How long each turn is
    #[arg(long, value_name = "S", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Requests that wait for an answer at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench serve
  headtime bench serve --depth 1 --rounds 9 --json

A busy machine disturbs it: quote the ratios, and look at the rounds. Client and server have a core
each if there are two.";

/// A server, measured.
#[derive(Debug, Serialize)]
struct Measured {
    server: &'static str,
    /// Medians of the rounds.
    iops: f64,
    p99_us: f64,
    /// CPU time of the server for a request.
    cpu_us: f64,
    rounds: Vec<Round>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Round {
    iops: f64,
    p99_us: f64,
    cpu_us: f64,
}

/// Ours beside another: medians of the ratios of each round.
#[derive(Debug, Serialize)]
struct Ratio {
    beside: &'static str,
    /// The goal is 1 or more.
    iops: f64,
    /// The goal is 1 or less.
    p99: f64,
    /// The goal is less than 1.
    cpu: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    depth: u32,
    measured: Vec<Measured>,
    ratios: Vec<Ratio>,
}

/// Runs the command.
///
/// # Errors
/// If one of the programs is missing or does not run.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    rig::need(&[FIO, NBDKIT, QEMU])?;
    let folder = tempfile::tempdir().map_err(Exit::failed)?;
    let servers = servers(&folder)?;
    let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); servers.len()];
    for _ in 0..arguments.rounds {
        for ((_, server, uri), rounds) in servers.iter().zip(&mut rounds) {
            rounds.push(measured(arguments, server, uri, folder.path())?);
        }
    }
    let names = servers.iter().map(|(name, ..)| *name);
    let report = report(arguments.depth, names.zip(rounds).collect());
    print(&match arguments.json {
        true => serde_json::to_string_pretty(&report).map_err(Exit::failed)? + "\n",
        false => table(&report),
    })
}

/// All of them, with their addresses; ours is the first.
fn servers(folder: &TempDir) -> Result<Vec<(&'static str, Server, String)>, Exit> {
    let socket = |name: &str| folder.path().join(name).display().to_string();
    let config = format!(
        r#"
[[drive]]
name = "memory"
policy = "fcfs"
back_end = {{ kind = "memory", size = "1 GiB" }}
volume = [{{ name = "memory" }}]
export = [{{ name = "memory", volume = "memory" }}]

[[nbd]]
unix = "{}"

[control]
socket = "{}"
"#,
        socket("headtime"),
        socket("headtime.control"),
    );
    let ours = Service::start("headtime", &config, folder.path())?;
    let mut nbdkit = on(Core::Server, NBDKIT.program);
    nbdkit.args(["--foreground", "--unix", &socket("nbdkit"), "memory", "1G"]);
    let mut qemu = on(Core::Server, QEMU.program);
    qemu.args([
        "--blockdev",
        "driver=null-co,node-name=null,size=1073741824,read-zeroes=off",
    ]);
    qemu.args([
        "--nbd-server",
        &format!("addr.type=unix,addr.path={}", socket("qemu")),
    ]);
    qemu.args(["--export", "type=nbd,id=null,node-name=null,name=null"]);
    let mut servers = vec![("headtime", ours.server, uri("memory", &socket("headtime")))];
    for (name, command, export) in [("nbdkit", nbdkit, ""), ("qemu", qemu, "null")] {
        let mut server = Server::start(name, command, folder.path())?;
        let path = folder.path().join(name);
        server.wait_until(|| path.exists())?;
        servers.push((name, server, uri(export, &socket(name))));
    }
    Ok(servers)
}

fn uri(export: &str, socket: &str) -> String {
    format!("nbd+unix:///{export}?socket={socket}")
}

fn measured(
    arguments: &Arguments,
    server: &Server,
    uri: &str,
    folder: &Path,
) -> Result<Round, Exit> {
    let words = [
        "--name=reads".to_owned(),
        "--ioengine=nbd".to_owned(),
        format!("--uri={uri}"),
        "--rw=randread".to_owned(),
        "--bs=4k".to_owned(),
        format!("--iodepth={}", arguments.depth),
        "--size=1g".to_owned(),
        "--time_based".to_owned(),
        format!("--runtime={}", arguments.seconds),
    ];
    let before = server.cpu_time()?;
    let loads = rig::fio(&words, folder)?;
    let cpu = server.cpu_time()?.saturating_sub(before);
    let [
        (
            _,
            Load {
                iops,
                p99_ms,
                requests,
                ..
            },
        ),
    ] = loads[..]
    else {
        return Err(Exit::failed("fio did not tell of its one job"));
    };
    Ok(Round {
        iops,
        p99_us: p99_ms * 1e3,
        cpu_us: cpu.as_secs_f64() * 1e6 / requests.max(1) as f64,
    })
}

fn report(depth: u32, all: Vec<(&'static str, Vec<Round>)>) -> Report {
    let of =
        |rounds: &[Round], figure: fn(&Round) -> f64| median(rounds.iter().map(figure).collect());
    let ours = all
        .first()
        .map(|(_, rounds)| rounds.clone())
        .unwrap_or_default();
    let beside = |rounds: &[Round], figure: fn(&Round) -> f64| {
        let pairs = ours.iter().zip(rounds);
        median(
            pairs
                .map(|(our, their)| figure(our) / figure(their))
                .collect(),
        )
    };
    let ratios = all.iter().skip(1).map(|(name, rounds)| Ratio {
        beside: name,
        iops: beside(rounds, |round| round.iops),
        p99: beside(rounds, |round| round.p99_us),
        cpu: beside(rounds, |round| round.cpu_us),
    });
    let ratios = ratios.collect();
    let measured = all.into_iter().map(|(server, rounds)| Measured {
        server,
        iops: of(&rounds, |round| round.iops),
        p99_us: of(&rounds, |round| round.p99_us),
        cpu_us: of(&rounds, |round| round.cpu_us),
        rounds,
    });
    Report {
        depth,
        measured: measured.collect(),
        ratios,
    }
}

fn table(report: &Report) -> String {
    let mut text = format!(
        "random reads of 4 KiB at depth {}; medians of {} rounds\n\n{:<10} {:>9} {:>9} {:>16}\n",
        report.depth,
        report
            .measured
            .first()
            .map_or(0, |first| first.rounds.len()),
        "server",
        "IOPS",
        "p99 us",
        "CPU us / request"
    );
    for line in &report.measured {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<10} {:>9.0} {:>9.0} {:>16.2}",
            line.server, line.iops, line.p99_us, line.cpu_us
        );
    }
    text += "\nours / theirs (goals: IOPS 1 or more, p99 1 or less, CPU less than 1)\n";
    for ratio in &report.ratios {
        let _ = writeln!(
            text,
            "{:<10} {:>9.2} {:>9.2} {:>16.2}",
            ratio.beside, ratio.iops, ratio.p99, ratio.cpu
        );
    }
    text
}

const NBDKIT: Needed = Needed {
    program: "nbdkit",
    package: "nbdkit",
};
const QEMU: Needed = Needed {
    program: "qemu-storage-daemon",
    package: "qemu-system-common",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_rounds_and_then_the_middle() {
        let round = |iops: f64| Round {
            iops,
            p99_us: 100.0,
            cpu_us: 2.0,
        };
        let ours = vec![round(200.0), round(300.0), round(10.0)];
        let theirs = vec![round(100.0), round(100.0), round(100.0)];
        let report = report(32, vec![("headtime", ours), ("other", theirs)]);
        assert_eq!(report.ratios.len(), 1);
        assert_eq!((report.ratios[0].iops, report.ratios[0].cpu), (2.0, 1.0));
        assert_eq!(report.measured[0].iops, 200.0);
        assert!(table(&report).contains("other           2.00      1.00             1.00"));
    }
}
