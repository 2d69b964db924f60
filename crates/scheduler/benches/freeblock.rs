//! What a plan costs for one opportunity.
//!
//! `cargo bench -p scheduler --bench freeblock`. One iteration is `GAPS` plans, so that a millisecond
//! an iteration is a microsecond a plan. The gaps are those of a load of two random reads to a write
//! of 4 to 64 KiB, four of them pending, the one with the shortest positioning time first.

use std::sync::Arc;

use block::{Direction, Duration, Extent, Instant, Lba, Sectors};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use drive::{Position, Profile, SeekTarget, catalog};
use scheduler::freeblock::{
    ANYTIME_TRACKS, Delivery, Gap, Guard, PlanRules, Planner, SameTrack, WantedBlocks,
};

/// Plans in one iteration.
const GAPS: usize = 1_000;

/// Requests among which the load chooses.
const PENDING: usize = 4;

fn main() {
    divan::main();
}

/// Which blocks are left.
#[derive(Clone, Copy, Debug)]
enum Left {
    All,
    /// One block in a hundred, with the others of its slice.
    Random,
    /// The same share in 500 places.
    Clustered,
}

fn profile(name: &str) -> Arc<Profile> {
    let entry = catalog::find(name).expect("a shipped drive");
    Arc::new(entry.profile().expect("a valid profile"))
}

/// Numbers that are spread evenly: Steele's SplitMix64.
struct Spread(u64);

impl Spread {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

fn wanted(profile: &Profile, left: Left) -> WantedBlocks {
    let geometry = &profile.geometry;
    let blocks = geometry.sectors().0;
    let mut spread = Spread(7);
    let (mut set, length) = match left {
        Left::All => return WantedBlocks::all(geometry),
        Left::Random => (WantedBlocks::none(geometry), 1),
        Left::Clustered => (WantedBlocks::none(geometry), blocks / 50_000),
    };
    while set.left() < blocks / 100 {
        let start = Lba(spread.below(blocks - length));
        let extent = Extent::new(start, Sectors(length)).expect("an extent");
        set.add(extent).expect("on the drive");
    }
    set
}

/// A request of the load.
#[derive(Clone, Copy)]
struct Request {
    extent: Extent,
    direction: Direction,
    target: SeekTarget,
}

fn request(profile: &Profile, spread: &mut Spread) -> Request {
    let blocks = (1 + spread.below(16)) * 4096 / u64::from(profile.block_bytes);
    let first = Lba(spread.below(profile.geometry.sectors().0 - blocks));
    let place = profile.geometry.locate(first).expect("a block");
    Request {
        extent: Extent::new(first, Sectors(blocks)).expect("an extent"),
        direction: match spread.below(3) {
            0 => Direction::Write,
            _ => Direction::Read,
        },
        target: SeekTarget::from(&place),
    }
}

fn gaps(profile: &Profile) -> Vec<Gap> {
    let mut spread = Spread(1);
    let mut pending: Vec<Request> = (0..PENDING)
        .map(|_| request(profile, &mut spread))
        .collect();
    let mut source = Position::default();
    let mut now = Instant::ZERO;
    let mut gaps = Vec::new();
    while gaps.len() < GAPS {
        let way = |request: &Request| {
            profile.positioning(source, now, &request.target, request.direction)
        };
        let next = (0..PENDING).min_by_key(|&index| way(&pending[index]).total());
        let next = next.expect("some are pending");
        let chosen = pending[next];
        let begins = now + way(&chosen).total();
        gaps.push(Gap {
            source,
            departs: now,
            leaves: now,
            follows: now,
            lag: Duration::ZERO,
            handover: Duration::ZERO,
            destination: chosen.target,
            direction: chosen.direction,
            extent: chosen.extent,
            begins,
            bus: None,
            delivery: Delivery::Queued,
        });
        now = begins;
        for run in profile.geometry.runs(chosen.extent) {
            source = SeekTarget::from(&run).position;
            now += profile.spindle.time_of(run.sweep);
        }
        pending[next] = request(profile, &mut spread);
    }
    gaps
}

fn plans(bencher: Bencher, profile: &Arc<Profile>, left: Left, rules: PlanRules) {
    let (set, gaps) = (wanted(profile, left), gaps(profile));
    let mut planner = Planner::new(Arc::clone(profile));
    bencher.counter(ItemsCount::new(GAPS)).bench_local(|| {
        let plans = gaps
            .iter()
            .map(|gap| planner.plan(&set, black_box(gap), &rules));
        plans
            .flatten()
            .map(|plan| u64::from(plan.wanted()))
            .sum::<u64>()
    });
}

/// As from outside the drive: a guard, and no commands of their own on the tracks of A and B.
fn external() -> PlanRules {
    PlanRules {
        guard: Guard {
            to_free: Duration::from_micros(300),
            to_write: Duration::from_micros(300),
            to_destination: Duration::from_micros(300),
        },
        ..PlanRules::default()
    }
}

#[divan::bench(args = [Left::All, Left::Random, Left::Clustered])]
fn atlas_10k(bencher: Bencher, left: Left) {
    plans(bencher, &profile("quantum-atlas-10k"), left, external());
}

#[divan::bench(args = [Left::All, Left::Random, Left::Clustered])]
fn atlas_10k_in_firmware(bencher: Bencher, left: Left) {
    let rules = PlanRules {
        same_track: SameTrack::Allowed,
        ..PlanRules::default()
    };
    plans(bencher, &profile("quantum-atlas-10k"), left, rules);
}

#[divan::bench(args = [Left::All, Left::Random, Left::Clustered])]
fn modern_20tb(bencher: Bencher, left: Left) {
    let rules = PlanRules {
        tracks: ANYTIME_TRACKS,
        ..external()
    };
    plans(bencher, &profile("modern-20tb"), left, rules);
}

/// Until no better plan is possible.
#[divan::bench(args = [Left::All, Left::Random, Left::Clustered])]
fn modern_20tb_exact(bencher: Bencher, left: Left) {
    plans(bencher, &profile("modern-20tb"), left, external());
}

/// How much a search of so many tracks costs where little is left.
#[divan::bench(args = [250, 500, 1_000, 2_000, 4_000])]
fn modern_20tb_tracks(bencher: Bencher, tracks: u32) {
    let rules = PlanRules {
        tracks,
        ..external()
    };
    plans(bencher, &profile("modern-20tb"), Left::Random, rules);
}
