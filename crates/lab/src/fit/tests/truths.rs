//! Traces as they would be measured on a drive that is exactly as a profile says.

use std::ops::Range;
use std::sync::Arc;

use block::{
    Action, Command, CommandId, Direction, Durability, Duration, Extent, Instant, Lba, Sectors,
};
use drive::{Profile, VirtualDrive};

use crate::validate::Sample;
use simulator::driver::serve_alone;
use simulator::workload::dice::Dice;

/// What the clock of a trace is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clockwork {
    /// Ticks of a microsecond, measured with up to two of noise.
    Steady,
    /// The same, but it stops for up to two revolutions while the host thinks.
    Jumping,
}

/// A closed load on all of a drive: random, sequential and local requests, one after the other.
pub fn measured(truth: &Profile, requests: usize, clock: Clockwork) -> Vec<Sample> {
    let all = 0..truth.geometry.sectors().0;
    measured_within(truth, requests, clock, std::slice::from_ref(&all))
}

/// The same on some ranges of its blocks.
pub fn measured_within(
    truth: &Profile,
    requests: usize,
    clock: Clockwork,
    ranges: &[Range<u64>],
) -> Vec<Sample> {
    let mut drive = VirtualDrive::new(Arc::new(truth.clone()));
    let mut dice = Dice::new(7, 11);
    // When the drive gets the next request, and what the trace's clock shows then.
    let (mut now, mut shown) = (Instant::ZERO, Instant::ZERO);
    let mut before = ranges[0].start;
    let mut samples = Vec::with_capacity(requests);
    for id in 0..requests as u64 {
        let extent = request(&mut dice, ranges, before);
        before = extent.end().0;
        let durability = Durability::Volatile;
        let (direction, action) = match dice.below(3) {
            0 => (Direction::Write, Action::Write { extent, durability }),
            _ => (Direction::Read, Action::Read { extent, durability }),
        };
        let outcome = serve_alone(&mut drive, now, Command::new(CommandId(id), action));
        let ended = outcome.expect("one command at a time").at;
        let took = ended.since(now).as_nanos();
        let service = (took + dice.below(4_000)) / 1_000 * 1_000;
        // The next request comes on a tick, after the measured completion.
        let next = ended.as_nanos() / 1_000 * 1_000 + 10_000 + dice.below(60_000) * 1_000;
        let think = next - now.as_nanos() - service;
        samples.push(Sample {
            direction,
            extent,
            issued: shown,
            service: Duration::from_nanos(service),
            think: Duration::from_nanos(think),
        });
        shown += Duration::from_nanos(service + think);
        let stopped = match clock {
            Clockwork::Steady => 0,
            Clockwork::Jumping => dice.below(2 * truth.spindle.period().as_nanos()),
        };
        now = Instant::from_nanos(next + stopped);
    }
    samples
}

/// Half of the requests are random, a quarter follow the one before, a quarter are near it.
fn request(dice: &mut Dice, ranges: &[Range<u64>], before: u64) -> Extent {
    let blocks = 1 + dice.below(24);
    let range = &ranges[dice.below(ranges.len() as u64) as usize];
    let start = match dice.below(4) {
        0 => before,
        1 => before.saturating_sub(400) + dice.below(800),
        _ => range.start + dice.below(range.end - range.start),
    };
    let inside = ranges
        .iter()
        .any(|range| range.contains(&start) && start + blocks <= range.end);
    let start = if inside { start } else { range.start };
    Extent::new(Lba(start), Sectors(blocks)).expect("blocks of the range")
}
