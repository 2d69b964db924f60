//! The replay of a captured run in virtual time.

use std::fmt;
use std::io::Read;

use block::Instant;
use engine::{Engine, Impossible, Reply};

use super::event::{CaptureEnd, Event};
use super::reader::{CaptureReader, Damaged};
use super::setting::UnfitSetting;

/// The result of a replay in which the engine answered as captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The number of events.
    pub events: u64,
    /// The number of commands.
    pub commands: u64,
    /// The number of finished requests.
    pub finished: u64,
    /// The time of the last input.
    pub until: Instant,
    /// The reason for which the capture ends.
    pub ending: CaptureEnd,
}

/// The reason for which a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file is damaged.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// The setting is invalid.
    #[error(transparent)]
    UnfitSetting(#[from] UnfitSetting),
    /// The engine answers differently.
    #[error(transparent)]
    Difference(#[from] Box<Difference>),
    /// An input that no event loop makes.
    #[error("event {number}, byte {offset}: {what}, expected what can happen to an engine")]
    Impossible {
        /// The number of the event, from 1.
        number: u64,
        /// The offset in the file.
        offset: u64,
        /// The problem.
        what: Impossible,
    },
}

/// The first event in which the engine differs from the captured one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Difference {
    /// The number of the event, from 1.
    pub number: u64,
    /// The offset in the file.
    pub offset: u64,
    /// The time of the event.
    pub at: Instant,
    /// The captured event.
    pub captured: Event,
    /// The event of the replay.
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

/// Repeats the captured inputs with a new engine, and compares all its answers.
///
/// # Errors
/// The first difference, or the damage of the file.
pub fn replay<R: Read>(
    reader: &mut CaptureReader<R>,
    mut engine: Engine,
) -> Result<Replayed, ReplayError> {
    let mut replayed = Replayed {
        events: 0,
        commands: 0,
        finished: 0,
        until: Instant::ZERO,
        ending: CaptureEnd::Whole,
    };
    while let Some((offset, captured)) = reader.next_event()? {
        replayed.events += 1;
        let number = replayed.events;
        match &captured {
            Event::Input(elapsed, _, reply) => {
                replayed.until += *elapsed;
                replayed.commands += u64::from(matches!(reply, Reply::Command(Some(_))));
            }
            Event::Finished(_) => replayed.finished += 1,
            Event::Flushed(_) => {}
            Event::End(ending) => replayed.ending = *ending,
        }
        let at = replayed.until;
        let again =
            again(&mut engine, at, &captured).map_err(|impossible| ReplayError::Impossible {
                number,
                offset,
                what: impossible,
            })?;
        if again.as_ref() != Some(&captured) {
            return Err(Box::new(Difference {
                number,
                offset,
                at,
                captured,
                replayed: again,
            })
            .into());
        }
    }
    Ok(replayed)
}

/// Repeats an input. The answer is the event of this engine.
fn again(engine: &mut Engine, now: Instant, captured: &Event) -> Result<Option<Event>, Impossible> {
    Ok(match captured {
        Event::Input(elapsed, input, _) => {
            let reply = engine.apply(now, input)?;
            Some(Event::Input(*elapsed, input.clone(), reply))
        }
        Event::Finished(_) => engine.poll_finished().map(Event::Finished),
        Event::Flushed(_) => engine.poll_flushed().map(Event::Flushed),
        Event::End(CaptureEnd::Behind) => Some(captured.clone()),
        // After the last event the engine has nothing to tell.
        Event::End(CaptureEnd::Whole) => {
            let finished = engine.poll_finished().map(Event::Finished);
            let told = finished.or_else(|| engine.poll_flushed().map(Event::Flushed));
            Some(told.unwrap_or_else(|| captured.clone()))
        }
    })
}
