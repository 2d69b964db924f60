//! `headtime ctl checkpoint` and `headtime ctl bitmap`: moments of volumes, and what was changed between them.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lab::amount::amount;
use serde_json::Value;
use server::checkpoint::marks::BitmapStatus;
use server::checkpoint::moment::CheckpointStatus;
use server::checkpoint::store::StoreOrder;
use server::control::protocol::{Ask, BeginCheckpoint, BegunCheckpoint, BitmapChange, ReadClass};
use server::volume::Release;

use crate::output::{Exit, grouped};
use crate::service::understood;
use crate::settings::store::STORE_BYTES;

/// The arguments of `headtime ctl checkpoint`.
#[derive(Clone, Debug, Args)]
pub struct CheckpointArgs {
    #[command(subcommand)]
    action: CheckpointAction,
}

#[derive(Clone, Debug, Subcommand)]
enum CheckpointAction {
    /// Make a checkpoint: the volume at this moment, as the NBD export VOLUME@checkpoint
    Create(CreateArgs),
    /// List the checkpoints
    List,
    /// End the checkpoint of a volume
    Release {
        /// The volume's name
        volume: String,
        /// A backup has its bytes: the dirty bitmap counts changes from the checkpoint on. Otherwise the next
        /// backup gets the changes before it, too
        #[arg(long)]
        done: bool,
    },
}

/// The arguments of `headtime ctl checkpoint create`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
struct CreateArgs {
    /// The volume's name
    volume: String,
    /// The dirty bitmap that begins anew at the moment. The export tells its earlier changes as
    /// qemu:dirty-bitmap:NAME
    #[arg(long, value_name = "NAME")]
    bitmap: Option<String>,
    /// Read in the class of ordinary clients. By default other requests go first, for up to five seconds
    #[arg(long)]
    foreground: bool,
    /// The folder for old bytes of what is changed meanwhile [default: the service's memory]
    #[arg(long, value_name = "FOLDER")]
    store: Option<PathBuf>,
    /// The bound of these old bytes. When it is reached the checkpoint is lost, and clients go on
    /// [default: 256 MiB]
    #[arg(
        long,
        value_name = "BYTES",
        default_value = STORE_BYTES,
        hide_default_value = true,
        value_parser = amount
    )]
    store_bytes: u64,
}

/// The arguments of `headtime ctl bitmap`.
#[derive(Clone, Debug, Args)]
pub struct BitmapArgs {
    #[command(subcommand)]
    action: BitmapAction,
}

#[derive(Clone, Debug, Subcommand)]
enum BitmapAction {
    /// Add a dirty bitmap to a volume that has the key `bitmaps`
    #[command(after_help = "Example:\n  headtime ctl bitmap add disk daily")]
    Add {
        /// The volume's name
        volume: String,
        /// The bitmap's name
        name: String,
    },
    /// List the dirty bitmaps
    List,
    /// Remove a dirty bitmap and its file
    Remove {
        /// The volume's name
        volume: String,
        /// The bitmap's name
        name: String,
    },
}

const EXAMPLES: &str = "Examples:
  headtime ctl checkpoint create disk
  nbdcopy 'nbd+unix:///disk@checkpoint?socket=/run/headtime/nbd.sock' disk.raw
  headtime ctl checkpoint release disk";

impl CheckpointArgs {
    /// The request.
    pub(super) fn ask(&self) -> Ask {
        match &self.action {
            CheckpointAction::Create(create) => Ask::BeginCheckpoint(BeginCheckpoint {
                volume: create.volume.clone(),
                bitmap: create.bitmap.clone(),
                class: match create.foreground {
                    true => ReadClass::Foreground,
                    false => ReadClass::Last,
                },
                store: StoreOrder {
                    folder: create.store.clone(),
                    bytes: create.store_bytes,
                },
            }),
            CheckpointAction::List => Ask::Checkpoints,
            CheckpointAction::Release { volume, done } => Ask::ReleaseCheckpoint {
                volume: volume.clone(),
                release: match done {
                    true => Release::Done,
                    false => Release::Abandoned,
                },
            },
        }
    }

    /// The answer for people.
    pub(super) fn describe(&self, socket: &Path, answer: Value) -> Result<String, Exit> {
        Ok(match &self.action {
            CheckpointAction::Create(_) => {
                let begun: BegunCheckpoint = understood(socket, answer)?;
                let export = &begun.checkpoint.export;
                let uri = begun.uri.unwrap_or_else(|| format!("export {export}"));
                format!("{uri}\n")
            }
            CheckpointAction::List => {
                let all: Vec<CheckpointStatus> = understood(socket, answer)?;
                let lines = all.iter().map(|one| {
                    let state = one
                        .problem
                        .as_ref()
                        .map_or_else(|| "open".to_owned(), |problem| format!("lost: {problem}"));
                    format!(
                        "{}: {} bytes, {} of {} bytes of old data, {state}\n",
                        one.export,
                        grouped(one.length_bytes),
                        grouped(one.store_bytes),
                        grouped(one.store_bound_bytes)
                    )
                });
                lines.collect()
            }
            CheckpointAction::Release { .. } => "done\n".to_owned(),
        })
    }
}

impl BitmapArgs {
    /// The request.
    pub(super) fn ask(&self) -> Ask {
        let change = |volume: &str, name: &str, change| Ask::ChangeBitmap {
            volume: volume.to_owned(),
            name: name.to_owned(),
            change,
        };
        match &self.action {
            BitmapAction::Add { volume, name } => change(volume, name, BitmapChange::Add),
            BitmapAction::Remove { volume, name } => change(volume, name, BitmapChange::Remove),
            BitmapAction::List => Ask::Bitmaps,
        }
    }

    /// The answer for people.
    pub(super) fn describe(&self, socket: &Path, answer: Value) -> Result<String, Exit> {
        if !matches!(self.action, BitmapAction::List) {
            return Ok("done\n".to_owned());
        }
        let all: Vec<BitmapStatus> = understood(socket, answer)?;
        let lines = all.iter().map(|one| {
            let since = match (&one.problem, &one.base) {
                (Some(problem), _) => format!("not kept: {problem}"),
                (None, Some(base)) => format!("since checkpoint {base}"),
                (None, None) => "since it was added".to_owned(),
            };
            format!(
                "{} of {}: {} bytes changed {since}\n",
                one.name,
                one.volume,
                grouped(one.dirty_bytes)
            )
        });
        Ok(lines.collect())
    }
}
