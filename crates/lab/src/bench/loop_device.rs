//! A block device of the kernel over a FUSE volume, with a choice of the kernel's schedulers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::ioctl::{IntegerSetter, Opcode, ioctl};

use super::rig::Needed;
use crate::Failure;

/// The queue depth of the device behind the kernel's scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The default of loop devices.
    Loop,
    /// `BLKDEV_MIN_RQ` of Linux.
    Least,
}

/// The smallest depth, in the kernel's words.
pub const LEAST: &str = "4";
const LOOP: &str = "128";

/// A loop device. Dropping it detaches and removes the device: a shortened queue otherwise remains
/// for the next user (seen on Linux 6.18).
pub struct LoopDevice {
    pub path: PathBuf,
}

impl LoopDevice {
    /// Attaches a rotational loop device to a file, in blocks of 512 bytes.
    ///
    /// # Errors
    /// If the kernel does not permit it.
    pub fn attach(file: &Path) -> Result<Self, Failure> {
        LoopDevice::attach_with_blocks(file, 512)
    }

    /// Attaches a rotational loop device to a file, in blocks of so many bytes.
    ///
    /// # Errors
    /// If the kernel does not permit it.
    pub fn attach_with_blocks(file: &Path, block_bytes: u32) -> Result<Self, Failure> {
        let mut command = Command::new(LOSETUP.program);
        command
            .args(["--show", "--direct-io=on", "--find"])
            .args(["--sector-size", &block_bytes.to_string()])
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

    /// Selects a scheduler and a depth. The kernel changes the depth only while the device has no
    /// scheduler.
    ///
    /// # Errors
    /// If the kernel has no such scheduler.
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
        // The last close of a device may follow its detachment.
        for _ in 0..REMOVALS {
            if removed(&control, number) {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Removes a loop device; returns whether that succeeded.
#[allow(
    unsafe_code,
    reason = "a request of the loop driver that no library has"
)]
fn removed(control: &fs::File, number: usize) -> bool {
    // SAFETY: LOOP_CTL_REMOVE takes a number and no memory (linux/loop.h).
    unsafe { ioctl(control, IntegerSetter::<LOOP_CTL_REMOVE>::new_usize(number)) }.is_ok()
}

const LOOP_CTL_REMOVE: Opcode = 0x4C81;

/// Attempts to remove a device, and the pause between two. Choices: a second in all.
const REMOVALS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// The program that attaches and detaches loop devices.
pub const LOSETUP: Needed = Needed {
    program: "losetup",
    package: "mount",
};
