//! Repositioning from track to track, against the time that the drive's truth says.

use std::sync::Arc;

use block::{Action, Command, CommandId, Direction, Durability, Duration, Extent, Instant, Lba};
use drive::imperfection::{Chance, Periodic};
use drive::mechanics::Position;
use drive::{Imperfections, Profile, VirtualDrive};
use profiler::arm::{MeasuredTime, reposition};
use profiler::findings::{Band, FoundTrack, MapPiece};
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, NextProbe, Offers, Profiler, WritePermission, spindle};

use crate::harness::{noisy, shipped};

const SAMPLES: u32 = 16;

/// A track without slipped sectors, as a piece of a map whose angles are the truth's, and where it
/// is.
fn piece(truth: &Profile, cylinder: u32, head: u32) -> (MapPiece, Position) {
    let whole = |&cylinder: &u32| {
        truth.geometry.track_at(cylinder, head).filter(|track| {
            let sector = |lba| truth.geometry.locate(lba).map(|place| place.sector);
            let blocks = track.last.0 - track.first.0;
            let spans = sector(track.last).zip(sector(track.first));
            spans.is_some_and(|(last, first)| u64::from(last) == u64::from(first) + blocks)
        })
    };
    let found = (cylinder..).find_map(|cylinder| whole(&cylinder));
    let track = found.expect("a regular track");
    let band = Band {
        tracks: 1,
        blocks: (track.last.0 - track.first.0 + 1) as u32,
        sectors: track.sectors,
        start: drive::Angle::ZERO,
        skew: drive::Angle::ZERO,
    };
    let first = truth.geometry.locate(track.first).expect("a block");
    let piece = MapPiece {
        first: track.first,
        angle: first.angle,
        cycle: vec![band],
        repeats: 1,
        step: drive::Angle::ZERO,
    };
    let cylinder = track.cylinder;
    (piece, Position { cylinder, head })
}

/// One way: what was found, and what is true, in microseconds.
#[derive(Debug)]
struct Way {
    found: Option<(MeasuredTime, MeasuredTime)>,
    truth: f64,
    seconds: f64,
}

impl Way {
    /// How far the mean is off, in microseconds.
    fn error(&self) -> f64 {
        let (over, same) = self.found.expect("a time");
        let found = over.mean.as_nanos() as f64 - same.mean.as_nanos() as f64;
        found / 1e3 - self.truth
    }
}

/// Measures a way between two (cylinder, head), and the way from the first to itself.
fn way(
    name: &str,
    truth: &Imperfections,
    [from, to]: [(u32, u32); 2],
    direction: Direction,
    others: Others,
) -> Way {
    let profile = shipped(name);
    let ((mut a, at), (mut b, there)) =
        (piece(&profile, from.0, from.1), piece(&profile, to.0, to.1));
    let ideal = profile.reposition(at, there, direction);
    let known = Lba(a.first.0 + 1);
    let place = profile.geometry.locate(known).expect("a block");
    // The clock's zero will be where the known block ends.
    let zero = place.angle + place.width;
    a.angle = a.angle - zero;
    b.angle = b.angle - zero;
    let mut drive = VirtualDrive::imperfect(Arc::new(profile), truth.clone(), 7);
    let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Allowed);
    let (first, second) = (a.first, b.first);
    let mut pieces = vec![a, b];
    pieces.sort_by_key(|piece| piece.first);
    let (give, found) = std::sync::mpsc::channel();
    let mut profiler = Profiler::new(device, Findings::default(), move |prober| async move {
        spindle::find(&prober, known).await.expect("a period");
        prober.findings(|findings| findings.map.pieces = pieces);
        let track = |lba| prober.findings(|f| f.map.track_of(lba)).expect("a track");
        let (from, to): (FoundTrack, FoundTrack) = (track(first), track(second));
        let begun = prober.now();
        let over = reposition(&prober, &from, &to, direction, SAMPLES).await;
        let took = prober.now().since(begun);
        let same = reposition(&prober, &from, &from, direction, SAMPLES).await;
        give.send((over.zip(same), took)).expect("somebody waits");
    });
    match others {
        Others::None => {
            let budget = Duration::from_secs(120);
            let ended = rehearse(&mut profiler, &mut drive, Instant::ZERO, budget);
            assert!(matches!(ended, Rehearsed::Finished(_)), "{name}: {ended:?}");
        }
        Others::Every(every) => interrupted(&mut profiler, &mut drive, every),
    }
    let (found, took) = found.recv().expect("an answer");
    Way {
        found,
        truth: ideal.as_nanos() as f64 / 1e3,
        seconds: took.as_secs_f64(),
    }
}

/// Who else uses the drive.
#[derive(Clone, Copy, Debug)]
enum Others {
    None,
    /// Somebody reads something before every so manieth probe.
    Every(u64),
}

/// Runs a profiler on a drive that somebody else uses as well.
fn interrupted(profiler: &mut Profiler, drive: &mut VirtualDrive, every: u64) {
    let mut now = Instant::ZERO;
    let blocks = drive.truth().geometry.sectors().0;
    let mut turn = 0;
    loop {
        turn += 1;
        if turn % every == 0 {
            let lba = Lba(turn * 7_654_321 % blocks);
            let action = Action::Read {
                extent: Extent::block(lba),
                durability: Durability::Volatile,
            };
            let command = Command::new(CommandId(u64::MAX - turn), action);
            drive.submit(now, command).expect("a block of the drive");
            while drive.poll(now).is_none() {
                now = drive.next_wakeup().expect("it is busy").max(now);
            }
            profiler.interrupted();
        }
        match profiler.next_probe(now) {
            NextProbe::Probe(command) => drive.submit(now, command).expect("a block of the drive"),
            NextProbe::WaitUntil(at) => {
                now = at;
                continue;
            }
            NextProbe::Wait => panic!("it waits for nothing"),
            NextProbe::Finished => return,
        }
        let outcome = loop {
            now = drive.next_wakeup().expect("it is busy").max(now);
            if let Some(outcome) = drive.poll(now) {
                break outcome;
            }
        };
        profiler.observe(now, outcome);
    }
}

const DRIVES: [&str; 5] = [
    "quantum-atlas-10k",
    "seagate-cheetah-9lp",
    "dec-rz26",
    "modern-20tb",
    "seagate-cheetah-15k5",
];

/// From where to where: (cylinder, head).
const WAYS: [[(u32, u32); 2]; 5] = [
    [(100, 0), (101, 0)],
    [(300, 1), (310, 1)],
    [(2000, 0), (400, 0)],
    [(100, 0), (2000, 1)],
    [(100, 0), (100, 1)],
];

#[test]
fn reads_within_the_noise() {
    let mut sum = 0.0;
    for name in DRIVES {
        for ends in WAYS {
            let way = way(name, &noisy(), ends, Direction::Read, Others::None);
            // Six of the deviations that two times of 16 answers each have together.
            assert!(way.error().abs() < 130.0, "{name} {ends:?}: {way:?}");
            assert!(way.seconds < 2.5, "{name} {ends:?}: {way:?}");
            sum += way.error().abs();
        }
    }
    let mean = sum / (DRIVES.len() * WAYS.len()) as f64;
    assert!(mean < 35.0, "{mean} us in the mean");
}

#[test]
fn writes_take_longer() {
    // The write's table and settling; data that have to come first are in the way on one track
    // alone, and are not what is looked for here: the difference of two distances is.
    let find = |ends| {
        let way = way(
            "quantum-atlas-10k",
            &noisy(),
            ends,
            Direction::Write,
            Others::None,
        );
        (way.error(), way)
    };
    let ((near, first), (far, second)) = (find(WAYS[0]), find(WAYS[2]));
    assert!((near - far).abs() < 130.0, "{first:?} {second:?}");
    // How long data take before they can be written: one block over the bus.
    assert!(near.abs() < 200.0, "{first:?}");
}

#[test]
fn nothing_is_written_that_must_not_be() {
    let profile = shipped("quantum-atlas-10k");
    let mut drive = VirtualDrive::new(Arc::new(profile));
    let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Forbidden);
    let track = FoundTrack {
        piece: 0,
        ordinal: 0,
        first: Lba(0),
        blocks: 300,
        sectors: 334,
        start: drive::Angle::ZERO,
    };
    let mut profiler = Profiler::new(device, Findings::default(), move |prober| async move {
        let way = reposition(&prober, &track, &track, Direction::Write, 4).await;
        assert_eq!(way, None);
    });
    let budget = Duration::from_secs(1);
    rehearse(&mut profiler, &mut drive, Instant::ZERO, budget);
    assert_eq!(profiler.probes(), 0);
}

#[test]
fn retries_and_stalls_do_not_matter() {
    let truth = Imperfections {
        media_retry: Chance {
            per_million: 150_000,
            costs: Duration::from_micros(300),
        },
        recalibration: Periodic {
            every: Duration::from_millis(300),
            costs: Duration::from_millis(23),
        },
        spindle_drift_ppm: 40,
        ..noisy()
    };
    for name in DRIVES {
        let way = way(name, &truth, WAYS[2], Direction::Read, Others::None);
        assert!(way.error().abs() < 130.0, "{name}: {way:?}");
    }
}

#[test]
fn what_others_do_in_between_does_not_matter() {
    for name in DRIVES {
        let often = Others::Every(7);
        let way = way(name, &noisy(), WAYS[2], Direction::Read, often);
        assert!(way.error().abs() < 130.0, "{name}: {way:?}");
    }
}
