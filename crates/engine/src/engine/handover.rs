//! From one command to the next: when it is given to the drive, and when the bus is free for its blocks.

use block::{Direction, Duration, Instant};
use scheduler::freeblock::SlowBus;

use super::Engine;
use crate::forecast::{Head, Route};

impl Engine {
    /// The earliest start of a request's positioning, if a free read comes before it: it is given
    /// to the drive when a command has ended.
    pub(super) fn follows(&self, now: Instant, head: &Head, direction: Direction) -> Instant {
        let last = self.at_drive.back().and_then(|sent| sent.route.as_ref());
        let given = match last {
            Some(route) if self.at_drive.len() + 1 >= self.limits.commands_at_drive => {
                let pass = drive::mechanics::Pass {
                    transfer: route.sweep(&self.belief),
                    ..Default::default()
                };
                let ends = head.free + route.tail(&self.belief, &pass);
                match (self.slow_block(), route.direction()) {
                    (Some(_), Direction::Read) => {
                        let carried = route.carried(&self.belief, head.free, now);
                        ends.max(carried + self.belief.overheads.read_completion)
                    }
                    _ => ends,
                }
            }
            _ => now,
        };
        given + self.electronics(direction)
    }

    /// The bus between the command before and a request whose first sector comes at `begins`, if it
    /// is slower than the medium.
    pub(super) fn slow_bus(
        &self,
        now: Instant,
        head: &Head,
        route: &Route,
        begins: Instant,
    ) -> Option<SlowBus> {
        let block = self.slow_block()?;
        let last = self.at_drive.back().and_then(|sent| sent.route.as_ref());
        let free = last.map_or(now, |last| last.carried(&self.belief, head.free, now));
        let needed = match route.direction() {
            Direction::Read => begins + route.held(&self.belief),
            Direction::Write => begins.saturating_sub(route.lag(&self.belief)),
        };
        Some(SlowBus {
            block,
            free,
            needed,
        })
    }

    /// For how long a bus that is slower than the medium carries a block.
    fn slow_block(&self) -> Option<Duration> {
        self.background.as_ref()?.slow_bus()
    }

    /// From the end of a free read on the medium until a request that is given to the drive at
    /// its completion can begin: the read's last block goes over the bus first.
    pub(super) fn handover(&self, direction: Direction) -> Duration {
        let tail = self.belief.bus.read_block + self.belief.overheads.read_completion;
        tail + self.electronics(direction)
    }

    /// What the electronics take before a request that comes after a read.
    fn electronics(&self, direction: Direction) -> Duration {
        let overheads = &self.belief.overheads;
        match direction {
            Direction::Read => overheads.read_miss.read,
            Direction::Write => overheads.write_miss.read,
        }
    }
}
