//! Files with a priority and no guarantee.
//!
//! Every read or write of a file's blocks has the file's priority. Where files overlap, the highest counts.

use block::{Extent, Terms};
use headtime_client::wire::{self, StreamMode, StreamUpdate};
use stream::LocationMap;
use stream::quota::Taken;
use stream::streams::LOWEST;

use super::{StreamRequest, refused};
use crate::disk::Disk;
use crate::volume::exports::Exports;

/// The files with a priority.
#[derive(Default)]
pub(super) struct Preferences(Vec<PreferredFile>);

/// A file with a priority and no guarantee.
struct PreferredFile {
    export: usize,
    request: StreamRequest,
    priority: u8,
    /// The blocks of the file, in the order of the drive.
    blocks: Vec<Extent>,
    taken: Taken,
}

impl Preferences {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a file is on an export.
    pub(super) fn uses(&self, export: usize) -> bool {
        self.0.iter().any(|file| file.export == export)
    }

    /// Adds a file, whose request was checked.
    pub(super) fn add(
        &mut self,
        request: StreamRequest,
        (export, map): (usize, &LocationMap),
        priority: u8,
        taken: Taken,
    ) {
        self.0.push(PreferredFile {
            export,
            request,
            priority,
            blocks: blocks_of(map),
            taken,
        });
    }

    /// Replaces the places of the file with this number. `None` if there is no such file.
    pub(super) fn refresh(
        &mut self,
        exports: &Exports,
        refresh: &wire::Refresh,
    ) -> Option<Result<wire::FileChange, wire::StreamRefused>> {
        let mut all = self.0.iter_mut();
        let file = all.find(|file| file.request.stream == refresh.stream)?;
        Some(match exports.map(file.export, &refresh.places) {
            Ok(map) => {
                let before = std::mem::replace(&mut file.blocks, blocks_of(&map));
                file.request.attach.places = refresh.places.clone();
                match before == file.blocks {
                    true => Ok(wire::FileChange::Same),
                    false => Ok(wire::FileChange::Moved(0)),
                }
            }
            Err(problem) => Err(refused(problem)),
        })
    }

    /// Removes the file with this number.
    pub(super) fn remove(&mut self, disk: &mut Disk, number: u64) {
        let mut all = self.0.iter();
        if let Some(place) = all.position(|file| file.request.stream == number) {
            let file = self.0.remove(place);
            disk.engine.release_claim(file.taken);
        }
    }

    /// Removes all files, and notifies their clients of the reason.
    pub(super) fn end(&mut self, reason: &str) {
        for PreferredFile { request, .. } in self.0.drain(..) {
            let reason = reason.to_owned();
            let StreamRequest { stream, events, .. } = request;
            events.send(stream, StreamUpdate::Ended { reason });
        }
    }

    /// The priorities of the files that have some of these blocks.
    pub(super) fn priorities(&self, extent: Extent) -> impl Iterator<Item = u8> {
        let files = self.0.iter();
        let files = files.filter(move |file| overlaps(&file.blocks, extent));
        files.map(|file| file.priority)
    }

    /// The files in a listing of streams.
    pub(super) fn listed(&self) -> impl Iterator<Item = wire::Listed> {
        self.0.iter().map(|file| wire::Listed {
            stream: file.request.stream,
            user: file.request.user,
            terms: Terms {
                memory: Some(0),
                ..file.request.attach.terms.clone()
            },
            standing: wire::StreamStatus::BestEffort,
            ..wire::Listed::default()
        })
    }
}

/// Checks the terms of a file with a priority.
///
/// # Errors
/// What was expected.
pub(super) fn check(terms: &Terms, priority: u8) -> Result<(), wire::StreamRefused> {
    if priority > LOWEST {
        return Err(refused(format!(
            "priority {priority}: expected 0, the highest, to {LOWEST}"
        )));
    }
    if terms.mode != StreamMode::Play || terms.buffer > 0 || terms.memory.is_some() {
        return Err(refused(
            "a rate of 0 and a priority: expected no buffer, no memory and mode play, or a rate",
        ));
    }
    Ok(())
}

/// The blocks of a file, in the order of the drive.
pub(super) fn blocks_of(map: &LocationMap) -> Vec<Extent> {
    let mut blocks: Vec<Extent> = map.pieces().iter().map(|piece| piece.extent).collect();
    blocks.sort_unstable_by_key(|extent| extent.start());
    blocks
}

/// Whether an extent has some of the blocks, which are in the order of the drive.
pub(super) fn overlaps(blocks: &[Extent], extent: Extent) -> bool {
    let first = blocks.partition_point(|other| other.end() <= extent.start());
    blocks
        .get(first)
        .is_some_and(|other| other.overlaps(extent))
}
