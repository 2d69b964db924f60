//! How many bytes the volumes of a drive have, now and after a reload.

use super::Drive;
use crate::config;
use crate::mirror::DATA_OFFSET;
use crate::volume::Resize;

impl Drive {
    /// The volumes that have another length in this configuration, which differs in nothing else
    /// about them.
    ///
    /// # Errors
    /// If they do not fit the drive.
    pub(in crate::service) fn resizes(
        &self,
        config: &config::DriveConfig,
    ) -> Result<Vec<Resize>, String> {
        let new = volumes(config, self.bytes)?;
        let old = self.all_volumes();
        let pairs = old.iter().zip(&new);
        let other = pairs.filter(|(old, new)| old.1 != new.1);
        let each = other.map(|((volume, from), (_, to))| Resize {
            volume: volume.name.clone(),
            offset: volume.offset,
            from: *from,
            to: *to,
        });
        Ok(each.collect())
    }

    /// They have it now, for whoever comes.
    ///
    /// # Errors
    /// If they do not fit the drive, which [`Drive::resizes`] said before.
    pub(in crate::service) fn resized(&self, config: &config::DriveConfig) -> Result<(), String> {
        *self.all_volumes() = volumes(config, self.bytes)?;
        Ok(())
    }
}

/// The volumes with their lengths.
pub(in crate::service) fn volumes(
    config: &config::DriveConfig,
    bytes: u64,
) -> Result<Vec<(config::Volume, u64)>, String> {
    // The volumes of a mirror lie behind its superblocks.
    let reserved = match &config.back_end {
        config::BackEnd::Mirror(_) => DATA_OFFSET,
        _ => 0,
    };
    let placed = config.volumes.iter().map(|volume| config::Volume {
        offset: volume.offset + reserved,
        ..volume.clone()
    });
    let each = placed.map(|volume| {
        let there = bytes.saturating_sub(volume.offset);
        let whole = there / config::ALIGN_BYTES * config::ALIGN_BYTES;
        let length = volume.size.unwrap_or(whole);
        match length {
            1.. if length <= there => Ok((volume, length)),
            _ => Err(format!(
                "volume {} has {length} bytes from byte {} on, and the drive has {}: expected \
                 it to end on the drive",
                volume.name,
                volume.offset - reserved,
                bytes - reserved
            )),
        }
    });
    each.collect()
}
