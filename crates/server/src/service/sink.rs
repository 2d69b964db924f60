//! Where the blocks of a live scan go: into a checksum, or to a program.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use tracing::{info, warn};

use crate::control;
use crate::event_loop::tasks::{HOLD, Portion, ROOM, Sink};
use crate::mailbox::Mailbox;

/// A checksum of a set of blocks that does not depend on the order in which they are read: the sum
/// of the checksums of each 512 bytes with their place.
///
/// It finds blocks that are wrong, missing or twice; it is no protection against who wants to
/// deceive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetSum {
    sum: u64,
    pieces: u64,
}

impl SetSum {
    /// Adds the bytes at `offset`, both in multiples of 512.
    pub fn add(&mut self, offset: u64, bytes: &[u8]) {
        for (place, piece) in (offset / PIECE as u64..).zip(bytes.chunks(PIECE)) {
            self.sum = self.sum.wrapping_add(mixed(place, piece));
            self.pieces += 1;
        }
    }
}

impl std::fmt::Display for SetSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}-{}", self.sum, self.pieces)
    }
}

/// FNV-1a over words of 64 bits, begun with the place, and mixed at the end (the finaliser of
/// MurmurHash3) so that sums of similar pieces do not cancel out.
fn mixed(place: u64, piece: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ place;
    for word in piece.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        hash = (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// What the sum is made of: a block of the smallest size that drives have.
const PIECE: usize = 512;

/// Starts the thread that takes a scan's blocks; `base` is where its volume begins on the drive.
///
/// # Errors
/// If the program cannot be started.
pub(super) fn begin(
    number: u64,
    order: &control::Scan,
    mailbox: Mailbox,
    base: u64,
) -> Result<Sink, String> {
    let child = match &order.sink {
        control::Sink::Checksum => None,
        control::Sink::Command(words) => Some(started(words)?),
    };
    let (portions, received) = sync_channel(ROOM);
    let outstanding = Arc::new(AtomicUsize::new(0));
    let sink = Sink {
        portions,
        outstanding: Arc::clone(&outstanding),
        outcome: Arc::default(),
    };
    let outcome = Arc::clone(&sink.outcome);
    let volume = order.volume.clone();
    let thread = thread::Builder::new().name(format!("scan {number}"));
    let taking = Taking {
        number,
        base,
        mailbox,
        outstanding,
        received,
    };
    let spawned = thread.spawn(move || {
        let ended = match child {
            Some(child) => taking.feed(child),
            None => taking.sum(),
        };
        info!(task = number, volume, ended, "a scan has ended");
        // It is set once: here.
        let _ = outcome.set(ended);
    });
    spawned.map_err(|error| format!("no thread for the scan: {error}"))?;
    Ok(sink)
}

fn started(words: &[String]) -> Result<Child, String> {
    let (program, arguments) = words
        .split_first()
        .ok_or("an empty command: expected a program")?;
    let command = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .spawn();
    command.map_err(|error| format!("{program}: {error}"))
}

/// The thread's side of a sink.
struct Taking {
    number: u64,
    base: u64,
    mailbox: Mailbox,
    outstanding: Arc<AtomicUsize>,
    received: Receiver<Portion>,
}

impl Taking {
    fn sum(self) -> String {
        let mut sum = SetSum::default();
        for portion in &self.received {
            sum.add(portion.offset - self.base, &portion.bytes);
            self.done_one();
        }
        format!("checksum {sum}")
    }

    /// Each portion is a line with its offset in the volume and its length, and then its bytes.
    fn feed(self, mut child: Child) -> String {
        let mut pipe = child.stdin.take();
        for portion in &self.received {
            let offset = portion.offset - self.base;
            let written = pipe.as_mut().map(|pipe| {
                writeln!(pipe, "{offset} {}", portion.bytes.len())
                    .and_then(|()| pipe.write_all(&portion.bytes))
            });
            if let Some(Err(error)) = written {
                warn!(task = self.number, %error, "the scan's program takes no more: the scan is given up");
                break;
            }
            self.done_one();
        }
        drop(pipe);
        match child.wait() {
            Ok(status) => format!("the program ended with {status}"),
            Err(error) => format!("the program was lost: {error}"),
        }
    }

    fn done_one(&self) {
        let before = self.outstanding.fetch_sub(1, Ordering::AcqRel);
        if before == HOLD / 2 {
            let number = self.number;
            // A loop that has ended needs no telling.
            let _ = self
                .mailbox
                .call(move |event_loop| event_loop.caught_up(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SetSum;

    #[test]
    fn the_order_does_not_matter_and_everything_else_does() {
        let bytes: Vec<u8> = (0..4096u32).map(|n| (n * 7 % 251) as u8).collect();
        let mut whole = SetSum::default();
        whole.add(0, &bytes);
        let mut parts = SetSum::default();
        for place in [5, 1, 7, 0, 2, 6, 4, 3] {
            parts.add(place * 512, &bytes[place as usize * 512..][..512]);
        }
        assert_eq!(whole, parts);
        let mut swapped = SetSum::default();
        swapped.add(0, &bytes[512..1024]);
        swapped.add(512, &bytes[..512]);
        swapped.add(1024, &bytes[1024..]);
        assert_ne!(whole, swapped, "two pieces at each other's places");
        let mut twice = whole;
        twice.add(0, &bytes[..512]);
        assert_ne!(whole, twice);
    }
}
