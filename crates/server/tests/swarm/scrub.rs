//! A scrub after the last step, by two more services without caches: none of its alarms is false, and it finds what was
//! changed behind the back of the service.
//!
//! ```text
//!   stopped --> a service: pass, no damage --> a block of the image changes --> a service: pass, this damage
//! ```

use std::ops::Range;

use server::checksums::keeper::Keeper;
use server::checksums::pass::{Damage, DamageKind, Pass, PassCounts};
use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;

use crate::model::Stamp;
use crate::plan::Dice;
use crate::regions::VOLUME;
use crate::run::BLOCK;
use crate::world::{Tell, Told, tell};

/// What a changed block has: no write gives it.
pub const CHANGED: Stamp = 0xFFFF_FFFF;

/// How often all blocks are read for one pass. What differs once is read again.
const ROUNDS: u32 = 4;

/// How long after a look the next one is, in nanoseconds. A choice: a tenth of the keeper's interval.
const LOOK_NS: u64 = 10_000_000;

/// How often a pass is looked at before it has to go on: each change has its record after half a minute.
const LOOKS: u32 = 10_000;

/// The scrub of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scrub {
    /// The block that changes between the two passes.
    block: u64,
    pass: Option<Place>,
}

/// A service with a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    number: u32,
    /// Blocks of the volume.
    blocks: u64,
    rounds: u32,
    looks: u32,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    /// A look is due.
    Look(u64),
    /// A look is under way.
    Looking,
    /// Blocks from here on are read.
    Read(u64),
    Over,
}

/// A look at a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassLook {
    left: u64,
    is_waiting: bool,
    changed: Vec<Range<u64>>,
    counts: PassCounts,
}

/// What the world does next for a scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Nothing,
    /// Something was ordered.
    Done,
    /// A client reads from this block on.
    Read(u64),
    /// The service stops.
    Stop,
}

impl Scrub {
    pub fn draw(blocks: u64, dice: &mut Dice) -> Scrub {
        let block = dice.below(blocks);
        Scrub { block, pass: None }
    }

    /// Whether another service is to begin for it.
    pub fn is_due(&self) -> bool {
        self.pass.as_ref().is_none_or(|place| place.number < 2)
    }

    /// Whether a service scrubs.
    pub fn is_on(&self) -> bool {
        self.pass.is_some()
    }

    /// A service begins for it, with so many blocks. The answer is the block that changes before.
    pub fn begin(&mut self, blocks: u64) -> Option<u64> {
        self.block %= blocks;
        let number = self.pass.as_ref().map_or(1, |place| place.number + 1);
        self.pass = Some(Place {
            number,
            blocks,
            rounds: 0,
            looks: 0,
            step: Step::Begin,
        });
        (number == 2).then_some(self.block)
    }

    /// When it acts next by itself.
    pub fn next_time(&self) -> Option<u64> {
        match self.pass.as_ref()?.step {
            Step::Look(at) => Some(at),
            _ => None,
        }
    }

    /// Goes on. Reads are over unless `is_reading`.
    pub fn act(&mut self, now: u64, is_reading: bool, (mailbox, told): (&Mailbox, &Tell)) -> Next {
        let Some(place) = &mut self.pass else {
            return Next::Nothing;
        };
        match place.step {
            Step::Begin => {
                of_keeper(mailbox, Keeper::begin_pass);
                place.step = Step::Look(now);
                Next::Done
            }
            Step::Look(at) if at <= now => {
                look(mailbox, told);
                place.looks += 1;
                assert!(place.looks < LOOKS, "a pass does not go on");
                place.step = Step::Looking;
                Next::Done
            }
            Step::Read(first) if !is_reading && first < place.blocks => {
                place.step = Step::Read(first + CHUNK);
                Next::Read(first)
            }
            Step::Read(_) if !is_reading => {
                place.step = Step::Look(now + LOOK_NS);
                Next::Done
            }
            Step::Over => Next::Stop,
            Step::Look(_) | Step::Looking | Step::Read(_) => Next::Nothing,
        }
    }

    /// A look has ended. The answer is whether a pass is over, and whether it found the block that changed.
    pub fn looked(&mut self, now: u64, look: &PassLook) -> Option<bool> {
        let place = self.pass.as_mut()?;
        if look.is_waiting {
            place.step = Step::Look(now + LOOK_NS);
            return None;
        }
        if look.left > 0 {
            assert!(
                place.rounds < ROUNDS,
                "{look:?} after {ROUNDS} reads of everything"
            );
            place.rounds += 1;
            place.step = Step::Read(0);
            return None;
        }
        place.step = Step::Over;
        let changed = self.block * BLOCK;
        let is_it = |damage: &Range<u64>| place.number == 2 && damage.contains(&changed);
        let is_found = look.changed.iter().any(is_it);
        let falsely = look.changed.iter().find(|damage| !is_it(damage));
        assert_eq!(falsely, None, "a false alarm in pass {}", place.number);
        // Chunks with trimmed bytes have no checksum.
        let may_be_missed = place.number == 1 || look.counts.undefined > 0;
        assert!(
            is_found || may_be_missed,
            "block {} has changed: {look:?}",
            self.block
        );
        Some(is_found)
    }
}

/// Blocks of one read.
pub const CHUNK: u64 = 512;

/// Looks at the pass, and hastens the records that it waits for.
fn look(mailbox: &Mailbox, told: &Tell) {
    let told = Tell::clone(told);
    of_keeper(mailbox, move |keeper| {
        keeper.hasten();
        let is_unsettled = keeper.active() > 0 || keeper.waits_for_flush();
        let pass = keeper.pass().expect("it was begun");
        tell(
            &told,
            Told::Looked(PassLook {
                left: pass.left(),
                is_waiting: is_unsettled || pass.is_comparing(),
                changed: changed(pass),
                counts: pass.counts(),
            }),
        );
    });
}

/// Bytes that differ from what was written.
fn changed(pass: &Pass) -> Vec<Range<u64>> {
    let all = pass.damaged().iter();
    let changed = all.filter(|damage| damage.kind == DamageKind::Changed);
    changed
        .map(|&Damage { offset, length, .. }| offset..offset + length)
        .collect()
}

/// A pass begins at any time, beside the load. It wants records at once, as a scrub does; without it they come ten
/// seconds after the last change.
pub fn begin_pass(mailbox: &Mailbox) {
    of_keeper(mailbox, |keeper| {
        keeper.begin_pass();
        keeper.hasten();
    });
}

/// A pass beside a load has found no damage, for there is none.
pub fn assert_sound(mailbox: &Mailbox) {
    of_keeper(mailbox, |keeper| {
        let found = keeper.pass().map(changed).unwrap_or_default();
        assert!(found.is_empty(), "a false alarm beside the load: {found:?}");
    });
}

fn of_keeper(mailbox: &Mailbox, what: impl FnOnce(&mut Keeper) + Send + 'static) {
    let call = move |event_loop: &mut EventLoop| {
        let checks = event_loop.checks().expect("checksums");
        let (keeper, _) = checks.volume(VOLUME).expect("checksums");
        what(keeper);
    };
    mailbox.call(call).expect("it runs");
}
