//! `headtime serve`: drives, volumes and exports as a configuration says, until it is told to end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use clap::Args;
use server::config::{self, Config, LogFormat, Places};
use server::control::notify::{self, Activated, Message, Notifier};
use server::control::{Bounds, Listeners, Plane, Service as _, listen, listen_http};
use server::service::Running;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info};

use crate::output::{Exit, print};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to serve; without it an emulated drive with NBD on a unix socket and a status page
    #[arg(value_name = "CONFIG.toml")]
    config: Option<PathBuf>,
    /// Print the configuration that is used without a file, to begin with, and end
    #[arg(long)]
    print_default: bool,
}

/// Runs the command until it is interrupted, or told to end by `headtime ctl`.
///
/// # Errors
/// If the configuration is wrong, or something that it names cannot be had.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    if arguments.print_default {
        return print(config::DEFAULT);
    }
    let config = read(arguments.config.as_deref())?;
    log_as(&config.log);
    let names = std::env::var_os("LISTEN_FDNAMES");
    let activated = Activated::take(names.as_ref()).map_err(Exit::failed)?;
    let (control, bounds) = (config.control.clone(), bounds(&config));
    // Before anybody can come: who tells it to end while it begins is heard when it has begun.
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Exit::failed)?;
    let running =
        Running::begin(config, arguments.config.clone(), activated).map_err(Exit::input)?;
    let plane = Plane::begin(
        Arc::clone(&running) as Arc<dyn server::control::Service>,
        listeners(&control)?,
        bounds,
    )
    .map_err(Exit::failed)?;
    if let Some(address) = control.http {
        print(&format!("status page: http://{address}/\n"))?;
    }
    print(&format!(
        "control socket: {} (headtime ctl)\n",
        control.socket.display()
    ))?;
    let notifier = notifier()?;
    say(&notifier, &Message::Ready);
    listen_to_signals(&running, signals)?;
    running.wait();
    say(&notifier, &Message::Stopping);
    drop(plane);
    // A socket's file without anybody behind it is of no use.
    let _ = std::fs::remove_file(&control.socket);
    Ok(())
}

fn read(file: Option<&Path>) -> Result<Config, Exit> {
    let Some(file) = file else {
        let places = Places::of_this_user(Path::new("."));
        return Config::parse("the built-in configuration", config::DEFAULT, &places)
            .map_err(Exit::input);
    };
    let name = file.display().to_string();
    let text =
        std::fs::read_to_string(file).map_err(|error| Exit::input(format!("{name}: {error}")))?;
    let base = file.parent().unwrap_or(Path::new("."));
    Config::parse(&name, &text, &Places::of_this_user(base)).map_err(Exit::input)
}

fn bounds(config: &Config) -> Bounds {
    Bounds {
        http_actions: config.control.http_actions,
        ..Bounds::default()
    }
}

fn listeners(control: &config::Control) -> Result<Listeners, Exit> {
    let path = &control.socket;
    let socket =
        listen(path).map_err(|error| Exit::input(format!("{}: {error}", path.display())))?;
    let mut http = Vec::new();
    if let Some(address) = control.http {
        let listener = listen_http(address)
            .map_err(|error| Exit::input(format!("http {address}: {error}")))?;
        http.push(listener);
    }
    Ok(Listeners {
        sockets: vec![socket],
        http,
    })
}

fn notifier() -> Result<Notifier, Exit> {
    let socket = std::env::var_os("NOTIFY_SOCKET");
    Notifier::to(socket.as_deref()).map_err(|error| Exit::failed(format!("systemd: {error}")))
}

fn say(notifier: &Notifier, message: &Message) {
    if let Err(error) = notifier.say(message) {
        error!(%error, "systemd does not listen");
    }
}

/// SIGINT and SIGTERM end the service, SIGHUP has its configuration read again; the watchdog is fed
/// for as long as the service answers.
fn listen_to_signals(running: &Arc<Running>, mut signals: Signals) -> Result<(), Exit> {
    let service = Arc::clone(running);
    let listening = thread::Builder::new().name("signals".into());
    listening
        .spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGHUP => match service.reload() {
                        Ok(changes) => info!(?changes, "the configuration was read again"),
                        Err(problem) => error!(problem, "the configuration stays as it was"),
                    },
                    _ => service.drain(),
                }
            }
        })
        .map_err(Exit::failed)?;
    let told = |name: &str| std::env::var(name).ok();
    let (usec, pid) = (told("WATCHDOG_USEC"), told("WATCHDOG_PID"));
    let Some(pause) = notify::watchdog(usec.as_deref(), pid.as_deref(), std::process::id()) else {
        return Ok(());
    };
    let (service, notifier) = (Arc::clone(running), notifier()?);
    let feeding = thread::Builder::new().name("watchdog".into());
    feeding
        .spawn(move || {
            loop {
                thread::sleep(pause);
                let _ = service.status();
                say(&notifier, &Message::Watchdog);
            }
        })
        .map_err(Exit::failed)?;
    Ok(())
}

/// From now on what happens is written to standard error.
pub(crate) fn log_as(log: &config::Log) {
    let to = tracing_subscriber::fmt()
        .with_max_level(log.level)
        .with_writer(std::io::stderr);
    // A log that is there already, in tests, stays.
    let _ = match log.format {
        LogFormat::Text => to.try_init(),
        LogFormat::Json => to.json().try_init(),
    };
}

const EXAMPLES: &str = "Examples:
  headtime serve                       an emulated drive, to look around
  headtime serve --print-default > my.toml; headtime serve my.toml";
