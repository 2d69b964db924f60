//! `headtime emulate`: serves an emulated drive over NBD, with the drive's timing.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, mpsc};

use block::Class;
use clap::Args;
use drive::VirtualDrive;
use engine::{Engine, Limits};
use lab::comparison::truth::Truth;
use lab::named;
use nbd::Context;
use nbd::offer::{BlockSizes, Features, Offer, Text};
use server::capture::{Belief, EngineSetting, Recorder};
use server::clients::Bounds;
use server::clock::{Clock, TimeScale};
use server::config::{Log, LogFormat};
use server::disk::back_end::emulated::Emulated;
use server::disk::back_end::file::{Caching, Image};
use server::event_loop::EventLoop;
use server::listener::{Directory, Listener};
use server::station::Station;
use server::tls::Security;
use server::volume::{Export, LONGEST};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use tracing::Level;

use crate::output::{Exit, micros, print, warn};
use crate::serve;
use crate::settings::truth::TruthArguments;

/// The arguments of `headtime emulate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EmulateArgs {
    /// The drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME|FILE")]
    drive: String,
    /// The file with the blocks. A new file is created sparse
    #[arg(long, value_name = "FILE")]
    image: PathBuf,
    /// The unix socket to listen on
    #[arg(long, value_name = "PATH", required_unless_present = "tcp")]
    socket: Option<PathBuf>,
    /// The TCP address to listen on, such as 127.0.0.1:10809
    #[arg(long, value_name = "ADDRESS:PORT")]
    tcp: Option<SocketAddr>,
    /// Let other machines read and write the image, without TLS, if `--tcp` is their way here
    #[arg(long, requires = "tcp")]
    insecure: bool,
    /// Slow-down of the drive: 4 for exact times on a busy machine, 0.1 for speed
    #[arg(long, value_name = "S", default_value = "1", value_parser = time_scale)]
    time_scale: TimeScale,
    /// The policy. The default is the drive's own queue
    #[arg(long, value_name = "POLICY", default_value = "drive")]
    policy: String,
    #[command(flatten)]
    truth: TruthArguments,
    /// The seed of noise and other random events
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Write every input and decision to a file, for `headtime replay`
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
}

impl EmulateArgs {
    /// An error if other machines would reach the image, and `--insecure` is not given.
    fn refuse_other_machines(&self) -> Result<(), Exit> {
        match self.tcp {
            Some(address) if !address.ip().is_loopback() && !self.insecure => {
                Err(Exit::input(format!(
                    "--tcp {address}: other machines would read and write the image without TLS: \
                     expected an address of this machine such as 127.0.0.1, or --insecure"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Runs the command until a signal ends it.
///
/// # Errors
/// If the drive, the image or the socket cannot be opened, or other machines would reach the image unasked.
pub fn run(arguments: &EmulateArgs) -> Result<(), Exit> {
    arguments.refuse_other_machines()?;
    serve::log_as(&Log {
        level: Level::WARN,
        format: LogFormat::Text,
    });
    let truth = arguments
        .truth
        .settings()
        .truth(arguments.seed)
        .map_err(|(flag, problem)| Exit::input(format!("--{flag}: {problem}")))?;
    let policy = named::policy(&arguments.policy)?;
    let drive = Emulation::new(&arguments.drive, &truth, &arguments.image)?;
    let offer = drive.offer()?;
    let (scale, seed) = (arguments.time_scale, arguments.seed);
    let limits = Limits::suited_to(policy, &drive.belief);
    let recorder = match &arguments.capture {
        Some(path) => {
            let setting = EngineSetting::plain(belief(arguments, &drive)?, policy, limits);
            let file = File::create(path).map_err(|error| at(path, &error))?;
            let recorder = Recorder::begin(file, &setting);
            Some(recorder.map_err(|error| at(path, &error))?)
        }
        None => None,
    };
    let station = Station::start("drive", move |mailbox| {
        let export = Export {
            name: String::new(),
            offset: 0,
            length: drive.bytes(),
            class: Class::default(),
        };
        let engine = Engine::new(drive.belief, &|| policy.make(), limits);
        let back_end = Box::new(Emulated::new(drive.drive, drive.image).with_dice(seed));
        let (clock, bounds) = (Clock::start(scale), Bounds::default());
        let event_loop = EventLoop::new(clock, engine, back_end, vec![export], mailbox, bounds)?;
        Ok(match recorder {
            Some(recorder) => event_loop.with_capture(recorder),
            None => event_loop,
        })
    })
    .map_err(Exit::failed)?;
    let shown = Arc::new(RwLock::new(Directory {
        offers: Arc::new([offer]),
        places: Arc::new([(station.mailbox().clone(), 0)]),
    }));
    let mut listeners = Vec::new();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1]).map_err(Exit::failed)?;
    if let Some(path) = &arguments.socket {
        let listener = Listener::unix(path, Arc::clone(&shown), Security::Plain);
        listeners.push(listener.map_err(|error| at(path, &error))?);
        print(&format!("nbd+unix:///?socket={}\n", path.display()))?;
    }
    if let Some(address) = arguments.tcp {
        let listener = Listener::tcp(address, Arc::clone(&shown), Security::Plain)
            .map_err(|error| Exit::input(format!("--tcp {address}: {error}")))?;
        let address = listener.address().unwrap_or(address);
        listeners.push(listener);
        warn_of_other_machines(address);
        print(&format!("nbd://{address}\n"))?;
    }
    wait(&mut signals, &station)?;
    drop(listeners);
    let report = lateness(&station);
    station.stop().map_err(Exit::failed)?;
    print(&report)
}

/// Warns if other machines reach an address.
fn warn_of_other_machines(address: SocketAddr) {
    if !address.ip().is_loopback() {
        warn(&format!(
            "other machines may read and write the image at {address} without TLS (--insecure)"
        ));
    }
}

/// Waits for the signal that ends the command; cuts the drive's power at every SIGUSR1.
fn wait(signals: &mut Signals, station: &Station) -> Result<(), Exit> {
    for signal in signals.forever() {
        match signal {
            SIGUSR1 => match print(&power_cut(station)) {
                // Clients still have the drive if nobody reads what it says.
                Ok(()) | Err(Exit::Unread) => (),
                Err(problem) => return Err(problem),
            },
            _ => break,
        }
    }
    Ok(())
}

/// The belief, in the form that captures store.
fn belief(arguments: &EmulateArgs, drive: &Emulation) -> Result<Belief, Exit> {
    let truth = arguments.truth.settings();
    let block = drive.belief.bus.read_block;
    Ok(Belief {
        text: named::drive_text(&arguments.drive)?,
        look_ahead: truth.look_ahead.unwrap_or_default().switch(),
        write_cache: truth.write_cache.unwrap_or_default().switch(),
        bus_block: truth.bus_mb_s.map(|_| block),
    })
}

/// A drive before its start.
struct Emulation {
    drive: VirtualDrive,
    belief: Arc<drive::Profile>,
    image: Image,
}

impl Emulation {
    fn new(name: &str, truth: &Truth, image: &Path) -> Result<Self, Exit> {
        let belief = Arc::new(truth.belief(&named::drive(name)?));
        let imperfections = truth.imperfections().clone();
        let drive = VirtualDrive::imperfect(Arc::clone(&belief), imperfections, truth.seed());
        let blocks = belief.geometry.sectors().0;
        let image = Image::open_or_make(image, belief.block_bytes, blocks, Caching::Cached)
            .map_err(|error| at(image, &error))?;
        Ok(Emulation {
            drive,
            belief,
            image,
        })
    }

    fn bytes(&self) -> u64 {
        self.belief.geometry.sectors().0 * u64::from(self.belief.block_bytes)
    }

    fn offer(&self) -> Result<Offer, Exit> {
        let block = self.belief.block_bytes;
        let preferred = block.max(self.belief.physical_block_bytes).max(PAGE);
        Ok(Offer {
            name: Text::new("").map_err(Exit::failed)?,
            description: Text::new(format!("an emulated {}", self.belief.model))
                .map_err(Exit::failed)?,
            size: self.bytes(),
            block: BlockSizes::new(block, preferred, LONGEST as u32).map_err(Exit::failed)?,
            features: Features {
                read_only: false,
                flush: true,
                fua: true,
                trim: true,
                write_zeroes: true,
                fast_zero: true,
                multi_conn: true,
                cache: true,
                rotational: true,
                df: true,
            },
            contexts: vec![Context::Allocation],
        })
    }
}

fn time_scale(text: &str) -> Result<TimeScale, String> {
    let times: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    TimeScale::new(times).ok_or_else(|| "expected 0.001 to 1000".to_owned())
}

fn at(path: &Path, error: &std::io::Error) -> Exit {
    Exit::input(format!("{}: {error}", path.display()))
}

/// Cuts the drive's power, and describes the losses.
fn power_cut(station: &Station) -> String {
    let (sender, receiver) = mpsc::channel();
    let asked = station.mailbox().call(move |event_loop| {
        let _ = sender.send(event_loop.power_cut());
    });
    match asked.ok().and_then(|()| receiver.recv().ok()).flatten() {
        Some(lost) => format!(
            "power cut: {} buffered writes lost, {} interrupted, {} sectors torn; clients have to \
             connect again\n",
            lost.written.len(),
            lost.undecided.len(),
            lost.torn.len()
        ),
        None => String::new(),
    }
}

/// The lateness of the emulation, in real time.
fn lateness(station: &Station) -> String {
    let (sender, receiver) = mpsc::channel();
    let asked = station.mailbox().call(move |event_loop| {
        let scale = event_loop.clock().scale();
        let lateness = event_loop.lateness().map(|late| {
            let at = |quantile: f64| {
                let nanos = late.value_at_quantile(quantile);
                scale.real(block::Duration::from_nanos(nanos)).as_micros()
            };
            (late.len(), [at(0.5), at(0.99), at(1.0)])
        });
        let _ = sender.send(lateness);
    });
    match asked.ok().and_then(|()| receiver.recv().ok()).flatten() {
        Some((commands, [median, most, worst])) => format!(
            "{commands} commands; later than the model by {} (median), {} (99 %), {} (worst), in real time\n",
            micros(median as f64),
            micros(most as f64),
            micros(worst as f64)
        ),
        None => String::new(),
    }
}

/// Page size of clients' kernels and file systems, in bytes.
const PAGE: u32 = 4096;

const EXAMPLES: &str = "Example:
  headtime emulate --drive quantum-atlas-10k --image /tmp/atlas.img --socket /tmp/atlas.sock &
  nbdinfo 'nbd+unix:///?socket=/tmp/atlas.sock'

SIGUSR1 cuts the drive's power: the buffer's contents are lost, each block of an interrupted write
is old or new, and a sector under the head is unreadable until it is written again:
  kill -USR1 %1";
