//! What a command costs on a `VirtualDrive` alone: the load of `headtime bench simulate`, without
//! engine, policy and ledger.
//!
//! `cargo bench -p drive`. One iteration is `COMMANDS` commands, ten of them outstanding.

use std::sync::Arc;

use block::{Action, Command, CommandId, Durability, Extent, Instant, Lba, Sectors};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use drive::firmware::QueueOrder;
use drive::{Imperfections, Profile, VirtualDrive, catalog};

/// Commands in one iteration: long enough that beginning and end do not count.
const COMMANDS: u64 = 20_000;

/// Commands that the load keeps outstanding.
const OUTSTANDING: u32 = 10;

/// Blocks of a command: 7.5 KB, as DiskSim was measured (`drives/README.md` of the shared data).
const BLOCKS: u64 = 15;

fn main() {
    divan::main();
}

fn profile(name: &str) -> Arc<Profile> {
    let entry = catalog::find(name).expect("a shipped drive");
    Arc::new(entry.profile().expect("a valid profile"))
}

/// Two reads and a write by turns, anywhere. Any fixed sequence that spreads over the disk will
/// do: this is Knuth's multiplicative hashing.
fn command(id: u64, capacity: u64) -> Command {
    let spread = id.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    let start = Lba(spread % (capacity - BLOCKS));
    let extent = Extent::new(start, Sectors(BLOCKS)).expect("a valid extent");
    let durability = Durability::Volatile;
    let action = match id % 3 {
        0 => Action::Write { extent, durability },
        _ => Action::Read { extent, durability },
    };
    Command::new(CommandId(id), action)
}

/// Serves the load; answers when the last command has ended.
fn serve(mut drive: VirtualDrive) -> Instant {
    let capacity = drive.truth().geometry.sectors().0;
    let mut now = Instant::ZERO;
    let mut submitted = 0;
    for _ in 0..OUTSTANDING {
        let taken = drive.submit(now, command(submitted, capacity));
        taken.expect("there is room");
        submitted += 1;
    }
    loop {
        while drive.poll(now).is_some() {
            if submitted < COMMANDS {
                let taken = drive.submit(now, command(submitted, capacity));
                taken.expect("there is room");
                submitted += 1;
            }
        }
        match drive.next_wakeup() {
            Some(wakeup) => now = wakeup,
            None => return now,
        }
    }
}

/// The drive chooses by itself among ten.
#[divan::bench(args = [QueueOrder::Fcfs, QueueOrder::Sptf, QueueOrder::AgedSptf])]
fn cheetah_9lp(bencher: Bencher, order: QueueOrder) {
    let profile = profile("seagate-cheetah-9lp");
    bencher.counter(ItemsCount::new(COMMANDS)).bench(|| {
        let drive = VirtualDrive::new(Arc::clone(black_box(&profile)));
        serve(drive.with_queue(OUTSTANDING, order))
    });
}

/// The largest drive: two thirds of a million tracks, and a write cache.
#[divan::bench(args = [QueueOrder::Fcfs, QueueOrder::Sptf])]
fn modern_20tb(bencher: Bencher, order: QueueOrder) {
    let profile = profile("modern-20tb");
    bencher.counter(ItemsCount::new(COMMANDS)).bench(|| {
        let drive = VirtualDrive::new(Arc::clone(black_box(&profile)));
        serve(drive.with_queue(OUTSTANDING, order))
    });
}

/// A truth with noise and a wandering spindle.
#[divan::bench]
fn imperfect_cheetah_9lp(bencher: Bencher) {
    let profile = profile("seagate-cheetah-9lp");
    let imperfections = Imperfections {
        seek_noise: block::Duration::from_micros(50),
        overhead_noise: block::Duration::from_micros(5),
        spindle_drift_ppm: 20,
        ..Imperfections::default()
    };
    bencher.counter(ItemsCount::new(COMMANDS)).bench(|| {
        let truth = Arc::clone(black_box(&profile));
        let drive = VirtualDrive::imperfect(truth, imperfections.clone(), 1);
        serve(drive.with_queue(OUTSTANDING, QueueOrder::Fcfs))
    });
}
