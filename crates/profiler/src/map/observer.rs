//! Angles of blocks, sighted with a clock that is kept right.

use block::{Duration, Instant, Lba};
use drive::Angle;

use crate::clock::apart;
use crate::prober::{Prober, Unseen};

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

/// Sightings of one block before its angle is given up. A choice.
const LOOKS: usize = 6;

impl Observer {
    pub(super) fn new(prober: &Prober) -> Self {
        let reference = prober.findings(|findings| {
            let first = findings.map.pieces.first()?.first;
            Some((first, findings.map.end_angle_of(first)?))
        });
        Observer {
            prober: prober.clone(),
            reference,
            checked: Instant::ZERO,
            interval: STEADY,
            tolerance: 1e-3,
        }
    }

    /// How exactly angles are needed from now on: within a share of such a sector.
    pub(super) fn resolve(&mut self, sectors: u32) {
        self.tolerance = 0.1 / f64::from(sectors.max(1));
    }

    /// Where a block ends, by one sighting.
    pub(super) async fn look(&mut self, lba: Lba) -> Result<Angle, Unseen> {
        let due = self.prober.now().since(self.checked) >= self.interval;
        if due || self.reference.is_none() {
            self.keep_time(lba).await?;
        }
        self.sighted(lba).await
    }

    /// Where a block ends, when two sightings agree on it within `tolerance` revolutions.
    pub(super) async fn look_twice(&mut self, lba: Lba, tolerance: f64) -> Result<Angle, Unseen> {
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
        if off.abs() <= tolerance || care == Care::Quick {
            return Ok(off);
        }
        let again = apart(expected, self.sighted(lba).await?);
        if again.abs() <= tolerance || (again - off).abs() <= tolerance {
            return Ok(again);
        }
        let angle = self.look_twice(lba, tolerance).await?;
        Ok(apart(expected, angle))
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
        let mut sighting = self.prober.sight(lba).await?;
        let clock = self.prober.findings(|findings| findings.clock);
        let clock = clock.ok_or(Unseen::Unsteady)?;
        let extra_trip = Duration::from_nanos((clock.period() * EXTRA_TRIP) as u64);
        if sighting.took > extra_trip {
            // The head is there now.
            sighting = self.prober.sight(lba).await?;
            if sighting.took > extra_trip {
                self.prober.findings(|findings| findings.map.move_away(lba));
            }
        }
        Ok(clock.angle_at(sighting.at))
    }

    /// Sights the reference until the clock agrees with it. The first block ever looked at becomes
    /// the reference.
    async fn keep_time(&mut self, lba: Lba) -> Result<(), Unseen> {
        let Some((reference, end)) = self.reference else {
            let end = self.sighted(lba).await?;
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
