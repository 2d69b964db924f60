//! The drive of Virtual IO (Dimitrijevic, Rangaswami, Chang 2002) does what its paper saw. The bounds
//! are the paper's words, not its figures: those stand beside ours in `headtime paper virtual-io`.

use std::sync::{Arc, LazyLock};

use block::{Action, Durability, Duration, Instant};
use drive::{Imperfections, Profile, VirtualDrive, catalog};

use crate::play::Play;
use crate::small::{extent, read, write, write_medium};

static DRIVE: LazyLock<Arc<Profile>> = LazyLock::new(|| {
    let entry = catalog::find("seagate-st318437lw").expect("shipped");
    Arc::new(entry.profile().expect("a profile"))
});

fn fresh() -> Play {
    Play::new(VirtualDrive::new(Arc::clone(&DRIVE)))
}

/// Places all over the drive, far from each other: the multiples of the golden ratio.
fn place(number: u64) -> u64 {
    let capacity = DRIVE.geometry.sectors().0 - 8_000;
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(mixed) * u128::from(capacity)) >> 64) as u64
}

fn millis(length: Duration) -> f64 {
    length.as_nanos() as f64 / 1e6
}

/// Blocks in a millisecond, of sequential commands, each given when the one before has ended.
fn rate(start: u64, blocks: u64, durability: Option<Durability>) -> f64 {
    let mut play = fresh();
    let command = |number: u64| match durability {
        None => read(start + number * blocks, blocks),
        Some(_) => write(start + number * blocks, blocks),
    };
    let (lead, counted) = (3_000 / blocks + 2, 12_000 / blocks + 4);
    play.keep(1, (0..lead).map(command));
    let begun = play.now;
    play.keep(1, (lead..lead + counted).map(command));
    (counted * blocks) as f64 / millis(play.now.since(begun))
}

/// The first block of a zone.
fn zone(index: usize) -> u64 {
    DRIVE.geometry.zones()[index].first.0
}

#[test]
fn sequential_reads_reach_the_full_rate_at_fifty_blocks_and_not_before() {
    let sequential = |index: usize| {
        // 24.3 to 41.7 MB/s, of 512 bytes.
        let track = DRIVE.geometry.zones()[index].sectors_per_track;
        f64::from(track) / 8.3333 * 0.905
    };
    for index in [0, 4, 8, 12, 15] {
        for blocks in [50, 64, 100, 256] {
            let share = rate(zone(index), blocks, None) / sequential(index);
            assert!(share > 0.97, "zone {index}, {blocks} blocks: {share}");
        }
        let small = rate(zone(index), 20, None) / sequential(index);
        assert!(small < 0.8, "zone {index}: {small}");
    }
    // In the fastest zone the cost of a command shows up to just below.
    assert!(rate(zone(0), 40, None) < 0.8 * sequential(0));
}

#[test]
fn sequential_writes_in_small_chunks_are_slow_too() {
    for index in [0, 8, 15] {
        let of = |blocks| rate(zone(index), blocks, Some(Durability::Volatile));
        let full = of(50);
        assert!(of(100) > 0.7 * full && of(100) < 1.1 * full, "zone {index}");
        assert!(of(10) < 0.4 * full, "zone {index}");
    }
}

#[test]
fn two_megabytes_take_longer_in_one_command_than_in_chunks() {
    for chunked in [read, write] {
        let whole = {
            let mut play = fresh();
            play.keep(1, (0..60).map(|n| chunked(place(n), 4_000)));
            millis(play.now.since(Instant::ZERO))
        };
        let chunks = (0..60).flat_map(|n| {
            (0..80).map(move |chunk| match chunk {
                // The last is forced to the medium, so that nothing is left over.
                79 => match chunked(0, 1) {
                    Action::Read { .. } => read(place(n) + 79 * 50, 50),
                    _ => write_medium(place(n) + 79 * 50, 50),
                },
                chunk => chunked(place(n) + chunk * 50, 50),
            })
        });
        let mut play = fresh();
        play.keep(1, chunks);
        let chunks = millis(play.now.since(Instant::ZERO));
        assert!(chunks < whole, "{chunks} ms in chunks, {whole} ms whole");
    }
}

/// How long an urgent read takes in the mean that comes when a write has just ended.
fn response(blocks: u64, last: Durability) -> f64 {
    let mut play = fresh();
    let (mut took, mut reads) = (0.0, 0);
    for number in 0..400 {
        let extent = extent(place(number), blocks);
        play.then(Action::Write {
            extent,
            durability: last,
        });
        if number % 20 == 19 {
            took += millis(play.then(read(place(1_000 + number), 8)).took());
            reads += 1;
        }
    }
    took / f64::from(reads)
}

#[test]
fn cached_writes_delay_the_urgent_read_behind_them_and_large_or_durable_ones_do_not() {
    let cached = response(100, Durability::Volatile);
    assert!(cached > 60.0, "{cached} ms");
    for (blocks, last) in [
        (100, Durability::Durable),
        (1_000, Durability::Volatile),
        (4_000, Durability::Volatile),
    ] {
        let alone = response(blocks, last);
        assert!(alone < 20.0, "{blocks} blocks, {last:?}: {alone} ms");
    }
}

#[test]
fn scattered_writes_of_50_kb_are_faster_than_reads() {
    let took = |action: fn(u64, u64) -> Action| {
        let mut play = fresh();
        play.keep(1, (0..400).map(|number| action(place(number), 100)));
        millis(play.now.since(Instant::ZERO))
    };
    assert!(took(write) < 0.8 * took(read));
}

#[test]
fn a_forced_chunk_that_waits_behind_a_cached_one_loses_a_revolution() {
    let took = |waits: Duration, last: u64| {
        let imperfections = Imperfections {
            durable_behind_cached: waits,
            ..Imperfections::default()
        };
        let mut play = Play::new(VirtualDrive::imperfect(
            Arc::clone(&DRIVE),
            imperfections,
            1,
        ));
        play.then(write(0, 50));
        millis(play.then(write_medium(last, 50)).took())
    };
    let wait = Duration::from_micros(50);
    let revolution = millis(DRIVE.spindle.period());
    let lost = took(wait, 50) - took(Duration::ZERO, 50);
    assert!((lost - revolution).abs() < 0.01, "{lost} ms");
    let elsewhere = took(wait, 100) - took(Duration::ZERO, 100);
    assert!(elsewhere.abs() < 1e-9, "{elsewhere} ms: it continues none");
}
