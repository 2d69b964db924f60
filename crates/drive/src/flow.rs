//! Blocks flow between medium and host, and the slower side sets the pace.
//!
//! ```text
//!   medium   |==1==|==2==|==3==|            |==4==|==5==|        (a track crossing between 3 and 4)
//!   bus            |=1=| |=2=| |=3=|              |=4=| |=5=|
//! ```
//!
//! Block `k` of `n` can start on the bus when the medium has delivered it, and the bus takes
//! `per_block` for each, in order. So the last one leaves at the latest of, over all `k`:
//! ready(k) + (n - k + 1) * per_block. Within one pass ready(k) is linear in `k`, so that only
//! the first and the last block of each pass can be that latest one.

use block::{Duration, Instant};

use crate::mechanics::Pass;

/// A read on its way from the medium to the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadFlow {
    per_block: Duration,
    /// Blocks of the command.
    total: u64,
    /// Blocks delivered so far.
    delivered: u64,
    /// The block whose delivery lets the bus begin.
    watermark: u64,
    /// When the bus begins.
    bus_begins: Instant,
    /// Coming back to the bus after the medium's turn.
    reselect: Duration,
    /// The latest of ready(k) + (n - k + 1) * per_block.
    ends: Instant,
}

impl ReadFlow {
    /// A read of `total` blocks; the bus is free for it from `bus_free`, and begins when
    /// `watermark_permille` of the blocks are there.
    pub(crate) fn new(
        total: u64,
        per_block: Duration,
        watermark_permille: u16,
        bus_free: Instant,
    ) -> Self {
        ReadFlow {
            per_block,
            total,
            delivered: 0,
            watermark: (total * u64::from(watermark_permille) / 1000).max(1),
            bus_begins: bus_free,
            reselect: Duration::ZERO,
            ends: bus_free,
        }
    }

    /// The same for a drive that leaves the bus while the medium works.
    pub(crate) fn with_reselect(self, reselect: Duration) -> Self {
        ReadFlow { reselect, ..self }
    }

    /// The same through a buffer that holds so many blocks: more of them cannot wait for the bus.
    pub(crate) fn within(self, blocks: u64) -> Self {
        ReadFlow {
            watermark: self.watermark.min(blocks.max(1)),
            ..self
        }
    }

    /// Blocks that the buffer had at `at`.
    pub(crate) fn buffered(&mut self, blocks: u64, at: Instant) {
        self.block_ready(1, at);
        self.passed_watermark(blocks, at);
        self.delivered += blocks;
    }

    /// A pass that begins at `start` with its first wanted sector delivers `blocks`.
    pub(crate) fn pass(&mut self, start: Instant, pass: &Pass, blocks: u64) {
        let first = u64::from(pass.wrapped_blocks);
        if first > 0 {
            // The bus takes them in order: the first ones come last, then all others are there.
            let comes_round = start + pass.transfer.saturating_sub(pass.wrapped);
            let beginning = Pass {
                transfer: pass.wrapped,
                ..Pass::default()
            };
            self.pass(comes_round, &beginning, first);
            self.buffered(blocks - first, start + pass.transfer);
            return;
        }
        let took = pass.transfer.as_nanos();
        let first = start + Duration::from_nanos(took.div_ceil(blocks));
        let last = start + pass.transfer;
        let needed = self.watermark.saturating_sub(self.delivered);
        if (1..=blocks).contains(&needed) {
            let at = start + Duration::from_nanos((took * needed).div_ceil(blocks));
            self.passed_watermark(needed, at);
        }
        self.block_ready(1, first);
        self.block_ready(blocks, last);
        self.delivered += blocks;
    }

    /// When the last block has left.
    pub(crate) fn end(&self) -> Instant {
        self.ends.max(self.bus_begins + self.per_block * self.total)
    }

    fn block_ready(&mut self, ahead: u64, at: Instant) {
        let left = self.total - (self.delivered + ahead) + 1;
        self.ends = self.ends.max(at + self.per_block * left);
    }

    fn passed_watermark(&mut self, blocks: u64, at: Instant) {
        if self.delivered < self.watermark && self.delivered + blocks >= self.watermark {
            self.bus_begins = self.bus_begins.max(at + self.reselect);
        }
    }
}

/// A write on its way from the host to the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteFlow {
    per_block: Duration,
    bus_begins: Instant,
    /// When the medium may begin.
    watermark_at: Instant,
}

impl WriteFlow {
    /// A write of `total` blocks whose data come over the bus from `bus_begins` on.
    pub(crate) fn new(
        total: u64,
        per_block: Duration,
        watermark_permille: u16,
        bus_begins: Instant,
    ) -> Self {
        let needed = (total * u64::from(watermark_permille) / 1000).max(1);
        WriteFlow {
            per_block,
            bus_begins,
            watermark_at: bus_begins + per_block * needed,
        }
    }

    /// The same through a buffer that holds so many blocks: more of them cannot wait for the
    /// medium.
    pub(crate) fn within(self, blocks: u64) -> Self {
        let full = self.bus_begins + self.per_block * blocks.max(1);
        WriteFlow {
            watermark_at: self.watermark_at.min(full),
            ..self
        }
    }

    /// When all data of the first `blocks` have come over the bus.
    pub(crate) fn arrived(&self, blocks: u64) -> Instant {
        (self.bus_begins + self.per_block * blocks).max(self.watermark_at)
    }

    /// The earliest moment at which a pass that takes `transfer` may begin so that none of its
    /// `blocks`, which follow `before` others, is missing when its sector comes.
    pub(crate) fn earliest(&self, before: u64, blocks: u64, transfer: Duration) -> Instant {
        let first = self.bus_begins + self.per_block * (before + 1);
        let last = self.bus_begins + self.per_block * (before + blocks);
        let took = transfer.as_nanos();
        let until_last = Duration::from_nanos(took - took / blocks);
        let held_by_last = last.saturating_sub(until_last);
        first.max(held_by_last).max(self.watermark_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(n: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(n)
    }

    fn transfer(n: u64) -> Pass {
        Pass {
            transfer: Duration::from_micros(n),
            ..Pass::default()
        }
    }

    /// The definition, block by block.
    fn oracle(passes: &[(u64, u64, u64)], per_block: u64, watermark: u64, free: u64) -> u64 {
        let mut ready = Vec::new();
        for &(start, took, blocks) in passes {
            ready.extend((1..=blocks).map(|k| start * 1000 + (took * 1000 * k).div_ceil(blocks)));
        }
        let needed = (ready.len() as u64 * watermark / 1000).max(1);
        let mut bus = (free * 1000).max(ready[needed as usize - 1]);
        for at in ready {
            bus = bus.max(at) + per_block * 1000;
        }
        bus
    }

    #[test]
    fn the_bus_ends_when_a_block_by_block_count_says() {
        let passes = [(1_000, 640, 8), (3_000, 500, 5), (3_600, 90, 1)];
        for per_block in [0, 20, 80, 100, 400] {
            for watermark in [0, 300, 500, 750, 1000] {
                for free in [0, 1_500, 9_000] {
                    let mut flow = ReadFlow::new(
                        14,
                        Duration::from_micros(per_block),
                        watermark,
                        micros(free),
                    );
                    for &(start, took, blocks) in &passes {
                        flow.pass(micros(start), &transfer(took), blocks);
                    }
                    let expected = oracle(&passes, per_block, u64::from(watermark), free);
                    assert_eq!(
                        flow.end().as_nanos(),
                        expected,
                        "{per_block} {watermark} {free}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_write_waits_for_the_block_that_comes_last() {
        let flow = WriteFlow::new(10, Duration::from_micros(100), 0, micros(1_000));
        // Sectors pass in 50 us, blocks come every 100 us: the tenth is there at 2000 us and its
        // sector begins 450 us after the first.
        assert_eq!(
            flow.earliest(0, 10, Duration::from_micros(500)),
            micros(1_550)
        );
        // Sectors pass in 200 us: the first block sets the beginning.
        assert_eq!(
            flow.earliest(0, 10, Duration::from_micros(2_000)),
            micros(1_100)
        );
        let held = WriteFlow::new(10, Duration::from_micros(100), 1000, micros(1_000));
        assert_eq!(
            held.earliest(0, 10, Duration::from_micros(2_000)),
            micros(2_000)
        );
    }
}
