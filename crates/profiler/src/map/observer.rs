//! Angles of blocks, sighted with a clock that is kept right.

use block::{Duration, Instant, Lba};
use drive::Angle;

use super::shared_delay::TimedOff;
use crate::clock::{apart, forward, median};
use crate::device::Offers;
use crate::prober::{Prober, Unseen};

/// Angles within this share of a sector are the same. A choice: less than half a sector, more than
/// any noise of sightings that leaves sectors distinguishable.
pub(super) const SAME: f64 = 0.3;

/// How much a misfit is doubted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// One sighting decides.
    Quick,
    /// A misfit is believed when two sightings agree on it.
    Sure,
}

/// Sights blocks, and a reference block now and then by which the clock is corrected.
#[derive(Debug)]
pub(super) struct Observer {
    prober: Prober,
    /// A block whose end's angle is known for good.
    reference: Option<(Lba, Angle)>,
    checked: Instant,
    /// From one look at the reference to the next.
    interval: Duration,
    /// How far off the clock may be, in revolutions.
    tolerance: f64,
    /// By how much a host delays nearly all sightings, and on average, in revolutions.
    late: f64,
    mean: f64,
}

/// Between looks at the reference. The shortest takes most of the drive's time, but a spindle that
/// wanders by 40 ppm turns 1e-4 revolutions too far in 20 ms; the longest costs 1 %. A choice.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(40), Duration::from_secs(2));

/// A spindle whose clock has to be looked at more often wanders. A choice: as long as a leap takes
/// that fails, with all its sightings.
const STEADY: Duration = Duration::from_millis(400);

/// A block that is sighted again from its own track is there within a revolution and some
/// overhead, within another one if it is read at the second attempt; one that takes more
/// revolutions is reached by an extra trip.
const EXTRA_TRIP: f64 = 3.5;

/// All but one of a hundred delays are not longer than this many times what nine of ten are, if they
/// are exponentially distributed, as those of queues are about.
const NEARLY_ALL: f64 = 2.0;

/// Six of seven delays are not longer than this many times their mean, if they are exponentially
/// distributed. A choice: where sectors are wider than that, late sightings are repeated until they tell
/// them apart.
const USUAL: f64 = 2.0;

/// A host whose delays are shorter, in revolutions, adds nothing. A choice: a tenth of the narrowest
/// sectors.
const NOTHING: f64 = 2e-5;

/// How exactly the angles of a reference and of beginnings of tracks are told behind a host, in revolutions. A choice: a tenth of
/// what angles on a map are to be right to.
const REFERENCE: f64 = 1e-3;

/// The logarithm of a hundred: what hosts do to one sighting of a hundred is not explained by their usual
/// delays. A choice.
const CHANCE: f64 = 4.6;

/// A track of at least so many sectors need not be counted to the last one. A choice: three spare sectors are at most 0.3 %
/// of a revolution then, a third of what predictions may be off by.
const NARROW: u32 = 1000;

/// Turns from track to track that are farther apart are different, in revolutions, however a host delays. A choice: drives of
/// 15,000 rpm turn a twentieth farther where heads change.
const COARSE: f64 = 0.03;

/// Two sightings of a reference agree within that, in revolutions. A choice: a second attempt at a
/// sector is off by more.
const AGREEING: f64 = 5e-4;

/// How exactly angles on a map are told by the median of some sightings, in revolutions. A choice: six tenths of what they are to
/// be right to. With a third, sightings took the time that exploration needs.
const EXACT: f64 = 6e-3;

/// Fewest such sightings. A choice: two of five may be stalled.
const FEWEST: usize = 5;

/// Most of them, however slow a host is. A choice: checks have to end.
const MOST_EXACT: usize = 9;

/// Most sightings of a block for its angle. A choice: a quarter of a second of the drive's time.
const MANY: usize = 25;

/// Sightings of a track that long leaps land on, besides two. A choice.
const MORE: u64 = 3;

/// Blocks between sightings of one track. A choice: neighbours are read as one sequence, which look-ahead
/// goes on with.
pub(super) const BESIDE: u64 = 3;

/// Sightings of one block before its angle is given up. A choice.
const LOOKS: usize = 6;

impl Observer {
    pub(super) fn new(prober: &Prober) -> Self {
        let reference = prober.findings(|findings| {
            let first = findings.map.pieces.first()?.first;
            Some((first, findings.map.end_angle_of(first)?))
        });
        let (late, mean) = prober.findings(|findings| {
            let clock = findings.clock.as_ref();
            let turns = clock.map(|clock| {
                let host = &findings.host;
                (host.late_turns(clock) * NEARLY_ALL, host.mean_turns(clock))
            });
            turns.filter(|turns| turns.0 > NOTHING).unwrap_or_default()
        });
        Observer {
            late,
            mean,
            prober: prober.clone(),
            // Behind a host a reference has to be sighted more often than blocks of the map were.
            reference: reference.filter(|_| late == 0.0),
            checked: Instant::ZERO,
            interval: STEADY,
            tolerance: 1e-3,
        }
    }

    /// How exactly angles are needed from now on: within a share of such a sector.
    pub(super) fn resolve(&mut self, sectors: u32) {
        self.tolerance = 0.1 / f64::from(sectors.max(1));
    }

    /// How far apart two sightings of one angle may be, where a host delays them, in revolutions.
    pub(super) fn late(&self) -> f64 {
        self.late
    }

    /// The same for turns, which are told by several sightings where one does not tell them.
    pub(super) fn late_at_most(&self) -> f64 {
        self.late.min(COARSE)
    }

    /// The delay of the host that most sightings stay below, in revolutions: the others are repeated.
    fn usual(&self) -> f64 {
        self.mean * USUAL
    }

    /// How far angles on a track with so many sectors may be off, in revolutions.
    pub(super) fn tolerance(&self, sectors: u32) -> f64 {
        match self.is_blurred(sectors) {
            true => self.late,
            false => SAME / f64::from(sectors),
        }
    }

    /// Whether the host's delays hide single sectors, also if late sightings are repeated.
    pub(super) fn is_blurred(&self, sectors: u32) -> bool {
        self.usual() > SAME / f64::from(sectors)
    }

    /// Whether the delays hide single sectors of such a track, and one more or less hardly changes a prediction.
    pub(super) fn is_narrow(&self, sectors: u32) -> bool {
        sectors >= NARROW && self.is_blurred(sectors)
    }

    /// How many sightings tell an angle to this share of a revolution, but not more than `most`: half of
    /// those that err most often do so on either side of the median of as many.
    pub(super) fn sightings(&self, share: f64, most: usize) -> usize {
        let ratio = self.mean / share;
        ((ratio * ratio).ceil() as usize).clamp(1, most) | 1
    }

    /// How many sightings of a block tell where it is to what angles on a map are to be right to: the slower a host and the faster a
    /// spindle, the more.
    pub(super) fn exact_sightings(&self) -> usize {
        self.sightings(EXACT, MOST_EXACT).max(FEWEST)
    }

    /// How far the median of some sightings usually is from that of many, in revolutions.
    pub(super) fn error_of(&self, sightings: usize) -> f64 {
        self.mean / (sightings as f64).sqrt()
    }

    /// Whether a block that look-ahead has read is evicted by other regions' reads before it is sighted.
    pub(super) fn forgets_soon(&self) -> bool {
        self.prober.rounds_evict()
    }

    /// How many sectors a full track has besides its blocks, if all tracks tell.
    pub(super) fn spares_told(&self) -> Option<u32> {
        self.prober.desk().spares.told()
    }

    /// How many sectors a full track has besides its blocks, if all tracks tell. Narrow sectors do not tell, and none is
    /// assumed.
    pub(super) fn usual_spares(&self, sectors: u32) -> Option<u32> {
        let told = self.spares_told();
        told.or(self.is_narrow(sectors).then_some(0))
    }

    /// Where a block ends, by the median of some sightings.
    pub(super) async fn typical(&mut self, lba: Lba, sightings: usize) -> Result<Angle, Unseen> {
        let first = self.look(lba).await?;
        let mut offs = vec![0.0];
        for _ in 1..sightings {
            offs.push(apart(first, self.look(lba).await?));
        }
        Ok(first + forward(median(&mut offs)))
    }

    /// How many sectors a full track has besides its blocks, if all tracks tell; one more of them seems to have
    /// `spare`, give or take `error`.
    pub(super) fn spares(&self, spare: f64, error: f64) -> Option<u32> {
        let mut desk = self.prober.desk();
        desk.spares.add(spare, error);
        desk.spares.told()
    }

    /// Blocks of a track that tell where it is, besides the first one: downwards.
    pub(super) fn beside(sectors: u32) -> impl Iterator<Item = u64> {
        let block = move |place: u64| place * BESIDE % u64::from(sectors / 2).max(1);
        (1..=MORE).rev().map(block)
    }

    /// How far off a block is by each of some sightings.
    pub(super) async fn offs(
        &mut self,
        (lba, expected): (Lba, Angle),
        sightings: usize,
    ) -> Result<Vec<TimedOff>, Unseen> {
        let mut offs = Vec::with_capacity(sightings);
        for _ in 0..sightings {
            let (at, seen) = self.look_when(lba).await?;
            let off = apart(expected, seen);
            offs.push(TimedOff { at, off });
        }
        Ok(offs)
    }

    /// Where a block ends, by one sighting.
    pub(super) async fn look(&mut self, lba: Lba) -> Result<Angle, Unseen> {
        Ok(self.look_when(lba).await?.1)
    }

    /// The same with the time of the sighting.
    async fn look_when(&mut self, lba: Lba) -> Result<(Instant, Angle), Unseen> {
        let due = match self.late > 0.0 {
            true => self.prober.now() >= self.prober.time_is_due(),
            false => {
                let passed = self.prober.now().since(self.checked);
                passed >= self.interval || self.reference.is_none()
            }
        };
        if due {
            self.keep_time(lba).await?;
        }
        self.sighted_when(lba).await
    }

    /// Where a block ends, when two sightings agree on it within `tolerance` revolutions.
    pub(super) async fn look_twice(&mut self, lba: Lba, tolerance: f64) -> Result<Angle, Unseen> {
        let tolerance = tolerance.max(self.late);
        let mut seen = [Angle::ZERO; LOOKS];
        for look in 0..LOOKS {
            seen[look] = self.look(lba).await?;
            let agrees = |other: &&Angle| apart(**other, seen[look]).abs() <= tolerance;
            if let Some(other) = seen[..look].iter().find(agrees) {
                return Ok(*other);
            }
        }
        Err(Unseen::Unsteady)
    }

    /// How far the end of a block is from where it is expected, in revolutions.
    pub(super) async fn off(
        &mut self,
        lba: Lba,
        expected: Angle,
        tolerance: f64,
        care: Care,
    ) -> Result<f64, Unseen> {
        let off = apart(expected, self.look(lba).await?);
        if off.abs() <= tolerance {
            return Ok(off);
        }
        if self.late > 0.0 {
            return self.off_again(lba, (expected, off), tolerance, care).await;
        }
        if care == Care::Quick {
            return Ok(off);
        }
        let again = apart(expected, self.sighted(lba).await?);
        if again.abs() <= tolerance || (again - off).abs() <= tolerance {
            return Ok(again);
        }
        let angle = self.look_twice(lba, tolerance).await?;
        Ok(apart(expected, angle))
    }

    /// The same behind a host, which only delays: a block that is early is not there. One that is late is
    /// sighted again until it is not, or until delays do not explain all of its sightings.
    async fn off_again(
        &mut self,
        lba: Lba,
        (expected, mut off): (Angle, f64),
        tolerance: f64,
        care: Care,
    ) -> Result<f64, Unseen> {
        let enough = match care {
            Care::Quick => CHANCE,
            Care::Sure => 2.0 * CHANCE,
        };
        let mut evidence = self.evidence(off - tolerance);
        for _ in 1..LOOKS {
            if evidence >= enough || off < -tolerance {
                break;
            }
            let again = apart(expected, self.look(lba).await?);
            if again.abs() <= tolerance {
                return Ok(again);
            }
            evidence += self.evidence(again - tolerance);
            off = off.min(again);
        }
        Ok(off)
    }

    /// By how much a sighting tells that its block is late itself, as the logarithm of the chance that the
    /// host has delayed it so long. A stall is as likely as one in a hundred.
    fn evidence(&self, late: f64) -> f64 {
        (late / self.mean).min(CHANCE)
    }

    /// Whether the spindle turns so unevenly that a misfit may be the clock's.
    pub(super) fn wanders(&self) -> bool {
        self.interval < STEADY
    }

    /// Corrects the clock now.
    pub(super) async fn recover(&mut self) -> Result<(), Unseen> {
        match self.reference {
            Some((reference, _)) => self.keep_time(reference).await,
            None => Ok(()),
        }
    }

    async fn sighted(&self, lba: Lba) -> Result<Angle, Unseen> {
        Ok(self.sighted_when(lba).await?.1)
    }

    async fn sighted_when(&self, lba: Lba) -> Result<(Instant, Angle), Unseen> {
        let mut sighting = self.prober.sight(lba).await?;
        let clock = self.prober.findings(|findings| findings.clock);
        let clock = clock.ok_or(Unseen::Unsteady)?;
        let extra_trip = self.extra_trip(clock.period());
        if sighting.took > extra_trip {
            // The head is there now.
            sighting = self.prober.sight(lba).await?;
            if sighting.took > extra_trip {
                self.prober.findings(|findings| findings.map.move_away(lba));
            }
        }
        Ok((sighting.at, clock.angle_at(sighting.at)))
    }

    /// What takes longer than so much is reached by an extra trip: some revolutions, and by reads alone more than a far
    /// seek, since other procedures move the arm between two sightings.
    fn extra_trip(&self, period: f64) -> Duration {
        let turns = Duration::from_nanos((period * EXTRA_TRIP) as u64);
        match self.prober.device().offers {
            Offers::CacheControl => turns,
            Offers::Nothing => {
                turns.max(self.prober.usual_read() + Duration::from_nanos(period as u64))
            }
        }
    }

    /// Where a reference ends, when two sightings agree: one may be from the second attempt at a sector.
    async fn reference_end(&self, lba: Lba) -> Result<Angle, Unseen> {
        let mut end = self.sighted(lba).await?;
        for _ in 1..LOOKS {
            let again = self.sighted(lba).await?;
            let off = apart(end, again);
            if off < 0.0 {
                end = again;
            }
            if off.abs() <= AGREEING {
                break;
            }
        }
        Ok(end)
    }

    /// Sights a known block behind a host. The first block ever looked at becomes the reference, by the
    /// median of some sightings.
    async fn keep_late_time(&self, lba: Lba) -> Result<(), Unseen> {
        if let Some((reference, end)) = self.prober.begin_to_keep_time() {
            // One that cannot be read tells nothing, and the next one is another.
            if let Ok(sighting) = self.prober.sight(reference).await {
                self.prober.keep_time(end, sighting.at);
            }
            return Ok(());
        }
        let first = self.sighted(lba).await?;
        let mut offs = vec![0.0];
        for _ in 1..self.sightings(REFERENCE, MANY) {
            offs.push(apart(first, self.sighted(lba).await?));
        }
        let end = first + forward(median(&mut offs));
        self.prober.refer_to(lba, end);
        Ok(())
    }

    /// Sights the reference until the clock agrees with it. The first block ever looked at becomes
    /// the reference.
    async fn keep_time(&mut self, lba: Lba) -> Result<(), Unseen> {
        if self.late > 0.0 {
            return self.keep_late_time(lba).await;
        }
        let Some((reference, end)) = self.reference else {
            let end = self.reference_end(lba).await?;
            self.reference = Some((lba, end));
            self.checked = self.prober.now();
            return Ok(());
        };
        let mut worst: f64 = 0.0;
        for look in 0..LOOKS {
            let at = self.prober.sight(reference).await?.at;
            let error = self.prober.findings(|findings| {
                let clock = findings.clock.as_mut()?;
                let before = apart(clock.angle_at(at), end);
                clock.anchor(end, at);
                Some(before)
            });
            let error = error.ok_or(Unseen::Unsteady)?.abs();
            if look == 0 {
                worst = error;
            }
            if error <= self.tolerance {
                break;
            }
        }
        let nanos = self.interval.as_nanos();
        let nanos = if worst > self.tolerance {
            nanos / 2
        } else if worst < self.tolerance / 4.0 {
            nanos * 3 / 2
        } else {
            nanos
        };
        self.interval = Duration::from_nanos(nanos).clamp(INTERVALS.0, INTERVALS.1);
        self.checked = self.prober.now();
        Ok(())
    }
}

/// A sector of a turn with so many.
pub(super) fn width(sectors: u32) -> Angle {
    Angle::fraction(1, u64::from(sectors.max(1)))
}
