//! The life of a request inside the engine: which transition may follow which. Its pieces have lives
//! of their own in between (`scheduler::ordering`).
//!
//! ```text
//!            accept         finish            return
//!   (free) ---------> held ---------> ended ---------> (free)
//!                     |  ^
//!                     '--' a piece ends, others have not
//! ```
//!
//! An illegal step would lose a request or end it twice. It is a bug of the engine or of its
//! driver, and stops the program in release, too.

/// Where a request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The slot holds no request.
    #[default]
    Free,
    /// Pieces of it wait or are at the drive.
    Held,
    /// All of its pieces have ended; nobody has been told.
    Ended,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It is taken from a client.
    Accept,
    /// A piece of it has ended, and others have not.
    Part,
    /// Its last piece has ended.
    Finish,
    /// The client is told.
    Return,
}

/// All legal steps.
pub const LEGAL: &[(State, Transition, State)] = &[
    (State::Free, Transition::Accept, State::Held),
    (State::Held, Transition::Part, State::Held),
    (State::Held, Transition::Finish, State::Ended),
    (State::Ended, Transition::Return, State::Free),
];

impl State {
    /// Where `step` leads from here.
    ///
    /// # Panics
    /// If the step is not in [`LEGAL`].
    pub fn after(self, step: Transition) -> State {
        LEGAL
            .iter()
            .find(|&&(from, by, _)| from == self && by == step)
            .map(|&(.., to)| to)
            .unwrap_or_else(|| panic!("a request that is {self:?} cannot {step:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 3] = [State::Free, State::Held, State::Ended];
    const TRANSITIONS: [Transition; 4] = [
        Transition::Accept,
        Transition::Part,
        Transition::Finish,
        Transition::Return,
    ];

    #[test]
    fn every_pair_outside_the_table_stops_the_program() {
        for state in STATES {
            for step in TRANSITIONS {
                let legal = LEGAL.iter().find(|row| row.0 == state && row.1 == step);
                let led = std::panic::catch_unwind(|| state.after(step)).ok();
                assert_eq!(led, legal.map(|row| row.2), "{state:?} {step:?}");
            }
        }
    }

    #[test]
    fn every_life_is_a_circle() {
        let end = TRANSITIONS.into_iter().fold(State::Free, State::after);
        assert_eq!(end, State::Free);
    }
}
