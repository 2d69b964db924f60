//! Rounds as they come: what is due is frozen, ordered, and put into the safe set.

use block::{Class, Direction, Durability, Duration, Extent, Instant, StreamMode};

use super::{
    Answer, Life, Notice, Order, StreamId, StreamState, Streams, SweepPace, Transfer, TransferId,
};
use crate::admission::{Admission, Plan};
use crate::head_times::{HeadTimes, Tracks, Zone};
use crate::playout::{Due, InFlight, Playout, Relevance, Standing, Urgency};
use crate::rounds::Batch;

impl<T: Tracks> Streams<T> {
    /// Freezes every round that is due by `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(at) = self.clock.next.filter(|&at| at <= now) {
            if !self.rounds.is_open() {
                return;
            }
            self.freeze(at);
        }
    }

    /// Rounds have another length from now on. If they get shorter, the present one does, too.
    pub(super) fn replan(&mut self, now: Instant) {
        if let (Some(plan), Some(last), Some(next)) =
            (self.admission.plan(), self.clock.last, self.clock.next)
        {
            self.clock.next = Some(next.min(last + plan.round).max(now));
        }
        self.wind(now);
    }

    /// Sets the clock going, if somebody needs rounds, and tells the safe set what will come.
    pub(super) fn wind(&mut self, now: Instant) {
        let Some(plan) = self.admission.plan() else {
            self.clock.next = None;
            self.clock.last = None;
            self.rounds.expect(None);
            return;
        };
        if self.clock.next.is_none() && self.table.values().any(|stream| stream.needs_rounds(&plan))
        {
            let regular = self.clock.last.map(|last| last + plan.round);
            self.clock.next = Some(regular.unwrap_or(now).max(now));
        }
        let within = match self.clock.pace {
            SweepPace::Easy => plan.within,
            SweepPace::Hurried => plan.within.min(plan.worst),
        };
        let coming = self.clock.next.map(|at| (at, Plan { within, ..plan }));
        self.rounds.expect(coming);
    }

    /// Freezes all batches as of `at`.
    fn freeze(&mut self, at: Instant) {
        self.clock.next = None;
        let Some(plan) = self.admission.plan() else {
            return;
        };
        let begin = self.begin_at(at, &plan);
        self.clock.last = Some(at);
        self.clock.pace = SweepPace::Easy;
        self.batches.clear();
        for (&stream, entry) in &mut self.table {
            if !entry.needs_rounds(&plan) {
                continue;
            }
            let cost = Cost::of(&self.admission, &self.tracks, &entry.playout);
            if entry.playout.standing == Standing::Filling {
                if begin == Begin::Later {
                    self.clock.pace = SweepPace::Hurried;
                    continue;
                }
                let deadline = entry.playout.begin(at);
                let class = Class::RealTime { deadline };
                for in_flight in entry.playout.raise_all(deadline) {
                    let id = TransferId(in_flight.key);
                    self.orders.push_back(Order::Raise { id, class });
                    self.batches
                        .push(cost.batch(in_flight.key, in_flight.extent, deadline));
                }
            }
            self.due.clear();
            let due = &mut self.due;
            entry.playout.freeze(at, plan.cutting, &self.tracks, due);
            for due in &self.due {
                self.named += 1;
                let id = TransferId(self.named);
                self.batches
                    .push(cost.batch(id.0, due.piece.extent, due.deadline));
                entry.playout.in_flight.push(InFlight {
                    key: id.0,
                    extent: due.piece.extent,
                    from: due.from,
                    to: due.to,
                    urgency: Urgency::Batch {
                        deadline: due.deadline,
                        slot: None,
                    },
                    relevance: Relevance::Wanted,
                });
                self.transfers.insert(id, stream);
                self.orders
                    .push_back(transfer(id, stream, &entry.playout, due));
            }
        }
        self.put_into_rounds(at + plan.worst);
        self.tell(at);
        // What was left of a closed recording had no blocks.
        let ended = self.table.iter().filter(|(_, entry)| entry.is_over());
        let ended: Vec<StreamId> = ended.map(|(&stream, _)| stream).collect();
        for stream in ended {
            self.settle(at, stream);
        }
    }

    /// Whether a stream whose buffer is full may be served from this freezing on. Its first batch
    /// is due in the next round, whose sweep must not wait for one that was larger, or is late.
    fn begin_at(&self, at: Instant, plan: &Plan) -> Begin {
        let mut others = self.table.values();
        if others.all(|stream| stream.playout.standing == Standing::Filling) {
            return Begin::Now;
        }
        let regular = self
            .clock
            .last
            .is_none_or(|last| at.since(last) <= plan.round);
        match regular && self.rounds.is_idle() {
            true => Begin::Now,
            false => Begin::Later,
        }
    }

    /// The frozen batches are a group from now on; in a hurry it has to be done by `soon`.
    fn put_into_rounds(&mut self, soon: Instant) {
        // Not before those that are frozen already: theirs are real.
        let soon = match (self.clock.pace, self.rounds.last_deadline()) {
            (SweepPace::Easy, _) => None,
            (SweepPace::Hurried, last) => Some(last.map_or(soon, |last| last.max(soon))),
        };
        let (table, transfers) = (&mut self.table, &self.transfers);
        self.rounds.freeze(&self.batches, soon, |key, placed| {
            let stream = transfers.get(&TransferId(key));
            let entry = stream.and_then(|stream| table.get_mut(stream));
            let unders = entry
                .into_iter()
                .flat_map(|entry| &mut entry.playout.in_flight);
            for in_flight in unders.filter(|in_flight| in_flight.key == key) {
                if let Urgency::Batch { slot, .. } = &mut in_flight.urgency {
                    *slot = Some(placed);
                }
            }
        });
    }

    /// Streams that have begun are told, and the next round is wound up.
    fn tell(&mut self, at: Instant) {
        for (&stream, entry) in &mut self.table {
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
                self.filling.remove(&stream);
                let notice = Notice::Stands(standing);
                self.answers.push_back(Answer::Notice { stream, notice });
            }
        }
        self.wind(at);
    }
}

impl StreamState {
    /// Whether something of it is frozen, in rounds as these.
    fn needs_rounds(&self, plan: &Plan) -> bool {
        let open = match self.life {
            Life::Open => true,
            Life::Closing => !self.playout.is_drained(),
        };
        let ready = self.playout.standing != Standing::Filling || self.playout.is_ready(plan.round);
        self.held.is_some() && open && ready
    }
}

/// Whether full buffers are served from a freezing on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    Now,
    Later,
}

/// What accesses of a stream cost at worst.
struct Cost<'a, T> {
    times: &'a HeadTimes,
    tracks: &'a T,
    zone: Zone,
    block: u64,
    direction: Direction,
}

impl<'a, T: Tracks> Cost<'a, T> {
    fn of(admission: &'a Admission, tracks: &'a T, playout: &Playout) -> Self {
        Cost {
            times: admission.times(),
            tracks,
            zone: playout.contract.demand.zone,
            block: playout.map.block(),
            direction: playout.contract.direction(),
        }
    }

    fn batch(&self, key: u64, extent: Extent, deadline: Instant) -> Batch {
        Batch {
            key,
            cylinder: self.tracks.cylinder(extent.start()),
            last: self.tracks.cylinder(extent.last()),
            work: self.work(extent),
            deadline,
        }
    }

    /// Beginning on any sector; or, where tracks are taken up at any sector, each of them at its
    /// worst, whole or not. Both are bounds.
    fn work(&self, extent: Extent) -> Duration {
        let bytes = extent.length().0.saturating_mul(self.block);
        let anywhere = self.times.access(self.direction) + self.zone.sustained.at_most(bytes);
        let Some(whole) = self.zone.tracks else {
            return anywhere;
        };
        let mut tracks = Duration::ZERO;
        let mut at = extent.start();
        while at < extent.end() && tracks < anywhere {
            tracks += whole.time;
            at = self.tracks.track_end(at);
        }
        let by_tracks = self.times.aligned_access(self.direction, tracks);
        by_tracks.min(anywhere)
    }
}

fn transfer(id: TransferId, stream: StreamId, playout: &Playout, due: &Due) -> Order {
    let contract = &playout.contract;
    Order::Transfer(Transfer {
        id,
        stream,
        direction: contract.direction(),
        extent: due.piece.extent,
        offset: due.piece.offset,
        class: Class::RealTime {
            deadline: due.deadline,
        },
        durability: durability(contract.mode),
    })
}

/// How durable a stream's transfers have to be.
pub(super) fn durability(mode: StreamMode) -> Durability {
    match mode {
        StreamMode::RecordSync => Durability::Durable,
        StreamMode::Play | StreamMode::Record => Durability::Volatile,
    }
}
