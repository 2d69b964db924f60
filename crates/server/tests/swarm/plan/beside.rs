//! Steps that come together: work beside other work on the same blocks, drawn by dice of their own.

use block::operation::Ask;
use headtime_client::wire::StreamMode;

use super::inserted::insert;
use super::{Action, Dice, Fails, Faults, Reader, Setting, Step, asked, rounded};
use crate::run::BLOCKS;
use crate::streams::{Layout, StreamStep};

/// The newest of one to four streams: one less than a number that all of these divide.
const NEWEST: u64 = 11;

/// In some runs operations are followed at once by others on their blocks, or just behind them, through any door.
pub(super) fn with_followers(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if !dice.percent(40) {
        return;
    }
    let share = dice.one(&[20, 60]);
    let mut followed = Vec::with_capacity(2 * steps.len());
    for step in std::mem::take(steps) {
        followed.push(step);
        let place = match step.action {
            Action::Submit { first, count, .. } | Action::Post { first, count, .. } => {
                (first, count)
            }
            _ => continue,
        };
        if place.1 > 0 && dice.percent(share) {
            followed.push(near(place, 500, setting, dice));
        }
    }
    *steps = followed;
}

/// An operation on some of these blocks, or just behind them, within so many microseconds.
fn near((first, count): (u64, u64), within_us: u64, setting: &Setting, dice: &mut Dice) -> Step {
    let mut reader = Reader {
        next: 0,
        in_order: 0,
    };
    let (ask, _, length) = asked(dice, setting, &mut reader);
    let (first, count) = match length {
        0 => (0, 0),
        _ => {
            let first = (first + dice.below(2 * count)).min(BLOCKS - 1);
            // Parts of a sector or two, or more.
            let most = dice.one(&[8, count]);
            rounded(setting, first, (1 + dice.below(most)).min(BLOCKS - first))
        }
    };
    let who = dice.below(4);
    let action = match dice.percent(50) {
        true => Action::Submit {
            who,
            ask,
            first,
            count,
        },
        false => Action::Post { ask, first, count },
    };
    Step {
        after_us: dice.below(within_us),
        action,
    }
}

/// In some runs with a drive that fails commands it fails flushes for a while, and somebody flushes.
pub(super) fn with_failed_flushes(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if setting.faults != Faults::Errors || !dice.percent(50) {
        return;
    }
    for _ in 0..1 + dice.below(6) {
        let what = dice.one(&[Fails::Flushes, Fails::Everything]);
        let ms = 1 + dice.below(200);
        let at = insert(steps, Action::Fail { what, ms }, dice);
        let at = (at + 1 + dice.below(4) as usize).min(steps.len());
        let (ask, first, count) = (Ask::Flush, 0, 0);
        let action = Action::Post { ask, first, count };
        let after_us = dice.below(1000);
        steps.insert(at, Step { after_us, action });
    }
}

/// In some runs with mirrors a leg breaks and soon after the service begins again, with the leg or without it: it is
/// filled beside the steps that come then.
pub(super) fn with_refills(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if !setting.mirrored || !dice.percent(50) {
        return;
    }
    for _ in 0..1 + dice.below(3) {
        let leg = dice.below(2) as usize;
        let at = insert(steps, Action::BreakLeg(leg), dice);
        // What follows meets the leg that is broken, which is out then.
        let at = (at + 1 + dice.below(10) as usize).min(steps.len());
        let action = match setting.faults == Faults::Kills && dice.percent(50) {
            true => Action::Kill,
            false => Action::Restart,
        };
        let after_us = dice.below(50_000);
        steps.insert(at, Step { after_us, action });
    }
}

/// In some runs with streams a recording begins beside changes of its blocks.
pub(super) fn with_takes(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if !setting.streams || !dice.percent(50) {
        return;
    }
    for _ in 0..1 + dice.below(4) {
        let layout = Layout::draw(dice);
        let who = dice.below(4);
        let at = insert(steps, Action::Stream(StreamStep::Close(who)), dice);
        let attach = StreamStep::Attach {
            mode: dice.one(&[StreamMode::Record, StreamMode::RecordSync]),
            layout,
            memory_pages: 8 + dice.below(20),
        };
        let mut take = Vec::new();
        let changes = |take: &mut Vec<Step>, dice: &mut Dice| {
            for _ in 0..dice.below(4) {
                let place = dice.one(&layout.blocks(setting.pace));
                take.push(near(place, 2000, setting, dice));
            }
        };
        changes(&mut take, dice);
        let stream = |step: StreamStep, dice: &mut Dice| Step {
            after_us: dice.below(2000),
            action: Action::Stream(step),
        };
        take.push(stream(attach, dice));
        for _ in 0..1 + dice.below(4) {
            take.push(stream(StreamStep::Record(NEWEST), dice));
            changes(&mut take, dice);
        }
        steps.splice(at + 1..at + 1, take);
    }
}
