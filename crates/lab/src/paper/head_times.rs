//! Commands one after the other, two at the drive: how long each held the head, and how long it
//! was predicted to.
//!
//! ```text
//!   drive      ... -- n-2 --|---- n-1 ----|------ n ------|
//!                           |             '-- measured ---'
//!   scheduler               n is given; the ends of n-1 and n are predicted
//! ```

use std::collections::VecDeque;

use block::{
    Action, BufferHit, Command, CommandId, Direction, Durability, Duration, Finished, Instant,
    Outcome, Request, RequestId,
};
use drive::VirtualDrive;
use engine::forecast::{Head, Route};
use simulator::run::{Arrival, Load as _, Part};
use simulator::workload::{Synthetic, Workload};

use super::scene::Scene;
use crate::Failure;

/// The head time of one command.
#[derive(Clone, Copy, Debug)]
pub struct HeadTime {
    /// When it was given to the drive.
    pub predicted: Duration,
    /// From the end of the command before to its own.
    pub measured: Duration,
    /// What the buffer answered of it.
    pub hit: BufferHit,
}

impl HeadTime {
    /// By how many nanoseconds it was longer than predicted.
    pub fn error(&self) -> i64 {
        self.measured.as_nanos() as i64 - self.predicted.as_nanos() as i64
    }
}

/// A command at the drive.
#[derive(Clone, Copy, Debug)]
struct Sent {
    id: CommandId,
    request: Request,
    given: Instant,
    route: Route,
    predicted: Duration,
}

/// What is known from outside.
struct Follower<'a> {
    scene: &'a Scene,
    drive: VirtualDrive,
    load: Synthetic,
    at_drive: VecDeque<Sent>,
    /// After the command that ended last.
    head: Head,
    /// When that was.
    end: Instant,
    given: u64,
    times: Vec<HeadTime>,
}

/// Gives the drive a closed load of two tasks, and follows its head.
///
/// # Errors
/// If the load does not fit on the drive.
pub fn follow(scene: &Scene, load: &Workload, commands: u64) -> Result<Vec<HeadTime>, Failure> {
    let mut follower = Follower {
        scene,
        drive: scene.drive(),
        load: scene.begin(load)?,
        at_drive: VecDeque::new(),
        head: Head::UNKNOWN,
        end: Instant::ZERO,
        given: 0,
        times: Vec::new(),
    };
    while let Some(arrival) = follower.load.next_arrival().map_err(Failure::failed)? {
        follower.give(Instant::ZERO, &arrival)?;
    }
    while follower.times.len() as u64 != commands {
        let Some(now) = follower.drive.next_wakeup() else {
            break;
        };
        if let Some(outcome) = follower.drive.poll(now) {
            follower.ended(&outcome)?;
        }
    }
    Ok(follower.times)
}

impl Follower<'_> {
    /// Gives the drive a command, and predicts how long it will hold the head.
    fn give(&mut self, now: Instant, arrival: &Arrival) -> Result<(), Failure> {
        let belief = self.scene.belief();
        let demand = arrival.demand;
        let route = Route::new(belief, demand.extent, demand.direction)
            .ok_or_else(|| Failure::failed("the belief does not map a request"))?;
        let (mut head, mut before) = (self.head, self.end);
        for sent in &self.at_drive {
            let course = head.course(belief, sent.given, &sent.route);
            head = course.head;
            before = head.free + sent.route.tail(belief, &course.pass);
        }
        let course = head.course(belief, now, &route);
        let end = course.head.free + route.tail(belief, &course.pass);
        let id = CommandId(self.given);
        self.given += 1;
        self.at_drive.push_back(Sent {
            id,
            request: Request {
                id: RequestId(id.0),
                direction: demand.direction,
                extent: demand.extent,
                class: demand.class,
                durability: Durability::Volatile,
            },
            given: now,
            route,
            predicted: end.since(before),
        });
        let (extent, durability) = (demand.extent, Durability::Volatile);
        let action = match demand.direction {
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        let command = Command::new(id, action);
        self.drive.submit(now, command).map_err(Failure::failed)
    }

    /// Notes how long a command took, where the head now is, and gives the drive the next one.
    fn ended(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        let place = self.at_drive.iter().position(|sent| sent.id == outcome.id);
        let sent = place.and_then(|place| self.at_drive.remove(place));
        let sent = sent.ok_or_else(|| Failure::failed("a command ended that was not given"))?;
        let (belief, now) = (self.scene.belief(), outcome.at);
        let course = self.head.course(belief, sent.given, &sent.route);
        self.head = course.ended(belief, &sent.route, (self.end, now));
        self.times.push(HeadTime {
            predicted: sent.predicted,
            measured: now.since(self.end),
            hit: outcome
                .account
                .map(|account| account.hit)
                .unwrap_or_default(),
        });
        self.end = now;
        let finished = Finished {
            request: sent.request,
            submitted: sent.given,
            at: now,
            status: outcome.status,
            waited: Duration::ZERO,
            waited_order: Duration::ZERO,
            account: outcome.account,
        };
        match self
            .load
            .on_finished(now, Part::ONLY, &finished)
            .map_err(Failure::failed)?
        {
            Some(arrival) => self.give(now, &arrival),
            None => Ok(()),
        }
    }
}
