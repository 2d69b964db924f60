//! `headtime restore`: an image into a live volume, in the gaps of its clients.
//!
//! ```text
//!   image --64 ranges, a piece of each in turn--> writes in flight --NBD, class background--> volume
//!                                                     '--flush--> what is left, beside the image
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | `lanes` | the order of the pieces, and what of the image is left |
//! | `state` | the file beside the image, with which the command goes on |

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use block::Durability;
use block::operation::Ask as Operation;
use clap::Args;
use headtime_client::default_socket;
use indicatif::{ProgressBar, ProgressStyle};
use lab::amount::amount;
use lab::nbd_client::LoadClient;
use nbd::request::Asked;
use serde::Serialize;
use server::control::protocol::{Ask, ListedExport};

use crate::bar::ProgressLines;
use crate::interrupt::stop_flag;
use crate::output::{Exit, grouped, print_answer};
use crate::service::{asked, understood};
use crate::verbosity::bar_target;

mod lanes;
mod state;

use lanes::Lanes;
use state::RestoreState;

/// The arguments of `headtime restore`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RestoreArgs {
    /// The volume's name in the service's configuration
    #[arg(value_name = "VOLUME")]
    volume: String,
    /// The raw image, or a block device. `.restore.json` beside it says what is left
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The first byte in the volume
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = amount)]
    at: u64,
    /// Write as an ordinary client, and not in the gaps of others
    #[arg(long)]
    foreground: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// The service's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// The result of a restore.
#[derive(Debug, Serialize)]
struct RestoreReport {
    volume: String,
    export: String,
    /// The class of the writes.
    class: String,
    image: PathBuf,
    /// The first byte in the volume.
    at_bytes: u64,
    image_bytes: u64,
    /// Bytes that this run has written; an earlier one had the others.
    written_bytes: u64,
    elapsed_s: f64,
}

/// Writes in flight. A choice: many gaps find one on their way, and the service has room for twice as many.
const DEPTH: usize = 256;

/// The shortest time between two saved states. A choice: each needs a flush.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// Runs the command.
///
/// # Errors
/// If no service listens on the socket, the volume has no such export or is too short, or a write fails.
pub fn run(arguments: &RestoreArgs) -> Result<(), Exit> {
    let began = Instant::now();
    let socket = arguments.socket.clone().unwrap_or_else(default_socket);
    let stop = stop_flag()?;
    let exports: Vec<ListedExport> = understood(&socket, asked(&socket, &Ask::Exports)?)?;
    let (export, uri) = chosen(&exports, &arguments.volume, arguments.foreground)?;
    let client = LoadClient::connect_to(uri, DEPTH);
    let mut restore = Restore {
        image: Image::open(&arguments.from)?,
        at: arguments.at,
        client: client.map_err(|error| Exit::failed(format!("{uri}: {error}")))?,
        lanes: Lanes::of(&[]),
        in_flight: Vec::new(),
        state: state::path(&arguments.from),
        volume: arguments.volume.clone(),
        saved: Instant::now(),
    };
    restore.check()?;
    let written_bytes = restore.run(&stop)?;
    let report = RestoreReport {
        volume: arguments.volume.clone(),
        export: export.name.clone(),
        class: export.class.clone(),
        image: arguments.from.clone(),
        at_bytes: arguments.at,
        image_bytes: restore.image.length,
        written_bytes,
        elapsed_s: began.elapsed().as_secs_f64(),
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report).map_err(Exit::failed)? + "\n",
        false => format!(
            "{}: {} of {} bytes written to {} from byte {} on, class {}, in {:.1} s\n",
            report.image.display(),
            grouped(report.written_bytes),
            grouped(report.image_bytes),
            report.volume,
            grouped(report.at_bytes),
            report.class,
            report.elapsed_s
        ),
    };
    print_answer(&text)
}

/// The export for the writes, and its address.
fn chosen<'e>(
    exports: &'e [ListedExport],
    volume: &str,
    is_foreground: bool,
) -> Result<(&'e ListedExport, &'e str), Exit> {
    let of_volume = || exports.iter().filter(|export| export.volume == volume);
    if of_volume().next().is_none() {
        let mut volumes: Vec<&str> = exports.iter().map(|export| &*export.volume).collect();
        volumes.dedup();
        return Err(Exit::input(format!(
            "no export of a volume {volume}: expected one of {}",
            volumes.join(", ")
        )));
    }
    let suits = |export: &&ListedExport| {
        let is_background = export.class == BACKGROUND;
        !export.is_read_only && is_background != is_foreground
    };
    let Some(export) = of_volume().find(suits) else {
        let problem = match is_foreground {
            true => {
                "only exports of the class background, or none that clients may write to: expected another one"
            }
            false => {
                "no export for writes in gaps: expected [[drive.export]] of it with class = \"background\", or --foreground"
            }
        };
        return Err(Exit::input(format!("volume {volume} has {problem}")));
    };
    let uri = export.uri.as_deref().ok_or_else(|| {
        Exit::input("the service has no unix socket without TLS: expected [[nbd]] with `unix`")
    })?;
    Ok((export, uri))
}

/// The class whose requests go in gaps.
const BACKGROUND: &str = "background";

/// An image that is read.
struct Image {
    file: File,
    path: PathBuf,
    length: u64,
    /// When it was changed last, in nanoseconds since 1970: bytes that were restored are not of another image.
    modified_ns: u64,
}

impl Image {
    fn open(path: &Path) -> Result<Self, Exit> {
        let opened = || {
            let mut file = File::open(path)?;
            // A block device has no length in its metadata.
            let length = file.seek(SeekFrom::End(0))?;
            let modified = file.metadata()?.modified()?;
            let since = modified.duration_since(std::time::UNIX_EPOCH);
            Ok::<_, io::Error>(Image {
                file,
                path: path.to_owned(),
                length,
                modified_ns: since.map_or(0, |since| since.as_nanos() as u64),
            })
        };
        opened().map_err(|error| Exit::input(format!("{}: {error}", path.display())))
    }
}

/// A write in flight.
struct Writing {
    cookie: u64,
    /// The first byte in the image.
    offset: u64,
    length: u64,
}

/// A restore under way.
struct Restore {
    image: Image,
    at: u64,
    client: LoadClient,
    lanes: Lanes,
    in_flight: Vec<Writing>,
    state: PathBuf,
    volume: String,
    saved: Instant,
}

impl Restore {
    /// Checks that the image fits into the volume.
    fn check(&self) -> Result<(), Exit> {
        let offer = &self.client.session().offer;
        let (size, block) = (offer.size, u64::from(offer.block.min()));
        let (at, length, path) = (self.at, self.image.length, self.image.path.display());
        let refused = |problem: String| Err(Exit::input(format!("{path}: {problem}")));
        if length == 0 {
            return refused("0 bytes: expected an image".to_owned());
        }
        if !length.is_multiple_of(block) || !at.is_multiple_of(block) {
            return refused(format!(
                "{length} bytes from byte {at} of the volume on: expected multiples of its blocks of {block} bytes"
            ));
        }
        match at.checked_add(length).filter(|&end| end <= size) {
            Some(_) => Ok(()),
            None => refused(format!(
                "{length} bytes from byte {at} of the volume on: expected an end in the volume, which has {size} bytes"
            )),
        }
    }

    /// Writes what is left of the image. The answer is how many bytes that was.
    fn run(&mut self, stop: &AtomicBool) -> Result<u64, Exit> {
        let whole = RestoreState::whole(&self.volume, self.at, &self.image);
        let left = match RestoreState::of(&self.state)? {
            None => whole.left,
            Some(found) => found.rest_of(&whole, &self.state)?,
        };
        self.lanes = Lanes::of(&left);
        let asked = self.lanes.left_bytes();
        // Whether it can be written is known now, and not after hours.
        self.save()?;
        let bar = bar(self.image.length);
        let lines = ProgressLines::of(&bar);
        let mut piece = vec![0; lanes::PIECE as usize];
        while self.lanes.left_bytes() > 0 && !stop.load(Ordering::Relaxed) {
            while self.in_flight.len() < DEPTH
                && let Some(next) = self.lanes.next()
            {
                let bytes = &mut piece[..(next.end - next.start) as usize];
                self.begin(next.start, bytes)?;
            }
            self.end_one()?;
            bar.set_position(self.image.length - self.lanes.left_bytes());
            if self.saved.elapsed() >= SAVE_EVERY {
                self.save()?;
            }
        }
        while !self.in_flight.is_empty() {
            self.end_one()?;
        }
        bar.finish_and_clear();
        drop(lines);
        self.save()?;
        let left = self.lanes.left_bytes();
        if left > 0 {
            return Err(Exit::failed(format!(
                "stopped: {} bytes are left, and the same command goes on with them",
                grouped(left)
            )));
        }
        let removed = std::fs::remove_file(&self.state);
        removed.map_err(|error| Exit::failed(format!("{}: {error}", self.state.display())))?;
        Ok(asked)
    }

    fn begin(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), Exit> {
        let read = self.image.file.read_exact_at(bytes, offset);
        read.map_err(|error| Exit::failed(format!("{}: {error}", self.image.path.display())))?;
        let length = bytes.len() as u64;
        let write = Asked::Of(Operation::Write {
            durability: Durability::Volatile,
        });
        let begun = self.client.submit(write, self.at + offset, length, bytes);
        self.in_flight.push(Writing {
            cookie: begun.map_err(|error| self.broken(&error))?,
            offset,
            length,
        });
        Ok(())
    }

    /// Waits for the end of a write.
    fn end_one(&mut self) -> Result<(), Exit> {
        let cookie = self.client.end().map_err(|error| self.broken(&error))?;
        self.note_end(cookie)
    }

    /// A write has ended.
    fn note_end(&mut self, cookie: u64) -> Result<(), Exit> {
        let place = self.in_flight.iter().position(|one| one.cookie == cookie);
        let place = place.ok_or_else(|| Exit::failed("the service answered what nobody asked"))?;
        let Writing { offset, length, .. } = self.in_flight.swap_remove(place);
        self.lanes.done(offset..offset + length);
        Ok(())
    }

    /// Saves what is left. What was written is on the medium before.
    fn save(&mut self) -> Result<(), Exit> {
        let left = self.lanes.left();
        let flush = Asked::Of(Operation::Flush);
        let flushed = self.client.submit(flush, 0, 0, &[]);
        let flushed = flushed.map_err(|error| self.broken(&error))?;
        loop {
            let cookie = self.client.end().map_err(|error| self.broken(&error))?;
            if cookie == flushed {
                break;
            }
            self.note_end(cookie)?;
        }
        let whole = RestoreState::whole(&self.volume, self.at, &self.image);
        RestoreState { left, ..whole }.store(&self.state)?;
        self.saved = Instant::now();
        Ok(())
    }

    /// The service has gone, or a write has failed. The state file is of the last save.
    fn broken(&self, error: &io::Error) -> Exit {
        Exit::failed(format!(
            "volume {}: {error}; the same command goes on from {}",
            self.volume,
            self.state.display()
        ))
    }
}

fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), bar_target(4));
    if let Ok(style) = ProgressStyle::with_template(
        "restore {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta}",
    ) {
        bar.set_style(style);
    }
    bar
}

const EXAMPLES: &str = "Examples:
  headtime restore disk --from /backups/disk.raw
  headtime restore disk --from part.img --at 10GiB --json

The writes go in the gaps of the volume's clients, in an order that suits gaps. They need an
export of the volume with class = \"background\". Nobody else may write these bytes until the
command has ended: it may write them again when it goes on after a stop or a crash.";
