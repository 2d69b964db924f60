//! Plays commands on a drive, and checks with every step what a caller may rely on.

use std::collections::BTreeMap;

use block::{Account, Action, BufferHit, Command, CommandId, Duration, Instant, Outcome, Status};
use drive::VirtualDrive;

/// A drive and what it was told.
pub struct Play {
    pub drive: VirtualDrive,
    pub now: Instant,
    pub done: Vec<Done>,
    open: BTreeMap<CommandId, (Instant, Command)>,
    next: u64,
}

/// A command that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub command: Command,
    pub submitted: Instant,
    pub outcome: Outcome,
}

impl Done {
    pub fn took(&self) -> Duration {
        self.outcome.at.since(self.submitted)
    }

    pub fn account(&self) -> Account {
        self.outcome.account.expect("a virtual drive accounts")
    }

    pub fn hit(&self) -> BufferHit {
        self.account().hit
    }

    pub fn status(&self) -> Status {
        self.outcome.status
    }
}

impl Play {
    pub fn new(drive: VirtualDrive) -> Self {
        Play {
            drive,
            now: Instant::ZERO,
            done: Vec::new(),
            open: BTreeMap::new(),
            next: 0,
        }
    }

    /// Submits at `at`, having polled whenever the drive asked for it before.
    pub fn submit(&mut self, at: Instant, action: Action) -> CommandId {
        self.submit_as(at, action, |_| ())
    }

    /// The same with urgency or limit.
    pub fn submit_as(
        &mut self,
        at: Instant,
        action: Action,
        change: impl FnOnce(&mut Command),
    ) -> CommandId {
        self.run_until(at);
        let id = CommandId(self.next);
        self.next += 1;
        let mut command = Command::new(id, action);
        change(&mut command);
        self.drive.submit(at, command).expect("accepted");
        self.open.insert(id, (at, command));
        self.collect();
        id
    }

    /// Submits and waits for the end of everything.
    pub fn serve(&mut self, at: Instant, action: Action) -> Done {
        let id = self.submit(at, action);
        self.drain();
        self.of(id)
    }

    /// The same, as soon as everything before has ended.
    pub fn then(&mut self, action: Action) -> Done {
        self.serve(self.now, action)
    }

    /// How a command ended.
    pub fn of(&self, id: CommandId) -> Done {
        let mut found = self.done.iter().filter(|done| done.command.id == id);
        *found.next().expect("it has ended")
    }

    /// Polls whenever the drive asks for it, up to `at`.
    pub fn run_until(&mut self, at: Instant) {
        assert!(self.now <= at, "time goes forwards");
        while let Some(wakeup) = self.drive.next_wakeup().filter(|wakeup| *wakeup <= at) {
            assert!(wakeup > self.now, "a wakeup that is not in the future");
            self.now = wakeup;
            self.collect();
        }
        self.now = at;
        self.collect();
    }

    /// Polls until everything has ended.
    pub fn drain(&mut self) {
        while let Some(wakeup) = self.drive.next_wakeup() {
            self.run_until(wakeup);
        }
        assert!(self.open.is_empty(), "never ended: {:?}", self.open);
        assert_eq!(self.drive.held(), 0);
    }

    /// Polls at one moment.
    pub fn collect(&mut self) {
        while let Some(outcome) = self.drive.poll(self.now) {
            let opened = self.open.remove(&outcome.id);
            let (submitted, command) = opened.expect("ended once, and was submitted");
            assert!(outcome.at <= self.now, "ended in the future");
            assert!(outcome.at >= submitted, "ended before it was submitted");
            let last = self.done.last().map_or(Instant::ZERO, |d| d.outcome.at);
            assert!(
                last <= outcome.at,
                "{outcome:?} out of order, after {last:?}"
            );
            let account = outcome.account.expect("a virtual drive accounts");
            assert_eq!(
                account.total(),
                outcome.at.since(submitted),
                "the phases of {command:?} do not add up: {account:?}"
            );
            self.done.push(Done {
                command,
                submitted,
                outcome,
            });
        }
        if let Some(wakeup) = self.drive.next_wakeup() {
            assert!(wakeup > self.now, "woken at {wakeup:?}, now {:?}", self.now);
        }
    }

    /// Commands that were submitted and have not ended.
    pub fn open(&self) -> impl Iterator<Item = Command> {
        self.open.values().map(|(_, command)| *command)
    }

    /// Keeps `outstanding` commands at the drive until all have ended.
    pub fn keep(&mut self, outstanding: usize, actions: impl IntoIterator<Item = Action>) {
        for action in actions {
            while self.open.len() >= outstanding {
                let wakeup = self.drive.next_wakeup();
                self.run_until(wakeup.expect("what it holds will end"));
            }
            self.submit(self.now, action);
        }
        self.drain();
    }
}
