//! Commands of several threads at the drive at once: contents, time, and switches after a reset.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use block::{Action, Durability, Extent, Instant, Lba};
use server::disk::back_end::scsi::cache_switch::CacheSwitch;
use server::disk::back_end::scsi::probed::ProbedDrive;

use crate::commands::{drive, machine};
use crate::machine::{Behind, ScsiMachine};

const THREADS: u64 = 4;

/// Commands of each thread.
const COMMANDS: u64 = 30;

/// The same where their time is compared: which thread comes first matters less then than what is saved.
const MANY: u64 = 4 * COMMANDS;

/// A random block of the first 17 million; each thread has others.
fn block_of(thread: u64, number: u64) -> u64 {
    let mixed = (thread * 1000 + number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    mixed % 4_000_000 * THREADS + thread
}

fn claim(machine: &ScsiMachine, folder: &Path) -> ProbedDrive {
    let (probed, _) = ProbedDrive::claim(drive(machine), folder, "boot", 1 << 16).expect("a drive");
    for switch in CacheSwitch::ALL {
        probed.turn_off(switch).expect("a switch");
    }
    probed
}

/// All threads read at once, each the next block that none has read, so that no thread is left alone at the end; the drive was
/// reset after so many commands. The answer is the time it took.
fn read_by(threads: u64, commands: u64, reset_after: Option<u64>) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let machine = machine(Behind::Scsi);
    let probed = claim(&machine, folder.path());
    let begun: Instant = {
        let mut state = machine.state();
        state.queue.hosts = threads as usize;
        state.reset_after = reset_after;
        state.now
    };
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (machine, probed, next) = (&machine, &probed, &next);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= THREADS * commands {
                        break;
                    }
                    let block = block_of(number % THREADS, number / THREADS);
                    let extent = Extent::block(Lba(block));
                    let durability = Durability::Durable;
                    let mut bytes = [0; 512];
                    let done = probed.carry_out(Action::Read { extent, durability }, &mut bytes);
                    done.expect("a read, repeated after the event");
                }
                machine.leave();
            });
        }
    });
    let state = machine.state();
    assert_eq!(state.queue.most as u64, threads);
    let off = (state.is_on(2, 0x04), state.is_on(12, 0x20));
    assert_eq!(off, (false, true), "{reset_after:?}: both switches are off");
    let took = state.now.since(begun).as_nanos();
    drop(state);
    machine.state().queue.hosts = 1;
    for report in probed.restore() {
        assert_eq!(report.failed, None);
    }
    assert!(machine.state().is_on(2, 0x04) && !machine.state().is_on(12, 0x20));
    took
}

/// The drive serves what is there in the order of its arrival, and begins with the next command at once. The same blocks in the
/// same order, but for the first four: 2 % less.
#[test]
fn a_queue_of_commands_takes_less_time_than_one_after_the_other() {
    let [one, four] = [1, THREADS].map(|threads| read_by(threads, MANY, None));
    assert!(four < one, "{four} ns of {one}");
}

#[test]
fn switches_are_set_again_whenever_the_drive_is_reset_under_a_queue() {
    for commands in (0..THREADS * COMMANDS).step_by(17) {
        read_by(THREADS, COMMANDS, Some(commands));
    }
}

/// Writes of all threads at once, durable or flushed, are read back by each.
#[test]
fn what_is_written_at_once_is_read_back() {
    let machine = machine(Behind::Scsi);
    let drive = drive(&machine);
    machine.state().queue.hosts = THREADS as usize;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (machine, drive) = (&machine, &drive);
            scope.spawn(move || {
                let blocks: BTreeSet<u64> = (0..COMMANDS).map(|n| block_of(thread, n)).collect();
                let byte = |block: u64| 1 + (block % 200) as u8;
                for &block in &blocks {
                    let durability = match block % 3 {
                        0 => Durability::Durable,
                        _ => Durability::Volatile,
                    };
                    let bytes = [byte(block); 512];
                    drive.write(block, &bytes, durability).expect("written");
                }
                drive.flush().expect("flushed");
                for &block in &blocks {
                    let mut bytes = [0; 512];
                    drive
                        .read(block, &mut bytes, Durability::Volatile)
                        .expect("read");
                    assert_eq!(bytes[0], byte(block), "block {block}");
                }
                machine.leave();
            });
        }
    });
    assert_eq!(machine.state().queue.most as u64, THREADS);
}
