//! The whole procedure on a drive that answers, and on one that does not.

use std::sync::Arc;

use block::{Duration, Extent, Instant, Lba, Sectors};
use drive::{Angle, Geometry, Imperfections, VirtualDrive};
use profiler::clock::apart;
use profiler::findings::{Band, MapPiece, ProfilingStage, TrackMap};
use profiler::map;
use profiler::prober::Unseen;
use profiler::procedure::complete;
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, layout, spindle};

use crate::harness::{noisy, shipped};

/// What is found of a drive of which some blocks cannot be read.
fn found(unreadable: Vec<Extent>) -> Findings {
    found_after(unreadable, Findings::default())
}

/// The same, going on from what was found before.
fn found_after(unreadable: Vec<Extent>, before: Findings) -> Findings {
    let defects = Imperfections {
        unreadable,
        ..Imperfections::default()
    };
    let mut drive = VirtualDrive::imperfect(Arc::new(shipped("hp-c2247a")), defects, 1);
    let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Forbidden);
    let budget = Duration::from_secs(300);
    let whole = move |prober| complete(prober, budget);
    let mut profiler = Profiler::new(device, before, whole);
    let ended = rehearse(&mut profiler, &mut drive, Instant::ZERO, budget);
    assert!(matches!(ended, Rehearsed::Finished(_)), "{ended:?}");
    profiler.findings()
}

fn blocks(first: u64, length: u64) -> Extent {
    Extent::new(Lba(first), Sectors(length)).expect("an extent")
}

/// A random drive of 12,464 blocks was asked for one behind its end.
#[test]
fn a_block_behind_the_end_is_not_asked_for() {
    let mut drive = VirtualDrive::new(Arc::new(shipped("hp-c2247a")));
    let device = DriveIdentity::of(&drive, Offers::Nothing, WritePermission::Forbidden);
    let mut profiler = Profiler::new(device, Findings::default(), move |prober| async move {
        let seen = prober.sight(Lba(device.blocks)).await;
        assert_eq!(seen, Err(Unseen::Unreadable));
    });
    let ended = rehearse(
        &mut profiler,
        &mut drive,
        Instant::ZERO,
        Duration::from_secs(1),
    );
    assert!(matches!(ended, Rehearsed::Finished(_)), "{ended:?}");
    assert_eq!(profiler.probes(), 0);
}

#[test]
fn a_block_that_cannot_be_read_does_not_end_it() {
    let third = 2_054_864 / 3;
    let found = found(vec![blocks(third - 50, 100)]);
    assert!(found.spindle.period_ps > 0);
    assert!(
        found
            .progress
            .failed
            .iter()
            .all(|(step, _)| *step != ProfilingStage::Spindle)
    );
    assert_eq!(found.progress.step, ProfilingStage::Done);
}

#[test]
fn a_drive_without_readable_blocks_has_no_profile() {
    let found = found(vec![blocks(0, 2_054_864)]);
    assert_eq!(found.spindle.period_ps, 0);
    let [(ProfilingStage::Spindle, why)] = &found.progress.failed[..] else {
        panic!("{:?}", found.progress);
    };
    assert!(why.contains("cannot be read"), "{why}");
}

/// The first three tracks of the drive, with what angles are off by, and the second one by more.
fn map(off: Angle, wrong: Angle) -> TrackMap {
    let geometry = shipped("hp-c2247a").geometry;
    let mut at = 0;
    let mut piece = |wrong| {
        let track = geometry.track_of(Lba(at)).expect("a track");
        let begins = geometry.locate(Lba(at)).expect("a block").angle;
        let blocks = (track.last.0 + 1 - at) as u32;
        let first = Lba(at);
        at += u64::from(blocks);
        MapPiece {
            first,
            angle: begins + off + wrong,
            cycle: vec![Band {
                tracks: 1,
                blocks,
                sectors: track.sectors,
                start: Angle::ZERO,
                skew: Angle::ZERO,
            }],
            repeats: 1,
            step: Angle::ZERO,
        }
    };
    TrackMap {
        pieces: vec![piece(Angle::ZERO), piece(wrong), piece(wrong + wrong)],
        ..TrackMap::default()
    }
}

#[test]
fn a_map_from_before_is_gone_on_from_if_it_still_fits() {
    let before = |wrong| Findings {
        map: map(Angle::fraction(2, 7), wrong),
        ..Findings::default()
    };
    let fits = found_after(Vec::new(), before(Angle::ZERO));
    let kept = &fits.map.pieces[..3];
    assert_eq!(kept, before(Angle::ZERO).map.pieces);
    assert!(fits.map.pieces.len() > 3, "and gone on from");
    // The clock has the map's angles now: those of the drive, 2/7 on, less the lag of an answer.
    let truth = shipped("hp-c2247a");
    let at = Instant::from_nanos(25_000_000_000);
    let lag = profiler::belief::lag(&truth);
    let is = truth.spindle.angle_at(at) + Angle::fraction(2, 7);
    let clock = fits.clock.expect("a clock");
    let off = apart(is, clock.angle_at(at + lag));
    assert!(off.abs() < 1e-3, "{off}");
    let wrong = found_after(Vec::new(), before(Angle::fraction(1, 5)));
    assert_ne!(
        wrong.map.pieces[..3],
        before(Angle::fraction(1, 5)).map.pieces
    );
    assert!(
        wrong
            .progress
            .failed
            .iter()
            .any(|(step, _)| *step == ProfilingStage::Map)
    );
}

/// Pairs of blocks that are compared.
const PAIRS: u64 = 4000;

/// Maps and layouts as they are found, of drives whose map comes in many pieces: they begin
/// anywhere in a cylinder.
#[test]
fn the_layout_of_a_found_map_is_true() {
    for name in [
        "quantum-atlas-3",
        "ibm-ultrastar-18es",
        "seagate-cheetah-18lp",
    ] {
        let profile = Arc::new(shipped(name));
        let mut drive = VirtualDrive::imperfect(profile.clone(), noisy(), 7);
        let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Forbidden);
        let mut profiler = Profiler::new(device, Findings::default(), |prober| async move {
            let third = Lba(prober.device().blocks / 3);
            spindle::find(&prober, third).await.expect("a period");
            let end = Lba(prober.device().blocks);
            map::explore(&prober, Lba(0), end).await;
            layout::find(&prober).await.expect("a layout");
        });
        let hour = Duration::from_secs(3600);
        rehearse(&mut profiler, &mut drive, Instant::ZERO, hour);
        let layout = profiler.findings().layout.expect("a layout");
        let found = Geometry::indexed(&layout.description).expect("a geometry");
        let (zones, cylinders) = (profile.geometry.zones(), profile.geometry.cylinders());
        assert_eq!(found.surfaces(), profile.geometry.surfaces(), "{name}");
        assert!(layout.confidence.ppm() > 800_000, "{name}");
        let mut random = 1_u64;
        let mut block = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            Lba(((u128::from(random) * u128::from(device.blocks)) >> 64) as u64)
        };
        for _ in 0..PAIRS {
            let pair = [block(), block()];
            let distance = |geometry: &Geometry| {
                let [a, b] = pair.map(|lba| geometry.locate(lba).expect("a block").cylinder);
                a.abs_diff(b)
            };
            let off = distance(&found).abs_diff(distance(&profile.geometry));
            let zone = |lba: Lba| zones.partition_point(|zone| zone.first <= lba);
            let allowed = match zone(pair[0]) == zone(pair[1]) {
                true => 0,
                false => cylinders / 100,
            };
            assert!(off <= allowed, "{name}: {pair:?} are {off} off");
        }
    }
}
