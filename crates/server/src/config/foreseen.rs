//! Tables that need predictions of a drive: a belief, and a policy that orders commands.

use document::{DocumentError, Section};
use engine::Rules;
use scheduler::freeblock::{Caution, Ranges, SameTrack};
use scheduler::policy::{Depth, NamedPolicy};

use super::Belief;

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

/// The rules of background reads with this impact budget.
pub fn background(impact_ppm: u32) -> Rules {
    Rules {
        caution: Caution::Learned { impact_ppm },
        same_track: SameTrack::Allowed,
        ranges: Ranges::Two,
        ..Rules::default()
    }
}
