//! The sink of a live scan: a checksum, a program or a file, on a thread of its own.
//!
//! ```text
//!   event loop --portion--> sink's thread --"OFFSET LENGTH\n", bytes--> program
//!                                |                                         |
//!                              ledger <-- "OFFSET LENGTH\n", processed ----'
//!                                '--now and then--> state file
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use drive::Geometry;
use scheduler::background::DeclaredSet;
use scheduler::freeblock::WantedBlocks;
use tracing::{info, warn};

use super::scan::{Scan, Sink};
use super::scan_file::{Consumer, ScanProgress};
use super::set_sum::SetSum;
use super::{HOLD, Outcome, Portion, ROOM, SinkHandle};

mod answers;
mod buffer;
pub(crate) mod hooks;
mod ledger;
mod pace;
mod program;

use answers::acknowledgements;
use buffer::{EarlierBlocks, SinkFile};
use ledger::{Ledger, Rest};
use pace::Pace;
use program::{Group, Program, ProgramOwner};

/// The volume that a scan reads.
pub(crate) struct ScanSource {
    pub(crate) drive: String,
    /// The first byte of the volume on the drive.
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) block_bytes: u32,
    /// The blocks of the drive that are read.
    pub(crate) set: DeclaredSet,
    /// The layout of the drive.
    pub(crate) geometry: Arc<Geometry>,
}

/// A sink whose thread has started.
pub(crate) struct StartedSink {
    /// The loop's end.
    pub sink: SinkHandle,
    /// The blocks that are still to be read, if the scan is resumed.
    pub(crate) left: Option<WantedBlocks>,
    pub(crate) thread: SinkThread,
}

/// A notification of a sink to its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SinkEvent {
    /// Half of the portions at which the task is held are processed.
    CaughtUp,
    /// The sink processes nothing more.
    Ended,
}

/// The receiver of a sink's notifications. It is called on the sink's threads.
pub(crate) type SinkEvents = Arc<dyn Fn(SinkEvent) + Send + Sync>;

/// The thread that processes the blocks of a scan.
pub(crate) struct SinkThread {
    number: u64,
    state: Option<PathBuf>,
    ledger: Option<Arc<Mutex<Ledger>>>,
    is_cut: Arc<AtomicBool>,
    /// The processes of the program, if there is one.
    group: Option<Group>,
    /// Disconnected when the thread ends.
    ended: Receiver<()>,
}

impl SinkThread {
    /// The number of the task, if it uses this state file and its thread runs.
    pub(crate) fn uses(&self, file: &Path) -> Option<u64> {
        let is_it = self.state.as_deref() == Some(file) && !self.has_ended();
        is_it.then_some(self.number)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.try_recv().is_err_and(|error| {
            // The thread sends nothing.
            error == std::sync::mpsc::TryRecvError::Disconnected
        })
    }

    /// The sink processes nothing more, and its program ends within [`PATIENCE`].
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
    }

    /// Ends the program at once, with all processes of its group.
    pub(crate) fn kill(&self) {
        if let (false, Some(group)) = (self.has_ended(), &self.group) {
            group.kill();
        }
    }

    /// Saves the acknowledged blocks if the thread has not ended.
    pub(crate) fn leave(&self) {
        if self.has_ended() {
            return;
        }
        warn!(
            task = self.number,
            "the scan's program does not end: it is left alone"
        );
        if let Some(ledger) = &self.ledger {
            locked(ledger).save();
        }
    }
}

/// The longest time in which the programs of all scans have to end with the service. A choice: SIGTERM and
/// SIGKILL come before it (`program::TERMINATE`, `program::KILL`), and what the control plane still has to
/// answer takes at most one second more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);

/// Starts the thread of a scan's sink, and its program.
///
/// # Errors
/// If the program cannot be started, or the state file is of another scan.
pub(crate) fn begin(
    number: u64,
    order: &Scan,
    events: SinkEvents,
    place: &ScanSource,
) -> Result<StartedSink, String> {
    let consumer = match &order.sink {
        Sink::Checksum => Consumer::Checksum,
        Sink::Command(_) => Consumer::Program,
        Sink::Buffer(_) => Consumer::File,
    };
    let progress = ScanProgress {
        drive: place.drive.clone(),
        volume: order.described(),
        offset: place.offset,
        length: place.length,
        block_bytes: place.block_bytes,
        consumer,
        sum: SetSum::default(),
    };
    let state = order.state.as_ref();
    let ledger = state.map(|state| Ledger::open(state, progress, (&place.set, &place.geometry)));
    let mut ledger = ledger.transpose()?;
    let filled = filled(order, place, ledger.as_mut())?;
    let left = ledger.as_ref().map(|ledger| ledger.left().clone());
    let ledger = ledger.map(|ledger| Arc::new(Mutex::new(ledger)));
    let program = match &order.sink {
        Sink::Checksum | Sink::Buffer(_) => None,
        Sink::Command(words) => Some(started(number, words, ledger.clone())?),
    };
    let (portions, received) = sync_channel(ROOM);
    let (alive, ended) = channel();
    let outstanding = Arc::new(AtomicUsize::new(0));
    let sink = SinkHandle {
        portions,
        outstanding: Arc::clone(&outstanding),
        is_enough: Arc::default(),
        is_cut: Arc::default(),
        outcome: Arc::default(),
    };
    let group = program.as_ref().map(Program::group);
    let taking = SinkWorker {
        number,
        base: place.offset,
        length: place.length,
        events,
        outstanding,
        is_enough: Arc::clone(&sink.is_enough),
        is_cut: Arc::clone(&sink.is_cut),
        received,
        ledger: ledger.clone(),
        pace: Pace::new(order.pace_bytes_s),
    };
    let outcome = Arc::clone(&sink.outcome);
    let spawned = thread::Builder::new()
        .name(format!("scan {number}"))
        .spawn(move || taking.take((program, filled), &outcome, alive));
    spawned.map_err(|error| format!("no thread for the scan: {error}"))?;
    let thread = SinkThread {
        number,
        state: state.map(|state| state.file.clone()),
        ledger,
        is_cut: Arc::clone(&sink.is_cut),
        group,
        ended,
    };
    Ok(StartedSink { sink, left, thread })
}

/// Opens the file of a task that has one. With a ledger it is durable before what it has is saved.
fn filled(
    order: &Scan,
    place: &ScanSource,
    ledger: Option<&mut Ledger>,
) -> Result<Option<SinkFile>, String> {
    let Sink::Buffer(path) = &order.sink else {
        return Ok(None);
    };
    let whole = [(0, place.length)];
    let pieces = order.set.as_ref().map_or(&whole[..], |set| &set.pieces);
    let is_resumed = ledger.as_ref().is_some_and(|ledger| ledger.is_resumed());
    let earlier = match is_resumed {
        true => EarlierBlocks::Kept,
        false => EarlierBlocks::None,
    };
    let file = SinkFile::open(path, pieces, place.block_bytes.into(), earlier)?;
    if let Some(ledger) = ledger {
        ledger.filled = Some(file.handle().map_err(|error| error.to_string())?);
    }
    Ok(Some(file))
}

/// Starts the program. With a ledger its output is acknowledgements.
fn started(
    number: u64,
    words: &[String],
    ledger: Option<Arc<Mutex<Ledger>>>,
) -> Result<Program, String> {
    let owner = ProgramOwner {
        task: Some(number),
        who: "the scan's program",
    };
    match ledger {
        None => Program::start(owner, words, &[], None),
        Some(ledger) => {
            let read = move |said| {
                if let Err(complaint) = acknowledgements(said, &ledger) {
                    locked(&ledger).complaint = Some(complaint);
                }
            };
            Program::start(owner, words, &[], Some(Box::new(read)))
        }
    }
}

/// The state of a sink's thread.
struct SinkWorker {
    number: u64,
    /// The first byte of the volume on the drive.
    base: u64,
    length: u64,
    events: SinkEvents,
    outstanding: Arc<AtomicUsize>,
    is_enough: Arc<AtomicBool>,
    /// Whether the task ended before its end, or the service ends.
    is_cut: Arc<AtomicBool>,
    received: Receiver<Portion>,
    ledger: Option<Arc<Mutex<Ledger>>>,
    pace: Pace,
}

impl SinkWorker {
    fn take(
        self,
        (program, filled): (Option<Program>, Option<SinkFile>),
        outcome: &Outcome,
        alive: Sender<()>,
    ) {
        let (number, events, ledger) = (self.number, Arc::clone(&self.events), self.ledger.clone());
        let (is_enough, is_cut) = (Arc::clone(&self.is_enough), Arc::clone(&self.is_cut));
        let mut ended = match (program, filled) {
            (Some(program), _) => self.feed(program),
            (None, Some(file)) => self.fill(file),
            (None, None) => Ok(self.sum()),
        };
        if let Some(ledger) = &ledger {
            let rest = match ended.is_ok() && is_enough.load(Ordering::Acquire) {
                true => Rest::Enough,
                false => Rest::Needed,
            };
            let (Ok(text) | Err(text)) = &mut ended;
            *text += &locked(ledger).close(rest);
        }
        match is_cut.load(Ordering::Acquire) {
            true => info!(task = number, ?ended, "a scan was stopped before its end"),
            false => info!(task = number, ?ended, "a scan has ended"),
        }
        // It is set once: here.
        let _ = outcome.set(ended);
        // A held task waits for this thread no longer.
        events(SinkEvent::Ended);
        drop(alive);
    }

    fn sum(self) -> String {
        let mut sum = SetSum::default();
        loop {
            if self.is_cut() {
                break;
            }
            match self.next() {
                Received::Portion(portion) => {
                    let clipped = self.clipped(&portion);
                    match (&self.ledger, clipped) {
                        (_, None) => (),
                        (Some(ledger), Some((offset, bytes))) => {
                            locked(ledger).summed(offset, bytes);
                        }
                        (None, Some((offset, bytes))) => sum.add(offset, bytes),
                    }
                    self.done_one(&portion);
                }
                Received::Nothing => (),
                Received::End => break,
            }
        }
        if let Some(ledger) = &self.ledger {
            sum = locked(ledger).progress.sum;
        }
        format!("checksum {sum}")
    }

    /// Writes all portions to the file.
    fn fill(self, mut file: SinkFile) -> Result<String, String> {
        loop {
            if self.is_cut() {
                break;
            }
            match self.next() {
                Received::Portion(portion) => {
                    if let Some((offset, bytes)) = self.clipped(&portion) {
                        file.take(offset, bytes)?;
                        if let Some(ledger) = &self.ledger {
                            locked(ledger).stored(offset, bytes.len() as u64);
                        }
                    }
                    self.done_one(&portion);
                }
                Received::Nothing => (),
                Received::End => break,
            }
        }
        file.close()
    }

    /// Writes all portions to the program, and waits for its end.
    fn feed(self, mut program: Program) -> Result<String, String> {
        let early = loop {
            if self.is_cut() {
                break None;
            }
            match self.next() {
                Received::Portion(portion) => {
                    if let Err(problem) = self.hand_over(&portion, &mut program) {
                        break Some(problem);
                    }
                    self.done_one(&portion);
                }
                // Without portions a write would not fail.
                Received::Nothing if program.has_gone() => {
                    break Some("it has gone".to_owned());
                }
                Received::Nothing => (),
                Received::End => break None,
            }
        };
        // The task reads nothing more for the program.
        let SinkWorker {
            received,
            ledger,
            is_cut,
            ..
        } = self;
        drop(received);
        if let Some(ledger) = &ledger {
            locked(ledger).save_if_due();
        }
        let end = program
            .end(&is_cut)
            .map_err(|error| format!("the program was lost: {error}"))?;
        let complaint = ledger.as_ref().and_then(|l| locked(l).complaint.take());
        let status = end.status;
        match (complaint, early) {
            (Some(complaint), _) => Err(format!("{complaint}; it ended with {status}")),
            (None, _) if end.was_told => Err(format!(
                "the program was ended with its task, with {status}"
            )),
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

    /// Writes a portion: a line with its offset in the volume and its length, then its bytes.
    fn hand_over(&self, portion: &Portion, program: &mut Program) -> Result<(), String> {
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
        let line = format!("{offset} {}\n", bytes.len());
        program
            .write(line.as_bytes(), &self.is_cut)
            .and_then(|()| program.write(bytes, &self.is_cut))
    }

    /// Whether the task is cut. Then the sink has not got all that the task has.
    fn is_cut(&self) -> bool {
        let is_cut = self.is_cut.load(Ordering::Acquire);
        if is_cut {
            self.is_enough.store(false, Ordering::Release);
        }
        is_cut
    }

    fn next(&self) -> Received {
        match self.received.recv_timeout(LOOK_UP) {
            Ok(portion) => Received::Portion(portion),
            Err(RecvTimeoutError::Disconnected) => Received::End,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(ledger) = &self.ledger {
                    locked(ledger).save_if_due();
                }
                Received::Nothing
            }
        }
    }

    /// The part of a portion in the volume, with its offset there. Slices at the volume's ends may be longer.
    fn clipped<'a>(&self, portion: &'a Portion) -> Option<(u64, &'a [u8])> {
        let end = portion.offset + portion.bytes.len() as u64;
        let from = portion.offset.max(self.base);
        let to = end.min(self.base + self.length);
        let place = |at: u64| (at - portion.offset) as usize;
        (from < to).then(|| (from - self.base, &portion.bytes[place(from)..place(to)]))
    }

    /// A portion is dealt with. The next one waits for the task's pace.
    fn done_one(&self, portion: &Portion) {
        self.pace.wait(portion.bytes.len(), &self.is_cut);
        let before = self.outstanding.fetch_sub(1, Ordering::AcqRel);
        if before == HOLD / 2 {
            (self.events)(SinkEvent::CaughtUp);
        }
    }
}

/// The result of a wait for the loop.
enum Received {
    Portion(Portion),
    /// No portion for a while.
    Nothing,
    /// The task has ended.
    End,
}

/// The period of the check whether program and task still run. A choice.
const LOOK_UP: Duration = Duration::from_millis(100);

fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
