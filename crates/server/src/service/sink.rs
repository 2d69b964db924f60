//! Where the blocks of a live scan go: into a checksum, or to a program.
//!
//! ```text
//!   event loop --portion--> sink's thread --"OFFSET LENGTH\n", bytes--> program
//!                                |                                         |
//!                              ledger <-- "OFFSET LENGTH\n", dealt with ---'
//!                                '--now and then--> state file
//! ```

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use drive::Geometry;
use scheduler::freeblock::WantedBlocks;
use tracing::{info, warn};

use super::scan_file::{Standing, Taker};
use super::set_sum::SetSum;
use crate::control;
use crate::event_loop::mailbox::Mailbox;
use crate::tasks::{HOLD, Outcome, Portion, ROOM, Sink};

mod ledger;

use ledger::Ledger;

/// What is scanned.
pub(super) struct Place {
    pub(super) drive: String,
    /// Where the volume begins on the drive, in bytes.
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) block_bytes: u32,
    /// The drive's layout.
    pub(super) geometry: Arc<Geometry>,
}

/// A scan whose blocks are taken.
pub(super) struct Begun {
    /// For the loop.
    pub(super) sink: Sink,
    /// What is still to be read, if it is gone on with.
    pub(super) left: Option<WantedBlocks>,
    pub(super) taken: Taken,
}

/// The thread that takes the blocks.
pub(super) struct Taken {
    number: u64,
    state: Option<PathBuf>,
    ledger: Option<Arc<Mutex<Ledger>>>,
    /// Its other end goes with the thread.
    ended: Receiver<()>,
}

impl Taken {
    /// The task that uses this state file, if this one does and is under way.
    pub(super) fn uses(&self, file: &Path) -> Option<u64> {
        let is_it = self.state.as_deref() == Some(file) && !self.has_ended();
        is_it.then_some(self.number)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.try_recv().is_err_and(|error| {
            // Nobody ever sends anything.
            error == std::sync::mpsc::TryRecvError::Disconnected
        })
    }

    /// Waits a while for its end. If it does not end, because its program does not, what that has
    /// acknowledged is written down.
    pub(super) fn leave(&self) {
        let waited = self.ended.recv_timeout(PATIENCE);
        if let (Err(RecvTimeoutError::Timeout), Some(ledger)) = (waited, &self.ledger) {
            warn!(
                task = self.number,
                "the scan's program does not end: it is left alone"
            );
            locked(ledger).save();
        }
    }
}

/// How long the program of a scan may take to end when the service does. A choice.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts the thread that takes a scan's blocks.
///
/// # Errors
/// If the program cannot be started, or the state file is not of this scan.
pub(super) fn begin(
    number: u64,
    order: &control::Scan,
    mailbox: Mailbox,
    place: &Place,
) -> Result<Begun, String> {
    let taker = match &order.sink {
        control::Sink::Checksum => Taker::Checksum,
        control::Sink::Command(_) => Taker::Program,
    };
    let standing = Standing {
        drive: place.drive.clone(),
        volume: order.volume.clone(),
        offset: place.offset,
        length: place.length,
        block_bytes: place.block_bytes,
        taker,
        sum: SetSum::default(),
    };
    let state = order.state.as_ref();
    let ledger = state.map(|state| Ledger::open(state, standing, &place.geometry));
    let ledger = ledger.transpose()?;
    let left = ledger.as_ref().map(|ledger| ledger.left().clone());
    let child = match &order.sink {
        control::Sink::Checksum => None,
        control::Sink::Command(words) => Some(started(words, ledger.as_ref())?),
    };
    let ledger = ledger.map(|ledger| Arc::new(Mutex::new(ledger)));
    let (portions, received) = sync_channel(ROOM);
    let (alive, ended) = channel();
    let outstanding = Arc::new(AtomicUsize::new(0));
    let sink = Sink {
        portions,
        outstanding: Arc::clone(&outstanding),
        outcome: Arc::default(),
    };
    let taking = Taking {
        number,
        base: place.offset,
        length: place.length,
        mailbox,
        outstanding,
        received,
        ledger: ledger.clone(),
    };
    let outcome = Arc::clone(&sink.outcome);
    let spawned = thread::Builder::new()
        .name(format!("scan {number}"))
        .spawn(move || taking.take(child, &outcome, alive));
    spawned.map_err(|error| format!("no thread for the scan: {error}"))?;
    let taken = Taken {
        number,
        state: state.map(|state| state.file.clone()),
        ledger,
        ended,
    };
    Ok(Begun { sink, left, taken })
}

fn started(words: &[String], ledger: Option<&Ledger>) -> Result<Child, String> {
    let (program, arguments) = words
        .split_first()
        .ok_or("an empty command: expected a program")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    if ledger.is_some() {
        command.stdout(Stdio::piped());
    }
    command
        .spawn()
        .map_err(|error| format!("{program}: {error}"))
}

/// The thread's side of a sink.
struct Taking {
    number: u64,
    /// Where the volume begins on the drive.
    base: u64,
    length: u64,
    mailbox: Mailbox,
    outstanding: Arc<AtomicUsize>,
    received: Receiver<Portion>,
    ledger: Option<Arc<Mutex<Ledger>>>,
}

impl Taking {
    fn take(self, child: Option<Child>, outcome: &Outcome, alive: Sender<()>) {
        let (number, mailbox, ledger) = (self.number, self.mailbox.clone(), self.ledger.clone());
        let mut ended = match child {
            Some(child) => self.feed(child),
            None => Ok(self.sum()),
        };
        if let Some(ledger) = &ledger {
            let (Ok(text) | Err(text)) = &mut ended;
            *text += &locked(ledger).close();
        }
        info!(task = number, ?ended, "a scan has ended");
        // It is set once: here.
        let _ = outcome.set(ended);
        // A task that waits for this thread need not wait any more; a loop that has ended does not.
        let _ = mailbox.call(move |event_loop| event_loop.tasks().sink_gone(number));
        drop(alive);
    }

    fn sum(self) -> String {
        let mut sum = SetSum::default();
        loop {
            match self.next() {
                Next::Portion(portion) => {
                    let clipped = self.clipped(&portion);
                    match (&self.ledger, clipped) {
                        (_, None) => (),
                        (Some(ledger), Some((offset, bytes))) => {
                            locked(ledger).summed(offset, bytes);
                        }
                        (None, Some((offset, bytes))) => sum.add(offset, bytes),
                    }
                    self.done_one();
                }
                Next::Nothing => (),
                Next::End => break,
            }
        }
        if let Some(ledger) = &self.ledger {
            sum = locked(ledger).standing.sum;
        }
        format!("checksum {sum}")
    }

    /// Gives the program everything, and waits for its end.
    fn feed(self, mut child: Child) -> Result<String, String> {
        let Some(mut pipe) = child.stdin.take() else {
            return Err("the program has no standard input".to_owned());
        };
        let answers = match (child.stdout.take(), self.ledger.clone()) {
            (Some(said), Some(ledger)) => Some(self.listen(said, ledger)?),
            _ => None,
        };
        let early = loop {
            match self.next() {
                Next::Portion(portion) => {
                    if let Err(problem) = self.hand_over(&portion, &mut pipe) {
                        break Some(problem);
                    }
                    self.done_one();
                }
                // Without portions nobody else would notice.
                Next::Nothing if matches!(child.try_wait(), Ok(Some(_))) => {
                    break Some("it has gone".to_owned());
                }
                Next::Nothing => (),
                Next::End => break None,
            }
        };
        drop(pipe);
        // Nothing more is read for it.
        let Taking {
            received, ledger, ..
        } = self;
        drop(received);
        if let Some(ledger) = &ledger {
            locked(ledger).save_if_due();
        }
        let status = child
            .wait()
            .map_err(|error| format!("the program was lost: {error}"))?;
        // It says nothing that is understood any more: its thread has ended or does so now.
        let _ = answers.map(JoinHandle::join);
        let complaint = ledger.as_ref().and_then(|l| locked(l).complaint.take());
        match (complaint, early) {
            (Some(complaint), _) => Err(format!("{complaint}; it ended with {status}")),
            (None, Some(problem)) => Err(format!(
                "the program took no more ({problem}) and ended with {status}"
            )),
            (None, None) if !status.success() => Err(format!("the program ended with {status}")),
            (None, None) => {
                if let Some(ledger) = &ledger {
                    locked(ledger).all_acknowledged();
                }
                Ok(format!("the program ended with {status}"))
            }
        }
    }

    /// Each portion is a line with its offset in the volume and its length, and then its bytes.
    fn hand_over(&self, portion: &Portion, pipe: &mut impl Write) -> Result<(), String> {
        let Some((offset, bytes)) = self.clipped(portion) else {
            return Ok(());
        };
        if let Some(ledger) = &self.ledger {
            let mut ledger = locked(ledger);
            if ledger.complaint.is_some() {
                return Err("it makes no sense".to_owned());
            }
            ledger.handed_over(offset, bytes.len() as u64);
        }
        writeln!(pipe, "{offset} {}", bytes.len())
            .and_then(|()| pipe.write_all(bytes))
            .map_err(|error| error.to_string())
    }

    /// A thread that hears what the program has dealt with.
    fn listen(
        &self,
        said: ChildStdout,
        ledger: Arc<Mutex<Ledger>>,
    ) -> Result<JoinHandle<()>, String> {
        thread::Builder::new()
            .name(format!("scan {} answers", self.number))
            .spawn(move || {
                if let Err(complaint) = hear(said, &ledger) {
                    locked(&ledger).complaint = Some(complaint);
                }
            })
            .map_err(|error| format!("no thread for the scan: {error}"))
    }

    fn next(&self) -> Next {
        match self.received.recv_timeout(LOOK_UP) {
            Ok(portion) => Next::Portion(portion),
            Err(RecvTimeoutError::Disconnected) => Next::End,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(ledger) = &self.ledger {
                    locked(ledger).save_if_due();
                }
                Next::Nothing
            }
        }
    }

    /// What of a portion is in the volume, by its offset there: slices at its edges may be longer.
    fn clipped<'a>(&self, portion: &'a Portion) -> Option<(u64, &'a [u8])> {
        let end = portion.offset + portion.bytes.len() as u64;
        let from = portion.offset.max(self.base);
        let to = end.min(self.base + self.length);
        let place = |at: u64| (at - portion.offset) as usize;
        (from < to).then(|| (from - self.base, &portion.bytes[place(from)..place(to)]))
    }

    fn done_one(&self) {
        let before = self.outstanding.fetch_sub(1, Ordering::AcqRel);
        if before == HOLD / 2 {
            let number = self.number;
            // A loop that has ended needs no telling.
            let _ = self
                .mailbox
                .call(move |event_loop| event_loop.tasks().caught_up(number));
        }
    }
}

/// What comes from the loop.
enum Next {
    Portion(Portion),
    /// Nothing for a while.
    Nothing,
    /// There will be nothing more.
    End,
}

/// How often somebody looks whether the program is still there. A choice.
const LOOK_UP: Duration = Duration::from_millis(500);

/// The lines of what the program has dealt with, until it says nothing more.
fn hear(said: impl Read, ledger: &Mutex<Ledger>) -> Result<(), String> {
    let mut said = BufReader::new(said);
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = (&mut said)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|error| format!("the program's answers are lost: {error}"))?;
        if count == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let (offset, length) = portion(&text).ok_or_else(|| {
            let text = text.trim_end();
            format!("the program answered {text:?}: expected \"OFFSET LENGTH\" of a portion")
        })?;
        locked(ledger).acknowledged(offset, length)?;
    }
}

/// Two numbers of 20 digits, a blank, and the line's end.
const LONGEST_LINE: u64 = 42;

fn portion(line: &str) -> Option<(u64, u64)> {
    let (offset, length) = line.strip_suffix('\n')?.split_once(' ')?;
    Some((offset.parse().ok()?, length.parse().ok()?))
}

fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
