//! One run: a service with its world, in virtual time and on one thread.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once, OnceLock};

use ::drive::{Imperfections, Profile, VirtualDrive, catalog};
use block::Duration;
use engine::{Engine, Limits, ReadRule, Rules};
use scheduler::policy::find;
use server::clients::Bounds;
use server::clock::Clock;
use server::disk::back_end::BackEnd;
use server::disk::back_end::emulated::Emulated;
use server::disk::back_end::file::{Caching, Image};
use server::event_loop::mailbox::Mailbox;
use server::event_loop::{EventLoop, Holds};
use server::ring::Ring;

use crate::client::export;
use crate::fickle::Fickle;
use crate::films;
use crate::history;
use crate::kernel::{Host, Simulation};
use crate::legs::Images;
use crate::model::contents;
use crate::plan::{Belief, Dice, Faults, Medium, Plan, Setting};
use crate::promised::{promising, promising_beside, settings};
use crate::regions::Regions;
use crate::scrub::{self, Scrub};
use crate::unlucky::Unlucky;
use crate::volatile::VolatileCache;
use crate::world::{Counts, World};

/// Bytes that have one value in the models: a part of a sector.
pub const BLOCK: u64 = 128;

/// Blocks of most volumes, which have 1 MiB: few, so that operations overlap.
pub const BLOCKS: u64 = 8192;

/// Memory of the loop.
const MEMORY: usize = 16 << 20;

/// Memory of all films. A choice: more than any two of them ask for.
const FILM_MEMORY: u64 = 64 << 20;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The virtual time, in nanoseconds.
    pub nanos: u64,
    pub counts: Counts,
}

thread_local! {
    /// Whether this thread runs a plan: its panics are told by whoever runs it.
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Panics of runs are not printed where they happen: a plan that is shortened has many.
fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            if !IS_RUNNING.get() {
                usual(what);
            }
        }));
    });
}

/// Runs a plan.
///
/// # Errors
/// What went wrong.
pub fn run(plan: &Plan, seed: u64) -> Result<Report, String> {
    quieten();
    IS_RUNNING.set(true);
    let ran = panic::catch_unwind(AssertUnwindSafe(|| play(plan, seed)));
    IS_RUNNING.set(false);
    ran.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
            .unwrap_or_default()
    })
}

fn play(plan: &Plan, seed: u64) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    // The clock of a loop is copied everywhere, and eight bytes a run are few.
    let nanos: &'static AtomicU64 = Box::leak(Box::default());
    let clock = Clock::simulated(nanos);
    let mut mailbox = Mailbox::new().expect("a bell");
    let world = world(plan, seed, (nanos, mailbox.clone()));
    let world = Rc::new(RefCell::new(world));
    let medium = Storage::create(&plan.setting, folder.path());
    let mut dice = Dice::new(seed.rotate_left(32));
    loop {
        let life = world.borrow().counts.kills + world.borrow().counts.stops;
        let host = Host::of(&plan.setting);
        let seed = dice.below(u64::MAX);
        let kernel = Simulation::new((clock, nanos), Rc::clone(&world), seed, host);
        let back_end = medium.back_end(&plan.setting, &world.borrow(), &mut dice);
        let volume = world.borrow().blocks();
        let mut setting = plan.setting.clone();
        if world.borrow().is_scrubbing() {
            // All is read from the drive.
            setting.cache = None;
        }
        let event_loop = begin((&setting, volume), (clock, kernel), back_end, mailbox);
        let mut event_loop = event_loop.expect("a loop");
        let ended = event_loop.run();
        let is_killed = world.borrow().is_killed();
        if !is_killed {
            // Pages and flushes that were under way when the power went have failed, and the service says so.
            let failed = world.borrow().failures().load(Ordering::Relaxed) > 0;
            let may_lose = failed || world.borrow().counts.cuts > 0;
            assert!(
                ended.is_ok() || may_lose,
                "service {life} ends with {ended:?}"
            );
            assert_eq!(event_loop.holds(), Holds::default(), "something is left");
            world.borrow_mut().assert_agrees(&event_loop.picture());
            if !world.borrow().begins_again() {
                break;
            }
        }
        drop(event_loop);
        mailbox = Mailbox::new().expect("a bell");
        let (mut world, mailbox) = (world.borrow_mut(), mailbox.clone());
        match is_killed {
            true => world.begin_after_kill(mailbox),
            false => {
                let is_over = !world.is_stopped();
                world.begin_after_stop(mailbox, ended.is_ok());
                if is_over && let Some(block) = world.begin_scrub() {
                    medium.change(block);
                }
            }
        }
    }
    let world = world.borrow();
    world.assert_over();
    if let Stored::Mirror(legs) = &medium.images
        && world.counts.cuts == 0
    {
        legs.assert_alike();
    }
    Report {
        nanos: nanos.load(Ordering::Relaxed),
        counts: Counts {
            lost: medium.lost.load(Ordering::Relaxed),
            ..world.counts
        },
    }
}

/// The world of a plan.
fn world(plan: &Plan, seed: u64, (nanos, mailbox): (&'static AtomicU64, Mailbox)) -> World {
    let world = World::new(plan, mailbox);
    if !plan.setting.checksums {
        return world;
    }
    let mut dice = Dice::new(seed.rotate_left(12));
    let regions = Regions::new(dice.below(u64::MAX), plan.setting.host_us, nanos);
    world.with_checksums(regions, Scrub::draw(plan.setting.blocks, &mut dice))
}

/// A service that begins.
fn begin(
    (setting, blocks): (&Setting, u64),
    (clock, kernel): (Clock, Simulation),
    back_end: Box<dyn BackEnd>,
    mailbox: Mailbox,
) -> io::Result<EventLoop> {
    let bounds = Bounds {
        memory: MEMORY,
        ..Bounds::default()
    };
    let ring = |_: &_| Ok(Ring::over(Box::new(kernel)));
    let engine = engine(setting);
    let mut exports = vec![export(setting.origin(), blocks)];
    let mut streams = settings();
    if setting.films.is_some() {
        exports.push(films::export(back_end.shape().bytes()));
        streams.memory = FILM_MEMORY;
    }
    let event_loop = EventLoop::over(clock, ring, engine, back_end, exports, mailbox, bounds)?;
    let place = (setting.origin(), blocks * BLOCK);
    let cache = setting.cache.clone();
    let caches: Vec<_> = cache
        .map(|cache| (cache, place.0, place.1))
        .into_iter()
        .collect();
    event_loop.with_streams(streams).with_caches(&caches)
}

/// The drive of a setting, if it has one.
fn truth(setting: &Setting) -> Option<Arc<Profile>> {
    static PLAIN: OnceLock<Arc<Profile>> = OnceLock::new();
    static CACHING: OnceLock<Arc<Profile>> = OnceLock::new();
    static CAVIAR: OnceLock<Arc<Profile>> = OnceLock::new();
    static TRAVELSTAR: OnceLock<Arc<Profile>> = OnceLock::new();
    let (profile, name) = match setting.medium {
        Medium::File => return None,
        Medium::Drive => (&PLAIN, "dec-rz26"),
        Medium::CachingDrive => (&CACHING, "seagate-cheetah-9lp"),
        Medium::Caviar => (&CAVIAR, "wd-caviar-wd400bb"),
        Medium::Travelstar => (&TRAVELSTAR, "hitachi-travelstar-80gn"),
    };
    let shipped = || {
        let entry = catalog::find(name).expect("it is shipped");
        Arc::new(entry.profile().expect("a profile"))
    };
    Some(Arc::clone(profile.get_or_init(shipped)))
}

/// Sectors of the drive.
fn blocks(setting: &Setting) -> u64 {
    let truth = truth(setting).map(|truth| truth.geometry.sectors().0);
    truth.unwrap_or(setting.leg_bytes() / u64::from(setting.sector))
}

/// What outlives a service: the images of its drives.
struct Storage {
    images: Stored,
    /// Sectors of each.
    blocks: u64,
    /// Changes of sectors that power cuts have taken.
    lost: Arc<AtomicU64>,
}

enum Stored {
    One(PathBuf),
    Mirror(Images),
}

impl Storage {
    fn create(setting: &Setting, folder: &Path) -> Storage {
        let blocks = blocks(setting);
        let images = match setting.mirrored {
            true => Stored::Mirror(Images::create(folder, setting, blocks)),
            false => {
                let path = folder.join("image");
                Image::open_or_make(&path, setting.sector, blocks, Caching::Cached)
                    .expect("an image");
                if setting.is_filled {
                    write(&path, 0, &contents(0, setting.blocks, history::FILLED));
                }
                Stored::One(path)
            }
        };
        Storage {
            images,
            blocks,
            lost: Arc::default(),
        }
    }

    /// What serves an image, below what `fickle` puts around the drive.
    fn drive(
        &self,
        setting: &Setting,
        (image, seed): (&Path, u64),
        fickle: impl FnOnce(Box<dyn BackEnd>) -> Box<dyn BackEnd>,
    ) -> Box<dyn BackEnd> {
        let drive = fickle(drive(setting, image, self.blocks, seed));
        match setting.is_volatile {
            true => {
                let (setting, lost) = ((setting.sector, seed), Arc::clone(&self.lost));
                Box::new(VolatileCache::over(drive, image, setting, lost))
            }
            false => drive,
        }
    }

    /// The back end of a service that begins.
    fn back_end(&self, setting: &Setting, world: &World, dice: &mut Dice) -> Box<dyn BackEnd> {
        let seed = dice.below(u64::MAX);
        let broken = world.broken();
        let path = match &self.images {
            Stored::One(path) => path,
            Stored::Mirror(legs) => {
                let leg = |path: &Path| self.drive(setting, (path, seed), |drive| drive);
                return legs.mirror(leg, &broken, dice);
            }
        };
        let is_fickle = setting.faults == Faults::Errors || setting.hangs || setting.strays;
        let fickle = |drive: Box<dyn BackEnd>| -> Box<dyn BackEnd> {
            match is_fickle {
                true => {
                    let mood = Arc::clone(&broken[0]);
                    Box::new(Fickle::new(drive, mood, world.failures()))
                }
                false => drive,
            }
        };
        let drive = self.drive(setting, (path, seed), fickle);
        match world.regions() {
            Some(regions) => {
                let sums = path.with_extension("sums");
                regions.over(drive, &sums, (setting, world.blocks()))
            }
            None => drive,
        }
    }

    /// A block of the volume changes on the medium.
    fn change(&self, block: u64) {
        let Stored::One(path) = &self.images else {
            return;
        };
        let bytes = contents(block, 1, scrub::CHANGED);
        write(path, block * BLOCK, &bytes);
    }
}

/// Bytes of an image change.
fn write(path: &Path, at: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).expect("an image");
    file.write_all_at(bytes, at).expect("an image");
}

/// The drive of an image.
fn drive(setting: &Setting, image: &Path, blocks: u64, seed: u64) -> Box<dyn BackEnd> {
    let Some(truth) = truth(setting) else {
        let image = Image::open(image, setting.sector, Caching::Cached);
        return Box::new(image.expect("an image"));
    };
    let image =
        Image::open_or_make(image, setting.sector, blocks, Caching::Cached).expect("an image");
    let drive = VirtualDrive::imperfect(Arc::clone(&truth), faults(setting), seed);
    let emulated = Box::new(Emulated::new(drive, image).with_dice(seed));
    match setting.is_unlucky {
        true => Box::new(Unlucky::new(emulated, truth)),
        false => emulated,
    }
}

/// A wrong belief is a true one of a drive that has changed.
fn faults(setting: &Setting) -> Imperfections {
    match setting.belief {
        Belief::Wrong => Imperfections {
            // Far more than any bearing: the head is never where it is believed to be.
            spindle_ppm: 20_000,
            seek_noise: Duration::from_micros(500),
            ..Imperfections::default()
        },
        Belief::True | Belief::None => Imperfections::default(),
    }
}

/// The engine of a setting.
pub fn engine(setting: &Setting) -> Engine {
    let belief = match (setting.belief, truth(setting)) {
        (Belief::True | Belief::Wrong, Some(truth)) => truth,
        _ => {
            let profile = server::featureless::profile("a-test", blocks(setting), setting.sector);
            Arc::new(profile.expect("a profile"))
        }
    };
    let policy = find(setting.policy).expect("a policy");
    let suited = Limits::suited_to(policy, &belief);
    let limits = match setting.room {
        // One of them for real-time requests.
        Some(room) => Limits {
            requests: room + 1,
            reserved_for_real_time: 1,
            ..suited
        },
        None => suited,
    };
    let engine = match setting.mirrored {
        false => Engine::new(belief, &|| policy.make(), limits),
        true => {
            let beliefs = [Arc::clone(&belief), belief];
            let engine = Engine::mirrored(beliefs, ReadRule::Nearest, &|| policy.make(), limits);
            engine.expect("legs that fit")
        }
    };
    let engine = match setting.background {
        true => engine.with_background(Rules::default()),
        false => engine,
    };
    let engine = match setting.belief {
        Belief::True | Belief::Wrong => engine.with_tracking(policy),
        Belief::None => engine,
    };
    match (setting.streams, setting.films) {
        (true, Some(foreground_permille)) => promising_beside(engine, foreground_permille),
        (true, None) => promising(engine),
        (false, _) => engine,
    }
}

/// The shortest plan that still fails, by removing ever shorter parts.
pub fn shrink(plan: &Plan, seed: u64) -> Plan {
    let mut plan = plan.clone();
    let mut part = plan.steps.len() / 2;
    while part > 0 {
        let mut at = 0;
        while at < plan.steps.len() {
            let mut shorter = plan.clone();
            let removed = shorter.steps.drain(at..(at + part).min(plan.steps.len()));
            let passed: u64 = removed.map(|step| step.after_us).sum();
            if let Some(next) = shorter.steps.get_mut(at) {
                next.after_us += passed;
            }
            match run(&shorter, seed) {
                Err(_) => plan = shorter,
                Ok(_) => at += part,
            }
        }
        part /= 2;
    }
    plan
}

/// What a failure has to say: enough to run it again.
pub fn describe(seed: u64, problem: &str, plan: &Plan) -> String {
    let mut text = format!("seed {seed}: {problem}\n  {:?}\n", plan.setting);
    for step in &plan.steps {
        let _ = writeln!(text, "  after {} us: {:?}", step.after_us, step.action);
    }
    text
}

/// The CPU time of this process so far, in seconds.
pub fn cpu_seconds() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
