//! The virtual-time driver: the one place where an engine meets a simulated drive.
//!
//! ```text
//!             request_ended                  complete
//!   host  <----------------- [ engine ] <------------------ [ drive ]
//!     |                       ^    |     command_ended        ^
//!     '------ act: submit ----'    '-------- poll ------------'
//! ```
//!
//! Nothing happens between two events, so time jumps from one event to the next. One instant is one
//! or more rounds, and each round is:
//!
//! 1. the drive's commands that have ended are reported to the host, then to the engine;
//! 2. the requests that have ended go to the host;
//! 3. the host acts: it submits what arrives now;
//! 4. the engine gives its commands to the drive.
//!
//! The policy thus sees the arrivals that an end gave rise to. The instant is over when neither the
//! drive nor the host has more to do before the next event. An instant at which the drive alone does
//! something and ends no command has no rounds.

use block::{Command, Finished, Instant, Outcome, Refused};
use drive::VirtualDrive;
use engine::Engine;

/// A drive in virtual time: accepts commands and reports when each of them has ended.
pub trait SimulatedDrive {
    /// Gives the drive a command.
    ///
    /// # Errors
    /// If the drive holds as many commands as it can, or the extent is not on it.
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused>;

    /// The next command that has ended at `now` or before, in the order of their ends.
    fn poll(&mut self, now: Instant) -> Option<Outcome>;

    /// The time at which `poll` must be called next.
    fn next_wakeup(&self) -> Option<Instant>;
}

/// The clients of an engine in virtual time: a host submits requests and receives their ends.
///
/// The driver calls the methods in the order of the rounds above. The same calls must give the same
/// answers on every machine.
pub trait Host {
    /// Why the host stops the run. A command that the drive refuses stops the run too.
    type Error: From<Refused>;

    /// A command has ended. The engine has not processed the end yet, so it still knows the purpose
    /// of the command.
    fn command_ended(&mut self, now: Instant, engine: &Engine, outcome: &Outcome) {
        let _ = (now, engine, outcome);
    }

    /// A request has ended. The host may change its copy.
    ///
    /// # Errors
    /// If the run must stop.
    fn request_ended(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        finished: &mut Finished,
    ) -> Result<(), Self::Error>;

    /// Submits what arrives at `now`.
    ///
    /// # Errors
    /// If the run must stop.
    fn act(&mut self, now: Instant, engine: &mut Engine) -> Result<Activity, Self::Error>;

    /// The drive has accepted a command.
    fn dispatched(&mut self, now: Instant, command: &Command) {
        let _ = (now, command);
    }

    /// The engine has no more commands for this round.
    fn round_ended(&mut self, now: Instant, engine: &mut Engine) {
        let _ = (now, engine);
    }

    /// Whether the run ends now. The driver asks once per instant, after the last round.
    fn is_over(&mut self, now: Instant, engine: &mut Engine) -> bool {
        let _ = (now, engine);
        false
    }

    /// The time of the host's next action of its own; later than `now`.
    fn next_event(&self, now: Instant, engine: &Engine) -> Option<Instant>;

    /// Whether the engine's wakeups keep the run alive. After the last request an engine may go on
    /// calibrating for ever.
    fn waits_for_engine(&self, engine: &Engine) -> bool {
        let _ = engine;
        true
    }
}

/// Whether a host has more work at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The host waits for an end or for its next event.
    Waits,
    /// The host acts again at this instant.
    Continues,
}

/// The owner of the clock, an engine and its drive.
pub struct Driver<D = VirtualDrive> {
    now: Instant,
    engine: Engine,
    drive: D,
}

impl<D: SimulatedDrive> Driver<D> {
    /// Couples an engine and a drive at the beginning of virtual time.
    pub fn new(engine: Engine, drive: D) -> Self {
        Driver {
            now: Instant::ZERO,
            engine,
            drive,
        }
    }

    /// The current virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine, for inputs other than requests.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Advances from event to event until the host ends the run or no event is left.
    ///
    /// # Errors
    /// Those of the host, and commands that the drive refuses.
    ///
    /// # Panics
    /// If the engine, the drive or the host breaks its contract: a wakeup that is not in the
    /// future, or requests that are still held when no event is left.
    pub fn run<H: Host>(&mut self, host: &mut H) -> Result<(), H::Error> {
        let mut outcome = None;
        loop {
            let mut drive = self.settle_after(&mut outcome, host)?;
            if host.is_over(self.now, &mut self.engine) {
                return Ok(());
            }
            let others = self.next_of_others(host);
            while outcome.is_none() {
                let Some(then) = earlier(drive, others) else {
                    let held = self.engine.held();
                    assert_eq!(held, 0, "the run ended, and requests did not");
                    return Ok(());
                };
                assert!(
                    then > self.now,
                    "a wakeup at {then:?} is not after {:?}",
                    self.now
                );
                self.now = then;
                if others.is_some_and(|others| others <= then) {
                    break;
                }
                // The drive alone has something to do, such as to begin its next command.
                outcome = self.drive.poll(then);
                drive = self.drive.next_wakeup();
                if drive.is_some_and(|drive| drive <= then) {
                    // It goes on with something at this instant, which then has rounds.
                    break;
                }
            }
        }
    }

    /// Advances the clock, for a host that has events of its own beside this drive's.
    ///
    /// # Panics
    /// If time would go back.
    pub fn advance(&mut self, now: Instant) {
        assert!(
            now >= self.now,
            "time goes back from {:?} to {now:?}",
            self.now
        );
        self.now = now;
    }

    /// Executes all rounds of the current instant. Returns the time at which the drive must be
    /// polled next.
    ///
    /// # Errors
    /// Those of the host, and commands that the drive refuses.
    pub fn settle<H: Host>(&mut self, host: &mut H) -> Result<Option<Instant>, H::Error> {
        self.settle_after(&mut None, host)
    }

    /// Executes the rounds of an instant at which the drive was polled and has ended a command.
    fn settle_after<H: Host>(
        &mut self,
        ended: &mut Option<Outcome>,
        host: &mut H,
    ) -> Result<Option<Instant>, H::Error> {
        let now = self.now;
        loop {
            self.collect_after(ended, host)?;
            let activity = host.act(now, &mut self.engine)?;
            loop {
                let next = self.engine.poll(now);
                let Some(command) = &next else {
                    break;
                };
                self.drive.submit(now, *command)?;
                host.dispatched(now, command);
            }
            host.round_ended(now, &mut self.engine);
            let drive = self.drive.next_wakeup();
            if activity == Activity::Waits && drive.is_none_or(|then| then > now) {
                return Ok(drive);
            }
        }
    }

    /// Collects the commands and requests that have ended by now, and gives the drive no new
    /// commands.
    ///
    /// # Errors
    /// Those of the host.
    pub fn collect<H: Host>(&mut self, host: &mut H) -> Result<(), H::Error> {
        self.collect_after(&mut None, host)
    }

    fn collect_after<H: Host>(
        &mut self,
        ended: &mut Option<Outcome>,
        host: &mut H,
    ) -> Result<(), H::Error> {
        let now = self.now;
        // Outcomes and completions are large, and are not moved.
        if let Some(outcome) = ended {
            self.end_command(outcome, host);
            *ended = None;
        }
        loop {
            let next = self.drive.poll(now);
            let Some(outcome) = &next else {
                break;
            };
            self.end_command(outcome, host);
        }
        loop {
            let mut next = self.engine.poll_finished();
            let Some(finished) = &mut next else {
                return Ok(());
            };
            host.request_ended(now, &mut self.engine, finished)?;
        }
    }

    fn end_command<H: Host>(&mut self, outcome: &Outcome, host: &mut H) {
        host.command_ended(self.now, &self.engine, outcome);
        self.engine.complete(self.now, outcome.id, *outcome);
    }

    /// The next wakeup of the drive or the engine.
    pub fn next_wakeup(&self) -> Option<Instant> {
        earlier(self.drive.next_wakeup(), self.engine.next_wakeup())
    }

    /// The time of the next event that is not the drive's; `None` if none is left.
    fn next_of_others<H: Host>(&self, host: &H) -> Option<Instant> {
        let next = host.next_event(self.now, &self.engine);
        match host.waits_for_engine(&self.engine) {
            true => earlier(next, self.engine.next_wakeup()),
            false => next,
        }
    }
}

impl SimulatedDrive for VirtualDrive {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        VirtualDrive::submit(self, now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        VirtualDrive::poll(self, now)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        VirtualDrive::next_wakeup(self)
    }
}

impl<D: SimulatedDrive> SimulatedDrive for &mut D {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        (**self).submit(now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        (**self).poll(now)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        (**self).next_wakeup()
    }
}

/// Executes one command at `now` on an idle drive, without an engine, and returns its outcome.
///
/// # Errors
/// If the extent is not on the drive.
///
/// # Panics
/// If the drive accepts the command and never ends it.
pub fn serve_alone<D: SimulatedDrive>(
    drive: &mut D,
    mut now: Instant,
    command: Command,
) -> Result<Outcome, Refused> {
    drive.submit(now, command)?;
    loop {
        if let Some(outcome) = drive.poll(now) {
            return Ok(outcome);
        }
        now = drive.next_wakeup().expect("a submitted command ends");
    }
}

/// The earlier of two moments.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
