//! What tables need that promise something of a drive's future: a belief, and the order in our hands.

use document::{DocumentError, Section};
use engine::Rules;
use scheduler::freeblock::{Caution, Ranges, SameTrack};
use scheduler::policy::{Depth, NamedPolicy};

use super::Belief;

/// Whether a table may stand that needs somebody who knows the drive and orders its commands; without a
/// belief nobody knows `what`.
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

/// By how much background reads may lengthen foreground requests where nothing is said, in parts per million:
/// the bound of FAST 2002 (Lumb et al.), a loss of less than 2 %.
pub const IMPACT_PPM: u32 = 20_000;

/// How the service fits in background reads that may cost so much.
pub fn background(impact_ppm: u32) -> Rules {
    Rules {
        caution: Caution::Learned { impact_ppm },
        same_track: SameTrack::Allowed,
        ranges: Ranges::Two,
        ..Rules::default()
    }
}
