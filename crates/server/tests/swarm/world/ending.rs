//! What comes after the last step, and at a stop of the service between two steps.

use block::Durability;
use block::operation::Ask;
use nbd::Style;
use server::event_loop::EventLoop;
use server::status::Mode;

use super::World;
use crate::fickle::Fails;
use crate::legs::Refill;
use crate::plan::Action;
use crate::scrub::{self, Next, PassLook};
use crate::straying::{Straying, Writes};

/// Blocks of one read at the end.
const CHUNK: u64 = 512;

/// What comes after the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// All clients leave.
    Leaving,
    /// A leg of a mirror is filled.
    Filling,
    /// The drive strays from its belief, and returns.
    Straying,
    /// All blocks from this one on are read.
    Reading(u64),
    /// A service for a scrub.
    Scrubbing,
    Stopping,
}

impl World {
    /// After the last step. The answer is whether anything was done.
    pub(super) fn end(&mut self, now: u64) -> bool {
        let end = self.reloads.blocks();
        match self.phase {
            Phase::Running if self.failing_until.is_some() => false,
            // Readers of streams read to the end of their files.
            Phase::Running if self.streams.next_time().is_some() => false,
            Phase::Running if self.films.next_time().is_some() => false,
            Phase::Running if !self.reloads.is_settled() => false,
            Phase::Running => {
                (0..self.clients.len()).for_each(|who| self.clients[who].close_half());
                self.streams.end(&self.mailbox);
                self.films.end(&self.mailbox);
                if self.checked.is_some() {
                    scrub::assert_sound(&self.mailbox);
                }
                self.numbers += 1;
                let doors = (&self.mailbox, &self.told);
                self.moments
                    .read(self.numbers, (0, self.setting.blocks), doors);
                // Blocks that were past the end have what the medium has. A checkpoint keeps the length.
                self.reloads
                    .resize(self.setting.blocks, &self.setting, doors);
                self.phase = Phase::Leaving;
                true
            }
            Phase::Leaving if self.are_all_gone() && self.setting.mirrored => {
                self.refill = Refill::begin(now);
                self.phase = Phase::Filling;
                true
            }
            Phase::Leaving
                if self.are_all_gone() && self.setting.strays && self.straying.is_none() =>
            {
                self.stray(now);
                true
            }
            Phase::Leaving if self.are_all_gone() => {
                self.read_all();
                true
            }
            Phase::Straying => self.go_on_straying(now),
            Phase::Filling => self.refill.look(now, (&self.mailbox, &self.told)),
            // A late power cut has cut the reader off.
            Phase::Reading(_) if self.clients.is_empty() => {
                self.phase = Phase::Leaving;
                true
            }
            Phase::Reading(first) if first < end && self.clients[0].under_way() == 0 => {
                let known = self.clients[0].failures;
                let chunk = (first, CHUNK.min(end - first));
                let (wait, _) = self.ask(Ask::Read, chunk, known, now);
                self.clients[0].submit(wait, Ask::Read, chunk, &[]);
                self.phase = Phase::Reading(first + chunk.1);
                true
            }
            Phase::Reading(first) if first == end && self.clients[0].under_way() == 0 => {
                self.stop();
                true
            }
            Phase::Scrubbing => self.scrub(now),
            _ => false,
        }
    }

    /// A client reads all blocks.
    fn read_all(&mut self) {
        self.connect(Style::Structured);
        self.phase = Phase::Reading(0);
    }

    /// Whether a leg of the mirror is being filled was told.
    pub(super) fn filled(&mut self, now: u64, is_filled: bool) {
        if self.refill.seen(now, is_filled) && self.phase == Phase::Filling {
            self.read_all();
        }
    }

    /// The drive strays from its belief, beside writes of a client and a scan.
    fn stray(&mut self, now: u64) {
        // Batches of streams may be late from now on.
        self.hung_until = now;
        *self.broken[0].lock().expect("a mood") = Fails::Strays;
        self.straying = Some(Straying::begin(self.numbers));
        self.connect(Style::Structured);
        if self.setting.background {
            self.act(Action::Scan, now);
        }
        self.phase = Phase::Straying;
    }

    /// Writes on. The answer is whether anything was done.
    fn go_on_straying(&mut self, now: u64) -> bool {
        let straying = self.straying.as_mut().expect("it strays");
        let blocks = self.reloads.blocks();
        let under_way = self.clients[0].under_way();
        match straying.next(blocks, under_way, (&self.mailbox, &self.told)) {
            Writes::Nothing => false,
            Writes::Looks => true,
            Writes::Sector(sector) => {
                let durability = Durability::Durable;
                self.submit(0, Ask::Write { durability }, sector, now);
                true
            }
            Writes::Over => {
                self.phase = Phase::Reading(0);
                true
            }
        }
    }

    /// The belief is used in this mode.
    pub(super) fn seen_in(&mut self, mode: Mode) {
        let straying = self.straying.as_mut().expect("it strays");
        if straying.seen(mode) {
            self.counts.strayed += 1;
            *self.broken[0].lock().expect("a mood") = Fails::Nothing;
        }
    }

    fn stop(&mut self) {
        let stopped = self.mailbox.call(EventLoop::stop);
        stopped.expect("it runs");
        self.clients[0].close_half();
        self.phase = Phase::Stopping;
    }

    /// Another service begins for a scrub. The answer is the block that changes before.
    pub fn begin_scrub(&mut self) -> Option<u64> {
        let blocks = self.reloads.blocks();
        let (_, scrub) = self.checked.as_mut().expect("checksums");
        let changed = scrub.begin(blocks);
        if let Some(block) = changed {
            self.history.change(block, scrub::CHANGED);
        }
        self.connect(Style::Structured);
        self.phase = Phase::Scrubbing;
        changed
    }

    /// Goes on with a scrub. The answer is whether anything was done.
    fn scrub(&mut self, now: u64) -> bool {
        let is_reading = self.clients[0].under_way() > 0;
        let doors = (&self.mailbox, &self.told);
        let (_, scrub) = self.checked.as_mut().expect("checksums");
        match scrub.act(now, is_reading, doors) {
            Next::Nothing => return false,
            Next::Done => (),
            Next::Read(first) => {
                let known = self.clients[0].failures;
                let chunk = (first, scrub::CHUNK);
                if let Some(chunk) = self.clients[0].within(chunk) {
                    let (wait, _) = self.ask(Ask::Read, chunk, known, now);
                    self.clients[0].submit(wait, Ask::Read, chunk, &[]);
                }
            }
            Next::Stop => self.stop(),
        }
        true
    }

    /// A look at a scrub.
    pub(super) fn looked(&mut self, now: u64, look: &PassLook) {
        let (_, scrub) = self.checked.as_mut().expect("checksums");
        if let Some(is_found) = scrub.looked(now, look) {
            self.counts.scrubs += 1;
            self.counts.found += u64::from(is_found);
        }
    }

    fn are_all_gone(&self) -> bool {
        let are_answered =
            self.posted.is_empty() && self.moments.are_idle() && self.films.are_idle();
        are_answered
            && self.reloads.is_settled()
            && self.clients.is_empty()
            && self.departed.is_empty()
    }

    /// Everything has ended.
    pub fn assert_over(&self) {
        assert_eq!(self.phase, Phase::Stopping);
        assert!(self.posted.is_empty(), "an operation was never answered");
    }
}
