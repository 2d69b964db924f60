//! The whole service: drives, front ends, and the commands of the control plane.
//!
//! ```text
//!   Config --> drives: a station each --.
//!          --> listeners -- directory --+--> Running: dyn control::Service
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, mpsc};
use std::time::{Duration, Instant};

use document::DocumentError;
use headtime_client::wire;

use crate::checkpoint::marks::BitmapStatus;
use crate::checkpoint::moment::CheckpointStatus;
use crate::clients::Seats;
use crate::config::{Access, Config, Places};
use crate::control::notify::Activated;
use crate::control::protocol::{BeginCheckpoint, BegunCheckpoint, BitmapChange, ListedExport};
use crate::control::{self, Changes, Learn, LearningReport, ScrubOrder, ScrubReport};
use crate::event_loop::EventLoop;
use crate::event_loop::mailbox::Mailbox;
use crate::front_end::fuse;
use crate::listener::{Listener, Shown};
use crate::status::{self, Status};
use crate::tasks::Steer;
use crate::tasks::sink::SinkThread;
use crate::tasks::sink::hooks::Hooks;
use crate::tls::Papers;
use crate::volume::Release;
use crate::volume::streams::StreamEvents;
use crate::why::{Query, Slow};

mod checkpoints;
mod classifying;
mod devices;
mod doors;
mod drives;
pub mod dry_run;
mod ending;
mod exports;
mod learning;
pub mod mirrors;
mod reload;
mod scrubs;
mod slow;
mod streams;
mod tasks;

use classifying::DeviceWatch;
use devices::ExportedDevices;
use doors::{Welcome, directory, listen, mount, papers};
use drives::Drive;
pub use drives::{VirtualBelief, VirtualParts, in_virtual_time, promise_to_streams};
use reload::{changes, same_but_for_certificates, same_but_for_what_changes};
use scrubs::Scrubs;

/// An error at the start or the end of a service.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] DocumentError),
    /// A drive cannot be served.
    #[error("drive {name}: {problem}")]
    Drive {
        /// The name of the drive.
        name: String,
        /// The problem, and what was expected.
        problem: String,
    },
    /// A front end cannot be opened.
    #[error("{what}: {error}")]
    Listen {
        /// The address, path or device of the front end.
        what: String,
        /// The cause.
        error: io::Error,
    },
    /// A drive's event loop has failed, or acknowledged data could not be written.
    #[error("drive {name}: {error}")]
    Ended {
        /// The name of the drive.
        name: String,
        /// The cause.
        error: io::Error,
    },
}

/// A running service.
pub struct Running {
    /// The configuration file, read again by a reload.
    file: Option<PathBuf>,
    config: Mutex<Config>,
    drives: Vec<Drive>,
    shown: Shown,
    /// Empty when no new client is accepted.
    doors: Mutex<Doors>,
    state: Mutex<status::ServiceState>,
    changed: Condvar,
    began: Instant,
    tasks: AtomicU64,
    /// The number of the next stream.
    streams_named: AtomicU64,
    /// The open streams, and the index of the drive of each.
    streams: Mutex<BTreeMap<u64, usize>>,
    /// The threads of scans.
    sinks: Mutex<Vec<SinkThread>>,
    scrubs: Scrubs,
    hooks: Hooks,
    reloads: AtomicU64,
    /// Clients that were refused during their handshake.
    refused: Arc<AtomicU64>,
}

/// The front ends.
#[derive(Default)]
struct Doors {
    listeners: Vec<Listener>,
    mounts: Vec<fuse::Mount>,
    /// Folders that did not exist before: parents first. They go when nothing is mounted in them.
    mount_folders: Vec<PathBuf>,
    devices: ExportedDevices,
    watch: Option<DeviceWatch>,
}

/// The largest impact budget: the whole response time.
const MOST_IMPACT_PPM: u32 = 1_000_000;

/// The longest time that a loop may take to answer. A loop that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

impl Running {
    /// Starts the drives, then opens the front ends.
    ///
    /// # Errors
    /// The first drive or front end that fails.
    pub fn begin(
        config: Config,
        file: Option<PathBuf>,
        activated: Activated,
    ) -> Result<Arc<Self>, ServeError> {
        let hooks = Hooks::new(&config.hooks);
        let mut drives = Vec::new();
        for drive in &config.drives {
            let started = Drive::start(drive, &config.limits, &hooks);
            drives.push(started.map_err(|problem| ServeError::Drive {
                name: drive.name.clone(),
                problem,
            })?);
        }
        let shown = Arc::new(RwLock::new(directory(&drives)));
        let seats = Seats::new(config.limits.connections as usize);
        let refused = Arc::default();
        let welcome = Welcome {
            seats: &seats,
            refused: &refused,
        };
        let listeners = listen(&config, &shown, activated, &welcome)?;
        let (mounts, mount_folders) = mount(&config, &drives)?;
        let devices = ExportedDevices::begin(&config, &drives)?;
        let doors = Doors {
            listeners,
            watch: DeviceWatch::begin(&config, &drives, &mounts, &devices)?,
            mounts,
            mount_folders,
            devices,
        };
        let running = Arc::new_cyclic(|this| Running {
            scrubs: Scrubs::of(this),
            hooks,
            file,
            config: Mutex::new(config),
            drives,
            shown,
            doors: Mutex::new(doors),
            state: Mutex::new(status::ServiceState::Serving),
            changed: Condvar::new(),
            began: Instant::now(),
            tasks: AtomicU64::new(1),
            streams_named: AtomicU64::new(1),
            streams: Mutex::default(),
            sinks: Mutex::default(),
            reloads: AtomicU64::new(0),
            refused,
        });
        running.begin_schedules();
        Ok(running)
    }

    /// Later clients are served with these certificates. The answer is a sentence for each listener whose differ.
    fn renew(&self, papers: Vec<Option<Papers>>) -> Vec<String> {
        let doors = locked(&self.doors);
        let listeners = (1..).zip(&doors.listeners).zip(papers);
        let renewed = listeners.filter_map(|((number, listener), papers)| {
            let differs = listener.renew(papers?);
            differs.then(|| {
                format!(
                    "the certificates of [[nbd]] number {number}, for clients that come from now on"
                )
            })
        });
        renewed.collect()
    }

    /// Changes the lengths of volumes to those of the new configuration: all or none. The answer is a
    /// sentence for each change.
    fn resize(&self, old: &Config, new: &Config) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        for (drive, new) in self.drives.iter().zip(&new.drives) {
            let resizes = drive.resizes(new)?;
            let files = drive.files();
            for resize in resizes.iter().filter(|resize| resize.to < resize.from) {
                let exports = new.exports.iter();
                let mut names = exports.filter(|export| export.volume == resize.volume);
                let is_file = !locked(&self.doors).mounts.is_empty()
                    && names.any(|export| files.iter().any(|file| file.name == export.name));
                if is_file || old.ublk.is_some() {
                    return Err(format!(
                        "volume {} would have {} bytes instead of {}, and is a file or a block \
                         device: make what is on it smaller, then restart the service",
                        resize.volume, resize.to, resize.from
                    ));
                }
            }
            let asked = resizes.clone();
            let may = Self::asked(drive.mailbox(), move |event_loop| {
                let mut each = asked.iter();
                each.try_for_each(|resize| event_loop.may_resize(resize))
            });
            may.unwrap_or_else(|| Err("the drive does not answer".to_owned()))?;
            all.push((drive, new, resizes));
        }
        let mut done = Vec::new();
        for (drive, new, resizes) in all.into_iter().filter(|(_, _, all)| !all.is_empty()) {
            done.extend(resizes.iter().map(|resize| {
                format!(
                    "volume {} of drive {} has {} bytes instead of {}, for clients that come from \
                     now on",
                    resize.volume,
                    drive.name(),
                    resize.to,
                    resize.from
                )
            }));
            let begun = Self::asked(drive.mailbox(), move |event_loop| {
                event_loop.resize(&resizes)
            });
            begun.unwrap_or_else(|| Err("the drive does not answer".to_owned()))?;
            drive.resized(new)?;
        }
        Ok(done)
    }

    fn turn(&self, to: status::ServiceState) {
        *locked(&self.state) = to;
        self.changed.notify_all();
    }

    /// Calls a drive's loop and waits for the answer. `None` if the loop has ended or is stuck.
    fn asked<T: Send + 'static>(
        mailbox: &Mailbox,
        what: impl FnOnce(&mut EventLoop) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = mpsc::channel();
        let letter = mailbox.call(move |event_loop| {
            // Who asked may have given up.
            let _ = tell.send(what(event_loop));
        });
        letter.ok()?;
        told.recv_timeout(PATIENCE).ok()
    }
}

impl control::Service for Running {
    fn status(&self) -> Status {
        let (mut connections, mut drives) = (Vec::new(), Vec::new());
        let (mut accepted, mut refused) = (0, self.refused.load(Ordering::Relaxed));
        for drive in &self.drives {
            let told = Self::asked(drive.mailbox(), |event_loop| {
                let mut picture = event_loop.picture();
                picture.tasks = event_loop.tasks().list();
                (picture, event_loop.clients(), event_loop.connections())
            });
            let (picture, clients, counts) = told.unwrap_or_default();
            accepted += counts.accepted;
            refused += counts.turned_away;
            connections.extend(clients);
            drives.push(drive.described(picture));
        }
        connections.extend(locked(&self.doors).devices.connections());
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.began.elapsed().as_secs_f64(),
            state: *locked(&self.state),
            drives,
            connections,
            connections_total: accepted,
            connections_refused_total: refused,
            reloads_total: self.reloads.load(Ordering::Relaxed),
            scrubs: self.scrub_statuses(),
        }
    }

    fn scan(&self, order: control::Scan) -> Result<u64, String> {
        self.begin_scan(&order)
    }

    fn exports(&self) -> Vec<ListedExport> {
        self.all_exports()
    }

    fn begin_checkpoint(&self, order: &BeginCheckpoint) -> Result<BegunCheckpoint, String> {
        self.make_checkpoint(order)
    }

    fn release_checkpoint(&self, volume: &str, release: Release) -> Result<(), String> {
        self.end_checkpoint(volume, release)
    }

    fn checkpoints(&self) -> Vec<CheckpointStatus> {
        self.all_checkpoints()
    }

    fn bitmaps(&self) -> Vec<BitmapStatus> {
        self.all_bitmaps()
    }

    fn change_bitmap(&self, volume: &str, name: &str, change: BitmapChange) -> Result<(), String> {
        self.change_bitmap((volume, name), change)
    }

    fn scrub(&self, order: &ScrubOrder) -> Result<(), String> {
        self.begin_scrub(order, None)
    }

    fn scrubs(&self) -> Vec<ScrubReport> {
        self.scrub_reports()
    }

    fn steer(&self, task: u64, action: Steer) -> Result<(), String> {
        let mut last = Err(format!("no task {task} is under way"));
        for drive in &self.drives {
            let done = Self::asked(drive.mailbox(), move |event_loop| {
                event_loop.tasks().steer(task, action)
            });
            match done {
                Some(Ok(())) => return Ok(()),
                Some(refused) => last = refused,
                None => (),
            }
        }
        last
    }

    fn set_impact(&self, name: &str, impact_ppm: u32) -> Result<(), String> {
        if impact_ppm > MOST_IMPACT_PPM {
            return Err(format!(
                "an impact of {} %: expected 0 to 100",
                f64::from(impact_ppm) / 1e4
            ));
        }
        self.drive_named(name)?.set_impact(impact_ppm)
    }

    fn learn(&self, order: &Learn) -> Result<(), String> {
        self.begin_learning(order)
    }

    fn learned(&self, drive: &str) -> Result<LearningReport, String> {
        self.learning_report(drive)
    }

    fn stop_learning(&self, drive: &str) -> Result<(), String> {
        self.end_learning(drive)
    }

    fn follow(&self, drive: &str) -> Result<(), String> {
        self.follow_findings(drive)
    }

    fn why(&self, query: &Query) -> Result<Vec<Slow>, String> {
        self.slow(query)
    }

    fn attach(
        &self,
        user: u32,
        attach: wire::Attach,
        events: StreamEvents,
    ) -> Result<wire::Granted, wire::StreamRefused> {
        self.attach_stream(user, attach, events)
    }

    fn position(&self, position: wire::Position) -> Result<(), String> {
        self.position_stream(position)
    }

    fn refresh(&self, refresh: wire::Refresh) -> Result<wire::FileChange, wire::StreamRefused> {
        self.refresh_stream(refresh)
    }

    fn close(&self, stream: u64) -> Result<(), String> {
        self.close_stream(stream)
    }

    fn streams(&self) -> Vec<wire::Listed> {
        self.all_streams()
    }

    fn reload(&self) -> Result<Changes, String> {
        let Some(file) = &self.file else {
            return Err("the built-in configuration has no file to be read again".to_owned());
        };
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
        let base = file.parent().map_or_else(PathBuf::new, PathBuf::from);
        let places = Places::of_this_user(&base);
        let new = Config::parse(&name, &text, &places).map_err(|error| error.to_string())?;
        let mut config = locked(&self.config);
        let mut changes = changes(&config, &new);
        let papers = papers(&new)?;
        if same_but_for_what_changes(&config, &new) {
            changes.applied.extend(self.resize(&config, &new)?);
        }
        if same_but_for_certificates(&config, &new) {
            changes.applied.extend(self.renew(papers));
            config.nbd.clone_from(&new.nbd);
        }
        self.reloads.fetch_add(1, Ordering::Relaxed);
        if changes.applied.is_empty() {
            return Ok(changes);
        }
        for (drive, (old, new)) in self
            .drives
            .iter()
            .zip(config.drives.iter_mut().zip(new.drives))
        {
            old.volumes = new.volumes;
            old.exports = new.exports;
            if old.impact_ppm != new.impact_ppm {
                old.impact_ppm = new.impact_ppm;
                drive.set_impact(new.impact_ppm)?;
            }
        }
        for (drive, config) in self.drives.iter().zip(&config.drives) {
            drive.show(config);
        }
        for mount in &locked(&self.doors).mounts {
            for file in self.drives.iter().flat_map(Drive::files) {
                mount.resize(&file.name, file.bytes);
            }
        }
        let shown = directory(&self.drives);
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = shown;
        Ok(changes)
    }

    fn drain(&self) -> Vec<String> {
        self.turn(status::ServiceState::Draining);
        self.mounted_loops()
    }

    fn stop(&self) {
        self.turn(status::ServiceState::Stopping);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an export is read-only.
fn is_read_only(volume: Access, export: Access) -> bool {
    volume == Access::ReadOnly || export == Access::ReadOnly
}
