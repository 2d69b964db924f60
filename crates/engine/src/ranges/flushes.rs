//! Flushes of two arms: one of each, which end as one.
//!
//! ```text
//!   flush --> one of each arm --first end kept--> second end --> one end
//! ```

use std::collections::VecDeque;

use block::{RequestId, Status};

use super::division::Side;
use crate::{Flushed, OWN_FLUSH};

/// Flushes that were not reported, in the order of their acceptance.
#[derive(Default)]
pub(super) struct JointFlushes(VecDeque<JointFlush>);

/// A flush of both arms.
struct JointFlush {
    id: RequestId,
    ends: [FlushPart; 2],
}

#[derive(Clone, Copy, Debug)]
enum FlushPart {
    /// The drive is out of its mirror.
    Unasked,
    Asked,
    Ended(Flushed),
}

/// A flush that has ended for all arms that were asked.
pub(super) enum JointEnd {
    /// One drive of a mirror was asked.
    One(Flushed),
    /// Both arms were asked: the later end, and how each ended.
    Both(Flushed, [Status; 2]),
}

impl JointFlushes {
    /// The number of flushes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Notes a flush that these arms were asked for.
    pub(super) fn enter(&mut self, id: RequestId, asked: [Option<Side>; 2]) {
        let ends = asked.map(|side| match side {
            Some(_) => FlushPart::Asked,
            None => FlushPart::Unasked,
        });
        self.0.push_back(JointFlush { id, ends });
    }

    /// Notes the end of a flush, unless the drive was taken out since. One of an arm's own, which was not asked for, is
    /// reported as it is.
    pub(super) fn note_end(&mut self, side: Side, flushed: Flushed) {
        if flushed.id == OWN_FLUSH {
            let ends = [FlushPart::Ended(flushed), FlushPart::Unasked];
            let id = flushed.id;
            return self.0.push_back(JointFlush { id, ends });
        }
        let part = self.0.iter_mut().find_map(|flush| {
            let part = &mut flush.ends[side as usize];
            (flush.id == flushed.id && matches!(part, FlushPart::Asked)).then_some(part)
        });
        if let Some(part) = part {
            *part = FlushPart::Ended(flushed);
        }
    }

    /// A drive of a mirror is out: its flushes say nothing any more, if the other one was asked, too.
    pub(super) fn leave(&mut self, side: Side) {
        for flush in &mut self.0 {
            let [mine, other] = [side, side.other()].map(|side| flush.ends[side as usize]);
            if let (FlushPart::Asked, FlushPart::Asked | FlushPart::Ended(_)) = (mine, other) {
                flush.ends[side as usize] = FlushPart::Unasked;
            }
        }
    }

    /// The next flush that has ended.
    pub(super) fn poll(&mut self) -> Option<JointEnd> {
        let ended = match self.0.front()?.ends {
            [FlushPart::Ended(one), FlushPart::Ended(other)] => {
                let later = match one.at > other.at {
                    true => one,
                    false => other,
                };
                JointEnd::Both(later, [one.status, other.status])
            }
            [FlushPart::Ended(only), FlushPart::Unasked]
            | [FlushPart::Unasked, FlushPart::Ended(only)] => JointEnd::One(only),
            _ => return None,
        };
        self.0.pop_front();
        Some(ended)
    }
}
