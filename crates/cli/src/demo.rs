//! `headtime demo`: the service live, in a minute.
//!
//! ```text
//!   emulated drive <-- service <--unix socket-- OLTP, ten requests pending   (a thread, an NBD client)
//!                         ^
//!   first half: the load alone;  second half: the same load beside a free scan
//! ```
//!
//! All of it is in one process and in a temporary folder, but the load goes through a real socket.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use server::clock::TimeScale;
use server::config::{Log, LogFormat};
use server::control::{Scan, Service as _, Sink, Steer};
use signal_hook::consts::{SIGINT, SIGTERM};
use simulator::workload::{BuiltIn, Overrides, Workload};
use tracing::Level;

use crate::output::{Exit, NewFile, print};
use crate::serve;

pub mod client;
mod load;
mod report;
mod service;
mod simulated;

use load::{Counts, Load, Stretch, Until};
use service::Demonstration;

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How long it measures, in seconds: half of it alone, half of it beside the scan
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    seconds: u64,
    /// So many requests alone and as many beside the scan, however long they take
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    requests: Option<u64>,
    /// How many times as slow as the real drive: 4 for exact times on a busy machine, 0.1 for speed
    #[arg(long, value_name = "S", default_value = "1", value_parser = time_scale)]
    time_scale: TimeScale,
    /// Where the plots go
    #[arg(long, value_name = "FILE", default_value = "out/demo.svg")]
    svg: PathBuf,
    /// Print the report as JSON, and all else to standard error
    #[arg(long)]
    json: bool,
    /// Go on with load and scan after the report, to look around, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    keep: bool,
    /// In virtual time instead: a load, a scan, and a real trace if there is one, under several
    /// policies
    #[arg(long, conflicts_with_all = ["seconds", "requests", "time_scale", "json", "keep"])]
    simulated: bool,
}

/// Runs the command.
///
/// # Errors
/// If the service cannot begin or the plots cannot be written, or it is interrupted.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    if arguments.simulated {
        return simulated::run(&arguments.svg);
    }
    let file = NewFile::begin(&arguments.svg)?;
    serve::log_as(&Log {
        level: Level::WARN,
        format: LogFormat::Text,
    });
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Exit::failed)?;
    }
    let demo = Demonstration::begin(arguments.time_scale)?;
    let say = |text: &str| match arguments.json {
        // Whether anybody reads it does not matter.
        true => {
            let _ = io::stderr().write_all(text.as_bytes());
            Ok(())
        }
        false => print(text),
    };
    say(&introduction(&demo, demo.page))?;
    let workload = workload()?;
    let mut director = Director {
        demo: &demo,
        workload: &workload,
        stop: &stop,
        scale: arguments.time_scale.times(),
    };
    // Not counted: the service learns where the platter is.
    director.stretch("warm-up", Until::Requests(WARM_UP))?;
    let until = match arguments.requests {
        Some(requests) => Until::Requests(requests),
        None => Until::Passed(Duration::from_millis(arguments.seconds * 500)),
    };
    let alone = director.stretch("alone", until)?;
    let scan = Scan {
        volume: service::VOLUME.to_owned(),
        priority: 0,
        deadline_s: None,
        sink: Sink::Checksum,
        state: None,
    };
    let task = demo.service.scan(scan).map_err(Exit::failed)?;
    let steer = |action| demo.service.steer(task, action);
    let beside = director.stretch("beside the scan", until)?;
    // What it reads in idle time, now that nobody asks for anything, is not what is shown. A whole
    // disk that has been read has no task any more.
    let _ = steer(Steer::Suspend);
    let figures = report::Figures::new(&demo, &workload, &alone, &beside, &arguments.svg)?;
    file.write(&report::plots(&alone, &beside))?;
    match arguments.json {
        true => print(&figures.json()?)?,
        false => print(&figures.text())?,
    }
    if arguments.keep {
        say(&format!(
            "\nLoad and scan go on until Ctrl-C: http://{}/\nheadtime ctl --socket {} status\n",
            demo.page,
            demo.control.display()
        ))?;
        let _ = steer(Steer::Resume);
        director.stretch("going on", Until::Stopped)?;
    }
    Ok(())
}

fn introduction(demo: &Demonstration, page: SocketAddr) -> String {
    format!(
        "An emulated {} behind NBD, as fast as it was{}; OLTP with {PENDING} requests pending, first \
         alone, then\nbeside a scan of the whole disk in its rotational gaps.\nstatus page: \
         http://{page}/\n",
        service::DRIVE,
        match demo.scale {
            1.0 => String::new(),
            scale => format!(" but for a time scale of {scale}"),
        }
    )
}

/// The paper's OLTP, never idle.
fn workload() -> Result<Workload, Exit> {
    let oltp = BuiltIn::find("oltp").ok_or_else(|| Exit::failed("no built-in load"))?;
    let never_idle = Overrides {
        tasks: Some(PENDING),
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let load = oltp.workload().and_then(|load| load.with(&never_idle));
    load.map_err(Exit::failed)
}

/// Has the load run, and shows how it goes.
struct Director<'a> {
    demo: &'a Demonstration,
    workload: &'a Workload,
    stop: &'a Arc<AtomicBool>,
    scale: f64,
}

impl Director<'_> {
    /// One stretch of the load, each from the load's first request on.
    fn stretch(&mut self, name: &'static str, until: Until) -> Result<Stretch, Exit> {
        let load = Load {
            socket: self.demo.socket.clone(),
            workload: self.workload.clone(),
            block_bytes: self.demo.block_bytes,
            blocks: self.demo.blocks,
            pending: PENDING as usize,
            until,
            scale: self.scale,
            stop: Arc::clone(self.stop),
            counts: Arc::new(Counts::default()),
        };
        let counts = Arc::clone(&load.counts);
        let bar = bar(name, until);
        let (runs, ended) = channel::<()>();
        let running = thread::Builder::new()
            .name("load".into())
            .spawn(move || {
                let _runs = runs;
                load.run()
            })
            .map_err(Exit::failed)?;
        let began = Instant::now();
        // Nobody sends anything: it ends with the thread.
        while ended.recv_timeout(LOOK_AGAIN) == Err(RecvTimeoutError::Timeout) {
            let done = counts.requests.load(Ordering::Relaxed);
            bar.set_position(match until {
                Until::Requests(_) => done,
                _ => began.elapsed().as_secs(),
            });
            bar.set_message(self.state(done, began.elapsed()));
        }
        bar.finish_and_clear();
        let stretch = running
            .join()
            .map_err(|_| Exit::failed("the load's thread has failed"))??;
        match (self.stop.load(Ordering::Relaxed), until) {
            (true, Until::Requests(_) | Until::Passed(_)) => Err(Exit::failed("interrupted")),
            _ => Ok(stretch),
        }
    }

    fn state(&self, done: u64, passed: Duration) -> String {
        let rate = done as f64 / passed.as_secs_f64().max(1e-3) * self.scale;
        let status = self.demo.service.status();
        let mut tasks = status.drives.iter().flat_map(|drive| &drive.tasks);
        let scan = tasks.next().map_or_else(String::new, |task| {
            format!(", scan at {:.2} MB/s", task.mb_per_s)
        });
        format!("{rate:.0} requests/s{scan}")
    }
}

fn bar(name: &'static str, until: Until) -> ProgressBar {
    let (length, unit) = match until {
        Until::Requests(requests) => (requests, "requests"),
        Until::Passed(length) => (length.as_secs(), "s"),
        Until::Stopped => (0, "s"),
    };
    let target = ProgressDrawTarget::stderr_with_hz(4);
    let bar = ProgressBar::with_draw_target(Some(length), target);
    let template = format!("{{prefix:16}} {{bar:30}} {{pos}} of {{len}} {unit}, {{msg}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar.with_prefix(name)
}

fn time_scale(text: &str) -> Result<TimeScale, String> {
    let times: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    TimeScale::new(times).ok_or_else(|| "expected 0.001 to 1000".to_owned())
}

/// As many as the figures of the paper on free blocks fit (../shared/specs/scheduling.md, 7).
const PENDING: u32 = 10;

/// A choice: a second or so of the drive, in which its rotation is known.
const WARM_UP: u64 = 100;

/// How often the terminal is written to. A choice.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

const EXAMPLES: &str = "Examples:
  headtime demo
  headtime demo --keep                          stays for looking around; try headtime ctl, too
  headtime demo --requests 2000 --json
  headtime demo --simulated --svg out/simulated.svg";
