//! The configuration of a service: the file of `headtime serve CONFIG.toml`.
//!
//! ```text
//!   [[drive]]                a back end, what is believed of it, a policy
//!     [[drive.leg]]          one of the two legs of a mirror
//!     [[drive.volume]]       a range of its bytes
//!       cache = {}           what of it is kept in memory, and fetched ahead
//!     [drive.preemption]     how larger requests step aside for more urgent ones
//!     [drive.streams]        what it promises to streams, and to whom
//!     [[drive.export]]       a name under which clients get a volume, and their class
//!   [[nbd]] [fuse] [ublk]    the ways in
//!   [control] [log] [hooks] [limits]
//!   [[load]] [[stream]] [[task]]   what `headtime simulate` runs on the same drives
//! ```
//!
//! A volume may have several exports: `db` for the foreground, `db-bulk` as best effort, `db-idle` in the
//! background. [`DEFAULT`] is a complete file with comments, used without another file.

mod caching;
mod device;
mod emulated;
mod exports;
mod fields;
mod foreseen;
mod front;
mod grace;
mod hooks;
mod mirror;
mod phases;
mod places;
pub mod preemption;
mod remote;
mod rights;
mod size;
mod storage;
pub mod streams;
mod tls;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::cache_setting::CacheSetting;
use crate::classify::priority::Rule;
use crate::mirror::RebuildRule;
use block::Switch;
use document::{Document, DocumentError};
use drive::Imperfections;
use engine::ReadRule;
use scheduler::freeblock::SameTrackRule;
use scheduler::ordering::Phases;
use scheduler::policy::NamedPolicy;

pub use foreseen::{IMPACT_PPM, background};
pub use grace::GracePeriod;
pub use hooks::Hooks;
pub use places::Places;
pub use preemption::Preemption;
pub use remote::{Address, Remote, RemoteTls};
pub use rights::{MemberRights, SocketRights};
pub use size::bytes;
pub use streams::{StreamRule, StreamsConfig};
pub use tls::{Tls, TlsClient, TlsNeed};

/// The default file: an emulated drive, NBD on a unix socket, a status page.
pub const DEFAULT: &str = include_str!("config/default.toml");

/// The configuration of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// At least one drive. Names of drives are unique, and so are names of exports over all drives.
    pub drives: Vec<DriveConfig>,
    /// The listeners for NBD clients.
    pub nbd: Vec<Nbd>,
    /// The mount of volumes as files, if there is one.
    pub fuse: Option<Fuse>,
    /// The exports as block devices of this kernel, if there are any.
    pub ublk: Option<Ublk>,
    /// The control plane.
    pub control: Control,
    /// The log.
    pub log: Log,
    /// The programs that are run when tasks have ended.
    pub hooks: Hooks,
    /// The limits of clients.
    pub limits: Limits,
}

/// The configuration of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveConfig {
    /// The name in the log, in metrics and on the page.
    pub name: String,
    /// The storage of the bytes.
    pub back_end: BackEnd,
    /// The belief of the drive.
    pub belief: Belief,
    /// Whether a profile without confidence is believed all the same.
    pub belief_unchecked: Switch,
    /// The scheduling policy.
    pub policy: NamedPolicy,
    /// The policy once a belief is taken up in service: the configured one, or the default with a belief.
    pub learned_policy: NamedPolicy,
    /// The preemption of larger requests by more urgent ones, if it is on.
    pub preemption: Option<Preemption>,
    /// Whether reads and writes take turns.
    pub phases: Phases,
    /// How long others must be quiet before background requests begin.
    pub grace: GracePeriod,
    /// The guarantees for streams, if there are any.
    pub streams: Option<StreamsConfig>,
    /// The impact budget: the share by which background tasks may lengthen foreground requests, in parts
    /// per million.
    pub impact_ppm: u32,
    /// Whether free reads may be commands of their own on the tracks of the foreground.
    pub same_track: SameTrackRule,
    /// How late a CPU may wake up while the drive's gaps are filled, in microseconds. The kernel decides without it.
    pub cpu_latency_us: Option<u32>,
    /// The file for a capture of the engine's inputs and decisions, if there is one: for `headtime replay`.
    pub capture: Option<PathBuf>,
    /// At least one volume. Volumes do not overlap.
    pub volumes: Vec<Volume>,
    /// At least one export.
    pub exports: Vec<Export>,
}

/// The storage of a drive's bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum BackEnd {
    /// The memory of this process. The content ends with it.
    Memory {
        /// The number of bytes.
        size: u64,
    },
    /// A file.
    File {
        /// The path. Without `size` the file has to exist.
        path: PathBuf,
        /// The length of a new file.
        size: Option<u64>,
        /// On: reads and writes bypass the page cache (O_DIRECT).
        direct: Switch,
    },
    /// A file with the timing of a disk.
    Emulated(Box<Emulated>),
    /// A disk of this machine. Everything on it may be overwritten.
    Device(Device),
    /// An export of another NBD server.
    Nbd(Remote),
    /// Two of the others with the same data.
    Mirror(Box<Mirror>),
}

/// A mirror.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    /// The legs, in the order of their superblocks.
    pub legs: [Leg; 2],
    /// Which leg serves a read.
    pub read: ReadRule,
    /// On: one leg may begin alone although the other one may be newer.
    pub degraded: Switch,
    /// By when a leg is filled.
    pub rebuild: RebuildRule,
}

/// A leg of a mirror.
#[derive(Clone, Debug, PartialEq)]
pub struct Leg {
    /// The storage of the bytes: a file, an emulated drive or a device.
    pub back_end: BackEnd,
    /// The belief of the leg.
    pub belief: Belief,
    /// Whether a profile without confidence is believed all the same.
    pub belief_unchecked: Switch,
}

impl Leg {
    /// The file or device with the bytes.
    pub fn path(&self) -> Option<&Path> {
        match &self.back_end {
            BackEnd::File { path, .. } => Some(path),
            BackEnd::Emulated(emulated) => Some(&emulated.image),
            BackEnd::Device(device) => Some(&device.path),
            BackEnd::Memory { .. } | BackEnd::Nbd(_) | BackEnd::Mirror(_) => None,
        }
    }
}

/// A disk of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The path of a block device or a SCSI generic device.
    pub path: PathBuf,
    /// The interface for commands.
    pub way: Way,
    /// Off: writes end on the medium. The switch is restored when the service ends.
    pub write_cache: Switch,
    /// The drive's look-ahead after reads. The switch is restored when the service ends.
    pub look_ahead: Switch,
}

/// The interface for a disk's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The kernel's block layer, by io_uring.
    Kernel,
    /// SCSI commands, past the block layer.
    Scsi,
}

/// A file with the timing of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Emulated {
    /// The model of the disk.
    pub drive: DriveModel,
    /// The sparse file with the contents. It is created if it does not exist.
    pub image: PathBuf,
    /// The ratio of real time to the disk's time: 4 for exact timing on a busy machine, 0.1 for speed.
    pub time_scale: f64,
    /// Off disables the drive's look-ahead.
    pub look_ahead: Switch,
    /// Off disables the drive's write cache.
    pub write_cache: Switch,
    /// The rate of the bus in megabytes a second, unless that of the measured system.
    pub bus_mb_s: Option<f64>,
    /// What no belief has.
    pub imperfections: Imperfections,
    /// The seed of the drive's random events.
    pub seed: u64,
}

/// The model of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveModel {
    /// A shipped model, which exists.
    Shipped(&'static str),
    /// A profile file.
    File(PathBuf),
}

/// The belief of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Belief {
    /// No belief: policies know block numbers only.
    Nothing,
    /// The profile of the emulated drive, without its noise.
    Emulated,
    /// A profile, for example one found by `headtime profile`.
    Profile(DriveModel),
}

/// A range of a drive's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The name.
    pub name: String,
    /// The first byte, a multiple of [`ALIGN_BYTES`].
    pub offset: u64,
    /// The number of bytes, a multiple of [`ALIGN_BYTES`]. By default up to the end of the drive.
    pub size: Option<u64>,
    /// Whether the volume is writable.
    pub access: Access,
    /// The cache of the volume, if it has one.
    pub cache: Option<CacheSetting>,
    /// The file of the volume's checksums, if they are kept.
    pub checksums: Option<PathBuf>,
    /// The folder of the volume's dirty bitmaps, if it can have any.
    pub bitmaps: Option<PathBuf>,
    /// Seconds in which scrubs verify each block, if they begin by themselves.
    pub scrub_every_s: Option<u64>,
}

/// Whether a volume or export is writable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is.
    ReadWrite,
    /// It is not.
    ReadOnly,
}

/// A name by which clients connect to a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name, unique over all drives.
    pub name: String,
    /// The name of a volume of the same drive.
    pub volume: String,
    /// The class of its requests.
    pub class: ExportClass,
    /// Read-only if the volume or the export is.
    pub access: Access,
    /// The largest number of connections. With 1 clients are advised not to open several.
    pub connections: u32,
    /// The description for clients.
    pub description: String,
    /// The classification of single requests, if they are classified.
    pub classify: Option<Classify>,
}

/// The classification of an export's requests by the I/O priorities of programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classify {
    /// The block device over the export, if the configuration names it.
    pub device: Option<PathBuf>,
    /// The rules: the first that fits decides.
    pub rules: Vec<Rule>,
}

/// The configured class of an export's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportClass {
    /// The most urgent class without a guarantee: `block::Class::BestEffort(0)`.
    Foreground,
    /// 1 to 6.
    BestEffort(u8),
    /// Requests in spare time.
    Background,
}

impl ExportClass {
    /// The class of the engine.
    pub fn of_requests(self) -> block::Class {
        match self {
            ExportClass::Foreground => block::Class::BestEffort(0),
            ExportClass::BestEffort(priority) => block::Class::BestEffort(priority),
            ExportClass::Background => block::Class::Background,
        }
    }

    /// The class in the configuration.
    pub fn name(self) -> String {
        match self {
            ExportClass::Foreground => "foreground".to_owned(),
            ExportClass::BestEffort(priority) => format!("best-effort-{priority}"),
            ExportClass::Background => "background".to_owned(),
        }
    }
}

/// A listener for NBD clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nbd {
    /// The socket.
    pub listen: Listen,
    /// The certificates, if it uses TLS.
    pub tls: Option<Tls>,
    /// The users who may connect, if it is a unix socket of ours.
    pub rights: SocketRights,
    /// Whether other machines may connect without TLS.
    pub insecure: Switch,
}

impl Nbd {
    /// Whether clients at this address of the listener may speak without TLS from other machines.
    pub fn is_open(&self, address: SocketAddr) -> bool {
        let is_encrypted = (self.tls.as_ref()).is_some_and(|tls| tls.need == TlsNeed::Required);
        !address.ip().is_loopback() && !is_encrypted
    }
}

/// A listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A unix socket.
    Unix(PathBuf),
    /// TCP. The default address is the local host.
    Tcp(SocketAddr),
    /// The socket of this name that systemd has opened (`FileDescriptorName=`).
    Activated(String),
}

/// The mount of volumes as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fuse {
    /// The mount point, an existing folder.
    pub mount: PathBuf,
}

/// Exports as block devices of this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ublk {
    /// The names of the exports.
    pub exports: Vec<String>,
}

/// The control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The unix socket of `headtime ctl`.
    pub socket: PathBuf,
    /// The users who may connect to it.
    pub rights: SocketRights,
    /// What users other than root and the service's own may ask there.
    pub members: MemberRights,
    /// The address of the status page, the metrics and the HTTP interface, if there is one.
    pub http: Option<SocketAddr>,
    /// Whether HTTP clients may begin tasks, drain and stop. Every user of this machine may connect.
    pub http_actions: Actions,
    /// Whether other machines may reach the page, which has no TLS.
    pub insecure: Switch,
}

/// The requests that are allowed over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actions {
    /// Requests that change nothing.
    Refused,
    /// All requests, except for scans with a command.
    Allowed,
}

/// The log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The least important level that is logged.
    pub level: tracing::Level,
    /// The format.
    pub format: LogFormat,
}

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

/// The limits of clients. At a limit a listener stops accepting, and a connection stops reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of connections to all drives.
    pub connections: u32,
    /// The largest number of requests of one connection.
    pub requests_per_connection: u32,
    /// Bytes of the longest request.
    pub request_bytes: u32,
    /// Bytes of all requests' contents, for each drive.
    pub buffer_bytes: u64,
    /// The longest time of a handshake, in seconds.
    pub handshake_s: u32,
}

/// The tables of the file that a service passes over: `headtime simulate` runs what they describe. Their keys are
/// those of `lab::system`.
pub const SIMULATED: [&str; 3] = ["load", "stream", "task"];

/// The alignment of volumes, which O_DIRECT and all drives accept.
pub const ALIGN_BYTES: u64 = 4096;

impl Config {
    /// Parses a configuration. `file` names the text in errors.
    ///
    /// # Errors
    /// The first error, with its line and key.
    pub fn parse(file: &str, text: &str, places: &Places) -> Result<Config, DocumentError> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        let known = [
            "drive", "nbd", "fuse", "ublk", "control", "log", "hooks", "limits",
        ];
        root.only(&[&known[..], &SIMULATED].concat())?;
        let drives = storage::drives(&root, places)?;
        let ublk = front::ublk(&root, &drives)?;
        let config = Config {
            nbd: front::nbd(&root, places, &drives)?,
            fuse: front::fuse(&root, places)?,
            ublk,
            control: front::control(&root, places)?,
            log: front::log(&root)?,
            hooks: hooks::hooks(&root)?,
            limits: front::limits(&root)?,
            drives,
        };
        exports::have_devices(&root, &config)?;
        Ok(config)
    }
}
