//! The reduction of the time per block under coordination.
//!
//! ```text
//!   requests      A ...... A .. C ... C ....... A
//!   time counts     for A    A    C      C         for the arm that prepared the region, per block
//! ```
//!
//! For a client in a closed loop, the time until its next request includes all waiting: late prefetches and
//! effects that both arms share as well. The waiting time of demands shows less: SARC above SARC with sixteen such
//! clients looked 8 % better by it, and was 8 % worse.
//!
//! A client with a new request while its last demand is outstanding is in an open loop. Time then says nothing
//! about the arms, and all observations are discarded.

use block::Instant;

use super::gain::{ArmGain, Prepared, Typical, gain};
use super::{Arm, Purpose, UpperRequest};

/// The time per block under both arms.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopPace {
    last: Option<Last>,
    /// The client of the last demand that is outstanding, and its arrival.
    waiter: Option<(u32, Instant)>,
    /// The times of this round, by [`Prepared`], then by arm.
    times: [[Time; 2]; 2],
    typical: Typical,
    gain: ArmGain,
}

/// The last request that counts.
#[derive(Clone, Copy, Debug)]
struct Last {
    came: Instant,
    blocks: u64,
    arm: Arm,
    prepared: Prepared,
}

/// Nanoseconds until the next request, and the requested blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    nanos: u64,
    blocks: u64,
}

/// The largest time between two requests that counts, as a multiple of the mean. A choice: a longer one is a
/// client's pause.
const PAUSE: i64 = 8;

/// Tenths of a standard error at which a difference is significant. A choice, as for the share of demands.
const CLEARLY: i64 = 25;

/// The least number of rounds for an estimate of their spread. A choice.
const LEAST_ROUNDS: i64 = 6;

impl LoopPace {
    /// The state before the first request.
    pub(super) const NEW: LoopPace = LoopPace {
        last: None,
        waiter: None,
        times: [[Time {
            nanos: 0,
            blocks: 0,
        }; 2]; 2],
        typical: Typical::NEW,
        gain: ArmGain::PRIOR,
    };

    /// Notes an arrival.
    pub(super) fn asked(&mut self, now: Instant, asked: &UpperRequest) {
        if let Some(last) = self.last.take() {
            let nanos = now.since(last.came).as_nanos();
            let time = &mut self.times[last.prepared as usize][last.arm as usize];
            time.nanos += self.typical.cut(nanos, PAUSE);
            time.blocks += last.blocks;
        }
        if asked.purpose == Purpose::Demand {
            if self
                .waiter
                .is_some_and(|(client, since)| client == asked.client && since < now)
            {
                self.times = LoopPace::NEW.times;
                self.gain = ArmGain::PRIOR;
            }
            self.waiter = Some((asked.client, now));
        }
    }

    /// Counts the time until the next arrival for this request.
    pub(super) fn counts(
        &mut self,
        now: Instant,
        asked: &UpperRequest,
        arm: Arm,
        prepared: Prepared,
    ) {
        self.last = Some(Last {
            came: now,
            blocks: asked.blocks.len(),
            arm,
            prepared,
        });
    }

    /// Notes a completion.
    pub(super) fn answered(&mut self, asked: &UpperRequest) {
        self.waiter = self.waiter.filter(|&(client, _)| client != asked.client);
    }

    /// Ends a round.
    pub(super) fn end_round(&mut self, weight: i64) {
        let times = std::mem::replace(&mut self.times, LoopPace::NEW.times);
        let times = times.map(|arms| arms.map(|time| (time.nanos, time.blocks)));
        if let Some(says) = gain(times) {
            self.gain.add(says, weight);
        }
    }

    /// The reduction of the time per block under coordination.
    pub(super) fn gain(&self) -> ArmGain {
        self.gain
    }

    /// Whether coordination is significantly faster.
    pub(super) fn is_quicker(&self) -> bool {
        self.is_known() && self.gain.is_above(CLEARLY)
    }

    /// Whether coordination is significantly slower.
    pub(super) fn is_slower(&self) -> bool {
        self.is_known() && self.gain.is_below(CLEARLY)
    }

    fn is_known(&self) -> bool {
        self.gain.rounds() >= LEAST_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use block::{Direction, Duration, Instant};

    use super::super::Arm::{self, Alone, Coordinated};
    use super::super::{Purpose, UpperRequest};
    use super::{LoopPace, PAUSE};
    use crate::coordinator::adaptive::gain::Prepared;
    use block::Interval;

    fn of(client: u32, purpose: Purpose) -> UpperRequest {
        UpperRequest {
            client,
            file: 0,
            blocks: Interval::new(0, 3),
            within: Interval::new(0, 1000),
            purpose,
            direction: Direction::Read,
        }
    }

    fn after(now: Instant, nanos: u64) -> Instant {
        now + Duration::from_nanos(nanos)
    }

    /// Rounds in which a request of each arm takes so long, and is answered before the next one.
    fn rounds(pace: &mut LoopPace, rounds: u32, nanos: [u64; 2]) {
        let mut now = Instant::ZERO;
        let asked = of(0, Purpose::Demand);
        for _ in 0..rounds {
            for arm in [Alone, Coordinated] {
                pace.asked(now, &asked);
                pace.counts(now, &asked, arm, Prepared::Unknown);
                pace.answered(&asked);
                now = after(now, nanos[arm as usize]);
            }
            pace.asked(now, &asked);
            pace.answered(&asked);
            pace.end_round(1);
        }
    }

    #[test]
    fn who_asks_when_answered_shows_what_it_waits_for() {
        for (coordinated, quicker, slower) in
            [(80, true, false), (100, false, false), (125, false, true)]
        {
            let mut pace = LoopPace::NEW;
            rounds(&mut pace, 100, [100, coordinated]);
            assert_eq!((pace.is_quicker(), pace.is_slower()), (quicker, slower));
        }
        let mut pace = LoopPace::NEW;
        rounds(&mut pace, 5, [100, 50]);
        assert!(!pace.is_quicker());
        rounds(&mut pace, 15, [100, 50]);
        assert!(pace.is_quicker());
    }

    #[test]
    fn time_says_nothing_of_who_asks_while_its_last_demand_waits() {
        let learnt = |asked: UpperRequest, nanos: u64, is_answered: bool| {
            let mut pace = LoopPace::NEW;
            rounds(&mut pace, 100, [100, 50]);
            let (first, now) = (of(0, Purpose::Demand), Instant::from_nanos(1 << 30));
            pace.asked(now, &first);
            if is_answered {
                pace.answered(&first);
            }
            pace.asked(after(now, nanos), &asked);
            pace.gain().mean() > 0
        };
        let demand = of(0, Purpose::Demand);
        assert!(!learnt(demand, 10, false));
        assert!(learnt(demand, 10, true));
        // Two messages for one request of its own, a prefetch, and another client.
        assert!(learnt(demand, 0, false));
        assert!(learnt(of(0, Purpose::Prefetch), 10, false));
        assert!(learnt(of(1, Purpose::Demand), 10, false));
    }

    #[test]
    fn time_counts_by_blocks_and_for_those_that_are_alike() {
        let mut pace = LoopPace::NEW;
        let mut now = Instant::ZERO;
        let mut request = |pace: &mut LoopPace, arm: Arm, prepared, blocks: u64, nanos| {
            let asked = UpperRequest {
                blocks: Interval::of(0, blocks),
                ..of(0, Purpose::Demand)
            };
            pace.asked(now, &asked);
            pace.counts(now, &asked, arm, prepared);
            pace.answered(&asked);
            now = after(now, nanos);
        };
        for _ in 0..20 {
            request(&mut pace, Alone, Prepared::Unknown, 4, 400);
            request(&mut pace, Alone, Prepared::Known, 4, 40);
            request(&mut pace, Coordinated, Prepared::Unknown, 8, 800);
            request(&mut pace, Coordinated, Prepared::Unknown, 2, 200);
            request(&mut pace, Coordinated, Prepared::Known, 1, 10);
            pace.end_round(1);
        }
        assert!(pace.gain().mean().abs() < 1_000, "{:?}", pace.gain());
    }

    #[test]
    fn a_clients_pause_counts_as_a_few_requests() {
        let mut pace = LoopPace::NEW;
        rounds(&mut pace, 1000, [100, 100]);
        pace.last = None;
        let now = Instant::from_nanos(1 << 30);
        let asked = of(0, Purpose::Demand);
        pace.asked(now, &asked);
        pace.counts(now, &asked, Alone, Prepared::Unknown);
        pace.answered(&asked);
        pace.asked(after(now, 10_000), &asked);
        // It moves the mean of 100 by a 256th of itself.
        let counted = pace.times[Prepared::Unknown as usize][Alone as usize].nanos;
        assert!((100..140 * PAUSE as u64).contains(&counted), "{counted}");
    }
}
