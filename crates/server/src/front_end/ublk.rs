//! A volume as a block device of the kernel's: `/dev/ublkbN`.
//!
//! ```text
//!   /dev/ublkb0 <- file systems, programs
//!        |
//!     ublk_drv --FETCH ends: a request--> queue thread --Pending--> Volume (the event loop)
//!              <-COMMIT_AND_FETCH-------       ^---bell, when Pending::end was called on any thread
//! ```
//!
//! The queue's thread never works on requests itself and never waits for one: it passes them on,
//! as many as the queue is deep, and passes their ends back. Bytes are copied once, by the kernel,
//! between the client's pages and the request's buffer.
//!
//! A device outlives its server. If the server dies, requests wait in the kernel, those that were
//! under way too, until [`Device::recover`] serves the device again (the kernel's documentation,
//! block/ublk, "user recovery"). That asks of volumes that a request may be carried out twice: what
//! reads and writes of blocks are.

mod buffer;
mod control;
mod exported;
mod pending;
mod queue;
mod wire;

use std::io;
use std::thread::JoinHandle;

pub use buffer::Buffer;
pub use control::{Control, DeviceState, Found};
pub use exported::{Exported, Tally};
pub use pending::Pending;

use pending::Ends;
use wire::Parameters;

/// What serves the requests.
pub trait Volume: Send + Sync + 'static {
    /// Takes a request. It is called on the queue's thread and must not wait for anything: the
    /// request ends later, by [`Pending::end`] on any thread.
    fn submit(&self, request: Pending);
}

/// What the kernel is told of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceShape {
    /// Its length in bytes: a multiple of the logical block.
    pub bytes: u64,
    /// Bytes of a logical block: a power of two from 512 to 4096.
    pub logical_block: u32,
    /// Bytes of a physical block: a power of two, not less than the logical block.
    pub physical_block: u32,
    /// Whether clients are told that seeking costs something.
    pub medium: Medium,
    /// Whether they may write.
    pub access: Access,
    /// Whether space can be given back.
    pub space: Trims,
}

/// What of a device its clients rely on, so that no other server may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes of a logical block.
    pub logical_block: u32,
    /// Whether they may write.
    pub access: Access,
}

impl DeviceShape {
    /// What of it clients rely on.
    pub fn face(&self) -> Face {
        Face {
            bytes: self.bytes,
            logical_block: self.logical_block,
            access: self.access,
        }
    }
}

/// What the volume is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A disk that turns: the kernel keeps requests in order of address for it.
    Rotational,
    /// Anything else.
    Solid,
}

/// What clients may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and write.
    ReadWrite,
    /// Read.
    ReadOnly,
}

/// Whether space can be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trims {
    /// Discards are passed on.
    Passed,
    /// There are none.
    None,
}

/// How the device is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSetting {
    /// Requests that may be under way: the kernel keeps more of them waiting. At most 4096.
    pub depth: u16,
    /// Bytes of the longest request: larger ones come in pieces. At most 32 MiB.
    pub longest: u32,
    /// What the driver keeps with the device, by which servers know their own. It means nothing to
    /// the driver.
    pub mark: u64,
    /// What becomes of requests when the server dies.
    pub orphans: Orphans,
}

/// What becomes of requests to a device whose server has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphans {
    /// They wait until another server recovers the device.
    Wait,
    /// They fail, and the device with them: what it held is gone, too.
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

/// Why there is no device, or not any more.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// No `/dev/ublk-control`, or it does not open.
    #[error("/dev/ublk-control: {error}: {advice}")]
    NoDriver {
        /// Why not.
        error: io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// The driver takes its commands through io_uring.
    #[error(
        "no io_uring: {0}: expected a kernel with it, and 0 in /proc/sys/kernel/io_uring_disabled"
    )]
    NoRing(io::Error),
    /// Nobody knows which devices there are.
    #[error("/sys/class/ublk-char: {source}: expected sysfs to be mounted")]
    List {
        /// Why not.
        source: io::Error,
    },
    /// Another process serves it.
    #[error(
        "/dev/ublkb{device} is served by process {process}, which is alive: expected it to have ended"
    )]
    Alive {
        /// The device's number.
        device: u32,
        /// Its server.
        process: i32,
    },
    /// The driver refused.
    #[error("ublk device {device}: {what}: {source}{}", advice(source))]
    Refused {
        /// The device's number.
        device: u32,
        /// What was asked of the driver.
        what: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// A shape that the kernel does not take.
    #[error("a ublk device cannot have {0}")]
    Shape(&'static str),
    /// The queue's thread could not be set up, or ended.
    #[error("the queue of ublk device {device}: {source}")]
    Queue {
        /// The device's number.
        device: u32,
        /// Why.
        source: io::Error,
    },
}

/// A device that is served.
///
/// If it is dropped without [`Device::stop`], it is served on until the process ends, and can be
/// recovered afterwards.
#[derive(Debug)]
pub struct Device {
    control: Control,
    number: u32,
    queue: JoinHandle<io::Result<()>>,
}

impl Device {
    /// Adds a device, with the number that is asked for or any, and starts to serve it.
    ///
    /// # Errors
    /// If there is no driver, or it refuses; then there is no device.
    pub fn start(
        number: Option<u32>,
        shape: &DeviceShape,
        service: DeviceSetting,
        volume: impl Volume,
    ) -> Result<Self, UblkError> {
        let parameters = Parameters::of(shape, service.longest)?;
        let mut control = Control::open()?;
        let number = control.add(number, service)?;
        let begun = control.set_parameters(number, &parameters).and_then(|()| {
            let queue = queue::spawn(number, service, Box::new(volume))?;
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
                // The first failure is the one to tell.
                let _ = control.delete(number);
                Err(failed)
            }
        }
    }

    /// Serves a device whose server has died. Requests that were under way come again.
    ///
    /// # Errors
    /// If there is no such device, or its server is alive.
    pub fn recover(number: u32, volume: impl Volume) -> Result<Self, UblkError> {
        let mut control = Control::open()?;
        let service = control.service(number)?;
        control.begin_recovery(number)?;
        let queue = queue::spawn(number, service, Box::new(volume))?;
        control.end_recovery(number)?;
        Ok(Device {
            control,
            number,
            queue,
        })
    }

    /// The device's number: it is `/dev/ublkbN`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Has what is in the kernel's memory written, waits for the requests under way, and removes the
    /// device. The volume must still serve. Whoever has the device open gets errors from then on.
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

/// What to do about an answer of the driver, where that is known.
fn advice(answer: &io::Error) -> &'static str {
    match answer.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ": expected to run as root",
        _ => "",
    }
}
