//! All streams of a disk: the service as one state machine.
//!
//! Inputs: [`attach`](Streams::attach), [`position`](Streams::position), [`read`](Streams::read),
//! [`write`](Streams::write), [`refresh`](Streams::refresh), [`close`](Streams::close),
//! [`started`](Streams::started), [`complete`](Streams::complete). Outputs, to be asked for after
//! each input and at the wakeup until they are `None`: [`poll`](Streams::poll),
//! [`poll_answer`](Streams::poll_answer), then [`next_wakeup`](Streams::next_wakeup). What may be
//! served beside them is asked of [`rounds`](Streams::rounds).

mod filling;
mod freezing;
mod listing;
mod moved;
mod orders;
mod relearning;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use block::{Class, Direction, Duration, Instant, Status, StreamMode, Terms};

use crate::admission::{Admission, Demand, Grant, Held, Reason, Refusal, Rules};
use crate::head_times::{HeadTimes, Tracks, Zone};
use crate::location::LocationMap;
use crate::playout::{
    AccessId, Contract, Due, InFlight, NotTaken, Playout, Relevance, Standing, TransferEnd, Urgency,
};
use crate::quota::{Claim, Exceeded, Quotas, Taken};
use crate::rate::Rate;
use crate::rounds::{Batch, Rounds, Slot};
use freezing::durability;
pub use orders::{
    Answer, Attach, Attached, Listed, Notice, Order, Settings, StreamId, Transfer, TransferId,
};

/// The streams of a disk.
#[derive(Debug)]
pub struct Streams<T> {
    admission: Admission,
    quotas: Quotas,
    rounds: Rounds,
    tracks: T,
    settings: Settings,
    table: BTreeMap<StreamId, StreamState>,
    transfers: BTreeMap<TransferId, StreamId>,
    /// Those whose buffers may want to be filled.
    filling: BTreeSet<StreamId>,
    /// Which of them was given a turn last.
    filled: StreamId,
    orders: VecDeque<Order>,
    answers: VecDeque<Answer>,
    clock: RoundClock,
    named: u64,
    late: u64,
    /// Kept for their memory.
    due: Vec<Due>,
    batches: Vec<Batch>,
}

#[derive(Debug)]
struct StreamState {
    user: u32,
    terms: Terms,
    playout: Playout,
    held: Option<Held>,
    taken: Option<Taken>,
    life: Life,
    reported: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Open,
    /// Closed by its client; something is under way.
    Closing,
}

/// When rounds are.
#[derive(Clone, Copy, Debug)]
struct RoundClock {
    last: Option<Instant>,
    next: Option<Instant>,
    pace: SweepPace,
}

/// Whether sweeps may use their slack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SweepPace {
    /// They may.
    Easy,
    /// Somebody waits to begin: until no sweep is left over, they may not.
    Hurried,
}

impl<T: Tracks> Streams<T> {
    /// A disk without streams.
    pub fn new(
        times: HeadTimes,
        rules: Rules,
        quotas: Quotas,
        settings: Settings,
        tracks: T,
    ) -> Self {
        Streams {
            rounds: Rounds::new(times.clone()),
            admission: Admission::new(times, rules),
            quotas,
            tracks,
            settings,
            table: BTreeMap::new(),
            transfers: BTreeMap::new(),
            filling: BTreeSet::new(),
            filled: StreamId(0),
            orders: VecDeque::new(),
            answers: VecDeque::new(),
            clock: RoundClock {
                last: None,
                next: None,
                pace: SweepPace::Easy,
            },
            named: 0,
            late: 0,
            due: Vec::new(),
            batches: Vec::new(),
        }
    }

    /// The safe set.
    pub fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    /// What was admitted.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Batches that came too late so far.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// How a stream stands; none if there is no such stream.
    pub fn standing(&self, stream: StreamId) -> Option<Standing> {
        Some(self.table.get(&stream)?.playout.standing)
    }

    /// Whether a user may have something of that name here without a rate, as one of the streams that
    /// the rules allow; to be given back.
    ///
    /// # Errors
    /// If a rule is against it.
    pub fn claim(&mut self, user: u32, name: &str) -> Result<Taken, Exceeded> {
        self.quotas.take(Claim {
            user,
            name,
            rate: Rate::MIN,
            head: 0,
        })
    }

    /// What was claimed is not needed any more.
    pub fn give_back(&mut self, taken: Taken) {
        self.quotas.give_back(taken);
    }

    /// Where a transfer of the guarantee is among the batches of its round; none of one at best
    /// effort, and of one that has ended.
    pub fn placed(&self, id: TransferId) -> Option<Slot> {
        match self.in_flight(id)?.urgency {
            Urgency::Batch { slot, .. } => slot,
            Urgency::Filling | Urgency::Wanted => None,
        }
    }

    /// Whether a stream holds a part of the disk's head time: one whose file was moved may not.
    pub fn is_held(&self, stream: StreamId) -> bool {
        let entry = self.table.get(&stream);
        entry.is_some_and(|entry| entry.held.is_some())
    }

    /// The bytes of the file that the caller keeps in memory for a stream, as far as they have
    /// come: from here to there.
    pub fn window(&self, stream: StreamId) -> Option<(u64, u64)> {
        Some(self.table.get(&stream)?.playout.window())
    }

    /// Grants a stream, or says why not.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub fn attach(
        &mut self,
        now: Instant,
        attach: Attach,
        zone: Zone,
    ) -> Result<Attached, Refusal> {
        self.advance(now);
        let Attach { user, terms, map } = attach;
        let refused = |reason| Refusal {
            reason,
            largest_rate: None,
            least_memory: None,
        };
        let rate = Rate::new(terms.rate).ok_or_else(|| refused(Reason::ZeroRate))?;
        if let Some(priority) = terms.priority.filter(|&priority| priority > LOWEST) {
            return Err(refused(Reason::Priority { priority }));
        }
        let demand = self.demand(&terms, rate, &map, zone);
        let claim = Claim {
            user,
            name: &terms.name,
            rate,
            head: self.admission.alone(&demand),
        };
        let taken = self.quotas.take(claim);
        let taken = taken.map_err(|exceeded| refused(exceeded.into()))?;
        let grant = match self.admission.admit(&demand) {
            Ok(grant) => grant,
            Err(refusal) => {
                self.quotas.give_back(taken);
                return Err(refusal);
            }
        };
        let Grant {
            plan,
            batch,
            memory,
            held,
            ..
        } = grant;
        self.named += 1;
        let stream = StreamId(self.named);
        let contract = Contract {
            mode: terms.mode,
            demand,
            latency: self.admission.rules().latency,
            fill: self.settings.fill,
            priority: terms.priority.unwrap_or(self.settings.priority),
        };
        let entry = StreamState {
            user,
            playout: Playout::new(now, contract, map, terms.start),
            terms,
            held: Some(held),
            taken: Some(taken),
            life: Life::Open,
            reported: Standing::Filling,
        };
        self.table.insert(stream, entry);
        self.filling.insert(stream);
        self.replan(now);
        self.settle(now, stream);
        Ok(Attached {
            stream,
            plan,
            batch,
            memory,
        })
    }

    fn demand(&self, terms: &Terms, rate: Rate, map: &LocationMap, zone: Zone) -> Demand {
        let tracks = match terms.mode {
            // A write that ends on the medium would wait for the rest of its track, too.
            StreamMode::RecordSync => None,
            StreamMode::Play | StreamMode::Record => zone.tracks,
        };
        let memory = terms.memory.unwrap_or(0);
        Demand {
            direction: terms.mode.direction(),
            rate,
            buffer: terms.buffer,
            memory,
            zone: Zone { tracks, ..zone },
            extents: map.most_pieces(memory).max(1),
            page: self.settings.page,
        }
    }

    /// The application's playout point has moved.
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn position(&mut self, now: Instant, stream: StreamId, point: u64) -> Result<(), NotTaken> {
        self.with(now, stream, |playout| {
            playout.position(point);
            Ok(())
        })
    }

    /// The application reads `length` bytes from `from`.
    ///
    /// # Errors
    /// If the access cannot be taken; it is then not answered.
    pub fn read(
        &mut self,
        now: Instant,
        stream: StreamId,
        access: AccessId,
        (from, length): (u64, u64),
    ) -> Result<(), NotTaken> {
        self.with(now, stream, |playout| {
            playout.read(now, access, from, length)
        })
    }

    /// The application writes `length` bytes from `from`: whole pages, one after the other.
    ///
    /// # Errors
    /// If the access cannot be taken; it is then not answered.
    pub fn write(
        &mut self,
        now: Instant,
        stream: StreamId,
        access: AccessId,
        (from, length): (u64, u64),
    ) -> Result<(), NotTaken> {
        self.with(now, stream, |playout| {
            playout.write(now, access, from, length)
        })
    }

    /// An open stream does something.
    fn with(
        &mut self,
        now: Instant,
        stream: StreamId,
        act: impl FnOnce(&mut Playout) -> Result<(), NotTaken>,
    ) -> Result<(), NotTaken> {
        self.advance(now);
        let entry = self.table.get_mut(&stream);
        let entry = entry.filter(|entry| entry.life == Life::Open);
        let done = act(&mut entry.ok_or(NotTaken::NoStream)?.playout);
        self.settle(now, stream);
        done
    }

    /// The stream is over, or its client has died. What is under way ends; what a recording has in
    /// memory is written in its rounds, and then what it held is free.
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn close(&mut self, now: Instant, stream: StreamId) -> Result<(), NotTaken> {
        self.with(now, stream, |playout| {
            playout.close();
            Ok(())
        })?;
        if let Some(entry) = self.table.get_mut(&stream) {
            entry.life = Life::Closing;
        }
        self.settle(now, stream);
        Ok(())
    }

    /// A transfer was given to the drive.
    pub fn started(&mut self, id: TransferId) {
        if let Some(Urgency::Batch {
            slot: Some(slot), ..
        }) = self.in_flight(id).map(|in_flight| in_flight.urgency)
        {
            self.rounds.taken(slot);
        }
    }

    /// Earlier requests over the blocks of a transfer come before it.
    pub fn held_up(&mut self, id: TransferId) {
        if let Some(slot) = self.placed(id) {
            self.rounds.held_up(slot);
        }
    }

    /// A transfer has ended, `held_up` for so long by earlier requests over its blocks since it was as
    /// urgent as in the end. Those that were not ordered are ignored.
    pub fn complete(&mut self, now: Instant, id: TransferId, status: Status, held_up: Duration) {
        self.advance(now);
        let Some(in_flight) = self.in_flight(id) else {
            return;
        };
        let Some(stream) = self.transfers.remove(&id) else {
            return;
        };
        let Some(entry) = self.table.get_mut(&stream) else {
            return;
        };
        let mut notices = [None, None];
        if let Urgency::Batch { deadline, slot } = in_flight.urgency {
            if let Some(slot) = slot {
                self.rounds.done(slot);
            }
            if now > deadline && in_flight.relevance == Relevance::Wanted {
                self.late += 1;
                let by = now.since(deadline);
                notices[0] = Some(Notice::Late { by, held_up });
            }
        }
        let ended = match status {
            Status::Good => TransferEnd::Good,
            _ => TransferEnd::Failed,
        };
        if ended == TransferEnd::Failed
            && entry.playout.contract.mode.direction() == Direction::Write
        {
            let InFlight { from, to, .. } = in_flight;
            notices[1] = Some(Notice::WriteFailed { from, to });
        }
        entry.playout.ended(now, in_flight, ended);
        for notice in notices.into_iter().flatten() {
            self.answers.push_back(Answer::Notice { stream, notice });
        }
        self.settle(now, stream);
    }

    fn in_flight(&self, id: TransferId) -> Option<InFlight> {
        let entry = self.table.get(self.transfers.get(&id)?)?;
        let mut in_flight = entry.playout.in_flight.iter();
        in_flight.find(|in_flight| in_flight.key == id.0).copied()
    }

    /// The next thing to be done for the streams.
    pub fn poll(&mut self, now: Instant) -> Option<Order> {
        self.advance(now);
        self.orders.pop_front().or_else(|| self.fill(now))
    }

    /// The next thing that a stream is to be told.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// When `poll` is to be called next, if nothing else happens before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.clock.next.filter(|_| self.rounds.is_open())
    }

    /// What somebody waits for goes first among best effort.
    fn raise(&mut self, stream: StreamId) {
        let Some(entry) = self.table.get_mut(&stream) else {
            return;
        };
        while let Some(key) = entry.playout.raise() {
            self.orders.push_back(Order::Raise {
                id: TransferId(key),
                class: Class::BestEffort(0),
            });
        }
    }

    /// After whatever happened to a stream: its answers, its standing, its end.
    fn settle(&mut self, now: Instant, stream: StreamId) {
        self.raise(stream);
        let Some(entry) = self.table.get_mut(&stream) else {
            return;
        };
        while let Some((access, served)) = entry.playout.answers.pop_front() {
            self.answers.push_back(Answer::Access {
                stream,
                access,
                served,
            });
        }
        let standing = entry.playout.standing;
        if standing != entry.reported {
            entry.reported = standing;
            let notice = Notice::Stands(standing);
            self.answers.push_back(Answer::Notice { stream, notice });
        }
        if entry.is_over() {
            self.end(now, stream);
            return;
        }
        // What a recording without a guarantee has written goes to the disk also when it is closed.
        let drains = entry.held.is_none() && !entry.playout.is_drained();
        match (standing, entry.life) {
            (Standing::Filling, Life::Open) => self.filling.insert(stream),
            (_, Life::Closing) if drains => self.filling.insert(stream),
            _ => self.filling.remove(&stream),
        };
        self.wind(now);
    }

    /// A closed stream has nothing under way any more.
    fn end(&mut self, now: Instant, stream: StreamId) {
        self.filling.remove(&stream);
        let Some(entry) = self.table.remove(&stream) else {
            return;
        };
        if let Some(held) = entry.held {
            self.admission.release(held);
        }
        if let Some(taken) = entry.taken {
            self.quotas.give_back(taken);
        }
        let notice = Notice::Closed;
        self.answers.push_back(Answer::Notice { stream, notice });
        self.replan(now);
    }
}

/// The lowest priority of best effort (ABISS, 3.6: seven of them).
pub const LOWEST: u8 = 6;
