//! What applications do: move their playout points, read, write, close; and what ends.

use block::{Direction, Instant, StreamMode};

use super::{
    AccessId, FAILED, InFlight, NextWrite, NotTaken, Playout, Relevance, Served, Standing, Tail,
    TransferEnd, Urgency, WAITING, WaitingAccess,
};
use crate::location::{Change, LocationMap};

impl Playout {
    /// The application's playout point is at `point` now.
    pub fn position(&mut self, point: u64) {
        if self.contract.direction() == Direction::Write {
            return self.leave_for(point);
        }
        if point < self.base || point > self.edge {
            self.jump(point);
        }
        self.point = point;
        if self.standing == Standing::Filling {
            self.base = self.page_of(point);
            self.leave_behind();
        }
    }

    /// The recording goes on elsewhere, unless `point` is where it is: what it has written until then
    /// is drained, all of it.
    fn leave_for(&mut self, point: u64) {
        if point != self.expected() {
            self.course = NextWrite::Leaving;
            self.tail = Tail::Due;
        }
    }

    /// Where a recording's next write is, if it goes straight on.
    fn expected(&self) -> u64 {
        let last = self.waiting.back().map_or(self.point, |last| last.to);
        last.max(self.point)
    }

    /// Reads before the buffer are not waited for any more: nothing will bring what they want.
    pub fn leave_behind(&mut self) {
        let (base, answers) = (self.base, &mut self.answers);
        self.waiting.retain(|wait| {
            let is_behind = wait.from < base;
            if is_behind {
                answers.push_back((wait.access, Served::Elsewhere));
            }
            !is_behind
        });
    }

    /// Reads `length` bytes from `from`.
    pub fn read(
        &mut self,
        now: Instant,
        access: AccessId,
        from: u64,
        length: u64,
    ) -> Result<(), NotTaken> {
        if self.contract.direction() == Direction::Write {
            return Err(NotTaken::Direction);
        }
        let to = from.saturating_add(length).min(self.map.length());
        if to <= from {
            self.answers.push_back((access, Served::PastEnd));
            return Ok(());
        }
        self.check_size(to - self.page_of(from))?;
        if from < self.base || to > self.edge {
            if self.waiting.len() >= WAITING {
                return Err(NotTaken::Full { limit: WAITING });
            }
            // While it fills, the edge is on its way here.
            let filling = self.standing == Standing::Filling;
            if !filling || from < self.base || to > self.base.saturating_add(self.memory()) {
                self.jump(from);
            }
        }
        match self.present(from, to) {
            Some(served) => self.answers.push_back((access, served)),
            None if self.waiting.len() >= WAITING => {
                return Err(NotTaken::Full { limit: WAITING });
            }
            None => self.waiting.push_back(WaitingAccess {
                access,
                from,
                to,
                since: now,
            }),
        }
        Ok(())
    }

    /// Writes `length` bytes from `from`.
    pub fn write(
        &mut self,
        now: Instant,
        access: AccessId,
        from: u64,
        length: u64,
    ) -> Result<(), NotTaken> {
        if self.contract.direction() == Direction::Read {
            return Err(NotTaken::Direction);
        }
        let page = self.contract.demand.page;
        if !from.is_multiple_of(page) || !length.is_multiple_of(page) || length == 0 {
            return Err(NotTaken::NotWholePages {
                offset: from,
                length,
                page,
            });
        }
        let expected = self.expected();
        let goes_on = from == expected;
        let is_written = self.is_drained() && self.waiting.is_empty();
        let may_leave = self.course == NextWrite::Leaving && is_written;
        if !goes_on && !may_leave {
            return Err(NotTaken::NotSequential {
                offset: from,
                expected,
            });
        }
        self.check_size(length)?;
        let to = from.saturating_add(length);
        self.check_allocated(from, to)?;
        if self.waiting.len() >= WAITING {
            return Err(NotTaken::Full { limit: WAITING });
        }
        if !goes_on {
            (self.base, self.edge, self.point) = (from, from, from);
            self.failed.clear();
        }
        (self.course, self.tail) = (NextWrite::Straight, Tail::Kept);
        self.waiting.push_back(WaitingAccess {
            access,
            from,
            to,
            since: now,
        });
        self.make_room(now);
        if self.point < to && self.standing == Standing::Serving {
            self.standing = Standing::Behind;
        }
        Ok(())
    }

    /// Takes waiting writes into the buffer as far as there is room, and answers those that can be.
    fn make_room(&mut self, now: Instant) {
        let full = self.drained().saturating_add(self.memory());
        for waiting in &self.waiting {
            if waiting.to > full {
                break;
            }
            self.point = self.point.max(waiting.to);
        }
        let done = match self.contract.mode {
            StreamMode::Play | StreamMode::Record => self.point,
            StreamMode::RecordSync => self.drained(),
        };
        while let Some(&waiting) = self.waiting.front().filter(|waiting| waiting.to <= done) {
            self.waiting.pop_front();
            let failed = self.failed.iter();
            let failed = failed.filter(|range| range.0 < waiting.to && waiting.from < range.1);
            let served = match (failed.count(), waiting.since == now) {
                (1.., _) => Served::Failed,
                (0, true) => Served::Memory,
                (0, false) => Served::Waited(waiting.since),
            };
            self.answers.push_back((waiting.access, served));
        }
    }

    fn check_size(&self, length: u64) -> Result<(), NotTaken> {
        let buffer = self.memory();
        if length <= buffer {
            return Ok(());
        }
        Err(NotTaken::LargerThanBuffer { length, buffer })
    }

    fn check_allocated(&self, from: u64, to: u64) -> Result<(), NotTaken> {
        let mut at = from;
        while at < to {
            match self.map.first_in(at, to) {
                Some(piece) if piece.offset <= at => at = piece.end(self.map.block()),
                _ => return Err(NotTaken::NotAllocated { offset: at }),
            }
        }
        Ok(())
    }

    /// How a range of the buffer can be read: not yet, if `None`.
    fn present(&self, from: u64, to: u64) -> Option<Served> {
        let overlaps = |range: (u64, u64)| range.0 < to && from < range.1;
        if from < self.base || to > self.edge {
            return None;
        }
        let missing = self.in_flight.iter();
        let mut missing = missing.filter(|in_flight| in_flight.relevance == Relevance::Wanted);
        if missing.any(|in_flight| overlaps((in_flight.from, in_flight.to))) {
            return None;
        }
        let failed = self.failed.iter().any(|&range| overlaps(range));
        Some(if failed {
            Served::Failed
        } else {
            Served::Memory
        })
    }

    /// The application has left the buffer: the scheduler's playout point goes there, and the
    /// buffer fills again at best effort. What is in it and still of use stays.
    fn jump(&mut self, to: u64) {
        self.standing = Standing::Filling;
        let base = self.page_of(to);
        self.point = to;
        if base < self.base || base > self.edge {
            self.edge = base;
            for in_flight in &mut self.in_flight {
                in_flight.relevance = Relevance::Stale;
            }
            self.failed.clear();
        }
        self.base = base;
        let end = base.saturating_add(self.memory());
        let answers = &mut self.answers;
        self.waiting.retain(|wait| {
            let inside = base <= wait.from && wait.to <= end;
            if !inside {
                answers.push_back((wait.access, Served::Elsewhere));
            }
            inside
        });
    }

    /// The transfers that somebody waits for and that were asked for at best effort; they are
    /// marked as raised.
    pub fn raise(&mut self) -> Option<u64> {
        let waiting = &self.waiting;
        let wanted = |in_flight: &&mut InFlight| {
            in_flight.urgency == Urgency::Filling
                && in_flight.relevance == Relevance::Wanted
                && waiting
                    .iter()
                    .any(|w| w.from < in_flight.to && in_flight.from < w.to)
        };
        let in_flight = self.in_flight.iter_mut().find(wanted)?;
        in_flight.urgency = Urgency::Wanted;
        Some(in_flight.key)
    }

    /// A transfer has ended.
    pub fn ended(&mut self, now: Instant, in_flight: InFlight, outcome: TransferEnd) {
        self.in_flight.retain(|other| other.key != in_flight.key);
        if in_flight.relevance == Relevance::Stale && self.contract.direction() == Direction::Read {
            return;
        }
        if outcome == TransferEnd::Failed && in_flight.relevance == Relevance::Wanted {
            self.fail(in_flight.from, in_flight.to);
        }
        match self.contract.direction() {
            Direction::Read => self.answer_readers(),
            Direction::Write => {
                self.make_room(now);
                if self.waiting.is_empty() && self.standing == Standing::Behind {
                    self.standing = Standing::Serving;
                }
                let drained = self.drained();
                self.failed.retain(|range| range.1 > drained);
            }
        }
    }

    fn fail(&mut self, from: u64, to: u64) {
        let (low, high) = self.window();
        self.failed.retain(|range| range.1 > low && range.0 < high);
        if self.failed.len() >= FAILED
            && let Some(last) = self.failed.last_mut()
        {
            *last = (last.0.min(from), last.1.max(to));
            return;
        }
        self.failed.push((from, to));
    }

    /// Answers reads that wait for nothing any more.
    pub fn answer_readers(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|wait| {
            let to = wait.to.min(self.map.length());
            let served = match self.present(wait.from, to) {
                _ if to <= wait.from => Some(Served::PastEnd),
                Some(Served::Memory) => Some(Served::Waited(wait.since)),
                other => other,
            };
            if let Some(served) = served {
                self.answers.push_back((wait.access, served));
            }
            served.is_none()
        });
        self.waiting = waiting;
    }

    /// Everybody who waits is told that the stream is closed.
    pub fn close(&mut self) {
        self.tail = Tail::Due;
        for wait in self.waiting.drain(..) {
            // What the buffer has of a write will be on the media.
            self.answers.push_back((wait.access, Served::Closed));
        }
        if self.contract.direction() == Direction::Read {
            self.edge = self.base;
            for in_flight in &mut self.in_flight {
                in_flight.relevance = Relevance::Stale;
            }
        }
    }

    /// The parts of what a recording has in memory that have no blocks: they cannot be written.
    pub fn unplaced(&self) -> Vec<(u64, u64)> {
        let (mut at, to) = (self.drained(), self.point);
        let mut holes = Vec::new();
        while at < to && self.contract.direction() == Direction::Write {
            let piece = self.map.first_in(at, to);
            let next = piece.map_or(to, |piece| piece.offset.max(at));
            if next > at {
                holes.push((at, next));
            }
            at = piece.map_or(to, |piece| piece.end(self.map.block()));
        }
        holes
    }

    /// The file is where `map` says from now on.
    pub fn refresh(&mut self, map: LocationMap) -> Change {
        let change = map.change(&self.map);
        self.map = map;
        match change {
            Change::Moved(at) | Change::Punched(at) if at < self.edge => self.forget(),
            Change::Shrunk => {
                let end = self.end();
                self.edge = self.edge.min(end).max(self.base.min(end));
                for in_flight in &mut self.in_flight {
                    if in_flight.from >= end {
                        in_flight.relevance = Relevance::Stale;
                    }
                }
                self.answer_readers();
            }
            _ => {}
        }
        change
    }

    /// Nothing of the buffer is known to be right any more: a reader's fills again from where the
    /// application is, a writer's is written once more.
    fn forget(&mut self) {
        match self.contract.direction() {
            Direction::Read => {
                self.edge = self.base;
                self.jump(self.point);
            }
            // What is under way goes to blocks that are not the file's any more: once again, at its
            // rate, so that it is no burst.
            Direction::Write => {
                self.edge = self.drained();
                self.base = self.edge;
            }
        }
        for in_flight in &mut self.in_flight {
            in_flight.relevance = Relevance::Stale;
        }
        self.failed.clear();
    }
}
