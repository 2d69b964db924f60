//! One run: a service with its world, in virtual time and on one thread.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use ::drive::{Imperfections, Profile, VirtualDrive, catalog};
use block::Duration;
use engine::{Engine, Limits, Rules};
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
use crate::kernel::Simulation;
use crate::plan::{Belief, Medium, Plan, Setting};
use crate::world::{Counts, World};

/// Bytes of a block.
pub const BLOCK: u64 = 512;

/// Blocks of the volume: few, so that operations overlap.
pub const BLOCKS: u64 = 4096;

/// Memory of the loop.
const MEMORY: usize = 16 << 20;

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
    let image = folder.path().join("image");
    // The clock of a loop is copied everywhere, and eight bytes a run are few.
    let nanos: &'static AtomicU64 = Box::leak(Box::default());
    let clock = Clock::simulated(nanos);
    let mailbox = Mailbox::new().expect("a bell");
    let world = Rc::new(RefCell::new(World::new(plan, mailbox.clone())));
    let setting = &plan.setting;
    let host_us = setting.host_us;
    let kernel = Simulation::new((clock, nanos), Rc::clone(&world), seed, host_us);
    let (engine, back_end) = drive(setting, &image, seed);
    let bounds = Bounds {
        memory: MEMORY,
        ..Bounds::default()
    };
    let ring = |_: &_| Ok(Ring::over(Box::new(kernel)));
    let exports = vec![export()];
    let event_loop = EventLoop::over(clock, ring, engine, back_end, exports, mailbox, bounds);
    let caches = setting
        .cache
        .clone()
        .map(|cache| (cache, 0, BLOCKS * BLOCK));
    let caches: Vec<_> = caches.into_iter().collect();
    let with_caches = event_loop.and_then(|event_loop| event_loop.with_caches(&caches));
    let mut event_loop = with_caches.expect("a loop");
    let ended = event_loop.run();
    // Pages and flushes that were under way when the power went have failed, and the service says so.
    let may_lose = world.borrow().counts.cuts > 0;
    assert!(ended.is_ok() || may_lose, "the service ends with {ended:?}");
    assert_eq!(event_loop.holds(), Holds::default(), "something is left");
    drop(event_loop);
    let world = world.borrow();
    world.assert_over();
    Report {
        nanos: nanos.load(Ordering::Relaxed),
        counts: world.counts,
    }
}

/// The engine and the back end of a setting.
fn drive(setting: &Setting, image: &Path, seed: u64) -> (Engine, Box<dyn BackEnd>) {
    let shipped = |name| {
        let entry = catalog::find(name).expect("it is shipped");
        Some(entry.profile().expect("a profile"))
    };
    let truth = match setting.medium {
        Medium::File => None,
        Medium::Drive => shipped("dec-rz26"),
        Medium::CachingDrive => shipped("seagate-cheetah-9lp"),
    };
    let blocks = match &truth {
        Some(truth) => truth.geometry.sectors().0,
        None => BLOCKS,
    };
    let featureless = server::featureless::profile("a-test", blocks, BLOCK as u32);
    let belief = match (setting.belief, &truth) {
        (Belief::True | Belief::Wrong, Some(truth)) => truth.clone(),
        _ => featureless.expect("a profile"),
    };
    let open = Image::open_or_make(image, BLOCK as u32, blocks).expect("an image");
    let back_end: Box<dyn BackEnd> = match truth {
        None => {
            drop(open);
            Box::new(Image::open(image, BLOCK as u32, Caching::Cached).expect("an image"))
        }
        Some(truth) => {
            let drive = VirtualDrive::imperfect(Arc::new(truth), faults(setting), seed);
            Box::new(Emulated::new(drive, open).with_dice(seed))
        }
    };
    (engine(setting, belief), back_end)
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

fn engine(setting: &Setting, belief: Profile) -> Engine {
    let policy = find(setting.policy).expect("a policy");
    let limits = Limits::suited_to(policy, &belief);
    let engine = Engine::new(Arc::new(belief), &|| policy.make(), limits);
    match setting.background {
        true => engine.with_background(Rules::default()),
        false => engine,
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
