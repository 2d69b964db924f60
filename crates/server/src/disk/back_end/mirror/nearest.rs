//! Which held copy the head of a leg reaches first.
//!
//! ```text
//!   last command's end          copies
//!          |        seek, guard   |       wait for the first sector
//!          '----------------------'----------------------------------> the shortest sum is next
//! ```
//!
//! Copies go past the engine, whose belief does not know where they leave the head. The mirror sees all commands of a
//! leg, so it notes the end of the last one. The engine's belief has the geometry, the arm and the platter.

use block::{Direction, Duration, Extent, Instant, Lba};
use drive::{Profile, SeekTarget};

/// What is added to a seek, so that a head which is a little late does not miss its sector: 0.3 ms (Lumb, Schindler,
/// Ganger, FAST 2002, 4.3).
const GUARD: Duration = Duration::from_micros(300);

/// Where the head of a leg was last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegHead {
    /// The last block of the command that ended last.
    pub block: Lba,
    /// The direction of its transfer.
    pub direction: Direction,
    /// When it ended.
    pub ended: Instant,
}

/// The one of these writes whose first block the head reaches first, as is believed. Where positions tell nothing, it
/// is the next one upwards, and then the lowest.
pub fn nearest(
    belief: &Profile,
    head: Option<LegHead>,
    now: Instant,
    writes: &[Extent],
) -> Option<Extent> {
    let at = head.map_or(Lba(0), |head| head.block);
    let upwards = |write: &Extent| write.start().0.wrapping_sub(at.0);
    let time = |write: &Extent| positioning(belief, head?, now, write.start());
    let all = writes.iter().copied();
    all.min_by_key(|write| (time(write).unwrap_or(Duration::ZERO), upwards(write)))
}

/// The time from now on until a write of a block begins on the medium.
fn positioning(belief: &Profile, head: LegHead, now: Instant, to: Lba) -> Option<Duration> {
    let from = SeekTarget::from(&belief.geometry.locate(head.block)?);
    let to = SeekTarget::from(&belief.geometry.locate(to)?);
    let (write, overheads) = (Direction::Write, &belief.overheads);
    let decoded = now + overheads.before_positioning(write, head.direction);
    let ready = decoded.max(head.ended);
    let seek = belief.reposition(from.position, to.position, write) + GUARD;
    Some(seek + belief.spindle.wait(ready + seek, to.angle))
}

#[cfg(test)]
mod tests {
    use block::Sectors;
    use proptest::prelude::*;

    use super::*;

    fn atlas() -> Profile {
        let entry = ::drive::catalog::find("quantum-atlas-10k").expect("it is shipped");
        entry.profile().expect("a profile")
    }

    fn write(first: u64) -> Extent {
        Extent::new(Lba(first), Sectors(8)).expect("blocks")
    }

    proptest! {
        #[test]
        fn no_other_write_begins_sooner_on_a_drive_that_seeks_as_believed(
            block in 0_u64..17_000_000,
            others in prop::collection::vec(0_u64..17_000_000, 1..40),
            microseconds in 0_u64..100_000,
        ) {
            let (belief, now) = (atlas(), Instant::ZERO + Duration::from_micros(microseconds));
            let head = LegHead { block: Lba(block), direction: Direction::Write, ended: now };
            let writes: Vec<Extent> = others.into_iter().map(write).collect();
            let chosen = nearest(&belief, Some(head), now, &writes).expect("one of them");
            // By the profile's own positioning, from a head that starts a guard later.
            let place = |block: Lba| belief.geometry.locate(block).expect("a block");
            let from = SeekTarget::from(&place(head.block)).position;
            let start = now + belief.overheads.before_positioning(Direction::Write, head.direction);
            let begins = |write: &Extent| {
                let to = SeekTarget::from(&place(write.start()));
                belief.positioning(from, start + GUARD, &to, Direction::Write).total()
            };
            let soonest = writes.iter().map(begins).min();
            prop_assert_eq!(Some(begins(&chosen)), soonest);
        }
    }

    #[test]
    fn where_the_belief_knows_no_place_the_next_one_upwards_is_chosen_and_then_the_lowest() {
        let (belief, end) = (atlas(), atlas().geometry.sectors().0);
        let at = |block: u64| write(end + block);
        let writes = [at(300), at(100), at(200)];
        let head = |block: u64| {
            Some(LegHead {
                block: Lba(end + block),
                direction: Direction::Write,
                ended: Instant::ZERO,
            })
        };
        let from = |head| nearest(&belief, head, Instant::ZERO, &writes);
        assert_eq!(from(None), Some(at(100)));
        assert_eq!(from(head(150)), Some(at(200)));
        assert_eq!(from(head(250)), Some(at(300)));
        assert_eq!(from(head(350)), Some(at(100)));
        assert_eq!(nearest(&belief, None, Instant::ZERO, &[]), None);
    }
}
