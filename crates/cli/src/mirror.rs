//! `headtime mirror`: makes mirrors, looks at their legs, and prepares legs to be filled.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use server::mirror::storage;
use server::mirror::superblock::{Superblock, id_text};
use server::service::mirrors;

use crate::output::{Exit, grouped, print_answer};
use crate::serve;

/// The arguments of `headtime mirror`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MirrorArgs {
    #[command(subcommand)]
    action: MirrorAction,
}

const EXAMPLES: &str = "Examples:
  headtime mirror create mirror.toml safe --confirm safe
  headtime mirror status /dev/sdb /dev/sdc
  headtime mirror replace /dev/sdb /dev/sdd --confirm /dev/sdd

No service may use the legs meanwhile.";

#[derive(Debug, Subcommand)]
enum MirrorAction {
    /// Make a mirror of the two legs of a configured drive. The first MiB of each is overwritten, and leg 1 is
    /// filled from leg 0 when the service begins
    Create {
        /// The service's configuration
        #[arg(value_name = "CONFIG")]
        config: PathBuf,
        /// The drive's name in it
        #[arg(value_name = "DRIVE")]
        drive: String,
        /// The drive's name once more, because what is on its legs is overwritten
        #[arg(long, value_name = "DRIVE")]
        confirm: String,
    },
    /// Print the superblocks of legs
    Status {
        /// Files or devices
        #[arg(value_name = "LEG", required = true)]
        legs: Vec<PathBuf>,
    },
    /// Fill a leg that was out, from the next start of the service on: the regions that were written meanwhile
    Attach {
        /// The service's configuration
        #[arg(value_name = "CONFIG")]
        config: PathBuf,
        /// The drive's name in it
        #[arg(value_name = "DRIVE")]
        drive: String,
        /// The number of the leg: 0 or 1
        #[arg(value_name = "LEG", value_parser = clap::value_parser!(u8).range(0..2))]
        leg: u8,
    },
    /// Make a new disk the other leg of a mirror. It is filled as a whole when the service begins
    Replace {
        /// The leg with the data
        #[arg(value_name = "SURVIVOR")]
        survivor: PathBuf,
        /// The new leg, which is overwritten
        #[arg(value_name = "NEW")]
        new: PathBuf,
        /// The new leg once more
        #[arg(long, value_name = "NEW")]
        confirm: PathBuf,
    },
    /// Remove the superblock of a leg, which is then of no mirror. Its data stay
    Erase {
        /// A file or a device
        #[arg(value_name = "LEG")]
        leg: PathBuf,
        /// The same once more
        #[arg(long, value_name = "LEG")]
        confirm: PathBuf,
    },
}

/// Runs the command.
///
/// # Errors
/// If something is not confirmed, or a leg cannot be read or written.
pub fn run(arguments: &MirrorArgs) -> Result<(), Exit> {
    match &arguments.action {
        MirrorAction::Create {
            config,
            drive,
            confirm,
        } => {
            confirmed(Path::new(drive), Path::new(confirm))?;
            let config = serve::read(Some(config))?;
            let made = mirrors::create(&config, drive).map_err(Exit::input)?;
            print_answer(&described(&made))
        }
        MirrorAction::Status { legs } => status(legs),
        MirrorAction::Attach { config, drive, leg } => {
            let config = serve::read(Some(config))?;
            let attached = mirrors::attach(&config, drive, usize::from(*leg));
            print_answer(&described(&attached.map_err(Exit::input)?))
        }
        MirrorAction::Replace {
            survivor,
            new,
            confirm,
        } => {
            confirmed(new, confirm)?;
            let replaced = storage::replace(survivor, new).map_err(Exit::input)?;
            print_answer(&described(&replaced))
        }
        MirrorAction::Erase { leg, confirm } => {
            confirmed(leg, confirm)?;
            storage::erase(leg).map_err(|error| named(leg, &error))
        }
    }
}

fn confirmed(what: &Path, again: &Path) -> Result<(), Exit> {
    match what == again {
        true => Ok(()),
        false => Err(Exit::input(format!(
            "--confirm {}: expected {} once more, because it is overwritten",
            again.display(),
            what.display()
        ))),
    }
}

fn named(path: &Path, error: &dyn std::fmt::Display) -> Exit {
    Exit::input(format!("{}: {error}", path.display()))
}

fn status(legs: &[PathBuf]) -> Result<(), Exit> {
    let mut text = String::new();
    for path in legs {
        let leg = storage::LegStorage::open(path).map_err(|error| named(path, &error))?;
        let superblock = leg.superblock().map_err(|error| named(path, &error))?;
        let marked = leg.marks(&superblock).marked() * superblock.region_bytes;
        text += &format!("{}: leg {}\n", path.display(), superblock.leg);
        text += &described(&superblock);
        text += &format!(
            "  may differ   {} bytes\n",
            grouped(marked.min(superblock.data_bytes))
        );
    }
    print_answer(&text)
}

fn described(superblock: &Superblock) -> String {
    let mut text = format!("  mirror       {}\n", id_text(&superblock.mirror));
    for (leg, state) in superblock.states.iter().enumerate() {
        text += &format!("  leg {leg}        {}\n", state.name());
    }
    text += &format!("  event        {}\n", superblock.events);
    text += &format!(
        "  data         {} bytes from byte {} on\n",
        grouped(superblock.data_bytes),
        superblock.data_offset
    );
    text
}
