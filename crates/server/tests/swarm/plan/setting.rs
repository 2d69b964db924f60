//! The service of a run, drawn before its steps.

use block::Class;
use cache::{coordinator, prefetch, replacement};
use server::cache_setting::{CacheSetting, PAGE, Readmore, Writes};
use server::mirror::DATA_OFFSET;

use super::Dice;
use crate::run::{BLOCK, BLOCKS};
use crate::streams::Pace;

/// What holds the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A file of the host.
    File,
    /// An emulated drive without a write cache.
    Drive,
    /// An emulated drive with a write cache of several segments.
    CachingDrive,
    /// Emulated drives that take one command at a time, with a write cache.
    Caviar,
    Travelstar,
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
    /// Blocks of the volume.
    pub blocks: u64,
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
    /// Whether films are played, and the thousandths of the head time that are left to others then.
    pub films: Option<u32>,
    /// Whether each command finds the platters at the worst angle.
    pub is_unlucky: bool,
    /// Whether the drive hangs now and then.
    pub hangs: bool,
    /// Whether the drive strays from its belief after the last step, for a while.
    pub strays: bool,
    /// Whether the drive's write cache keeps everything until a flush.
    pub is_volatile: bool,
    /// Whether the volume has checksums.
    pub checksums: bool,
    /// Whether the volume has data before the service begins, instead of zeroes.
    pub is_filled: bool,
    /// How many requests the engine holds at most, if few.
    pub room: Option<usize>,
    /// The longest time that the host's files take, in microseconds.
    pub host_us: u64,
    /// The longest time that a few operations of the host's files take, if some take longer than others, in
    /// microseconds.
    pub straggler_us: Option<u64>,
}

impl Setting {
    /// The setting of a seed. What was added later has dice of its own.
    pub(super) fn of(seed: u64, dice: &mut Dice) -> Setting {
        let own = |place: u32| Dice::new(seed.rotate_left(place));
        let setting = with_errors(plain(dice), &mut own(16));
        let setting = with_pace(setting, &mut own(40));
        let setting = with_size(setting, &mut own(58));
        let setting = with_films(setting, &mut own(30));
        let is_slow = setting.films.is_none();
        let has_sums = is_slow && !setting.mirrored && own(4).percent(25);
        // Beside streams there are hardly other faults.
        let hanging = if setting.streams { 50 } else { 20 };
        Setting {
            hangs: is_slow && !setting.mirrored && own(48).percent(hanging),
            strays: setting.may_stray() && own(18).percent(50),
            is_volatile: setting.medium == Medium::CachingDrive && own(28).percent(60),
            checksums: has_sums,
            is_filled: !setting.mirrored && !has_sums && own(46).percent(75),
            is_unlucky: setting.is_of_one_command() && own(26).percent(50),
            room: room(&mut own(20)),
            straggler_us: stragglers(setting.is_large() || setting.streams, &mut own(62))
                .filter(|_| is_slow),
            ..setting
        }
    }

    /// Whether its cache has a part of the volume, and fetches several requests at once.
    pub fn is_large(&self) -> bool {
        self.blocks > BLOCKS
    }

    /// Whether writes tell where the platter is, and the host hardly delays them.
    fn may_stray(&self) -> bool {
        let is_quick = self.host_us <= 50 && self.straggler_us.is_none();
        let has_belief = self.belief == Belief::True && !self.mirrored;
        has_belief && self.medium == Medium::Drive && is_quick
    }

    /// Whether its drive takes one command at a time.
    fn is_of_one_command(&self) -> bool {
        matches!(self.medium, Medium::Caviar | Medium::Travelstar)
    }

    /// The first byte of the volume on its drive.
    pub fn origin(&self) -> u64 {
        match self.mirrored {
            true => DATA_OFFSET + PLACE,
            false => 0,
        }
    }

    /// Bytes of a drive that are used: the volume, or a mirror with two regions.
    pub fn leg_bytes(&self) -> u64 {
        self.origin() + self.blocks * BLOCK + if self.mirrored { PLACE } else { 0 }
    }

    /// Whether a cache or recordings hold pages that are written later.
    pub fn has_pages(&self) -> bool {
        let cache = self.cache.as_ref();
        self.streams || cache.is_some_and(|cache| cache.writes == Writes::Back)
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

/// Some volumes are larger than several of the largest requests of a cache. Their caches have room for a part of them, and
/// fetch more than one request ahead.
fn with_size(setting: Setting, dice: &mut Dice) -> Setting {
    if setting.mirrored || !dice.percent(40) {
        return setting;
    }
    let prefetches = ["ra(p=600)", "ra(p=800)", "linux-6(max=700)", "amp"];
    let cache = setting.cache.map(|cache| CacheSetting {
        bytes: (400 + dice.below(500)) * PAGE,
        prefetch: dice.one(&prefetches).to_owned(),
        ..cache
    });
    Setting {
        blocks: 6 * BLOCKS,
        cache,
        ..setting
    }
}

/// Some of the runs with streams have films, on any drive, whose host keeps its times.
fn with_films(setting: Setting, dice: &mut Dice) -> Setting {
    if !setting.streams || !dice.percent(50) {
        return setting;
    }
    let medium = dice.one(&[
        Medium::Drive,
        Medium::CachingDrive,
        Medium::Caviar,
        Medium::Travelstar,
    ]);
    let has_queue = matches!(medium, Medium::Drive | Medium::CachingDrive);
    Setting {
        medium,
        // Free blocks need two commands at the drive.
        background: setting.background && has_queue,
        films: Some(dice.one(&[0, 20, 100])),
        faults: Faults::Kills,
        host_us: 5,
        ..setting
    }
}

/// Some hosts have files of which a few operations take long. Most of those do where later work may then be done first: beside
/// streams, and where caches have several requests at once.
fn stragglers(is_likely: bool, dice: &mut Dice) -> Option<u64> {
    dice.percent(if is_likely { 75 } else { 25 })
        .then(|| dice.one(&[20_000, 100_000, 1_000_000]))
}

/// Some engines hold few requests.
fn room(dice: &mut Dice) -> Option<usize> {
    dice.percent(25).then(|| 2 + dice.below(14) as usize)
}

/// A setting without what comes from dice of its own.
fn plain(dice: &mut Dice) -> Setting {
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
            _ => 512,
        },
        blocks: BLOCKS,
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
        films: None,
        is_unlucky: false,
        hangs: false,
        strays: false,
        is_volatile: false,
        checksums: false,
        is_filled: false,
        room: None,
        host_us: dice.one(&[5, 50, 3000]),
        straggler_us: None,
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
