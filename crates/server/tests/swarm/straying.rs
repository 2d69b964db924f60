//! A drive that strays from its belief after the last step, and then does as believed again: the engine enters safe mode, and
//! leaves it.
//!
//! ```text
//!   all clients gone --> each end comes late --> safe mode --> ends come in time --> positions are used again
//!                          '-- writes of sectors anywhere, several at a time, and a scan --'
//! ```

use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;
use server::status::Mode;

use crate::plan::Dice;
use crate::world::{Tell, Told, tell};

/// The course of a drive that strays.
pub struct Straying {
    stage: Stage,
    dice: Dice,
    /// Writes of this stage.
    writes: u32,
    /// The number of writes at the last look at the mode.
    looked: u32,
}

/// How far a course is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Astray,
    Back,
    Over,
}

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Nothing before a write ends.
    Nothing,
    /// The mode is looked at.
    Looks,
    /// These blocks of a sector are written.
    Sector((u64, u64)),
    /// Everything is written, and the engine has left safe mode.
    Over,
}

/// Writes under way at once. A choice: requests wait when the policy changes.
const DEPTH: usize = 8;

/// Writes between two looks at the mode. A choice.
const LOOKS: u32 = 16;

/// Writes after which the mode has changed. The agreement is a mean over about 256 ends: from 1 it is below a half after 178,
/// and from a half above three quarters after as many more. Not every end tells: a choice of six times as many.
const MOST: u32 = 1000;

/// Blocks of a sector of 512 bytes.
const SECTOR: u64 = 4;

impl Straying {
    pub fn begin(seed: u64) -> Straying {
        Straying {
            stage: Stage::Astray,
            dice: Dice::new(seed),
            writes: 0,
            looked: 0,
        }
    }

    /// What is next on a volume of so many blocks.
    pub fn next(
        &mut self,
        blocks: u64,
        under_way: usize,
        (mailbox, told): (&Mailbox, &Tell),
    ) -> Writes {
        if self.stage == Stage::Over {
            return match under_way {
                0 => Writes::Over,
                _ => Writes::Nothing,
            };
        }
        if self.writes == self.looked + LOOKS {
            self.looked = self.writes;
            look(mailbox, told);
            return Writes::Looks;
        }
        if under_way >= DEPTH {
            return Writes::Nothing;
        }
        self.writes += 1;
        assert!(self.writes < MOST, "{:?} for {MOST} writes", self.stage);
        Writes::Sector((self.dice.below(blocks / SECTOR) * SECTOR, SECTOR))
    }

    /// The mode was seen. The answer is whether the drive does as believed from now on.
    pub fn seen(&mut self, mode: Mode) -> bool {
        let next = match (self.stage, mode) {
            (Stage::Astray, Mode::Safe) => Stage::Back,
            (Stage::Back, Mode::Following) => Stage::Over,
            _ => return false,
        };
        self.stage = next;
        (self.writes, self.looked) = (0, 0);
        next == Stage::Back
    }
}

/// Looks at the mode.
fn look(mailbox: &Mailbox, told: &Tell) {
    let told = Tell::clone(told);
    let call = move |event_loop: &mut EventLoop| {
        tell(&told, Told::Mode(event_loop.picture().mode));
    };
    mailbox.call(call).expect("it runs");
}
