//! SCSI commands to a drive, past the kernel's block layer: for what that does not do (switching
//! caches, FUA reads, seeks) and for errors that say what happened.
//!
//! ```text
//!   Drive --Command::bytes--> generic (SG_IO on /dev/sgN or /dev/sdX) --> drive
//!         <--answer, Sense---                                        <---
//! ```
//!
//! Commands and answers are bytes in and bytes out, without a drive; only `generic` talks to the
//! kernel. SATA drives understand all this through the kernel's translation (SAT).

mod answer;
mod command;
mod generic;
pub mod passthrough;
pub mod pool;
mod sense;
pub mod switched;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use block::Durability;
pub use block::Switch;

pub use answer::{Caching, Capacity, Identity, Kind, Rotation, Zones, serial};
pub use command::{CACHING_PAGE, Command, Lasting, Page, Values};
pub use sense::Sense;

use block::operation;
use generic::{Completion, Transfer};

/// Why something did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The drive's answer is not what the standard says.
    #[error("the drive's {what} makes no sense: {reason}")]
    Answer {
        /// What was asked for.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The drive says why.
    #[error("{0}")]
    Sense(Sense),
    /// The drive refuses without a reason (SAM-5 5.3).
    #[error("the drive answers with status {0:#04x} ({advice})", advice = status_advice(*.0))]
    Status(u8),
    /// The command did not reach the drive, or did not come back.
    #[error("the host adapter failed with {host:#x}, its driver with {driver:#x} ({advice})", advice = host_advice(*.host))]
    Transport {
        /// The adapter's status.
        host: u16,
        /// The driver's.
        driver: u16,
    },
    /// Fewer bytes came or went than the command says.
    #[error("{missing} of {expected} bytes were not transferred")]
    Short {
        /// How many were to be.
        expected: usize,
        /// How many were not.
        missing: usize,
    },
    /// A switch that the drive has as it is.
    #[error("the drive does not let its {0} be switched")]
    Fixed(&'static str),
    /// The drive took a switch, and has it as before all the same.
    #[error("the drive says that it has switched its caches, and has not")]
    NotSwitched,
    /// Seeks are for the blocks that 32 bits can name.
    #[error("block {0} is too far for a seek")]
    TooFar(u64),
    /// The device could not be opened, or is none that takes SCSI commands.
    #[error("{path}: {source} (is it a SCSI disk, and may this user send commands to it?)")]
    Device {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Failed {
    /// What clients are told.
    pub fn failed(&self) -> operation::OperationError {
        match self {
            Failed::Sense(sense) => sense.failed(),
            Failed::Fixed(_) => operation::OperationError::Unsupported,
            Failed::TooFar(_) => operation::OperationError::Invalid,
            _ => operation::OperationError::Io,
        }
    }
}

/// A drive that takes commands.
#[derive(Debug)]
pub struct Drive {
    path: PathBuf,
    file: File,
    block_bytes: usize,
    identity: Identity,
    capacity: Capacity,
    /// Whether it takes reads and writes with FUA.
    knows_fua: bool,
}

/// What follows a write.
enum Then {
    Done,
    Flush,
}

/// How long a command may take before the kernel gives it up: recovery from an error takes a drive
/// some seconds, and starting to turn half a minute. A choice.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writing a whole cache at random places takes longer. A choice.
const FLUSH_PATIENCE: Duration = Duration::from_secs(300);

/// Events that a drive may tell of, one by one, before it takes a command. A choice: more than two
/// were never seen.
const REPEATS: usize = 8;

/// Room for answers: as long as any page that we ask for.
const ROOM: usize = 512;

impl Drive {
    /// Opens `/dev/sgN` or `/dev/sdX`, and asks who it is.
    ///
    /// # Errors
    /// If it does not open, is not ready, or no disk of blocks that can be written anywhere.
    pub fn open(path: &Path) -> Result<Self, Failed> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.map_err(|source| Failed::Device {
            path: path.to_path_buf(),
            source,
        })?;
        let mut drive = Drive {
            path: path.to_path_buf(),
            file,
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
        };
        let page = drive.ask(Command::inquiry(Page::Standard, ROOM as u16))?;
        drive.identity = Identity::parse(&page)?;
        drive.be_ready()?;
        let answer = drive.ask(Command::read_capacity(ROOM as u32))?;
        drive.capacity = Capacity::parse(&answer)?;
        drive.block_bytes = drive.capacity.block_bytes as usize;
        drive.knows_fua = drive.caching().is_ok_and(|page| page.knows_fua);
        Ok(drive)
    }

    /// Who it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How large it is.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Its serial number.
    ///
    /// # Errors
    /// If it has none, or the command fails.
    pub fn serial(&self) -> Result<String, Failed> {
        serial(&self.ask(Command::inquiry(Page::Serial, ROOM as u16))?)
    }

    /// How fast it turns.
    ///
    /// # Errors
    /// If it does not say, or the command fails.
    pub fn rotation(&self) -> Result<Rotation, Failed> {
        let command = Command::inquiry(Page::Characteristics, ROOM as u16);
        Rotation::parse(&self.ask(command)?)
    }

    /// What it says of zones.
    ///
    /// # Errors
    /// If the command fails, as it does on drives that are older than the page.
    pub fn zones(&self) -> Result<Zones, Failed> {
        let command = Command::inquiry(Page::Characteristics, ROOM as u16);
        Zones::parse(&self.ask(command)?)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads whole blocks. A drive that does not know FUA may answer durable reads from its cache.
    ///
    /// # Errors
    /// If the drive, or the way to it, fails; if `bytes` are no whole blocks.
    pub fn read(&self, first: u64, bytes: &mut [u8], durability: Durability) -> Result<(), Failed> {
        let (fua, _) = self.means(durability);
        let command = Command::read(first, self.blocks_of(bytes)?, fua);
        let expected = bytes.len();
        let done = self.carry_out(command, Transfer::From(bytes), PATIENCE)?;
        all_of(expected, done.missing)
    }

    /// Writes whole blocks. A durable write to a drive that does not know FUA is a write and a
    /// flush.
    ///
    /// # Errors
    /// As [`Drive::read`].
    pub fn write(&self, first: u64, bytes: &[u8], durability: Durability) -> Result<(), Failed> {
        let (fua, then) = self.means(durability);
        let command = Command::write(first, self.blocks_of(bytes)?, fua);
        let done = self.carry_out(command, Transfer::To(bytes), PATIENCE)?;
        all_of(bytes.len(), done.missing)?;
        match then {
            Then::Done => Ok(()),
            Then::Flush => self.flush(),
        }
    }

    /// Ends when all that was written is on the medium.
    ///
    /// # Errors
    /// If the drive, or the way to it, fails.
    pub fn flush(&self) -> Result<(), Failed> {
        let command = Command::synchronize_cache();
        self.carry_out(command, Transfer::None, FLUSH_PATIENCE)?;
        Ok(())
    }

    /// Moves the head to the track of a block.
    ///
    /// # Errors
    /// If the drive does not know the command, or the block is too far for it.
    pub fn seek(&self, block: u64) -> Result<(), Failed> {
        let near = u32::try_from(block).map_err(|_| Failed::TooFar(block))?;
        self.carry_out(Command::seek(near), Transfer::None, PATIENCE)?;
        Ok(())
    }

    /// Its cache switches as they are.
    ///
    /// # Errors
    /// If it has no such page.
    pub fn caching(&self) -> Result<Caching, Failed> {
        self.caching_page(Values::Current)
    }

    /// Sets the cache switches, and looks whether they are so.
    ///
    /// # Errors
    /// [`Failed::Fixed`] if one cannot be changed; then none is.
    pub fn set_caching(&self, wanted: &Caching, lasting: Lasting) -> Result<(), Failed> {
        let before = self.caching()?;
        let changeable = self.caching_page(Values::Changeable)?;
        if let Some(name) = before.refuses(wanted, &changeable) {
            return Err(Failed::Fixed(name));
        }
        let page = wanted.to_select();
        let command = Command::mode_select(lasting, page.len() as u16);
        self.carry_out(command, Transfer::To(&page), PATIENCE)?;
        // Some drives tell whoever changed their modes, too, that somebody did.
        self.be_ready()?;
        let after = self.caching()?;
        let switches = |page: &Caching| (page.write_cache(), page.look_ahead(), page.read_cache());
        if switches(&after) != switches(wanted) {
            return Err(Failed::NotSwitched);
        }
        Ok(())
    }

    fn caching_page(&self, values: Values) -> Result<Caching, Failed> {
        let command = Command::mode_sense(CACHING_PAGE, values, ROOM as u16);
        Caching::parse(&self.ask(command)?)
    }

    /// A drive tells of each thing that happened to it before it takes commands (SAM-5 5.14).
    fn be_ready(&self) -> Result<(), Failed> {
        let mut told = 0;
        loop {
            match self.carry_out(Command::test_unit_ready(), Transfer::None, PATIENCE) {
                Err(Failed::Sense(sense)) if sense.is_unit_attention() && told < REPEATS => {
                    tracing::info!(drive = %self.path.display(), %sense, "the drive says");
                    told += 1;
                }
                other => return other.map(|_| ()),
            }
        }
    }

    /// The answer to a command, as long as it is.
    fn ask(&self, command: Command) -> Result<Vec<u8>, Failed> {
        let mut bytes = vec![0; ROOM];
        let done = self.carry_out(command, Transfer::From(&mut bytes), PATIENCE)?;
        bytes.truncate(ROOM - done.missing);
        Ok(bytes)
    }

    fn carry_out(
        &self,
        command: Command,
        transfer: Transfer<'_>,
        patience: Duration,
    ) -> Result<Completion, Failed> {
        let done = generic::carry_out(&self.file, &command, transfer, patience);
        let done = done.map_err(|source| Failed::Device {
            path: self.path.clone(),
            source,
        })?;
        judged(done)
    }

    /// How the drive does what is asked: which bit a command has, and what a write needs after it.
    fn means(&self, durability: Durability) -> (Durability, Then) {
        match (durability, self.knows_fua) {
            (Durability::Durable, false) => (Durability::Volatile, Then::Flush),
            (as_asked, _) => (as_asked, Then::Done),
        }
    }

    fn blocks_of(&self, bytes: &[u8]) -> Result<u32, Failed> {
        let missing = bytes.len() % self.block_bytes;
        let blocks = u32::try_from(bytes.len() / self.block_bytes);
        match blocks {
            Ok(blocks) if missing == 0 && blocks > 0 => Ok(blocks),
            _ => Err(Failed::Short {
                expected: bytes.len(),
                missing,
            }),
        }
    }
}

/// Statuses of a drive (SAM-5 table 36).
const GOOD: u8 = 0x00;
const CHECK_CONDITION: u8 = 0x02;
const BUSY: u8 = 0x08;
const RESERVED: u8 = 0x18;
const TASK_SET_FULL: u8 = 0x28;

/// The driver's status if there is sense (the kernel's documentation, scsi-generic).
const DRIVER_HAS_SENSE: u16 = 0x08;

/// Whether the command succeeded, from all that was said of it.
fn judged(done: Completion) -> Result<Completion, Failed> {
    let (host, driver) = (done.host, done.driver & !DRIVER_HAS_SENSE);
    if host != 0 || driver != 0 {
        return Err(Failed::Transport { host, driver });
    }
    match (done.status, Sense::parse(&done.sense)) {
        (GOOD, _) => Ok(done),
        (CHECK_CONDITION, Some(sense)) if sense.is_recovered() => {
            tracing::warn!(%sense, "the drive says");
            Ok(done)
        }
        (CHECK_CONDITION, Some(sense)) => Err(Failed::Sense(sense)),
        (status, _) => Err(Failed::Status(status)),
    }
}

fn all_of(expected: usize, missing: usize) -> Result<(), Failed> {
    match missing {
        0 => Ok(()),
        _ => Err(Failed::Short { expected, missing }),
    }
}

fn status_advice(status: u8) -> &'static str {
    match status {
        BUSY | TASK_SET_FULL => "it has too many commands: give it fewer at a time",
        RESERVED => "another host has reserved it: release it there",
        _ => "look at the kernel's log",
    }
}

/// For the adapter's statuses (the kernel's `scsi_status.h`).
fn host_advice(host: u16) -> &'static str {
    match host {
        0x01 | 0x04 => "the drive is not there any more: look at its power and its cable",
        0x03 => "the drive did not answer in time: it may be recovering, or defective",
        0x05..=0x08 => "the command was aborted or the bus was reset: repeat it",
        _ => "look at the kernel's log",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(status: u8, host: u16, driver: u16, sense: &[u8]) -> Completion {
        Completion {
            status,
            host,
            driver,
            missing: 0,
            sense: sense.to_vec(),
        }
    }

    #[test]
    fn what_a_drive_says_is_judged() {
        assert!(judged(done(GOOD, 0, 0, &[])).is_ok());
        let recovered = [0x72, 0x01, 0x17, 0x01];
        assert!(judged(done(CHECK_CONDITION, 0, DRIVER_HAS_SENSE, &recovered)).is_ok());
        let bad = [0x72, 0x03, 0x11, 0x00];
        let failed = judged(done(CHECK_CONDITION, 0, DRIVER_HAS_SENSE, &bad)).err();
        let failed = failed.expect("a medium error");
        assert_eq!(failed.failed(), operation::OperationError::Io);
        assert!(
            failed.to_string().starts_with("sense 3/11/00: "),
            "{failed}"
        );
        assert!(matches!(
            judged(done(BUSY, 0, 0, &[])),
            Err(Failed::Status(BUSY))
        ));
        assert!(judged(done(CHECK_CONDITION, 0, 0, &[])).is_err());
        let gone = judged(done(GOOD, 1, 0, &[])).expect_err("no drive");
        assert!(gone.to_string().contains("cable"), "{gone}");
    }

    #[test]
    fn what_is_no_scsi_device_is_refused_with_its_name() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let failed = Drive::open(file.path()).expect_err("a plain file");
        let name = file.path().display().to_string();
        assert!(failed.to_string().starts_with(&name), "{failed}");
    }
}
