//! The electronics of shipped drives, found by timings, against the truth.

use std::sync::Arc;

use block::{Action, Command, CommandId, Durability, Duration, Extent, Instant, Lba, Sectors};
use drive::firmware::{BufferRules, LookAhead, Overheads, QueueOrder, WriteBack};
use drive::{Imperfections, Profile, VirtualDrive, catalog};
use profiler::firmware::{self, Chunk, FULL, Firmware, MOSTLY, STRETCH, commands};
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{Device, Findings, Offers, Profiler, Writes, spindle};

/// The default truth.
fn noisy() -> Imperfections {
    Imperfections {
        seek_noise: Duration::from_micros(60),
        overhead_noise: Duration::from_micros(20),
        ..Imperfections::default()
    }
}

fn truth(name: &str) -> Profile {
    let entry = catalog::find(name).expect("a shipped drive");
    entry.profile().expect("a valid one")
}

/// What was found, with how many probes and in how many seconds of the drive.
struct Run {
    firmware: Firmware,
    clock: profiler::clock::Clock,
    probes: u64,
    seconds: f64,
    drive: VirtualDrive,
}

fn run(truth: Profile, imperfections: Imperfections, offers: Offers, writes: Writes) -> Run {
    let geometry = Arc::clone(&truth.geometry);
    let mut drive = VirtualDrive::imperfect(Arc::new(truth), imperfections, 11);
    let device = Device::of(&drive, offers, writes);
    let lba = Lba(device.blocks / 3);
    let mut first = Profiler::new(device, Findings::default(), move |prober| async move {
        spindle::find(&prober, lba).await.expect("a period");
    });
    let limit = Duration::from_secs(120);
    let begun = rehearse(&mut first, &mut drive, Instant::ZERO, limit).at();
    let mut second = Profiler::new(device, first.findings(), move |prober| async move {
        firmware::measure(&prober, &geometry).await;
    });
    let ended = rehearse(&mut second, &mut drive, begun, limit);
    assert!(matches!(ended, Rehearsed::Finished(_)), "{ended:?}");
    let findings = second.findings();
    Run {
        firmware: findings.firmware.expect("electronics"),
        clock: findings.clock.expect("a clock"),
        probes: second.probes(),
        seconds: ended.at().since(begun).as_secs_f64(),
        drive,
    }
}

/// The sums that show, in microseconds: name, what it is.
fn sums(o: &Overheads, bus: &drive::firmware::Bus) -> [(&'static str, f64); 9] {
    let us = |d: Duration| d.as_nanos() as f64 / 1e3;
    let lag = us(bus.read_block) + us(o.read_reselect) + us(o.read_completion);
    let data = us(o.write_reselect) + us(bus.write_block);
    let early = us(bus.write_block) + us(o.write_completion);
    [
        ("read-miss-rr", us(o.read_miss.read) + lag),
        ("read-miss-wr", us(o.read_miss.write) + lag),
        ("write-miss-rw", us(o.write_miss.read) + data + lag),
        ("write-miss-ww", us(o.write_miss.write) + data + lag),
        ("write-ends", us(o.write_completion) - lag),
        ("read-hit-rr", us(o.read_hit.read) + lag),
        ("read-hit-wr", us(o.read_hit.write) + lag),
        ("write-hit-rw", us(o.write_hit.read) + early),
        ("write-hit-ww", us(o.write_hit.write) + early),
    ]
}

/// The rate of sequential reads of a perfect drive, measured as [`Chunk`] says.
fn true_rate(truth: &Arc<Profile>, at: Lba, blocks: u64) -> f64 {
    let track = truth.geometry.track_of(at).expect("a track").sectors;
    let commands = commands(blocks, track.into());
    let mut drive = VirtualDrive::new(Arc::clone(truth));
    let (mut now, mut from) = (Instant::ZERO, Instant::ZERO);
    for command in 0..2 + commands {
        let extent = Extent::new(Lba(at.0 + command * blocks), Sectors(blocks)).expect("blocks");
        let action = Action::Read {
            extent,
            durability: Durability::Volatile,
        };
        let command_id = CommandId(command);
        drive
            .submit(now, Command::new(command_id, action))
            .expect("room");
        loop {
            now = drive.next_wakeup().expect("an end").max(now);
            if drive.poll(now).is_some() {
                break;
            }
        }
        if command == 1 {
            from = now;
        }
    }
    (blocks * commands) as f64 / now.since(from).as_secs_f64()
}

/// Points a and b at fine steps, up to the largest size tried, as [`firmware`] defines them.
fn true_chunk(truth: &Arc<Profile>, found: &Chunk) -> (u32, Option<u32>) {
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
        let end =
            sizes.partition_point(|&size| f64::from(size) <= f64::from(sizes[from]) * STRETCH);
        let full = rates[from..end]
            .iter()
            .filter(|&&rate| rate >= enough)
            .count();
        full as f64 / (end - from) as f64
    };
    let full = |&at: &usize| rates[at] >= enough && share(at) >= MOSTLY;
    let least = (0..sizes.len()).find(full).expect("a full size");
    let lost = |&at: &usize| rates[at] < enough && share(at) <= 1.0 - MOSTLY;
    let lost = (least..sizes.len()).find(lost);
    let most = lost.and_then(|lost| (0..lost).rev().find(|&at| rates[at] >= enough));
    (sizes[least], most.map(|at| sizes[at]))
}

fn report(name: &str) {
    let truth = truth(name);
    let true_profile = Arc::new(truth.clone());
    let run = run(
        truth.clone(),
        noisy(),
        Offers::CacheControl,
        Writes::Allowed,
    );
    let found = &run.firmware;
    println!("== {name}: {} probes, {:.1} s", run.probes, run.seconds);
    let pairs = sums(&found.overheads, &found.bus)
        .into_iter()
        .zip(sums(&truth.overheads, &truth.bus));
    let sums: Vec<String> = pairs
        .map(|((what, f), (_, t))| format!("{what} {f:.0}/{t:.0}"))
        .collect();
    println!("   {}", sums.join(" "));
    println!(
        "   bus r {:?}/{:?} w {:?}/{:?}",
        found.bus.read_block, truth.bus.read_block, found.bus.write_block, truth.bus.write_block
    );
    println!(
        "   {:?} {:?}\n   {:?}",
        found.buffer, found.segments, truth.buffer
    );
    println!(
        "   {:?} {:?}/{:?}",
        found.write_buffer, found.queue, truth.queue
    );
    println!("   {:?}", found.confidence);
    if let Some(chunk) = &found.chunk {
        if std::env::var("CURVE").is_ok() {
            let line: Vec<String> = chunk
                .curve
                .iter()
                .map(|p| {
                    format!(
                        "{}:{:.0}/{:.0}",
                        p.blocks,
                        p.rate / 100.0,
                        true_rate(&true_profile, chunk.at, p.blocks.into()) / 100.0
                    )
                })
                .collect();
            println!("{}", line.join(" "));
        }
        println!(
            "   chunk {} {:?} / {:?}",
            chunk.least,
            chunk.most,
            true_chunk(&true_profile, chunk)
        );
    }
}

#[test]
#[ignore = "prints what is found of all drives"]
fn all_drives() {
    let only = std::env::var("DRIVE").ok();
    for entry in catalog::ALL {
        if only.as_deref().is_none_or(|only| entry.name.contains(only)) {
            report(entry.name);
        }
    }
}
