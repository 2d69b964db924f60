//! `headtime demo`: a live demonstration of the service in a minute.

mod simulated;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use document::quantity::Unit;
use lab::demonstration::{
    DRIVE, DemoFigures, Demonstration, LoadStretch, PENDING, Until, WARM_UP, panels, workload,
};
use lab::{Progress as _, plot};
use server::clock::TimeScale;
use server::config::{Log, LogFormat};
use signal_hook::consts::{SIGINT, SIGTERM};
use tracing::Level;

use crate::bar::Bar;
use crate::output::{DrawingFile, Exit, grouped, json, micros, note, print};
use crate::serve;
use crate::settings::units::whole_in;

/// The arguments of `headtime demo`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Length of the measurement, in seconds: half without the scan, half with it
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole_in::<u64>(Unit::Seconds, 2..=86_400))]
    seconds: u64,
    /// Measure this many requests without the scan and as many with it, instead of --seconds
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    requests: Option<u64>,
    /// Slow-down of the emulated drive: 4 for exact times on a busy machine, 0.1 for speed
    #[arg(long, value_name = "S", default_value = "1", value_parser = time_scale)]
    time_scale: TimeScale,
    /// The file of the plots
    #[arg(long, value_name = "FILE", default_value = "out/demo.svg")]
    svg: PathBuf,
    /// Print the report as JSON, and everything else to standard error
    #[arg(long)]
    json: bool,
    /// Keep load and scan running after the report, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    keep: bool,
    /// Run in virtual time instead: a load, a scan, and a measured trace if there is one, under
    /// several policies
    #[arg(long, conflicts_with_all = ["seconds", "requests", "time_scale", "json", "keep"])]
    simulated: bool,
}

/// Runs the command.
///
/// # Errors
/// If the service cannot start, the plots cannot be written, or a signal interrupts the run.
pub fn run(arguments: &DemoArgs) -> Result<(), Exit> {
    if arguments.simulated {
        return simulated::run(&arguments.svg);
    }
    let file = DrawingFile::begin(&arguments.svg)?;
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
        true => {
            note(text);
            Ok(())
        }
        false => print(text),
    };
    say(&introduction(&demo, demo.page))?;
    let workload = workload()?;
    let stretch = |name: &str, until: Until| -> Result<LoadStretch, Exit> {
        let bar = bar(name, until);
        let stretch = demo.stretch(&workload, until, &stop, &bar);
        bar.finish();
        Ok(stretch?)
    };
    // Not counted: the service finds the platter's phase.
    stretch("warm-up", Until::Requests(WARM_UP))?;
    let until = match arguments.requests {
        Some(requests) => Until::Requests(requests),
        None => Until::Passed(Duration::from_millis(arguments.seconds * 500)),
    };
    let alone = stretch("alone", until)?;
    let task = demo.scan()?;
    let beside = stretch("beside the scan", until)?;
    // Reads in idle time, after the load, are not part of the result.
    demo.suspend(task);
    let figures = DemoFigures::new(&demo, &workload, &alone, &beside, &arguments.svg)?;
    file.write(&plot::page(&panels(&alone, &beside)))?;
    match arguments.json {
        true => print(&json(&figures)?)?,
        false => print(&text(&figures))?,
    }
    if arguments.keep {
        say(&format!(
            "\nLoad and scan go on until Ctrl-C: http://{}/\nheadtime ctl --socket {} status\n",
            demo.page,
            demo.control.display()
        ))?;
        demo.resume(task);
        stretch("going on", Until::Stopped)?;
    }
    Ok(())
}

fn introduction(demo: &Demonstration, page: SocketAddr) -> String {
    format!(
        "An emulated {} behind NBD, as fast as it was{}; OLTP with {PENDING} requests pending, first \
         alone, then\nbeside a scan of the whole disk in its rotational gaps.\nstatus page: \
         http://{page}/\n",
        DRIVE,
        match demo.scale {
            1.0 => String::new(),
            scale => format!(" but for a time scale of {scale}"),
        }
    )
}

fn bar(name: &str, until: Until) -> Bar {
    let (length, unit) = match until {
        Until::Requests(requests) => (requests, "requests"),
        Until::Passed(length) => (length.as_secs(), "s"),
        Until::Stopped => (0, "s"),
    };
    let template = format!("{{prefix:16}} {{bar:30}} {{pos}} of {{len}} {unit}, {{msg}}");
    let bar = Bar::new(&template).with_prefix(name.to_owned());
    bar.expect(length);
    bar
}

fn time_scale(text: &str) -> Result<TimeScale, String> {
    let times: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    TimeScale::new(times).ok_or_else(|| "expected 0.001 to 1000".to_owned())
}

/// The report as text.
fn text(figures: &DemoFigures) -> String {
    let mut text = format!(
        "\n{:<18}{:>12}{:>12}{:>8}\n",
        "foreground", "alone", "with scan", ""
    );
    let rows: [(&str, f64, f64); 6] = [
        (
            "requests/s",
            figures.alone.requests_per_s,
            figures.beside.requests_per_s,
        ),
        ("MB/s", figures.alone.mb_per_s, figures.beside.mb_per_s),
        ("mean, ms", figures.alone.mean_ms, figures.beside.mean_ms),
        ("median, ms", figures.alone.p50_ms, figures.beside.p50_ms),
        ("99 %, ms", figures.alone.p99_ms, figures.beside.p99_ms),
        ("99.9 %, ms", figures.alone.p999_ms, figures.beside.p999_ms),
    ];
    for (name, alone, beside) in rows {
        let change = (beside / alone - 1.0) * 100.0;
        text += &format!("{name:<18}{alone:>12.2}{beside:>12.2}{change:>+8.1} %\n");
    }
    let measured = match figures.impact.measured_percent {
        Some(percent) => format!("{percent:.2} %"),
        None => "not measured".to_owned(),
    };
    text += &format!(
        "\nscan              {:.2} MB/s: {} bytes, {} of them in gaps\n\
             impact            {measured} of the response time, as measured by the engine; {:.2} % are \
             granted\n",
        figures.scan.mb_per_s,
        grouped(figures.scan.bytes),
        grouped(figures.scan.free_bytes),
        figures.impact.budget_percent,
    );
    if let Some(late) = &figures.lateness {
        text += &format!(
            "emulation         later than the model by {} (median), {} (99 %), {} (worst)\n",
            micros(late.p50_us),
            micros(late.p99_us),
            micros(late.max_us)
        );
        if late.p99_us > LATE_US * figures.time_scale {
            text += "                  plans do not allow for that: this machine was too busy for \
                         the comparison.\n                  On a quieter one, or with --time-scale 4, \
                         it is about the scheduler\n";
        }
    }
    text += &format!(
        "\n{}: the scheduler does not know the {} us by which seeks scatter. {} and {} requests of \
             one seed.\nPlots: {}\n",
        figures.label,
        figures.seek_noise_us,
        grouped(figures.alone.requests as u64),
        grouped(figures.beside.requests as u64),
        figures.svg
    );
    text
}

/// Largest lateness of a command, in us, that does not upset plans. A choice: about the guard under
/// the demonstration's noise.
const LATE_US: f64 = 300.0;

const EXAMPLES: &str = "Examples:
  headtime demo
  headtime demo --keep                          keep the service running; try headtime ctl
  headtime demo --requests 2000 --json
  headtime demo --simulated --svg out/simulated.svg";
