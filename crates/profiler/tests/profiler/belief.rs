//! What is believed of drives: findings that are as true as they can be predict what a drive does,
//! and parts that were not found are believed to be slow.

use std::sync::Arc;

use block::{Action, Command, CommandId, Durability, Duration, Extent, Instant, Lba, Switch};
use drive::geometry::indexed::{Description, GroupDescription, TrackRun};
use drive::profile::Chunks;
use drive::{Angle, Imperfections, Profile, ProfilePart, VirtualDrive, catalog};
use profiler::clock::{PlatterClock, apart};
use profiler::findings::{
    ArmTimings, Band, ChunkSizes, CountBound, Elsewhere, Firmware, FirmwareConfidence, MapPiece,
    Pattern, SeekPoint, Slip, Steadiness, TrackLayout, TrackMap,
};
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{Confidence, DriveIdentity, Findings, Offers, Profiler, WritePermission, belief};

use crate::harness;

/// A shipped drive with some angle under its heads at the beginning.
fn truth(name: &str) -> Profile {
    let mut truth = harness::shipped(name);
    truth.spindle = truth.spindle.with_phase(Angle::fraction(3, 10));
    truth
}

fn device(truth: &Profile) -> DriveIdentity {
    let drive = VirtualDrive::new(Arc::new(truth.clone()));
    DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Forbidden)
}

/// Every track of a drive, as far as its blocks are on neighbouring sectors.
fn description(truth: &Profile) -> Description {
    let geometry = &truth.geometry;
    let blocks = geometry.sectors().0;
    let mut runs = Vec::new();
    let mut at = 0;
    while at < blocks {
        let track = geometry.track_of(Lba(at)).expect("a track");
        let first = geometry.locate(Lba(at)).expect("a block");
        let end = (track.last.0 + 1).max(at + 1);
        runs.push(TrackRun {
            cylinder: track.cylinder,
            head: track.head,
            sectors: track.sectors,
            start: first.angle,
            tracks: 1,
            step: Angle::ZERO,
            blocks: (end - at) as u32,
        });
        at = end;
    }
    Description {
        surfaces: geometry.surfaces(),
        cylinders: geometry.cylinders(),
        blocks,
        groups: vec![GroupDescription::Tracks(runs)],
        slips: Vec::new(),
        remaps: Vec::new(),
    }
}

fn points(table: &drive::seek::SeekTable) -> Vec<SeekPoint> {
    let point = |(distance, mean)| SeekPoint {
        distance,
        mean,
        deviation: Duration::from_micros(50),
        inward: mean,
        outward: mean,
    };
    table.points().map(point).collect()
}

/// As much as a profiler could find of a drive, without error.
fn findings(truth: &Profile) -> Findings {
    let sure = Confidence::of(98, 98);
    let spindle = truth.spindle;
    let lag = belief::lag(truth);
    // What an answer at 1 ms says of a block that ended `lag` before.
    let at = Instant::from_nanos(1_000_000);
    let there = spindle.angle_at(at) - (spindle.angle_at(at + lag) - spindle.angle_at(at));
    Findings {
        clock: Some(PlatterClock::new(spindle.period_ps(), there, at)),
        spindle: Steadiness {
            confidence: sure,
            period_ps: spindle.period_ps(),
            wander_ppm: 0.0,
        },
        layout: Some(TrackLayout {
            description: description(truth),
            pattern: Pattern::head_first(truth.geometry.surfaces()),
            anchors: Vec::new(),
            confidence: sure,
            known: Vec::new(),
            fenced: Vec::new(),
        }),
        arm: Some(ArmTimings {
            read: points(truth.seek.read()),
            write: points(truth.seek.write()),
            head_switch: truth.head_switch,
            overhead: truth.overheads.read_miss.read,
            write_settle_nanos: truth.write_settle_nanos,
            deviation: Duration::from_micros(50),
            confidence: sure,
        }),
        firmware: Some(Firmware {
            of_arm: None,
            overheads: truth.overheads,
            bus: truth.bus,
            buffer: truth.buffer,
            segments: CountBound::Exactly,
            write_buffer: None,
            queue: truth.queue,
            seek_command: Some(truth.seek_command),
            chunk: None,
            confidence: FirmwareConfidence {
                read_miss: sure,
                write_miss: sure,
                queue: Confidence::of(0, 2),
                ..FirmwareConfidence::default()
            },
            is_whole: true,
        }),
        ..Findings::default()
    }
}

/// When a drive answers reads of single blocks from the medium, one after the other.
fn answers(drive: &Profile, gaps: &[u64]) -> Vec<Instant> {
    let blocks = drive.geometry.sectors().0;
    let mut drive = VirtualDrive::new(Arc::new(drive.clone()));
    let mut now = Instant::ZERO;
    let mut answers = Vec::new();
    for (id, &gap) in (0..).zip(gaps) {
        let lba = Lba(gap.wrapping_mul(0x9E37_79B9_7F4A_7C15) % blocks);
        let action = Action::Read {
            extent: Extent::block(lba),
            durability: Durability::Durable,
        };
        // Each is given at the same moment to whatever drive it is.
        now = now.max(Instant::from_nanos(id * 60_000_000 + gap % 10_000_000));
        let command = Command::new(CommandId(id), action);
        drive.submit(now, command).expect("a block of the drive");
        answers.push(loop {
            now = drive.next_wakeup().expect("it is at work").max(now);
            if let Some(outcome) = drive.poll(now) {
                break outcome.at;
            }
        });
    }
    answers
}

/// How far two answers are apart, in nanoseconds.
fn off(a: Instant, b: Instant) -> u64 {
    a.as_nanos().abs_diff(b.as_nanos())
}

#[test]
fn true_findings_predict_every_read() {
    for name in ["quantum-atlas-10k", "hp-c2247a", "ibm-ultrastar-18es"] {
        let truth = truth(name);
        let found = findings(&truth);
        let believed = belief::profile(&found, &device(&truth), "found").expect("a profile");
        let live = belief::live(&believed, &found.clock.expect("a clock"));
        let gaps: Vec<u64> = (1..400).map(|n| n * 7_368_787).collect();
        let pairs = answers(&truth, &gaps)
            .into_iter()
            .zip(answers(&live, &gaps));
        for (number, (is, predicted)) in pairs.enumerate() {
            let off = off(is, predicted);
            assert!(off < 20_000, "{name}: read {number} {off} ns off");
        }
    }
}

#[test]
fn writes_follow_the_curve_of_reads_between_the_distances_that_were_written() {
    let truth = truth("quantum-atlas-10k");
    let mut found = findings(&truth);
    let arm = found.arm.as_mut().expect("an arm");
    // A write takes 0.1 ms longer than a read, and was measured over every fourth distance.
    let longer = |read: &SeekPoint| SeekPoint {
        mean: read.mean.adjusted(100_000),
        ..*read
    };
    arm.write = arm.read.iter().step_by(4).map(longer).collect();
    let believed = belief::profile(&found, &device(&truth), "found").expect("a profile");
    let longest = found
        .arm
        .expect("an arm")
        .write
        .last()
        .expect("some")
        .distance;
    for distance in 1..longest {
        let [read, write] = [believed.seek.read(), believed.seek.write()]
            .map(|table| table.time(distance).as_nanos());
        assert!(
            write.abs_diff(read + 100_000) < 10,
            "{distance}: {read}, {write}"
        );
    }
}

#[test]
fn without_firmware_the_phase_of_every_answer_is_right() {
    let truth = truth("quantum-atlas-10k");
    let found = Findings {
        firmware: None,
        arm: None,
        ..findings(&truth)
    };
    let believed = belief::profile(&found, &device(&truth), "found").expect("a profile");
    assert_ne!(belief::lag(&believed), belief::lag(&truth));
    let live = belief::live(&believed, &found.clock.expect("a clock"));
    let gaps: Vec<u64> = (1..200).map(|n| n * 7_368_787).collect();
    let period = truth.spindle.period().as_nanos();
    for (is, predicted) in answers(&truth, &gaps)
        .into_iter()
        .zip(answers(&live, &gaps))
    {
        let off = off(is, predicted) % period;
        assert!(off.min(period - off) < 20_000, "{off} ns");
    }
}

/// What a belief keeps of a drive's seek command and of its rarer rules.
#[test]
fn a_belief_has_the_rarer_rules_and_the_seek_command_that_were_found() {
    let truth = truth("seagate-st318437lw");
    let mut found = findings(&truth);
    let believe = |found: &Findings| belief::profile(found, &device(&truth), "found");
    let believed = believe(&found).expect("a profile");
    assert!(truth.buffer.destage_first && truth.buffer.writes_in_parts);
    assert_eq!(believed.buffer, truth.buffer);
    assert_eq!(believed.seek_command, Switch::On);
    if let Some(firmware) = &mut found.firmware {
        firmware.seek_command = Some(Switch::Off);
    }
    let without = believe(&found).expect("a profile");
    assert_eq!(without.seek_command, Switch::Off);
    // Nobody has tried.
    if let Some(firmware) = &mut found.firmware {
        firmware.seek_command = None;
    }
    let untried = believe(&found).expect("a profile");
    assert_eq!(untried.seek_command, Switch::Off);
    assert!(
        untried
            .origins
            .iter()
            .all(|origin| origin.table != "commands")
    );
}

/// The chunk that was measured, unless fresh reads contradicted it.
#[test]
fn a_belief_has_the_chunk_that_was_found_and_confirmed() {
    let truth = truth("seagate-st318437lw");
    let believed = |(came_true, checks), most| {
        let mut found = findings(&truth);
        let firmware = found.firmware.as_mut().expect("a firmware");
        firmware.chunk = Some(ChunkSizes {
            at: Lba(0),
            least: 40,
            most,
            curve: Vec::new(),
        });
        firmware.confidence.chunk = Confidence::of(came_true, checks);
        let profile = belief::profile(&found, &device(&truth), "found");
        profile.expect("a profile").chunks
    };
    let least = block::Sectors(40);
    let most = Some(block::Sectors(700));
    assert_eq!(believed((4, 4), Some(700)), Some(Chunks { least, most }));
    let none = Chunks { least, most: None };
    assert_eq!(believed((3, 4), None), Some(none));
    assert_eq!(believed((1, 4), Some(700)), None);
    let unmeasured = belief::profile(&findings(&truth), &device(&truth), "found");
    assert_eq!(unmeasured.expect("a profile").chunks, None);
}

#[test]
fn parts_that_were_not_found_are_slow_and_have_no_confidence() {
    let truth = truth("quantum-atlas-10k");
    let nothing = Findings::default();
    let believed = belief::profile(&nothing, &device(&truth), "nothing").expect("a profile");
    assert_eq!(believed.provenance, drive::Provenance::Profiled);
    assert_eq!(believed.geometry.sectors(), truth.geometry.sectors());
    assert_eq!(believed.queue.depth, truth.queue.depth);
    assert!(believed.seek_deviation.is_none());
    let confidence = believed.confidence.as_ref().expect("confidences");
    assert_eq!(confidence.least(), Some(0.0));
    assert!(confidence.known().is_empty());
    for entry in catalog::ALL {
        let device = device(&entry.profile().expect("a valid one"));
        let believed = belief::profile(&nothing, &device, "nothing").expect("a profile");
        assert_eq!(believed.geometry.sectors().0, device.blocks);
    }
    let full = findings(&truth);
    let believed = belief::profile(&full, &device(&truth), "full").expect("a profile");
    let confidence = believed.confidence.as_ref().expect("confidences");
    assert_eq!(confidence.of(ProfilePart::Spindle), Some(0.99));
    assert_eq!(confidence.of(ProfilePart::Queue), Some(0.25));
    assert_eq!(confidence.of(ProfilePart::Map), Some(0.0));
    // Nothing may be written.
    assert_eq!(confidence.of(ProfilePart::WriteBack), None);
    assert_eq!(believed.overheads, truth.overheads);
    assert_eq!(believed.buffer, truth.buffer);
    assert_eq!(believed.bus, truth.bus);
    assert_eq!(believed.spindle.period_ps(), truth.spindle.period_ps());
    assert!(believed.seek_deviation.is_some());
    for table in &believed.origins {
        assert!(
            table.text.starts_with("profiled by Headtime: "),
            "{table:?}"
        );
    }
    let mut reads_only = full;
    if let (Some(firmware), Some(arm)) = (&mut reads_only.firmware, &mut reads_only.arm) {
        firmware.overheads.write_miss = Default::default();
        firmware.confidence.write_miss = Confidence::NONE;
        arm.write.clear();
        arm.write_settle_nanos = 0;
    }
    let believed = belief::profile(&reads_only, &device(&truth), "reads").expect("a profile");
    assert_eq!(believed.overheads.write_miss, truth.overheads.read_miss);
    assert_eq!(believed.write_settle_nanos, 1_000_000);
    let wrong = belief::profile(&nothing, &device(&truth), "Not A Name");
    assert_eq!(wrong.expect_err("no name").key, "name");
}

/// Two pieces with a gap before, between and after them.
fn map() -> TrackMap {
    let band = |tracks, blocks, sectors, start| Band {
        tracks,
        blocks,
        sectors,
        start: Angle::fraction(start, 10),
        skew: Angle::fraction(1, 7),
    };
    TrackMap {
        pieces: vec![
            MapPiece {
                first: Lba(1000),
                angle: Angle::fraction(1, 3),
                cycle: vec![band(3, 90, 100, 0), band(2, 80, 88, 4)],
                repeats: 10,
                step: Angle::fraction(2, 11),
            },
            MapPiece {
                first: Lba(9001),
                angle: Angle::fraction(1, 4),
                cycle: vec![band(1, 70, 70, 0)],
                repeats: 20,
                step: Angle::fraction(5, 9),
            },
        ],
        slips: vec![Slip {
            before: Lba(1005),
            sectors: 1,
        }],
        elsewhere: vec![Elsewhere {
            first: Lba(9100),
            blocks: 2,
        }],
    }
}

#[test]
fn tracks_that_nobody_has_placed_have_the_angles_of_the_map() {
    let device = DriveIdentity {
        blocks: 12_345,
        block_bytes: 512,
        physical_block_bytes: 512,
        depth: 1,
        offers: Offers::CacheControl,
        writes: WritePermission::Forbidden,
    };
    let found = Findings {
        map: map(),
        ..Findings::default()
    };
    let believed = belief::profile(&found, &device, "unplaced").expect("a profile");
    let confidence = believed.confidence.as_ref().expect("confidences");
    let known: Vec<(u64, u64)> = confidence
        .known()
        .iter()
        .map(|extent| (extent.start().0, extent.end().0))
        .collect();
    // Without the track that has a slipped sector, and without the two remapped blocks.
    assert_eq!(known, [(1090, 5300), (9001, 9100), (9102, 10_401)]);
    for lba in (0..device.blocks).map(Lba) {
        let place = believed.geometry.locate(lba).expect("all blocks are there");
        if !confidence.is_known(lba) {
            continue;
        }
        let angle = found.map.angle_of(lba).expect("a known block");
        assert!(apart(place.angle, angle).abs() < 1e-12, "{lba:?}");
        let track = found.map.track_of(lba).expect("a known track");
        assert_eq!(place.sectors_per_track, track.sectors);
    }
}

#[test]
fn more_tracks_than_a_layout_has_cylinders_are_on_more_surfaces() {
    let band = Band {
        tracks: 1000,
        blocks: 500,
        sectors: 500,
        start: Angle::ZERO,
        skew: Angle::fraction(1, 9),
    };
    let piece = MapPiece {
        first: Lba(0),
        angle: Angle::ZERO,
        cycle: vec![band],
        repeats: 10_000,
        step: Angle::fraction(1, 5),
    };
    let blocks = piece.blocks();
    let found = Findings {
        map: TrackMap {
            pieces: vec![piece],
            ..TrackMap::default()
        },
        ..Findings::default()
    };
    let device = DriveIdentity {
        blocks,
        ..device(&truth("modern-20tb"))
    };
    let believed = belief::profile(&found, &device, "large").expect("a profile");
    assert_eq!(believed.geometry.surfaces(), 3);
    for number in 0..1000u64 {
        let lba = Lba(number * 4_999_999);
        let place = believed.geometry.locate(lba).expect("a block");
        let angle = found.map.angle_of(lba).expect("a known block");
        assert!(apart(place.angle, angle).abs() < 1e-9, "{lba:?}");
    }
}

#[test]
fn the_phase_of_a_known_drive_is_found_again() {
    let truth = truth("hp-c2247a");
    let found = findings(&truth);
    let believed = belief::profile(&found, &device(&truth), "found").expect("a profile");
    let noisy = Imperfections {
        seek_noise: Duration::from_micros(60),
        overhead_noise: Duration::from_micros(20),
        ..Imperfections::default()
    };
    let mut drive = VirtualDrive::imperfect(Arc::new(truth.clone()), noisy, 3);
    let known = believed.clone();
    let mut profiler = Profiler::new(device(&truth), Findings::default(), |prober| async move {
        let clock = belief::phase::find(&prober, &known).await;
        prober.findings(|findings| findings.clock = clock.ok());
    });
    let second = Duration::from_secs(1);
    let ended = rehearse(&mut profiler, &mut drive, Instant::ZERO, second);
    assert!(matches!(ended, Rehearsed::Finished(_)), "{ended:?}");
    let clock = profiler.findings().clock.expect("a phase");
    let at = Instant::ZERO + second;
    let off = apart(
        belief::live(&believed, &clock).spindle.angle_at(at),
        truth.spindle.angle_at(at),
    );
    assert!(off.abs() < 0.005, "{off} revolutions");
}
