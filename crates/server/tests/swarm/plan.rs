//! What happens in one run, drawn from its seed before it begins. A plan can be shortened step by step.

use block::operation::{Ask, Space, ZeroingPace};
use block::{Class, Durability};
use cache::{coordinator, prefetch, replacement};
use nbd::Style;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use server::cache_setting::{CacheSetting, PAGE, Readmore, Writes};
use server::mirror::DATA_OFFSET;

use crate::fickle::Fails;
use crate::moments::MomentStep;
use crate::reload::ReloadStep;
use crate::run::{BLOCK, BLOCKS};
use crate::streams::{Pace, StreamStep};

mod beside;
mod inserted;

use beside::{with_failed_flushes, with_followers, with_refills, with_takes};
use inserted::{with_hangs, with_moments, with_passes, with_reloads, with_renames, with_restarts};

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

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// What holds the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A file of the host.
    File,
    /// An emulated drive without a write cache.
    Drive,
    /// An emulated drive with a write cache of several segments.
    CachingDrive,
}

/// What the engine believes of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belief {
    /// What it is.
    True,
    /// Another drive with as many blocks.
    Wrong,
    /// Nothing.
    None,
}

/// Bytes before the volume in the data of a mirror, so that a border of regions of 1 MiB is within it.
pub const PLACE: u64 = 512 << 10;

/// What ends a service, or loses what it has not made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// The drives lose their power, and the service goes on.
    Cuts,
    /// The process is killed, and another one begins.
    Kills,
    /// The drive fails commands for a while.
    Errors,
}

/// The service of a run.
#[derive(Clone, Debug)]
pub struct Setting {
    pub medium: Medium,
    /// Bytes of a sector.
    pub sector: u32,
    /// Whether clients keep to sectors.
    pub in_sectors: bool,
    /// Whether there are two of them, with the same data.
    pub mirrored: bool,
    pub faults: Faults,
    pub belief: Belief,
    pub policy: &'static str,
    pub cache: Option<CacheSetting>,
    /// Whether free blocks are read for tasks.
    pub background: bool,
    /// Whether the engine promises something to streams.
    pub streams: bool,
    pub pace: Pace,
    /// Whether the drive hangs now and then.
    pub hangs: bool,
    /// Whether the drive's write cache keeps everything until a flush.
    pub is_volatile: bool,
    /// Whether the volume has checksums.
    pub checksums: bool,
    /// How many requests the engine holds at most, if few.
    pub room: Option<usize>,
    /// The longest time that the host's files take, in microseconds.
    pub host_us: u64,
}

impl Setting {
    /// The first byte of the volume on its drive.
    pub fn origin(&self) -> u64 {
        match self.mirrored {
            true => DATA_OFFSET + PLACE,
            false => 0,
        }
    }

    /// Bytes of a drive that are used: the volume, or a mirror with two regions.
    pub fn leg_bytes(&self) -> u64 {
        self.origin() + BLOCKS * BLOCK + if self.mirrored { PLACE } else { 0 }
    }

    /// Whether a cache or recordings hold pages that are written later.
    pub fn has_pages(&self) -> bool {
        let cache = self.cache.as_ref();
        self.streams || cache.is_some_and(|cache| cache.writes == Writes::Back)
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

/// The most steps of a run. A choice: enough for caches of hundreds of pages to fill.
const STEPS: u64 = 400;

impl Plan {
    pub fn of(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let setting = with_errors(setting(&mut dice), &mut Dice::new(seed.rotate_left(16)));
        let setting = with_pace(setting, &mut Dice::new(seed.rotate_left(40)));
        let mut of_hangs = Dice::new(seed.rotate_left(48));
        let hangs = !setting.mirrored && of_hangs.percent(20);
        let mut of_checksums = Dice::new(seed.rotate_left(4));
        let checksums = !setting.mirrored && of_checksums.percent(25);
        let setting = Setting {
            hangs,
            is_volatile: setting.medium == Medium::CachingDrive
                && Dice::new(seed.rotate_left(28)).percent(60),
            checksums,
            room: room(&mut Dice::new(seed.rotate_left(20))),
            ..setting
        };
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
        with_moments(&mut steps, &setting, &mut Dice::new(seed.rotate_left(8)));
        with_hangs(&mut steps, &setting, &mut of_hangs);
        with_restarts(&mut steps, &setting, &mut Dice::new(seed.rotate_left(24)));
        with_passes(&mut steps, &setting, &mut of_checksums);
        with_reloads(&mut steps, &setting, &mut Dice::new(seed.rotate_left(56)));
        with_renames(&mut steps, &setting, &mut Dice::new(seed.rotate_left(36)));
        with_refills(&mut steps, &setting, &mut Dice::new(seed.rotate_left(44)));
        with_failed_flushes(&mut steps, &setting, &mut Dice::new(seed.rotate_left(6)));
        with_takes(&mut steps, &setting, &mut Dice::new(seed.rotate_left(52)));
        with_followers(&mut steps, &setting, &mut Dice::new(seed.rotate_left(60)));
        Plan { setting, steps }
    }
}

/// Some settings get a drive that fails commands. They are drawn by dice of their own, so that all others stay what
/// they were.
fn with_errors(setting: Setting, dice: &mut Dice) -> Setting {
    if setting.mirrored || setting.streams || !dice.percent(30) {
        return setting;
    }
    let faults = Faults::Errors;
    Setting { faults, ..setting }
}

/// Half of the runs with streams have fast ones, drawn by dice of their own, too.
fn with_pace(setting: Setting, dice: &mut Dice) -> Setting {
    if !setting.streams || dice.percent(50) {
        return setting;
    }
    let pace = Pace::fast(dice);
    Setting { pace, ..setting }
}

/// Some engines hold few requests.
fn room(dice: &mut Dice) -> Option<usize> {
    dice.percent(25).then(|| 2 + dice.below(14) as usize)
}

fn setting(dice: &mut Dice) -> Setting {
    let medium = dice.one(&[Medium::File, Medium::Drive, Medium::CachingDrive]);
    let belief = match medium {
        Medium::File => Belief::None,
        _ => dice.one(&[Belief::True, Belief::True, Belief::Wrong, Belief::None]),
    };
    let policies: Vec<&'static str> = scheduler::policy::ALL
        .iter()
        .map(|entry| entry.name)
        .filter(|name| belief != Belief::None || ["fcfs", "look", "c-look"].contains(name))
        .collect();
    let background = belief != Belief::None && dice.percent(60);
    let mirrored = dice.percent(30);
    let streams = belief == Belief::True && !mirrored && dice.percent(40);
    let policy = match background || streams {
        true => "sptf-sw60",
        false => dice.one(&policies),
    };
    let has_cache = !streams && dice.percent(60);
    Setting {
        medium,
        sector: match medium {
            Medium::File => dice.one(&[512, 4096]),
            Medium::Drive | Medium::CachingDrive => 512,
        },
        in_sectors: dice.percent(50),
        mirrored,
        // What a cut has torn, an emulated drive does not remember after a restart.
        faults: dice.one(&[Faults::Cuts, Faults::Kills]),
        belief,
        policy,
        cache: has_cache.then(|| cache(dice, background)),
        background,
        streams,
        pace: Pace::SLOW,
        hangs: false,
        is_volatile: false,
        checksums: false,
        room: None,
        host_us: dice.one(&[5, 50, 3000]),
    }
}

fn cache(dice: &mut Dice, background: bool) -> CacheSetting {
    let replacements: Vec<&str> = replacement::ALL.iter().map(|entry| entry.name).collect();
    let prefetches: Vec<&str> = prefetch::ALL.iter().map(|entry| entry.name).collect();
    let coordinators: Vec<&str> = coordinator::ALL.iter().map(|entry| entry.name).collect();
    let readmore = match background && dice.percent(75) {
        true => Readmore::Free,
        false => Readmore::Ordinary,
    };
    let coordinator = match readmore {
        Readmore::Free => dice.one(&["pfc", "adaptive(watch=off)"]),
        Readmore::Ordinary => dice.one(&coordinators),
    };
    // Small ones evict.
    let most = dice.one(&[14, 60, 600]);
    let pages = 2 + dice.below(most);
    CacheSetting {
        bytes: pages * PAGE,
        replacement: match coordinator {
            // What it marks, only this one looks at.
            "du" => "du".to_owned(),
            _ => dice.one(&replacements).to_owned(),
        },
        prefetch: dice.one(&prefetches).to_owned(),
        coordinator: coordinator.to_owned(),
        readmore,
        writes: dice.one(&[Writes::Through, Writes::Back]),
        ahead: dice.one(&[Class::BestEffort(6), Class::Background]),
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
    let (first, count) = match dice.below(9) {
        0..6 => (dice.below(256), 1 + dice.below(128)),
        6..8 => (dice.below(BLOCKS - 1200), 1 + dice.below(1200)),
        _ => (dice.below(BLOCKS - 2048), 2048),
    };
    let (first, count) = match ask {
        Ask::Flush => return (ask, 0, 0),
        Ask::Read if dice.percent(reader.in_order) => {
            let (first, count) = (reader.next % (BLOCKS - 128), 1 + dice.below(128));
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
    (first, end.min(BLOCKS) - first)
}
