//! Steps that come together: work beside other work on the same blocks, drawn by dice of their own.

use block::Durability;
use block::operation::{Ask, Space, ZeroingPace};
use headtime_client::wire::StreamMode;

use super::inserted::insert;
use super::{Action, Dice, Fails, Faults, Reader, Setting, Step, asked, rounded};
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
fn near(place: (u64, u64), within_us: u64, setting: &Setting, dice: &mut Dice) -> Step {
    let mut reader = Reader {
        next: 0,
        in_order: 0,
    };
    let (ask, _, length) = asked(dice, setting, &mut reader);
    let place = match length {
        0 => (0, 0),
        _ => part_of((place.0, 2 * place.1), setting, dice),
    };
    through_any_door(ask, place, within_us, dice)
}

/// Parts of a sector or two, or more, that begin among these blocks.
fn part_of((first, count): (u64, u64), setting: &Setting, dice: &mut Dice) -> (u64, u64) {
    let first = (first + dice.below(count)).min(setting.blocks - 1);
    let most = dice.one(&[8, count.min(4096)]);
    rounded(
        setting,
        first,
        (1 + dice.below(most)).min(setting.blocks - first),
    )
}

fn through_any_door(ask: Ask, (first, count): (u64, u64), within_us: u64, dice: &mut Dice) -> Step {
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

/// In some runs with streams a recording begins beside changes of its blocks, while the drive is busy or not.
pub(super) fn with_takes(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if !setting.streams || !dice.percent(70) {
        return;
    }
    for _ in 0..1 + dice.below(20) {
        let at = insert(
            steps,
            Action::Stream(StreamStep::Close(dice.below(4))),
            dice,
        );
        let take = take(setting, dice);
        steps.splice(at + 1..at + 1, take);
    }
}

/// Reads of other blocks, changes of a page, and a recording that begins with that page.
fn take(setting: &Setting, dice: &mut Dice) -> Vec<Step> {
    let layout = Layout::draw(dice);
    let page = dice.below(layout.pages(setting.pace));
    let stream = |step: StreamStep, within_us: u64, dice: &mut Dice| Step {
        after_us: dice.below(within_us),
        action: Action::Stream(step),
    };
    let most = dice.one(&[1, 30]);
    let reads = (0..dice.below(most)).map(|_| {
        let place = rounded(
            setting,
            dice.below(setting.blocks - 128),
            1 + dice.below(128),
        );
        through_any_door(Ask::Read, place, 100, dice)
    });
    let mut take: Vec<Step> = reads.collect();
    if setting.hangs && dice.percent(70) {
        // What begins before the recording ends after it.
        let (what, longest) = (Fails::Hangs, dice.one(&[200, 2000, 10_000]));
        let ms = 1 + dice.below(longest);
        let action = Action::Fail { what, ms };
        // The drive may have done all else by then.
        let after_us = dice.one(&[100, 200_000]);
        take.push(Step { after_us, action });
    }
    let changes = |take: &mut Vec<Step>, page: u64, dice: &mut Dice| {
        for _ in 0..dice.below(4) {
            let durability = Durability::Volatile;
            let ask = dice.one(&[
                Ask::Write { durability },
                Ask::Write { durability },
                Ask::Zero {
                    durability,
                    space: Space::Kept,
                    pace: ZeroingPace::Any,
                },
                Ask::Trim { durability },
            ]);
            let blocks = layout.blocks_of(page % layout.pages(setting.pace), setting.pace);
            let place = part_of(blocks, setting, dice);
            take.push(through_any_door(ask, place, 1000, dice));
        }
    };
    changes(&mut take, page, dice);
    let attach = StreamStep::Attach {
        mode: dice.one(&[StreamMode::Record, StreamMode::RecordSync]),
        layout,
        memory_pages: 8 + dice.below(20),
    };
    let within_us = dice.one(&[200, 2000]);
    take.push(stream(attach, within_us, dice));
    take.push(stream(StreamStep::Position(NEWEST, page), within_us, dice));
    for next in page + 1..page + 2 + dice.below(4) {
        take.push(stream(StreamStep::Record(NEWEST), within_us, dice));
        if dice.percent(50) {
            changes(&mut take, next, dice);
        }
    }
    if dice.percent(50) {
        take.push(stream(StreamStep::Close(NEWEST), within_us, dice));
    }
    take
}

/// In some runs with caches somebody reads in order, and blocks that are about to be fetched change apart from the engine's
/// order. Others change parts of them at once.
pub(super) fn with_changes_ahead(steps: &mut Vec<Step>, setting: &Setting, dice: &mut Dice) {
    if setting.cache.is_none() || !dice.percent(75) {
        return;
    }
    let durability = Durability::Volatile;
    let most = if setting.is_large() { 60 } else { 20 };
    for _ in 0..1 + dice.below(most) {
        let mut next = dice.below(setting.blocks - 5000);
        let mut ahead = Vec::new();
        for _ in 0..1 + dice.below(4) {
            let place = rounded(setting, next, 1 + dice.below(128));
            next = place.0 + place.1;
            ahead.push(through_any_door(Ask::Read, place, 500, dice));
        }
        // A drive takes tens of milliseconds for a request of 1 MiB.
        let within_us = dice.one(&[setting.host_us, 20_000, 100_000]);
        for _ in 0..1 + dice.below(4) {
            // Whole pages.
            let place = (next + dice.below(2048), 64 + dice.below(512));
            let place = (place.0 / 32 * 32, place.1 / 32 * 32);
            let apart = match dice.percent(80) {
                true => Ask::Zero {
                    durability,
                    space: dice.one(&[Space::MayBeFreed, Space::Kept]),
                    pace: ZeroingPace::Any,
                },
                false => Ask::Trim { durability },
            };
            ahead.push(through_any_door(apart, place, within_us, dice));
            for _ in 0..1 + dice.below(4) {
                let place = part_of(place, setting, dice);
                let write = Ask::Write { durability };
                ahead.push(through_any_door(write, place, 200, dice));
            }
        }
        let at = dice.below(steps.len() as u64 + 1) as usize;
        steps.splice(at..at, ahead);
    }
}
