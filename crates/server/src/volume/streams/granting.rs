//! Requests for streams: granted with memory, or refused.

use block::{Class, StreamMode, Terms};
use engine::streams::NotGranted;
use headtime_client::wire;
use stream::LocationMap;
use stream::memory::NoMemory;
use stream::playout::Standing;
use stream::streams::Attach;

use super::buffer::StreamBuffer;
use super::preferences::{blocks_of, check, overlaps};
use super::table::{Entry, StreamTable, StreamTotals, Written};
use super::{StreamRequest, VolumeStreams, refused};
use crate::disk::Disk;
use crate::volume::operations::Operations;

impl VolumeStreams {
    /// Grants a stream, or refuses it. `is_cached` says whether the volume at an offset has a cache.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub(crate) fn attach(
        &mut self,
        disk: &mut Disk,
        operations: &Operations,
        request: StreamRequest,
        is_cached: impl Fn(u64) -> bool,
    ) -> Result<wire::Granted, wire::StreamRefused> {
        let granted = self.grant(disk, operations, request, is_cached);
        match granted {
            Ok(_) => self.totals.granted += 1,
            Err(_) => self.totals.refused += 1,
        }
        granted
    }

    fn grant(
        &mut self,
        disk: &mut Disk,
        operations: &Operations,
        request: StreamRequest,
        is_cached: impl Fn(u64) -> bool,
    ) -> Result<wire::Granted, wire::StreamRefused> {
        let attach = &request.attach;
        let preferred = attach.terms.preference();
        if self.is_stopping {
            return Err(refused("the service is stopping"));
        }
        if attach.terms.buffer == 0 && preferred.is_none() {
            return Err(refused(
                "a buffer of 0 bytes: expected what is read or written at once, at least",
            ));
        }
        let exports = &operations.exports;
        let all = exports.all().iter().enumerate();
        let mut named = all.filter(|(_, other)| other.name == attach.export());
        let Some((export, first)) = named.next() else {
            return Err(refused(format!("no export {}", attach.export())));
        };
        // Clients from before a reload, and the kernel, still have the earlier volume.
        if named.any(|(_, other)| other.offset != first.offset) {
            return Err(refused(format!(
                "export {} was another volume's before a reload: expected one that was not, or a \
                 restart of the service",
                attach.export()
            )));
        }
        // A block in a buffer and in a cache would have to change in both.
        if is_cached(first.offset) {
            return Err(refused(format!(
                "export {} is of a volume with a cache: expected one without",
                attach.export()
            )));
        }
        let map = exports.map(export, &attach.places);
        let map = map.map_err(refused)?;
        match preferred {
            Some(priority) => self.prefer(disk, operations, request, (export, &map), priority),
            None => self.guarantee(disk, request, export, &map),
        }
    }

    /// Gives a file a priority, or refuses it.
    fn prefer(
        &mut self,
        disk: &mut Disk,
        operations: &Operations,
        request: StreamRequest,
        (export, map): (usize, &LocationMap),
        priority: u8,
    ) -> Result<wire::Granted, wire::StreamRefused> {
        let StreamRequest {
            stream,
            user,
            attach,
            ..
        } = &request;
        check(&attach.terms, priority)?;
        let stream = *stream;
        let taken = match disk.engine.claim(*user, &attach.terms.name) {
            Ok(taken) => taken,
            Err(NotGranted::Refused(refusal)) => return Err(in_real_time(disk, &refusal)),
            Err(other) => return Err(refused(other.to_string())),
        };
        // Waiting operations on these blocks get the priority, too, if it is higher.
        let blocks = blocks_of(map);
        let class = Class::BestEffort(priority);
        let waiting = operations.less_urgent(
            export,
            class,
            |extent| overlaps(&blocks, extent),
            |operation| self.class_of(&operations.exports, operation),
        );
        for (id, around) in waiting {
            // The engine refuses requests at the drive, and those that it never had.
            let _ = disk.engine.upgrade(disk.now, id, around, class);
        }
        self.preferences
            .add(request, (export, map), priority, taken);
        Ok(wire::Granted {
            stream,
            ..wire::Granted::default()
        })
    }

    /// Begins a stream with a guaranteed rate, if the engine admits it and there is memory.
    fn guarantee(
        &mut self,
        disk: &mut Disk,
        request: StreamRequest,
        export: usize,
        map: &LocationMap,
    ) -> Result<wire::Granted, wire::StreamRefused> {
        let StreamRequest {
            stream,
            user,
            attach,
            events,
        } = request;
        if attach.terms.mode != StreamMode::Play {
            check_recording(&self.table, map).map_err(refused)?;
        }
        let (memory, attached) = self.grant_memory(disk, user, &attach.terms, map)?;
        let buffer = match StreamBuffer::new(map, memory) {
            Ok(buffer) => buffer,
            Err(error) => {
                let _ = disk.engine.detach(disk.now, attached.stream);
                return Err(refused(format!("no memory for its buffer: {error}")));
            }
        };
        self.table.0.push(Entry {
            number: stream,
            id: attached.stream,
            export,
            events,
            user,
            buffer,
            standing: Standing::Filling,
            waiting: Vec::new(),
            written: Written {
                copied: attach.terms.start,
                end: attach.terms.start,
                leaps: 0,
            },
            totals: StreamTotals::default(),
            terms: attach.terms,
        });
        let round = disk.clock.scale().real(attached.plan.round);
        Ok(wire::Granted {
            stream,
            memory: attached.memory,
            batch: attached.batch,
            round_us: round.as_micros() as u64,
        })
    }

    /// Has the engine admit a stream with the client's limit of memory, or with the least memory that suffices.
    fn grant_memory(
        &self,
        disk: &mut Disk,
        user: u32,
        terms: &Terms,
        map: &LocationMap,
    ) -> Result<(u64, stream::streams::Attached), wire::StreamRefused> {
        let rule = self.settings.memory_rule();
        let left = rule.total.saturating_sub(self.table.memory());
        let least = |refused: &NotGranted| match refused {
            NotGranted::Refused(refusal) => refusal.least_memory,
            _ => None,
        };
        let attached = rule.attach(terms, left, least, |memory| {
            let asked = in_drive_time(disk, user, terms, map.clone(), memory);
            disk.engine.attach(disk.now, asked)
        });
        attached.map_err(|no| {
            let reason = no.to_string();
            match no {
                NoMemory::Refused(NotGranted::Refused(refusal)) => in_real_time(disk, &refusal),
                NoMemory::Exhausted {
                    least,
                    refusal: NotGranted::Refused(refusal),
                    ..
                } => {
                    let largest_rate = largest_rate(disk, &refusal);
                    wire::StreamRefused {
                        reason: reason + &granted_now(largest_rate),
                        largest_rate,
                        least_memory: Some(least),
                    }
                }
                _ => refused(reason),
            }
        })
    }
}

/// Refuses a second recording of the same blocks: the order of their writes would be undefined.
fn check_recording(table: &StreamTable, map: &LocationMap) -> Result<(), String> {
    for other in table.recordings() {
        let mut pieces = map.pieces().iter();
        if pieces.any(|piece| other.buffer.parts(piece.extent).next().is_some()) {
            return Err(format!("stream {} records there already", other.number));
        }
    }
    Ok(())
}

/// The request in the drive's time, with `memory` bytes.
fn in_drive_time(disk: &Disk, user: u32, terms: &Terms, map: LocationMap, memory: u64) -> Attach {
    let scale = disk.clock.scale().times();
    Attach {
        user,
        terms: Terms {
            // A stretched second has more of the client's bytes. Rounded up: never less is promised.
            rate: (terms.rate as f64 * scale).ceil() as u64,
            memory: Some(memory),
            ..terms.clone()
        },
        map,
    }
}

/// A refusal for clients, whose seconds are real ones.
pub(super) fn in_real_time(
    disk: &Disk,
    refusal: &stream::admission::Refusal,
) -> wire::StreamRefused {
    let largest = largest_rate(disk, refusal);
    let mut reason = refusal.reason.to_string() + &granted_now(largest);
    if let Some(memory) = refusal.least_memory {
        reason += &format!("; {memory} bytes of memory would be enough");
    }
    wire::StreamRefused {
        reason,
        largest_rate: largest,
        least_memory: refusal.least_memory,
    }
}

/// The largest rate that would be granted, in bytes of a real second.
fn largest_rate(disk: &Disk, refusal: &stream::admission::Refusal) -> Option<u64> {
    let scale = disk.clock.scale().times();
    let rate = refusal.largest_rate?;
    Some((rate.bytes() as f64 / scale) as u64)
}

/// That this rate would be granted, behind a reason.
fn granted_now(largest: Option<u64>) -> String {
    largest.map_or_else(String::new, |rate| {
        let mb_s = rate as f64 / 1e6;
        format!("; {mb_s:.3} MB/s ({rate} bytes in a second) would be granted now")
    })
}
