//! Checkpoints and dirty bitmaps begin and end.

use std::io;

use super::{COPIES, CheckpointOrder, Checkpoints, OpenBitmap, Opened, Release, URGENT};
use super::{is_changed, overlap};
use crate::arena::Arena;
use crate::checkpoint::CHUNK;
use crate::checkpoint::marks::{MarkState, Marks};
use crate::checkpoint::moment::{Checkpoint, Stage, export_of};
use crate::checkpoint::store::Store;
use crate::disk::Disk;
use crate::volume::Volumes;
use crate::volume::exports::Export;

/// Checkpoints begin and end.
impl Volumes {
    /// Orders a checkpoint. `opened` is called at its moment.
    pub(crate) fn begin_checkpoint(&mut self, order: CheckpointOrder, opened: Opened) {
        match self.make_checkpoint(&order) {
            Ok(number) => self.checkpoints.told.push((number, opened)),
            Err(problem) => opened(Err(problem)),
        }
    }

    fn make_checkpoint(&mut self, order: &CheckpointOrder) -> Result<u64, String> {
        let checkpoints = &mut self.checkpoints;
        if let Some(other) =
            (checkpoints.all.iter()).find(|one| overlap(&one.bytes(), &order.bytes))
        {
            return Err(format!(
                "volume {} has a checkpoint: expected its release first",
                other.volume
            ));
        }
        if let Some((name, _)) = &order.bitmap {
            checkpoints
                .bitmaps
                .marks(&order.volume, name)?
                .may_freeze()?;
        }
        let store = Store::begin(&order.store)?;
        if checkpoints.memory.is_none() {
            let memory = Arena::map(COPIES * CHUNK as usize);
            checkpoints.memory = Some(memory.map_err(|error| format!("memory: {error}"))?);
        }
        checkpoints.made += 1;
        let export = |name, class| Export {
            name,
            offset: order.bytes.start,
            length: order.bytes.end - order.bytes.start,
            class,
        };
        let name = export_of(&order.volume);
        let exports = &mut self.operations.exports;
        let shown = exports.add(export(name.clone(), order.class));
        let urgent = exports.add(export(format!("{name} (copies)"), URGENT));
        let number = checkpoints.made;
        checkpoints.moments.insert(shown);
        checkpoints.all.push(Checkpoint::new(
            (number, order.volume.clone()),
            order.bytes.clone(),
            (shown, urgent),
            order.bitmap.clone(),
            store,
        ));
        Ok(number)
    }

    /// Ends the checkpoint of a volume. The answer is the index of its export, which has no bytes any more.
    ///
    /// # Errors
    /// If there is none, or a backup of it cannot be whole.
    pub(crate) fn release_checkpoint(
        &mut self,
        volume: &str,
        release: Release,
    ) -> Result<usize, String> {
        let checkpoints = &mut self.checkpoints;
        let place = (checkpoints.all.iter()).position(|one| one.volume == volume);
        let place = place.ok_or_else(|| format!("volume {volume} has no checkpoint"))?;
        if let (Stage::Failed(problem), Release::Done) = (checkpoints.all[place].stage(), release) {
            return Err(format!(
                "the checkpoint of volume {volume} is lost: {problem}"
            ));
        }
        let one = checkpoints.all.swap_remove(place);
        checkpoints.tell(
            one.number,
            Err("it was released before its moment".to_owned()),
        );
        if let Some((name, _)) = &one.bitmap {
            let end = |marks: &mut Marks| match release {
                Release::Done => marks.release(),
                Release::Abandoned => marks.abandon(),
            };
            checkpoints.bitmaps.change(volume, name, end);
        }
        Ok(one.export)
    }

    /// Opens the checkpoints whose moment has come. The answer is whether there was one.
    pub(super) fn open_checkpoints(&mut self) -> bool {
        let mut is_any = false;
        for place in 0..self.checkpoints.all.len() {
            let one = &self.checkpoints.all[place];
            if *one.stage() == Stage::Ending && is_changed(&self.operations, &one.bytes()) {
                continue;
            }
            is_any |= self.checkpoints.advance(place);
        }
        is_any
    }
}

/// Dirty bitmaps.
impl Volumes {
    /// Adds a dirty bitmap.
    ///
    /// # Errors
    /// If the system has no thread or eventfd for it.
    pub(crate) fn add_bitmap(&mut self, disk: &mut Disk, bitmap: OpenBitmap) -> io::Result<()> {
        self.checkpoints.bitmaps.add(bitmap, &mut disk.ring)
    }

    /// Removes a dirty bitmap.
    ///
    /// # Errors
    /// If there is none, or a checkpoint uses it.
    pub(crate) fn remove_bitmap(&mut self, volume: &str, name: &str) -> Result<(), String> {
        let mut all = self.checkpoints.all.iter();
        let is_used = all.any(|one| {
            let bitmap = one.bitmap.as_ref();
            one.volume == volume && bitmap.is_some_and(|(other, _)| other == name)
        });
        match is_used {
            true => Err(format!(
                "bitmap {name} has a checkpoint: expected its release first"
            )),
            false => self.checkpoints.bitmaps.remove(volume, name),
        }
    }
}

/// The moments of checkpoints.
impl Checkpoints {
    /// Advances a checkpoint of whose volume no change is in flight. The answer is whether it is in another stage.
    fn advance(&mut self, place: usize) -> bool {
        let one = &mut self.all[place];
        let (number, export) = (one.number, one.export);
        let marks = one.bitmap.as_ref().map(|(name, checkpoint)| {
            let marks = self.bitmaps.marks(&one.volume, name);
            (marks, name.clone(), *checkpoint)
        });
        match (one.stage(), marks) {
            (Stage::Ending, None) => one.open(),
            (Stage::Ending, Some((marks, name, checkpoint))) => {
                match marks.and_then(Marks::may_freeze) {
                    Ok(true) => {
                        one.freeze();
                        let freeze = |marks: &mut Marks| marks.begin_freeze(checkpoint);
                        self.bitmaps.change(&self.all[place].volume, &name, freeze);
                        return true;
                    }
                    Ok(false) => return false,
                    Err(problem) => one.fail(problem),
                }
            }
            (Stage::Freezing, Some((Ok(marks), _, checkpoint))) if marks.is_frozen(checkpoint) => {
                one.open();
            }
            (Stage::Freezing, Some((Ok(marks), ..))) if *marks.state() == MarkState::On => {
                return false;
            }
            (Stage::Freezing, _) => one.fail("its dirty bitmap is not kept any more".to_owned()),
            (Stage::Open | Stage::Failed(_), _) => return false,
        }
        let outcome = match one.stage() {
            Stage::Failed(problem) => Err(problem.clone()),
            _ => Ok(export),
        };
        if outcome.is_err() {
            self.all.swap_remove(place);
        }
        self.tell(number, outcome);
        true
    }

    pub(super) fn tell(&mut self, number: u64, outcome: Result<usize, String>) {
        let mut told = self.told.iter();
        if let Some(place) = told.position(|(other, _)| *other == number) {
            let (_, opened) = self.told.swap_remove(place);
            opened(outcome);
        }
    }
}
