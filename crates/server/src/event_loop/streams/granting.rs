//! Streams that are asked for: granted with their memory, or refused.

use block::{Extent, Lba, Mode, Sectors, Terms};
use engine::streams::NotGranted;
use headtime_client::wire;
use stream::admission::Reason;
use stream::location::MapError;
use stream::playout::Standing;
use stream::streams::Attach;
use stream::{LocationMap, Piece};

use super::{Entry, EventLoop, Kept, Newcomer, refused};
use crate::event_loop::Stopping;

impl EventLoop {
    /// Grants a stream, or says why not.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub fn attach(&mut self, newcomer: Newcomer) -> Result<wire::Granted, wire::Refused> {
        let granted = self.grant(newcomer);
        match granted {
            Ok(_) => self.streams.totals.granted += 1,
            Err(_) => self.streams.totals.refused += 1,
        }
        granted
    }

    fn grant(&mut self, newcomer: Newcomer) -> Result<wire::Granted, wire::Refused> {
        let Newcomer {
            stream,
            user,
            attach,
            teller,
        } = newcomer;
        let preferred = attach.terms.preference();
        let export = self.export_meant(&attach)?;
        let map = self.map(export, &attach.places).map_err(refused)?;
        if let Some(priority) = preferred {
            let newcomer = Newcomer {
                stream,
                user,
                attach,
                teller,
            };
            return self.prefer((newcomer, priority), export, &map);
        }
        if attach.terms.mode != Mode::Play {
            self.check_recording(&map).map_err(refused)?;
        }
        let (memory, attached) = self.grant_memory(user, &attach.terms, &map)?;
        let kept = match Kept::new(&map, memory) {
            Ok(kept) => kept,
            Err(error) => {
                let _ = self.engine.detach(self.now, attached.stream);
                return Err(refused(format!("no memory for its buffer: {error}")));
            }
        };
        self.streams.table.push(Entry {
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
        self.hear_streams();
        let round = self.clock.scale().real(attached.plan.round);
        Ok(wire::Granted {
            stream,
            memory: attached.memory,
            batch: attached.batch,
            round_us: round.as_micros() as u64,
        })
    }

    /// The export that a newcomer means, if there can be streams on it.
    fn export_meant(&self, attach: &wire::Attach) -> Result<usize, wire::Refused> {
        let is_preference = attach.terms.preference().is_some();
        if self.stopping != Stopping::No {
            return Err(refused("the service is stopping"));
        }
        if attach.terms.buffer == 0 && !is_preference {
            return Err(refused(
                "a buffer of 0 bytes: expected what is read or written at once, at least",
            ));
        }
        let all = self.exports.iter().enumerate();
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
        if self.has_cache(export) {
            return Err(refused(format!(
                "export {} is of a volume with a cache: expected one without",
                attach.export()
            )));
        }
        Ok(export)
    }

    /// Asks the engine, with the memory that the client has said, or with as much as it takes.
    fn grant_memory(
        &mut self,
        user: u32,
        terms: &Terms,
        map: &LocationMap,
    ) -> Result<(u64, stream::streams::Attached), wire::Refused> {
        let settings = self.streams.settings;
        let taken: u64 = self
            .streams
            .table
            .iter()
            .map(|entry| entry.kept.bytes())
            .sum();
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
            let asked = self.in_drive_time(user, terms, map.clone(), memory);
            let refusal = match self.engine.attach(self.now, asked) {
                Ok(attached) => return Ok((memory, attached)),
                Err(NotGranted::Refused(refusal)) => refusal,
                Err(other) => return Err(refused(other.to_string())),
            };
            tries -= 1;
            match (terms.memory, refusal.least_memory) {
                (None, Some(least)) if least > memory && least <= left && tries > 0 => {
                    memory = least;
                }
                _ => return Err(self.told(&refusal)),
            }
        }
    }

    /// The request in the drive's time, with the memory that is tried.
    fn in_drive_time(&self, user: u32, terms: &Terms, map: LocationMap, memory: u64) -> Attach {
        let scale = self.clock.scale().times();
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
    pub(super) fn told(&self, refusal: &stream::admission::Refusal) -> wire::Refused {
        let scale = self.clock.scale().times();
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

    /// Where a file's bytes are on the drive.
    pub(super) fn map(&self, export: usize, places: &wire::Places) -> Result<LocationMap, String> {
        let export = &self.exports[export];
        let block = u64::from(self.shape.block_bytes);
        if places.pieces.len() > wire::PIECES {
            let limit = wire::PIECES;
            return Err(format!(
                "{} pieces: expected at most {limit}",
                places.pieces.len()
            ));
        }
        let mut pieces = Vec::with_capacity(places.pieces.len());
        for &wire::Piece(offset, start, length) in &places.pieces {
            let end = start.checked_add(length);
            if end.is_none_or(|end| end > export.length) {
                return Err(format!(
                    "{length} bytes at {start}: expected places within the {} bytes of export {}",
                    export.length, export.name
                ));
            }
            let is_whole = [offset, start, length]
                .iter()
                .all(|at| at.is_multiple_of(block));
            let first = Lba((export.offset + start) / block);
            let extent = Extent::new(first, Sectors(length / block)).ok();
            match extent.filter(|_| is_whole) {
                Some(extent) => pieces.push(Piece { offset, extent }),
                None => {
                    return Err(format!(
                        "{length} bytes at {start}: expected whole blocks of {block} bytes"
                    ));
                }
            }
        }
        let map = LocationMap::new(pieces, block, places.length);
        map.map_err(|error: MapError| error.to_string())
    }

    /// Two recordings of the same blocks would overwrite each other in an order that nobody knows.
    fn check_recording(&self, map: &LocationMap) -> Result<(), String> {
        let others = self.streams.table.iter().filter(|entry| entry.records());
        for other in others {
            let mut pieces = map.pieces().iter();
            if pieces.any(|piece| other.kept.parts(piece.extent).next().is_some()) {
                return Err(format!("stream {} records there already", other.number));
            }
        }
        Ok(())
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
