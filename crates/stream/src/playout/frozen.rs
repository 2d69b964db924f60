//! What the disk is to do: filling at best effort, and batches.

use block::{Direction, Duration, Extent, Instant, Sectors};

use super::{Due, FILLS, InFlight, Playout, Relevance, Standing, Tail, Urgency};
use crate::admission::{Cutting, Demand};
use crate::credit::Credit;
use crate::head_times::Tracks;
use crate::location::Piece;

impl Playout {
    /// The next best-effort read of a filling buffer.
    pub fn next_fill(&mut self) -> Option<(Piece, u64, u64)> {
        if self.standing != Standing::Filling || self.contract.direction() == Direction::Write {
            return None;
        }
        let fills = self
            .in_flight
            .iter()
            .filter(|u| u.relevance == Relevance::Wanted);
        if fills.count() >= FILLS {
            return None;
        }
        let target = self.base.saturating_add(self.memory()).min(self.end());
        let to = target.min(self.edge.saturating_add(self.contract.fill));
        let (piece, from, to) = self.next_piece(self.edge, to)?;
        self.edge = to;
        Some((piece, from, to))
    }

    /// The next best-effort write of a recording that has no guarantee.
    pub fn next_drain(&mut self) -> Option<(Piece, u64, u64)> {
        if self.contract.direction() == Direction::Read || self.in_flight.len() >= FILLS {
            return None;
        }
        while self.edge < self.point {
            let to = self.point.min(self.edge.saturating_add(self.contract.fill));
            let next = self.next_piece(self.edge, to);
            self.edge = next.map_or(self.edge, |(_, _, to)| to);
            self.base = self.base.max(self.edge);
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// The first piece of a range on the disk, with the bytes of the file that it holds; holes
    /// before it are in the buffer from now on.
    fn next_piece(&mut self, from: u64, to: u64) -> Option<(Piece, u64, u64)> {
        if from >= to {
            return None;
        }
        let Some(piece) = self.map.first_in(from, to) else {
            self.edge = self.edge.max(to);
            return None;
        };
        let from = from.max(piece.offset);
        Some((piece, from, piece.end(self.map.block()).min(to)))
    }

    /// What a frozen buffer is due now: whole pages, by what its playout point has moved.
    pub fn freeze(
        &mut self,
        now: Instant,
        cutting: Cutting,
        tracks: &impl Tracks,
        due: &mut Vec<Due>,
    ) {
        let before = self.edge;
        let page = self.contract.demand.page;
        let owed = self.credit.accrue(now);
        let goal = self.page_of(self.point);
        let moves = goal.saturating_sub(self.base).min(owed - owed % page);
        self.base += moves;
        self.credit.spend(moves);
        if self.contract.direction() == Direction::Read {
            self.leave_behind();
        }
        let target = match self.contract.direction() {
            Direction::Read => (self.base.saturating_add(self.memory())).min(self.end()),
            Direction::Write => self.base,
        };
        let first = due.len();
        let deadline = self.deadline(now, before);
        while let Some((piece, from, to)) = self.next_piece(self.edge, target) {
            self.edge = to;
            due.push(Due {
                piece,
                from,
                to,
                deadline,
            });
        }
        if cutting == Cutting::Tracks {
            self.cut(tracks, moves, first, due);
        }
    }

    /// Takes back what the last piece of a batch has beyond the end of a track.
    ///
    /// The rest of a file's last track has a round of its own: it takes as long as a whole track,
    /// and a round has room for one more than is due, not for two. With room for it the rest stays: near the
    /// end of a file the buffer has less ahead than the next round needs. Where extents end within a
    /// window, parts of tracks are counted with them.
    fn cut(&mut self, tracks: &impl Tracks, moves: u64, first: usize, due: &mut Vec<Due>) {
        let alone = due.len() == first + 1;
        let Some(last) = due.get_mut(first..).and_then(|due| due.last_mut()) else {
            return;
        };
        let end = last.piece.extent.end();
        if tracks.track_end(last.piece.extent.last()) == end {
            return;
        }
        let extent = self.map.first_in(last.from, u64::MAX);
        let extent_ends = extent.is_none_or(|whole| whole.extent.end() == end);
        if extent_ends && self.contract.demand.extents > 1 {
            return;
        }
        if alone && self.is_last(last.to) && self.has_room(tracks, last.piece.extent, moves) {
            return;
        }
        let start = last.piece.extent.start();
        let track = tracks.track_start(last.piece.extent.last());
        let inside = track.0.checked_sub(start.0);
        match Extent::new(start, Sectors(inside.unwrap_or(0))) {
            Ok(extent) => {
                last.piece.extent = extent;
                last.to = last.piece.offset + extent.length().0 * self.map.block();
                self.edge = last.to;
            }
            // It lies on one track.
            Err(_) if alone && (extent_ends || self.is_last(last.to)) => {}
            Err(_) => {
                self.edge = last.from;
                due.pop();
            }
        }
    }

    /// Whether a round in which the playout point has moved so far has room for all tracks of an extent: for those of what
    /// is due, and for one more.
    fn has_room(&self, tracks: &impl Tracks, extent: Extent, moves: u64) -> bool {
        let Some(whole) = self.contract.demand.zone.tracks else {
            return false;
        };
        let mut at = extent.start();
        let mut more = Duration::ZERO;
        loop {
            at = tracks.track_end(at);
            if at >= extent.end() {
                return more <= whole.sustained.at_most(moves);
            }
            more += whole.time;
        }
    }

    /// Whether nothing will come after this byte.
    fn is_last(&self, to: u64) -> bool {
        match self.contract.direction() {
            Direction::Read => to >= self.map.length(),
            Direction::Write => self.tail == Tail::Due && to >= self.page_of(self.point),
        }
    }

    /// When the first byte after `edge` is needed, if the application goes on at its rate: in a
    /// reader's buffer it is read then, in a writer's its room is.
    fn deadline(&self, now: Instant, edge: u64) -> Instant {
        let Demand {
            rate, buffer, page, ..
        } = self.contract.demand;
        let reach = match self.contract.direction() {
            Direction::Read => edge,
            Direction::Write => edge.saturating_add(self.memory()),
        };
        let ahead = reach.saturating_sub(self.base);
        let ahead = ahead.saturating_sub(buffer.saturating_add(page));
        let lasts = rate.at_least(ahead).saturating_sub(self.contract.latency);
        now + lasts
    }

    /// Whether the guarantee may hold from this freezing on: what a full buffer lacks is no more
    /// than one round brings, in no more pieces. It is then needed no sooner than a round's batch.
    pub fn is_ready(&self, round: Duration) -> bool {
        if self.contract.direction() == Direction::Write {
            return true;
        }
        let Demand { rate, extents, .. } = self.contract.demand;
        let full = self.base.saturating_add(self.memory());
        let target = full.min(self.end());
        let in_flight = self
            .in_flight
            .iter()
            .filter(|u| u.relevance == Relevance::Wanted);
        let (pieces, first) = in_flight.fold((0, target), |(pieces, first), in_flight| {
            (pieces + 1, first.min(in_flight.from))
        });
        let first = first.min(self.edge);
        let pieces = pieces + self.map.pieces_in(self.edge, target);
        first >= target || (full - first <= rate.bytes_within(round) && pieces <= extents)
    }

    /// The guarantee holds from now on; its terms begin anew. Answers when what is under way has to
    /// be there.
    pub fn begin(&mut self, now: Instant) -> Instant {
        self.standing = Standing::Serving;
        let Demand { rate, page, .. } = self.contract.demand;
        let behind = self.point.saturating_sub(self.base).min(page);
        self.credit = Credit::new(now, rate, self.contract.latency, page).owing(behind);
        let first = self
            .in_flight
            .iter()
            .filter(|u| u.relevance == Relevance::Wanted);
        let first = first.map(|in_flight| in_flight.from).min();
        self.deadline(now, first.unwrap_or(self.edge))
    }

    /// What is under way at best effort is due by `deadline` from now on.
    pub fn raise_all(&mut self, deadline: Instant) -> impl Iterator<Item = &InFlight> {
        let best_effort = self.in_flight.iter_mut().filter(|in_flight| {
            in_flight.relevance == Relevance::Wanted
                && !matches!(in_flight.urgency, Urgency::Batch { .. })
        });
        best_effort.map(move |in_flight| {
            in_flight.urgency = Urgency::Batch {
                deadline,
                slot: None,
            };
            &*in_flight
        })
    }
}
