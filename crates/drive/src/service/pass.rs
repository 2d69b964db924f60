//! The actual pass over a track, with imperfections, and all passes of an extent.

use block::{Direction, Duration, Extent, Instant};

use super::{Actuator, DriveService, Travel};
use crate::flow::{ReadFlow, WriteFlow};
use crate::geometry::TrackExtent;
use crate::imperfection::{Luck, Mishap, PassDirection};
use crate::mechanics::{Pass, Position, SeekTarget};
use crate::profile::Profile;

/// The arm in use inside a command, and the moment at which it continues.
#[derive(Clone, Copy, Debug)]
struct CurrentArm {
    arm: usize,
    at: Instant,
}

impl CurrentArm {
    /// Continues on this arm, which may be another one. Returns the time until that arm is free.
    fn change_to(&mut self, arm: usize, arms: &mut [Actuator]) -> Duration {
        if arm == self.arm {
            return Duration::ZERO;
        }
        arms[self.arm].free_at = self.at;
        let at = self.at.max(arms[arm].free_at);
        let waited = at.since(self.at);
        *self = CurrentArm { arm, at };
        waited
    }
}

/// The pass over a run by a head that leaves `from` at `ready`.
pub(super) fn pass(
    truth: &Profile,
    luck: &mut Luck,
    (from, ready): (Position, Instant),
    run: &TrackExtent,
    direction: Direction,
) -> Pass {
    let position = SeekTarget::from(run).position;
    let ideal = truth.reposition(from, position, direction);
    let seek = luck.seek(ideal);
    let there = on_track(truth, ready + seek, run, direction);
    Pass { seek, ..there }
}

/// The pass of a head that is on the track.
fn on_track(truth: &Profile, ready: Instant, run: &TrackExtent, direction: Direction) -> Pass {
    let zero_latency = match direction {
        Direction::Read => truth.buffer.zero_latency_read,
        Direction::Write => truth.buffer.zero_latency_write,
    };
    if zero_latency {
        truth.pass_on_track_zero_latency(ready, run)
    } else {
        truth.pass_on_track(ready, run)
    }
}

/// The disturbance of a pass.
pub(super) fn mishap(
    truth: &Profile,
    luck: &mut Luck,
    (run, pass): (&TrackExtent, &Pass),
    reading: PassDirection,
) -> Mishap {
    if luck.is_perfect() {
        return Mishap::default();
    }
    luck.pass((run, pass), reading, truth.spindle.period())
}

impl DriveService {
    /// Reads an extent from the medium into the flow, from `ready` on.
    pub(super) fn fetch(
        &mut self,
        extent: Extent,
        ready: Instant,
        taken: Instant,
        flow: &mut ReadFlow,
    ) -> Travel {
        let (mut current, mut travel) = self.set_out(extent, ready, taken);
        let DriveService {
            truth,
            arms,
            luck,
            after_read,
            ..
        } = self;
        let mut runs = truth.geometry.runs(extent);
        while let Some(run) = runs.next_part() {
            travel.waited += current.change_to(truth.actuator_of(run.first), arms);
            let from = (arms[current.arm].position, current.at);
            let pass = pass(truth, luck, from, run, Direction::Read);
            let mishap = mishap(truth, luck, (run, &pass), PassDirection::Reads);
            travel.add(&pass, mishap);
            let start = current.at + pass.seek + pass.rotation + mishap.lost;
            flow.pass(start, &pass, u64::from(run.blocks));
            current.at += pass.total() + mishap.lost;
            arms[current.arm].position = SeekTarget::from(run).position;
            if mishap.unreadable.is_some() {
                break;
            }
        }
        *after_read = (extent.end(), runs.track());
        arms[current.arm].free_at = current.at;
        self.keep_turn(extent);
        travel
    }

    /// Writes an extent to the medium, from `ready` on, as the flow delivers its data. Returns the
    /// travel, and the moments at which the first sector begins and the last one ends.
    pub(super) fn put(
        &mut self,
        extent: Extent,
        ready: Instant,
        taken: Instant,
        flow: &WriteFlow,
    ) -> (Travel, [Instant; 2]) {
        let (mut current, mut travel) = self.set_out(extent, ready, taken);
        let DriveService {
            truth, arms, luck, ..
        } = self;
        let sector = u64::from(truth.physical_block_bytes / truth.block_bytes.max(1));
        if luck.reads_first(extent, sector) {
            // The sector is read in the first pass, and written in the next.
            let turn = truth.spindle.period();
            current.at += turn;
            travel.rotation += turn;
        }
        let mut before = 0;
        let mut begins = None;
        let mut runs = truth.geometry.runs(extent);
        while let Some(run) = runs.next_part() {
            travel.waited += current.change_to(truth.actuator_of(run.first), arms);
            let from = (arms[current.arm].position, current.at);
            let pass = pass(truth, luck, from, run, Direction::Write);
            let pass = with_data(truth, flow, before, run, current.at, pass);
            let mishap = mishap(truth, luck, (run, &pass), PassDirection::Writes);
            travel.add(&pass, mishap);
            begins = begins.or(Some(current.at + pass.seek + pass.rotation));
            current.at += pass.total() + mishap.lost;
            arms[current.arm].position = SeekTarget::from(run).position;
            before += u64::from(run.blocks);
        }
        arms[current.arm].free_at = current.at;
        (travel, [begins.unwrap_or(current.at), current.at])
    }

    /// Makes later commands wait until the arms of an extent are free.
    pub(super) fn keep_turn(&mut self, extent: Extent) {
        let (first, last) = (self.arm_of(extent.start()), self.arm_of(extent.last()));
        for arm in &mut self.arms[first..last + 1] {
            arm.turn = arm.free_at;
        }
    }

    /// Ends the look-aheads of an extent's arms. Returns its first arm with its start, and the wait.
    fn set_out(&mut self, extent: Extent, ready: Instant, taken: Instant) -> (CurrentArm, Travel) {
        let arm = self.arm_of(extent.start());
        for arm in arm..self.arm_of(extent.last()) + 1 {
            self.stop_ahead(arm, taken);
        }
        let at = ready.max(self.arms[arm].free_at);
        let travel = Travel {
            waited: at.since(ready),
            ..Travel::default()
        };
        (CurrentArm { arm, at }, travel)
    }
}

/// A write's pass that begins at `at`, delayed until its data arrive.
fn with_data(
    truth: &Profile,
    flow: &WriteFlow,
    before: u64,
    run: &TrackExtent,
    at: Instant,
    pass: Pass,
) -> Pass {
    let blocks = u64::from(run.blocks);
    let sweep = truth.spindle.time_of(run.sweep);
    let earliest = |pass: &Pass| {
        // The wrapped beginning passes last, and its data have arrived by then.
        let first = u64::from(pass.wrapped_blocks);
        let rest = sweep.saturating_sub(pass.wrapped);
        flow.earliest(before + first, blocks - first, rest)
    };
    let on_track = at + pass.seek;
    let late = earliest(&pass);
    if on_track + pass.rotation >= late {
        return pass;
    }
    // The sector arrives a revolution later, or another one is first.
    let later = |from: Instant| {
        let there = self::on_track(truth, from.max(on_track), run, Direction::Write);
        let rotation = from.max(on_track).since(on_track) + there.rotation;
        Pass {
            seek: pass.seek,
            rotation,
            ..there
        }
    };
    let again = later(late);
    if on_track + again.rotation >= earliest(&again) {
        return again;
    }
    later(flow.arrived(before + blocks))
}
