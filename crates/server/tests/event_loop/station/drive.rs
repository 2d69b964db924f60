//! Stations of an emulated drive behind a cache.

use std::sync::Arc;

use ::drive::{Imperfections, Profile, VirtualDrive};
use engine::{Engine, Limits};
use scheduler::Preemption;
use scheduler::policy::find;
use server::cache_setting::CacheSetting;
use server::clock::TimeScale;
use server::disk::back_end::BackEnd;
use server::disk::back_end::emulated::Emulated;
use server::disk::back_end::file::{Caching, Image};
use tempfile::TempDir;

use super::{Served, event_loop};
use crate::streams;

impl Served {
    /// An emulated drive, behind a cache, with free blocks for background tasks.
    pub fn swept(cache: CacheSetting, scale: f64, bytes: u64) -> Served {
        let background = |engine: Engine| engine.with_background(engine::Rules::default());
        Served::before_drive(cache, scale, bytes, background)
    }

    /// An emulated drive, behind a cache, with rules of preemption.
    pub fn preempted(cache: CacheSetting, rules: Preemption, scale: f64, bytes: u64) -> Served {
        let preemption = move |engine: Engine| engine.with_preemption(rules);
        Served::before_drive(cache, scale, bytes, preemption)
    }

    fn before_drive(
        cache: CacheSetting,
        scale: f64,
        bytes: u64,
        with: impl FnOnce(Engine) -> Engine + Send + 'static,
    ) -> Served {
        let folder = tempfile::tempdir().expect("a folder");
        let truth = streams::drive();
        let drive = drive_in(&folder, Arc::clone(&truth), 0);
        let block = truth.block_bytes;
        let scale = TimeScale::new(scale).expect("a scale");
        Served::build(folder, &[bytes], block, move |mailbox| {
            let policy = find("sptf-sw60").expect("a policy");
            let limits = Limits::suited_to(policy, &truth);
            let engine = with(Engine::new(truth, &|| policy.make(), limits));
            event_loop(engine, drive(), scale, &[bytes], mailbox)?.with_caches(&[(cache, 0, bytes)])
        })
    }
}

/// A drive with its image in the folder.
pub(super) fn drive_in(
    folder: &TempDir,
    truth: Arc<Profile>,
    seed: u64,
) -> impl FnOnce() -> Box<dyn BackEnd> + Send + 'static {
    let image = folder.path().join("image");
    move || {
        let blocks = truth.geometry.sectors().0;
        let image = Image::open_or_make(&image, truth.block_bytes, blocks, Caching::Cached);
        let drive = VirtualDrive::imperfect(truth, Imperfections::default(), seed);
        Box::new(Emulated::new(drive, image.expect("an image")).with_dice(seed))
    }
}
