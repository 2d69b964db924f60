//! What takes SCSI commands: a command descriptor block and bytes in; status, sense and bytes out.
//!
//! ```text
//!   ScsiDrive --CDB, bytes--> ScsiTarget: the kernel's SG_IO, or a target of a test in this process
//!             <--Completion--
//! ```

use std::fmt;
use std::io;
use std::time::Duration;

use super::{ScsiCommand, ScsiError, Sense};

/// A logical unit that executes SCSI commands.
pub trait ScsiTarget: fmt::Debug + Send + Sync {
    /// Executes a command and waits for its end.
    ///
    /// # Errors
    /// If the command cannot be sent. The drive's errors are in the completion.
    fn carry_out(
        &self,
        command: &ScsiCommand,
        transfer: CommandBytes<'_>,
        patience: Duration,
    ) -> io::Result<Completion>;
}

/// The data of a command.
#[derive(Debug)]
pub enum CommandBytes<'a> {
    /// No data.
    None,
    /// Bytes from the drive.
    From(&'a mut [u8]),
    /// Bytes to the drive.
    To(&'a [u8]),
}

/// The completion of a command.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    /// The status of the drive.
    pub status: u8,
    /// The status of the adapter.
    pub host: u16,
    /// The status of the adapter's driver.
    pub driver: u16,
    /// The number of bytes that were not transferred.
    pub missing: usize,
    /// The sense data, if there is any.
    pub sense: Vec<u8>,
}

/// Statuses of a drive (SAM-5 table 36).
pub const GOOD: u8 = 0x00;
/// The drive has sense data.
pub const CHECK_CONDITION: u8 = 0x02;
const BUSY: u8 = 0x08;
const RESERVED: u8 = 0x18;
const TASK_SET_FULL: u8 = 0x28;

/// The driver's status with sense data (the kernel's documentation, scsi-generic).
const DRIVER_HAS_SENSE: u16 = 0x08;

/// Checks all statuses of a completion.
pub(super) fn judged(done: Completion) -> Result<Completion, ScsiError> {
    let (host, driver) = (done.host, done.driver & !DRIVER_HAS_SENSE);
    if host != 0 || driver != 0 {
        return Err(ScsiError::Transport { host, driver });
    }
    match (done.status, Sense::parse(&done.sense)) {
        (GOOD, _) => Ok(done),
        (CHECK_CONDITION, Some(sense)) if sense.is_recovered() => {
            tracing::warn!(%sense, "the drive says");
            Ok(done)
        }
        (CHECK_CONDITION, Some(sense)) => Err(ScsiError::Sense(sense)),
        (status, _) => Err(ScsiError::Status(status)),
    }
}

pub(super) fn status_advice(status: u8) -> &'static str {
    match status {
        BUSY | TASK_SET_FULL => "it has too many commands: give it fewer at a time",
        RESERVED => "another host has reserved it: release it there",
        _ => "look at the kernel's log",
    }
}

/// Advice for the adapter's statuses (the kernel's `scsi_status.h`).
pub(super) fn host_advice(host: u16) -> &'static str {
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
    use block::operation;

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
            Err(ScsiError::Status(BUSY))
        ));
        assert!(judged(done(CHECK_CONDITION, 0, 0, &[])).is_err());
        let gone = judged(done(GOOD, 1, 0, &[])).expect_err("no drive");
        assert!(gone.to_string().contains("cable"), "{gone}");
    }
}
