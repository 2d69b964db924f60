//! Turns: who coordinates is decided by how long demands waited while it did.
//!
//! ```text
//!   trial:    |0 |1 |2 |  |1 |2 |0 |  |2 |0 |1 | ..   a turn for each arm, in changing order: a round
//!   settled:  |1 |1 |1 |1 |1 |1 |1 |1 |  |0 |1 |  ..  the winner, and arm 0 beside it now and then
//! ```
//!
//! Arm 0 is no coordination. The waiting for a block in an arm's turn is compared with that in arm 0's
//! turn of the same round: load drifts, neighbouring turns see the same. An arm is taken when its gain is
//! above 0 by more than its standard error, and tried anew when three probes in a row say the opposite.
//! While arm 0 is settled only the best of the others is probed: looking costs what it loses. Of each turn
//! the first quarter is not counted: what was read in the turn before is still in the caches.

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
    /// Probes in a row that said the opposite of what was settled.
    contradictions: u32,
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

/// Waiting of demands in an arm's turn.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    nanos: u64,
    blocks: u64,
}

/// By how much an arm is better than none, in millionths of the waiting; the later rounds count more.
#[derive(Clone, Copy, Debug, Default)]
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

/// And at most so many, then the better one is taken if it is better at all. A choice.
const MOST_ROUNDS: u32 = 16;

/// Older rounds lose their weight after so many. A choice.
const MEMORY: i64 = 16;

/// So many turns without a probe, doubled each time that one confirms it, up to [`LONGEST_REST`]. A
/// choice: the first probe is a ninth of all turns, later ones less than a hundredth.
const FIRST_REST: u32 = 16;
const LONGEST_REST: u32 = 256;

/// So many probes in a row that say the opposite begin a new trial. A choice: an arm that is a tenth worse
/// than none seems better in a third of the probes, and three times in a row in a thirtieth.
const CONTRADICTIONS: u32 = 3;

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
            contradictions: 0,
            tallies: Default::default(),
            gains: Default::default(),
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
            tag: if counts { arm as u32 + 1 } else { 0 },
        }
    }

    /// A demand for so many blocks was answered after so long.
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
        for arm in 1..self.arms {
            if let Some(gain) = base.gain_of(&self.tallies[arm]) {
                self.gains[arm].add(gain);
            }
        }
        self.tallies = Default::default();
        let next = match self.phase {
            Phase::Trial => self.verdict(),
            Phase::Probe { arm, rest } => self.confirmed(arm, rest),
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
        Some((winner, FIRST_REST))
    }

    /// What follows from the round after a rest: a longer one, if it says what was known before; a
    /// short one the first time that it does not, and a new trial the second time.
    fn confirmed(&mut self, arm: usize, rest: u32) -> Option<(usize, u32)> {
        let contradicts = match arm {
            0 => self
                .probed()
                .is_some_and(|other| self.gains[other].latest > 0),
            _ => self.gains[arm].latest <= 0,
        };
        if !contradicts {
            self.contradictions = 0;
            return Some((arm, (2 * rest).min(LONGEST_REST)));
        }
        self.contradictions += 1;
        if self.contradictions < CONTRADICTIONS {
            return Some((arm, FIRST_REST));
        }
        self.contradictions = 0;
        self.gains = Default::default();
        self.rounds = 0;
        None
    }

    /// The arm with the largest gain of those whose gain is no chance.
    fn best(&self) -> Option<usize> {
        let arms = (1..self.arms).filter(|&arm| self.gains[arm].is_gain());
        arms.max_by_key(|&arm| self.gains[arm].mean)
    }

    /// The arm that had its turn beside arm 0.
    fn probed(&self) -> Option<usize> {
        let mut round = self.round[..self.in_round].iter().copied();
        round.find(|&arm| arm != 0)
    }

    /// The arm with the largest gain, be it a loss; 0 if there is no other.
    fn least_bad(&self) -> usize {
        let arms = 1..self.arms;
        arms.max_by_key(|&arm| self.gains[arm].mean).unwrap_or(0)
    }

    fn all_lose(&self) -> bool {
        (1..self.arms).all(|arm| self.gains[arm].is_surely_a_loss())
    }

    /// The arm with the largest gain, or none if no arm has one.
    fn better(&self) -> usize {
        let arms = (1..self.arms).filter(|&arm| self.gains[arm].mean > 0);
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
    fn add(&mut self, gain: i64) {
        self.latest = gain;
        self.rounds = (self.rounds + 1).min(MEMORY);
        let before = gain - self.mean;
        self.mean += before / self.rounds;
        let after = gain - self.mean;
        self.variance += (before * after - self.variance) / self.rounds;
    }

    /// Whether the mean is further from 0 than its standard error.
    fn is_certain(&self) -> bool {
        let mean = i128::from(self.mean);
        self.rounds > 1 && mean * mean * i128::from(self.rounds - 1) > i128::from(self.variance)
    }

    fn is_gain(&self) -> bool {
        self.mean > 0 && self.is_certain()
    }

    /// Twice the standard error below 0: an arm that is given up for the trial is not seen again.
    fn is_surely_a_loss(&self) -> bool {
        let mean = i128::from(self.mean);
        self.rounds >= i64::from(LEAST_ROUNDS)
            && mean < 0
            && mean * mean * i128::from(self.rounds - 1) > 4 * i128::from(self.variance)
    }
}

#[cfg(test)]
mod tests {
    use super::{Tally, Watch};

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
