//! The overhead of the service.
//!
//! The load is random reads of 4 KiB at depth 32 through fio's NBD client. The server has one core
//! and serves from memory. `nbdkit memory` and the null driver of `qemu-storage-daemon` take turns
//! with it. A ratio belongs to one round; the report has the medians of all rounds.

use std::path::Path;

use serde::Serialize;
use tempfile::TempDir;

use super::rig::{self, Core, FIO, FioLoad, Needed, ServeProcess, Server, median, on};
use crate::Failure;

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct ServeBench {
    /// Turns of each server.
    pub rounds: u32,
    /// The length of each turn, in seconds.
    pub seconds: u32,
    /// Outstanding requests.
    pub depth: u32,
}

/// The figures of one server.
#[derive(Debug, Serialize)]
pub struct ServerCost {
    /// The server.
    pub server: &'static str,
    /// Reads per second: the median of the rounds.
    pub iops: f64,
    /// The 99th percentile of the latency.
    pub p99_us: f64,
    /// The server's CPU time per request.
    pub cpu_us: f64,
    /// Each round.
    pub rounds: Vec<ServerRound>,
}

/// The figures of a server in one round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ServerRound {
    /// Reads per second.
    pub iops: f64,
    /// The 99th percentile of the latency.
    pub p99_us: f64,
    /// The server's CPU time per read.
    pub cpu_us: f64,
}

/// Our service over another server: medians of the rounds' ratios.
#[derive(Debug, Serialize)]
pub struct ServerRatio {
    /// The other server.
    pub beside: &'static str,
    /// The ratio of reads per second. Goal: 1 or more.
    pub iops: f64,
    /// The ratio of 99th percentiles. Goal: 1 or less.
    pub p99: f64,
    /// The ratio of CPU times. Goal: less than 1.
    pub cpu: f64,
}

/// Our service beside the other servers.
#[derive(Debug, Serialize)]
pub struct ServeReport {
    /// Outstanding requests.
    pub depth: u32,
    /// The servers; ours is the first.
    pub measured: Vec<ServerCost>,
    /// Our service over each other server.
    pub ratios: Vec<ServerRatio>,
}

impl ServeBench {
    /// Measures all servers in turn.
    ///
    /// # Errors
    /// If a program is missing or does not run.
    pub fn run(&self) -> Result<ServeReport, Failure> {
        rig::need(&[FIO, NBDKIT, QEMU])?;
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let servers = servers(&folder)?;
        let mut rounds: Vec<Vec<ServerRound>> = vec![Vec::new(); servers.len()];
        for _ in 0..self.rounds {
            for ((_, server, uri), rounds) in servers.iter().zip(&mut rounds) {
                rounds.push(measured(self, server, uri, folder.path())?);
            }
        }
        let names = servers.iter().map(|(name, ..)| *name);
        Ok(report(self.depth, names.zip(rounds).collect()))
    }
}

/// Starts all servers; returns them with their addresses, ours first.
fn servers(folder: &TempDir) -> Result<Vec<(&'static str, Server, String)>, Failure> {
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
    let ours = ServeProcess::start("headtime", &config, folder.path())?;
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
    settings: &ServeBench,
    server: &Server,
    uri: &str,
    folder: &Path,
) -> Result<ServerRound, Failure> {
    let words = [
        "--name=reads".to_owned(),
        "--ioengine=nbd".to_owned(),
        format!("--uri={uri}"),
        "--rw=randread".to_owned(),
        "--bs=4k".to_owned(),
        format!("--iodepth={}", settings.depth),
        "--size=1g".to_owned(),
        "--time_based".to_owned(),
        format!("--runtime={}", settings.seconds),
    ];
    let before = server.cpu_time()?;
    let loads = rig::fio(&words, folder)?;
    let cpu = server.cpu_time()?.saturating_sub(before);
    let [
        (
            _,
            FioLoad {
                iops,
                p99_ms,
                requests,
                ..
            },
        ),
    ] = loads[..]
    else {
        return Err(Failure::failed("fio did not tell of its one job"));
    };
    Ok(ServerRound {
        iops,
        p99_us: p99_ms * 1e3,
        cpu_us: cpu.as_secs_f64() * 1e6 / requests.max(1) as f64,
    })
}

fn report(depth: u32, all: Vec<(&'static str, Vec<ServerRound>)>) -> ServeReport {
    let of = |rounds: &[ServerRound], figure: fn(&ServerRound) -> f64| {
        median(rounds.iter().map(figure).collect())
    };
    let ours = all
        .first()
        .map(|(_, rounds)| rounds.clone())
        .unwrap_or_default();
    let beside = |rounds: &[ServerRound], figure: fn(&ServerRound) -> f64| {
        let pairs = ours.iter().zip(rounds);
        median(
            pairs
                .map(|(our, their)| figure(our) / figure(their))
                .collect(),
        )
    };
    let ratios = all.iter().skip(1).map(|(name, rounds)| ServerRatio {
        beside: name,
        iops: beside(rounds, |round| round.iops),
        p99: beside(rounds, |round| round.p99_us),
        cpu: beside(rounds, |round| round.cpu_us),
    });
    let ratios = ratios.collect();
    let measured = all.into_iter().map(|(server, rounds)| ServerCost {
        server,
        iops: of(&rounds, |round| round.iops),
        p99_us: of(&rounds, |round| round.p99_us),
        cpu_us: of(&rounds, |round| round.cpu_us),
        rounds,
    });
    ServeReport {
        depth,
        measured: measured.collect(),
        ratios,
    }
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
        let round = |iops: f64| ServerRound {
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
    }
}
