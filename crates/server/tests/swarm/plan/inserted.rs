//! Steps among the others, drawn by dice of their own: the plans of older seeds keep what they have.

use block::operation::Ask;

use super::{Action, Dice, Fails, Faults, MomentStep, ReloadStep, Setting, Step};
use crate::films::FilmStep;
use crate::scrub::CHUNK;

/// Some runs have checkpoints, which are drawn by dice of their own, too.
pub(super) fn with_moments(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    // What a failed page had, the checkers do not know.
    if setting.faults == Faults::Errors || !dice.percent(30) {
        return;
    }
    for _ in 0..1 + dice.below(60) {
        insert(steps, Action::Moment(MomentStep::draw(setting, dice)), dice);
    }
}

/// In some runs the drive ends nothing for a while.
pub(super) fn with_hangs(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if !setting.hangs {
        return;
    }
    for _ in 0..1 + dice.below(3) {
        let longest = dice.one(&[50, 2000, 20_000]);
        let ms = 1 + dice.below(longest);
        let what = Fails::Hangs;
        insert(steps, Action::Fail { what, ms }, dice);
    }
}

/// In some runs the service is stopped, and begins again.
pub(super) fn with_restarts(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if !dice.percent(25) {
        return;
    }
    for _ in 0..1 + dice.below(3) {
        let at = insert(steps, Action::Restart, dice);
        if setting.faults == Faults::Kills && dice.percent(30) {
            let after_us = dice.below(20_000);
            let action = Action::Kill;
            steps.insert(at + 1, Step { after_us, action });
        }
    }
}

/// In runs with films they begin and end at any time, and nothing slows the host's files.
pub(super) fn with_films(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if setting.films.is_none() {
        return;
    }
    // A service that is killed all the time plays no film to its end.
    let is_killed = dice.percent(20);
    steps.retain(|step| match step.action {
        Action::Stall { .. } => false,
        Action::Kill | Action::Restart => is_killed,
        _ => true,
    });
    let part = dice.percent(50).then(|| dice.below(900_000));
    if dice.percent(50) {
        for _ in 0..1 + dice.below(12) {
            insert(steps, Action::Film(FilmStep::draw(part, dice)), dice);
        }
    }
    if dice.percent(80) {
        let readers = dice.one(&[1, 4, 32]);
        let seed = dice.below(u64::MAX);
        insert(steps, Action::Film(FilmStep::Crowd { readers, seed }), dice);
        house(steps, dice);
    }
}

/// Films that begin together, and ask for all that may be promised, in equal parts.
fn house(steps: &mut Vec<Step>, dice: &mut Dice) {
    let films = 1 + dice.below(8);
    let pages = dice.one(&[100, 300, 1000]);
    let at = dice.below(steps.len() as u64 + 1) as usize;
    let house = (0..films).map(|film| Step {
        after_us: dice.below(1000),
        action: Action::Film(FilmStep::of_house(films - film, pages, dice)),
    });
    let house: Vec<Step> = house.collect();
    steps.splice(at..at, house);
}

/// In some runs the configuration is reloaded, and the drive profiled.
pub(super) fn with_reloads(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if !dice.percent(30) {
        return;
    }
    for _ in 0..1 + dice.below(20) {
        let step = ReloadStep::draw(setting, dice);
        insert(steps, Action::Reload(step), dice);
    }
}

/// In some runs with streams a reload gives the name of their export to another volume.
pub(super) fn with_renames(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if setting.streams && dice.percent(20) {
        insert(steps, Action::Reload(ReloadStep::Rename), dice);
    }
}

/// In some runs scrubs begin beside the load.
pub(super) fn with_passes(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if !setting.checksums || !dice.percent(50) {
        return;
    }
    for _ in 0..1 + dice.below(5) {
        let at = insert(steps, Action::Pass, dice);
        if dice.percent(60) {
            read_all(steps, at + 1, setting, dice);
        }
    }
}

/// Chunks whose bytes were all read can be compared: a client reads everything, beside the other steps.
fn read_all(steps: &mut Vec<Step>, first: usize, setting: &Setting, dice: &mut Dice) {
    let mut at = first;
    for chunk in 0..setting.blocks / CHUNK {
        let step = Step {
            after_us: dice.below(5_000),
            action: Action::Post {
                ask: Ask::Read,
                first: chunk * CHUNK,
                count: CHUNK,
            },
        };
        at = (at + dice.below(3) as usize).min(steps.len());
        steps.insert(at, step);
        at += 1;
    }
}

/// A step anywhere. The answer is its place.
pub(super) fn insert(steps: &mut Vec<Step>, action: Action, dice: &mut Dice) -> usize {
    let at = dice.below(steps.len() as u64 + 1) as usize;
    let after_us = dice.below(1000);
    steps.insert(at, Step { after_us, action });
    at
}
