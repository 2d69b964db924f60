//! The control group: windows of gaps whose plans are withheld.
//!
//! ```text
//!   gaps     | 64       | 64       | 64       | 64       | ...
//!   window   | plans    | plans    | withheld | plans    | ...
//!                                  |4 | 60 tell what requests without plans are like
//!                                   '- these may suffer from the plans before them
//! ```
//!
//! A plan delays other requests than its own, so windows are withheld, not single plans. Which ones is drawn by
//! chance, so that nothing else differs. The draw depends on the number of the window alone, so that a replay
//! draws the same.

/// The gaps of a window. A choice: half a second of a busy disk, long against the two commands at the drive.
const WINDOW: u64 = 64;

/// One window in so many is withheld. A choice: 6 % of the free bandwidth.
const ONE_IN: u64 = 16;

/// One window in so many is withheld once so many withheld plans count. A choice: 2 % of the free bandwidth.
const ONE_IN_THEN: u64 = 64;

/// Withheld plans by whose number their mean delay is known well enough. A choice: it errs by about 30 us then,
/// where one request in a hundred is a revolution of 6 ms late.
const ENOUGH: f64 = 512.0;

/// The first gaps of a withheld window, which tell nothing. A choice: the commands at the drive, and as many
/// that were chosen while those were.
const SETTLING: u64 = 4;

/// The group of a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapGroup {
    /// It may be filled.
    #[default]
    Planned,
    /// It stays empty, and may suffer from plans before it.
    Settling,
    /// It stays empty, and tells what requests without plans are like.
    Control,
}

/// The draw of the group of each gap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ControlGroup {
    gaps: u64,
    one_in: u64,
    group: GapGroup,
}

impl ControlGroup {
    /// The group of the next gap, if so many withheld plans count.
    pub(super) fn draw(&mut self, withheld: f64) {
        let place = self.gaps % WINDOW;
        if place == 0 {
            self.one_in = match withheld < ENOUGH {
                true => ONE_IN,
                false => ONE_IN_THEN,
            };
        }
        self.group = match mixed(self.gaps / WINDOW).is_multiple_of(self.one_in) {
            true if place < SETTLING => GapGroup::Settling,
            true => GapGroup::Control,
            false => GapGroup::Planned,
        };
        self.gaps += 1;
    }

    /// The group of the present gap.
    pub(super) fn group(self) -> GapGroup {
        self.group
    }
}

/// Random bits of a window: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mixed(window: u64) -> u64 {
    let mut bits = (window + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
