//! How fast a leg is filled, and how much of the time past the engine that may cost.
//!
//! ```text
//!   the engine uses no gaps, or they bring next to nothing --> a tenth of the time
//!   gaps bring enough, but not for the deadline           --> the paid share
//!   gaps bring enough                                     --> nothing
//! ```

use block::{Duration, Instant};

use crate::mirror::RebuildRule;
use crate::status;

/// The share of the time without gaps, in parts per million, while clients have commands. A choice: ten times as slow
/// as an idle copy, and the loss of the clients is about as small.
const WITHOUT_GAPS_PPM: u32 = 100_000;

/// A rate is that of so much of the drive's time. A choice: long against a gap, short against a copy.
const WINDOW: Duration = Duration::from_secs(10);

/// Gaps that would take longer than this for all data count as none. A busy drive of 20 TB is read in its gaps in 6 to
/// 7 days (`docs/results/freeblock.md`): less is not what gaps bring.
const SLOWEST: Duration = Duration::from_secs(7 * 86_400);

/// A choice: a copy that a drive has held up for long says nothing about the next one.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// What reads in gaps bring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gaps {
    /// The engine has no task for the copy, or does not trust its belief.
    #[default]
    None,
    /// They were enough in the last window, or there was none yet.
    Enough,
    /// They brought next to nothing.
    Dry,
}

/// Whether the engine of the leg with all data uses gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapReads {
    /// It does.
    Used,
    /// It has none, or does not trust its belief: in safe mode a task has idle time only.
    Unused,
}

/// The pace of a copy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    rule: RebuildRule,
    data_bytes: u64,
    gaps: Gaps,
    began: Option<Instant>,
    now: Instant,
    /// Bytes that were copied from gaps, and past the engine.
    from_gaps: u64,
    past_engine: u64,
    /// The time that the latter took.
    paid: Duration,
    /// When the window began, and both counts then.
    window: (Instant, u64, u64),
    /// Bytes a second of the last window: from gaps, and of both.
    rates: Option<(u64, u64)>,
}

impl Pace {
    /// The rule of the next copies of so many bytes.
    pub(super) fn set(&mut self, rule: RebuildRule, data_bytes: u64) {
        (self.rule, self.data_bytes) = (rule, data_bytes);
    }

    /// A copy begins, if none has.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.began.is_none() {
            let (rule, data_bytes) = (self.rule, self.data_bytes);
            *self = Pace::default();
            self.set(rule, data_bytes);
            (self.began, self.now, self.window.0) = (Some(now), now, now);
        }
    }

    /// The copy has ended.
    pub(super) fn end(&mut self) {
        self.began = None;
    }

    /// Whether the engine reads for the copy in gaps.
    pub(super) fn use_gaps(&mut self, used: GapReads) {
        self.gaps = match (used, self.gaps) {
            (GapReads::Unused, _) => Gaps::None,
            (GapReads::Used, Gaps::None) => Gaps::Enough,
            (GapReads::Used, known) => known,
        };
    }

    /// Bytes were copied that a gap has brought.
    pub(super) fn copied_from_gaps(&mut self, bytes: u64) {
        self.from_gaps += bytes;
    }

    /// Bytes were copied past the engine, in this time.
    pub(super) fn copied_past_engine(&mut self, bytes: u64, took: Duration) {
        self.past_engine += bytes;
        self.paid += took;
    }

    /// Time goes by.
    pub(super) fn look(&mut self, now: Instant) {
        self.now = now;
        let (since, from_gaps, past_engine) = self.window;
        let passed = now.since(since);
        if passed < WINDOW {
            return;
        }
        let a_second = |bytes: u64| {
            let bytes = u128::from(bytes) * 1_000_000_000 / u128::from(passed.as_nanos());
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let gaps = a_second(self.from_gaps - from_gaps);
        let both = gaps + a_second(self.past_engine - past_engine);
        self.rates = Some((gaps, both));
        self.window = (now, self.from_gaps, self.past_engine);
        if self.gaps != Gaps::None {
            let floor =
                u128::from(self.data_bytes) * 1_000_000_000 / u128::from(SLOWEST.as_nanos());
            self.gaps = match u128::from(gaps) > floor {
                true => Gaps::Enough,
                false => Gaps::Dry,
            };
        }
    }

    /// When to look next.
    pub(super) fn next_look(&self) -> Instant {
        self.window.0 + WINDOW
    }

    /// The time until the deadline.
    fn ahead(&self) -> Option<Duration> {
        let deadline = self.began? + self.rule.deadline?;
        Some(match deadline > self.now {
            true => deadline.since(self.now),
            false => Duration::ZERO,
        })
    }

    /// Whether gaps alone would miss the deadline with so many bytes left.
    fn is_behind(&self, left: u64) -> bool {
        let (Some(ahead), Some((gaps, _))) = (self.ahead(), self.rates) else {
            return false;
        };
        u128::from(gaps) * u128::from(ahead.as_nanos()) < u128::from(left) * 1_000_000_000
    }

    /// The share of the time, in parts per million, that pieces past the engine may take with so many bytes left.
    pub(super) fn share_ppm(&self, left: u64) -> u32 {
        let owed = match self.gaps {
            Gaps::None | Gaps::Dry => WITHOUT_GAPS_PPM,
            Gaps::Enough => 0,
        };
        match self.is_behind(left) {
            true => owed.max(self.rule.paid_ppm),
            false => owed,
        }
    }

    /// How long to rest after a piece that took so long, to keep to a share.
    pub(super) fn rest(&self, took: Duration, left: u64) -> Duration {
        // Pieces that gaps failed to read are copied without a share of their own.
        let share = match self.share_ppm(left) {
            0 => WITHOUT_GAPS_PPM,
            share => share,
        };
        let nanos = u128::from(took.as_nanos()) * u128::from(1_000_000 - share.min(1_000_000));
        let nanos = nanos / u128::from(share);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(LONGEST_REST)
    }

    /// The copy in the status, with so many bytes left.
    pub(super) fn status(&self, left: u64) -> Option<status::Rebuild> {
        let elapsed = self.now.since(self.began?).as_secs_f64();
        let (_, rate) = self.rates.unwrap_or_default();
        let means = match (self.gaps, self.is_behind(left)) {
            (_, true) if self.rule.paid_ppm > 0 => status::RebuildMeans::Deadline,
            (Gaps::Enough, _) => status::RebuildMeans::Gaps,
            (Gaps::None | Gaps::Dry, _) => status::RebuildMeans::Share,
        };
        Some(status::Rebuild {
            means,
            gap_bytes: self.from_gaps,
            paid_bytes: self.past_engine,
            paid_percent: match elapsed > 0.0 {
                true => self.paid.as_secs_f64() / elapsed * 100.0,
                false => 0.0,
            },
            mb_per_s: rate as f64 / 1e6,
            eta_s: (rate > 0).then(|| left as f64 / rate as f64),
            deadline_s: self.ahead().map(|ahead| ahead.as_secs_f64()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * GB)
    }

    fn pace(deadline: Option<u64>) -> Pace {
        let mut pace = Pace::default();
        let rule = RebuildRule {
            deadline: deadline.map(Duration::from_secs),
            paid_ppm: 250_000,
        };
        pace.set(rule, 9 * GB);
        pace.begin(at(100));
        pace
    }

    #[test]
    fn without_gaps_a_tenth_of_the_time_is_taken_and_with_them_nothing_until_they_are_dry() {
        let mut pace = pace(None);
        assert_eq!(pace.share_ppm(GB), WITHOUT_GAPS_PPM);
        assert_eq!(
            pace.rest(Duration::from_nanos(10_000_000), GB),
            Duration::from_nanos(90_000_000)
        );
        pace.use_gaps(GapReads::Used);
        assert_eq!(pace.share_ppm(GB), 0);
        pace.look(at(109));
        assert_eq!(pace.share_ppm(GB), 0, "the window has not ended");
        pace.look(at(110));
        assert_eq!(pace.share_ppm(GB), WITHOUT_GAPS_PPM, "nothing came");
        // 9 GB in 7 days are 14,880 bytes a second.
        pace.copied_from_gaps(149_000);
        pace.look(at(120));
        assert_eq!(pace.share_ppm(GB), 0);
        pace.copied_from_gaps(148_700);
        pace.look(at(130));
        assert_eq!(pace.share_ppm(GB), WITHOUT_GAPS_PPM);
    }

    #[test]
    fn in_safe_mode_a_tenth_of_the_time_is_taken_whatever_idle_time_brings() {
        let mut pace = pace(None);
        pace.use_gaps(GapReads::Used);
        assert_eq!(pace.share_ppm(GB), 0);
        pace.use_gaps(GapReads::Unused);
        pace.copied_from_gaps(GB);
        pace.look(at(110));
        assert_eq!(pace.share_ppm(GB), WITHOUT_GAPS_PPM);
        pace.use_gaps(GapReads::Used);
        assert_eq!(pace.share_ppm(GB), 0);
    }

    #[test]
    fn the_share_is_paid_only_while_gaps_alone_would_miss_the_deadline() {
        let mut pace = pace(Some(1_000));
        pace.use_gaps(GapReads::Used);
        assert_eq!(pace.share_ppm(GB), 0, "nothing is known yet");
        pace.copied_from_gaps(20_000_000);
        pace.look(at(110));
        // 2 MB/s for 990 s.
        assert_eq!(pace.share_ppm(1_980_000_000), 0);
        assert_eq!(pace.share_ppm(1_980_000_001), 250_000);
        assert_eq!(
            pace.rest(Duration::from_nanos(10_000_000), 1_980_000_001),
            Duration::from_nanos(30_000_000)
        );
        // What is paid for does not hide that gaps are too slow.
        pace.copied_from_gaps(20_000_000);
        pace.copied_past_engine(80_000_000, Duration::from_secs(2));
        pace.look(at(120));
        assert_eq!(pace.share_ppm(1_970_000_000), 250_000);
        let status = pace.status(1_970_000_000).expect("a copy");
        assert_eq!(status.means, status::RebuildMeans::Deadline);
        assert!((status.paid_percent - 10.0).abs() < 1e-9, "{status:?}");
        assert_eq!(status.eta_s.map(f64::round), Some(197.0));
        assert_eq!(status.deadline_s.map(f64::round), Some(980.0));
        pace.look(at(2_000));
        assert_eq!(pace.status(1).expect("a copy").deadline_s, Some(0.0));
        assert_eq!(pace.share_ppm(1), 250_000, "it is past");
    }

    #[test]
    fn a_copy_that_goes_on_keeps_its_deadline_and_the_next_one_begins_anew() {
        let mut pace = pace(Some(1_000));
        pace.begin(at(600));
        pace.look(at(600));
        let ahead = |pace: &Pace| pace.status(GB).and_then(|s| s.deadline_s).map(f64::round);
        assert_eq!(ahead(&pace), Some(500.0));
        pace.end();
        assert!(pace.status(GB).is_none());
        pace.begin(at(700));
        assert_eq!(ahead(&pace), Some(1_000.0));
    }
}
