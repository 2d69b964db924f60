//! What a loop is told of the exports of its drive.

use crate::config;
use crate::volume::Export;

/// Where the volumes of the exports begin, and how long they are.
pub(super) fn exports(
    config: &config::DriveConfig,
    volumes: &[(config::Volume, u64)],
) -> Vec<Export> {
    let each = config.exports.iter();
    each.filter_map(|export| {
        let mut volumes = volumes.iter();
        let (volume, length) = volumes.find(|(volume, _)| volume.name == export.volume)?;
        Some(Export {
            name: export.name.clone(),
            offset: volume.offset,
            length: *length,
            class: export.class.of_requests(),
        })
    })
    .collect()
}
