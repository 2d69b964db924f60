//! The look-ahead: where it has come to when somebody asks, and how it ends.

use std::sync::Arc;

use block::{Direction, Extent, Instant, Lba};

use super::{Arm, Service};
use crate::buffer::Ahead;
use crate::mechanics::{Position, Target};

impl Service {
    pub(super) fn begin_ahead(&mut self, arm: usize, segment: usize, extent: Extent) {
        let Arm { position, free_at } = self.arms[arm];
        self.buffer.ahead = None;
        self.buffer
            .look_ahead(&self.truth.geometry, segment, extent, free_at, position);
    }

    /// Brings the look-ahead up to `now`: whole tracks move its anchor, the present track only
    /// its segment.
    pub(super) fn follow_ahead(&mut self, now: Instant) {
        let Some(mut ahead) = self.buffer.ahead else {
            return;
        };
        let segment = ahead.segment;
        let truth = Arc::clone(&self.truth);
        let Some(rest) = ahead.rest() else { return };
        for run in truth.geometry.runs(rest) {
            let pass = truth.pass(ahead.position, ahead.at, &run, Direction::Read);
            let start = ahead.at + pass.seek + pass.rotation;
            let end = start + pass.transfer;
            if end > now {
                let read = now.since(start).as_nanos() * u64::from(run.blocks)
                    / pass.transfer.as_nanos().max(1);
                self.buffer
                    .advance(segment, run.first.0 + read.min(u64::from(run.blocks)));
                self.buffer.ahead = Some(ahead);
                return;
            }
            let next = run.first.0 + u64::from(run.blocks);
            self.buffer.advance(segment, next);
            let position = Position {
                cylinder: run.cylinder,
                head: run.head,
            };
            ahead = Ahead {
                next,
                at: end,
                position,
                ..ahead
            };
        }
        // It has reached its limit: the arm rests where it ended.
        let arm = self.arm_of(Lba(ahead.next.saturating_sub(1)));
        self.arms[arm].position = ahead.position;
        self.buffer.ahead = None;
    }

    /// Ends the look-ahead; the arm is where it has come to. Answers when the arm has settled,
    /// which is later than `now` if it was just on its way to another track.
    pub(super) fn stop_ahead(&mut self, arm: usize, now: Instant) -> Instant {
        self.follow_ahead(now);
        let Some(ahead) = self.buffer.ahead.take() else {
            return now;
        };
        let Some(run) = ahead
            .rest()
            .and_then(|rest| self.truth.geometry.runs(rest).next())
        else {
            return now;
        };
        if now <= ahead.at {
            self.arms[arm].position = ahead.position;
            return now;
        }
        let target = Target::from(&run).position;
        let seek = self
            .truth
            .reposition(ahead.position, target, Direction::Read);
        self.arms[arm].position = target;
        now.max(ahead.at + seek)
    }
}
