//! The flow of blocks between medium and host: the slower side sets the pace.
//!
//! ```text
//!   medium   |==1==|==2==|==3==|            |==4==|==5==|        (a track crossing between 3 and 4)
//!   bus            |=1=| |=2=| |=3=|              |=4=| |=5=|
//! ```
//!
//! Block `k` of `n` may start on the bus when the medium has delivered it, and the bus needs
//! `per_block` for each, in order. The last block therefore leaves at the maximum over all `k` of
//! ready(k) + (n - k + 1) * per_block. Within one pass ready(k) is linear in `k`, so that only the
//! first and the last block of each pass can be the maximum.

use block::{Duration, Instant};

use crate::mechanics::Pass;

/// The transfer of a read from the medium to the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadFlow {
    per_block: Duration,
    /// The number of the command's blocks.
    total: u64,
    /// The number of delivered blocks.
    delivered: u64,
    /// The number of delivered blocks at which the bus begins.
    watermark: u64,
    /// The start of the bus transfer.
    bus_begins: Instant,
    /// The time to reconnect to the bus.
    reselect: Duration,
    /// The maximum of ready(k) + (n - k + 1) * per_block.
    ends: Instant,
}

impl ReadFlow {
    /// A read of `total` blocks. The bus is free from `bus_free` on, and begins when
    /// `watermark_permille` of the blocks are delivered.
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

    /// The flow of a drive that disconnects from the bus while the medium works.
    pub(crate) fn with_reselect(self, reselect: Duration) -> Self {
        ReadFlow { reselect, ..self }
    }

    /// The flow through a buffer of `blocks` blocks, which limit the watermark.
    pub(crate) fn within(self, blocks: u64) -> Self {
        ReadFlow {
            watermark: self.watermark.min(blocks.max(1)),
            ..self
        }
    }

    /// Delivers blocks that the buffer held at `at`.
    pub(crate) fn buffered(&mut self, blocks: u64, at: Instant) {
        self.block_ready(1, at);
        self.passed_watermark(blocks, at);
        self.delivered += blocks;
    }

    /// Delivers `blocks` blocks of a pass whose first wanted sector begins at `start`.
    pub(crate) fn pass(&mut self, start: Instant, pass: &Pass, blocks: u64) {
        let first = u64::from(pass.wrapped_blocks);
        if first > 0 {
            // The bus needs them in order: the first ones pass last, after all others.
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
            let at = match needed {
                1 => first,
                _ => start + Duration::from_nanos((took * needed).div_ceil(blocks)),
            };
            self.passed_watermark(needed, at);
        }
        self.block_ready(1, first);
        self.block_ready(blocks, last);
        self.delivered += blocks;
    }

    /// The end of the last block on the bus.
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

/// The transfer of a write from the host to the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteFlow {
    per_block: Duration,
    bus_begins: Instant,
    /// The earliest start of the medium.
    watermark_at: Instant,
}

impl WriteFlow {
    /// A write of `total` blocks whose bus transfer begins at `bus_begins`.
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

    /// The flow through a buffer of `blocks` blocks, which limit the watermark.
    pub(crate) fn within(self, blocks: u64) -> Self {
        let full = self.bus_begins + self.per_block * blocks.max(1);
        WriteFlow {
            watermark_at: self.watermark_at.min(full),
            ..self
        }
    }

    /// The moment at which the first `blocks` blocks are in the buffer, and the medium may begin.
    pub(crate) fn arrived(&self, blocks: u64) -> Instant {
        (self.bus_begins + self.per_block * blocks).max(self.watermark_at)
    }

    /// The earliest start of a pass of length `transfer` at which each of its `blocks` blocks, which
    /// follow `before` others, arrives before its sector.
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
