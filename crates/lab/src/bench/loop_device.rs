//! A volume over FUSE as a block device of the kernel's, whose schedulers can be chosen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::ioctl::{IntegerSetter, Opcode, ioctl};

use super::rig::Needed;
use crate::Failure;

/// How many requests the device takes before the scheduler may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// As many as a loop device takes.
    Loop,
    /// `BLKDEV_MIN_RQ` of Linux.
    Least,
}

/// That depth, in words of the kernel.
pub const LEAST: &str = "4";
const LOOP: &str = "128";

/// A loop device. When it is dropped it is detached and removed: a queue that was made shorter stays
/// so for whoever has the device next, whatever its length is set to (seen on Linux 6.18).
pub struct LoopDevice {
    pub path: PathBuf,
}

impl LoopDevice {
    /// Attaches one over the file. It turns, for the kernel.
    ///
    /// # Errors
    /// If that is not allowed.
    pub fn attach(file: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(LOSETUP.program);
        command
            .args(["--show", "--direct-io=on", "--find"])
            .arg(file);
        let ran = command.output().map_err(Failure::failed)?;
        let said = String::from_utf8_lossy(if ran.status.success() {
            &ran.stdout
        } else {
            &ran.stderr
        });
        if !ran.status.success() {
            return Err(Failure::failed(format!(
                "losetup: {}: expected root",
                said.trim()
            )));
        }
        let device = LoopDevice {
            path: PathBuf::from(said.trim()),
        };
        device.set("rotational", "1")?;
        Ok(device)
    }

    /// Puts a scheduler before it. The depth is the device's while it has none.
    ///
    /// # Errors
    /// If the kernel has none of that name.
    pub fn schedule(&self, name: &str, depth: Depth) -> Result<(), Failure> {
        self.set("scheduler", "none")?;
        let depth = match depth {
            Depth::Loop => LOOP,
            Depth::Least => LEAST,
        };
        self.set("nr_requests", depth)?;
        self.set("scheduler", name)
    }

    fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        let name = self.path.file_name().unwrap_or_default();
        let path = Path::new("/sys/block").join(name).join("queue").join(key);
        fs::write(&path, value)
            .map_err(|error| Failure::failed(format!("{} = {value}: {error}", path.display())))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let mut command = Command::new(LOSETUP.program);
        let _ = command.arg("--detach").arg(&self.path).status();
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.trim_start_matches("loop").parse();
        let (Ok(number), Ok(control)) = (number, fs::File::open("/dev/loop-control")) else {
            return;
        };
        // The last close of a device may come a moment after it was detached.
        for _ in 0..REMOVALS {
            if removed(&control, number) {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Takes a loop device away; whether that was done.
#[allow(
    unsafe_code,
    reason = "a request of the loop driver that no library has"
)]
fn removed(control: &fs::File, number: usize) -> bool {
    // SAFETY: LOOP_CTL_REMOVE takes a number and no memory (linux/loop.h).
    unsafe { ioctl(control, IntegerSetter::<LOOP_CTL_REMOVE>::new_usize(number)) }.is_ok()
}

const LOOP_CTL_REMOVE: Opcode = 0x4C81;

/// How often it is tried, and how long it is waited in between. Choices: a second in all.
const REMOVALS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// What attaches and detaches them.
pub const LOSETUP: Needed = Needed {
    program: "losetup",
    package: "mount",
};
