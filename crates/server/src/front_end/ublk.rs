//! A volume as a block device of the kernel's: `/dev/ublkbN`.
//!
//! ```text
//!   /dev/ublkb0 <- file systems, programs
//!        |
//!     ublk_drv --FETCH ends: a request--> queue thread --Pending--> Volume (the event loop)
//!              <-COMMIT_AND_FETCH-------       ^---doorbell, when Pending::end was called on any thread
//! ```
//!
//! The queue's thread neither executes requests nor waits for one. It passes up to a queue's depth of
//! them to the volume, and their results back to the driver. The kernel copies the bytes once, between
//! the client's pages and the request's buffer.
//!
//! A device outlives its server. If the server dies, its requests wait in the kernel until
//! [`Device::recover`] serves the device again (the kernel's documentation, block/ublk, "user
//! recovery"). Requests in flight are repeated, so requests must be idempotent. Reads and writes of
//! blocks are.

mod buffer;
mod control;
mod exported;
mod pending;
mod queue;
mod wire;

use std::io;
use std::thread::JoinHandle;

pub use buffer::RequestBuffer;
pub use control::{Control, DeviceState, ListedDevice};
pub use exported::{DeviceCounters, Exported};
pub use pending::Pending;

use pending::RequestResults;
use wire::Parameters;

/// The volume that executes a device's requests.
pub trait Volume: Send + Sync + 'static {
    /// Submits a request. The queue's thread calls it, so it must not block. [`Pending::end`] ends the
    /// request later, on any thread.
    fn submit(&self, request: Pending);
}

/// The properties of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceShape {
    /// The length in bytes: a multiple of the logical block.
    pub bytes: u64,
    /// Bytes of a logical block: a power of two from 512 to 4096.
    pub logical_block: u32,
    /// Bytes of a physical block: a power of two, not less than the logical block.
    pub physical_block: u32,
    /// The medium that the kernel assumes.
    pub medium: Medium,
    /// Whether clients may write.
    pub access: Access,
    /// Whether the device accepts discards.
    pub space: Trims,
}

/// The properties of a device that clients rely on. No later server may change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedProperties {
    /// The length in bytes.
    pub bytes: u64,
    /// Bytes of a logical block.
    pub logical_block: u32,
    /// Whether clients may write.
    pub access: Access,
}

impl DeviceShape {
    /// The properties that clients rely on.
    pub fn fixed(&self) -> FixedProperties {
        FixedProperties {
            bytes: self.bytes,
            logical_block: self.logical_block,
            access: self.access,
        }
    }
}

/// The medium of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A rotating disk. The kernel sorts requests by address for it.
    Rotational,
    /// Anything else.
    Solid,
}

/// The access of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and write.
    ReadWrite,
    /// Read.
    ReadOnly,
}

/// Whether a device accepts discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trims {
    /// The volume executes discards.
    Passed,
    /// The device has no discards.
    None,
}

/// The settings of a device's queue and of its recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSetting {
    /// The queue depth in requests, at most 4096. Further requests wait in the kernel.
    pub depth: u16,
    /// Bytes of the longest request, at most 32 MiB. The kernel splits longer ones.
    pub longest: u32,
    /// A number that the driver keeps with the device. Servers recognise their devices by it.
    pub mark: u64,
    /// The fate of requests when the server dies.
    pub orphans: Orphans,
}

/// The fate of requests to a device whose server has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphans {
    /// They wait until another server recovers the device.
    Wait,
    /// They fail, and so does the device. Its contents are lost.
    Fail,
}

impl Default for DeviceSetting {
    /// 128 requests (as nbd and virtio have) of 512 KiB (the kernel's own default for ublk).
    fn default() -> Self {
        DeviceSetting {
            depth: 128,
            longest: 512 << 10,
            mark: 0,
            orphans: Orphans::Wait,
        }
    }
}

/// The reason for which a device cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// `/dev/ublk-control` does not exist or does not open.
    #[error("/dev/ublk-control: {error}: {advice}")]
    NoDriver {
        /// The error of the system.
        error: io::Error,
        /// The advice for the user.
        advice: &'static str,
    },
    /// The kernel has no io_uring, which carries the driver's commands.
    #[error(
        "no io_uring: {0}: expected a kernel with it, and 0 in /proc/sys/kernel/io_uring_disabled"
    )]
    NoRing(io::Error),
    /// The list of devices cannot be read.
    #[error("/sys/class/ublk-char: {source}: expected sysfs to be mounted")]
    List {
        /// The error of the system.
        source: io::Error,
    },
    /// Another process serves the device.
    #[error(
        "/dev/ublkb{device} is served by process {process}, which is alive: expected it to have ended"
    )]
    Alive {
        /// The device's number.
        device: u32,
        /// The process of its server.
        process: i32,
    },
    /// The driver refused a command.
    #[error("ublk device {device}: {what}: {source}{}", advice(source))]
    Refused {
        /// The device's number.
        device: u32,
        /// The refused command.
        what: &'static str,
        /// The driver's answer.
        source: io::Error,
    },
    /// The kernel does not support these properties of a device.
    #[error("a ublk device cannot have {0}")]
    Shape(&'static str),
    /// The queue's thread could not be set up, or ended.
    #[error("the queue of ublk device {device}: {source}")]
    Queue {
        /// The device's number.
        device: u32,
        /// The error of the system.
        source: io::Error,
    },
}

/// A running device.
///
/// A device that is dropped without [`Device::stop`] runs until the process ends, and can be recovered
/// afterwards.
#[derive(Debug)]
pub struct Device {
    control: Control,
    number: u32,
    queue: JoinHandle<io::Result<()>>,
}

impl Device {
    /// Adds and starts a device, with the given number or any free one.
    ///
    /// # Errors
    /// If there is no driver, or it refuses. Then there is no device.
    pub fn start(
        number: Option<u32>,
        shape: &DeviceShape,
        setting: DeviceSetting,
        volume: impl Volume,
    ) -> Result<Self, UblkError> {
        let parameters = Parameters::of(shape, setting.longest)?;
        let mut control = Control::open()?;
        let number = control.add(number, setting)?;
        let begun = control.set_parameters(number, &parameters).and_then(|()| {
            let queue = queue::spawn(number, setting, Box::new(volume))?;
            control.start(number)?;
            Ok(queue)
        });
        match begun {
            Ok(queue) => Ok(Device {
                control,
                number,
                queue,
            }),
            Err(failed) => {
                // The first failure is reported.
                let _ = control.delete(number);
                Err(failed)
            }
        }
    }

    /// Recovers a device whose server has died. The driver repeats the requests in flight.
    ///
    /// # Errors
    /// If there is no such device, or its server is alive.
    pub fn recover(number: u32, volume: impl Volume) -> Result<Self, UblkError> {
        let mut control = Control::open()?;
        let setting = control.setting(number)?;
        control.begin_recovery(number)?;
        let queue = queue::spawn(number, setting, Box::new(volume))?;
        control.end_recovery(number)?;
        Ok(Device {
            control,
            number,
            queue,
        })
    }

    /// The device's number N in `/dev/ublkbN`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Writes the kernel's dirty pages, waits for the requests in flight, and removes the device. The
    /// volume must still execute requests. Later accesses through open descriptors fail.
    ///
    /// # Errors
    /// If the driver refuses, or the queue had failed.
    pub fn stop(mut self) -> Result<(), UblkError> {
        if let Err(error) = Control::write_back(self.number) {
            let device = self.number;
            tracing::warn!(device, %error, "not all that was written to a ublk device is on its volume");
        }
        self.control.stop(self.number)?;
        let device = self.number;
        let ended = self.queue.join().unwrap_or_else(|_| {
            let reason = "its thread has panicked";
            Err(io::Error::other(reason))
        });
        self.control.delete(device)?;
        ended.map_err(|source| UblkError::Queue { device, source })
    }
}

/// The advice for an error of the driver, if there is any.
fn advice(answer: &io::Error) -> &'static str {
    match answer.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ": expected to run as root",
        _ => "",
    }
}
