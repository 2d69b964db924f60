//! The driver's control device: it adds, describes, starts, stops and deletes devices.

#![allow(
    unsafe_code,
    reason = "the driver takes its commands through io_uring, which hands addresses to the kernel"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::wire::{self, DEVICE_RECORD_BYTES, DeviceRecord, Parameters};
use super::{DeviceSetting, FixedProperties, Orphans, UblkError};

/// The open control device.
pub struct Control {
    /// Its entries have 128 bytes, 80 of which are the command's.
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    file: File,
}

/// The state of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// Requests fail: the device has not started, or has stopped.
    Dead,
    /// A server executes requests.
    Live,
    /// Requests wait: the server died, and another may recover the device.
    Waiting,
    /// Requests fail: the server died, and another may recover the device.
    Failing,
}

/// A device that the driver lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedDevice {
    /// The number N in `/dev/ublkbN`.
    pub number: u32,
    /// The mark of its server: see [`DeviceSetting::mark`].
    pub mark: u64,
    /// The state.
    pub state: DeviceState,
    /// The properties that clients rely on.
    pub fixed: FixedProperties,
}

const PATH: &str = "/dev/ublk-control";

const NOT_LOADED: &str =
    "the kernel's module ublk_drv is not loaded: `modprobe ublk_drv`, from Linux 6.0 on";
const NOT_ALLOWED: &str = "ublk devices are made by root: begin the service as root";

/// `BLKFLSBUF` of the kernel's `linux/fs.h`: `_IO(0x12, 97)`.
const WRITE_BACK: libc::Ioctl = 0x1261;

/// The folder in which the kernel lists devices, as `ublkcN`.
const LIST: &str = "/sys/class/ublk-char";

/// How often, and how long apart, the driver is asked whether a dead server has been cleared away:
/// 10 s together. A choice, far above the milliseconds that it takes.
const RECOVERY_TRIES: u32 = 1000;
const RECOVERY_PAUSE: Duration = Duration::from_millis(10);

impl Control {
    /// Opens the control device.
    ///
    /// # Errors
    /// If there is no driver or no io_uring, or this user may not use it.
    pub fn open() -> Result<Self, UblkError> {
        let file = File::options().read(true).write(true).open(PATH);
        let file = file.map_err(|error| UblkError::NoDriver {
            advice: match error.kind() {
                io::ErrorKind::PermissionDenied => NOT_ALLOWED,
                _ => NOT_LOADED,
            },
            error,
        })?;
        // One command at a time.
        let ring = IoUring::builder().build(2).map_err(UblkError::NoRing)?;
        Ok(Control { ring, file })
    }

    /// All devices of the driver, of any server.
    ///
    /// # Errors
    /// If the driver does not describe one of them.
    pub fn devices(&mut self) -> Result<Vec<ListedDevice>, UblkError> {
        let mut found = Vec::new();
        for number in numbers()? {
            match self.found(number) {
                Ok(device) => found.push(device),
                // The device was deleted meanwhile, or belongs to another user.
                Err(UblkError::Refused { source, .. })
                    if matches!(source.raw_os_error(), Some(libc::ENODEV | libc::EINVAL)) => {}
                Err(failed) => return Err(failed),
            }
        }
        Ok(found)
    }

    /// The description of a device whose server has died. It waits for the end of a server that was
    /// just killed.
    ///
    /// # Errors
    /// If its server is alive, or the device does not exist any more.
    pub fn orphan(&mut self, device: u32) -> Result<ListedDevice, UblkError> {
        for _ in 0..RECOVERY_TRIES {
            let found = self.found(device)?;
            if found.state != DeviceState::Live {
                return Ok(found);
            }
            thread::sleep(RECOVERY_PAUSE);
        }
        let process = self.record(device)?.process;
        Err(UblkError::Alive { device, process })
    }

    /// Stops and deletes a device without a server. Its requests fail.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn remove(&mut self, device: u32) -> Result<(), UblkError> {
        self.stop(device)?;
        self.delete(device)
    }

    fn found(&mut self, device: u32) -> Result<ListedDevice, UblkError> {
        let record = self.record(device)?;
        let mut parameters = Parameters::unknown();
        let bytes = parameters.bytes_mut();
        self.command_with_bytes(wire::GET_PARAMETERS, "its parameters", device, bytes)?;
        Ok(ListedDevice {
            number: device,
            mark: record.mark,
            state: match record.state {
                1 => DeviceState::Live,
                2 => DeviceState::Waiting,
                3 => DeviceState::Failing,
                _ => DeviceState::Dead,
            },
            fixed: parameters.fixed(),
        })
    }

    /// Adds a device and returns its number.
    pub(super) fn add(
        &mut self,
        device: Option<u32>,
        setting: DeviceSetting,
    ) -> Result<u32, UblkError> {
        if setting.depth == 0 || setting.depth > wire::DEEPEST {
            return Err(UblkError::Shape("a queue that is not from 1 to 4096 deep"));
        }
        if setting.longest < 4096 || setting.longest > wire::LONGEST {
            let what = "a longest request that is not from 4 KiB to 32 MiB";
            return Err(UblkError::Shape(what));
        }
        let device = device.unwrap_or(u32::MAX);
        let mut bytes = DeviceRecord::new(device, setting).bytes();
        self.command_with_bytes(wire::ADD_DEVICE, "to add it", device, &mut bytes)?;
        Ok(DeviceRecord::parse(&bytes).device)
    }

    /// The settings of the device's first server.
    pub(super) fn setting(&mut self, device: u32) -> Result<DeviceSetting, UblkError> {
        let record = self.record(device)?;
        if !record.is_recoverable() {
            let source = io::Error::other("it was added to end with its server");
            let what = "to recover it";
            return Err(refused(device, what)(source));
        }
        Ok(DeviceSetting {
            depth: record.depth,
            longest: record.longest,
            mark: record.mark,
            orphans: Orphans::Wait,
        })
    }

    pub(super) fn set_parameters(
        &mut self,
        device: u32,
        parameters: &Parameters,
    ) -> Result<(), UblkError> {
        let mut bytes = *parameters.bytes();
        let what = "to set its parameters";
        self.command_with_bytes(wire::SET_PARAMETERS, what, device, &mut bytes)
    }

    /// Every place of its queue must have been fetched for, or this waits for ever.
    pub(super) fn start(&mut self, device: u32) -> Result<(), UblkError> {
        let own = u64::from(std::process::id());
        self.command_with_number(wire::START_DEVICE, "to start it", device, own)
    }

    /// Stops a device after its requests in flight.
    pub(super) fn stop(&mut self, device: u32) -> Result<(), UblkError> {
        self.command_with_number(wire::STOP_DEVICE, "to stop it", device, 0)
    }

    /// Deletes a device after its last close. Drivers before Linux 6.9 wait for that.
    pub(super) fn delete(&mut self, device: u32) -> Result<(), UblkError> {
        let what = "to delete it";
        match self.command_with_number(wire::DELETE_DEVICE_ASYNC, what, device, 0) {
            Err(UblkError::Refused { source, .. })
                if matches!(source.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL)) =>
            {
                self.command_with_number(wire::DELETE_DEVICE, what, device, 0)
            }
            other => other,
        }
    }

    /// Has the kernel write the dirty pages of the device and of its file system.
    pub(super) fn write_back(device: u32) -> io::Result<()> {
        let file = File::open(format!("/dev/ublkb{device}"))?;
        // SAFETY: this request has no argument.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), WRITE_BACK) };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Begins the recovery. The driver answers "busy" until it has released the dead server's resources.
    pub(super) fn begin_recovery(&mut self, device: u32) -> Result<(), UblkError> {
        let mut tries = 0;
        loop {
            let what = "to begin to recover it (is its server alive?)";
            let begun = self.command_with_number(wire::BEGIN_RECOVERY, what, device, 0);
            match begun {
                Err(UblkError::Refused { source, .. })
                    if source.kind() == io::ErrorKind::ResourceBusy && tries < RECOVERY_TRIES =>
                {
                    tries += 1;
                    thread::sleep(RECOVERY_PAUSE);
                }
                other => return other,
            }
        }
    }

    /// Every place of its queue must have been fetched for, or this waits for ever.
    pub(super) fn end_recovery(&mut self, device: u32) -> Result<(), UblkError> {
        let own = u64::from(std::process::id());
        self.command_with_number(wire::END_RECOVERY, "to recover it", device, own)
    }

    fn record(&mut self, device: u32) -> Result<DeviceRecord, UblkError> {
        let mut bytes = [0; DEVICE_RECORD_BYTES];
        self.command_with_bytes(wire::GET_DEVICE, "what it is", device, &mut bytes)?;
        Ok(DeviceRecord::parse(&bytes))
    }

    /// Executes a command with a number.
    fn command_with_number(
        &mut self,
        command: u32,
        what: &'static str,
        device: u32,
        number: u64,
    ) -> Result<(), UblkError> {
        let bytes = wire::control(device, 0, 0, number);
        self.execute(command, bytes).map_err(refused(device, what))
    }

    /// Executes a command with bytes that the driver reads or writes.
    fn command_with_bytes(
        &mut self,
        command: u32,
        what: &'static str,
        device: u32,
        bytes: &mut [u8],
    ) -> Result<(), UblkError> {
        let length = u16::try_from(bytes.len()).expect("short structures");
        let address = bytes.as_mut_ptr().expose_provenance() as u64;
        let words = wire::control(device, address, length, 0);
        self.execute(command, words).map_err(refused(device, what))
    }

    /// Submits the command and waits for its completion.
    fn execute(&mut self, command: u32, bytes: [u8; 80]) -> io::Result<()> {
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), command)
            .cmd(bytes)
            .build();
        // SAFETY: what the command points to is borrowed by the caller for as long as this waits,
        // and this waits until the driver has ended it.
        unsafe { self.ring.submission().push(&entry) }.expect("one command at a time");
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nothing was handed over, or the ring is broken for good.
                Err(error) => return Err(error),
            }
            if let Some(end) = self.ring.completion().next() {
                return match end.result() {
                    result if result < 0 => Err(io::Error::from_raw_os_error(-result)),
                    _ => Ok(()),
                };
            }
        }
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Control").field(&self.file).finish()
    }
}

/// The numbers of all devices in ascending order.
fn numbers() -> Result<Vec<u32>, UblkError> {
    let listed = |source| UblkError::List { source };
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(LIST).map_err(listed)? {
        let name = entry.map_err(listed)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("ublkc"));
        numbers.extend(number.and_then(|number| number.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn refused(device: u32, what: &'static str) -> impl FnOnce(io::Error) -> UblkError {
    move |source| UblkError::Refused {
        device,
        what,
        source,
    }
}
