//! The offers for NBD clients: exports and checkpoints. And the files of dirty bitmaps.

use std::sync::PoisonError;

use nbd::Context;
use nbd::offer::{BlockSizes, Features, Offer, Text};

use super::marking::{self, BitmapPlace};
use super::{Drive, PREFERRED, is_read_only};
use crate::checkpoint::moment::export_of;
use crate::config;
use crate::volume::OpenBitmap;

/// An open checkpoint as clients find it.
pub(super) struct ShownMoment {
    volume: String,
    /// The index of the export in the loop.
    place: usize,
    /// The name of the dirty bitmap that was frozen at the moment.
    bitmap: Option<String>,
}

impl Drive {
    /// The offers for clients, and the indices of the exports in the loop.
    pub(in super::super) fn offers(&self) -> Vec<(Offer, usize)> {
        let exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        let each = exports.iter();
        each.filter_map(|(export, place)| Some((self.offer(export)?, *place)))
            .chain(self.moment_offers())
            .collect()
    }

    fn offer(&self, export: &config::Export) -> Option<Offer> {
        let (volume, size) = self.found(&export.volume)?;
        let block = self.block_bytes;
        Some(Offer {
            name: Text::new(export.name.as_str()).ok()?,
            description: Text::new(export.description.as_str()).ok()?,
            size,
            block: BlockSizes::new(block, block.max(PREFERRED), self.longest).ok()?,
            features: Features {
                read_only: is_read_only(volume.access, export.access),
                flush: true,
                fua: true,
                trim: true,
                write_zeroes: true,
                fast_zero: true,
                multi_conn: export.connections > 1,
                cache: true,
                rotational: self.is_rotational,
                df: true,
            },
            contexts: vec![Context::Allocation],
        })
    }

    /// Shows the checkpoint of a volume to new clients, or none.
    pub(in super::super) fn show_moment(
        &self,
        volume: &str,
        moment: Option<(usize, Option<String>)>,
    ) {
        let mut moments = self.moments.lock().unwrap_or_else(PoisonError::into_inner);
        moments.retain(|other| other.volume != volume);
        moments.extend(moment.map(|(place, bitmap)| ShownMoment {
            volume: volume.to_owned(),
            place,
            bitmap,
        }));
    }

    /// The offers of checkpoints, and the indices of their exports in the loop.
    fn moment_offers(&self) -> Vec<(Offer, usize)> {
        let moments = self.moments.lock().unwrap_or_else(PoisonError::into_inner);
        let each = moments.iter();
        each.filter_map(|moment| Some((self.moment_offer(moment)?, moment.place)))
            .collect()
    }

    fn moment_offer(&self, moment: &ShownMoment) -> Option<Offer> {
        let (_, size) = self.found(&moment.volume)?;
        let block = self.block_bytes;
        let of_bitmap = moment.bitmap.as_deref().map(Context::dirty_bitmap);
        Some(Offer {
            name: Text::new(export_of(&moment.volume)).ok()?,
            description: Text::new(format!("a moment of volume {}", moment.volume)).ok()?,
            size,
            block: BlockSizes::new(block, block.max(PREFERRED), self.longest).ok()?,
            features: Features {
                read_only: true,
                flush: true,
                multi_conn: true,
                cache: true,
                rotational: self.is_rotational,
                df: true,
                ..Features::default()
            },
            contexts: [Context::Allocation].into_iter().chain(of_bitmap).collect(),
        })
    }

    /// Makes the file of a new dirty bitmap.
    ///
    /// # Errors
    /// If the volume keeps none, or the file is there or cannot be made.
    pub(in super::super) fn make_bitmap(
        &self,
        volume: &str,
        name: &str,
    ) -> Result<OpenBitmap, String> {
        let (volume, length) = self.found(volume).ok_or("no such volume")?;
        let place = BitmapPlace {
            drive: &self.name,
            block_bytes: self.block_bytes,
            blocks: self.bytes / u64::from(self.block_bytes),
        };
        marking::make(&place, (&volume, length), name)
    }

    /// Removes the file of a dirty bitmap.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(in super::super) fn remove_bitmap(&self, volume: &str, name: &str) -> Result<(), String> {
        let (volume, _) = self.found(volume).ok_or("no such volume")?;
        marking::remove(&volume, name)
    }
}
