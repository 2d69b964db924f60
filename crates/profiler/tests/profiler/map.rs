//! The maps of drives that we ship against what the drives are, track by track.

use std::sync::Arc;

use block::{Duration, Extent, Instant, Lba};
use drive::geometry::Geometry;
use drive::imperfection::{Chance, Periodic};
use drive::{Imperfections, Profile, VirtualDrive};
use profiler::clock::{apart, forward};
use profiler::findings::TrackMap;
use profiler::map::{explore, survey, verify};
use profiler::prober::Prober;
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, spindle};

use crate::harness::{noisy, shipped};

/// The drives of zones.
const ZONED: [&str; 15] = [
    "dec-rz26",
    "hitachi-travelstar-80gn",
    "hp-c2247a",
    "hp-c2249a",
    "hp-c2490a",
    "hp-c3323a",
    "ibm-ultrastar-18es",
    "quantum-atlas-10k",
    "quantum-atlas-3",
    "seagate-barracuda-4lp",
    "seagate-cheetah-18lp",
    "seagate-cheetah-4lp",
    "seagate-cheetah-9lp",
    "seagate-elite-st41601n",
    "seagate-st318437lw",
];

/// Those with regular serpentines.
const SERPENTINE: [&str; 4] = [
    "modern-18tb-dual",
    "modern-20tb",
    "toshiba-x300-5tb",
    "wd-4tb-test",
];

/// A drive on which procedures can be run one after the other.
struct Bench {
    drive: VirtualDrive,
    device: DriveIdentity,
    findings: Findings,
    now: Instant,
}

impl Bench {
    /// A drive whose spindle was found.
    fn new(name: &str, truth: &Imperfections) -> Self {
        Bench::of(shipped(name), truth)
    }

    fn of(profile: Profile, truth: &Imperfections) -> Self {
        let drive = VirtualDrive::imperfect(Arc::new(profile), truth.clone(), 7);
        let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Forbidden);
        let mut bench = Bench {
            drive,
            device,
            findings: Findings::default(),
            now: Instant::ZERO,
        };
        let lba = Lba(device.blocks / 3);
        bench.run(60, async move |prober: Prober| {
            spindle::find(&prober, lba).await.expect("a period");
        });
        bench
    }

    /// Runs a procedure for at most so many seconds; answers how many it took.
    fn run<P, F>(&mut self, seconds: u64, procedure: P) -> f64
    where
        P: FnOnce(Prober) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let found = std::mem::take(&mut self.findings);
        let mut profiler = Profiler::new(self.device, found, procedure);
        let budget = Duration::from_secs(seconds);
        let ended = rehearse(&mut profiler, &mut self.drive, self.now, budget);
        // What the drive was still asked comes to its end.
        if let Rehearsed::OutOfTime(_) = ended {
            while let Some(at) = self.drive.next_wakeup() {
                self.now = self.now.max(at);
                while self.drive.poll(self.now).is_some() {}
            }
        }
        let took = ended.at().since(self.now.min(ended.at())).as_secs_f64();
        self.now = self.now.max(ended.at());
        self.findings = profiler.findings();
        took
    }

    fn explore(&mut self, seconds: u64) -> f64 {
        let blocks = self.device.blocks;
        self.run(seconds, async move |prober: Prober| {
            explore(&prober, Lba(0), Lba(blocks)).await;
        })
    }

    fn verify(&mut self) -> u32 {
        self.run(60, async move |prober: Prober| {
            verify(&prober, 200, 1).await.expect("blocks");
        });
        self.findings.map_confidence.ppm()
    }

    fn truth(&self) -> Arc<Geometry> {
        self.drive.truth().geometry.clone()
    }
}

/// How a map compares.
#[derive(Debug, Default)]
struct Compared {
    tracks: u64,
    known: u64,
    exact: u64,
    /// Within 1 % of a revolution of where it is, up to a constant.
    close: u64,
}

impl Compared {
    fn add(&mut self, map: &TrackMap, truth: &Geometry, lba: Lba, zero: &mut Option<f64>) -> Lba {
        let track = truth.track_of(lba).expect("a block");
        self.tracks += 1;
        if let Some(found) = map.track_of(lba) {
            self.known += 1;
            let blocks = track.last.0 + 1 - track.first.0;
            let same = (found.first, u64::from(found.blocks)) == (track.first, blocks);
            self.exact += u64::from(same && found.sectors == track.sectors);
        }
        if let Some(angle) = map.angle_of(lba) {
            let place = truth.locate(lba).expect("a block");
            let off = (place.angle - angle).revolutions();
            let zero = forward(*zero.get_or_insert(off));
            self.close += u64::from(apart(zero, forward(off)).abs() <= 0.01);
        }
        Lba(track.last.0 + 1)
    }

    /// Every track, each by a block of it.
    fn all(map: &TrackMap, truth: &Geometry) -> Self {
        let mut compared = Compared::default();
        let (mut first, mut zero) = (Lba(0), None);
        while first.0 < truth.sectors().0 {
            let last = truth.track_of(first).expect("a track").last.0;
            let inside = first.0 + (compared.tracks * 7919) % (last + 1 - first.0);
            first = compared.add(map, truth, Lba(inside), &mut zero);
        }
        compared
    }

    /// The tracks of 20,000 blocks, spread by the golden section.
    fn sample(map: &TrackMap, truth: &Geometry) -> Self {
        let mut compared = Compared::default();
        let mut zero = None;
        for block in 0..20_000u64 {
            let spread = u128::from(block.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let lba = (spread * u128::from(truth.sectors().0)) >> 64;
            compared.add(map, truth, Lba(lba as u64), &mut zero);
        }
        compared
    }
}

#[test]
fn drives_of_zones_track_by_track() {
    for name in ZONED {
        let mut bench = Bench::new(name, &noisy());
        let took = bench.explore(400);
        let confidence = bench.verify();
        let compared = Compared::all(&bench.findings.map, &bench.truth());
        println!("{name}: {took:.1} s, {compared:?}, {confidence}");
        assert!(took < 150.0, "{name}: {took} s");
        assert_eq!(compared.exact, compared.tracks, "{name}: {compared:?}");
        assert!(
            compared.close * 1000 >= compared.tracks * 999,
            "{name}: {compared:?}"
        );
        assert!(confidence > 980_000, "{name}: {confidence}");
    }
}

#[test]
fn serpentines() {
    for name in SERPENTINE {
        let mut bench = Bench::new(name, &noisy());
        let took = bench.explore(3 * 3600);
        let compared = Compared::sample(&bench.findings.map, &bench.truth());
        println!("{name}: {took:.1} s, {compared:?}");
        assert!(took < 600.0, "{name}: {took} s");
        assert_eq!(compared.exact, compared.tracks, "{name}: {compared:?}");
        assert_eq!(compared.close, compared.tracks, "{name}: {compared:?}");
    }
}

#[test]
fn irregular_serpentines_as_far_as_time_allows() {
    for (name, least) in [
        ("seagate-cheetah-15k5", 0.5),
        ("maxtor-atlas-10k5-300", 0.05),
    ] {
        let mut bench = Bench::new(name, &noisy());
        bench.explore(500);
        let compared = Compared::sample(&bench.findings.map, &bench.truth());
        println!("{name}: {compared:?}");
        assert!(
            compared.known as f64 > least * 20_000.0,
            "{name}: {compared:?}"
        );
        // Long rows of defects are taken for ends of tracks.
        assert!(
            compared.exact * 200 >= compared.known * 199,
            "{name}: {compared:?}"
        );
        assert!(
            compared.close * 200 >= compared.known * 199,
            "{name}: {compared:?}"
        );
    }
}

#[test]
fn a_map_that_was_stopped_goes_on() {
    let mut bench = Bench::new("quantum-atlas-10k", &noisy());
    let mut parts = 0;
    let mut known = 0;
    while bench.findings.map.known() < bench.device.blocks {
        bench.explore(3);
        assert!(bench.findings.map.known() > known, "{known} blocks");
        known = bench.findings.map.known();
        parts += 1;
    }
    assert!(parts > 3, "{parts}");
    let compared = Compared::all(&bench.findings.map, &bench.truth());
    assert_eq!(compared.exact, compared.tracks, "{compared:?}");
    assert_eq!(compared.close, compared.tracks, "{compared:?}");
}

#[test]
fn a_survey_and_what_is_between() {
    let mut bench = Bench::new("quantum-atlas-10k", &noisy());
    bench.run(60, async move |prober: Prober| {
        survey(&prober, 20).await;
    });
    let (map, truth) = (&bench.findings.map, bench.truth());
    let compared = Compared::sample(map, &truth);
    assert!(compared.known > 200, "{compared:?}");
    assert_eq!(compared.exact, compared.known, "{compared:?}");
    // The zones' ends are known to 1/64 of the distance of the places.
    for zone in truth.zones().windows(2) {
        let end = zone[1].first.0;
        if zone[0].sectors_per_track == zone[1].sectors_per_track {
            continue;
        }
        let near = bench.device.blocks / 20 / 32;
        let around = |lba: u64| {
            (0..40).any(|step| map.track_of(Lba(lba - near + step * near / 20)).is_some())
        };
        assert!(around(end), "zone at {end}");
    }
    bench.explore(400);
    let compared = Compared::all(&bench.findings.map, &truth);
    assert_eq!(compared.exact, compared.tracks, "{compared:?}");
}

fn hostile() -> Imperfections {
    Imperfections {
        spindle_ppm: 3000,
        spindle_drift_ppm: 40,
        media_retry: Chance {
            per_million: 20_000,
            costs: Duration::from_micros(300),
        },
        settle_retry: Chance {
            per_million: 10_000,
            costs: Duration::from_micros(900),
        },
        recalibration: Periodic {
            every: Duration::from_secs(10),
            costs: Duration::from_millis(150),
        },
        media_scan: Periodic {
            every: Duration::from_secs(1),
            costs: Duration::from_millis(30),
        },
        grown_defects: (1..60).map(|n| Lba(n * 31_337)).collect(),
        unreadable: vec![Extent::block(Lba(1_000_000))],
        ..noisy()
    }
}

#[test]
fn hostile_truths_leave_a_true_map() {
    for name in [
        "hp-c2247a",
        "seagate-cheetah-18lp",
        "seagate-barracuda-4lp",
        "modern-20tb",
    ] {
        let mut bench = Bench::new(name, &hostile());
        let took = bench.explore(400);
        let confidence = bench.verify();
        let compared = Compared::sample(&bench.findings.map, &bench.truth());
        println!("{name}: {took:.1} s, {compared:?}, {confidence}");
        assert!(took < 300.0, "{name}: {took} s");
        assert!(
            compared.known * 100 >= compared.tracks * 98,
            "{name}: {compared:?}"
        );
        assert!(
            compared.exact * 1000 >= compared.known * 999,
            "{name}: {compared:?}"
        );
        assert!(
            compared.close * 1000 >= compared.known * 998,
            "{name}: {compared:?}"
        );
    }
}

#[test]
fn a_block_that_takes_an_extra_trip() {
    let truth = Imperfections {
        grown_defects: vec![Lba(334)],
        ..noisy()
    };
    let mut bench = Bench::new("quantum-atlas-10k", &truth);
    bench.explore(2);
    let map = &bench.findings.map;
    assert_eq!(map.elsewhere.len(), 1, "{:?}", map.elsewhere);
    assert!(map.is_elsewhere(Lba(334)));
    let track = map.track_of(Lba(335)).expect("a track");
    assert_eq!((track.first, track.blocks), (Lba(334), 334));
}

#[test]
fn a_remapped_block_where_a_track_begins() {
    let text = include_str!("../../../../drives/seagate-elite-st41601n.toml");
    let slips = "slips = [\n  351027, 572958, 780987,\n]";
    assert!(text.contains(slips));
    // The first block of the second track is in the last spare sector of the first cylinder.
    let text = text.replace(slips, "remaps = [[85, 1444]]");
    let profile = Profile::parse(&text, "remapped").expect("a profile");
    let mut bench = Bench::of(profile, &noisy());
    bench.explore(5);
    let map = &bench.findings.map;
    assert_eq!(map.elsewhere.len(), 1, "{:?}", map.elsewhere);
    assert!(map.is_elsewhere(Lba(85)));
    let truth = bench.truth();
    let (mut compared, mut at, mut zero) = (Compared::default(), Lba(86), None);
    while map.track_of(at).is_some() {
        at = compared.add(map, &truth, at, &mut zero);
    }
    assert!(compared.tracks > 1000, "{compared:?}");
    assert_eq!(compared.exact, compared.tracks, "{compared:?}");
    assert_eq!(compared.close, compared.tracks, "{compared:?}");
}

#[test]
fn a_wrong_map_is_not_trusted() {
    let mut bench = Bench::new("dec-rz26", &noisy());
    bench.explore(100);
    let right = bench.verify();
    for piece in &mut bench.findings.map.pieces {
        // The clock's reference stays, the rest is off by more than 1 %.
        if piece.first.0 > 0 {
            piece.angle = piece.angle + forward(0.02);
        }
    }
    let wrong = bench.verify();
    assert!(right > 990_000, "{right}");
    assert!(wrong < 50_000, "{wrong}");
}
