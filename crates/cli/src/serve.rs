//! `headtime serve`: serves drives, volumes and exports of a configuration until a signal ends it.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use clap::Args;
use lab::system::SystemFile;
use server::config::{self, Config, LogFormat, Places};
use server::control::notify::{self, Activated, Message, Notifier};
use server::control::{Bounds, Listeners, Plane, Service as _, listen, listen_http};
use server::service::Running;
use tracing::{error, info, warn};

use crate::output::{Exit, print};
use crate::verbosity;

mod check;
mod init;
mod signals;
mod states;

use signals::Stage;

/// The arguments of `headtime serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// The configuration file. The default is an emulated drive with NBD on a unix socket and a
    /// status page
    #[arg(value_name = "CONFIG.toml")]
    config: Option<PathBuf>,
    /// Print the default configuration, as a starting point, and exit
    #[arg(long)]
    print_default: bool,
    /// Write a commented configuration for a disk, and exit: a block device, a loop device, an image, or the URI of
    /// an NBD export. It is neither opened nor changed
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with_all = ["config", "print_default", "check"]
    )]
    init: Option<String>,
    /// Write it to this new file [default: standard output]
    #[arg(short, long, value_name = "FILE", requires = "init")]
    out: Option<PathBuf>,
    /// Name a profile of the disk in it [default: none]
    #[arg(long, value_name = "PROFILE.toml", requires = "init")]
    belief: Option<PathBuf>,
    /// Let it show the exports as files in this folder, over FUSE [default: it does not]
    #[arg(long, value_name = "FOLDER", requires = "init")]
    mount: Option<PathBuf>,
    /// Say what a start would open, make, change and refuse, do nothing of it, and exit. Exit code 2: it would refuse
    #[arg(long, conflicts_with = "print_default")]
    check: bool,
    /// Print the check as JSON: an array of part, outcome (uses, changes, refused) and step
    #[arg(long, requires = "check")]
    json: bool,
}

/// Runs the command until a signal or `headtime ctl` ends it.
///
/// # Errors
/// If the configuration is invalid, or a resource that it names cannot be opened.
pub fn run(arguments: &ServeArgs) -> Result<(), Exit> {
    if arguments.print_default {
        return print(config::DEFAULT);
    }
    if let Some(path) = &arguments.init {
        let settings = init::settings(arguments.belief.as_deref(), arguments.mount.as_deref())?;
        return init::run(path, &settings, arguments.out.as_deref());
    }
    let System { config, simulated } = read_system(arguments.config.as_deref())?;
    if arguments.check {
        return check::run(&config, &simulated, arguments.json);
    }
    log_as(&config.log);
    if !simulated.is_empty() {
        info!(
            tables = simulated.join(", "),
            "tables that only `headtime simulate` uses"
        );
    }
    let names = std::env::var_os("LISTEN_FDNAMES");
    let activated = Activated::take(names.as_ref()).map_err(Exit::failed)?;
    let (control, bounds) = (config.control.clone(), bounds(&config));
    // Before the start, which may hang on a server that does not answer.
    let stage = Stage::listen_to_signals()?;
    // The control socket comes before the drives: a service that finds it taken opens no drive and serves no client.
    let (socket, listeners) = listeners(&control)?;
    let running =
        Running::begin(config, arguments.config.clone(), activated).map_err(Exit::input)?;
    let plane = Plane::begin(
        Arc::clone(&running) as Arc<dyn server::control::Service>,
        listeners,
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
    feed_watchdog(&running)?;
    states::watch(&running, self::notifier()?)?;
    stage.is_set(&running);
    let ended = running.wait();
    say(&notifier, &Message::Stopping);
    drop(plane);
    drop(socket);
    ended.map_err(Exit::failed)
}

/// The control socket of this service. Its file is useless after it, and removed.
struct OwnSocket<'a>(&'a Path);

impl Drop for OwnSocket<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

/// What a file has for a service, and the tables for simulations.
struct System {
    config: Config,
    simulated: Vec<&'static str>,
}

/// The same with the tables for simulations, which have to be valid, too.
fn read_system(file: Option<&Path>) -> Result<System, Exit> {
    let config = read(file)?;
    let simulated = match file {
        None => Vec::new(),
        Some(file) => SystemFile::read(file)?.simulated_only(),
    };
    Ok(System { config, simulated })
}

/// The configuration of a file, or the built-in one.
///
/// # Errors
/// If it cannot be read or understood.
pub(crate) fn read(file: Option<&Path>) -> Result<Config, Exit> {
    let Some(file) = file else {
        let places = Places::of_this_user(Path::new("."));
        return Config::parse("the built-in configuration", config::DEFAULT, &places)
            .map_err(Exit::input);
    };
    let name = file.display().to_string();
    // A pipe or a device may have no end, and a reload reads the file again.
    if file.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(Exit::input(format!(
            "{name}: expected a configuration in a regular file"
        )));
    }
    let text =
        std::fs::read_to_string(file).map_err(|error| Exit::input(format!("{name}: {error}")))?;
    let base = file.parent().unwrap_or(Path::new("."));
    Config::parse(&name, &text, &Places::of_this_user(base)).map_err(Exit::input)
}

fn bounds(config: &Config) -> Bounds {
    Bounds {
        http_actions: config.control.http_actions,
        members: config.control.members,
        ..Bounds::default()
    }
}

fn listeners(control: &config::Control) -> Result<(OwnSocket<'_>, Listeners), Exit> {
    let path = &control.socket;
    let socket = listen(path, control.rights)
        .map_err(|error| Exit::input(format!("{}: {error}", path.display())))?;
    let own = OwnSocket(path);
    let mut http = Vec::new();
    if let Some(address) = control.http {
        let listener = listen_http(address)
            .map_err(|error| Exit::input(format!("http {address}: {error}")))?;
        if !address.ip().is_loopback() {
            warn!(%address, "other machines may read the status page without TLS (insecure = true)");
        }
        http.push(listener);
    }
    let listeners = Listeners {
        sockets: vec![socket],
        http,
    };
    Ok((own, listeners))
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

/// Feeds the watchdog while the service answers.
fn feed_watchdog(running: &Arc<Running>) -> Result<(), Exit> {
    let variable = |name: &str| std::env::var(name).ok();
    let (usec, pid) = (variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"));
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

/// Sends the log to standard error from now on.
pub(crate) fn log_as(log: &config::Log) {
    let to = tracing_subscriber::fmt()
        .with_ansi(has_colours())
        .with_max_level(verbosity::level(log.level))
        .with_writer(io::stderr);
    // In tests the first log stays.
    let _ = match log.format {
        LogFormat::Text => to.try_init(),
        LogFormat::Json => to.json().try_init(),
    };
}

/// Whether the log has colours: on a terminal, unless `NO_COLOR` is set (no-color.org).
fn has_colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !refused
}

const EXAMPLES: &str = "Examples:
  headtime serve
      serve an emulated drive
  headtime serve --print-default > my.toml; headtime serve my.toml
      serve a configuration of your own
  headtime serve --init /dev/sdb --out sdb.toml
      write a commented configuration for a disk
  headtime serve --init /dev/sdb --belief profile.toml --mount /mnt/headtime --out sdb.toml
      with its profile, and as a file that can be mounted
  headtime serve --check my.toml
      say what that would do, without doing it";
