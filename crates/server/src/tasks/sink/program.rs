//! The program of a scan: a process group of its own. Its input does not block the sink for ever, and its output
//! is bounded.
//!
//! ```text
//!   the task is cut, or the program has ended: its input is closed
//!       --TERMINATE--> SIGTERM to what is left of the group --KILL--> SIGKILL --LOST--> left alone
//! ```

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tracing::info;

use super::LOOK_UP;

/// A running program.
pub(super) struct Program {
    child: Child,
    group: Group,
    /// It does not block.
    input: Option<ChildStdin>,
    /// Disconnected when the program's outputs are read to their ends.
    read: Receiver<()>,
}

/// For what a program runs, in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramOwner {
    /// The number of the task, if it runs for one.
    pub(super) task: Option<u64>,
    /// What it is.
    pub(super) who: &'static str,
}

/// The processes of a program: itself, and those that it started and that did not leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(Pid);

/// The end of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramEnd {
    pub(super) status: ExitStatus,
    /// Whether it was told by a signal to end.
    pub(super) was_told: bool,
}

/// The reader of a program's standard output. It is called on a thread of its own.
pub(super) type OutputReader = Box<dyn FnOnce(ChildStdout) + Send>;

/// The time from the end of the input to SIGTERM. A choice: a program that copies what it has got is done.
const TERMINATE: Duration = Duration::from_secs(1);

/// The time from the end of the input to SIGKILL. A choice, below `sink::PATIENCE`.
const KILL: Duration = Duration::from_secs(3);

/// The time from the end of the input after which the program is left alone: SIGKILL does not end a process that
/// waits for a disk that hangs. A choice, below `sink::PATIENCE`.
const LOST: Duration = Duration::from_millis(3500);

impl Program {
    /// Starts a program, with further environment variables. Standard error, and standard output without a reader, go to
    /// the log.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(
        owner: ProgramOwner,
        words: &[String],
        variables: &[(&str, String)],
        reader: Option<OutputReader>,
    ) -> Result<Self, String> {
        let (program, arguments) = words
            .split_first()
            .ok_or("an empty command: expected a program")?;
        let failed = |error: io::Error| format!("{program}: {error}");
        let mut child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let group = Group(Pid::from_child(&child));
        let (alive, read) = channel();
        let prepared = prepared(&mut child, owner, reader, alive);
        match prepared {
            Ok(input) => Ok(Program {
                child,
                group,
                input: Some(input),
                read,
            }),
            Err(error) => {
                group.kill();
                // It was killed.
                let _ = child.wait();
                Err(failed(error))
            }
        }
    }

    /// The program gets no more input.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    pub(super) fn group(&self) -> Group {
        self.group
    }

    /// Whether the program has ended.
    pub(super) fn has_gone(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Writes to the program, unless it goes or the task is cut.
    pub(super) fn write(&mut self, mut bytes: &[u8], is_cut: &AtomicBool) -> Result<(), String> {
        while !bytes.is_empty() {
            let Some(input) = &self.input else {
                return Err("its input is closed".to_owned());
            };
            match rustix::io::write(input, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => (),
                Err(Errno::AGAIN) if is_cut.load(Ordering::Acquire) => {
                    return Err("its task has ended".to_owned());
                }
                Err(Errno::AGAIN) => {
                    let mut room = [PollFd::new(input, PollFlags::OUT)];
                    // An error shows in the next write.
                    let _ = poll(&mut room, Some(&timespec(LOOK_UP)));
                    if room[0].revents().is_empty() && self.has_gone() {
                        return Err("it has gone".to_owned());
                    }
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Closes the input, and waits for the end of the program: as long as it takes, or a limited time once the
    /// task is cut. What is left of its group is ended after it.
    ///
    /// # Errors
    /// If the program does not end at all.
    pub(super) fn end(mut self, is_cut: &AtomicBool) -> io::Result<ProgramEnd> {
        drop(self.input.take());
        let (mut status, mut was_told) = (None, false);
        let mut since = None;
        let mut signals = [(TERMINATE, Signal::TERM), (KILL, Signal::KILL)]
            .into_iter()
            .peekable();
        let mut pause = SHORTEST;
        loop {
            if status.is_none() {
                status = self.child.try_wait()?;
            }
            if status.is_some() && !self.group.is_there() {
                break;
            }
            if status.is_some() || is_cut.load(Ordering::Acquire) {
                let passed = since.get_or_insert_with(Instant::now).elapsed();
                if let Some((_, signal)) = signals.next_if(|(after, _)| passed >= *after) {
                    was_told |= status.is_none();
                    self.group.tell(signal);
                }
                if passed >= LOST {
                    break;
                }
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LOOK_UP);
        }
        let Some(status) = status else {
            return Err(io::Error::other("it does not end"));
        };
        // What it acknowledged is in the pipe. A process that left the group may hold the pipe open.
        let _ = self.read.recv_timeout(LOOK_UP);
        Ok(ProgramEnd { status, was_told })
    }
}

/// The first pause between two looks whether a program has ended. A choice: they grow up to [`LOOK_UP`].
const SHORTEST: Duration = Duration::from_millis(1);

impl Group {
    /// Ends all processes at once.
    pub(super) fn kill(self) {
        self.tell(Signal::KILL);
    }

    /// Signals all processes. The number of a group is not given to others while it has a process, and the caller
    /// has just seen one.
    fn tell(self, signal: Signal) {
        // They may have ended meanwhile.
        let _ = kill_process_group(self.0, signal);
    }

    fn is_there(self) -> bool {
        test_kill_process_group(self.0).is_ok()
    }
}

/// Reads the outputs of a program on threads of their own; `alive` is dropped at their ends.
fn prepared(
    child: &mut Child,
    owner: ProgramOwner,
    reader: Option<OutputReader>,
    alive: Sender<()>,
) -> io::Result<ChildStdin> {
    let missing = || io::Error::other("it has no standard streams");
    let input = child.stdin.take().ok_or_else(missing)?;
    fcntl_setfl(&input, OFlags::NONBLOCK)?;
    let said = child.stdout.take().ok_or_else(missing)?;
    let complained = child.stderr.take().ok_or_else(missing)?;
    let reader = reader.unwrap_or_else(|| Box::new(move |said| log_all(owner, "stdout", said)));
    let begin = |output: &str| {
        thread::Builder::new().name(match owner.task {
            Some(task) => format!("scan {task} {output}"),
            None => format!("hook {output}"),
        })
    };
    let until = alive.clone();
    begin("stdout").spawn(move || {
        reader(said);
        drop(until);
    })?;
    begin("stderr").spawn(move || {
        log_all(owner, "stderr", complained);
        drop(alive);
    })?;
    Ok(input)
}

/// Bytes of each output of a program that go to the log. A choice: some pages of text.
const LOGGED: usize = 64 << 10;

/// The longest line in the log, in bytes; longer ones become several. A choice.
const LINE: u64 = 1024;

/// Logs an output, line by line and with escaped control characters, up to [`LOGGED`] bytes. The rest is read
/// and counted, so the program is not held up.
fn log_all(owner: ProgramOwner, output: &str, said: impl Read) {
    let ProgramOwner { task, who } = owner;
    let mut said = BufReader::new(said);
    let (mut logged, mut dropped) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut said).take(LINE).read_until(b'\n', &mut line) {
            Ok(1..) => (),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => break,
        }
        if logged + line.len() > LOGGED {
            dropped += line.len();
            continue;
        }
        logged += line.len();
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end().escape_debug();
        info!(task, output, "{who} says: {text}");
    }
    if dropped > 0 {
        info!(
            task,
            output, dropped, "{who} said more: these bytes are not in the log"
        );
    }
}

fn timespec(length: Duration) -> Timespec {
    Timespec {
        tv_sec: length.as_secs() as i64,
        tv_nsec: i64::from(length.subsec_nanos()),
    }
}
