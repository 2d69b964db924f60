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
    period_ps: u64,
    /// The largest raw angle by which the platter turns in the span.
    reach: u128,
}

/// The sectors of a track: where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rim {
    /// The beginning of sector 0.
    pub start: Angle,
    /// The width of a sector.
    pub width: Angle,
    /// The number of sectors.
    pub sectors: u32,
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
        let picos = u128::from(until.since(from).as_nanos()) * 1000;
        let picos = picos.min(LONGEST_PICOS);
        let period_ps = spindle.period_ps();
        Some(Turning {
            from,
            there: spindle.angle_at(from),
            period_ps,
            // The last whose time, rounded down to picoseconds, is not longer.
            reach: (((picos + 1) << 64) - 1) / u128::from(period_ps),
        })
    }

    /// The sectors of a track that pass from their beginning to their end.
    #[inline]
    pub fn sectors(&self, rim: &Rim) -> Sectors {
        let first = (rim.start - self.there).raw();
        let upper = if first == 0 {
            rim.sectors
        } else {
            rim.ceil(first.wrapping_neg())
        };
        let bases = [i128::from(first) - REVOLUTION, i128::from(first)];
        let [upper_end, lower_end] = bases.map(|base| self.end(base, rim));
        Sectors {
            upper,
            upper_end: upper_end.max(upper),
            lower_end,
            bases,
            width: rim.width.raw(),
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
        turned <= self.reach
    }

    /// The number of sectors from sector 0 on, at `base`, that have passed at the end.
    #[inline]
    fn end(&self, base: i128, rim: &Rim) -> u32 {
        let room = self.reach as i128 - base;
        match u64::try_from(room) {
            Ok(room) => rim.floor(room),
            Err(_) if room < 0 => 0,
            Err(_) => rim.sectors,
        }
    }
}

impl Rim {
    /// The sectors of a track.
    #[inline]
    pub fn of(track: &Track) -> Self {
        Rim {
            start: track.start,
            width: track.width,
            sectors: track.sectors,
        }
    }

    /// The number of sectors that are not wider than `way` together, at most all.
    ///
    /// A product tells, but for rounding of the width: a quotient takes longer.
    #[inline]
    fn floor(&self, way: u64) -> u32 {
        let width = self.width.raw();
        let about = (u128::from(way) * u128::from(self.sectors)) >> 64;
        let taken = width.checked_mul(about as u64);
        let left = taken.and_then(|taken| way.checked_sub(taken));
        match left {
            Some(left) if left < width => about as u32,
            _ => (way / width.max(1)).min(u64::from(self.sectors)) as u32,
        }
    }

    /// The number of sectors that are as wide as `way` together, at most all.
    #[inline]
    fn ceil(&self, way: u64) -> u32 {
        match way {
            0 => 0,
            way => (self.floor(way - 1) + 1).min(self.sectors),
        }
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

/// The length of a span above which all of it counts as this: 53 days. It keeps products within the
/// word.
const LONGEST_PICOS: u128 = 1 << 62;

/// A whole turn, as raw angle.
const REVOLUTION: i128 = 1 << 64;
