//! A drive for the time of probing: its look-ahead and write cache are off, reads come from the medium, and
//! the switches are as before at the end.
//!
//! ```text
//!   Action::Read, durable   --> READ (16) with FUA, or VERIFY (16): the one that takes revolutions
//!   Action::Read, volatile  --> READ (16)
//!   Action::SetLookAhead    --> the switch, recorded
//!   Action::Seek            --> SEEK (10)
//! ```

use std::path::Path;
use std::sync::OnceLock;

use block::{Action, Durability, Duration, Instant, Switch};

use super::cache_switch::CacheSwitch;
use super::record::RecordError;
use super::switched::{SwitchReport, Switched};
use super::{ScsiDrive, ScsiError};

/// How a drive is made to read from the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumRead {
    /// Reads with FUA.
    Fua,
    /// Verifications, which transfer nothing.
    Verify,
}

/// A drive for the time of probing.
#[derive(Debug)]
pub struct ProbedDrive {
    switched: Switched,
    /// The longest command in bytes.
    most_bytes: usize,
    medium: OnceLock<MediumRead>,
}

/// Reads of one block that tell whether they come from the medium, and how many of them have to. A choice:
/// a host may stall one or two.
const TRIES: usize = 8;
const AGREEING: usize = 6;

/// A read of a block right after another one of it takes a revolution on the medium: at least this, by the
/// margin that the profiler has below the shortest revolution (20,000 rpm).
const SHORTEST: Duration = Duration::from_micros(2_320);

impl ProbedDrive {
    /// Takes a drive, with a record of its switches in `folder`. Switches that a killed process has left
    /// are put back first, and reported.
    ///
    /// # Errors
    /// If another process has the record of this drive, or it cannot be written.
    pub fn claim(
        drive: ScsiDrive,
        folder: &Path,
        boot: &str,
        most_bytes: usize,
    ) -> Result<(Self, Vec<SwitchReport>), RecordError> {
        let block = drive.capacity().block_bytes as usize;
        let (switched, reports) = Switched::claim(drive, folder, boot).map_err(|it| it.error)?;
        let this = ProbedDrive {
            switched,
            most_bytes: (most_bytes / block).max(1) * block,
            medium: OnceLock::new(),
        };
        Ok((this, reports))
    }

    /// The drive.
    pub fn drive(&self) -> &ScsiDrive {
        self.switched.drive()
    }

    /// The longest command in bytes: whole blocks.
    pub fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// Turns a switch off for the time of probing.
    ///
    /// # Errors
    /// If it cannot be turned.
    pub fn turn_off(&self, switch: CacheSwitch) -> Result<(), ScsiError> {
        self.switched.set(switch, Switch::Off).map(|_| ())
    }

    /// Finds out how the drive reads from the medium, by the time that repeated reads of a block take. From
    /// then on durable reads are done that way.
    pub fn find_medium_read(&self, clock: &dyn Fn() -> Instant) -> Option<MediumRead> {
        let ways = [MediumRead::Fua, MediumRead::Verify];
        let found = ways.into_iter().find(|way| self.takes_turns(*way, clock))?;
        Some(*self.medium.get_or_init(|| found))
    }

    fn takes_turns(&self, way: MediumRead, clock: &dyn Fn() -> Instant) -> bool {
        let capacity = self.drive().capacity();
        let mut block = vec![0; capacity.block_bytes as usize];
        let mut read = || self.read_from_medium(way, capacity.blocks / 3, &mut block);
        if read().is_err() {
            return false;
        }
        let mut agreeing = 0;
        for _ in 0..TRIES {
            let begun = clock();
            let done = read();
            agreeing += usize::from(done.is_ok() && clock().since(begun) >= SHORTEST);
        }
        agreeing >= AGREEING
    }

    /// Executes an action. `bytes` has the room of its extent.
    ///
    /// # Errors
    /// If the drive or the transport fails, or the drive does not have the command.
    pub fn carry_out(&self, action: Action, bytes: &mut [u8]) -> Result<(), ScsiError> {
        let drive = self.drive();
        let medium = self.medium.get().copied();
        match action {
            Action::Read { extent, durability } => match (durability, medium) {
                (Durability::Durable, Some(way)) => {
                    self.read_from_medium(way, extent.start().0, bytes)
                }
                _ => self.parts(extent.start().0, bytes, |first, part| {
                    drive.read(first, part, Durability::Volatile)
                }),
            },
            Action::Write { extent, durability } => {
                self.parts(extent.start().0, bytes, |first, part| {
                    drive.write(first, part, durability)
                })
            }
            Action::Flush => self.attempt("a flush", || drive.flush()),
            Action::Seek { to } => self.attempt("a seek", || drive.seek(to.0)),
            Action::SetLookAhead(to) => self.set(CacheSwitch::LookAhead, to),
            Action::SetWriteCache(to) => self.set(CacheSwitch::WriteCache, to),
        }
    }

    /// Turns all switches back, the last one first. They may not be turned afterwards.
    pub fn restore(&self) -> Vec<SwitchReport> {
        self.switched.finish()
    }

    fn set(&self, switch: CacheSwitch, to: Switch) -> Result<(), ScsiError> {
        self.switched.set(switch, to).map(|_| ())
    }

    fn read_from_medium(
        &self,
        way: MediumRead,
        first: u64,
        bytes: &mut [u8],
    ) -> Result<(), ScsiError> {
        let drive = self.drive();
        match way {
            MediumRead::Fua => {
                self.parts(first, bytes, |first, part| drive.read_by_fua(first, part))
            }
            MediumRead::Verify => {
                self.attempt("a verification", || drive.verify(first, bytes.len()))
            }
        }
    }

    /// Executes a command in parts that the drive takes.
    fn parts(
        &self,
        mut first: u64,
        bytes: &mut [u8],
        carry_out: impl Fn(u64, &mut [u8]) -> Result<(), ScsiError>,
    ) -> Result<(), ScsiError> {
        let block = self.drive().capacity().block_bytes as usize;
        for part in bytes.chunks_mut(self.most_bytes) {
            self.attempt("a transfer", || carry_out(first, part))?;
            first += (part.len() / block) as u64;
        }
        Ok(())
    }

    fn attempt<T>(
        &self,
        name: &str,
        work: impl FnMut() -> Result<T, ScsiError>,
    ) -> Result<T, ScsiError> {
        self.switched.attempt(&|| name.to_owned(), work)
    }
}
