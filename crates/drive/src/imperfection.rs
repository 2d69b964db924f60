//! The deviations of a real drive that no belief contains: noise, stalls, retries, lost sectors.
//!
//! One seeded generator draws all of them in the order of the commands. The same seed and commands
//! give the same run on every machine.

use block::{Duration, Extent, Instant, Lba};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::angle::Spindle;
use crate::geometry::TrackExtent;
use crate::host::HostJitter;
use crate::mechanics::Pass;

/// The deviations of a drive from its profile; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imperfections {
    /// The standard deviation of a seek time.
    pub seek_noise: Duration,
    /// The share of seeks that settle badly, and the additional time of each.
    pub settle_retry: Chance,
    /// The spindle's tolerance in parts per million; positive is slower than the profile.
    pub spindle_ppm: i32,
    /// The largest wander of the speed to either side, in parts per million. The speed changes
    /// every second.
    pub spindle_drift_ppm: u32,
    /// The standard deviation of the electronics' time per command (bus contention, interrupts).
    pub overhead_noise: Duration,
    /// Thermal recalibration: its period and its length. It waits for the end of a command, and
    /// commands wait for its end.
    pub recalibration: Periodic,
    /// Background media scan: the period and the length of a slice. It begins when the arm is free,
    /// and is not interrupted.
    pub media_scan: Periodic,
    /// A background scan of the drive's own at irregular moments: their mean distance, and the mean
    /// length of a slice. It begins when the arm is free, is not interrupted, and leaves the arm
    /// anywhere.
    pub irregular_scan: Periodic,
    /// The look-ahead that the drive finishes before it takes up the next command.
    pub held_look_ahead: HeldLookAhead,
    /// Whether a write that does not cover whole sectors of the medium (512e) reads them first, which
    /// costs a revolution.
    pub unaligned_writes: UnalignedWrites,
    /// The share of tracks with a sector that needs a second read, which costs a revolution; and
    /// the additional cost.
    pub media_retry: Chance,
    /// A head whose reads take longer; `None`: all heads read alike.
    pub slow_head: Option<SlowHead>,
    /// Blocks that are unreadable until they are written.
    pub unreadable: Vec<Extent>,
    /// Blocks that were remapped to the end of the disk in the field.
    pub grown_defects: Vec<Lba>,
    /// The number of a command (from 0) that hangs, and for how long.
    pub hang: Option<(u64, Duration)>,
    /// The blocks of a host-managed zone ([`zones`](crate::zones)); `None`: no zones.
    pub sequential_zone: Option<u64>,
    /// The treatment of durable writes (FUA).
    pub durable_writes: DurableWrites,
    /// The time for which a durable write waits after a cached one that ends where it begins. On one
    /// track it then loses a revolution.
    pub durable_behind_cached: Duration,
    /// The delays of the host between the drive and the program that uses it. They do not change later.
    pub host: HostJitter,
    /// Other deviations from a moment on. The platter continues without a jump.
    pub later: Option<Later>,
}

/// A head that reads slowly: it misses sectors at its first attempt, and each attempt costs a revolution.
///
/// The chance of a lost revolution grows with the time of the pass, so that reads by this head take the stated share
/// longer on average, whatever the load. Weak heads and retried sectors are among the causes of slow disks in Gunawi et al.,
/// "Fail-Slow at Scale" (FAST 2018). That an attempt costs a revolution follows from the platter; that its chance grows with
/// the time of the pass is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowHead {
    /// The head, counted from 0.
    pub head: u32,
    /// By how much its reads take longer on average, in parts per million of their head time.
    pub slower_ppm: u32,
}

/// The treatment of durable writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DurableWrites {
    /// They end when they are on the medium.
    #[default]
    Kept,
    /// They end when the buffer holds them, as all others do.
    Broken,
}

/// A look-ahead that delays the next command (Lumb et al., FAST 2002, 3.2). None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldLookAhead {
    /// The blocks behind a read that are read before the next command. It ends with the track at the
    /// latest.
    pub blocks: u32,
    /// The reads after which the drive does so.
    pub after: AheadTrigger,
}

/// The reads after which a drive holds on to its look-ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AheadTrigger {
    /// Those on the track where the arm was: the drive expects sequential ones.
    #[default]
    SameTrack,
    /// All.
    EveryRead,
}

/// What a drive with 4 KiB sectors behind 512-byte blocks pays for writes of parts of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnalignedWrites {
    /// Nothing.
    #[default]
    Free,
    /// A revolution: the sector is read, and written when it comes again.
    ReadFirst,
}

/// The deviations from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Later {
    /// The first command that starts at or after this moment has them.
    pub from: Instant,
    /// The deviations.
    pub imperfections: Box<Imperfections>,
}

/// A random event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// The probability in millionths.
    pub per_million: u32,
    /// The cost of an event.
    pub costs: Duration,
}

/// A periodic event; never if `every` is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Periodic {
    /// The period.
    pub every: Duration,
    /// The cost of an event.
    pub costs: Duration,
}

/// The dice, and what they have shown so far.
#[derive(Clone, Debug)]
pub(crate) struct Luck {
    imperfections: Imperfections,
    perfect: bool,
    dice: Pcg64Mcg,
    commands: u64,
    recalibrations: u64,
    scans: u64,
    /// The next slice of the irregular scan, once it was drawn.
    next_slice: Option<Instant>,
    /// The second for which the spindle's speed was drawn.
    turned: u64,
    nominal: Spindle,
}

/// What befell one pass over a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mishap {
    /// Time lost.
    pub(crate) lost: Duration,
    /// The first block that could not be read.
    pub(crate) unreadable: Option<Lba>,
}

impl Luck {
    pub(crate) fn new(imperfections: Imperfections, seed: u64, nominal: Spindle) -> Self {
        Luck {
            perfect: imperfections == Imperfections::default(),
            imperfections,
            dice: Pcg64Mcg::seed_from_u64(seed),
            commands: 0,
            recalibrations: 0,
            scans: 0,
            next_slice: None,
            turned: 0,
            nominal,
        }
    }

    /// Whether nothing ever deviates: the dice need not be asked.
    pub(crate) fn is_perfect(&self) -> bool {
        self.perfect
    }

    /// The spindle as it turns from `now` on, continuing `present` without a jump.
    pub(crate) fn spindle(&mut self, present: Spindle, now: Instant) -> Spindle {
        let drift = i64::from(self.imperfections.spindle_drift_ppm);
        let wander = if drift == 0 {
            0
        } else {
            self.between(-drift, drift)
        };
        let ppm = i64::from(self.imperfections.spindle_ppm) + wander;
        let nominal = self.nominal.period_ps();
        let period = nominal.saturating_add_signed(nominal as i64 / 1_000_000 * ppm);
        // Absurd deviations end where spindles end.
        let next = Spindle::from_period_ps(period.clamp(nominal / 2, nominal * 2));
        let phase = present.angle_at(now) - next.angle_at(now);
        next.with_phase(phase)
    }

    /// Whether it is time for another speed.
    pub(crate) fn drifts(&mut self, now: Instant) -> bool {
        if let Some(later) = self.imperfections.later.take_if(|later| later.from <= now) {
            self.imperfections = *later.imperfections;
            return true;
        }
        let second = now.as_nanos() / DRIFT_NANOS;
        let drifts = self.imperfections.spindle_drift_ppm != 0 && second > self.turned;
        if drifts {
            self.turned = second;
        }
        drifts
    }

    /// Until when an arm that has been free since `free_at` is busy with the irregular scan, if a
    /// command comes at `now`; and a number of chance for where it leaves the arm. `None` without a
    /// slice since the last command.
    pub(crate) fn slice(&mut self, free_at: Instant, now: Instant) -> Option<(Instant, u64)> {
        let scan = self.imperfections.irregular_scan;
        if scan.every.is_zero() {
            return None;
        }
        let mut until = None;
        loop {
            let next = match self.next_slice {
                // Of a long idle time the last slices count.
                Some(next) => next.max(now.saturating_sub(scan.every * FORGOTTEN_SLICES)),
                None => now + self.around(scan.every),
            };
            self.next_slice = Some(next);
            if next > now {
                return until;
            }
            let ends = free_at.max(next) + self.around(scan.costs);
            until = Some((ends, self.dice.next_u64()));
            self.next_slice = Some(next + self.around(scan.every));
        }
    }

    /// A time between nothing and twice the mean.
    fn around(&mut self, mean: Duration) -> Duration {
        Duration::from_nanos(1 + self.below(2 * mean.as_nanos() + 1))
    }

    /// How long the drive is busy with itself before it takes up a command at `now`, if its arm
    /// has been free since `free_at`.
    pub(crate) fn stall(&mut self, free_at: Instant, now: Instant) -> Duration {
        let command = self.commands;
        self.commands += 1;
        let scanned = due(self.imperfections.media_scan, now, &mut self.scans, free_at);
        let recalibration = self.imperfections.recalibration;
        let busy_until = due(recalibration, now, &mut self.recalibrations, scanned);
        let hang = match self.imperfections.hang {
            Some((hanging, costs)) if hanging == command => costs,
            _ => Duration::ZERO,
        };
        let busy = if busy_until > free_at {
            busy_until.since(now)
        } else {
            Duration::ZERO
        };
        busy + hang
    }

    /// How long the electronics take for what ideally takes `ideal`.
    pub(crate) fn overhead(&mut self, ideal: Duration) -> Duration {
        if self.perfect {
            return ideal;
        }
        ideal.adjusted(self.noise(self.imperfections.overhead_noise))
    }

    /// How long a seek takes that ideally takes `ideal`.
    pub(crate) fn seek(&mut self, ideal: Duration) -> Duration {
        if self.perfect || ideal.is_zero() {
            return ideal;
        }
        let noise = self.noise(self.imperfections.seek_noise);
        let retry = self.imperfections.settle_retry;
        let settle = if self.happens(retry) {
            retry.costs
        } else {
            Duration::ZERO
        };
        ideal.adjusted(noise) + settle
    }

    /// What befalls a pass over `run`.
    pub(crate) fn pass(
        &mut self,
        (run, pass): (&TrackExtent, &Pass),
        reading: PassDirection,
        period: Duration,
    ) -> Mishap {
        if self.perfect {
            return Mishap::default();
        }
        let (first, end) = (run.first.0, run.first.0 + u64::from(run.blocks));
        let mut mishap = Mishap::default();
        for defect in &self.imperfections.grown_defects {
            if (first..end).contains(&defect.0) {
                // Across the disk to the spare sector, and back: two long seeks and the wait for
                // the sectors; that this is four revolutions is a choice.
                mishap.lost += period * 4;
            }
        }
        match reading {
            PassDirection::Reads => {
                let retry = self.imperfections.media_retry;
                if self.happens(retry) {
                    mishap.lost += period + retry.costs;
                }
                mishap.lost += period * self.missed_revolutions(run.head, pass, period);
                let bad = self.imperfections.unreadable.iter();
                mishap.unreadable = bad
                    .filter(|extent| extent.start().0 < end && first < extent.end().0)
                    .map(|extent| Lba(extent.start().0.max(first)))
                    .min();
                if mishap.unreadable.is_some() {
                    mishap.lost += period * RETRIES;
                }
            }
            PassDirection::Writes => {
                // A write makes a sector readable again: cut it out of the bad extents.
                let written = Extent::new(Lba(first), block::Sectors(end - first)).ok();
                if let Some(written) = written {
                    cut(&mut self.imperfections.unreadable, written);
                }
            }
        }
        mishap
    }

    /// The revolutions that a slow head loses in a pass.
    fn missed_revolutions(&mut self, head: u32, pass: &Pass, period: Duration) -> u64 {
        let slow = self.imperfections.slow_head;
        let Some(slow) = slow.filter(|slow| slow.head == head) else {
            return 0;
        };
        let share = u128::from(pass.total().as_nanos()) * u128::from(slow.slower_ppm)
            / u128::from(period.as_nanos().max(1));
        let whole = (share / 1_000_000) as u64;
        let chance = Chance {
            per_million: (share % 1_000_000) as u32,
            costs: Duration::ZERO,
        };
        whole + u64::from(self.happens(chance))
    }

    /// The time for which a durable write waits behind a cached one that it continues.
    pub(crate) fn behind_cached(&self) -> Duration {
        self.imperfections.durable_behind_cached
    }

    /// The size of the sequential-write zones, if the drive has such.
    pub(crate) fn sequential_zone(&self) -> Option<u64> {
        self.imperfections
            .sequential_zone
            .filter(|&blocks| blocks > 0)
    }

    /// The blocks that a look-ahead still reads when the next command comes, if `is_same_track` says
    /// whether the read was on the track where the arm was.
    pub(crate) fn held_look_ahead(&self, is_same_track: impl FnOnce() -> bool) -> u32 {
        let held = self.imperfections.held_look_ahead;
        match held.after {
            _ if held.blocks == 0 => 0,
            AheadTrigger::SameTrack if !is_same_track() => 0,
            AheadTrigger::SameTrack | AheadTrigger::EveryRead => held.blocks,
        }
    }

    /// Whether a write of this extent reads sectors first, if one has so many blocks.
    pub(crate) fn reads_first(&self, extent: Extent, sector: u64) -> bool {
        let is_part = |lba: Lba| !lba.0.is_multiple_of(sector.max(1));
        self.imperfections.unaligned_writes == UnalignedWrites::ReadFirst
            && (is_part(extent.start()) || is_part(extent.end()))
    }

    /// Whether a write with FUA is one.
    pub(crate) fn keeps_durable(&self) -> bool {
        self.imperfections.durable_writes == DurableWrites::Kept
    }

    /// The first unreadable block from `first` on.
    pub(crate) fn unreadable_from(&self, first: u64) -> Option<u64> {
        let bad = self.imperfections.unreadable.iter();
        bad.filter(|extent| extent.end().0 > first)
            .map(|extent| extent.start().0.max(first))
            .min()
    }

    /// The block after the last unreadable one before `end`.
    pub(crate) fn readable_until(&self, end: u64) -> u64 {
        let bad = self.imperfections.unreadable.iter();
        bad.filter(|extent| extent.start().0 < end)
            .map(|extent| extent.end().0.min(end))
            .max()
            .unwrap_or(0)
    }

    /// A uniform choice of one of `limit` numbers.
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.dice.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    fn happens(&mut self, chance: Chance) -> bool {
        chance.per_million > 0 && self.below(1_000_000) < u64::from(chance.per_million)
    }

    /// Nearly normal noise in nanoseconds: the sum of twelve uniform draws has unit variance.
    fn noise(&mut self, deviation: Duration) -> i64 {
        if deviation.is_zero() {
            return 0;
        }
        // Twelve draws in thousandths, whose mean is 6000 of them.
        let sum: i64 = (0..12).map(|_| self.between(0, 1000)).sum();
        let noise = i128::from(deviation.as_nanos()) * i128::from(sum - 6000) / 1000;
        noise.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// Whether a pass reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassDirection {
    Reads,
    Writes,
}

/// Slices of the irregular scan before this many mean distances are not drawn. A choice: none of them
/// lasts as long.
const FORGOTTEN_SLICES: u64 = 64;

/// How often a drive tries to read a bad sector before it gives up: a choice.
const RETRIES: u64 = 8;

/// How long a spindle keeps its speed before it wanders on: long enough to be measured, short
/// enough that a belief grows old (a choice).
const DRIFT_NANOS: u64 = 1_000_000_000;

/// Until when something periodic keeps an arm busy that is otherwise free from `free_at` on;
/// `done` counts the periods that are over. What was due before the last one is forgotten.
fn due(periodic: Periodic, now: Instant, done: &mut u64, free_at: Instant) -> Instant {
    let every = periodic.every.as_nanos();
    if every == 0 || now.as_nanos() / every <= *done {
        return free_at;
    }
    *done = now.as_nanos() / every;
    free_at.max(Instant::from_nanos(*done * every)) + periodic.costs
}

/// Takes `written` out of the extents.
fn cut(extents: &mut Vec<Extent>, written: Extent) {
    if !extents.iter().any(|extent| extent.overlaps(written)) {
        return;
    }
    let pieces = extents.iter().flat_map(|extent| {
        let left = written.start().0.checked_sub(extent.start().0);
        let right = extent.end().0.checked_sub(written.end().0);
        let keep = |start: u64, length: Option<u64>| {
            length.and_then(|n| Extent::new(Lba(start), block::Sectors(n)).ok())
        };
        let whole = (!extent.overlaps(written)).then_some(*extent);
        match whole {
            Some(whole) => [Some(whole), None],
            None => [keep(extent.start().0, left), keep(written.end().0, right)],
        }
    });
    *extents = pieces.flatten().collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Angle;

    fn luck(imperfections: Imperfections) -> Luck {
        Luck::new(imperfections, 7, Spindle::from_period_ps(6_000_000_000))
    }

    #[test]
    fn noise_has_the_stated_deviation_and_no_bias() {
        let micros = Duration::from_micros(50);
        let mut luck = luck(Imperfections {
            seek_noise: micros,
            ..Imperfections::default()
        });
        let ideal = Duration::from_millis(5);
        let errors: Vec<f64> = (0..20_000)
            .map(|_| luck.seek(ideal).as_nanos() as f64 - ideal.as_nanos() as f64)
            .collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let variance = errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64;
        assert!(mean.abs() < 1_500.0, "bias of {mean} ns");
        assert!(
            (variance.sqrt() - 50_000.0).abs() < 1_500.0,
            "deviation {}",
            variance.sqrt()
        );
    }

    #[test]
    fn a_drifting_spindle_never_jumps() {
        let drifting = Imperfections {
            spindle_drift_ppm: 40,
            ..Imperfections::default()
        };
        let mut luck = luck(drifting);
        let mut spindle = Spindle::from_period_ps(6_000_000_000);
        for second in 1..100 {
            let now = Instant::ZERO + Duration::from_secs(second);
            let next = luck.spindle(spindle, now);
            assert_eq!(next.angle_at(now), spindle.angle_at(now));
            spindle = next;
        }
    }

    #[test]
    fn stalls_come_once_a_period() {
        let every = Periodic {
            every: Duration::from_secs(1),
            costs: Duration::from_millis(20),
        };
        let mut luck = luck(Imperfections {
            recalibration: every,
            ..Imperfections::default()
        });
        // (When the arm was free, when a command came), and how long it waits, in milliseconds.
        let free = [0, 400, 900, 1_900, 2_005, 2_200, 3_200];
        let came = [0, 400, 1_005, 1_900, 2_005, 2_200, 3_500];
        let moment = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let stalls: Vec<u64> = std::iter::zip(free, came)
            .map(|(free, came)| luck.stall(moment(free), moment(came)).as_nanos() / 1_000_000)
            .collect();
        assert_eq!(stalls, [0, 0, 15, 0, 20, 0, 0]);
    }

    /// The mean of many passes is the stated share longer, whether a pass takes a fraction of a revolution or several.
    #[test]
    fn a_slow_head_takes_the_stated_share_longer_and_only_whole_revolutions() {
        let period = Duration::from_millis(6);
        let track = |head| TrackExtent {
            first: Lba(0),
            blocks: 8,
            cylinder: 0,
            head,
            start: Angle::ZERO,
            sweep: Angle::fraction(1, 100),
            width: Angle::fraction(1, 800),
        };
        for transfer_us in [300, 6_000, 90_000] {
            let mut luck = luck(Imperfections {
                slow_head: Some(SlowHead {
                    head: 3,
                    slower_ppm: 200_000,
                }),
                ..Imperfections::default()
            });
            let pass = Pass {
                transfer: Duration::from_micros(transfer_us),
                ..Pass::default()
            };
            let lost: u64 = (0..40_000)
                .map(|_| {
                    let one = luck.pass((&track(3), &pass), PassDirection::Reads, period);
                    assert!(one.lost.as_nanos().is_multiple_of(period.as_nanos()));
                    one.lost.as_nanos()
                })
                .sum();
            let share = lost as f64 / 40_000.0 / (transfer_us as f64 * 1e3);
            assert!((share - 0.2).abs() < 0.03, "{transfer_us} us: {share}");
            for (head, way) in [(2, PassDirection::Reads), (3, PassDirection::Writes)] {
                let healthy = luck.pass((&track(head), &pass), way, period);
                assert_eq!(healthy.lost, Duration::ZERO);
            }
        }
    }

    #[test]
    fn writing_cuts_a_bad_extent_in_two() {
        let extent = |a, n| Extent::new(Lba(a), block::Sectors(n)).expect("valid");
        let mut bad = vec![extent(10, 10), extent(40, 1)];
        cut(&mut bad, extent(13, 4));
        assert_eq!(bad, [extent(10, 3), extent(17, 3), extent(40, 1)]);
        cut(&mut bad, extent(0, 100));
        assert!(bad.is_empty());
    }
}
