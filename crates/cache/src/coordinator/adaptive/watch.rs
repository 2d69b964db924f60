//! Turns of two arms: the waiting time of demands decides which arm leads.
//!
//! ```text
//!   unclear:         |A |C |  |C |A |  |A |C |  ..                 both arms equally often
//!   C looks worse:   |A .... |A |C |A |A |A .......... |A |C | ..   C within its budget
//!   C is better:     |C .......... |C |A |C |C |C .... |C |A | ..   A for comparison at times
//! ```
//!
//! A is no coordination (Alone), C coordination. Waiting is compared within a round, because the load drifts and
//! adjacent turns see the same load (see `gain`).
//!
//! - Coordination leads when its gain is significantly above 0, until it no longer is.
//! - Before that, its cost is bounded, not the number of trials: by current knowledge, trials may cost
//!   [`BUDGET`] of all waiting. A large loss thus ends trials soon, and a small one permits them until the
//!   comparison is clear.
//! - The pace is a second measure. Coordination that is significantly slower by it loses as much, however short
//!   demands wait. It leads if it is significantly faster and demands wait no longer.
//! - Turns become longer. The effect of one arm on the other's turns, in queues and prefetchers, shows only in
//!   long turns; a large difference shows in short ones.

use block::Instant;

use super::Arm::{self, Alone, Coordinated};
use super::bursts::BurstDetector;
use super::gain::{ArmGain, CUT, Prepared, Tallies, Typical, WHOLE};
use super::pace::LoopPace;
use super::{Purpose, UpperRequest};

/// The arm of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmTurn {
    /// The arm.
    pub arm: Arm,
    /// Whether its completion counts.
    pub period: TurnPeriod,
}

/// The period that a turn belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnPeriod {
    /// A round, in which arms are compared: completions count.
    Round,
    /// A rest between rounds: completions do not count.
    Rest,
}

/// The comparison of two arms by turns.
#[derive(Clone, Debug)]
pub struct Watch {
    slice: u32,
    /// Requests before the next round; the leader serves all of them.
    resting: u32,
    round: &'static [Arm],
    /// The index of the current turn, the length of turns, and the requests left in this turn.
    at: usize,
    length: u32,
    left: u32,
    rounds: u32,
    /// The arm that serves requests between rounds.
    leader: Arm,
    /// Demands since the leader's start, in its turns and in those of the other arm.
    led: i64,
    tried: i64,
    bursts: BurstDetector,
    pace: LoopPace,
    tallies: Tallies,
    typical: Typical,
    waiting: ArmGain,
    demands: ArmGain,
}

/// The turns of a round while the comparison is unclear. The order alternates, so that neither arm always
/// follows the other.
const EVEN: [&[Arm]; 2] = [&[Alone, Coordinated], &[Coordinated, Alone]];

/// The turns of a round between rests, by leader. Three turns of the leader add as much information as half the
/// cost of the other arm's turn. The last two find the regions that the other arm prepared.
const BESIDE: [&[Arm]; 2] = [
    &[Alone, Coordinated, Alone, Alone],
    &[Coordinated, Alone, Coordinated, Coordinated],
];

/// The least number of rounds for an estimate of their spread. A choice: with 4, OLTP with SARC and 16 clients
/// lost 4 %.
const LEAST_ROUNDS: i64 = 6;

/// Tenths of a standard error above 0 at which coordination starts to lead, and at which it keeps the lead.
/// Choices, with hysteresis.
const TAKEN: i64 = 20;
const KEPT: i64 = 10;

/// Tenths of a standard error at which an increase of demands is significant. A choice: their share of requests
/// varies widely.
const CLEARLY: i64 = 25;

/// The cost that trials may have, in millionths of all waiting. A third of the permitted loss, because the
/// invisible part of a loss has to fit, too.
const BUDGET: i64 = 3_000;

/// The initial budget of trials, in mean waits of demands: ten rounds of two turns at a loss of a tenth. A
/// choice: with half of it OLTP of seeds 1 and 11 gains less, with more of it short loads lose more.
const GRANT: i64 = 64;

/// Rounds after which turns grow by their first length, and the largest multiple of it.
const LONGER: u32 = 8;
const LONGEST: u32 = 8;

/// The length of a rest while coordination leads, in turns: the squared gain in standard errors times the first
/// value, between the other two. Choices: an uncertain gain is tested in every eighth turn, one of five standard
/// errors in every seventieth.
const SURE: i64 = 3;
const SHORTEST_REST: i64 = 4;
const LONGEST_REST: i64 = 64;

/// The longest rest in demands while no coordination leads, because loads change. The longest turn of an arm
/// that loses 40 % then costs [`BUDGET`].
const LONGEST_ALONE: i64 = 1 << 16;

/// The tag of a request whose completion counts for this arm. Others have the tag 0.
pub fn tag_of(arm: Arm, prepared: Prepared) -> u32 {
    1 + 2 * arm as u32 + prepared as u32
}

/// The arm and preparation of a tag; `None` for a tag that does not count.
fn said_by(tag: u32) -> Option<(Arm, Prepared)> {
    match tag {
        1 => Some((Alone, Prepared::Unknown)),
        2 => Some((Alone, Prepared::Known)),
        3 => Some((Coordinated, Prepared::Unknown)),
        4 => Some((Coordinated, Prepared::Known)),
        _ => None,
    }
}

impl Watch {
    /// A comparison whose first turns have `slice` requests.
    pub fn new(slice: u32) -> Self {
        let slice = slice.max(4);
        Watch {
            slice,
            resting: 0,
            round: EVEN[0],
            at: 0,
            length: slice,
            left: slice,
            rounds: 0,
            leader: Alone,
            led: 0,
            tried: 0,
            bursts: BurstDetector::default(),
            pace: LoopPace::NEW,
            tallies: Tallies::default(),
            typical: Typical::NEW,
            waiting: ArmGain::PRIOR,
            demands: ArmGain::PRIOR,
        }
    }

    /// Notes an arrival.
    pub fn asked(&mut self, now: Instant, asked: &UpperRequest) {
        self.bursts.arrive();
        self.pace.asked(now, asked);
    }

    /// The turn of the next request.
    pub fn turn(&mut self, purpose: Purpose) -> ArmTurn {
        let demands = (purpose == Purpose::Demand) as u32;
        if self.left == 0 {
            self.at += 1;
            if self.at == self.round.len() {
                self.end_round();
            }
            self.left = self.length;
        }
        if self.resting > 0 || self.bursts.is_burst() {
            self.resting = self.resting.saturating_sub(match self.leader {
                Alone => demands,
                Coordinated => 1,
            });
            self.led += i64::from(demands);
            return ArmTurn {
                arm: self.leader,
                period: TurnPeriod::Rest,
            };
        }
        self.left -= 1;
        let arm = self.round[self.at];
        match arm == self.leader {
            true => self.led += i64::from(demands),
            false => self.tried += i64::from(demands),
        }
        ArmTurn {
            arm,
            period: TurnPeriod::Round,
        }
    }

    /// Counts a request for this arm. Returns its tag.
    pub fn counts(
        &mut self,
        now: Instant,
        asked: &UpperRequest,
        arm: Arm,
        prepared: Prepared,
    ) -> u32 {
        self.pace.counts(now, asked, arm, prepared);
        tag_of(arm, prepared)
    }

    /// Notes a completion after `waited` nanoseconds.
    pub fn answered(&mut self, asked: &UpperRequest, tag: u32, waited: u64) {
        self.bursts.complete();
        self.pace.answered(asked);
        let waited = match asked.purpose {
            Purpose::Demand => Some(self.typical.cut(waited, CUT)),
            Purpose::Prefetch => None,
        };
        if let Some((arm, prepared)) = said_by(tag) {
            self.tallies.add(arm, prepared, waited);
        }
    }

    fn end_round(&mut self) {
        self.learn();
        self.rounds = self.rounds.saturating_add(1);
        self.length = self.slice * (1 + self.rounds / LONGER).min(LONGEST);
        let leader = self.better();
        if leader != self.leader {
            self.leader = leader;
            self.led = 0;
            self.tried = 0;
        }
        self.resting = self.rest();
        self.at = 0;
        self.round = match self.resting {
            0 => EVEN[self.rounds as usize % 2],
            _ => BESIDE[leader as usize],
        };
    }

    /// Evaluates the round. Demands that are too few for a comparison are kept for the next round.
    fn learn(&mut self) {
        let weight = i64::from(self.length / self.slice);
        self.pace.end_round(weight);
        if !self.tallies.is_enough() {
            return;
        }
        if let Some(says) = self.tallies.waiting() {
            self.waiting.add(says, weight);
        }
        if let Some(says) = self.tallies.demands() {
            self.demands.add(says, weight);
        }
        self.tallies = Tallies::default();
    }

    /// The arm that leads from now on.
    fn better(&self) -> Arm {
        let error = self.waiting.error();
        let (enough, is_quicker) = match self.leader {
            Alone => (TAKEN, self.pace.is_quicker()),
            Coordinated => (KEPT, self.pace.gain().is_above(KEPT)),
        };
        let waits_less = 10 * self.gain() > enough * error;
        let is_known = self.waiting.rounds() >= LEAST_ROUNDS;
        match waits_less && is_known || is_quicker && self.gain() > -error {
            true => Coordinated,
            false => Alone,
        }
    }

    /// The gain of coordination: the reduction of a demand's wait, minus a significant increase of demands, and
    /// at most the pace's gain if the pace is significantly slower.
    fn gain(&self) -> i64 {
        let mut gain = self.waiting.mean();
        if self.demands.is_below(CLEARLY) {
            gain += self.demands.mean();
        }
        match self.pace.is_slower() {
            true => gain.min(self.pace.gain().mean()),
            false => gain,
        }
    }

    /// The length of the next rest: in demands if no coordination leads, else in requests.
    fn rest(&self) -> u32 {
        let requests = match self.leader {
            Alone => {
                let spent = self.tried * (-self.gain()).max(0);
                let allowed = (self.led + self.tried) * BUDGET + GRANT * WHOLE;
                ((spent - allowed) / BUDGET).clamp(0, LONGEST_ALONE)
            }
            Coordinated => {
                let by_waiting = self.gain() / self.waiting.error().max(1);
                let errors = by_waiting.max(self.pace.gain().errors());
                let turns = (errors * errors).saturating_mul(SURE);
                turns.clamp(SHORTEST_REST, LONGEST_REST) * i64::from(self.length)
            }
        };
        requests as u32
    }
}

#[cfg(test)]
mod tests {
    use block::{Direction, Duration, Instant};

    use super::{
        Alone, Arm, ArmGain, ArmTurn, BUDGET, Coordinated, GRANT, LEAST_ROUNDS, LONGEST_ALONE,
        Prepared, Purpose, TurnPeriod, UpperRequest, WHOLE, Watch, tag_of,
    };
    use block::Interval;

    /// Dice that are the same on every machine.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    /// Requests that wait as the arm's mean says, from 0 to twice as long. The mean wait of all, and the
    /// share of coordinated ones.
    fn run(watch: &mut Watch, requests: u32, means: [u64; 2], seed: u64) -> (f64, f64) {
        let mut dice = Dice(seed);
        let (mut total, mut coordinated) = (0, 0);
        for _ in 0..requests {
            let arm = answer(
                watch,
                |arm| Some(dice.below(2 * means[arm as usize] + 1)),
                &mut total,
            );
            coordinated += arm as u32;
        }
        let requests = f64::from(requests);
        (total as f64 / requests, f64::from(coordinated) / requests)
    }

    const DEMAND: UpperRequest = UpperRequest {
        client: 0,
        file: 0,
        blocks: Interval { first: 0, last: 3 },
        within: Interval {
            first: 0,
            last: 1000,
        },
        purpose: Purpose::Demand,
        direction: Direction::Read,
    };

    const AHEAD: UpperRequest = UpperRequest {
        purpose: Purpose::Prefetch,
        ..DEMAND
    };

    fn ask(watch: &mut Watch, now: Instant, asked: &UpperRequest) -> (ArmTurn, u32) {
        watch.asked(now, asked);
        let turn = watch.turn(asked.purpose);
        let tag = match turn.period {
            TurnPeriod::Round => watch.counts(now, asked, turn.arm, Prepared::Unknown),
            TurnPeriod::Rest => 0,
        };
        (turn, tag)
    }

    fn answer(watch: &mut Watch, wait: impl FnOnce(Arm) -> Option<u64>, total: &mut u64) -> Arm {
        let (turn, tag) = ask(watch, Instant::ZERO, &DEMAND);
        let waited = wait(turn.arm);
        let asked = match waited {
            Some(_) => DEMAND,
            None => AHEAD,
        };
        watch.answered(&asked, tag, waited.unwrap_or(0));
        *total += waited.unwrap_or(0);
        turn.arm
    }

    #[test]
    fn it_coordinates_where_that_is_quicker() {
        for seed in 0..20 {
            let mut watch = Watch::new(64);
            let (mean, _) = run(&mut watch, 100_000, [10_000, 8_000], seed);
            assert_eq!(watch.leader, Coordinated, "seed {seed}");
            assert!(mean < 8_200.0, "seed {seed}: {mean}");
            // The account begins anew with a leader.
            assert!(watch.led + watch.tried < 100_000, "seed {seed}");
        }
    }

    #[test]
    fn where_coordination_loses_little_of_all_is_lost() {
        let slower = [10_300, 10_600, 11_000, 12_000, 14_000];
        for (seed, slower) in (0..20).zip(slower.into_iter().cycle()) {
            let mut watch = Watch::new(64);
            let (_, share) = run(&mut watch, 50_000, [10_000, slower], seed);
            assert_eq!(watch.leader, Alone, "seed {seed}: {slower}");
            let lost = share * (slower - 10_000) as f64 / 10_000.0;
            assert!(lost < 0.01, "seed {seed}: {slower}: {lost}");
        }
    }

    #[test]
    fn what_looking_may_cost_is_bounded_and_what_costs_nothing_is_tried_for_ever() {
        let tried = |gain: i64| {
            let mut watch = Watch::new(64);
            (0..100).for_each(|_| watch.waiting.add(gain, 1));
            let mut tried = 0;
            for _ in 0..1_000_000 {
                tried += (watch.turn(Purpose::Demand).arm == Coordinated) as i64;
            }
            tried
        };
        for gain in [-20_000, -50_000, -100_000, -400_000] {
            let cost = tried(gain) * -gain;
            let allowed = 1_000_000 * BUDGET + GRANT * WHOLE;
            // A gain is not quite what all rounds say, and the last turn may be one too many.
            assert!(
                cost <= allowed / 100 * 103 + 8 * 64 * -gain,
                "{gain}: {cost}"
            );
            assert!(cost > allowed / 3, "{gain}: {cost}");
        }
        assert!((490_000..510_000).contains(&tried(-1)));
    }

    #[test]
    fn something_may_be_lost_at_once_and_no_rest_is_for_ever() {
        let mut watch = Watch::new(64);
        (0..100).for_each(|_| watch.waiting.add(-100_000, 1));
        (watch.led, watch.tried) = (640, 640);
        assert_eq!(watch.rest(), 0);
        (watch.led, watch.tried) = (1280, 1280);
        assert!(watch.rest() > 0);
        (watch.led, watch.tried) = (1 << 20, 1 << 20);
        assert_eq!(watch.rest(), LONGEST_ALONE as u32);
    }

    #[test]
    fn that_there_are_more_demands_has_to_be_clear() {
        let mut watch = Watch::new(64);
        for round in 0..64 {
            watch.waiting.add(100_000, 1);
            watch.demands.add([-300_000, 250_000][round % 2], 1);
        }
        assert_eq!(watch.gain(), watch.waiting.mean());
        (0..64).for_each(|_| watch.demands.add(-200_000, 1));
        assert!(watch.gain() < 0);
    }

    #[test]
    fn it_changes_its_mind_when_the_load_changes() {
        for seed in 0..10 {
            let mut watch = Watch::new(64);
            run(&mut watch, 50_000, [10_000, 7_000], seed);
            assert_eq!(watch.leader, Coordinated, "seed {seed}");
            run(&mut watch, 400_000, [10_000, 14_000], seed);
            assert_eq!(watch.leader, Alone, "seed {seed}");
            let (_, share) = run(&mut watch, 100_000, [10_000, 14_000], seed);
            assert!(share < 0.02, "seed {seed}: {share}");
            run(&mut watch, 2_000_000, [10_000, 5_000], seed);
            assert_eq!(watch.leader, Coordinated, "seed {seed}");
        }
    }

    #[test]
    fn a_difference_that_is_chance_costs_nothing() {
        for seed in 0..20 {
            let mut watch = Watch::new(64);
            let (mean, _) = run(&mut watch, 100_000, [10_000, 10_000], seed);
            assert!((9_900.0..10_100.0).contains(&mean), "seed {seed}: {mean}");
        }
    }

    #[test]
    fn more_demands_that_each_wait_less_are_no_gain() {
        // Of five requests three and four are demands, that wait 10 and 9.
        let leads = |often: u64| {
            let mut watch = Watch::new(64);
            let mut led = 0;
            for step in 0..100_000u64 {
                let wait = |arm| match arm {
                    Alone => (step % 5 < 3).then_some(10_000),
                    Coordinated => (step % 5 < often).then_some(9_000),
                };
                answer(&mut watch, wait, &mut 0);
                led += (watch.leader == Coordinated) as u32;
            }
            led > 50_000
        };
        assert!(leads(3));
        assert!(!leads(4));
    }

    /// One client that asks when it was answered: demands wait as long as they do, and then it goes on after
    /// a pause.
    fn closed_loop(watch: &mut Watch, requests: u32, wait: [u64; 2], pause: [u64; 2]) {
        let mut now = Instant::ZERO;
        let mut dice = Dice(1);
        for _ in 0..requests {
            let (turn, tag) = ask(watch, now, &DEMAND);
            let arm = turn.arm as usize;
            let waited = dice.below(2 * wait[arm] + 1);
            watch.answered(&DEMAND, tag, waited);
            now += Duration::from_nanos(waited + dice.below(2 * pause[arm] + 1));
        }
    }

    #[test]
    fn where_all_goes_on_more_slowly_demands_that_wait_less_are_no_gain() {
        let leads = |pause| {
            let mut watch = Watch::new(64);
            closed_loop(&mut watch, 100_000, [10_000, 9_000], [5_000, pause]);
            watch.leader
        };
        assert_eq!(leads(5_000), Coordinated);
        assert_eq!(leads(8_000), Alone);
    }

    #[test]
    fn where_all_goes_on_more_quickly_it_coordinates_though_demands_wait_as_long() {
        let leads = |wait, pause| {
            let mut watch = Watch::new(64);
            closed_loop(&mut watch, 100_000, [10_000, wait], [20_000, pause]);
            watch.leader
        };
        assert_eq!(leads(10_000, 17_000), Coordinated);
        assert_eq!(leads(11_000, 15_000), Alone);
    }

    #[test]
    fn a_few_demands_among_many_prefetches_are_put_together_until_they_say_something() {
        let mut watch = Watch::new(64);
        let mut rounds = Vec::new();
        for request in 0..128 * 20 {
            let asked = match request % 16 {
                0 => DEMAND,
                _ => AHEAD,
            };
            let (turn, tag) = ask(&mut watch, Instant::ZERO, &asked);
            watch.answered(&asked, tag, [10_000, 8_000][turn.arm as usize]);
            rounds.push(watch.waiting.rounds());
        }
        // Four demands of each arm in a round.
        assert_eq!(rounds[128 * 4 - 1], 0);
        assert_eq!(rounds[128 * 4 + 1], 1);
        assert!(watch.waiting.mean() > 0);
    }

    #[test]
    fn what_nobody_waits_for_neither_earns_nor_costs() {
        let mut watch = Watch::new(64);
        (0..1000).for_each(|_| {
            ask(&mut watch, Instant::ZERO, &AHEAD);
        });
        assert_eq!((watch.led, watch.tried), (0, 0));
        watch.resting = 10;
        (0..1000).for_each(|_| {
            ask(&mut watch, Instant::ZERO, &AHEAD);
        });
        assert_eq!(watch.resting, 10);
        (0..10).for_each(|_| {
            ask(&mut watch, Instant::ZERO, &DEMAND);
        });
        assert_eq!((watch.resting, watch.led), (0, 10));
    }

    #[test]
    fn nothing_is_tried_in_a_burst_and_nothing_of_it_counts() {
        for leader in [Alone, Coordinated] {
            let mut watch = Watch::new(1 << 12);
            watch.leader = leader;
            run(&mut watch, 4_000, [10_000, 10_000], 1);
            let burst: Vec<ArmTurn> = (0..2_000)
                .map(|_| ask(&mut watch, Instant::ZERO, &DEMAND).0)
                .collect();
            // The first ones are no bursts yet.
            assert!(
                burst[..15]
                    .iter()
                    .all(|turn| turn.period == TurnPeriod::Round)
            );
            let rest = ArmTurn {
                arm: leader,
                period: TurnPeriod::Rest,
            };
            assert!(burst[15..].iter().all(|&turn| turn == rest));
            (0..2_000).for_each(|_| watch.answered(&DEMAND, 0, 0));
            let after = ask(&mut watch, Instant::ZERO, &DEMAND).0;
            assert_eq!(after.period, TurnPeriod::Round);
        }
    }

    #[test]
    fn arms_follow_each_other_in_turn_and_turns_become_longer() {
        let mut watch = Watch::new(4);
        let mut lengths = Vec::new();
        let mut last = None;
        for _ in 0..5000 {
            let arm = watch.turn(Purpose::Demand).arm;
            match last == Some(arm) {
                true => *lengths.last_mut().expect("one is there") += 1,
                false => lengths.push(1),
            }
            last = Some(arm);
        }
        // 01 10 01: the turns of two rounds meet.
        assert_eq!(lengths[..4], [4, 8, 8, 8]);
        assert_eq!(lengths.iter().max(), Some(&64));
    }

    #[test]
    fn what_is_hardly_known_is_looked_at_often() {
        let rest = |gain: i64, rounds: u32| {
            let mut watch = Watch::new(64);
            watch.leader = Coordinated;
            (0..rounds).for_each(|_| watch.waiting.add(gain, 1));
            watch.rest()
        };
        assert_eq!(rest(100_000, 2), 4 * 64);
        assert!(rest(100_000, 12) > 4 * 64);
        assert_eq!(rest(400_000, 64), 64 * 64);
    }

    #[test]
    fn it_is_taken_late_and_given_up_late() {
        let leads = |leader, gain: ArmGain| {
            let mut watch = Watch::new(64);
            (watch.leader, watch.waiting) = (leader, gain);
            watch.better()
        };
        let mut gain = ArmGain::PRIOR;
        for _ in 1..LEAST_ROUNDS {
            gain.add(900_000, 1);
            assert_eq!(leads(Alone, gain), Alone);
        }
        gain.add(900_000, 1);
        assert_eq!(leads(Alone, gain), Coordinated);
        let mut gain = ArmGain::PRIOR;
        (0..10).for_each(|round| gain.add([160_000, -20_000][round % 2], 1));
        assert_eq!(leads(Alone, gain), Alone);
        assert_eq!(leads(Coordinated, gain), Coordinated);
    }

    #[test]
    fn answers_that_never_come_or_wait_for_ever_are_survived() {
        let mut watch = Watch::new(4);
        for _ in 0..10_000 {
            watch.turn(Purpose::Demand);
        }
        for request in 0..10_000u64 {
            let turn = watch.turn(Purpose::Demand);
            let tag = tag_of(turn.arm, Prepared::Known);
            watch.answered(&DEMAND, tag, u64::MAX * (request % 2));
            watch.answered(&DEMAND, u32::MAX, 1);
            watch.answered(&AHEAD, tag, 0);
        }
        assert!(watch.rest() <= LONGEST_ALONE as u32);
    }
}
