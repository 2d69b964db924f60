//! A drive in service, from its configuration to its running event loop.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drive::Profile;
use scheduler::freeblock::SameTrackRule;
use scheduler::ordering::Phases;
use scheduler::policy::NamedPolicy;

use super::is_read_only;
use crate::clock::TimeScale;
use crate::config::{self, Belief, GracePeriod};
use crate::disk::back_end::BackEnd;
use crate::disk::back_end::file::{Caching, Image};
use crate::disk::back_end::memory::Ram;
use crate::event_loop::NO_BELIEF;
use crate::event_loop::mailbox::Mailbox;
use crate::front_end::{fuse, ublk};
use crate::station::Station;
use crate::status;
use crate::tasks::sink::hooks::Hooks;
use tracing::info;

mod behind;
mod caching;
mod checking;
mod device;
mod emulation;
mod exports;
mod following;
mod marking;
pub(super) mod mirrored;
mod offers;
mod promise;
mod recording;
mod running;
mod sizes;
mod virtual_time;

pub(super) use emulation::emulated_bytes;
use emulation::{emulation, profile};
use exports::exports;
use following::FollowedBelief;
use mirrored::MirrorParts;
pub use promise::promise_to_streams;
use running::station;
pub(super) use sizes::volumes;
pub use virtual_time::{VirtualBelief, VirtualParts, in_virtual_time};

/// A drive in service.
pub(super) struct Drive {
    name: String,
    kind: &'static str,
    /// What follows from the belief, which may be taken up in service.
    following: Mutex<FollowedBelief>,
    /// The policy, the rules of free reads, the turns of reads and writes, and the grace period, once a belief is taken up.
    learned: (NamedPolicy, SameTrackRule, Phases, GracePeriod),
    scale: Option<f64>,
    /// The current impact budget of background tasks in parts per million.
    impact_ppm: AtomicU32,
    bytes: u64,
    block_bytes: u32,
    is_rotational: bool,
    /// The path that `headtime adopt` could learn, if the drive has no belief.
    unlearned: Option<String>,
    /// The longest request in bytes.
    longest: u32,
    volumes: Mutex<Vec<(config::Volume, u64)>>,
    /// The exports for new clients, and their indices in the loop.
    exports: Mutex<Vec<(config::Export, usize)>>,
    /// The open checkpoints: the volume, the index of the export in the loop, and the name of the dirty bitmap.
    moments: Mutex<Vec<offers::ShownMoment>>,
    mailbox: Mailbox,
    station: Mutex<Option<Station>>,
}

/// The back end and its model, before the loop starts.
struct Parts {
    back_end: Box<dyn FnOnce() -> io::Result<Box<dyn BackEnd>> + Send>,
    /// The model of the drive, if there is one.
    belief: Option<Arc<Profile>>,
    blocks: u64,
    block_bytes: u32,
    scale: TimeScale,
    kind: &'static str,
    is_rotational: bool,
    /// What is only known of a mirror.
    mirror: Option<MirrorParts>,
}

impl Drive {
    /// Starts the drive's event loop.
    ///
    /// # Errors
    /// The problem, and the expected value.
    pub(super) fn start(
        config: &config::DriveConfig,
        limits: &config::Limits,
        hooks: &Hooks,
    ) -> Result<Self, String> {
        let parts = parts(config, hooks)?;
        let unlearned = match parts.belief {
            None => learnable(&config.back_end),
            Some(_) => None,
        };
        if let Some(path) = &unlearned {
            info!(
                drive = config.name,
                "it is served plainly, without free blocks and positions, because {NO_BELIEF}: `headtime \
                 adopt {path}` learns one"
            );
        }
        let bytes = parts.blocks * u64::from(parts.block_bytes);
        let volumes = volumes(config, bytes)?;
        let exports = exports(config, &volumes);
        let (kind, scale, block_bytes) = (parts.kind, parts.scale, parts.block_bytes);
        let is_rotational = parts.is_rotational;
        let following = FollowedBelief::of(config, parts.belief.as_deref());
        let caches = caching::caches(&volumes);
        let bitmaps = marking::bitmaps(
            &marking::BitmapPlace {
                drive: &config.name,
                block_bytes,
                blocks: parts.blocks,
            },
            &volumes,
        )?;
        let parts = checking::checked(config, &volumes, parts)?;
        let station = station(config, limits, parts, exports, (caches, bitmaps))?;
        let places = config.exports.iter().cloned().zip(0..).collect();
        Ok(Drive {
            name: config.name.clone(),
            kind,
            following: Mutex::new(following),
            learned: (
                config.learned_policy,
                config.same_track,
                config.phases,
                config.grace,
            ),
            scale: (kind == "emulated").then(|| scale.times()),
            impact_ppm: AtomicU32::new(config.impact_ppm),
            bytes,
            block_bytes,
            is_rotational,
            unlearned,
            longest: limits.request_bytes,
            volumes: Mutex::new(volumes),
            exports: Mutex::new(places),
            moments: Mutex::default(),
            mailbox: station.mailbox().clone(),
            station: Mutex::new(Some(station)),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    pub(super) fn volumes(&self) -> Vec<String> {
        let volumes = self.all_volumes();
        let each = volumes.iter();
        each.map(|(volume, _)| volume.name.clone()).collect()
    }

    /// The names of the drive's exports.
    pub(super) fn exports(&self) -> Vec<String> {
        let exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        let each = exports.iter();
        each.map(|(export, _)| export.name.clone()).collect()
    }

    fn all_volumes(&self) -> MutexGuard<'_, Vec<(config::Volume, u64)>> {
        self.volumes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first byte of a volume on the drive, and its length in bytes.
    pub(super) fn volume(&self, name: &str) -> Option<(u64, u64)> {
        let (volume, length) = self.found(name)?;
        Some((volume.offset, length))
    }

    pub(super) fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// A volume and its length in bytes.
    pub(super) fn found(&self, name: &str) -> Option<(config::Volume, u64)> {
        let volumes = self.all_volumes();
        volumes
            .iter()
            .find(|(volume, _)| volume.name == name)
            .cloned()
    }

    /// Offers these exports to new clients, and adds new ones to the loop.
    pub(super) fn show(&self, config: &config::DriveConfig) {
        let new = exports(config, &self.all_volumes());
        let (tell, told) = std::sync::mpsc::channel();
        let asked = self.mailbox.call(move |event_loop| {
            let places: Vec<usize> = new
                .into_iter()
                .map(|export| event_loop.add_export(export))
                .collect();
            let _ = tell.send(places);
        });
        let places = asked.ok().and_then(|()| told.recv().ok());
        let exports = config.exports.iter().cloned();
        *self.exports.lock().unwrap_or_else(PoisonError::into_inner) =
            exports.zip(places.unwrap_or_default()).collect();
    }

    /// Sets the impact budget of background tasks in parts per million.
    ///
    /// # Errors
    /// If the drive has no background tasks.
    pub(super) fn set_impact(&self, impact_ppm: u32) -> Result<(), String> {
        if !self.following().keeps_to_budget {
            return Err(format!(
                "drive {} has no background tasks: expected one with a belief and a policy such \
                 as sptf-sw60",
                self.name
            ));
        }
        let told = self.mailbox.call(move |event_loop| {
            let now = event_loop.now();
            event_loop.engine().set_impact_budget(now, impact_ppm);
        });
        told.map_err(|gone| gone.to_string())?;
        self.impact_ppm.store(impact_ppm, Ordering::Relaxed);
        Ok(())
    }

    /// The exports as files.
    pub(super) fn files(&self) -> Vec<fuse::ExportedFile> {
        let exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        let each = exports.iter();
        each.filter_map(|(export, place)| {
            let (volume, bytes) = self.found(&export.volume)?;
            Some(fuse::ExportedFile {
                name: export.name.clone(),
                bytes,
                read_only: is_read_only(volume.access, export.access),
                mailbox: self.mailbox.clone(),
                export: *place,
                block_bytes: self.block_bytes,
            })
        })
        .collect()
    }

    /// An export as a block device of this kernel: its volume and its properties.
    pub(super) fn device(&self, name: &str) -> Option<(ublk::Exported, ublk::DeviceShape)> {
        let exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        let (export, place) = exports.iter().find(|(export, _)| export.name == name)?;
        let (volume, bytes) = self.found(&export.volume)?;
        let access = match is_read_only(volume.access, export.access) {
            true => ublk::Access::ReadOnly,
            false => ublk::Access::ReadWrite,
        };
        let exported = ublk::Exported {
            mailbox: self.mailbox.clone(),
            export: *place,
            access,
            counters: Arc::default(),
        };
        let shape = ublk::DeviceShape {
            bytes,
            logical_block: self.block_bytes,
            physical_block: self.block_bytes.max(PREFERRED),
            medium: match self.is_rotational {
                true => ublk::Medium::Rotational,
                false => ublk::Medium::Solid,
            },
            access,
            space: ublk::Trims::Passed,
        };
        Some((exported, shape))
    }

    /// The loop's status of the drive, completed from the configuration.
    pub(super) fn described(&self, mut picture: status::DriveStatus) -> status::DriveStatus {
        caching::name(&mut picture.caches, &self.all_volumes());
        let following = self.following().clone();
        if picture.mode == status::Mode::Plain && following.model.is_none() {
            let name = &self.name;
            picture.mode_reason = match &self.unlearned {
                Some(path) => format!(
                    "{NO_BELIEF}: `headtime adopt {path}` learns one, and `headtime ctl profile {name}` does \
                     while it serves"
                ),
                None => NO_BELIEF.to_owned(),
            };
        }
        status::DriveStatus {
            name: self.name.clone(),
            back_end: self.kind.to_owned(),
            model: following.model,
            time_scale: self.scale,
            capacity_bytes: self.bytes,
            policy: following.policy,
            impact: status::Impact {
                budget_percent: f64::from(self.impact_ppm.load(Ordering::Relaxed)) / 1e4,
                ..picture.impact
            },
            ..picture
        }
    }

    /// Ends the pending operations, and then the loop.
    ///
    /// # Errors
    /// If the loop has failed, or acknowledged data could not be written.
    pub(super) fn stop(&self) -> io::Result<()> {
        let mut station = self.station.lock().unwrap_or_else(PoisonError::into_inner);
        station.take().map_or(Ok(()), Station::stop)
    }
}

/// The path of a back end that may be a disk.
fn learnable(back_end: &config::BackEnd) -> Option<String> {
    match back_end {
        config::BackEnd::Memory { .. }
        | config::BackEnd::Emulated(_)
        | config::BackEnd::Mirror(_) => None,
        config::BackEnd::File { path, .. } => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            Some(path.display().to_string())
        }
        config::BackEnd::Device(device) => Some(device.path.display().to_string()),
        config::BackEnd::Nbd(remote) => Some(remote.uri.clone()),
    }
}

fn parts(config: &config::DriveConfig, hooks: &Hooks) -> Result<Parts, String> {
    if let config::BackEnd::Mirror(mirror) = &config.back_end {
        return mirrored::parts(mirror, &config.name, hooks);
    }
    let belief = believed(&config.belief, config.belief_unchecked)?.map(Arc::new);
    match &config.back_end {
        config::BackEnd::Nbd(remote) => behind::parts(remote, belief, config),
        back_end => of_back_end(back_end, &config.belief, belief),
    }
}

/// The profile of a belief that is worth following; `None` if none is named.
pub(super) fn believed(
    belief: &Belief,
    unchecked: block::Switch,
) -> Result<Option<Profile>, String> {
    match belief {
        Belief::Nothing | Belief::Emulated => Ok(None),
        Belief::Profile(model) => {
            let belief = profile(model)?;
            doubted(&belief, unchecked)?;
            Ok(Some(belief))
        }
    }
}

/// Checks that a belief is worth following.
fn doubted(belief: &Profile, unchecked: block::Switch) -> Result<(), String> {
    let doubt = belief.confidence.as_ref().and_then(|found| found.doubt());
    match (doubt, unchecked) {
        (Some(doubt), block::Switch::Off) => Err(format!(
            "the belief {}: {doubt}: `headtime profile` with a larger --budget, or belief = \
             \"nothing\", or belief_unchecked = true",
            belief.name
        )),
        _ => Ok(()),
    }
}

/// The parts of a back end of this machine that is no mirror.
fn of_back_end(
    back_end: &config::BackEnd,
    kind: &Belief,
    belief: Option<Arc<Profile>>,
) -> Result<Parts, String> {
    match back_end {
        config::BackEnd::Memory { size } => {
            let size = *size;
            Ok(Parts {
                back_end: Box::new(move || Ok(Box::new(Ram::new(size)?) as Box<dyn BackEnd>)),
                belief: None,
                blocks: size / 512,
                block_bytes: 512,
                scale: TimeScale::REAL,
                kind: "memory",
                is_rotational: false,
                mirror: None,
            })
        }
        config::BackEnd::File { path, size, direct } => {
            let caching = match direct {
                block::Switch::On => Caching::Direct,
                block::Switch::Off => Caching::Cached,
            };
            let block_bytes = match caching {
                Caching::Direct => DIRECT_BLOCK,
                Caching::Cached => belief.as_ref().map_or(512, |belief| belief.block_bytes),
            };
            let image = match size {
                Some(size) => {
                    let blocks = size / u64::from(block_bytes);
                    Image::open_or_make(path, block_bytes, blocks, caching)
                }
                None => Image::open(path, block_bytes, caching),
            };
            of_image(image, path, belief, "file")
        }
        config::BackEnd::Device(device) => device::parts(device, belief),
        config::BackEnd::Emulated(emulated) => {
            let mut parts = emulation(emulated)?;
            match kind {
                Belief::Nothing => parts.belief = None,
                Belief::Emulated => (),
                Belief::Profile(_) => parts.belief = belief,
            }
            Ok(parts)
        }
        config::BackEnd::Nbd(_) | config::BackEnd::Mirror(_) => {
            Err("expected a file, a device or an emulated drive".to_owned())
        }
    }
}

fn of_image(
    image: io::Result<Image>,
    path: &std::path::Path,
    belief: Option<Arc<Profile>>,
    kind: &'static str,
) -> Result<Parts, String> {
    let image = image.map_err(|error| format!("{}: {error}", path.display()))?;
    let shape = image.shape();
    if let Some(belief) = &belief
        && (belief.block_bytes != shape.block_bytes || belief.geometry.sectors().0 < shape.blocks)
    {
        return Err(format!(
            "{}: {} blocks of {} bytes, and its profile has {} of {}: expected the drive's own \
             profile",
            path.display(),
            shape.blocks,
            shape.block_bytes,
            belief.geometry.sectors().0,
            belief.block_bytes
        ));
    }
    Ok(Parts {
        blocks: shape.blocks,
        block_bytes: shape.block_bytes,
        back_end: Box::new(move || Ok(Box::new(image) as Box<dyn BackEnd>)),
        is_rotational: belief.is_some(),
        belief,
        scale: TimeScale::REAL,
        kind,
        mirror: None,
    })
}

/// The preferred block size of clients in bytes: the page of kernels and file systems.
const PREFERRED: u32 = 4096;

/// The block size of direct input and output in bytes. It is whole blocks of every medium.
const DIRECT_BLOCK: u32 = 4096;
