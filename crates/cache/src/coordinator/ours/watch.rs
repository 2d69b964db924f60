//! Turns: who coordinates is decided by how long demands waited while it did.
//!
//! ```text
//!   trial:    |0 |1 |2 |  |1 |2 |0 |  |2 |0 |1 | ..   a turn for each arm, in changing order: a round
//!   settled:  |1 |1 |1 |1 |1 |1 |1 |1 |  |0 |1 |  ..  the winner, and arm 0 beside it now and then
//! ```
//!
//! Arm 0 is no coordination. The waiting for a block in an arm's turn is compared with that in arm 0's
//! turn of the same round: load drifts, neighbouring turns see the same. An arm is taken when its gain is
//! above 0 by more than chance, and given up when it no longer is. While arm 0 is settled only the best of
//! the others is probed, the more often the likelier it is to be better: looking costs what it loses. Of
//! each turn the first quarter is not counted: what the turn before left in the disk's queue is served.

/// Which arm a request is for, and what to say with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The arm.
    pub arm: usize,
    /// 0 if its answer does not count.
    pub tag: u32,
}

/// Compares arms by turns.
#[derive(Clone, Debug)]
pub struct Watch {
    arms: usize,
    slice: u32,
    phase: Phase,
    /// Requests that are left of this turn.
    left: u32,
    /// The arms of this round, and which of them has its turn.
    round: [usize; MOST_ARMS],
    in_round: usize,
    at: usize,
    rounds: u32,
    tallies: [Tally; MOST_ARMS],
    gains: [Gain; MOST_ARMS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// All arms have turns.
    Trial,
    /// One arm has all turns, so many more of them; after it a round of this arm and arm 0, or of
    /// arm 0 and the best of the others.
    Settled { arm: usize, turns: u32, rest: u32 },
    /// That round.
    Probe { arm: usize, rest: u32 },
}

/// Waiting that counts for an arm, and for how many blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    nanos: u64,
    blocks: u64,
}

/// By how much an arm is better than none, in millionths of the waiting; the later rounds count more.
#[derive(Clone, Copy, Debug)]
struct Gain {
    mean: i64,
    variance: i64,
    rounds: i64,
    /// That of the last round.
    latest: i64,
}

/// Arms at most, none included.
pub const MOST_ARMS: usize = 4;

/// A trial has at least so many rounds: fewer say nothing of their spread. A choice.
const LEAST_ROUNDS: u32 = 4;

/// After so many rounds an arm that looks worse has no more turns in a trial. A choice.
const FUTILE_ROUNDS: i64 = 8;

/// A trial has at most so many rounds. A choice.
const MOST_ROUNDS: u32 = 16;

/// Before the first round an arm's gain is taken for what so many rounds would say that are 0 in the mean
/// and spread as widely as rounds of equal arms do: two or three rounds that agree by chance prove nothing.
const PRIOR_ROUNDS: i64 = 2;

/// The spread of a round of turns of 64 requests whose waits spread as widely as their mean, in millionths.
/// Half of the requests are demands; of two turns the root of 2 x 1 / 24 is 29 %.
const PRIOR_DEVIATION: i64 = 300_000;

/// Older rounds lose their weight after so many. A choice: a gain of a tenth is twice the standard error of
/// so many rounds of [`PRIOR_DEVIATION`].
const MEMORY: i64 = 32;

/// Tenths of a standard error by which a gain is above 0 when an arm is taken, and when it is kept.
/// Choices: chance alone takes one arm in fifteen, and a gain has to get lost before it is given up.
const TAKEN: i64 = 15;
const KEPT: i64 = 10;

/// Tenths of a standard error by which a gain is below 0 when a trial goes on without the arm, at first and
/// after [`FUTILE_ROUNDS`]. Choices.
const LOST: i64 = 15;
const FUTILE: i64 = 3;

/// So many turns without a probe, doubled each time that one confirms the arm, up to [`LONGEST_REST`]. A
/// choice: the first probe is a ninth of all turns, later ones less than a hundredth.
const FIRST_REST: u32 = 16;
const LONGEST_REST: u32 = 256;

/// So many turns of arm 0 between probes of another one, by how many tenths of a standard error its gain is
/// above 0 at least: who may be better is looked at often. Choices: where another arm is a tenth worse, a
/// rest of 16 turns costs half a percent.
const RESTS: [(i64, u32); 4] = [(10, 2), (4, 6), (-5, FIRST_REST), (-20, 64)];

/// What to say with an answer that counts for this arm.
pub fn tag_of(arm: usize) -> u32 {
    arm as u32 + 1
}

impl Watch {
    /// `arms` with the one that does nothing, turns of `slice` requests.
    pub fn new(arms: usize, slice: u32) -> Self {
        let mut watch = Watch {
            arms: arms.clamp(1, MOST_ARMS),
            slice: slice.max(4),
            phase: Phase::Trial,
            left: 0,
            round: [0; MOST_ARMS],
            in_round: 0,
            at: 0,
            rounds: 0,
            tallies: Default::default(),
            gains: [Gain::PRIOR; MOST_ARMS],
        };
        watch.begin_round();
        watch
    }

    /// Which arm has this request.
    pub fn turn(&mut self) -> Turn {
        if self.left == 0 {
            self.next_turn();
        }
        let settling = self.slice / 4;
        let begun = self.slice - self.left;
        self.left -= 1;
        let arm = match self.phase {
            Phase::Settled { arm, .. } => arm,
            Phase::Trial | Phase::Probe { .. } => self.round[self.at],
        };
        let counts = begun >= settling && !matches!(self.phase, Phase::Settled { .. });
        Turn {
            arm,
            tag: if counts { tag_of(arm) } else { 0 },
        }
    }

    /// A request for so many blocks was answered, for which somebody waited so long.
    pub fn answered(&mut self, tag: u32, nanos: u64, blocks: u64) {
        let arm = tag.checked_sub(1).map(|arm| arm as usize);
        if let Some(tally) = arm.and_then(|arm| self.tallies.get_mut(arm)) {
            tally.nanos = tally.nanos.saturating_add(nanos);
            tally.blocks = tally.blocks.saturating_add(blocks);
        }
    }

    /// The arm that has all turns, if one has.
    pub fn settled(&self) -> Option<usize> {
        match self.phase {
            Phase::Trial => None,
            Phase::Settled { arm, .. } | Phase::Probe { arm, .. } => Some(arm),
        }
    }

    fn next_turn(&mut self) {
        self.left = self.slice;
        match &mut self.phase {
            Phase::Settled { turns, .. } if *turns > 0 => *turns -= 1,
            Phase::Settled { arm, rest, .. } => {
                self.phase = Phase::Probe {
                    arm: *arm,
                    rest: *rest,
                };
                self.begin_round();
            }
            Phase::Trial | Phase::Probe { .. } => {
                self.at += 1;
                if self.at == self.in_round {
                    self.end_round();
                }
            }
        }
    }

    /// Fills `round`: arms that lose for certain have no turn in a trial.
    fn begin_round(&mut self) {
        self.left = self.slice;
        self.at = 0;
        self.in_round = 0;
        for arm in 0..self.arms {
            let has_turn = match self.phase {
                Phase::Probe { arm: 0, .. } => arm == 0 || arm == self.least_bad(),
                Phase::Probe { arm: settled, .. } => arm == 0 || arm == settled,
                _ => arm == 0 || !self.gains[arm].is_surely_a_loss(),
            };
            if has_turn {
                self.round[self.in_round] = arm;
                self.in_round += 1;
            }
        }
        // Who comes first changes, so that nobody always follows the same one.
        let shift = self.rounds as usize % self.in_round;
        self.round[..self.in_round].rotate_left(shift);
        self.rounds = self.rounds.wrapping_add(1);
    }

    fn end_round(&mut self) {
        let base = self.tallies[0];
        for &arm in &self.round[..self.in_round] {
            // An arm without a turn may have answers for what it did long ago.
            if arm != 0
                && let Some(gain) = base.gain_of(&self.tallies[arm])
            {
                self.gains[arm].add(gain);
            }
        }
        self.tallies = Default::default();
        let next = match self.phase {
            Phase::Trial => self.verdict(),
            Phase::Probe { arm, rest } => Some(self.probed(arm, rest)),
            Phase::Settled { .. } => None,
        };
        match next {
            Some((arm, rest)) => {
                let turns = rest - 1;
                self.phase = Phase::Settled { arm, turns, rest };
            }
            None => {
                self.phase = Phase::Trial;
                self.begin_round();
            }
        }
    }

    /// Who has won the trial, if that is clear, and for how many turns.
    fn verdict(&self) -> Option<(usize, u32)> {
        if self.rounds < LEAST_ROUNDS {
            return None;
        }
        let winner = match self.best() {
            Some(arm) => arm,
            None if self.all_lose() => 0,
            None if self.rounds >= MOST_ROUNDS => self.better(),
            None => return None,
        };
        let rest = match winner {
            0 => self.rest(),
            _ => FIRST_REST,
        };
        Some((winner, rest))
    }

    /// Who has the turns after a probe, and how many: the arm that had them, as long as it is likely to be
    /// better than none; where none had them, an arm that is.
    fn probed(&self, arm: usize, rest: u32) -> (usize, u32) {
        if arm == 0 {
            return match self.best() {
                Some(best) => (best, FIRST_REST),
                None => (0, self.rest()),
            };
        }
        let gain = &self.gains[arm];
        if !gain.is_above(KEPT) {
            (0, self.rest())
        } else if gain.latest <= 0 {
            (arm, FIRST_REST)
        } else {
            (arm, (2 * rest).min(LONGEST_REST))
        }
    }

    /// Turns of arm 0 before the next probe.
    fn rest(&self) -> u32 {
        let gain = &self.gains[self.least_bad()];
        let reached = RESTS.iter().find(|(tenths, _)| gain.is_above(*tenths));
        reached.map_or(LONGEST_REST, |&(_, turns)| turns)
    }

    /// The arm with the largest gain of those whose gain is no chance.
    fn best(&self) -> Option<usize> {
        let arms = (1..self.arms).filter(|&arm| self.gains[arm].is_above(TAKEN));
        arms.max_by_key(|&arm| self.gains[arm].mean)
    }

    /// The arm with the largest gain, be it a loss; 0 if there is no other.
    fn least_bad(&self) -> usize {
        let arms = 1..self.arms;
        arms.max_by_key(|&arm| self.gains[arm].mean).unwrap_or(0)
    }

    fn all_lose(&self) -> bool {
        (1..self.arms).all(|arm| self.gains[arm].is_surely_a_loss())
    }

    /// The arm with the largest gain of those that would be kept, or none.
    fn better(&self) -> usize {
        let arms = (1..self.arms).filter(|&arm| self.gains[arm].is_above(KEPT));
        arms.max_by_key(|&arm| self.gains[arm].mean).unwrap_or(0)
    }
}

impl Tally {
    /// By how many millionths `other` is the better one, of the larger of the two; none if one of them
    /// saw nothing.
    fn gain_of(&self, other: &Tally) -> Option<i64> {
        if self.blocks == 0 || other.blocks == 0 {
            return None;
        }
        let own = u128::from(self.nanos) * u128::from(other.blocks);
        let theirs = u128::from(other.nanos) * u128::from(self.blocks);
        let larger = own.max(theirs).max(1);
        // So that a million times as much is still a number.
        let shift = 22u32.saturating_sub(larger.leading_zeros());
        let (own, theirs, larger) = (own >> shift, theirs >> shift, (larger >> shift).max(1));
        let difference = own as i128 - theirs as i128;
        Some((difference * 1_000_000 / larger as i128) as i64)
    }
}

impl Gain {
    /// Before the first round.
    const PRIOR: Gain = Gain {
        mean: 0,
        variance: PRIOR_DEVIATION * PRIOR_DEVIATION,
        rounds: PRIOR_ROUNDS,
        latest: 0,
    };

    fn add(&mut self, gain: i64) {
        self.latest = gain;
        self.rounds = (self.rounds + 1).min(MEMORY);
        let before = gain - self.mean;
        self.mean += before / self.rounds;
        let after = gain - self.mean;
        self.variance += (before * after - self.variance) / self.rounds;
    }

    /// Whether the mean is above 0 by so many tenths of its standard error; of a negative number, whether it is
    /// at most so far below.
    fn is_above(&self, tenths: i64) -> bool {
        let mean = i128::from(self.mean);
        let square = mean * mean * i128::from(self.rounds - 1) * 100;
        let bound = i128::from(self.variance) * i128::from(tenths) * i128::from(tenths);
        match tenths >= 0 {
            true => mean > 0 && square > bound,
            false => mean > 0 || square <= bound,
        }
    }

    /// Whether a trial goes on without the arm.
    fn is_surely_a_loss(&self) -> bool {
        let rounds = self.rounds - PRIOR_ROUNDS;
        let is_below = |tenths: i64| self.mean < 0 && !self.is_above(-tenths);
        (rounds >= i64::from(LEAST_ROUNDS) && is_below(LOST))
            || (rounds >= FUTILE_ROUNDS && is_below(FUTILE))
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST_REST, Gain, KEPT, LONGEST_REST, PRIOR_ROUNDS, TAKEN, Tally, Watch};

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

    /// Requests that wait as the arm's mean says, from 0 to twice as long. The mean wait of all.
    fn run(watch: &mut Watch, requests: u32, means: &[u64], seed: u64) -> f64 {
        let mut dice = Dice(seed);
        let mut total = 0;
        for _ in 0..requests {
            let turn = watch.turn();
            let waited = dice.below(2 * means[turn.arm] + 1);
            watch.answered(turn.tag, waited, 1);
            total += waited;
        }
        total as f64 / f64::from(requests)
    }

    #[test]
    fn it_takes_the_arm_with_the_shortest_waiting() {
        for seed in 0..20 {
            let mut watch = Watch::new(3, 64);
            let mean = run(&mut watch, 100_000, &[10_000, 8_000, 5_000], seed);
            assert_eq!(watch.settled(), Some(2), "seed {seed}");
            assert!(mean < 5_500.0, "seed {seed}: {mean}");
        }
    }

    #[test]
    fn it_steps_back_where_coordination_loses() {
        for seed in 0..20 {
            let mut watch = Watch::new(3, 64);
            let mean = run(&mut watch, 100_000, &[10_000, 12_000, 15_000], seed);
            assert_eq!(watch.settled(), Some(0), "seed {seed}");
            // The price of looking.
            assert!(mean < 10_200.0, "seed {seed}: {mean}");
        }
    }

    #[test]
    fn it_changes_its_mind_when_the_load_changes() {
        for seed in 0..10 {
            let mut watch = Watch::new(2, 64);
            run(&mut watch, 50_000, &[10_000, 7_000], seed);
            assert_eq!(watch.settled(), Some(1), "seed {seed}");
            let mean = run(&mut watch, 100_000, &[10_000, 14_000], seed);
            // At most the longest rest, a short one and a trial of the old arm.
            assert!(mean < 11_200.0, "seed {seed}: {mean}");
            assert_eq!(watch.settled(), Some(0), "seed {seed}");
            run(&mut watch, 400_000, &[10_000, 5_000], seed);
            assert_eq!(watch.settled(), Some(1), "seed {seed}");
        }
    }

    #[test]
    fn a_difference_that_is_chance_costs_nothing() {
        for seed in 0..20 {
            let mut watch = Watch::new(3, 64);
            let mean = run(&mut watch, 100_000, &[10_000, 10_000, 10_000], seed);
            assert!((9_900.0..10_100.0).contains(&mean), "seed {seed}: {mean}");
        }
    }

    /// After so many rounds that all say this.
    fn gain(rounds: u32, says: i64) -> Gain {
        let mut gain = Gain::PRIOR;
        (0..rounds).for_each(|_| gain.add(says));
        gain
    }

    #[test]
    fn a_few_rounds_that_agree_prove_nothing() {
        assert_eq!(Gain::PRIOR.rounds, PRIOR_ROUNDS);
        assert!(!gain(4, 100_000).is_above(TAKEN));
        assert!(gain(8, 300_000).is_above(TAKEN));
        assert!(!gain(1, -300_000).is_surely_a_loss());
        assert!(gain(8, -300_000).is_surely_a_loss());
    }

    #[test]
    fn who_may_be_better_is_looked_at_often() {
        let rest = |gain| {
            let mut watch = Watch::new(2, 64);
            watch.gains[1] = gain;
            watch.probed(0, 1)
        };
        assert_eq!(rest(gain(30, 300_000)), (1, FIRST_REST));
        assert_eq!(rest(gain(4, 150_000)), (0, 2));
        assert_eq!(rest(gain(4, 120_000)), (0, 6));
        assert_eq!(rest(Gain::PRIOR), (0, FIRST_REST));
        assert_eq!(rest(gain(30, -300_000)), (0, LONGEST_REST));
    }

    #[test]
    fn an_arm_is_given_up_when_its_gain_gets_lost() {
        let probed = |gain: Gain| {
            let mut watch = Watch::new(2, 64);
            watch.gains[1] = gain;
            watch.probed(1, 32)
        };
        let mut good = gain(8, 300_000);
        assert_eq!(probed(good), (1, 64));
        good.add(-100_000);
        assert_eq!(probed(good), (1, FIRST_REST));
        (0..20).for_each(|_| good.add(-100_000));
        assert!(!good.is_above(KEPT));
        assert_eq!(probed(good).0, 0);
    }

    #[test]
    fn answers_that_never_come_or_wait_for_ever_are_survived() {
        let mut watch = Watch::new(3, 4);
        for _ in 0..10_000 {
            watch.turn();
        }
        for request in 0..10_000u64 {
            let turn = watch.turn();
            watch.answered(turn.tag, u64::MAX, request % 2 * u64::MAX);
            watch.answered(u32::MAX, 1, 1);
        }
        let (long, short) = (
            Tally {
                nanos: u64::MAX,
                blocks: 1,
            },
            Tally {
                nanos: 0,
                blocks: u64::MAX,
            },
        );
        assert_eq!(long.gain_of(&short), Some(1_000_000));
        assert_eq!(short.gain_of(&long), Some(-1_000_000));
    }

    #[test]
    fn a_watch_of_one_arm_has_nothing_to_decide() {
        let mut watch = Watch::new(1, 4);
        assert!((0..1000).all(|_| watch.turn().arm == 0));
    }
}
