//! A drive that is an export of another NBD server.

use std::sync::Arc;

use drive::Profile;

use super::Parts;
use crate::clock::TimeScale;
use crate::config;
use crate::disk::back_end::BackEnd;
use crate::disk::back_end::nbd::Found;

/// Connects to it.
///
/// # Errors
/// What is wrong, and what was expected.
pub(super) fn parts(
    remote: &config::Remote,
    belief: Option<Arc<Profile>>,
    drive: &config::DriveConfig,
) -> Result<Parts, String> {
    let block_bytes = belief.as_ref().map(|belief| belief.block_bytes);
    let export = Found::connect(remote, block_bytes)?;
    let (shape, features) = (export.shape(), export.offer().features);
    let mut volumes = drive.volumes.iter();
    if let Some(volume) = volumes.find(|volume| volume.access == config::Access::ReadWrite)
        && features.read_only
    {
        return Err(format!(
            "{}: it may only be read: expected read_only = true of volume {}",
            remote.uri, volume.name
        ));
    }
    if let Some(belief) = &belief
        && belief.geometry.sectors().0 < shape.blocks
    {
        return Err(format!(
            "{}: {} blocks, and its profile has {}: expected the disk's own profile",
            remote.uri,
            shape.blocks,
            belief.geometry.sectors().0
        ));
    }
    Ok(Parts {
        mirror: None,
        blocks: shape.blocks,
        block_bytes: shape.block_bytes,
        back_end: Box::new(move || Ok(Box::new(export.take_up()?) as Box<dyn BackEnd>)),
        is_rotational: belief.is_some() || features.rotational,
        belief,
        scale: TimeScale::REAL,
        kind: "nbd",
    })
}
