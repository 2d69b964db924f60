//! Streams that are asked for: granted with their memory, or refused.

use block::{Mode, Terms};
use engine::streams::NotGranted;
use headtime_client::wire;
use stream::LocationMap;
use stream::admission::Reason;
use stream::playout::Standing;
use stream::streams::Attach;

use super::{Entry, Kept, StreamRequest, Streams, refused};
use crate::disk::Disk;
use crate::volume::Volumes;

impl Volumes {
    /// Grants a stream, or says why not.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub(crate) fn attach(
        &mut self,
        disk: &mut Disk,
        request: StreamRequest,
    ) -> Result<wire::Granted, wire::Refused> {
        let granted = self.grant(disk, request);
        match granted {
            Ok(_) => self.streams.totals.granted += 1,
            Err(_) => self.streams.totals.refused += 1,
        }
        granted
    }

    fn grant(
        &mut self,
        disk: &mut Disk,
        request: StreamRequest,
    ) -> Result<wire::Granted, wire::Refused> {
        let attach = &request.attach;
        let preferred = attach.terms.preference();
        let export = self.export_meant(attach)?;
        let map = self.exports.map(export, &attach.places);
        let map = map.map_err(refused)?;
        if let Some(priority) = preferred {
            return self.prefer(disk, (request, priority), export, &map);
        }
        let granted = self.streams.guarantee(disk, request, export, &map)?;
        self.hear_streams(disk);
        Ok(granted)
    }

    /// The export that a request means, if there can be streams on it.
    fn export_meant(&self, attach: &wire::Attach) -> Result<usize, wire::Refused> {
        let is_preference = attach.terms.preference().is_some();
        if self.is_stopping {
            return Err(refused("the service is stopping"));
        }
        if attach.terms.buffer == 0 && !is_preference {
            return Err(refused(
                "a buffer of 0 bytes: expected what is read or written at once, at least",
            ));
        }
        let all = self.exports.all().iter().enumerate();
        let mut named = all.filter(|(_, other)| other.name == attach.export());
        let Some((export, first)) = named.next() else {
            return Err(refused(format!("no export {}", attach.export())));
        };
        // Who came before a reload has it still as it was, and the kernel does, too.
        if named.any(|(_, other)| other.offset != first.offset) {
            return Err(refused(format!(
                "export {} was another volume's before a reload: expected one that was not, or a \
                 restart of the service",
                attach.export()
            )));
        }
        // Two places in memory for one block would each have to hear of every change.
        if self.caches.at(self.exports.offset(export)).is_some() {
            return Err(refused(format!(
                "export {} is of a volume with a cache: expected one without",
                attach.export()
            )));
        }
        Ok(export)
    }
}

impl Streams {
    /// Begins a stream with a guaranteed rate, if the engine admits it and there is memory.
    fn guarantee(
        &mut self,
        disk: &mut Disk,
        request: StreamRequest,
        export: usize,
        map: &LocationMap,
    ) -> Result<wire::Granted, wire::Refused> {
        let StreamRequest {
            stream,
            user,
            attach,
            teller,
        } = request;
        if attach.terms.mode != Mode::Play {
            self.check_recording(map).map_err(refused)?;
        }
        let (memory, attached) = self.grant_memory(disk, user, &attach.terms, map)?;
        let kept = match Kept::new(map, memory) {
            Ok(kept) => kept,
            Err(error) => {
                let _ = disk.engine.detach(disk.now, attached.stream);
                return Err(refused(format!("no memory for its buffer: {error}")));
            }
        };
        self.table.push(Entry {
            number: stream,
            id: attached.stream,
            export,
            teller,
            copied: attach.terms.start,
            written: attach.terms.start,
            leaps: 0,
            user,
            kept,
            standing: Standing::Filling,
            waiting: Vec::new(),
            from_memory: 0,
            waited: 0,
            late: 0,
            lapsed: 0,
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

    /// Asks the engine, with the memory that the client has said, or with as much as it takes.
    fn grant_memory(
        &self,
        disk: &mut Disk,
        user: u32,
        terms: &Terms,
        map: &LocationMap,
    ) -> Result<(u64, stream::streams::Attached), wire::Refused> {
        let settings = self.settings;
        let taken: u64 = self.table.iter().map(|entry| entry.kept.bytes()).sum();
        let left = settings.memory.saturating_sub(taken);
        let lasts = settings.batch * 2 + settings.latency * 2;
        let beyond = u128::from(terms.rate) * lasts.as_nanos() / 1_000_000_000;
        let beyond = u64::try_from(beyond).unwrap_or(u64::MAX);
        let usual = [terms.buffer, beyond, settings.page * 4];
        let usual = usual.into_iter().fold(0, u64::saturating_add);
        let mut memory = terms.memory.unwrap_or(usual.min(left));
        let mut tries = TRIES;
        loop {
            if memory > left {
                return Err(refused(format!(
                    "{memory} bytes of memory, and {left} of {} for streams are left",
                    settings.memory
                )));
            }
            let asked = in_drive_time(disk, user, terms, map.clone(), memory);
            let refusal = match disk.engine.attach(disk.now, asked) {
                Ok(attached) => return Ok((memory, attached)),
                Err(NotGranted::Refused(refusal)) => refusal,
                Err(other) => return Err(refused(other.to_string())),
            };
            tries -= 1;
            match (terms.memory, refusal.least_memory) {
                (None, Some(least)) if least > memory && least <= left && tries > 0 => {
                    memory = least;
                }
                _ => return Err(told(disk, &refusal)),
            }
        }
    }

    /// Two recordings of the same blocks would overwrite each other in an order that nobody knows.
    fn check_recording(&self, map: &LocationMap) -> Result<(), String> {
        let others = self.table.iter().filter(|entry| entry.records());
        for other in others {
            let mut pieces = map.pieces().iter();
            if pieces.any(|piece| other.kept.parts(piece.extent).next().is_some()) {
                return Err(format!("stream {} records there already", other.number));
            }
        }
        Ok(())
    }
}

/// The request in the drive's time, with the memory that is tried.
fn in_drive_time(disk: &Disk, user: u32, terms: &Terms, map: LocationMap, memory: u64) -> Attach {
    let scale = disk.clock.scale().times();
    Attach {
        user,
        terms: Terms {
            rate: of_the_drive(terms.rate, scale),
            memory: Some(memory),
            ..terms.clone()
        },
        map,
    }
}

/// A refusal in the words of clients, whose seconds are real ones.
pub(super) fn told(disk: &Disk, refusal: &stream::admission::Refusal) -> wire::Refused {
    let scale = disk.clock.scale().times();
    let largest = refusal
        .largest_rate
        .map(|rate| (rate.bytes() as f64 / scale) as u64);
    let mut reason = match &refusal.reason {
        Reason::Quota(exceeded) => format!("not allowed: {exceeded}"),
        other => other.to_string(),
    };
    if let Some(rate) = largest {
        reason += &format!("; {rate} bytes in a second would be granted now");
    }
    if let Some(memory) = refusal.least_memory {
        reason += &format!("; {memory} bytes of memory would be enough");
    }
    wire::Refused {
        reason,
        largest_rate: largest,
        least_memory: refusal.least_memory,
    }
}

/// How often memory is asked for that a refusal has named: others may come between, never here.
const TRIES: usize = 3;

/// A rate of clients, whose seconds are real ones, in the drive's.
fn of_the_drive(rate: u64, scale: f64) -> u64 {
    match rate {
        0 => 0,
        // A stretched second has more of the client's bytes. Rounded up: never less is promised.
        rate => (rate as f64 * scale).ceil() as u64,
    }
}
