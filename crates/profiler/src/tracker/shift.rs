//! The likelihood of a shift of times that show only by the sector on whose side they end.
//!
//! ```text
//!   ended a revolution later           shift + scatter >  slack
//!   ended when believed      earlier < shift + scatter <= slack
//!   ended a revolution earlier         shift + scatter <= earlier
//! ```
//!
//! Each command is censored on both sides. A band keeps the likelihood of every shift under three spreads; the
//! prior, by which the belief is right, decides where the commands do not. A shift grows only after missed
//! revolutions, and shrinks only after ends a revolution early.

/// The resolution of a shift, in nanoseconds. A choice: a fifth of the 100 us by which a belief may
/// be off without harm.
const STEP: i64 = 20_000;

/// Number of shifts to either side: 0.8 ms. A choice: 4 % of the longest known seeks; a belief with
/// a larger error was never profiled.
const SIDE: i64 = 40;
const SHIFTS: usize = (2 * SIDE + 1) as usize;

/// Spreads of a seek's time, in nanoseconds: scales of a logistic distribution, whose deviation is
/// 1.8 times as much. For seeks that scatter by 20 to 200 us (../shared/specs/scheduling.md, section
/// 7). A choice.
const SPREADS: [f64; 3] = [15_000.0, 40_000.0, 110_000.0];

/// The probability that a command is late, or is not, for reasons other than the arm: a retry, a
/// hit of the buffer. A choice.
const OTHERWISE: f64 = 0.04;

/// The deviation of a believed time before any observation, in steps. A choice: 120 us, the error
/// of a profiled table at jumps on the worst of the drives that we ship.
const PRIOR: f64 = 6.0;

/// The effective number of commands that a band remembers. A choice: ageing and warming of an arm
/// take minutes.
const MEMORY: f32 = 512.0;

/// Number of commands between two evaluations of a band. A choice.
const LOOK_EVERY: u32 = 16;

/// Minimum change of a shift for adoption, in nanoseconds. A choice: half of the scatter of a good
/// drive's seeks.
const WORTH: f64 = 30_000.0;

/// Minimum change of a shift for adoption, in standard deviations. A choice: repeated evaluations
/// would soon exceed the usual two by chance.
const SURE: f64 = 3.0;

/// Minimum number of missed revolutions, or ends a revolution early, for adoption. A choice: fewer
/// are chance.
const SEEN: f32 = 3.0;

/// The slack of a command against the unshifted belief, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CensoredTime {
    /// For the pass of the sector that was predicted.
    pub(super) slack: i64,
    /// For the pass before it, if the command could have made that.
    pub(super) earlier: Option<i64>,
}

/// The shift of one kind of times: of seeks over similar distances, or of arrivals at the drive.
#[derive(Clone, Debug)]
pub(super) struct Band {
    /// The logarithm of each shift's likelihood under each spread.
    likelihood: [[f32; SHIFTS]; SPREADS.len()],
    commands: u32,
    /// Missed revolutions and ends a revolution early among the remembered commands.
    late: f32,
    early: f32,
    /// The adopted shift, in nanoseconds.
    pub(super) shift: i64,
    /// The shift to adopt next.
    pub(super) next: i64,
}

/// The logarithms of the probabilities to be on a side of a sector, by the slack in steps.
#[derive(Clone, Debug)]
pub(super) struct Odds {
    /// By spread; of being later and of not being, for slacks from -[`REACH`] to [`REACH`].
    by_spread: Vec<[[f32; 2]; (2 * REACH + 1) as usize]>,
    prior: [f32; SHIFTS],
}

/// Maximum distance of a shift from an informative slack, in steps.
const REACH: i64 = 3 * SIDE;

impl Band {
    pub(super) fn new(odds: &Odds) -> Self {
        Band {
            likelihood: [odds.prior; SPREADS.len()],
            commands: 0,
            late: 0.0,
            early: 0.0,
            shift: 0,
            next: 0,
        }
    }

    /// Records a command that took `revolutions` revolutions more than predicted. Returns whether a new
    /// shift is due for adoption.
    pub(super) fn observe(&mut self, odds: &Odds, time: CensoredTime, revolutions: i64) -> bool {
        let mut is_informative = false;
        if let Some(slack) = step_of(time.slack) {
            self.count(odds, slack, usize::from(revolutions > 0));
            self.late += f32::from(u8::from(revolutions > 0));
            is_informative = true;
        }
        if let Some(slack) = time.earlier.and_then(step_of) {
            self.count(odds, slack, usize::from(revolutions >= 0));
            self.early += f32::from(u8::from(revolutions < 0));
            is_informative = true;
        }
        is_informative && self.look()
    }

    /// Records that the time was later than `slack` steps, or was not.
    fn count(&mut self, odds: &Odds, slack: i64, side: usize) {
        let kept = 1.0 - 1.0 / MEMORY;
        for (likelihood, by_slack) in self.likelihood.iter_mut().zip(&odds.by_spread) {
            // What is left of the first shift's slack; each further shift has one step less.
            let first = (slack + SIDE + REACH) as usize;
            let by_shift = by_slack[..=first].iter().rev();
            for ((shift, odds), prior) in likelihood.iter_mut().zip(by_shift).zip(&odds.prior) {
                *shift = prior + (*shift - prior) * kept + odds[side];
            }
        }
        self.late *= kept;
        self.early *= kept;
    }

    /// Evaluates the band at intervals. Returns whether a new shift is due for adoption.
    fn look(&mut self) -> bool {
        self.commands += 1;
        if !self.commands.is_multiple_of(LOOK_EVERY) {
            return false;
        }
        let (mean, deviation) = self.estimate();
        let more = mean - self.shift as f64;
        let seen = if more > 0.0 { self.late } else { self.early };
        let is_due = more.abs() > WORTH.max(SURE * deviation) && seen >= SEEN;
        if is_due {
            self.next = mean as i64;
        }
        is_due
    }

    /// Mean and standard deviation of the shift, in nanoseconds.
    fn estimate(&self) -> (f64, f64) {
        let all = self.likelihood.iter().flatten();
        let most = all.copied().fold(f32::MIN, f32::max);
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for by_shift in &self.likelihood {
            for (place, &likelihood) in by_shift.iter().enumerate() {
                let weight = f64::from(likelihood - most).exp();
                let shift = ((place as i64 - SIDE) * STEP) as f64;
                sum += weight;
                first += weight * shift;
                second += weight * shift * shift;
            }
        }
        let mean = first / sum;
        (mean, (second / sum - mean * mean).max(0.0).sqrt())
    }
}

impl Odds {
    pub(super) fn new() -> Self {
        let slack = |place: i64| ((place - REACH) * STEP) as f64;
        let odds = |spread: f64, place: i64| {
            let later = 1.0 / (1.0 + (slack(place) / spread).exp());
            let later = OTHERWISE / 2.0 + (1.0 - OTHERWISE) * later;
            [(1.0 - later).ln() as f32, later.ln() as f32]
        };
        let by_slack = |&spread: &f64| std::array::from_fn(|place| odds(spread, place as i64));
        let prior = |place: usize| {
            let shift = (place as i64 - SIDE) as f64;
            (-shift * shift / (2.0 * PRIOR * PRIOR)) as f32
        };
        Odds {
            by_spread: SPREADS.iter().map(by_slack).collect(),
            prior: std::array::from_fn(prior),
        }
    }
}

/// A slack in steps, if it is informative.
pub(super) fn step_of(nanos: i64) -> Option<i64> {
    let step = (nanos + STEP / 2).div_euclid(STEP);
    (step.abs() <= REACH - SIDE).then_some(step)
}
