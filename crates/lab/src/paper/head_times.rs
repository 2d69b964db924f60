//! Head times of commands that are served in order, two at the drive: measured, and predicted at dispatch.
//!
//! ```text
//!   drive      ... -- n-2 --|---- n-1 ----|------ n ------|
//!                           |             '-- measured ---'
//!   scheduler               n is dispatched; the ends of n-1 and n are predicted
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use block::{
    Action, BufferHit, Command, CommandId, Direction, Durability, Duration, Finished, Instant,
    Outcome, Request, RequestId,
};
use drive::Profile;
use engine::Engine;
use engine::forecast::{Head, Route};
use simulator::driver::{Activity, Driver, Host};
use simulator::run::{Arrival, Load as _, LoadPart, RunError};
use simulator::workload::{Synthetic, Workload};

use super::scene::PaperScene;
use crate::Failure;

/// The head time of one command.
#[derive(Clone, Copy, Debug)]
pub struct CommandHeadTime {
    /// The prediction at dispatch.
    pub predicted: Duration,
    /// The time from the end of the previous command to the command's own end.
    pub measured: Duration,
    /// The part that the drive's buffer answered.
    pub hit: BufferHit,
}

impl CommandHeadTime {
    /// The measured less the predicted time, in nanoseconds.
    pub fn error(&self) -> i64 {
        self.measured.as_nanos() as i64 - self.predicted.as_nanos() as i64
    }
}

/// Serves a closed load first come, first served, and returns the head times of so many commands.
///
/// # Errors
/// If the load does not fit on the drive.
pub fn measure_head_times(
    scene: &PaperScene,
    load: &Workload,
    commands: u64,
) -> Result<Vec<CommandHeadTime>, Failure> {
    let scenario = scene.scenario("fcfs")?;
    let belief = Arc::clone(&scenario.belief);
    let engine = Engine::new(belief, &|| scenario.policy.make(), scenario.limits);
    let mut host = HeadTimeHost {
        belief: scene.belief(),
        load: scene.begin(load)?,
        arrived: VecDeque::new(),
        submitted: 0,
        at_drive: VecDeque::new(),
        head: Head::UNKNOWN,
        end: Instant::ZERO,
        wanted: commands as usize,
        times: Vec::new(),
    };
    while let Some(arrival) = host.load.next_arrival().map_err(Failure::failed)? {
        host.arrived.push_back(arrival);
    }
    let mut driver = Driver::new(engine, scene.drive());
    driver.run(&mut host).map_err(Failure::failed)?;
    host.times.truncate(host.wanted);
    Ok(host.times)
}

/// A command at the drive, with its prediction.
#[derive(Clone, Copy, Debug)]
struct PredictedCommand {
    id: CommandId,
    dispatched: Instant,
    route: Route,
    head_time: Duration,
}

/// A host whose clients do not think: the end of a request makes the next one arrive at once.
struct HeadTimeHost<'a> {
    belief: &'a Profile,
    load: Synthetic,
    arrived: VecDeque<Arrival>,
    submitted: u64,
    at_drive: VecDeque<PredictedCommand>,
    /// The head after the command that ended last.
    head: Head,
    /// The end of that command.
    end: Instant,
    /// The number of head times that end the run.
    wanted: usize,
    times: Vec<CommandHeadTime>,
}

impl Host for HeadTimeHost<'_> {
    type Error = RunError;

    fn command_ended(&mut self, _: Instant, _: &Engine, outcome: &Outcome) {
        let place = self.at_drive.iter().position(|sent| sent.id == outcome.id);
        let sent = place.and_then(|place| self.at_drive.remove(place));
        let sent = sent.expect("a command that ends was dispatched");
        let course = self.head.course(self.belief, sent.dispatched, &sent.route);
        let ends = (self.end, outcome.at);
        self.head = course.ended(self.belief, &sent.route, ends);
        self.times.push(CommandHeadTime {
            predicted: sent.head_time,
            measured: outcome.at.since(self.end),
            hit: outcome
                .account
                .map(|account| account.hit)
                .unwrap_or_default(),
        });
        self.end = outcome.at;
    }

    fn request_ended(
        &mut self,
        now: Instant,
        _: &mut Engine,
        finished: &mut Finished,
    ) -> Result<(), RunError> {
        let next = self.load.on_finished(now, LoadPart::ONLY, finished)?;
        self.arrived.extend(next);
        Ok(())
    }

    fn act(&mut self, now: Instant, engine: &mut Engine) -> Result<Activity, RunError> {
        for arrival in self.arrived.drain(..) {
            let request = Request {
                id: RequestId(self.submitted),
                direction: arrival.demand.direction,
                extent: arrival.demand.extent,
                class: arrival.demand.class,
                durability: Durability::Volatile,
                owner: arrival.demand.owner,
            };
            self.submitted += 1;
            engine.submit(now, request)?;
        }
        Ok(Activity::Waits)
    }

    fn dispatched(&mut self, now: Instant, command: &Command) {
        let (extent, direction) = match command.action {
            Action::Read { extent, .. } => (extent, Direction::Read),
            Action::Write { extent, .. } => (extent, Direction::Write),
            _ => unreachable!("the load reads and writes"),
        };
        let route = Route::new(self.belief, extent, direction);
        let route = route.expect("the engine accepts blocks that its belief maps");
        let (mut head, mut before) = (self.head, self.end);
        for sent in &self.at_drive {
            let course = head.course(self.belief, sent.dispatched, &sent.route);
            head = course.head;
            before = head.free + sent.route.tail(self.belief, &course.pass);
        }
        let course = head.course(self.belief, now, &route);
        let end = course.head.free + route.tail(self.belief, &course.pass);
        self.at_drive.push_back(PredictedCommand {
            id: command.id,
            dispatched: now,
            route,
            head_time: end.since(before),
        });
    }

    fn is_over(&mut self, _: Instant, _: &mut Engine) -> bool {
        self.times.len() >= self.wanted
    }

    fn next_event(&self, _: Instant, _: &Engine) -> Option<Instant> {
        None
    }
}
