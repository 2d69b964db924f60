//! A volume over FUSE as a block device of the kernel's, whose schedulers can be chosen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::rig::Needed;
use crate::output::Failure;

/// How many requests the device takes before the scheduler may choose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// As many as a loop device takes.
    Loop,
    /// `BLKDEV_MIN_RQ` of Linux.
    Least,
}

/// That depth, in words of the kernel.
pub const LEAST: &str = "4";
const LOOP: &str = "128";

/// A loop device. When it is dropped it is detached, and its queue is as it was: the kernel keeps
/// that for whoever is the next to use the device.
pub struct LoopDevice {
    pub path: PathBuf,
    /// What its queue's settings were.
    was: Vec<(&'static str, String)>,
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
        let mut device = LoopDevice {
            path: PathBuf::from(said.trim()),
            was: Vec::new(),
        };
        let scheduler = device.get("scheduler")?;
        // The one in brackets; the depth is the device's while it has none.
        let chosen = scheduler.split(['[', ']']).nth(1).unwrap_or("none");
        device.set("scheduler", "none")?;
        for key in ["nr_requests", "rotational"] {
            device.was.push((key, device.get(key)?));
        }
        device.was.push(("scheduler", chosen.to_owned()));
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

    fn key(&self, key: &str) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default();
        Path::new("/sys/block").join(name).join("queue").join(key)
    }

    fn get(&self, key: &str) -> Result<String, Failure> {
        let path = self.key(key);
        let text = fs::read_to_string(&path);
        let text = text.map(|text| text.trim().to_owned());
        text.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
    }

    fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        let path = self.key(key);
        fs::write(&path, value)
            .map_err(|error| Failure::failed(format!("{} = {value}: {error}", path.display())))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = self.set("scheduler", "none");
        for (key, value) in &self.was {
            let _ = self.set(key, value);
        }
        let mut command = Command::new(LOSETUP.program);
        let _ = command.arg("--detach").arg(&self.path).status();
    }
}

/// What attaches and detaches them.
pub const LOSETUP: Needed = Needed {
    program: "losetup",
    package: "mount",
};
