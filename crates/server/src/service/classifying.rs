//! The block devices over classified exports: a thread looks for them, opens their events, and hands these to the
//! loops.
//!
//! ```text
//!   losetup, nbd-client --> sysfs --look--> [ thread ] --Watch--> event loop of the drive
//! ```
//!
//! A device comes and goes while the service runs. So does a processor, each of which has a ring.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::{info, warn};

use super::ServeError;
use super::devices::ExportedDevices;
use super::drives::Drive;
use crate::classify::Watch;
use crate::classify::devices::{DeviceOver, Sysfs};
use crate::classify::events::{self, PerfEvents};
use crate::classify::format::EventFormat;
use crate::config::Config;
use crate::event_loop::mailbox::Mailbox;
use crate::front_end::fuse;

/// The thread that looks for devices. It ends when it is dropped.
pub(super) struct DeviceWatch {
    /// The thread ends when this is dropped.
    until: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A classified export.
struct Watched {
    export: String,
    mailbox: Mailbox,
    /// The file of the export, if there is a mount.
    file: Option<PathBuf>,
    /// The paths of devices that are known: of ublk, and of the configuration.
    paths: Vec<PathBuf>,
    /// The devices and processors of the last look.
    last: Option<(Vec<DeviceOver>, Vec<usize>)>,
    /// The problem that the loop was told last.
    problem: Option<String>,
    /// What the loop watches no more. This thread closes it.
    closed: (Sender<Watch>, Receiver<Watch>),
}

/// The interval of looks. A choice: a look costs some system calls for each loop device, and requests before it
/// have the class of their export.
const LOOK: Duration = Duration::from_millis(250);

impl DeviceWatch {
    /// Classifies the exports that the configuration says, and begins to look for their devices. `None` if there
    /// are none.
    ///
    /// # Errors
    /// If this machine has no such events, or does not permit them.
    pub(super) fn begin(
        config: &Config,
        drives: &[Drive],
        mounts: &[fuse::Mount],
        devices: &ExportedDevices,
    ) -> Result<Option<Self>, ServeError> {
        let mut all = Vec::new();
        for (place, (config, drive)) in config.drives.iter().zip(drives).enumerate() {
            for export in &config.exports {
                let Some(classify) = export.classify.clone() else {
                    continue;
                };
                let mount = mounts.get(place).map(fuse::Mount::folder);
                let file = mount.map(|mount| file_in(mount, &export.name));
                let ublk = devices.paths(&export.name);
                all.push(Watched {
                    export: export.name.clone(),
                    mailbox: drive.mailbox().clone(),
                    file: file.transpose().map_err(failed)?,
                    paths: ublk.chain(classify.device).collect(),
                    last: None,
                    problem: None,
                    closed: channel(),
                });
                let name = export.name.clone();
                // A loop that has ended says so elsewhere.
                let _ = (drive.mailbox())
                    .call(move |event_loop| event_loop.classes().classify(name, classify.rules));
            }
        }
        if all.is_empty() {
            return Ok(None);
        }
        let sysfs = Sysfs::default();
        let format = usable(&sysfs).map_err(|problem| failed(io::Error::other(problem)))?;
        let (until, stop) = channel();
        let look = move || {
            while stop.recv_timeout(Duration::ZERO) == Err(RecvTimeoutError::Timeout) {
                all.iter_mut().for_each(|one| one.look(&sysfs, &format));
                if stop.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("classify".to_owned());
        Ok(Some(DeviceWatch {
            thread: Some(thread.spawn(look).map_err(failed)?),
            until: Some(until),
        }))
    }
}

impl Drop for DeviceWatch {
    fn drop(&mut self) {
        drop(self.until.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            warn!("the thread that looks for block devices has panicked");
        }
    }
}

/// The path of an export's file, as the kernel tells it of a loop device.
fn file_in(mount: &Path, export: &str) -> io::Result<PathBuf> {
    Ok(mount.canonicalize()?.join(export))
}

/// The layout of events, if this process may have them.
///
/// # Errors
/// If it may not, and what was expected.
pub(super) fn usable(sysfs: &Sysfs) -> Result<EventFormat, String> {
    let format = events::format()?;
    let processors = sysfs.processors().map_err(|error| error.to_string())?;
    // No device has this number, so that nothing comes.
    let none = DeviceOver {
        number: 0,
        name: String::new(),
        offset: 0,
    };
    PerfEvents::open(&format, &[none], &processors).map(|_| format)
}

fn failed(error: io::Error) -> ServeError {
    ServeError::Listen {
        what: "classify = \"ioprio\"".to_owned(),
        error,
    }
}

impl Watched {
    /// Looks for the devices, and tells the loop what has changed.
    fn look(&mut self, sysfs: &Sysfs, format: &EventFormat) {
        self.closed.1.try_iter().for_each(drop);
        let found = self.find(sysfs);
        let is_same = self.last.is_some() && self.last.as_ref() == found.as_ref().ok();
        if is_same {
            return;
        }
        let opened = found.and_then(|(devices, processors)| {
            let events = PerfEvents::open(format, &devices, &processors)?;
            Ok((devices, processors, events))
        });
        let watch = match opened {
            Ok((devices, processors, events)) => {
                let names: Vec<&str> = devices.iter().map(|device| &*device.name).collect();
                let (export, devices_over) = (&self.export, names.join(", "));
                info!(
                    export,
                    devices = devices_over,
                    "requests are classified by I/O priority"
                );
                self.problem = None;
                self.last = Some((devices.clone(), processors));
                Watch {
                    devices,
                    events: Some(Box::new(events)),
                    problem: None,
                }
            }
            Err(problem) => {
                self.last = None;
                if self.problem.as_ref() == Some(&problem) {
                    return;
                }
                warn!(
                    export = self.export,
                    problem, "requests have the class of the export"
                );
                self.problem = Some(problem.clone());
                Watch {
                    problem: Some(problem),
                    ..Watch::default()
                }
            }
        };
        let (name, close) = (self.export.clone(), self.closed.0.clone());
        // A loop that has ended needs no events.
        let _ = self.mailbox.call(move |event_loop| {
            // This thread is there until it has ended, and then the rest is closed with it.
            let _ = close.send(event_loop.classes().watch(&name, watch));
        });
    }

    /// The devices over the export, and the processors.
    fn find(&self, sysfs: &Sysfs) -> Result<(Vec<DeviceOver>, Vec<usize>), String> {
        let mut devices = Vec::new();
        for path in &self.paths {
            devices.push(sysfs.device_at(path)?);
        }
        if let Some(file) = &self.file {
            let loops = sysfs.loops_over(file).map_err(|error| error.to_string())?;
            for found in loops {
                if devices.iter().all(|device| device.number != found.number) {
                    devices.push(found);
                }
            }
        }
        match (&self.file, devices.is_empty()) {
            (Some(file), true) => Err(format!(
                "no loop device over {0}: expected `losetup --find --direct-io=on {0}`",
                file.display()
            )),
            _ => {
                let processors = sysfs.processors().map_err(|error| error.to_string())?;
                Ok((devices, processors))
            }
        }
    }
}
