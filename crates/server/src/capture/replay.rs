//! A captured run once more, in virtual time.

use std::fmt;
use std::io::Read;

use block::{CommandId, Instant};
use engine::{Engine, TaskChange};
use scheduler::background::{Order, TaskId};
use scheduler::freeblock::Wanted;

use super::event::{Ending, Event, Taken, TaskOrder};
use super::numbers::Out;
use super::reader::{Damaged, Reader};
use super::setting::Unfit;

/// A replay in which the engine answered as it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Events.
    pub events: u64,
    /// Commands that the engine gave.
    pub commands: u64,
    /// Ends of requests that it told.
    pub finished: u64,
    /// When the last input happened.
    pub until: Instant,
    /// Why the capture ends there.
    pub ending: Ending,
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// No engine can be made as it says.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The engine answers differently.
    #[error(transparent)]
    Difference(#[from] Box<Difference>),
    /// An input that no event loop gives.
    #[error("event {number}, byte {offset}: {what}, expected what can happen to an engine")]
    Impossible {
        /// Which event, from one on.
        number: u64,
        /// Where it is in the file.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// The first event in which the engine differs from the captured one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Difference {
    /// Which event, from one on.
    pub number: u64,
    /// Where it is in the file.
    pub offset: u64,
    /// When it happened.
    pub at: Instant,
    /// What was captured.
    pub captured: Event,
    /// What the engine does now.
    pub replayed: Option<Event>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "event {}, at {:.6} s, byte {}: captured: {}; replayed: ",
            self.number,
            self.at.as_nanos() as f64 / 1e9,
            self.offset,
            self.captured
        )?;
        match &self.replayed {
            Some(replayed) => write!(f, "{replayed}"),
            None => f.write_str("tells nothing"),
        }
    }
}

/// Gives a fresh engine the captured inputs, and compares all that it answers.
///
/// # Errors
/// The first difference, or what is wrong with the file.
pub fn replay<R: Read>(reader: &mut Reader<R>, engine: Engine) -> Result<Replayed, Problem> {
    let mut run = Run {
        engine,
        at_drive: Vec::new(),
        last: Instant::ZERO,
    };
    let mut replayed = Replayed {
        events: 0,
        commands: 0,
        finished: 0,
        until: Instant::ZERO,
        ending: Ending::Whole,
    };
    while let Some((offset, captured)) = reader.next_event()? {
        replayed.events += 1;
        let number = replayed.events;
        match &captured {
            Event::Poll(_, Some(_)) => replayed.commands += 1,
            Event::Finished(_) => replayed.finished += 1,
            Event::End(ending) => replayed.ending = *ending,
            _ => (),
        }
        let again = run.again(&captured).map_err(|what| Problem::Impossible {
            number,
            offset,
            what,
        })?;
        let is_same = again
            .as_ref()
            .is_some_and(|again| run.is_same(again, &captured));
        let at = captured.now().unwrap_or(run.last);
        if !is_same {
            return Err(Box::new(Difference {
                number,
                offset,
                at,
                captured,
                replayed: again,
            })
            .into());
        }
        run.last = at;
        replayed.until = at;
    }
    Ok(replayed)
}

/// The engine that is compared.
struct Run {
    engine: Engine,
    /// Commands that have not ended.
    at_drive: Vec<CommandId>,
    last: Instant,
}

impl Run {
    /// The same input, with the answer of this engine.
    fn again(&mut self, captured: &Event) -> Result<Option<Event>, String> {
        Ok(Some(match captured {
            Event::Submit(now, request, _) => {
                let result = self.engine.submit(*now, *request);
                Event::Submit(*now, *request, Taken::from(&result))
            }
            Event::Flush(now, id, _) => {
                let result = self.engine.flush(*now, *id);
                Event::Flush(*now, *id, Taken::from(&result))
            }
            Event::Barrier(now) => {
                self.engine.barrier(*now);
                Event::Barrier(*now)
            }
            Event::Upgrade(now, id, part, class, _) => {
                let result = self.engine.upgrade(*now, *id, *part, *class);
                Event::Upgrade(*now, *id, *part, *class, Taken::from(&result))
            }
            Event::Abort(now, id, _) => {
                let result = self.engine.abort(*now, *id);
                Event::Abort(*now, *id, Taken::from(&result))
            }
            Event::BeginTask(now, order, _) => {
                Event::BeginTask(*now, order.clone(), self.begin_task(*now, order)?)
            }
            Event::BeginStanding(now, priority, _) => {
                self.has_background()?;
                let begun = self.engine.begin_standing_task(*now, *priority);
                Event::BeginStanding(*now, *priority, Taken::from(&begun))
            }
            Event::ChangeTask(now, id, change, _) => {
                let taken = self.change_task(*now, TaskId(*id), *change)?;
                Event::ChangeTask(*now, *id, *change, taken)
            }
            Event::Impact(now, ppm) => {
                self.engine.set_impact_budget(*now, *ppm);
                captured.clone()
            }
            Event::Poll(now, _) => {
                let command = self.engine.poll(*now);
                self.at_drive.extend(command.map(|command| command.id));
                Event::Poll(*now, command)
            }
            Event::Complete(now, outcome) => {
                let place = self.at_drive.iter().position(|&id| id == outcome.id);
                let place = place.ok_or_else(|| {
                    format!("command {} ends, which is not at the drive", outcome.id.0)
                })?;
                self.at_drive.swap_remove(place);
                self.engine.complete(*now, outcome.id, *outcome);
                captured.clone()
            }
            Event::Finished(_) => return Ok(self.engine.poll_finished().map(Event::Finished)),
            Event::Flushed(_) => return Ok(self.engine.poll_flushed().map(Event::Flushed)),
            Event::End(ending) => return Ok(Some(self.end(*ending))),
        }))
    }

    fn begin_task(&mut self, now: Instant, order: &TaskOrder) -> Result<Taken, String> {
        self.has_background()?;
        let geometry = &self.engine.belief().profile().geometry;
        let wanted = Wanted::decode(geometry, &order.wanted[..]);
        let order = Order {
            wanted: wanted.map_err(|error| format!("the blocks of a task: {error}"))?,
            priority: order.priority,
            deadline: order.deadline,
        };
        Ok(Taken::from(&self.engine.begin_task(now, order)))
    }

    fn change_task(
        &mut self,
        now: Instant,
        id: TaskId,
        change: TaskChange,
    ) -> Result<Taken, String> {
        self.has_background()?;
        Ok(Taken::from(&self.engine.change_task(now, id, change)))
    }

    fn has_background(&self) -> Result<(), String> {
        match self.engine.background().is_on() {
            true => Ok(()),
            false => Err("a background task of an engine without them".to_owned()),
        }
    }

    /// After the last event the engine has nothing to tell, unless the capture is not whole.
    fn end(&mut self, ending: Ending) -> Event {
        if ending == Ending::Behind {
            return Event::End(ending);
        }
        let finished = self.engine.poll_finished().map(Event::Finished);
        let flushed = || self.engine.poll_flushed().map(Event::Flushed);
        finished.or_else(flushed).unwrap_or(Event::End(ending))
    }

    /// Byte for byte.
    fn is_same(&self, again: &Event, captured: &Event) -> bool {
        let bytes = |event: &Event| {
            let mut out = Out::default();
            event.encode(&mut out, self.last);
            out.0
        };
        bytes(again) == bytes(captured)
    }
}
