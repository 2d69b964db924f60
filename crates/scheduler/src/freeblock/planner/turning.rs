//! The sectors of a track that pass under a head within a time span.
//!
//! ```text
//!            from                                         until
//!   time  ----|---------------------------------------------|----
//!   track     [ s6 ][ s7 ][ s8 ][ s0 ][ s1 ][ s2 ][ s3 ]    ' s4
//!              \_ upper _______/ \_ lower _____________/
//! ```
//!
//! Angles are compared exactly, so that no rounding of times adds up. A sector passes in time if
//! the angle from the head at `from` to its end is covered by `until`.

use block::{Duration, Instant};
use drive::geometry::Track;
use drive::{Angle, Spindle};

/// A time span during which a head is on a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turning {
    from: Instant,
    /// The angle under the head at `from`.
    there: Angle,
    /// The length of the span in picoseconds.
    picos: u128,
    period_ps: u64,
    /// The approximate rotation in the span, as raw angle.
    about: u128,
}

/// The sectors of a track that pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sectors {
    /// The sector that passes first.
    pub upper: u32,
    /// The sectors from `upper` to this one, excluded, pass before sector 0.
    pub upper_end: u32,
    /// The sectors from 0 to this one, excluded, pass with the first pass of sector 0.
    pub lower_end: u32,
    /// The angle from the head to sector 0 when `upper` passes (negative), and at its first pass.
    bases: [i128; 2],
    width: u64,
}

/// The sweep in which a sector passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    /// Before sector 0.
    Upper,
    /// With sector 0 or after it.
    Lower,
}

impl Turning {
    /// The span between two moments; `None` if it is empty.
    #[inline]
    pub fn new(spindle: &Spindle, from: Instant, until: Instant) -> Option<Self> {
        if from >= until {
            return None;
        }
        let nanos = u128::from(until.since(from).as_nanos());
        let period_ps = spindle.period_ps();
        let nano = spindle.angle_at(Instant::from_nanos(1)) - spindle.phase();
        Some(Turning {
            from,
            there: spindle.angle_at(from),
            picos: nanos * 1000,
            period_ps,
            about: nanos * u128::from(nano.raw()),
        })
    }

    /// The sectors of a track that pass from their beginning to their end.
    #[inline]
    pub fn sectors(&self, track: &Track) -> Sectors {
        let first = (track.start - self.there).raw();
        let width = track.width.raw();
        let upper = if first == 0 {
            track.sectors
        } else {
            let gone = first.wrapping_neg().div_ceil(width.max(1));
            gone.min(u64::from(track.sectors)) as u32
        };
        let bases = [i128::from(first) - REVOLUTION, i128::from(first)];
        let [upper_end, lower_end] = bases.map(|base| self.end(base, width, track.sectors));
        Sectors {
            upper,
            upper_end: upper_end.max(upper),
            lower_end,
            bases,
            width,
        }
    }

    /// The raw angle from the head at `from` to the last pass of `angle`; `None` if it does not
    /// pass.
    pub fn last_pass(&self, angle: Angle) -> Option<u128> {
        let mut turned = u128::from((angle - self.there).raw());
        if !self.has(turned) {
            return None;
        }
        while self.has(turned + REVOLUTION as u128) {
            turned += REVOLUTION as u128;
        }
        Some(turned)
    }

    /// The moment at which the platter has turned by the raw angle `turned`.
    #[inline]
    pub fn at(&self, turned: u128) -> Instant {
        self.from + self.time_of(turned)
    }

    /// The time for a rotation by `turned`, rounded up to nanoseconds.
    #[inline]
    fn time_of(&self, turned: u128) -> Duration {
        let picos = (turned * u128::from(self.period_ps)) >> 64;
        Duration::from_nanos((picos as u64).div_ceil(1000))
    }

    /// Whether the platter turns by `turned` in the span.
    #[inline]
    fn has(&self, turned: u128) -> bool {
        (turned * u128::from(self.period_ps)) >> 64 <= self.picos
    }

    /// The number of sectors from sector 0 on, at `base`, that have passed at the end.
    #[inline]
    fn end(&self, base: i128, width: u64, sectors: u32) -> u32 {
        let turned = |sectors: u32| base + i128::from(width) * i128::from(sectors);
        let has = |sectors| turned(sectors) <= 0 || self.has(turned(sectors) as u128);
        let room = self.about as i128 - base;
        // An estimate that is exact but for rounding.
        let guess = (room.max(0) >> 16) as u64 / (width >> 16).max(1);
        let mut end = guess.min(u64::from(sectors)) as u32;
        while end > 0 && !has(end) {
            end -= 1;
        }
        while end < sectors && has(end + 1) {
            end += 1;
        }
        end
    }
}

impl Sectors {
    /// The raw angle to the beginning of a sector.
    #[inline]
    pub fn turned(&self, sweep: Sweep, sector: u32) -> u128 {
        let turned = self.bases[sweep as usize] + i128::from(self.width) * i128::from(sector);
        turned.max(0) as u128
    }

    /// The first sector of the lower sweep that does not pass before `turned`.
    pub fn lower_from(&self, turned: u128) -> u32 {
        let behind = (turned as i128 - self.bases[1]).max(0) as u128;
        let sector = behind.div_ceil(u128::from(self.width.max(1)));
        u32::try_from(sector).unwrap_or(u32::MAX)
    }
}

/// A whole turn, as raw angle.
const REVOLUTION: i128 = 1 << 64;
