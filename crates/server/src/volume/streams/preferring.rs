//! Files with a priority: what anybody reads or writes of them is served at it, or at the highest that
//! somebody has asked for there.

use block::{Class, Extent, RequestId, Terms};
use engine::streams::NotGranted;
use headtime_client::wire::{self, Mode};
use stream::LocationMap;
use stream::quota::Taken;
use stream::streams::LOWEST;

use super::granting::told;
use super::{StreamRequest, Streams, Teller, refused};
use crate::disk::Disk;
use crate::volume::Volumes;
use crate::volume::exports::Exports;
use crate::volume::operation::Operation;

/// A file that has a priority and no guarantee.
pub(super) struct Preferred {
    pub(super) number: u64,
    pub(super) export: usize,
    pub(super) teller: Teller,
    pub(super) asked: wire::Attach,
    pub(super) user: u32,
    priority: u8,
    /// Its blocks on the drive, in their order.
    blocks: Vec<Extent>,
    taken: Taken,
}

impl Volumes {
    /// Gives a file a priority, or says why not.
    pub(super) fn prefer(
        &mut self,
        disk: &mut Disk,
        (request, priority): (StreamRequest, u8),
        export: usize,
        map: &LocationMap,
    ) -> Result<wire::Granted, wire::Refused> {
        let StreamRequest {
            stream,
            user,
            attach,
            teller,
        } = request;
        if priority > LOWEST {
            return Err(refused(format!(
                "priority {priority}: expected 0, the highest, to {LOWEST}"
            )));
        }
        if attach.terms.mode != Mode::Play
            || attach.terms.buffer > 0
            || attach.terms.memory.is_some()
        {
            return Err(refused(
                "a rate of 0 and a priority: expected no buffer, no memory and mode play, or a rate",
            ));
        }
        let taken = match disk.engine.claim(user, &attach.terms.name) {
            Ok(taken) => taken,
            Err(NotGranted::Refused(refusal)) => return Err(told(disk, &refusal)),
            Err(other) => return Err(refused(other.to_string())),
        };
        let blocks = blocks_of(map);
        self.hasten(disk, export, priority, &blocks);
        self.streams.preferred.push(Preferred {
            number: stream,
            export,
            teller,
            asked: attach,
            user,
            priority,
            blocks,
            taken,
        });
        Ok(wire::Granted {
            stream,
            ..wire::Granted::default()
        })
    }

    /// What waits already of these blocks is served at the priority from now on, if that is higher.
    fn hasten(&mut self, disk: &mut Disk, export: usize, priority: u8, blocks: &[Extent]) {
        let class = Class::BestEffort(priority);
        let mut waiting = Vec::new();
        for (key, pending) in &self.pending {
            let operation = pending.operation;
            if operation.export == export && operation.length > 0 {
                let around = self.exports.around(&operation);
                if overlaps(blocks, around)
                    && self.streams.class_of(&self.exports, &operation) > class
                {
                    waiting.push((RequestId(key as u64), around));
                }
            }
        }
        for (id, around) in waiting {
            // What is at the drive, or was never the engine's, is as it is.
            let _ = disk.engine.upgrade(disk.now, id, around, class);
        }
    }
}

impl Streams {
    /// The class of an operation: its export's, unless somebody has asked for a priority there.
    pub(in crate::volume) fn class_of(&self, exports: &Exports, operation: &Operation) -> Class {
        let class = exports.class(operation.export);
        if operation.length == 0 || !self.has_priorities() {
            return class;
        }
        match (class, self.priority_of(exports.around(operation))) {
            (Class::BestEffort(_) | Class::Background, Some(priority)) => {
                Class::BestEffort(priority)
            }
            _ => class,
        }
    }

    /// The file with this number lies elsewhere; none if there is none.
    pub(super) fn refresh_preferred(
        &mut self,
        exports: &Exports,
        refresh: &wire::Refresh,
    ) -> Option<Result<wire::Change, wire::Refused>> {
        let mut all = self.preferred.iter();
        let place = all.position(|file| file.number == refresh.stream)?;
        let export = self.preferred[place].export;
        Some(match exports.map(export, &refresh.places) {
            Ok(map) => {
                let file = &mut self.preferred[place];
                let before = std::mem::replace(&mut file.blocks, blocks_of(&map));
                let is_same = before == file.blocks;
                file.asked.places = refresh.places.clone();
                Ok(match is_same {
                    true => wire::Change::Same,
                    false => wire::Change::Moved(0),
                })
            }
            Err(problem) => Err(refused(problem)),
        })
    }

    /// The file with this number has no priority any more.
    pub(super) fn forget_preferred(&mut self, disk: &mut Disk, number: u64) {
        let mut all = self.preferred.iter();
        if let Some(place) = all.position(|file| file.number == number) {
            let file = self.preferred.remove(place);
            disk.engine.give_back(file.taken);
        }
    }

    /// Whether anybody has asked for a priority.
    fn has_priorities(&self) -> bool {
        let mut streams = self.table.iter();
        !self.preferred.is_empty() || streams.any(|entry| entry.terms.priority.is_some())
    }

    /// The highest priority that somebody has asked for some of these blocks.
    fn priority_of(&self, extent: Extent) -> Option<u8> {
        let files = self.preferred.iter();
        let files = files.filter(|file| overlaps(&file.blocks, extent));
        let streams = self.table.iter().filter_map(|entry| {
            let priority = entry.terms.priority?;
            entry.kept.parts(extent).next().map(|_| priority)
        });
        files.map(|file| file.priority).chain(streams).min()
    }
}

impl Preferred {
    /// As those see it who look.
    pub(super) fn listed(&self) -> wire::Listed {
        wire::Listed {
            stream: self.number,
            user: self.user,
            terms: Terms {
                memory: Some(0),
                ..self.asked.terms.clone()
            },
            standing: wire::Standing::BestEffort,
            ..wire::Listed::default()
        }
    }
}

/// The blocks of a file, in the order of the drive.
fn blocks_of(map: &LocationMap) -> Vec<Extent> {
    let mut blocks: Vec<Extent> = map.pieces().iter().map(|piece| piece.extent).collect();
    blocks.sort_unstable_by_key(|extent| extent.start());
    blocks
}

/// Whether some of the blocks, which are in the order of the drive, are among these.
fn overlaps(blocks: &[Extent], extent: Extent) -> bool {
    let first = blocks.partition_point(|other| other.end() <= extent.start());
    blocks
        .get(first)
        .is_some_and(|other| other.overlaps(extent))
}
