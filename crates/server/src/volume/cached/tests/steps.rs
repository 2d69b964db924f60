//! Arbitrary steps and settings.

use block::Class;
use cache::{coordinator, prefetch, replacement};
use proptest::prelude::*;

use super::SECTORS;
use crate::cache_setting::{CacheSetting, PAGE, Readmore, Writes};

/// What happens next.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Read(u64, u64),
    /// Without regard to pages, as edges of writes are.
    Past(u64, u64),
    /// Through to the volume.
    Write(u64, u64),
    /// Kept, if it can be.
    Store(u64, u64),
    Flush,
    /// One of the engine's requests that may is done, and has not ended yet.
    Act(usize),
    /// One of the engine's requests that may end does: well, or not.
    End(usize, bool),
    /// Space is given back, once nothing else changes it.
    Trim(u64, u64),
    /// A read in the background that is not ordered with anything.
    Pass(u64, u64),
    /// The same, ahead of a request, in slack that nothing else wanted.
    Ahead(u64, u64),
    /// One of these is done and has not ended, or ends: well, or not.
    Passed(usize, Option<bool>),
    /// So many milliseconds pass.
    Wait(u64),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let place = || (0..SECTORS, 1..40u64).prop_map(|(at, count)| (at, count.min(SECTORS - at)));
    prop_oneof![
        6 => place().prop_map(|(at, count)| Step::Read(at, count)),
        2 => place().prop_map(|(at, count)| Step::Past(at, count)),
        3 => place().prop_map(|(at, count)| Step::Write(at, count)),
        4 => place().prop_map(|(at, count)| Step::Store(at / 8 * 8, count.div_ceil(8) * 8)),
        1 => place().prop_map(|(at, count)| Step::Store(at, count)),
        1 => Just(Step::Flush),
        2 => any::<usize>().prop_map(Step::Act),
        9 => (any::<usize>(), prop::bool::weighted(0.97)).prop_map(|(which, well)| Step::End(which, well)),
        1 => place().prop_map(|(at, count)| Step::Trim(at, count)),
        4 => place().prop_map(|(at, count)| Step::Pass(at, count)),
        3 => place().prop_map(|(at, count)| Step::Ahead(at, count)),
        6 => (any::<usize>(), prop::option::of(prop::bool::weighted(0.9)))
            .prop_map(|(which, ends)| Step::Passed(which, ends)),
        1 => (0..800u64).prop_map(Step::Wait),
    ]
}

pub(super) fn setting() -> impl Strategy<Value = CacheSetting> {
    let any_of = |names: Vec<&'static str>| prop::sample::select(names);
    let replacement = any_of(replacement::ALL.iter().map(|entry| entry.name).collect());
    let prefetch = any_of(prefetch::ALL.iter().map(|entry| entry.name).collect());
    let coordinator = any_of(coordinator::ALL.iter().map(|entry| entry.name).collect());
    let writes = prop_oneof![Just(Writes::Through), Just(Writes::Back)];
    let readmore = prop_oneof![Just(Readmore::Ordinary), Just(Readmore::Free)];
    let parts = (
        2..40u64,
        replacement,
        prefetch,
        coordinator,
        readmore,
        writes,
    );
    parts.prop_map(
        |(pages, replacement, prefetch, coordinator, readmore, writes)| CacheSetting {
            bytes: pages * PAGE,
            replacement: replacement.to_owned(),
            prefetch: prefetch.to_owned(),
            coordinator: coordinator.to_owned(),
            readmore: match coordinator {
                "none" | "du" => Readmore::Ordinary,
                _ => readmore,
            },
            writes,
            ahead: Class::BestEffort(6),
        },
    )
}
