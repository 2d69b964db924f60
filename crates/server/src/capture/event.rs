//! What happens to an engine, and what it answers.

use std::fmt;

use block::{Class, Command, CommandId, Extent, Finished, Instant, Outcome, Request, RequestId};
use engine::{Flushed, TaskChange};

use super::numbers::{In, Out, Wrong};

/// One input with its answer, or one answer that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request came.
    Submit(Instant, Request, Taken),
    /// A flush came.
    Flush(Instant, RequestId, Taken),
    /// A barrier came.
    Barrier(Instant),
    /// Blocks of a request became more urgent.
    Upgrade(Instant, RequestId, Extent, Class, Taken),
    /// A request was taken back.
    Abort(Instant, RequestId, Taken),
    /// A background task came.
    BeginTask(Instant, TaskOrder, Taken),
    /// A standing background task of this priority came.
    BeginStanding(Instant, u8, Taken),
    /// A background task was changed.
    ChangeTask(Instant, u64, TaskChange, Taken),
    /// The engine was asked for a command.
    Poll(Instant, Option<Command>),
    /// A command ended.
    Complete(Instant, Outcome),
    /// The engine told the end of a request.
    Finished(Finished),
    /// The engine told the end of a flush.
    Flushed(Flushed),
    /// Background tasks may lengthen foreground requests by so much, in parts per million.
    Impact(Instant, u32),
    /// The capture is over.
    End(Ending),
}

/// Whether the engine took an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It did.
    Yes,
    /// It refused it.
    No,
}

/// What a background task is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOrder {
    /// The wanted blocks, as a [`Wanted`](scheduler::freeblock::Wanted) is encoded.
    pub wanted: Vec<u8>,
    /// 0 first.
    pub priority: u8,
    /// When it should be done.
    pub deadline: Option<Instant>,
}

/// Why a capture is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The engine is gone.
    Whole,
    /// The file was slower than the engine for longer than the buffer lasts: what came since is
    /// not in it.
    Behind,
}

impl<T, E> From<&Result<T, E>> for Taken {
    fn from(result: &Result<T, E>) -> Self {
        match result {
            Ok(_) => Taken::Yes,
            Err(_) => Taken::No,
        }
    }
}

impl Event {
    /// When it happened, if it is an input.
    pub fn now(&self) -> Option<Instant> {
        match self {
            Event::Submit(now, ..)
            | Event::Flush(now, ..)
            | Event::Barrier(now)
            | Event::Upgrade(now, ..)
            | Event::Abort(now, ..)
            | Event::BeginTask(now, ..)
            | Event::BeginStanding(now, ..)
            | Event::ChangeTask(now, ..)
            | Event::Impact(now, _)
            | Event::Poll(now, _)
            | Event::Complete(now, _) => Some(*now),
            Event::Finished(_) | Event::Flushed(_) | Event::End(_) => None,
        }
    }

    /// Appends the event; `last` is when the input before it happened.
    pub(super) fn encode(&self, out: &mut Out, last: Instant) {
        out.number(self.kind());
        if let Some(now) = self.now() {
            out.duration(now.since(last));
        }
        match self {
            Event::Submit(_, request, taken) => {
                put_request(out, request);
                put_taken(out, *taken);
            }
            Event::Flush(_, id, taken) | Event::Abort(_, id, taken) => {
                out.number(id.0);
                put_taken(out, *taken);
            }
            Event::Barrier(_) | Event::Poll(_, None) => (),
            Event::Upgrade(_, id, part, class, taken) => {
                out.number(id.0);
                out.extent(*part);
                out.class(*class);
                put_taken(out, *taken);
            }
            Event::BeginTask(_, order, taken) => {
                out.bytes(&order.wanted);
                out.number(u64::from(order.priority));
                out.option(order.deadline, Out::instant);
                put_taken(out, *taken);
            }
            Event::BeginStanding(_, priority, taken) => {
                out.number(u64::from(*priority));
                put_taken(out, *taken);
            }
            Event::ChangeTask(_, id, change, taken) => {
                out.number(*id);
                put_change(out, *change);
                put_taken(out, *taken);
            }
            Event::Poll(_, Some(command)) => out.command(command),
            Event::Complete(_, outcome) => {
                out.number(outcome.id.0);
                out.instant(outcome.at);
                out.status(outcome.status);
                out.option(outcome.account, Out::account);
            }
            Event::Finished(finished) => put_finished(out, finished),
            Event::Flushed(flushed) => {
                out.number(flushed.id.0);
                out.instant(flushed.at);
                out.status(flushed.status);
            }
            Event::Impact(_, ppm) => out.number(u64::from(*ppm)),
            Event::End(ending) => out.number(u64::from(*ending == Ending::Behind)),
        }
    }

    fn kind(&self) -> u64 {
        match self {
            Event::Poll(_, None) => 0,
            Event::Poll(_, Some(_)) => 1,
            Event::Complete(..) => 2,
            Event::Submit(..) => 3,
            Event::Finished(_) => 4,
            Event::Flush(..) => 5,
            Event::Flushed(_) => 6,
            Event::Barrier(_) => 7,
            Event::Upgrade(..) => 8,
            Event::Abort(..) => 9,
            Event::BeginTask(..) => 10,
            Event::ChangeTask(..) => 11,
            Event::End(_) => 12,
            Event::Impact(..) => 13,
            Event::BeginStanding(..) => 14,
        }
    }

    /// The next event; `last` is when the input before it happened.
    pub(super) fn decode(from: &mut In<'_>, last: Instant) -> Result<Event, Wrong> {
        let kind = from.up_to(14, "an event: 0 to 14")?;
        let now = match kind {
            4 | 6 | 12 => last,
            _ => last + from.duration()?,
        };
        Ok(match kind {
            0 => Event::Poll(now, None),
            1 => Event::Poll(now, Some(from.command()?)),
            2 => Event::Complete(
                now,
                Outcome {
                    id: CommandId(from.number()?),
                    at: from.instant()?,
                    status: from.status()?,
                    account: from.option(In::account)?,
                },
            ),
            3 => Event::Submit(now, take_request(from)?, take_taken(from)?),
            4 => Event::Finished(take_finished(from)?),
            5 => Event::Flush(now, RequestId(from.number()?), take_taken(from)?),
            6 => Event::Flushed(Flushed {
                id: RequestId(from.number()?),
                at: from.instant()?,
                status: from.status()?,
            }),
            7 => Event::Barrier(now),
            8 => {
                let id = RequestId(from.number()?);
                let (part, class) = (from.extent()?, from.class()?);
                Event::Upgrade(now, id, part, class, take_taken(from)?)
            }
            9 => Event::Abort(now, RequestId(from.number()?), take_taken(from)?),
            10 => {
                let order = TaskOrder {
                    wanted: from.bytes()?.to_vec(),
                    priority: from.up_to(255, "a priority: 0 to 255")? as u8,
                    deadline: from.option(In::instant)?,
                };
                Event::BeginTask(now, order, take_taken(from)?)
            }
            11 => {
                let id = from.number()?;
                let change = take_change(from)?;
                Event::ChangeTask(now, id, change, take_taken(from)?)
            }
            14 => {
                let priority = from.up_to(255, "a priority: 0 to 255")? as u8;
                Event::BeginStanding(now, priority, take_taken(from)?)
            }
            13 => {
                let ppm = from.up_to(u64::from(u32::MAX), "a budget of at most 32 bits")?;
                Event::Impact(now, ppm as u32)
            }
            _ => Event::End(match from.flag()? {
                false => Ending::Whole,
                true => Ending::Behind,
            }),
        })
    }
}

/// What people read in explanations.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Poll(_, None) => f.write_str("gives the drive nothing"),
            Event::Poll(_, Some(command)) => {
                write!(f, "gives command {}: {:?}", command.id.0, command.action)
            }
            Event::Finished(finished) => write!(
                f,
                "tells the end of request {} ({:?}) of {} ns, submitted at {} ns, waited {} ns",
                finished.request.id.0,
                finished.status,
                finished.at.as_nanos(),
                finished.submitted.as_nanos(),
                finished.waited.as_nanos()
            ),
            Event::Flushed(flushed) => write!(
                f,
                "tells the end of flush {} ({:?}) of {} ns",
                flushed.id.0,
                flushed.status,
                flushed.at.as_nanos()
            ),
            Event::Submit(_, request, taken) => {
                write!(f, "request {}: taken: {taken:?}", request.id.0)
            }
            other => write!(f, "{other:?}"),
        }
    }
}

fn put_taken(out: &mut Out, taken: Taken) {
    out.number(u64::from(taken == Taken::Yes));
}

fn take_taken(from: &mut In<'_>) -> Result<Taken, Wrong> {
    Ok(match from.flag()? {
        true => Taken::Yes,
        false => Taken::No,
    })
}

/// Changes but promotions, which are three more than the priority, have these numbers.
const SUSPEND: u64 = 0;
const RESUME: u64 = 1;
const ABORT: u64 = 2;
const PROMOTE: u64 = 3;
const WANT: u64 = PROMOTE + 256;
const UNWANT: u64 = WANT + 1;

fn put_change(out: &mut Out, change: TaskChange) {
    let (number, extent) = match change {
        TaskChange::Suspend => (SUSPEND, None),
        TaskChange::Resume => (RESUME, None),
        TaskChange::Abort => (ABORT, None),
        TaskChange::Promote(priority) => (PROMOTE + u64::from(priority), None),
        TaskChange::Want(extent) => (WANT, Some(extent)),
        TaskChange::Unwant(extent) => (UNWANT, Some(extent)),
    };
    out.number(number);
    if let Some(extent) = extent {
        out.extent(extent);
    }
}

fn take_change(from: &mut In<'_>) -> Result<TaskChange, Wrong> {
    Ok(match from.up_to(UNWANT, "a change of a task: 0 to 260")? {
        SUSPEND => TaskChange::Suspend,
        RESUME => TaskChange::Resume,
        ABORT => TaskChange::Abort,
        WANT => TaskChange::Want(from.extent()?),
        UNWANT => TaskChange::Unwant(from.extent()?),
        number => TaskChange::Promote((number - PROMOTE) as u8),
    })
}

fn put_request(out: &mut Out, request: &Request) {
    out.number(request.id.0);
    out.direction(request.direction);
    out.extent(request.extent);
    out.class(request.class);
    out.durability(request.durability);
}

fn take_request(from: &mut In<'_>) -> Result<Request, Wrong> {
    Ok(Request {
        id: RequestId(from.number()?),
        direction: from.direction()?,
        extent: from.extent()?,
        class: from.class()?,
        durability: from.durability()?,
    })
}

fn put_finished(out: &mut Out, finished: &Finished) {
    put_request(out, &finished.request);
    out.instant(finished.submitted);
    out.instant(finished.at);
    out.status(finished.status);
    out.duration(finished.waited);
    out.duration(finished.waited_order);
    out.option(finished.account, Out::account);
}

fn take_finished(from: &mut In<'_>) -> Result<Finished, Wrong> {
    Ok(Finished {
        request: take_request(from)?,
        submitted: from.instant()?,
        at: from.instant()?,
        status: from.status()?,
        waited: from.duration()?,
        waited_order: from.duration()?,
        account: from.option(In::account)?,
    })
}
