//! Files that change under their streams.

use block::Instant;

use super::{Answer, Life, Notice, StreamId, Streams};
use crate::admission::Demand;
use crate::head_times::{Tracks, Zone};
use crate::location::{Change, LocationMap};
use crate::playout::{NotTaken, Standing};

impl<T: Tracks> Streams<T> {
    /// The stream's file has grown, or lies elsewhere; its slowest zone, too. The guarantee goes on
    /// if it would be granted there.
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn refresh(
        &mut self,
        now: Instant,
        stream: StreamId,
        map: LocationMap,
        zone: Zone,
    ) -> Result<Change, NotTaken> {
        self.advance(now);
        let entry = self.table.get_mut(&stream);
        let entry = entry.filter(|entry| entry.life == Life::Open);
        let entry = entry.ok_or(NotTaken::NoStream)?;
        let demand = Demand {
            zone: Zone {
                tracks: zone
                    .tracks
                    .filter(|_| entry.playout.contract.demand.zone.tracks.is_some()),
                ..zone
            },
            extents: map.most_pieces(entry.playout.contract.demand.memory).max(1),
            ..entry.playout.contract.demand
        };
        let change = entry.playout.refresh(map);
        for (from, to) in entry.playout.unplaced() {
            let notice = Notice::WriteFailed { from, to };
            self.answers.push_back(Answer::Notice { stream, notice });
        }
        if demand != entry.playout.contract.demand || entry.held.is_none() {
            if let Some(held) = entry.held.take() {
                self.admission.release(held);
            }
            match self.admission.admit(&demand) {
                Ok(grant) => {
                    entry.held = Some(grant.held);
                    entry.playout.contract.demand = demand;
                }
                Err(refusal) => {
                    entry.playout.standing = Standing::Filling;
                    let notice = Notice::Unguaranteed(refusal);
                    self.answers.push_back(Answer::Notice { stream, notice });
                }
            }
            self.replan(now);
        }
        self.settle(now, stream);
        Ok(change)
    }
}
