//! The parts of service benchmarks: servers as processes, and fio as their client.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use server::control;
use server::control::protocol::Ask;
use server::status::Status;

use crate::Failure;

/// A required program.
pub struct Needed {
    pub program: &'static str,
    /// The Debian package.
    pub package: &'static str,
}

/// fio, the client of all service benchmarks.
pub const FIO: Needed = Needed {
    program: "fio",
    package: "fio",
};

/// Checks that all programs are installed.
pub fn need(all: &[Needed]) -> Result<(), Failure> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there =
        |program: &str| env::split_paths(&path).any(|folder| folder.join(program).is_file());
    for Needed { program, package } in all {
        if !is_there(program) {
            return Err(Failure::input(format!(
                "{program} is not installed: expected it in PATH (apt-get install {package})"
            )));
        }
    }
    Ok(())
}

/// The core of a process: client and server do not share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    Client,
    Server,
}

/// A command that is pinned to one core: the first for the client, the last for the server. With
/// one core there is no choice.
pub fn on(core: Core, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores == 1 {
        return Command::new(program);
    }
    let place = match core {
        Core::Client => 0,
        Core::Server => cores - 1,
    };
    let mut command = Command::new("taskset");
    command
        .args(["--cpu-list", &place.to_string()])
        .arg(program);
    command
}

/// A server process. Dropping it ends the process.
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts a server, whose output is written to `NAME.log` in the folder.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Result<Self, Failure> {
        let log = folder.join(format!("{name}.log"));
        let begun = File::create(&log).and_then(|file| {
            let also = file.try_clone()?;
            command
                .stdin(Stdio::null())
                .stdout(file)
                .stderr(also)
                .spawn()
        });
        let child = begun.map_err(|error| Failure::failed(format!("{name}: {error}")))?;
        Ok(Server { child, log })
    }

    /// Waits until a condition holds, or the server has ended.
    pub fn wait_until(&mut self, mut is_there: impl FnMut() -> bool) -> Result<(), Failure> {
        for _ in 0..LONGEST_START.as_millis() / LOOK_AGAIN.as_millis() {
            if is_there() {
                return Ok(());
            }
            let ended = self.child.try_wait().map_err(Failure::failed)?;
            if ended.is_some() {
                break;
            }
            thread::sleep(LOOK_AGAIN);
        }
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let last = said.lines().next_back().unwrap_or("nothing");
        Err(Failure::failed(format!(
            "a server did not begin; it said: {last}"
        )))
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process with SIGKILL.
    pub fn kill(&mut self) -> std::io::Result<()> {
        let killed = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(killed, rustix::process::Signal::KILL)?;
        self.child.wait().map(drop)
    }

    /// The CPU time of all of its threads so far.
    pub fn cpu_time(&self) -> Result<Duration, Failure> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = fs::read_to_string(&path).map_err(Failure::failed)?;
        cpu_time(&text).ok_or_else(|| Failure::failed(format!("{path}: expected times (proc(5))")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        let terminate = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(terminate, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// The times of `/proc/PID/stat`, in hundredths of a second (proc(5): fields 14 and 15, after a
/// name in brackets that may contain anything).
fn cpu_time(text: &str) -> Option<Duration> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((next()? + next()?) * 10))
}

/// A running `headtime serve`.
pub struct ServeProcess {
    pub server: Server,
    control: PathBuf,
}

impl ServeProcess {
    /// Starts a service on the server's core, and waits until it answers. Its configuration must
    /// have the control socket `NAME.control` in the folder.
    pub fn start(name: &str, config: &str, folder: &Path) -> Result<Self, Failure> {
        let control = folder.join(format!("{name}.control"));
        ServeProcess::with_control(name, config, &control, folder)
    }

    /// The same with another control socket in the configuration.
    pub fn with_control(
        name: &str,
        config: &str,
        control: &Path,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let file = folder.join(format!("{name}.toml"));
        fs::write(&file, config).map_err(Failure::failed)?;
        let mut command = on(Core::Server, env::current_exe().map_err(Failure::failed)?);
        command.arg("serve").arg(&file);
        let mut server = Server::start(name, command, folder)?;
        server.wait_until(|| control::ask(control, &Ask::Status).is_ok())?;
        Ok(ServeProcess {
            server,
            control: control.to_owned(),
        })
    }

    pub fn ask(&self, ask: &Ask) -> Result<serde_json::Value, Failure> {
        control::ask(&self.control, ask).map_err(Failure::failed)
    }

    /// Waits until the status is so, or the service has ended.
    pub fn wait_until(&mut self, is_so: impl Fn(&Status) -> bool) -> Result<(), Failure> {
        let control = &self.control;
        self.server.wait_until(|| {
            let answer = control::ask(control, &Ask::Status).ok();
            let status = answer.and_then(|answer| serde_json::from_value(answer).ok());
            status.is_some_and(|status| is_so(&status))
        })
    }

    pub fn status(&self) -> Result<Status, Failure> {
        serde_json::from_value(self.ask(&Ask::Status)?).map_err(Failure::failed)
    }
}

/// fio's figures of one job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FioLoad {
    pub iops: f64,
    /// The number of requests.
    pub requests: u64,
    pub mean_ms: f64,
    pub p99_ms: f64,
    pub mb_per_s: f64,
}

/// Runs fio on the client's core; returns its jobs by name.
pub fn fio(arguments: &[String], folder: &Path) -> Result<Vec<(String, FioLoad)>, Failure> {
    fio_by(on(Core::Client, FIO.program), arguments, folder)
}

/// Runs fio by a command that begins it; returns its jobs by name.
pub fn fio_by(
    command: Command,
    arguments: &[String],
    folder: &Path,
) -> Result<Vec<(String, FioLoad)>, Failure> {
    let output = fio_json_by(command, arguments, folder)?;
    loads(&output).ok_or_else(|| Failure::failed("fio did not tell of its jobs: expected fio 3"))
}

/// Runs fio on the client's core; returns its JSON.
pub fn fio_json(arguments: &[String], folder: &Path) -> Result<serde_json::Value, Failure> {
    fio_json_by(on(Core::Client, FIO.program), arguments, folder)
}

fn fio_json_by(
    mut command: Command,
    arguments: &[String],
    folder: &Path,
) -> Result<serde_json::Value, Failure> {
    let output = folder.join("fio.json");
    command.args(arguments).arg("--output-format=json");
    command.arg(format!("--output={}", output.display()));
    let ran = command
        .current_dir(folder)
        .output()
        .map_err(Failure::failed)?;
    let text = fs::read_to_string(&output).unwrap_or_default();
    let output = json(&text).filter(|_| ran.status.success());
    output.ok_or_else(|| {
        let said = String::from_utf8_lossy(&ran.stderr);
        let line = said
            .lines()
            .next_back()
            .unwrap_or("nothing on standard error");
        Failure::failed(format!("fio has failed: {line}"))
    })
}

/// fio's JSON, which may follow remarks.
fn json(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(&text[text.find('{')?..]).ok()
}

/// The figures of fio's jobs.
fn loads(output: &serde_json::Value) -> Option<Vec<(String, FioLoad)>> {
    output["jobs"].as_array()?.iter().map(load).collect()
}

fn load(job: &serde_json::Value) -> Option<(String, FioLoad)> {
    let name = job["jobname"].as_str()?.to_owned();
    let (read, write) = (&job["read"], &job["write"]);
    let sum = |key: &str| Some(read[key].as_f64()? + write[key].as_f64()?);
    let requests = sum("total_ios")?;
    let weighed =
        |of: &serde_json::Value| Some(of["clat_ns"]["mean"].as_f64()? * of["total_ios"].as_f64()?);
    // A mixed load is judged by its reads.
    let p99 = &read["clat_ns"]["percentile"]["99.000000"];
    let load = FioLoad {
        iops: sum("iops")?,
        requests: requests as u64,
        mean_ms: (weighed(read)? + weighed(write)?) / requests.max(1.0) / 1e6,
        p99_ms: p99.as_f64().unwrap_or(0.0) / 1e6,
        mb_per_s: sum("bw_bytes")? / 1e6,
    };
    Some((name, load))
}

/// The median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count => values[count / 2],
    }
}

/// Limit of a server's start. A choice: profiles and images take a moment on a busy machine.
const LONGEST_START: Duration = Duration::from_secs(20);
/// Interval of checks. A choice.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_any_name() {
        let text = "12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20";
        assert_eq!(cpu_time(text), Some(Duration::from_millis(1750)));
        assert_eq!(cpu_time("12 (a) S 1"), None);
    }

    #[test]
    fn a_job_of_fio_has_reads_and_writes() {
        let text = r#"note: {"jobs":[{"jobname":"x",
            "read":{"iops":10.0,"total_ios":30,"bw_bytes":1000000,
                    "clat_ns":{"mean":2000000.0,"percentile":{"99.000000":5000000}}},
            "write":{"iops":5.0,"total_ios":10,"bw_bytes":500000,"clat_ns":{"mean":6000000.0}}}]}"#;
        let text = text.trim_start_matches("note: ");
        let jobs = json(text).as_ref().and_then(loads).expect("it is fio's");
        let expected = FioLoad {
            iops: 15.0,
            requests: 40,
            mean_ms: 3.0,
            p99_ms: 5.0,
            mb_per_s: 1.5,
        };
        assert_eq!(jobs, [("x".to_owned(), expected)]);
        assert_eq!(json("nothing"), None);
    }

    #[test]
    fn what_is_not_installed_is_named_with_its_package() {
        let missing = Needed {
            program: "no-such-program-as-this",
            package: "its-package",
        };
        let Err(Failure::Input(problem)) = need(&[missing]) else {
            panic!("it is not there");
        };
        assert!(problem.contains("apt-get install its-package"), "{problem}");
    }

    #[test]
    fn the_median_is_not_moved_by_one() {
        assert_eq!(median(vec![5.0, 1.0, 900.0]), 5.0);
        assert!(median(Vec::new()).is_nan());
    }
}
