//! `headtime backup`: an image of one moment of a live volume.
//!
//! ```text
//!   checkpoint --NBD: allocation or dirty bitmap--> extents --reads--> image --sync, read again--> whole --> release
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | `moment` | the checkpoint's export as an NBD client sees it |
//! | `state` | the file beside an image, which says what the image is |
//! | `copy` | extents into an image, and the verification |

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::Args;
use headtime_client::default_socket;
use lab::amount::amount;
use serde::Serialize;
use server::checkpoint::marks::BitmapStatus;
use server::checkpoint::store::StoreOrder;
use server::control::protocol::{Ask, BeginCheckpoint, BegunCheckpoint, ReadClass};
use server::volume::Release;

use crate::interrupt::stop_flag;
use crate::output::{Exit, grouped, print_answer, warn};
use crate::service::{asked, understood};
use crate::settings::store::STORE_BYTES;

mod copy;
mod moment;
mod state;

use copy::{Copied, Target};
use moment::Moment;
use state::{ImageState, Phase};

/// The arguments of `headtime backup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BackupArgs {
    /// The volume's name in the service's configuration
    #[arg(value_name = "VOLUME")]
    volume: String,
    /// The raw image, or a folder in which it is VOLUME.raw. `.backup.json` beside it says what it is
    #[arg(long, value_name = "FILE|FOLDER")]
    to: PathBuf,
    /// Read only what was changed since the last backup to this image, and write it there
    #[arg(long, conflicts_with = "bitmap")]
    incremental: bool,
    /// The volume's dirty bitmap, which counts changes from this backup on. Incremental ones need it
    #[arg(long, value_name = "NAME")]
    bitmap: Option<String>,
    /// Read in the class of ordinary clients. By default other requests go first, for up to five seconds
    #[arg(long)]
    foreground: bool,
    /// The folder for old bytes of what is changed meanwhile [default: the service's memory]
    #[arg(long, value_name = "FOLDER")]
    store: Option<PathBuf>,
    /// The bound of these old bytes. When it is reached the backup fails, and clients go on
    /// [default: 256 MiB]
    #[arg(
        long,
        value_name = "BYTES",
        default_value = STORE_BYTES,
        hide_default_value = true,
        value_parser = amount
    )]
    store_bytes: u64,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// The service's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// The result of a backup.
#[derive(Debug, Serialize)]
struct BackupReport {
    volume: String,
    image: PathBuf,
    kind: Kind,
    volume_bytes: u64,
    /// Bytes that were changed since the last backup, in whole chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    dirty_bytes: Option<u64>,
    read_bytes: u64,
    verified_bytes: u64,
    /// Old bytes of what was changed meanwhile.
    store_bytes: u64,
    elapsed_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bitmap: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
}

/// What a backup reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Full,
    Incremental,
}

/// Runs the command.
///
/// # Errors
/// If no service listens on the socket, the service refuses, the image is not of this volume, or it cannot be written.
pub fn run(arguments: &BackupArgs) -> Result<(), Exit> {
    let began = Instant::now();
    let socket = arguments.socket.clone().unwrap_or_else(default_socket);
    let stop = stop_flag()?;
    let image = match arguments.to.is_dir() {
        true => arguments.to.join(format!("{}.raw", arguments.volume)),
        false => arguments.to.clone(),
    };
    let (kind, bitmap) = planned(arguments, &image)?;
    let order = BeginCheckpoint {
        volume: arguments.volume.clone(),
        bitmap,
        class: match arguments.foreground {
            true => ReadClass::Foreground,
            false => ReadClass::Last,
        },
        store: StoreOrder {
            folder: arguments.store.clone(),
            bytes: arguments.store_bytes,
        },
    };
    let begun: BegunCheckpoint =
        understood(&socket, asked(&socket, &Ask::BeginCheckpoint(order))?)?;
    let made = write(&begun, &image, kind, &stop);
    let made = made.and_then(|copied| Ok((copied, store_bytes(&socket, &arguments.volume)?)));
    let released = release(&socket, &arguments.volume, made.is_ok());
    let (copied, store_bytes) = made?;
    released?;
    let report = BackupReport {
        volume: arguments.volume.clone(),
        image,
        kind,
        volume_bytes: begun.checkpoint.length_bytes,
        dirty_bytes: (kind == Kind::Incremental).then_some(copied.asked_bytes),
        read_bytes: copied.read_bytes,
        verified_bytes: copied.verified_bytes,
        store_bytes,
        elapsed_s: began.elapsed().as_secs_f64(),
        bitmap: begun.checkpoint.bitmap.clone(),
        checkpoint: begun.checkpoint.checkpoint.clone(),
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report).map_err(Exit::failed)? + "\n",
        false => described(&report),
    };
    print_answer(&text)
}

/// The kind of the backup, and the bitmap that it begins anew.
fn planned(arguments: &BackupArgs, image: &Path) -> Result<(Kind, Option<String>), Exit> {
    let earlier = ImageState::of(image)?;
    match (arguments.incremental, earlier) {
        (false, None) if image.exists() => Err(Exit::input(format!(
            "{}: it is there, and no backup of ours: expected another name",
            image.display()
        ))),
        (false, _) => Ok((Kind::Full, arguments.bitmap.clone())),
        (true, Some(state)) if state.bitmap.is_some() => Ok((Kind::Incremental, state.bitmap)),
        (true, Some(_)) => Err(Exit::input(format!(
            "{}: it was made without a dirty bitmap: expected a full backup with --bitmap first",
            image.display()
        ))),
        (true, None) => Err(Exit::input(format!(
            "{}: no backup is there: expected a full one with --bitmap first",
            image.display()
        ))),
    }
}

fn write(
    begun: &BegunCheckpoint,
    image: &Path,
    kind: Kind,
    stop: &AtomicBool,
) -> Result<Copied, Exit> {
    let uri = begun.uri.as_deref().ok_or_else(|| {
        Exit::input("the service has no unix socket without TLS: expected [[nbd]] with `unix`")
    })?;
    let status = &begun.checkpoint;
    let mut moment = Moment::connect(uri, status.bitmap.as_deref())?;
    let state = |phase| ImageState {
        version: state::VERSION,
        volume: status.volume.clone(),
        volume_bytes: status.length_bytes,
        bitmap: status.bitmap.clone(),
        bitmap_id: begun.bitmap.as_ref().map(|bitmap| bitmap.id.clone()),
        checkpoint: status.checkpoint.clone(),
        since: (begun.bitmap.as_ref()).and_then(|bitmap| bitmap.base.clone()),
        phase,
    };
    match (kind, &begun.bitmap) {
        (Kind::Incremental, Some(bitmap)) => {
            follows(image, &status.volume, bitmap)?;
            let extents = moment.dirty()?;
            let target = Target::open(image, status.length_bytes)?;
            state(Phase::Writing).store(image)?;
            let copied = copy::copy(&mut moment, &target, &extents, stop)?;
            state(Phase::Whole).store(image)?;
            Ok(copied)
        }
        _ => {
            let extents = moment.allocated()?;
            let target = Target::begin(image, status.length_bytes)?;
            let copied = copy::copy(&mut moment, &target, &extents, stop)?;
            target.finish(image)?;
            state(Phase::Whole).store(image)?;
            Ok(copied)
        }
    }
}

/// Checks that the bitmap has all changes since the image.
fn follows(image: &Path, volume: &str, bitmap: &BitmapStatus) -> Result<(), Exit> {
    let state = ImageState::of(image)?;
    let refused = |problem: String| {
        let image = image.display();
        Exit::input(format!(
            "{image}: {problem}: expected a full backup with --bitmap"
        ))
    };
    match state {
        Some(state) if state.volume != volume => {
            Err(refused(format!("it is of volume {}", state.volume)))
        }
        Some(state) if !state.precedes(&bitmap.id, bitmap.base.as_deref()) => Err(refused(
            format!("bitmap {} does not begin with this image", bitmap.name),
        )),
        Some(_) => Ok(()),
        None => Err(refused("its .backup.json is gone".to_owned())),
    }
}

fn store_bytes(socket: &Path, volume: &str) -> Result<u64, Exit> {
    use server::checkpoint::moment::CheckpointStatus;
    let all: Vec<CheckpointStatus> = understood(socket, asked(socket, &Ask::Checkpoints)?)?;
    let mut all = all.into_iter();
    let one = all.find(|one| one.volume == volume);
    Ok(one.map_or(0, |one| one.store_bytes))
}

/// Releases the checkpoint. One that is lost after its last read costs nothing but a longer next backup.
fn release(socket: &Path, volume: &str, is_whole: bool) -> Result<(), Exit> {
    let ask = |release| Ask::ReleaseCheckpoint {
        volume: volume.to_owned(),
        release,
    };
    if is_whole {
        match asked(socket, &ask(Release::Done)) {
            Ok(_) => return Ok(()),
            Err(_) => warn("the next incremental backup reads the changes of this one again"),
        }
    }
    asked(socket, &ask(Release::Abandoned)).map(drop)
}

fn described(report: &BackupReport) -> String {
    let kind = match report.kind {
        Kind::Full => "full",
        Kind::Incremental => "incremental",
    };
    let mut text = format!(
        "{kind} backup of {}: {} of {} bytes read and verified in {:.1} s\n",
        report.volume,
        grouped(report.read_bytes),
        grouped(report.volume_bytes),
        report.elapsed_s
    );
    text += &format!("image: {}\n", report.image.display());
    text += &match (&report.bitmap, &report.checkpoint) {
        (Some(bitmap), Some(checkpoint)) => {
            format!("bitmap {bitmap} counts changes from checkpoint {checkpoint} on\n")
        }
        _ => "no dirty bitmap: the next backup is a full one\n".to_owned(),
    };
    text + &format!(
        "{} bytes of old data were kept for it meanwhile\n",
        grouped(report.store_bytes)
    )
}

const EXAMPLES: &str = "Examples:
  headtime backup disk --to /backups/disk.raw
  headtime ctl bitmap add disk daily; headtime backup disk --to /backups --bitmap daily
  headtime backup disk --to /backups --incremental --json

The image is the volume at one moment: what clients were told is written before it, and nothing that they
send after it. A full backup replaces an older image when it is whole. An interrupted one starts anew. An
interrupted incremental one leaves an image that the next incremental one completes. Each written byte is
read again from the image and compared.";
