//! What comes after the last step, and at a stop of the service between two steps.

use block::operation::Ask;
use nbd::Style;
use server::event_loop::EventLoop;

use super::World;
use crate::run::BLOCKS;

/// Blocks of one read at the end.
const CHUNK: u64 = 512;

/// What comes after the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// All clients leave.
    Leaving,
    /// All blocks from this one on are read.
    Reading(u64),
    Stopping,
}

impl World {
    /// After the last step. The answer is whether anything was done.
    pub(super) fn end(&mut self, now: u64) -> bool {
        match self.phase {
            Phase::Running if self.failing_until.is_some() => false,
            // Readers of streams read to the end of their files.
            Phase::Running if self.streams.next_time().is_some() => false,
            Phase::Running => {
                (0..self.clients.len()).for_each(|who| self.clients[who].close_half());
                self.streams.end(&self.mailbox);
                self.numbers += 1;
                let doors = (&self.mailbox, &self.told);
                self.moments.read(self.numbers, (0, BLOCKS), doors);
                self.phase = Phase::Leaving;
                true
            }
            Phase::Leaving if self.are_all_gone() => {
                self.connect(Style::Structured);
                self.phase = Phase::Reading(0);
                true
            }
            // A late power cut has cut the reader off.
            Phase::Reading(_) if self.clients.is_empty() => {
                self.phase = Phase::Leaving;
                true
            }
            Phase::Reading(first) if first < BLOCKS && self.clients[0].under_way() == 0 => {
                let known = self.clients[0].failures;
                let (wait, _) = self.ask(Ask::Read, (first, CHUNK), known, now);
                self.clients[0].submit(wait, Ask::Read, (first, CHUNK), &[]);
                self.phase = Phase::Reading(first + CHUNK);
                true
            }
            Phase::Reading(BLOCKS) if self.clients[0].under_way() == 0 => {
                let stopped = self.mailbox.call(EventLoop::stop);
                stopped.expect("it runs");
                self.clients[0].close_half();
                self.phase = Phase::Stopping;
                true
            }
            _ => false,
        }
    }

    fn are_all_gone(&self) -> bool {
        let are_answered = self.posted.is_empty() && self.moments.are_idle();
        are_answered && self.clients.is_empty() && self.departed.is_empty()
    }

    /// Everything has ended.
    pub fn assert_over(&self) {
        assert_eq!(self.phase, Phase::Stopping);
        assert!(self.posted.is_empty(), "an operation was never answered");
    }
}
