//! Points a and b against the truth without noise, at fine steps.

use std::sync::Arc;

use block::{Action, Command, CommandId, Durability, Extent, Instant, Lba, Sectors};
use drive::geometry::zoned::{HeadOrder, Sparing};
use drive::random::TrackOrder;
use drive::{Profile, VirtualDrive};
use profiler::findings::ChunkSizes;
use profiler::firmware::{ENOUGH, FULL, MOSTLY, SLOW, STRETCH, commands};
use profiler::{Offers, WritePermission};

use super::{micros, run};
use crate::harness::{noisy, shipped};
use crate::random::named::{plain, zone};

/// The rate of sequential reads of a perfect drive, measured as [`ChunkSizes`] says.
fn true_rate(truth: &Arc<Profile>, at: Lba, blocks: u64) -> f64 {
    let track = truth.geometry.track_of(at).expect("a track").sectors;
    let mut drive = VirtualDrive::new(Arc::clone(truth));
    let (mut now, mut from, mut timed) = (Instant::ZERO, Instant::ZERO, 0);
    for command in 0..2 + commands(blocks, track.into()) {
        let extent = Extent::new(Lba(at.0 + command * blocks), Sectors(blocks)).expect("blocks");
        let durability = Durability::Volatile;
        let action = Action::Read { extent, durability };
        let given = drive.submit(now, Command::new(CommandId(command), action));
        given.expect("room");
        loop {
            now = drive.next_wakeup().expect("an end").max(now);
            if drive.poll(now).is_some() {
                break;
            }
        }
        if command < 2 {
            from = now;
            continue;
        }
        timed += 1;
        let turns = micros(now.since(from)) / micros(truth.spindle.period());
        if timed >= ENOUGH && turns > SLOW {
            break;
        }
    }
    (blocks * timed) as f64 / now.since(from).as_secs_f64()
}

/// Points a and b at fine steps, up to the largest size tried, as [`ChunkSizes`] defines them.
pub fn true_points(truth: &Arc<Profile>, found: &ChunkSizes) -> (u32, Option<u32>) {
    let largest = found.curve.last().expect("sizes").blocks;
    let mut sizes = vec![1u32];
    while let Some(&last) = sizes.last().filter(|&&last| last < largest) {
        sizes.push((last + (last / 50).max(1)).min(largest));
    }
    let rate = |&size: &u32| true_rate(truth, found.at, size.into());
    let rates: Vec<f64> = sizes.iter().map(rate).collect();
    let track = truth.geometry.track_of(found.at).expect("a track").sectors;
    let large = sizes.partition_point(|&size| size * 2 < track);
    let mut upper = rates[large..].to_vec();
    upper.sort_by(f64::total_cmp);
    let enough = FULL * upper[upper.len() * 3 / 4];
    let share = |from: usize| {
        let end = f64::from(sizes[from]) * STRETCH;
        let end = sizes.partition_point(|&size| f64::from(size) <= end);
        let full = rates[from..end].iter().filter(|&&rate| rate >= enough);
        full.count() as f64 / (end - from) as f64
    };
    let full = |&at: &usize| rates[at] >= enough && share(at) >= MOSTLY;
    let least = (0..sizes.len()).find(full).expect("a full size");
    let lost = |&at: &usize| rates[at] < enough && share(at) <= 1.0 - MOSTLY;
    let lost = (least..sizes.len()).find(lost);
    let most = lost.and_then(|lost| (0..lost).rev().find(|&at| rates[at] >= enough));
    (sizes[least], most.map(|at| sizes[at]))
}

#[test]
fn chunk_points_of_drives_whose_curve_has_edges() {
    let drives = [
        "hp-c2249a",
        "hp-c3323a",
        "ibm-ultrastar-18es",
        "seagate-cheetah-18lp",
        "seagate-elite-st41601n",
        "seagate-st318437lw",
        "toshiba-x300-5tb",
    ];
    for name in drives {
        let truth = Arc::new(shipped(name));
        let run = run(
            &truth,
            noisy(),
            Offers::CacheControl,
            WritePermission::Forbidden,
        );
        let found = run.firmware().chunk.as_ref().expect("a chunk");
        let (least, most) = true_points(&truth, found);
        let close = |found: u32, truth: u32| found.abs_diff(truth) * 10 <= truth + 9;
        assert!(close(found.least, least), "{name}: {} {least}", found.least);
        let both = match (found.most, most) {
            (Some(found), Some(truth)) => close(found, truth),
            (found, truth) => found == truth,
        };
        assert!(both, "{name}: {:?} {most:?}", found.most);
    }
}

/// Random drive 202:5, of 12,464 blocks: eight reads of four tracks each went past its end.
#[test]
fn a_drive_has_no_rates_of_sequences_that_are_longer_than_it_is() {
    let order = TrackOrder::Cylinders(HeadOrder::Ascending, Sparing::None, 0);
    let truth = plain(1, order, &[zone(24, 300, 150, 150)]).profile();
    let truth = truth.expect("a drive");
    let run = run(&truth, noisy(), Offers::Nothing, WritePermission::Forbidden);
    let chunk = &run.firmware().chunk;
    let largest = chunk
        .iter()
        .flat_map(|chunk| &chunk.curve)
        .map(|rate| rate.blocks)
        .max();
    assert!(
        largest.is_none_or(|largest| largest < 24 * 300 / 8),
        "{largest:?}"
    );
}
