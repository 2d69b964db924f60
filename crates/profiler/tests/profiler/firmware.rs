//! The electronics of shipped drives, found by timings, against the truth.

mod chunk;

use std::sync::{Arc, Mutex};

use block::{Action, Direction, Duration, Extent, Instant, Lba};
use drive::firmware::{Bus, Overheads, QueueOrder, WriteBack};
use drive::imperfection::{Chance, Periodic};
use drive::{Imperfections, Profile, SeekTarget, VirtualDrive, catalog};
use profiler::clock::PlatterClock;
use profiler::findings::{CountBound, Firmware, Honesty};
use profiler::firmware;
use profiler::prober::Timing;
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{
    Confidence, DriveIdentity, Findings, NextProbe, Offers, Profiler, WritePermission, spindle,
};

use crate::harness::{noisy, shipped};

/// What was found, with how many probes and in how many seconds of the drive.
struct Run {
    findings: Findings,
    device: DriveIdentity,
    probes: u64,
    seconds: f64,
    ended: Instant,
    drive: VirtualDrive,
}

/// Any will do.
const SEED: u64 = 11;

const LIMIT: Duration = Duration::from_secs(240);

impl Run {
    fn firmware(&self) -> &Firmware {
        self.findings.firmware.as_ref().expect("electronics")
    }
}

/// Finds the period, with all that drives offer, and then the electronics with the true geometry.
fn run(
    truth: &Profile,
    imperfections: Imperfections,
    offers: Offers,
    writes: WritePermission,
) -> Run {
    run_seeded(truth, imperfections, (offers, writes), SEED)
}

/// The same with other noise.
fn run_seeded(
    truth: &Profile,
    imperfections: Imperfections,
    (offers, writes): (Offers, WritePermission),
    seed: u64,
) -> Run {
    let geometry = Arc::clone(&truth.geometry);
    let mut drive = VirtualDrive::imperfect(Arc::new(truth.clone()), imperfections, seed);
    let device = DriveIdentity::of(&drive, offers, writes);
    let lba = Lba(device.blocks / 3);
    let ideal = DriveIdentity::of(&drive, Offers::CacheControl, writes);
    let mut first = Profiler::new(ideal, Findings::default(), move |prober| async move {
        spindle::find(&prober, lba).await.expect("a period");
    });
    let begun = rehearse(&mut first, &mut drive, Instant::ZERO, LIMIT).at();
    let mut second = Profiler::new(device, first.findings(), move |prober| async move {
        firmware::measure(&prober, &geometry).await;
        firmware::measure_rest(&prober, &geometry).await;
    });
    let ended = rehearse(&mut second, &mut drive, begun, LIMIT);
    assert!(matches!(ended, Rehearsed::Finished(_)), "{ended:?}");
    Run {
        findings: second.findings(),
        device,
        probes: second.probes(),
        seconds: ended.at().since(begun).as_secs_f64(),
        ended: ended.at(),
        drive,
    }
}

fn micros(length: Duration) -> f64 {
    length.as_nanos() as f64 / 1e3
}

/// The sums that show, in microseconds, and their names; early writes last.
fn sums(overheads: &Overheads, bus: &Bus) -> [(&'static str, f64); 9] {
    let o = overheads;
    let lag = micros(bus.read_block) + micros(o.read_reselect) + micros(o.read_completion);
    let data = micros(o.write_reselect) + micros(bus.write_block);
    let early = micros(bus.write_block) + micros(o.write_completion);
    [
        ("read miss after read", micros(o.read_miss.read) + lag),
        ("read miss after write", micros(o.read_miss.write) + lag),
        (
            "write miss after read",
            micros(o.write_miss.read) + data + lag,
        ),
        (
            "write miss after write",
            micros(o.write_miss.write) + data + lag,
        ),
        (
            "write's end against read's",
            micros(o.write_completion) - lag,
        ),
        ("read hit after read", micros(o.read_hit.read) + lag),
        ("read hit after write", micros(o.read_hit.write) + lag),
        ("write hit after read", micros(o.write_hit.read) + early),
        ("write hit after write", micros(o.write_hit.write) + early),
    ]
}

/// How many of the sums do show, on a drive of that kind.
fn shown(truth: &Profile) -> usize {
    match truth.buffer.write_back {
        WriteBack::None => 7,
        _ => 9,
    }
}

/// What is wrong about how bus and medium overlap, as far as it shows.
fn wrong_overlap(truth: &Profile, found: &Firmware) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: String, right: bool| {
        if !right {
            wrong.push(what);
        }
    };
    let (bus, true_bus) = (micros(found.bus.read_block), micros(truth.bus.read_block));
    // 5 %, or what the largest answer of the buffer shows within 30 us.
    let shows = (40.0 / f64::from(truth.buffer.segment_blocks)).min(0.2);
    let close = (bus - true_bus).abs() <= (0.05 * true_bus).max(shows);
    check(format!("bus {bus} us, not {true_bus}"), close);
    let rules = &found.buffer;
    let sector = sector(truth);
    // A slow bus shows the watermark, a fast one the reselection.
    if true_bus > 1.1 * sector {
        let off = rules.read_watermark.abs_diff(truth.buffer.read_watermark);
        check(
            format!("read watermark {}", rules.read_watermark),
            off <= 50,
        );
    } else if truth.buffer.read_watermark == 0 || true_bus < 0.1 * sector {
        let reselect = micros(found.overheads.read_reselect);
        let off = (reselect - micros(truth.overheads.read_reselect)).abs();
        check(format!("reselection {reselect} us"), off <= 30.0);
    }
    let (bus, true_bus) = (micros(found.bus.write_block), micros(truth.bus.write_block));
    let early = truth.buffer.write_back != WriteBack::None;
    // What a write waits for: only the product shows.
    let held = bus * f64::from(rules.write_watermark);
    let true_held = true_bus * f64::from(truth.buffer.write_watermark);
    if early || true_bus > 1.03 * sector && true_held < 500.0 * sector {
        let close = (bus - true_bus).abs() <= (0.05 * true_bus).max(shows);
        check(format!("bus of writes {bus} us, not {true_bus}"), close);
    } else if true_held > 0.0 {
        let close = (held - true_held).abs() <= 0.05 * true_held;
        check(format!("writes wait for {held}, not {true_held}"), close);
    }
    wrong
}

/// How long a sector takes where measurements are made, in microseconds.
fn sector(truth: &Profile) -> f64 {
    let track = truth.geometry.track_of(Lba(truth.geometry.sectors().0 / 4));
    micros(truth.spindle.period()) / f64::from(track.expect("a track").sectors)
}

/// What is wrong about the write buffer.
fn wrong_write_back(truth: &Profile, found: &Firmware) -> Vec<String> {
    let (rules, truth) = (&found.buffer, &truth.buffer);
    let mut wrong = Vec::new();
    if (rules.write_back, rules.destage_first) != (truth.write_back, truth.destage_first) {
        wrong.push(format!("write-back of {rules:?}"));
    }
    // Hundreds are counted while some of them are destaged, and in an order of its own a drive
    // destages sooner than the writes before tell.
    let ordered = truth.destage_order != QueueOrder::Fcfs;
    let off = rules.write_segments.abs_diff(truth.write_segments);
    let close = off * 50 <= truth.write_segments || (ordered && off == 1);
    if truth.write_back != WriteBack::None && !close {
        wrong.push(format!("{} write segments", rules.write_segments));
    }
    wrong
}

/// All that is wrong about what was found.
fn wrong(truth: &Profile, found: &Firmware) -> Vec<String> {
    let mut wrong = wrong_overlap(truth, found);
    wrong.extend(wrong_write_back(truth, found));
    let mut check = |what: &str, right: bool| {
        if !right {
            wrong.push(what.to_owned());
        }
    };
    let pairs = sums(&found.overheads, &found.bus)
        .into_iter()
        .zip(sums(&truth.overheads, &truth.bus));
    for ((what, found), (_, truth)) in pairs.take(shown(truth)) {
        check(
            &format!("{what}: {found} us, not {truth}"),
            (found - truth).abs() <= 30.0,
        );
    }
    let (rules, parts) = (&found.buffer, &found.confidence);
    let kind = rules.look_ahead == truth.buffer.look_ahead;
    check(&format!("look-ahead {:?}", rules.look_ahead), kind);
    let segments = match found.segments {
        CountBound::Exactly => rules.segments == truth.buffer.segments,
        CountBound::AtLeast => rules.segments <= truth.buffer.segments && rules.segments >= 100,
    };
    check(&format!("{} segments", rules.segments), segments);
    let size = rules.segment_blocks == truth.buffer.segment_blocks;
    check(&format!("segments of {}", rules.segment_blocks), size);
    check(
        "read on arrival",
        rules.read_on_arrival == truth.buffer.read_on_arrival,
    );
    check(
        "read written",
        rules.read_written == truth.buffer.read_written,
    );
    check(
        "on hit",
        rules.look_ahead_on_hit == truth.buffer.look_ahead_on_hit,
    );
    // A bus as slow as the medium hides how reads begin, and then nothing must be claimed.
    if parts
        .zero_latency_read
        .is_some_and(|sure| sure > Confidence::NONE)
    {
        let right = rules.zero_latency_read == truth.buffer.zero_latency_read;
        check("zero-latency read", right);
    } else {
        check(
            "zero-latency read unseen",
            micros(truth.bus.read_block) > 0.85 * sector(truth),
        );
    }
    let right = rules.zero_latency_write == truth.buffer.zero_latency_write;
    check("zero-latency write", right);
    check("queue", found.queue == truth.queue);
    check(
        "seek command",
        found.seek_command == Some(truth.seek_command),
    );
    let durable = found.write_buffer.map(|buffer| buffer.durable);
    check("durable writes", durable == Some(Honesty::Honest));
    wrong
}

#[test]
fn every_drive() {
    for entry in catalog::ALL {
        let truth = Arc::new(shipped(entry.name));
        for seed in [SEED, 100, 101] {
            let allowed = (Offers::CacheControl, WritePermission::Allowed);
            let run = run_seeded(&truth, noisy(), allowed, seed);
            let wrong = wrong(&truth, run.firmware());
            assert!(wrong.is_empty(), "{} {seed}: {wrong:?}", entry.name);
            assert!(run.seconds < 60.0, "{}: {} s", entry.name, run.seconds);
            let parts = run.firmware().confidence;
            for part in [
                parts.read_miss,
                parts.write_miss,
                parts.hits,
                parts.look_ahead,
            ] {
                assert!(part.ppm() > 700_000, "{}: {parts:?}", entry.name);
            }
            if seed == SEED {
                println!("{}", report(entry.name, &truth, &run));
            }
        }
    }
}

/// One-block reads all over the disk, after the clock was corrected by a sighting of `known`.
fn reads(run: &mut Run, known: Lba) -> (PlatterClock, Vec<(Lba, Timing)>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (kept, blocks) = (Arc::clone(&seen), run.device.blocks);
    let mut third = Profiler::new(run.device, run.findings.clone(), move |prober| async move {
        for _ in 0..8 {
            let seen = prober.sight(known).await.expect("a block");
            let mut clock = prober.findings(|findings| findings.clock).expect("a clock");
            clock.anchor(drive::Angle::ZERO, seen.at);
            prober.findings(|findings| findings.clock = Some(clock));
        }
        for n in 1..=100u64 {
            let lba = Lba(n * 7_919_777_777 % blocks);
            let action = prober.from_medium(Extent::block(lba));
            let timing = prober.ask(action).await;
            kept.lock().expect("unpoisoned").push((lba, timing));
        }
    });
    rehearse(&mut third, &mut run.drive, run.ended, LIMIT);
    let seen = seen.lock().expect("unpoisoned").clone();
    (third.findings().clock.expect("a clock"), seen)
}

#[test]
fn a_believed_profile_predicts_when_reads_end() {
    for name in [
        "quantum-atlas-10k",
        "hp-c3323a",
        "hp-c2247a",
        "seagate-cheetah-9lp",
    ] {
        let truth = shipped(name);
        let mut run = run(
            &truth,
            noisy(),
            Offers::CacheControl,
            WritePermission::Allowed,
        );
        let firmware = run.firmware().clone();
        let known = Lba(run.device.blocks / 3);
        let (clock, reads) = reads(&mut run, known);
        // The clock's zero is where the known block ends.
        let place = truth.geometry.locate(known).expect("a block");
        let zero = place.angle + place.width;
        let spindle = firmware.spindle(&clock);
        let mut belief = truth.clone();
        belief.spindle = spindle.with_phase(spindle.phase() + zero);
        let (mut close, mut all) = (0, 0);
        for pair in reads.windows(2) {
            let [(from, _), (to, timing)] = [pair[0], pair[1]];
            let place = |lba| truth.geometry.locate(lba).expect("a block");
            let start = timing.submitted + firmware.overheads.read_miss.read;
            let (from, to) = (SeekTarget::from(&place(from)), place(to));
            let way = belief.positioning(
                from.position,
                start,
                &SeekTarget::from(&to),
                Direction::Read,
            );
            let ends = start + way.total() + belief.spindle.time_of(to.width) + firmware.lag();
            let error = timing.ended.as_nanos().abs_diff(ends.as_nanos());
            close += u32::from(error < 50_000);
            all += 1;
        }
        assert!(close * 10 >= all * 9, "{name}: {close} of {all}");
    }
}

#[test]
fn what_must_not_be_written_is_not_written() {
    let truth = shipped("quantum-atlas-10k");
    let geometry = Arc::clone(&truth.geometry);
    let first = run(
        &truth,
        noisy(),
        Offers::CacheControl,
        WritePermission::Forbidden,
    );
    assert_eq!(first.firmware().write_buffer, None);
    assert_eq!(first.firmware().confidence.write_miss, Confidence::NONE);
    let mut drive = first.drive;
    let mut again = Profiler::new(first.device, first.findings, move |prober| async move {
        firmware::measure(&prober, &geometry).await;
    });
    let mut now = first.ended;
    loop {
        match again.next_probe(now) {
            NextProbe::Probe(command) => {
                let harmless = !matches!(command.action, Action::Write { .. });
                assert!(harmless, "{command:?}");
                drive.submit(now, command).expect("room");
                continue;
            }
            NextProbe::Finished => break,
            NextProbe::WaitUntil(at) => now = drive.next_wakeup().map_or(at, |next| next.min(at)),
            NextProbe::Wait => now = drive.next_wakeup().expect("an end").max(now),
        }
        while let Some(outcome) = drive.poll(now) {
            again.observe(now, outcome);
        }
    }
}

#[test]
fn retries_and_stalls() {
    let hostile = Imperfections {
        media_retry: Chance {
            per_million: 10_000,
            costs: Duration::from_micros(300),
        },
        recalibration: Periodic {
            every: Duration::from_secs(3),
            costs: Duration::from_millis(80),
        },
        spindle_ppm: 3000,
        spindle_drift_ppm: 20,
        ..noisy()
    };
    for name in ["quantum-atlas-10k", "hp-c3323a", "seagate-cheetah-4lp"] {
        let truth = shipped(name);
        let run = run(
            &truth,
            hostile.clone(),
            Offers::CacheControl,
            WritePermission::Allowed,
        );
        let wrong = wrong(&truth, run.firmware());
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}

#[test]
fn without_cache_control_reads_are_told_by_their_speed() {
    for name in ["seagate-cheetah-9lp", "seagate-st318437lw"] {
        let truth = shipped(name);
        let run = run(&truth, noisy(), Offers::Nothing, WritePermission::Forbidden);
        let found = run.firmware();
        let pairs = sums(&found.overheads, &found.bus)
            .into_iter()
            .zip(sums(&truth.overheads, &truth.bus));
        for ((what, found), (_, truth)) in pairs {
            if ["read miss after read", "read hit after read"].contains(&what) {
                let close = (found - truth).abs() <= 30.0;
                assert!(close, "{name}: {what} {found} {truth}");
            }
        }
        assert_eq!(found.buffer.look_ahead, truth.buffer.look_ahead, "{name}");
        assert_eq!(found.queue, truth.queue, "{name}");
    }
}

/// One drive of the table.
fn report(name: &str, truth: &Arc<Profile>, run: &Run) -> String {
    let found = run.firmware();
    let pairs = sums(&found.overheads, &found.bus)
        .into_iter()
        .zip(sums(&truth.overheads, &truth.bus));
    let pairs = pairs.take(shown(truth));
    let pair = |((what, found), (_, truth))| format!("{what} {found:.0}/{truth:.0}");
    let sums: Vec<String> = pairs.map(pair).collect();
    let chunk = found.chunk.as_ref().map(|chunk| {
        let points = chunk::true_points(truth, chunk);
        format!("({}, {:?}) / {points:?}", chunk.least, chunk.most)
    });
    format!(
        "== {name}: {} probes, {:.1} s\n {}\n {:?} / {:?}\n {:?} {:?}\n {:?}\n {:?} {:?} / {:?}\n \
         {:?}\n chunk {chunk:?}",
        run.probes,
        run.seconds,
        sums.join(", "),
        found.bus,
        truth.bus,
        found.buffer,
        found.segments,
        truth.buffer,
        found.write_buffer,
        found.queue,
        truth.queue,
        found.confidence
    )
}
