//! Where free reads may be commands of their own on the tracks of the foreground.
//!
//! | word | such reads |
//! |---|---|
//! | `auto` | if the believed drive has no look-ahead |
//! | `never` | none; they are merged with the foreground's command, or on other tracks |
//! | `allowed` | always |
//!
//! A second read of a track looks sequential. A drive with look-ahead may then finish reading ahead before
//! it takes up the next command (Lumb et al., FAST 2002, 3.2 and 4.3). No profile says whether it does.

use drive::Profile;
use drive::firmware::LookAhead;

use super::gap::{Ranges, SameTrack};

/// A rule for free reads on the tracks of the foreground.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameTrackRule {
    /// They are allowed if the believed drive has no look-ahead.
    #[default]
    Derived,
    /// As stated.
    Stated(SameTrack),
}

impl SameTrackRule {
    /// All rules, with their words.
    pub const ALL: [(&str, SameTrackRule); 3] = [
        ("auto", SameTrackRule::Derived),
        ("never", SameTrackRule::Stated(SameTrack::Never)),
        ("allowed", SameTrackRule::Stated(SameTrack::Allowed)),
    ];

    /// The rule's meaning for a drive.
    pub fn on(self, belief: &Profile) -> SameTrack {
        match (self, belief.buffer.look_ahead) {
            (SameTrackRule::Stated(stated), _) => stated,
            (SameTrackRule::Derived, LookAhead::None) => SameTrack::Allowed,
            (SameTrackRule::Derived, _) => SameTrack::Never,
        }
    }
}

impl SameTrack {
    /// The ranges of a track that fit this rule: two of them are two commands on one track.
    pub fn ranges(self) -> Ranges {
        match self {
            SameTrack::Allowed => Ranges::Two,
            SameTrack::Never => Ranges::One,
        }
    }
}

#[cfg(test)]
mod tests {
    use block::Switch;

    use super::*;

    #[test]
    fn auto_allows_such_reads_on_drives_without_look_ahead_only() {
        for entry in drive::catalog::ALL {
            let drive = entry.profile().expect("a built-in drive");
            let off = drive.switched(Switch::Off, Switch::On);
            assert_eq!(SameTrackRule::Derived.on(&off), SameTrack::Allowed);
            let expected = match drive.buffer == off.buffer {
                true => SameTrack::Allowed,
                false => SameTrack::Never,
            };
            assert_eq!(
                SameTrackRule::Derived.on(&drive),
                expected,
                "{}",
                drive.name
            );
            for stated in [SameTrack::Allowed, SameTrack::Never] {
                assert_eq!(SameTrackRule::Stated(stated).on(&drive), stated);
            }
        }
    }
}
