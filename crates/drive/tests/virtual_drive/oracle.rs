//! A drive of one zone without a buffer, block by block, written as naively as possible.
//!
//! Everything on the small drive is a whole number of nanoseconds, so that the two may differ by
//! rounding only: `SLACK_NANOS`.

use block::Action;
use drive::VirtualDrive;
use proptest::prelude::*;

use crate::play::Play;
use crate::small::*;

/// What a head may be late at a sector without missing it.
const LATE_NANOS: u64 = 16;

/// Twice that: the real one may begin so much late, and end so much late.
const SLACK_NANOS: u64 = 2 * LATE_NANOS;

/// What the naive drive knows of itself.
struct Naive {
    cylinder: u64,
    head: u64,
    /// The last command was a write.
    wrote: bool,
    /// During a command the head was at a sector so nearly too late that rounding says whether it missed it.
    is_near_miss: bool,
}

impl Naive {
    /// Serves a command that is submitted at `now`; answers when it ends.
    fn serve(&mut self, now: u64, action: Action) -> u64 {
        self.is_near_miss = false;
        match action {
            Action::Read { extent, .. } => {
                let overhead = if self.wrote { 340_000 } else { 300_000 };
                self.wrote = false;
                let mut medium = now + overhead;
                let mut bus = medium;
                for lba in extent.start().0..extent.end().0 {
                    medium = self.sector(medium, lba, 0);
                    bus = bus.max(medium) + 100_000;
                }
                bus + 50_000
            }
            Action::Write { extent, .. } => {
                let overhead = if self.wrote { 460_000 } else { 400_000 };
                self.wrote = true;
                let mut medium = now + overhead;
                let mut bus = medium;
                for lba in extent.start().0..extent.end().0 {
                    bus += 100_000;
                    medium = self.moved(medium, lba, 200_000);
                    medium = self.sector(medium.max(bus), lba, 200_000);
                }
                medium + 60_000
            }
            Action::Seek { to } => {
                let overhead = if self.wrote { 340_000 } else { 300_000 };
                self.moved(now + overhead, to.0, 0)
            }
            _ => unreachable!("not asked of the naive drive"),
        }
    }

    /// Moves to a block's track; answers when the head is there.
    fn moved(&mut self, now: u64, lba: u64, settle: u64) -> u64 {
        let track = lba / TRACK;
        let (cylinder, head) = (track / SURFACES, track % SURFACES);
        let distance = cylinder.abs_diff(self.cylinder);
        let seek = match distance {
            0 => 0,
            d => 2_000_000 + 200_000 * (d - 1),
        };
        let switch = if head == self.head { 0 } else { 1_000_000 };
        let settle = if distance == 0 && head == self.head {
            0
        } else {
            settle
        };
        (self.cylinder, self.head) = (cylinder, head);
        now + seek.max(switch) + settle
    }

    /// Moves to a block and passes over it; answers when it has passed.
    fn sector(&mut self, now: u64, lba: u64, settle: u64) -> u64 {
        let there = self.moved(now, lba, settle);
        // 3 sectors of skew to the second surface, 3 + 5 from cylinder to cylinder.
        let skew = self.cylinder * 8 + self.head * 3;
        let begins = (lba % TRACK + skew) % TRACK * SECTOR;
        let angle = there % REVOLUTION;
        let late = (angle + REVOLUTION - begins) % REVOLUTION;
        self.is_near_miss |= (1..SLACK_NANOS).contains(&late);
        let wait = if late <= LATE_NANOS {
            0
        } else {
            REVOLUTION - late
        };
        there + wait + SECTOR
    }
}

/// Commands of the naive drive, and how long the client thinks before each of them.
fn commands() -> impl Strategy<Value = Vec<(u64, Action)>> {
    let one = (0..4u8, 0..BLOCKS, 1..50u64).prop_map(|(kind, start, blocks)| {
        let blocks = blocks.min(BLOCKS - start);
        match kind {
            0 | 1 => read(start, blocks),
            2 => write(start, blocks),
            _ => seek(start),
        }
    });
    prop::collection::vec((0..30_000_000u64, one), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_commands_take_as_long_as_block_by_block(commands in commands()) {
        let mut play = Play::new(VirtualDrive::new(arc(bare())));
        let mut naive = Naive { cylinder: 0, head: 0, wrote: false, is_near_miss: false };
        for (think, action) in commands {
            let now = play.now + block::Duration::from_nanos(think);
            let expected = naive.serve(now.as_nanos(), action);
            let done = play.serve(now, action);
            let off = done.outcome.at.as_nanos().abs_diff(expected);
            let is_missed = naive.is_near_miss && off.abs_diff(REVOLUTION) <= SLACK_NANOS;
            prop_assert!(off <= SLACK_NANOS || is_missed, "{action:?} at {now:?}: {off} ns off");
        }
    }
}
