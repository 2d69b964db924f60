//! Checkpoints and dirty bitmaps, from an order of a user to a drive's loop.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::PoisonError;
use std::sync::mpsc;
use std::time::Duration;

use tracing::info;

use super::drives::Drive;
use super::{Running, directory, locked};
use crate::checkpoint::marks::BitmapStatus;
use crate::checkpoint::moment::CheckpointStatus;
use crate::control::protocol::{BeginCheckpoint, BegunCheckpoint, BitmapChange};
use crate::volume::{CheckpointOrder, Release};

/// The longest wait for the moment of a checkpoint: the changes in flight end before it. A choice: far beyond the
/// slowest of them.
const MOMENT: Duration = Duration::from_secs(30);

impl Running {
    /// Makes a checkpoint of a volume, and shows its export.
    ///
    /// # Errors
    /// The reason, and what was expected.
    pub(super) fn make_checkpoint(
        &self,
        order: &BeginCheckpoint,
    ) -> Result<BegunCheckpoint, String> {
        let drive = self.drive_with(&order.volume)?;
        let (offset, length) = drive.volume(&order.volume).unwrap_or_default();
        let random = || std::hash::RandomState::new().build_hasher().finish().max(1);
        let order = CheckpointOrder {
            volume: order.volume.clone(),
            bytes: offset..offset + length,
            class: order.class.of_requests(),
            bitmap: order.bitmap.clone().map(|name| (name, random())),
            store: order.store.clone(),
        };
        let volume = order.volume.clone();
        let (tell, told) = mpsc::channel();
        let posted = drive.mailbox().call(move |event_loop| {
            let opened = Box::new(move |outcome| drop(tell.send(outcome)));
            event_loop.checkpoints().begin(order, opened);
        });
        posted.map_err(|gone| gone.to_string())?;
        let place = match told.recv_timeout(MOMENT) {
            Ok(outcome) => outcome?,
            Err(_) => {
                let release = Release::Abandoned;
                let name = volume.clone();
                Self::asked(drive.mailbox(), move |event_loop| {
                    event_loop.checkpoints().release(&name, release)
                });
                return Err(format!(
                    "volume {volume}: no moment without changes in flight within {} s: expected changes that end",
                    MOMENT.as_secs()
                ));
            }
        };
        let status = self.checkpoint_of(drive, &volume)?;
        let bitmap = status.bitmap.clone();
        drive.show_moment(&volume, Some((place, bitmap.clone())));
        self.show_again();
        info!(volume, bitmap, "a checkpoint");
        let bitmaps = self.bitmaps_of(drive);
        Ok(BegunCheckpoint {
            uri: self.uri(&status.export),
            bitmap: bitmap.and_then(|name| {
                let mut all = bitmaps.into_iter();
                all.find(|bitmap| bitmap.volume == volume && bitmap.name == name)
            }),
            checkpoint: status,
        })
    }

    /// Ends the checkpoint of a volume.
    ///
    /// # Errors
    /// If there is none, or it is lost and was to be the base of the next backup.
    pub(super) fn end_checkpoint(&self, volume: &str, release: Release) -> Result<(), String> {
        let drive = self.drive_with(volume)?;
        let name = volume.to_owned();
        let ended = Self::asked(drive.mailbox(), move |event_loop| {
            event_loop.checkpoints().release(&name, release)
        });
        ended.unwrap_or_else(|| Err("the drive does not answer".to_owned()))?;
        drive.show_moment(volume, None);
        self.show_again();
        info!(volume, ?release, "a checkpoint is released");
        Ok(())
    }

    /// All checkpoints.
    pub(super) fn all_checkpoints(&self) -> Vec<CheckpointStatus> {
        let lists = self.drives.iter().filter_map(|drive| {
            Self::asked(drive.mailbox(), |event_loop| {
                event_loop.checkpoints().list()
            })
        });
        lists.flatten().collect()
    }

    /// All dirty bitmaps.
    pub(super) fn all_bitmaps(&self) -> Vec<BitmapStatus> {
        let lists = self.drives.iter().map(|drive| self.bitmaps_of(drive));
        lists.flatten().collect()
    }

    /// Adds or removes a dirty bitmap.
    ///
    /// # Errors
    /// The reason, and what was expected.
    pub(super) fn change_bitmap(
        &self,
        (volume, name): (&str, &str),
        change: BitmapChange,
    ) -> Result<(), String> {
        // One at a time: names stay unique.
        let _config = locked(&self.config);
        let drive = self.drive_with(volume)?;
        let silent = || Err("the drive does not answer".to_owned());
        match change {
            BitmapChange::Add => {
                let bitmap = drive.make_bitmap(volume, name)?;
                let added = Self::asked(drive.mailbox(), move |event_loop| {
                    event_loop.checkpoints().add_bitmap(bitmap)
                });
                added.map_or_else(silent, |added| added.map_err(|error| error.to_string()))
            }
            BitmapChange::Remove => {
                let (of, called) = (volume.to_owned(), name.to_owned());
                let removed = Self::asked(drive.mailbox(), move |event_loop| {
                    event_loop.checkpoints().remove_bitmap(&of, &called)
                });
                removed.unwrap_or_else(silent)?;
                drive.remove_bitmap(volume, name)
            }
        }
    }

    fn bitmaps_of(&self, drive: &Drive) -> Vec<BitmapStatus> {
        let list = Self::asked(drive.mailbox(), |event_loop| {
            event_loop.checkpoints().bitmaps()
        });
        list.unwrap_or_default()
    }

    fn checkpoint_of(&self, drive: &Drive, volume: &str) -> Result<CheckpointStatus, String> {
        let list = Self::asked(drive.mailbox(), |event_loop| {
            event_loop.checkpoints().list()
        });
        let mut all = list.unwrap_or_default().into_iter();
        let found = all.find(|one| one.volume == volume);
        found.ok_or_else(|| format!("the checkpoint of volume {volume} was released"))
    }

    fn show_again(&self) {
        let shown = directory(&self.drives);
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// The drive of a volume.
    fn drive_with(&self, volume: &str) -> Result<&Drive, String> {
        let mut drives = self.drives.iter();
        drives
            .find(|drive| drive.volume(volume).is_some())
            .ok_or_else(|| {
                let volumes = self.drives.iter().flat_map(Drive::volumes);
                let volumes: Vec<String> = volumes.collect();
                format!("no volume {volume}: expected one of {}", volumes.join(", "))
            })
    }
}
