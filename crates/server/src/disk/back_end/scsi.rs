//! SCSI commands to a drive, past the kernel's block layer: cache switches, FUA, seeks, and errors with
//! their causes.
//!
//! ```text
//!   ScsiDrive --ScsiCommand--> generic (SG_IO on /dev/sgN or /dev/sdX) --> drive
//!             <--answer, Sense--                                       <---
//! ```
//!
//! Commands and answers are parsed and built as bytes, without a drive. Only `generic` calls the kernel.
//! SATA drives understand the commands through the kernel's translation (SAT). It passes ATA commands on for
//! switches that the translation lacks.

mod answer;
pub mod ata;
pub mod cache_switch;
mod command;
mod generic;
pub mod passthrough;
pub mod pool;
pub mod probed;
mod product;
pub mod record;
mod sense;
pub mod switched;
mod switching;
pub mod target;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use block::Durability;
pub use block::Switch;

pub use answer::{Caching, Capacity, Identity, Kind, Rotation, Zones, serial};
pub use command::{CACHING_PAGE, Lasting, Page, ScsiCommand, Values};
pub use product::PositioningRange;
pub use sense::Sense;

use block::operation;
use target::{CommandBytes, Completion, ScsiTarget, host_advice, judged, status_advice};

/// The error of a SCSI command.
#[derive(Debug, thiserror::Error)]
pub enum ScsiError {
    /// The answer violates the standard.
    #[error("the drive's {what} makes no sense: {reason}")]
    Answer {
        /// The requested answer.
        what: &'static str,
        /// The problem.
        reason: String,
    },
    /// The drive reports an error with sense data.
    #[error("{0}")]
    Sense(Sense),
    /// The drive refuses without sense data (SAM-5 5.3).
    #[error("the drive answers with status {0:#04x} ({advice})", advice = status_advice(*.0))]
    Status(u8),
    /// The command did not reach the drive, or was lost.
    #[error("the host adapter failed with {host:#x}, its driver with {driver:#x} ({advice})", advice = host_advice(*.host))]
    Transport {
        /// The status of the adapter.
        host: u16,
        /// The status of the driver.
        driver: u16,
    },
    /// Fewer bytes were transferred than the command has.
    #[error("{missing} of {expected} bytes were not transferred")]
    Short {
        /// The expected number.
        expected: usize,
        /// The missing number.
        missing: usize,
    },
    /// A switch that the drive cannot change.
    #[error("the drive does not let its {0} be switched")]
    Fixed(&'static str),
    /// The drive accepted a switch without effect.
    #[error("the drive says that it has switched its caches, and has not")]
    NotSwitched,
    /// An ATA command for a drive that is none.
    #[error("it is no ATA drive")]
    NoAta,
    /// The record of switches cannot be written.
    #[error("its former state could not be recorded: {0}")]
    Record(io::Error),
    /// A seek beyond the blocks of 32 bits.
    #[error("block {0} is too far for a seek")]
    TooFar(u64),
    /// The device cannot be opened, or takes no SCSI commands.
    #[error("{path}: {source} (is it a SCSI disk, and may this user send commands to it?)")]
    Device {
        /// The path of the device.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl ScsiError {
    /// The error for clients.
    pub fn failed(&self) -> operation::OperationError {
        match self {
            ScsiError::Sense(sense) => sense.failed(),
            ScsiError::Fixed(_) | ScsiError::NoAta => operation::OperationError::Unsupported,
            ScsiError::TooFar(_) => operation::OperationError::Invalid,
            _ => operation::OperationError::Io,
        }
    }
}

/// A drive that takes SCSI commands.
#[derive(Debug)]
pub struct ScsiDrive {
    path: PathBuf,
    target: Box<dyn ScsiTarget>,
    block_bytes: usize,
    identity: Identity,
    capacity: Capacity,
    /// Whether the drive has FUA.
    knows_fua: bool,
    /// Whether an ATA drive is behind a SCSI translation.
    is_ata: bool,
}

/// The command after a write.
enum Then {
    Done,
    Flush,
}

/// The longest time of a command. Error recovery takes a drive some seconds, and a spin-up half a minute. A
/// choice.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest time of a flush, which may write a whole cache at random places. A choice.
const FLUSH_PATIENCE: Duration = Duration::from_secs(300);

/// The largest number of events that a drive reports before it accepts a command. A choice: more than two
/// were never seen.
const REPEATS: usize = 8;

/// Bytes of the longest answer: the page of ATA information has 572 (SAT-3 10.3.5).
const ROOM: usize = 1024;

/// The vendor that translations of ATA drives state (SAT-3 8.1.2).
const ATA_VENDOR: &str = "ATA";

impl ScsiDrive {
    /// Opens `/dev/sgN` or `/dev/sdX`, and inquires its properties.
    ///
    /// # Errors
    /// If it does not open, is not ready, or is no disk with random writes.
    pub fn open(path: &Path) -> Result<Self, ScsiError> {
        ScsiDrive::opened(path, File::options().read(true).write(true))
    }

    /// Opens it for reading. The kernel passes other commands than reads on for root alone.
    ///
    /// # Errors
    /// As [`ScsiDrive::open`].
    pub fn open_to_read(path: &Path) -> Result<Self, ScsiError> {
        ScsiDrive::opened(path, File::options().read(true))
    }

    fn opened(path: &Path, options: &std::fs::OpenOptions) -> Result<Self, ScsiError> {
        let file = options.open(path).map_err(|source| ScsiError::Device {
            path: path.to_path_buf(),
            source,
        })?;
        ScsiDrive::over(Box::new(file), path)
    }

    /// Inquires the properties of a drive behind any target. `path` is its name in messages.
    ///
    /// # Errors
    /// If it is not ready, or is no disk with random writes.
    pub fn over(target: Box<dyn ScsiTarget>, path: &Path) -> Result<Self, ScsiError> {
        let mut drive = ScsiDrive {
            path: path.to_path_buf(),
            target,
            block_bytes: 0,
            identity: Identity {
                kind: Kind::Nothing,
                vendor: String::new(),
                product: String::new(),
                revision: String::new(),
            },
            capacity: Capacity {
                blocks: 0,
                block_bytes: 0,
                physical_bytes: 0,
            },
            knows_fua: false,
            is_ata: false,
        };
        let page = drive.ask(ScsiCommand::inquiry(Page::Standard, ROOM as u16))?;
        drive.identity = Identity::parse(&page)?;
        drive.be_ready()?;
        let answer = drive.ask(ScsiCommand::read_capacity(ROOM as u32))?;
        drive.capacity = Capacity::parse(&answer)?;
        drive.block_bytes = drive.capacity.block_bytes as usize;
        drive.knows_fua = drive.caching().is_ok_and(|page| page.knows_fua);
        // The kernel's translation names itself. A bridge that passes ATA commands on has the page.
        drive.is_ata = drive.identity.vendor == ATA_VENDOR
            || drive
                .ask(ScsiCommand::inquiry(Page::AtaInformation, ROOM as u16))
                .is_ok_and(|page| product::is_ata(&page).is_ok());
        Ok(drive)
    }

    /// The identity of the drive.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The capacity of the drive.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// The serial number of the drive.
    ///
    /// # Errors
    /// If it has none, or the command fails.
    pub fn serial(&self) -> Result<String, ScsiError> {
        serial(&self.ask(ScsiCommand::inquiry(Page::Serial, ROOM as u16))?)
    }

    /// Vendor, model and serial number: the name by which a drive is known again.
    pub fn full_name(&self) -> String {
        let Identity {
            vendor, product, ..
        } = &self.identity;
        let serial = self.serial().unwrap_or_default();
        format!("{vendor} {product} {serial}")
    }

    /// The ranges of blocks that actuators of their own serve, in the order of blocks; none on drives that
    /// are older than the page.
    ///
    /// # Errors
    /// If the command fails.
    pub fn positioning_ranges(&self) -> Result<Vec<PositioningRange>, ScsiError> {
        let command = ScsiCommand::inquiry(Page::PositioningRanges, ROOM as u16);
        product::positioning_ranges(&self.ask(command)?)
    }

    /// The most blocks of a command; `None` if the drive states none.
    ///
    /// # Errors
    /// If the command fails, as on drives that are older than the page.
    pub fn most_blocks(&self) -> Result<Option<u32>, ScsiError> {
        product::most_blocks(&self.ask(ScsiCommand::inquiry(Page::Limits, ROOM as u16))?)
    }

    /// The rotation speed of the drive.
    ///
    /// # Errors
    /// If it is unknown, or the command fails.
    pub fn rotation(&self) -> Result<Rotation, ScsiError> {
        let command = ScsiCommand::inquiry(Page::Characteristics, ROOM as u16);
        Rotation::parse(&self.ask(command)?)
    }

    /// The zone model of the drive.
    ///
    /// # Errors
    /// If the command fails, as on drives that are older than the page.
    pub fn zones(&self) -> Result<Zones, ScsiError> {
        let command = ScsiCommand::inquiry(Page::Characteristics, ROOM as u16);
        Zones::parse(&self.ask(command)?)
    }

    /// The path of the device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads whole blocks. A drive without FUA may answer durable reads from its cache.
    ///
    /// # Errors
    /// If the drive or the transport fails, or `bytes` is not a whole number of blocks.
    pub fn read(
        &self,
        first: u64,
        bytes: &mut [u8],
        durability: Durability,
    ) -> Result<(), ScsiError> {
        let (fua, _) = self.means(durability);
        let command = ScsiCommand::read(first, self.blocks_of(bytes.len())?, fua);
        let expected = bytes.len();
        let done = self.carry_out(command, CommandBytes::From(bytes), PATIENCE)?;
        all_of(expected, done.missing)
    }

    /// Reads whole blocks with FUA, whether or not the drive says that it has it: translations of ATA drives
    /// understand it in reads without saying so.
    ///
    /// # Errors
    /// As [`ScsiDrive::read`]; also if the drive refuses FUA.
    pub fn read_by_fua(&self, first: u64, bytes: &mut [u8]) -> Result<(), ScsiError> {
        let command = ScsiCommand::read(first, self.blocks_of(bytes.len())?, Durability::Durable);
        let expected = bytes.len();
        let done = self.carry_out(command, CommandBytes::From(bytes), PATIENCE)?;
        all_of(expected, done.missing)
    }

    /// Reads whole blocks on the medium without transferring them.
    ///
    /// # Errors
    /// If the drive or the transport fails, or `length` is not a whole number of blocks.
    pub fn verify(&self, first: u64, length: usize) -> Result<(), ScsiError> {
        let command = ScsiCommand::verify(first, self.blocks_of(length)?);
        self.carry_out(command, CommandBytes::None, PATIENCE)?;
        Ok(())
    }

    /// Writes whole blocks. On a drive without FUA a durable write is a write and a flush.
    ///
    /// # Errors
    /// As [`ScsiDrive::read`].
    pub fn write(&self, first: u64, bytes: &[u8], durability: Durability) -> Result<(), ScsiError> {
        let (fua, then) = self.means(durability);
        let command = ScsiCommand::write(first, self.blocks_of(bytes.len())?, fua);
        let done = self.carry_out(command, CommandBytes::To(bytes), PATIENCE)?;
        all_of(bytes.len(), done.missing)?;
        match then {
            Then::Done => Ok(()),
            Then::Flush => self.flush(),
        }
    }

    /// Flushes the drive's cache to the medium.
    ///
    /// # Errors
    /// If the drive or the transport fails.
    pub fn flush(&self) -> Result<(), ScsiError> {
        let command = ScsiCommand::synchronize_cache();
        self.carry_out(command, CommandBytes::None, FLUSH_PATIENCE)?;
        Ok(())
    }

    /// Seeks to the track of a block.
    ///
    /// # Errors
    /// If the drive has no such command, or the block is too far.
    pub fn seek(&self, block: u64) -> Result<(), ScsiError> {
        let near = u32::try_from(block).map_err(|_| ScsiError::TooFar(block))?;
        self.carry_out(ScsiCommand::seek(near), CommandBytes::None, PATIENCE)?;
        Ok(())
    }

    /// The present cache switches.
    ///
    /// # Errors
    /// If the drive has no such page.
    pub fn caching(&self) -> Result<Caching, ScsiError> {
        self.caching_page(Values::Current)
    }

    /// Sets the cache switches, and checks them.
    ///
    /// # Errors
    /// [`ScsiError::Fixed`] if one cannot be changed. Then none is.
    pub fn set_caching(&self, wanted: &Caching, lasting: Lasting) -> Result<(), ScsiError> {
        let before = self.caching()?;
        let changeable = self.caching_page(Values::Changeable)?;
        if let Some(name) = before.refuses(wanted, &changeable) {
            return Err(ScsiError::Fixed(name));
        }
        let page = wanted.to_select();
        let command = ScsiCommand::mode_select(lasting, page.len() as u16);
        self.carry_out(command, CommandBytes::To(&page), PATIENCE)?;
        self.hear_of_change()?;
        let after = self.caching()?;
        let switches = |page: &Caching| (page.write_cache(), page.look_ahead(), page.read_cache());
        if switches(&after) != switches(wanted) {
            return Err(ScsiError::NotSwitched);
        }
        Ok(())
    }

    fn caching_page(&self, values: Values) -> Result<Caching, ScsiError> {
        let command = ScsiCommand::mode_sense(CACHING_PAGE, values, ROOM as u16);
        Caching::parse(&self.ask(command)?)
    }

    /// Waits until the drive has reported its events, which it does before other commands (SAM-5 5.14).
    fn be_ready(&self) -> Result<(), ScsiError> {
        let mut told = 0;
        loop {
            match self.carry_out(ScsiCommand::test_unit_ready(), CommandBytes::None, PATIENCE) {
                Err(ScsiError::Sense(sense)) if sense.is_unit_attention() && told < REPEATS => {
                    tracing::info!(drive = %self.path.display(), %sense, "the drive says");
                    told += 1;
                }
                other => return other.map(|_| ()),
            }
        }
    }

    /// Takes the report that modes were changed, which some drives send to whoever changed them, too.
    ///
    /// # Errors
    /// If another event is reported, such as a reset, which undoes the change.
    fn hear_of_change(&self) -> Result<(), ScsiError> {
        match self.carry_out(ScsiCommand::test_unit_ready(), CommandBytes::None, PATIENCE) {
            Err(ScsiError::Sense(sense)) if sense.is_change_of_modes() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// The answer to a command, in its actual length.
    fn ask(&self, command: ScsiCommand) -> Result<Vec<u8>, ScsiError> {
        let mut bytes = vec![0; ROOM];
        let done = self.carry_out(command, CommandBytes::From(&mut bytes), PATIENCE)?;
        bytes.truncate(ROOM - done.missing);
        Ok(bytes)
    }

    fn carry_out(
        &self,
        command: ScsiCommand,
        transfer: CommandBytes<'_>,
        patience: Duration,
    ) -> Result<Completion, ScsiError> {
        let done = self.target.carry_out(&command, transfer, patience);
        let done = done.map_err(|source| ScsiError::Device {
            path: self.path.clone(),
            source,
        })?;
        judged(done)
    }

    /// The drive's form of a durability: the FUA bit, and the command after a write.
    fn means(&self, durability: Durability) -> (Durability, Then) {
        match (durability, self.knows_fua) {
            (Durability::Durable, false) => (Durability::Volatile, Then::Flush),
            (as_asked, _) => (as_asked, Then::Done),
        }
    }

    fn blocks_of(&self, length: usize) -> Result<u32, ScsiError> {
        let missing = length % self.block_bytes;
        let blocks = u32::try_from(length / self.block_bytes);
        match blocks {
            Ok(blocks) if missing == 0 && blocks > 0 => Ok(blocks),
            _ => Err(ScsiError::Short {
                expected: length,
                missing,
            }),
        }
    }
}

fn all_of(expected: usize, missing: usize) -> Result<(), ScsiError> {
    match missing {
        0 => Ok(()),
        _ => Err(ScsiError::Short { expected, missing }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_scsi_device_is_refused_with_its_name() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let failed = ScsiDrive::open(file.path()).expect_err("a plain file");
        let name = file.path().display().to_string();
        assert!(failed.to_string().starts_with(&name), "{failed}");
    }
}
