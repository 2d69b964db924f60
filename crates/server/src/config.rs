//! What is to be served, and how: the file of `headtime serve CONFIG.toml`.
//!
//! ```text
//!   [[drive]]                a back end, what is believed of it, a policy
//!     [[drive.volume]]       a range of its bytes
//!       cache = {}           what of it is kept in memory, and fetched ahead
//!     [drive.preemption]     how larger requests step aside for more urgent ones
//!     [drive.streams]        what it promises to streams, and to whom
//!     [[drive.export]]       a name under which clients get a volume, and their class
//!   [[nbd]] [fuse] [ublk]    the ways in
//!   [control] [log] [limits]
//! ```
//!
//! A volume may have several exports: `db` for the foreground, `db-bulk` as best effort, `db-idle`
//! in the background. [`DEFAULT`] is a whole file with comments, which is used if there is none.

mod caching;
mod fields;
mod foreseen;
mod front;
mod places;
pub mod preemption;
mod remote;
mod size;
mod storage;
pub mod streams;

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::cache_setting::CacheSetting;
use block::Switch;
use document::{Document, DocumentError};
use scheduler::policy::NamedPolicy;

pub use foreseen::{IMPACT_PPM, background};
pub use places::Places;
pub use preemption::Preemption;
pub use remote::{Address, Remote, RemoteTls};
pub use streams::{StreamRule, Streams};

/// The file that is used if none is named: an emulated drive, NBD on a unix socket, a status page.
pub const DEFAULT: &str = include_str!("config/default.toml");

/// A service.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// At least one; no two have the same name, and no two exports of all of them.
    pub drives: Vec<Drive>,
    /// Where NBD clients come in.
    pub nbd: Vec<Nbd>,
    /// Where volumes are files, if they are.
    pub fuse: Option<Fuse>,
    /// Whether exports become block devices of this kernel.
    pub ublk: Option<Ublk>,
    /// Where the service is asked about itself, and told what to do.
    pub control: Control,
    /// What is written down of what happens.
    pub log: Log,
    /// What clients may take up.
    pub limits: Limits,
}

/// A drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    /// How it is called in the log, in metrics and on the page.
    pub name: String,
    /// What holds the bytes.
    pub back_end: BackEnd,
    /// What is believed of it.
    pub belief: Belief,
    /// In which order requests are served.
    pub policy: NamedPolicy,
    /// How larger requests step aside for more urgent ones, if they do.
    pub preemption: Option<Preemption>,
    /// What it promises to streams, if it does.
    pub streams: Option<Streams>,
    /// By how much background tasks may lengthen foreground requests, in parts per million.
    pub impact_ppm: u32,
    /// Where every input and decision of its engine is written, if it is: for `headtime replay`.
    pub capture: Option<PathBuf>,
    /// At least one. None has a byte in common with another.
    pub volumes: Vec<Volume>,
    /// At least one.
    pub exports: Vec<Export>,
}

/// What holds the bytes of a drive.
#[derive(Clone, Debug, PartialEq)]
pub enum BackEnd {
    /// The memory of this process: fast, and gone with it.
    Memory {
        /// How many bytes.
        size: u64,
    },
    /// A file.
    File {
        /// Where it is. It has to be there if it has no `size`.
        path: PathBuf,
        /// How long the file is made if it is not there.
        size: Option<u64>,
        /// On: past the page cache (O_DIRECT).
        direct: Switch,
    },
    /// A file that takes as long as a disk.
    Emulated(Emulated),
    /// A disk of this machine. Everything on it may be overwritten.
    Device(Device),
    /// An export of another NBD server.
    Nbd(Remote),
}

/// A disk of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Where it is: a block device, or a SCSI generic one.
    pub path: PathBuf,
    /// Who carries commands out.
    pub way: Way,
    /// Off: writes end on the medium. As it was before when the service ends.
    pub write_cache: Switch,
    /// Whether the drive reads on after a read. As it was before when the service ends.
    pub look_ahead: Switch,
}

/// How commands reach a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through the kernel's block layer, by io_uring.
    Kernel,
    /// Past it, as SCSI commands.
    Scsi,
}

/// A file that takes as long as a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Emulated {
    /// Which disk.
    pub drive: DriveModel,
    /// The sparse file with the contents; it is made if it is not there.
    pub image: PathBuf,
    /// How many times slower than the disk: 4 for exact timing on a busy machine, 0.1 for speed.
    pub time_scale: f64,
    /// Off takes away what the drive has.
    pub look_ahead: Switch,
    /// Off takes away what the drive has.
    pub write_cache: Switch,
    /// Megabytes a second of its bus, if not that of the system on which it was measured.
    pub bus_mb_s: Option<f64>,
    /// Standard deviation of a seek's duration, which no belief knows, in nanoseconds.
    pub seek_noise_ns: u64,
    /// What happens to the drive by chance.
    pub seed: u64,
}

/// A disk that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveModel {
    /// One of those that are built in, which exists.
    Shipped(&'static str),
    /// A profile file.
    File(PathBuf),
}

/// What is believed of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Belief {
    /// Nothing: block numbers are all that a policy can go by.
    Nothing,
    /// Of an emulated drive: its own profile, without its noise.
    Emulated,
    /// A profile, such as one that `headtime profile` found.
    Profile(DriveModel),
}

/// A range of a drive's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Where it begins, in bytes: a multiple of [`ALIGN_BYTES`].
    pub offset: u64,
    /// Its bytes, a multiple of [`ALIGN_BYTES`]; without it as many as the drive has from there.
    pub size: Option<u64>,
    /// Whether it may be written to.
    pub access: Access,
    /// The cache before it, if it has one.
    pub cache: Option<CacheSetting>,
}

/// Whether something may be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may.
    ReadWrite,
    /// It may not.
    ReadOnly,
}

/// A name under which clients get a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name, that of no other export of any drive.
    pub name: String,
    /// The name of a volume of the same drive.
    pub volume: String,
    /// How urgent what its clients ask is.
    pub class: Class,
    /// Read-only if the volume is or the export is said to be.
    pub access: Access,
    /// At most so many connections at once; 1 also tells clients not to open several.
    pub connections: u32,
    /// What a client is told that it is.
    pub description: String,
}

/// How urgent an export's requests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The most urgent that has no guarantee: `block::Class::BestEffort(0)`.
    Foreground,
    /// 1 to 6.
    BestEffort(u8),
    /// What is left over.
    Background,
}

impl Class {
    /// The engine's word for it.
    pub fn of_requests(self) -> block::Class {
        match self {
            Class::Foreground => block::Class::BestEffort(0),
            Class::BestEffort(priority) => block::Class::BestEffort(priority),
            Class::Background => block::Class::Background,
        }
    }
}

/// Where NBD clients come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nbd {
    /// On which socket.
    pub listen: Listen,
    /// With certificates, if so.
    pub tls: Option<Tls>,
}

/// A socket that is listened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A unix socket.
    Unix(PathBuf),
    /// TCP. The address is this machine's own unless the file names another.
    Tcp(SocketAddr),
    /// The socket of that name that systemd opened (`FileDescriptorName=`).
    Activated(String),
}

/// Certificates of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate and those between it and the root, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Who has to have signed a client's certificate, PEM; without it clients need none.
    pub client_ca: Option<PathBuf>,
    /// Whether clients may go on without.
    pub need: TlsNeed,
}

/// Whether clients may go on without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsNeed {
    /// They may not.
    Required,
    /// They may.
    Optional,
}

/// Volumes as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fuse {
    /// The folder on which it is mounted; it exists.
    pub mount: PathBuf,
}

/// Exports as block devices of this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ublk {
    /// Which exports.
    pub exports: Vec<String>,
}

/// Where the service is asked about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The unix socket of `headtime ctl`.
    pub socket: PathBuf,
    /// The status page, the metrics and the interface over HTTP, if there is one.
    pub http: Option<SocketAddr>,
    /// Whether who reaches the page may begin tasks, drain and stop. Anybody on this machine may
    /// reach it.
    pub http_actions: Actions,
}

/// What may be done over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actions {
    /// Looking.
    Refused,
    /// All that changes something, but for commands of scans.
    Allowed,
}

/// What is written down of what happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// What is too unimportant to be written.
    pub level: tracing::Level,
    /// How.
    pub format: LogFormat,
}

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

/// What clients may take up. Beyond it a listener stops accepting, and a connection stops reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once, to all drives together.
    pub connections: u32,
    /// Requests of one connection at once.
    pub requests_per_connection: u32,
    /// The longest request, in bytes.
    pub request_bytes: u32,
    /// Bytes of requests' contents at once, for each drive.
    pub buffer_bytes: u64,
    /// How long a client may take to say what it wants, in seconds.
    pub handshake_s: u32,
}

/// Volumes begin and end at multiples of this: what O_DIRECT and all drives can do.
pub const ALIGN_BYTES: u64 = 4096;

impl Config {
    /// Reads a configuration; `file` names the text in complaints.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and key.
    pub fn parse(file: &str, text: &str, places: &Places) -> Result<Config, DocumentError> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        root.only(&["drive", "nbd", "fuse", "ublk", "control", "log", "limits"])?;
        let drives = storage::drives(&root, places)?;
        let ublk = front::ublk(&root, &drives)?;
        Ok(Config {
            nbd: front::nbd(&root, places)?,
            fuse: front::fuse(&root, places)?,
            ublk,
            control: front::control(&root, places)?,
            log: front::log(&root)?,
            limits: front::limits(&root)?,
            drives,
        })
    }
}
