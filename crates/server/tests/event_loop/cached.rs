//! Caches before volumes: the bytes are those of the volume, whatever the cache does.

use block::Class;
use cache::{coordinator, prefetch, replacement};
use proptest::prelude::*;
use server::cache_setting::{CacheSetting, PAGE, Readmore, Writes};

use crate::random::{BLOCKS, play_on, play_on_volumes, steps, steps_beside_streams};
use crate::station::{BLOCK, Medium, Served};

mod ahead;
mod beside;
mod flushes;
mod order;
pub mod posted;
pub mod swept;
mod wished;

/// A cache of at most so many pages, of any algorithms.
pub fn setting(most: u64) -> impl Strategy<Value = CacheSetting> {
    let names = |all: Vec<&'static str>| prop::sample::select(all);
    let replacement = names(replacement::ALL.iter().map(|entry| entry.name).collect());
    let prefetch = names(prefetch::ALL.iter().map(|entry| entry.name).collect());
    let coordinator = names(coordinator::ALL.iter().map(|entry| entry.name).collect());
    let writes = prop_oneof![Just(Writes::Through), Just(Writes::Back)];
    let ahead = prop_oneof![Just(Class::BestEffort(6)), Just(Class::Background)];
    let parts = (2..=most, replacement, prefetch, coordinator, writes, ahead);
    parts.prop_map(
        |(pages, replacement, prefetch, coordinator, writes, ahead)| {
            // What it marks, only this one looks at.
            let replacement = match coordinator {
                "du" => "du",
                _ => replacement,
            };
            CacheSetting {
                bytes: pages * PAGE,
                replacement: replacement.to_owned(),
                prefetch: prefetch.to_owned(),
                coordinator: coordinator.to_owned(),
                readmore: Readmore::Ordinary,
                writes,
                ahead,
            }
        },
    )
}

fn behind(setting: &CacheSetting, medium: Medium) -> Served {
    Served::behind(Some(setting.clone()), medium, BLOCKS * BLOCK)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_cache_before_memory_holds_what_some_order_gives(
        setting in setting(600),
        steps in steps(),
    ) {
        play_on(behind(&setting, Medium::Memory), Medium::Memory, steps);
    }

    #[test]
    fn a_cache_before_a_file_holds_what_some_order_gives(
        setting in setting(600),
        steps in steps(),
    ) {
        play_on(behind(&setting, Medium::File), Medium::File, steps);
    }

    #[test]
    fn a_cache_before_a_drive_holds_what_some_order_gives(
        setting in setting(600),
        steps in steps(),
    ) {
        play_on(behind(&setting, Medium::Emulated), Medium::Emulated, steps);
    }

    /// A page is a block: most operations change parts of some.
    #[test]
    fn a_cache_before_coarse_blocks_holds_what_some_order_gives(
        setting in setting(600),
        steps in steps(),
    ) {
        play_on(behind(&setting, Medium::CoarseFile), Medium::CoarseFile, steps.clone());
        play_on(behind(&setting, Medium::CoarseDrive), Medium::CoarseDrive, steps);
    }

    /// Streams are on one volume of the drive, the cache before another one.
    #[test]
    fn a_cache_beside_streams_holds_what_some_order_gives(
        setting in setting(600),
        steps in steps_beside_streams(),
    ) {
        play_on_volumes(behind(&setting, Medium::Promising), Medium::Promising, 2, steps);
    }

    /// One station is the back end of another, and both have a cache.
    #[test]
    fn two_levels_hold_what_some_order_gives(
        upper in setting(300),
        lower in setting(600),
        steps in steps(),
    ) {
        let behind = behind(&lower, Medium::File);
        let served = Served::over(&behind, upper, BLOCKS * BLOCK);
        play_on(served, Medium::Behind, steps);
        behind.stop();
    }
}
