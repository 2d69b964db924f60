//! The order in which blocks fill surfaces and cylinders.
//!
//! ```text
//!   band 1:  cylinder by cylinder         band n: a row of bands on n cylinders
//!   head 0   0   3   6                    head 0   0 --> 1 --> 2
//!   head 1   1   4   7    ...             head 1   5 <-- 4 <-- 3        next row ...
//!   head 2   2   5   8                    head 2   6 --> 7 --> 8
//! ```
//!
//! Both are rows of one band per surface; a row of bands of one track is a cylinder.

/// The order in which tracks are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Bands per row, each on another surface.
    pub surfaces: u32,
    /// Tracks per band: 1 if a drive is filled cylinder by cylinder.
    pub band: u32,
    /// The direction of the arm in consecutive bands.
    pub turning: Turning,
    /// The direction of the arm in the first band.
    pub begins: Heading,
}

/// The direction of the arm in consecutive bands of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turning {
    /// Forward and back in turn.
    Alternating,
    /// The same in all bands.
    Same,
}

/// The direction of the arm in a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// Towards the next row.
    Onward,
    /// Towards the previous row.
    Back,
}

impl Pattern {
    /// The pattern of a drive that is filled cylinder by cylinder.
    pub fn head_first(surfaces: u32) -> Self {
        Pattern {
            surfaces,
            band: 1,
            turning: Turning::Alternating,
            begins: Heading::Onward,
        }
    }

    /// Tracks per row.
    pub fn row(&self) -> u64 {
        u64::from(self.surfaces) * u64::from(self.band)
    }

    /// The direction of the arm in a band.
    pub fn heading(&self, band: u32) -> Heading {
        let turned = self.turning == Turning::Alternating && band % 2 == 1;
        match (self.begins, turned) {
            (Heading::Onward, false) | (Heading::Back, true) => Heading::Onward,
            (Heading::Back, false) | (Heading::Onward, true) => Heading::Back,
        }
    }

    /// The cylinder, relative to the first one of the row, and the surface of a track, counted from
    /// the first one of its row.
    pub fn place(&self, track: u64) -> (u32, u32) {
        let band = (track / u64::from(self.band)) as u32;
        let within = (track % u64::from(self.band)) as u32;
        match self.heading(band) {
            Heading::Onward => (within, band),
            Heading::Back => (self.band - 1 - within, band),
        }
    }

    /// The cylinder, relative to the first one of all rows, and the surface of a track, counted
    /// from the first one of all.
    pub fn at(&self, track: u64) -> (u64, u32) {
        let (cylinder, head) = self.place(track % self.row());
        (
            track / self.row() * u64::from(self.band) + u64::from(cylinder),
            head,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serpentine_goes_there_and_back() {
        let pattern = Pattern {
            surfaces: 3,
            band: 4,
            turning: Turning::Alternating,
            begins: Heading::Back,
        };
        let row =
            |from: u64| -> Vec<(u64, u32)> { (from..from + 4).map(|t| pattern.at(t)).collect() };
        assert_eq!(row(0), [(3, 0), (2, 0), (1, 0), (0, 0)]);
        assert_eq!(row(4), [(0, 1), (1, 1), (2, 1), (3, 1)]);
        assert_eq!(row(12), [(7, 0), (6, 0), (5, 0), (4, 0)]);
    }

    #[test]
    fn cylinder_by_cylinder() {
        let pattern = Pattern::head_first(3);
        let places: Vec<(u64, u32)> = (0..5).map(|track| pattern.at(track)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
    }
}
