//! The look-ahead: its progress on demand, and its end.

use block::{Direction, Extent, Instant};

use super::DriveService;
use crate::mechanics::{Position, SeekTarget};

impl DriveService {
    /// Begins or extends the look-ahead of a segment after a read of `extent`, with the arm free at
    /// `at`. It ends at the end of the arm's share, and before unreadable blocks.
    pub(super) fn look_ahead(&mut self, arm: usize, segment: usize, extent: Extent, at: Instant) {
        let bound = self.truth.share_end(arm);
        let bad = self.luck.unreadable_from(extent.end().0);
        let bound = bad.map_or(bound, |bad| bad.min(bound));
        let head = (at, self.arms[arm].position);
        let after_read = match &self.after_read {
            (block, track) if *block == extent.end() => track.clone(),
            _ => 0..0,
        };
        let known = (&*self.truth.geometry, after_read);
        self.buffer
            .look_ahead(known, (arm, segment), (extent, bound), head);
    }

    /// Advances an arm's look-ahead to `now`. Whole tracks move its start; the current track extends
    /// only its segment.
    pub(super) fn follow_ahead(&mut self, arm: usize, now: Instant) {
        let DriveService {
            truth,
            arms,
            buffer,
            ..
        } = self;
        let Some(mut ahead) = buffer.aheads[arm].filter(|ahead| ahead.at < now) else {
            // It has not begun.
            return;
        };
        while let Some(rest) = ahead.rest() {
            let (run, ends) = match ahead.part {
                Some(part) => part,
                None => {
                    let Some(run) = truth.geometry.runs(rest).next() else {
                        break;
                    };
                    let pass = truth.pass(ahead.position, ahead.at, &run, Direction::Read);
                    let begins = *ahead
                        .begins
                        .get_or_insert(ahead.at + pass.seek + pass.rotation);
                    (run, begins + pass.transfer)
                }
            };
            ahead.part = Some((run, ends));
            let blocks = u64::from(run.blocks);
            if ends > now {
                let begins = ahead.begins.unwrap_or(ends);
                let length = ends.since(begins).as_nanos().max(1);
                let read = now.since(begins).as_nanos() * blocks / length;
                buffer.advance(ahead.segment, run.first.0 + read.min(blocks));
                buffer.aheads[arm] = Some(ahead);
                return;
            }
            let next = run.first.0 + blocks;
            buffer.advance(ahead.segment, next);
            ahead.reach(next, ends, SeekTarget::from(&run).position);
        }
        // The look-ahead has reached its limit, and the arm stays there.
        arms[arm].position = ahead.position;
        buffer.aheads[arm] = None;
    }

    /// Keeps the look-ahead that has begun after a read of `extent` until the drive gives it up, if
    /// it delays the next command.
    pub(super) fn hold_ahead(&mut self, arm: usize, extent: Extent, from: Position) {
        let DriveService {
            truth, arms, luck, ..
        } = self;
        let Some(ahead) = self.buffer.aheads[arm] else {
            return;
        };
        let blocks = luck.held_look_ahead(|| from == ahead.position);
        if blocks == 0 {
            return;
        }
        let Some(track) = truth.geometry.track_of(extent.last()) else {
            return;
        };
        let left = (track.last.0 + 1).min(ahead.limit);
        let left = left.saturating_sub(extent.end().0).min(u64::from(blocks));
        let sector = truth.spindle.time_of(track.width);
        arms[arm].ahead_until = arms[arm].free_at + sector * left;
    }

    /// Ends an arm's look-ahead at its current position, or where the drive gives it up. An arm that
    /// is moving to another track is free when it has settled there.
    pub(super) fn stop_ahead(&mut self, arm: usize, now: Instant) {
        let held = self.arms[arm].ahead_until;
        let now = match held > now && self.buffer.aheads[arm].is_some() {
            true => {
                let arm = &mut self.arms[arm];
                arm.free_at = arm.free_at.max(held);
                held
            }
            false => now,
        };
        self.follow_ahead(arm, now);
        let Some(ahead) = self.buffer.aheads[arm].take() else {
            return;
        };
        let arm = &mut self.arms[arm];
        arm.position = ahead.position;
        // `follow_ahead` has computed its track.
        let Some((run, _)) = ahead.part.filter(|_| now > ahead.at) else {
            return;
        };
        let target = SeekTarget::from(&run).position;
        let seek = self
            .truth
            .reposition(ahead.position, target, Direction::Read);
        arm.position = target;
        arm.free_at = arm.free_at.max(ahead.at + seek);
    }

    /// Empties the least recently used segment for other blocks; `None` if there is no buffer.
    pub(super) fn recycle(&mut self, now: Instant) -> Option<usize> {
        let index = self.buffer.oldest()?;
        self.empty(index, now);
        Some(index)
    }

    /// Empties a segment, and ends its look-ahead.
    pub(super) fn empty(&mut self, index: usize, now: Instant) {
        if let Some(arm) = self.buffer.arm_filling(index) {
            self.stop_ahead(arm, now);
        }
        self.buffer.empty(index);
    }
}
