//! What happens in one run, drawn from its seed before it begins. A plan can be shortened step by step.

use block::Durability;
use block::operation::{Ask, Space, ZeroingPace};
use nbd::Style;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::fickle::Fails;
use crate::films::FilmStep;
use crate::moments::MomentStep;
use crate::reload::ReloadStep;
use crate::run::BLOCK;
use crate::streams::StreamStep;

mod beside;
mod inserted;
mod setting;

use beside::{with_changes_ahead, with_failed_flushes, with_followers, with_refills, with_takes};
use inserted::{
    with_films, with_hangs, with_moments, with_passes, with_reloads, with_renames, with_restarts,
};
pub use setting::{Belief, Faults, Medium, PLACE, Setting};

/// The dice of one run.
pub struct Dice(Pcg64Mcg);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Whether it happens, so many times in a hundred.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Connect(Style),
    /// A client over NBD asks, and does not wait.
    Submit {
        who: u64,
        ask: Ask,
        first: u64,
        count: u64,
    },
    /// A front end on another thread asks.
    Post {
        ask: Ask,
        first: u64,
        count: u64,
    },
    Stream(StreamStep),
    Film(FilmStep),
    Moment(MomentStep),
    Reload(ReloadStep),
    Leave(u64, Leaving),
    /// A client takes no replies for so many milliseconds.
    Pause {
        who: u64,
        ms: u64,
    },
    /// All blocks are read in the background.
    Scan,
    /// Reads are compared with checksums from now on.
    Pass,
    PowerCut,
    Kill,
    /// The service is stopped, and another one begins.
    Restart,
    /// A leg of a mirror fails all commands from now on, until the next start.
    BreakLeg(usize),
    /// The drive fails these commands for so many milliseconds.
    Fail {
        what: Fails,
        ms: u64,
    },
    /// The host's files take so many milliseconds more, for as long.
    Stall {
        ms: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Leaving {
    Politely,
    ByHalf,
    Abruptly,
    WithinPayload,
}

/// An action, and how long after the one before, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub after_us: u64,
    pub action: Action,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub setting: Setting,
    pub steps: Vec<Step>,
}

/// Whoever reads in order, as prefetchers expect.
struct Reader {
    next: u64,
    /// The share of reads that continue the last one, in percent.
    in_order: u64,
}

/// The longest operation, in blocks: a request of NBD has 1 MiB at most, with the sectors at both ends.
const LONGEST: u64 = ((1 << 20) - 2 * 4096) / BLOCK;

/// The most steps of a run. A choice: enough for caches of hundreds of pages to fill.
const STEPS: u64 = 400;

impl Plan {
    pub fn of(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let own = |place: u32| Dice::new(seed.rotate_left(place));
        let setting = Setting::of(seed, &mut dice);
        let count = 1 + dice.below(STEPS);
        // Runs are calm or busy: the mean distance of two steps.
        let mean_us = dice.one(&[20, 500, 10_000, 200_000]);
        let mut reader = Reader {
            next: 0,
            in_order: dice.one(&[0, 30, 80]),
        };
        let steps = (0..count).map(|_| Step {
            after_us: dice.below(2 * mean_us),
            action: action(&mut dice, &setting, &mut reader),
        });
        let mut steps = steps.collect();
        with_moments(&mut steps, &setting, &mut own(8));
        with_hangs(&mut steps, &setting, &mut own(34));
        with_restarts(&mut steps, &setting, &mut own(24));
        with_passes(&mut steps, &setting, &mut own(2));
        with_reloads(&mut steps, &setting, &mut own(56));
        with_renames(&mut steps, &setting, &mut own(36));
        with_refills(&mut steps, &setting, &mut own(44));
        with_failed_flushes(&mut steps, &setting, &mut own(6));
        with_takes(&mut steps, &setting, &mut own(52));
        with_followers(&mut steps, &setting, &mut own(60));
        with_films(&mut steps, &setting, &mut own(14));
        with_changes_ahead(&mut steps, &setting, &mut own(10));
        Plan { setting, steps }
    }
}

fn action(dice: &mut Dice, setting: &Setting, reader: &mut Reader) -> Action {
    let who = dice.below(4);
    match dice.below(100) {
        0..6 => Action::Connect(dice.one(&[Style::Simple, Style::Structured, Style::Extended])),
        6..26 if setting.streams => Action::Stream(StreamStep::draw(dice)),
        6..64 => {
            let (ask, first, count) = asked(dice, setting, reader);
            Action::Submit {
                who,
                ask,
                first,
                count,
            }
        }
        64..88 => {
            let (ask, first, count) = asked(dice, setting, reader);
            Action::Post { ask, first, count }
        }
        88..92 => Action::Leave(
            who,
            dice.one(&[
                Leaving::Politely,
                Leaving::ByHalf,
                Leaving::Abruptly,
                Leaving::WithinPayload,
            ]),
        ),
        92..95 => Action::Pause {
            who,
            ms: dice.below(2000),
        },
        95..97 if setting.background => Action::Scan,
        97 if setting.mirrored => Action::BreakLeg(dice.below(2) as usize),
        97..99 if setting.faults == Faults::Kills => Action::Kill,
        97..99 if setting.faults == Faults::Errors => Action::Fail {
            what: dice.one(&[
                Fails::Reads,
                Fails::Writes,
                Fails::Flushes,
                Fails::Everything,
            ]),
            ms: dice.below(200),
        },
        97..99 if setting.medium != Medium::File => Action::PowerCut,
        _ => Action::Stall {
            ms: dice.below(300),
        },
    }
}

fn asked(dice: &mut Dice, setting: &Setting, reader: &mut Reader) -> (Ask, u64, u64) {
    let durability = match dice.percent(30) {
        true => Durability::Durable,
        false => Durability::Volatile,
    };
    let ask = match dice.below(24) {
        0..8 => Ask::Read,
        8..16 => Ask::Write { durability },
        16..18 => Ask::Zero {
            durability,
            space: dice.one(&[Space::MayBeFreed, Space::Kept]),
            pace: ZeroingPace::Any,
        },
        18..20 => Ask::Trim { durability },
        20..23 => Ask::Flush,
        _ => Ask::Cache,
    };
    // In blocks: the first pages, anywhere, a quarter of all.
    let blocks = setting.blocks;
    let (first, count) = match dice.below(9) {
        0..6 => (dice.below(256), 1 + dice.below(128)),
        6..8 => (dice.below(blocks - 1200), 1 + dice.below(1200)),
        _ => {
            let count = (blocks / 4).min(LONGEST);
            (dice.below(blocks - count), count)
        }
    };
    let (first, count) = match ask {
        Ask::Flush => return (ask, 0, 0),
        Ask::Read if dice.percent(reader.in_order) => {
            let (first, count) = (reader.next % (blocks - 128), 1 + dice.below(128));
            reader.next = first + count;
            (first, count)
        }
        _ => (first, count),
    };
    let (first, count) = rounded(setting, first, count);
    (ask, first, count)
}

/// The blocks as clients may name them.
fn rounded(setting: &Setting, first: u64, count: u64) -> (u64, u64) {
    if !setting.in_sectors {
        return (first, count);
    }
    let sector = u64::from(setting.sector) / BLOCK;
    let (first, end) = (
        first / sector * sector,
        (first + count).next_multiple_of(sector),
    );
    (first, end.min(setting.blocks) - first)
}
