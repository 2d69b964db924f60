//! Tables that need predictions of a drive: a belief, and a policy that orders commands.

use document::{DocumentError, Section};
use drive::Profile;
use engine::Rules;
use scheduler::freeblock::{Caution, SameTrackRule};
use scheduler::policy::{Depth, NamedPolicy};

use super::{Belief, DriveConfig};

/// Checks that the drive has a belief and a policy that orders its commands. Without a belief, `what` is
/// unknown.
pub(super) fn is_foreseen(
    table: &Section<'_>,
    belief: &Belief,
    policy: NamedPolicy,
    what: &str,
) -> Result<(), DocumentError> {
    if *belief == Belief::Nothing {
        return Err(table.error(format!(
            "nothing is believed of the drive: expected a belief, without which nobody knows {what}"
        )));
    }
    if policy.depth() == Depth::DriveQueue {
        let name = policy.name();
        return Err(table.error(format!(
            "policy {name} leaves the order to the drive: expected one that does not, such as \
             sptf-sw60"
        )));
    }
    Ok(())
}

/// The default impact budget, in parts per million: the bound of FAST 2002 (Lumb et al.), a loss of less
/// than 2 %.
pub const IMPACT_PPM: u32 = 20_000;

impl DriveConfig {
    /// The rules of background reads, if the drive has this belief.
    pub fn background(&self, belief: &Profile) -> Rules {
        background(belief, self.impact_ppm, self.same_track)
    }
}

/// The rules of background reads on a drive, with this impact budget.
pub fn background(belief: &Profile, impact_ppm: u32, rule: SameTrackRule) -> Rules {
    let same_track = rule.on(belief);
    Rules {
        caution: Caution::Learned { impact_ppm },
        same_track,
        ranges: same_track.ranges(),
        ..Rules::default()
    }
}
