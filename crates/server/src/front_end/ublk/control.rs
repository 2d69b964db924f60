//! The driver's control device: devices come, are described, begin, end and go.

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

use super::wire::{self, Parameters, STANDING_BYTES, Standing};
use super::{Failed, Service};

/// The control device, open.
pub struct Control {
    /// Commands have 80 bytes of their own: twice as long as others.
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    file: File,
}

/// What becomes of requests to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// They fail: it has not begun, or has ended.
    Dead,
    /// They are served.
    Live,
    /// They wait: the server died, and another may recover the device.
    Waiting,
    /// They fail: the server died, and another may recover the device.
    Failing,
}

const PATH: &str = "/dev/ublk-control";

/// How often, and how long apart, the driver is asked whether a dead server has been cleared away:
/// 10 s together. A choice, far above the milliseconds that it takes.
const RECOVERY_TRIES: u32 = 1000;
const RECOVERY_PAUSE: Duration = Duration::from_millis(10);

impl Control {
    /// Opens it.
    ///
    /// # Errors
    /// If there is no driver, or this user may not use it, or there is no io_uring.
    pub fn open() -> Result<Self, Failed> {
        let file = File::options().read(true).write(true).open(PATH);
        let file = file.map_err(Failed::NoDriver)?;
        // One command at a time.
        let ring = IoUring::builder().build(2).map_err(Failed::NoDriver)?;
        Ok(Control { ring, file })
    }

    /// What becomes of requests to the device.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn state(&mut self, device: u32) -> Result<State, Failed> {
        Ok(match self.standing(device)?.state {
            1 => State::Live,
            2 => State::Waiting,
            3 => State::Failing,
            _ => State::Dead,
        })
    }

    /// Adds a device, and answers with its number.
    pub(super) fn add(&mut self, device: Option<u32>, service: Service) -> Result<u32, Failed> {
        if service.depth == 0 || service.depth > wire::DEEPEST {
            return Err(Failed::Shape("a queue that is not from 1 to 4096 deep"));
        }
        if service.longest < 4096 || service.longest > wire::LONGEST {
            let what = "a longest request that is not from 4 KiB to 32 MiB";
            return Err(Failed::Shape(what));
        }
        let device = device.unwrap_or(u32::MAX);
        let mut bytes = Standing::new(device, service).bytes();
        self.exchange(wire::ADD_DEVICE, "to add it", device, &mut bytes)?;
        Ok(Standing::parse(&bytes).device)
    }

    /// What the device's first server had.
    pub(super) fn service(&mut self, device: u32) -> Result<Service, Failed> {
        let standing = self.standing(device)?;
        if !standing.comes_again() {
            let source = io::Error::other("it was added without user recovery");
            let what = "to recover it";
            return Err(refused(device, what)(source));
        }
        Ok(Service {
            depth: standing.depth,
            longest: standing.longest,
        })
    }

    pub(super) fn set_parameters(
        &mut self,
        device: u32,
        parameters: &Parameters,
    ) -> Result<(), Failed> {
        let mut bytes = *parameters.bytes();
        let what = "to set its parameters";
        self.exchange(wire::SET_PARAMETERS, what, device, &mut bytes)
    }

    /// Every place of its queue must have been fetched for, or this waits for ever.
    pub(super) fn start(&mut self, device: u32) -> Result<(), Failed> {
        let own = u64::from(std::process::id());
        self.tell(wire::START_DEVICE, "to start it", device, own)
    }

    /// Waits for the requests under way.
    pub(super) fn stop(&mut self, device: u32) -> Result<(), Failed> {
        self.tell(wire::STOP_DEVICE, "to stop it", device, 0)
    }

    /// Waits until nobody has it open.
    pub(super) fn delete(&mut self, device: u32) -> Result<(), Failed> {
        self.tell(wire::DELETE_DEVICE, "to delete it", device, 0)
    }

    /// The driver says "busy" until all that the dead server had is cleared away.
    pub(super) fn begin_recovery(&mut self, device: u32) -> Result<(), Failed> {
        let mut tries = 0;
        loop {
            let what = "to begin to recover it (is its server alive?)";
            let told = self.tell(wire::BEGIN_RECOVERY, what, device, 0);
            match told {
                Err(Failed::Refused { source, .. })
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
    pub(super) fn end_recovery(&mut self, device: u32) -> Result<(), Failed> {
        let own = u64::from(std::process::id());
        self.tell(wire::END_RECOVERY, "to recover it", device, own)
    }

    fn standing(&mut self, device: u32) -> Result<Standing, Failed> {
        let mut bytes = [0; STANDING_BYTES];
        self.exchange(wire::GET_DEVICE, "what it is", device, &mut bytes)?;
        Ok(Standing::parse(&bytes))
    }

    /// A command with a number.
    fn tell(
        &mut self,
        command: u32,
        what: &'static str,
        device: u32,
        number: u64,
    ) -> Result<(), Failed> {
        let bytes = wire::control(device, 0, 0, number);
        self.carry_out(command, bytes)
            .map_err(refused(device, what))
    }

    /// A command with bytes that the driver reads or writes.
    fn exchange(
        &mut self,
        command: u32,
        what: &'static str,
        device: u32,
        bytes: &mut [u8],
    ) -> Result<(), Failed> {
        let length = u16::try_from(bytes.len()).expect("short structures");
        let address = bytes.as_mut_ptr().expose_provenance() as u64;
        let words = wire::control(device, address, length, 0);
        self.carry_out(command, words)
            .map_err(refused(device, what))
    }

    /// Hands the command over and waits for its end.
    fn carry_out(&mut self, command: u32, bytes: [u8; 80]) -> io::Result<()> {
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

fn refused(device: u32, what: &'static str) -> impl FnOnce(io::Error) -> Failed {
    move |source| Failed::Refused {
        device,
        what,
        source,
    }
}
