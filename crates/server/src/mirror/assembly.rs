//! How a mirror begins: what each leg is used for, from the superblocks that were found.
//!
//! ```text
//!   both found     the newer one counts     each says that the other is out        -> split brain: refused
//!   one found      it says the other is out, or lacks data                         -> served alone
//!                  it says the other has all data: that one may be newer           -> refused, unless allowed
//! ```

use block::Switch;

use super::bitmap::Bitmap;
use super::superblock::{LegRecord, Superblock, id_text};

/// What was found of a leg.
#[derive(Clone, Debug)]
pub enum FoundLeg {
    /// Its superblock and its marks.
    Whole(Box<(Superblock, Bitmap)>),
    /// It cannot be used: the reason.
    Missing(String),
}

/// A mirror that can begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// The superblock to go on from, with the states to record before the first write.
    pub superblock: Superblock,
    /// The regions in which the legs may differ.
    pub marks: Bitmap,
}

/// The mirror of these legs. `degraded` allows one leg to begin alone although the other one may be newer.
///
/// # Errors
/// Why it cannot begin, and what was expected.
pub fn assemble(found: [FoundLeg; 2], degraded: Switch) -> Result<Assembly, String> {
    for (leg, found) in found.iter().enumerate() {
        if let FoundLeg::Whole(whole) = found
            && usize::from(whole.0.leg) != leg
        {
            return Err(format!(
                "leg {leg} is leg {} of its mirror: expected the legs in their order",
                whole.0.leg
            ));
        }
    }
    match found {
        [FoundLeg::Whole(one), FoundLeg::Whole(other)] => both(*one, *other),
        [FoundLeg::Whole(only), FoundLeg::Missing(why)] => alone(*only, &why, degraded),
        [FoundLeg::Missing(why), FoundLeg::Whole(only)] => alone(*only, &why, degraded),
        [FoundLeg::Missing(one), FoundLeg::Missing(other)] => Err(format!(
            "no leg can be used (leg 0: {one}; leg 1: {other}): expected legs that `headtime mirror create` made"
        )),
    }
}

fn both(one: (Superblock, Bitmap), other: (Superblock, Bitmap)) -> Result<Assembly, String> {
    let (a, b) = (one.0, other.0);
    if a.mirror != b.mirror || a.data_bytes != b.data_bytes {
        return Err(format!(
            "leg 0 is of mirror {}, and leg 1 of mirror {}: expected both legs of one mirror",
            id_text(&a.mirror),
            id_text(&b.mirror)
        ));
    }
    if a.states[1] == LegRecord::Out && b.states[0] == LegRecord::Out {
        return Err(format!(
            "split brain: each leg was used without the other one (leg 0 to event {}, leg 1 to event {}): expected \
             one whose data you keep; `headtime mirror replace` fills the other one from it",
            a.events, b.events
        ));
    }
    let (newer, older) = match a.events >= b.events {
        true => (a, b),
        false => (b, a),
    };
    let is_contradicted = newer.events == older.events && newer.states != older.states;
    let is_disowned = older.states[usize::from(newer.leg)] == LegRecord::Out
        && newer.states[usize::from(newer.leg)].is_complete();
    if is_contradicted || is_disowned {
        return Err(
            "the superblocks of the legs contradict each other: expected legs that no other program wrote; \
             `headtime mirror replace` fills one from the other"
                .to_owned(),
        );
    }
    let place = usize::from(older.leg);
    if newer.legs[place] != older.legs[place] {
        return Err(format!(
            "leg {place} was replaced by another one: expected that one, or `headtime mirror replace` once more"
        ));
    }
    let mut marks = one.1;
    marks.unite(&other.1);
    let mut states = newer.states;
    if states == [LegRecord::InSync; 2] && marks.marked() > 0 {
        states[1] = LegRecord::Doubtful;
    }
    Ok(Assembly {
        superblock: next(newer, states),
        marks,
    })
}

fn alone(
    (superblock, marks): (Superblock, Bitmap),
    why: &str,
    degraded: Switch,
) -> Result<Assembly, String> {
    let own = usize::from(superblock.leg);
    let missing = 1 - own;
    let mine = superblock.states[own];
    if !mine.is_complete() {
        return Err(format!(
            "leg {own} is {}, and leg {missing} cannot be used: {why}: expected the leg that has all data",
            mine.name()
        ));
    }
    let others = superblock.states[missing];
    if others.is_complete() && degraded == Switch::Off {
        return Err(format!(
            "leg {missing} cannot be used: {why}; leg {own} does not know whether that one was used without it: \
             expected both legs, or degraded = true, which begins with leg {own} alone"
        ));
    }
    let mut states = [LegRecord::InSync; 2];
    states[missing] = LegRecord::Out;
    Ok(Assembly {
        superblock: next(superblock, states),
        marks,
    })
}

/// The next superblock: with another event if the states change.
fn next(superblock: Superblock, states: [LegRecord; 2]) -> Superblock {
    Superblock {
        events: superblock.events + u64::from(states != superblock.states),
        states,
        ..superblock
    }
}

#[cfg(test)]
mod tests {
    use super::super::superblock::tests::any;
    use super::*;

    use LegRecord::{Doubtful, Filling, InSync, Out};

    fn leg(leg: usize, events: u64, states: [LegRecord; 2], marked: &[u64]) -> FoundLeg {
        let superblock = Superblock {
            events,
            states,
            ..any().of_leg(leg)
        };
        let mut marks = Bitmap::empty(superblock.regions());
        marked.iter().for_each(|&region| marks.set(region));
        FoundLeg::Whole(Box::new((superblock, marks)))
    }

    fn gone() -> FoundLeg {
        FoundLeg::Missing("no such file".to_owned())
    }

    fn states(found: [FoundLeg; 2]) -> ([LegRecord; 2], u64) {
        let assembly = assemble(found, Switch::Off).expect("it begins");
        (assembly.superblock.states, assembly.superblock.events)
    }

    fn refused(found: [FoundLeg; 2]) -> String {
        assemble(found, Switch::Off).expect_err("it does not begin")
    }

    #[test]
    fn two_legs_in_sync_begin_in_sync_or_in_doubt() {
        let both = [InSync; 2];
        let clean = [leg(0, 5, both, &[]), leg(1, 5, both, &[])];
        assert_eq!(states(clean), (both, 5));
        for marked in [[&[3][..], &[]], [&[], &[3]]] {
            let found = [leg(0, 5, both, marked[0]), leg(1, 5, both, marked[1])];
            assert_eq!(states(found.clone()), ([InSync, Doubtful], 6));
            let marks = assemble(found, Switch::Off).expect("it begins").marks;
            assert!(marks.iter().eq([3]));
        }
    }

    #[test]
    fn the_newer_leg_counts() {
        let out = [leg(0, 6, [InSync, Out], &[1]), leg(1, 5, [InSync; 2], &[2])];
        assert_eq!(states(out), ([InSync, Out], 6));
        let out = [leg(0, 5, [InSync; 2], &[]), leg(1, 8, [Out, InSync], &[])];
        assert_eq!(states(out), ([Out, InSync], 8));
        // The record of an end or a begin of filling reached one leg.
        let ended = [
            leg(0, 7, [InSync; 2], &[]),
            leg(1, 6, [InSync, Filling], &[]),
        ];
        assert_eq!(states(ended), ([InSync; 2], 7));
        let begun = [
            leg(0, 6, [InSync, Out], &[1]),
            leg(1, 7, [InSync, Filling], &[]),
        ];
        assert_eq!(states(begun), ([InSync, Filling], 7));
    }

    #[test]
    fn split_brains_and_contradictions_are_refused() {
        for events in [6, 7, 9] {
            let split = [
                leg(0, 7, [InSync, Out], &[]),
                leg(1, events, [Out, InSync], &[]),
            ];
            let refused = refused(split);
            assert!(refused.starts_with("split brain"), "{refused}");
        }
        let same = [leg(0, 7, [InSync, Out], &[]), leg(1, 7, [InSync; 2], &[])];
        assert!(refused(same).contains("contradict"));
        let disowned = [leg(0, 8, [InSync; 2], &[]), leg(1, 7, [Out, InSync], &[])];
        assert!(refused(disowned).contains("contradict"));
    }

    #[test]
    fn one_leg_begins_alone_only_if_the_other_cannot_be_newer() {
        for other in [Out, Filling] {
            assert_eq!(
                states([leg(0, 7, [InSync, other], &[]), gone()]).0,
                [InSync, Out]
            );
        }
        for other in [InSync, Doubtful] {
            let found = [leg(0, 7, [InSync, other], &[]), gone()];
            let refused = refused(found.clone());
            assert!(refused.contains("degraded = true"), "{refused}");
            let allowed = assemble(found, Switch::On).expect("it is allowed");
            assert_eq!(allowed.superblock.states, [InSync, Out]);
            assert_eq!(allowed.superblock.events, 8);
        }
        for mine in [Out, Filling] {
            let found = [gone(), leg(1, 7, [InSync, mine], &[])];
            assert!(assemble(found, Switch::On).is_err(), "{mine:?}");
        }
        assert!(refused([gone(), gone()]).contains("headtime mirror create"));
    }

    #[test]
    fn legs_of_other_mirrors_other_places_and_other_times_are_refused() {
        let changed = |change: &dyn Fn(&mut Superblock)| {
            let FoundLeg::Whole(mut whole) = leg(1, 5, [InSync; 2], &[]) else {
                unreachable!("a leg");
            };
            change(&mut whole.0);
            refused([leg(0, 6, [InSync, Filling], &[]), FoundLeg::Whole(whole)])
        };
        assert!(changed(&|leg| leg.mirror = [9; 16]).contains("of one mirror"));
        assert!(changed(&|leg| leg.leg = 0).contains("in their order"));
        assert!(changed(&|leg| leg.legs[1] = [9; 16]).contains("was replaced"));
    }
}
