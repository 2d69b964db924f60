//! The caches before the volumes of a drive.

use crate::cache_setting::CacheSetting;
use crate::{config, status};

/// Of each: its setting, where its volume begins, and how many bytes that has.
pub(super) type Caches = Vec<(CacheSetting, u64, u64)>;

/// Those of the volumes that have one, in the volumes' order.
pub(super) fn caches(volumes: &[(config::Volume, u64)]) -> Caches {
    let each = volumes.iter();
    each.filter_map(|(volume, length)| Some((volume.cache.clone()?, volume.offset, *length)))
        .collect()
}

/// Names what they tell of themselves.
pub(super) fn name(caches: &mut [status::Cache], volumes: &[(config::Volume, u64)]) {
    let with_cache = volumes.iter().filter(|(volume, _)| volume.cache.is_some());
    for ((volume, _), cache) in with_cache.zip(caches) {
        cache.volume.clone_from(&volume.name);
    }
}
