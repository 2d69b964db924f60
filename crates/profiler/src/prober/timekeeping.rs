//! What keeps the clock right: sightings of blocks whose angles are known.

use block::{Duration, Instant, Lba};
use drive::Angle;

use super::Prober;

/// No other sighting of the reference is begun meanwhile: the buffer may hold it for so long. A choice.
const EVICTING: Duration = Duration::from_secs(10);

/// Pieces of a map whose angles have errors of their own. A choice: their mean is five times as exact as one.
const FEW_PIECES: usize = 32;

impl Prober {
    /// Corrects the clock by a sighting of the reference block behind a host that delays sightings.
    pub(crate) fn keep_time(&self, end: Angle, at: Instant) {
        let mut desk = self.desk();
        let desk = &mut *desk;
        let host = desk.findings.host;
        if let Some(clock) = &mut desk.findings.clock {
            let mean = host.mean_turns(clock);
            desk.sightings.take(clock, end, at, mean);
        }
    }

    /// A known block behind a host, and where it ends. The caller is about to sight it: others need not.
    ///
    /// It is another block of the map each time, so that errors of single angles do not matter and no block is still in
    /// the buffer; the first one while there are few.
    pub(crate) fn begin_to_keep_time(&self) -> Option<(Lba, Angle)> {
        let mut desk = self.desk();
        desk.sightings.at = desk.now + EVICTING;
        desk.sightings.asked += 1;
        let map = &desk.findings.map;
        let of_map = match map.pieces.len() >= FEW_PIECES {
            true => map.fresh(map.known(), desk.sightings.asked),
            false => None,
        };
        of_map.or(desk.sightings.reference)
    }

    /// Makes a block the reference, unless there is one.
    pub(crate) fn refer_to(&self, lba: Lba, end: Angle) {
        self.desk().sightings.reference.get_or_insert((lba, end));
    }

    /// Corrects the clock by a sighting of any block. Answers the previous error, in revolutions. Angles
    /// of the map have errors of their own: behind a host many blocks correct the clock, each a little.
    pub(crate) fn anchor(&self, end: Angle, at: Instant) -> Option<f64> {
        self.findings(|findings| {
            let host = findings.host;
            let clock = findings.clock.as_mut()?;
            Some(match host.late.is_zero() {
                true => clock.anchor(end, at),
                false => clock.nudge(end, at, host.mean_turns(clock)),
            })
        })
    }

    /// When a reference block is to be sighted again behind a host.
    pub(crate) fn time_is_due(&self) -> Instant {
        self.desk().sightings.due()
    }
}
