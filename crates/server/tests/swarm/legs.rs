//! Two legs of a mirror, of which one may break.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::Switch;
use server::disk::back_end::BackEnd;
use server::disk::back_end::mirror::{Leg, Mirror};
use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;
use server::mirror::assembly::{FoundLeg, assemble};
use server::mirror::superblock::LegRecord;
use server::mirror::{DATA_OFFSET, storage};

use crate::fickle::{Fails, Fickle, Mood};
use crate::plan::{Dice, PLACE, Setting};
use crate::run::{BLOCK, BLOCKS};
use crate::world::{Tell, Told, tell};

/// What each leg fails.
pub type Broken = [Mood; 2];

/// Breaks a leg, if the mirror can do without it.
pub fn break_leg(leg: usize, broken: &Broken, mailbox: &Mailbox) {
    let [mood, other] = [leg, 1 - leg].map(|leg| Arc::clone(&broken[leg]));
    let posted = mailbox.call(move |event_loop: &mut EventLoop| {
        let mirror = event_loop.picture().mirror.expect("a mirror");
        let in_sync = LegRecord::InSync.name();
        if mirror.legs.iter().all(|leg| leg.state == in_sync) {
            // The other one does, even if it failed something that nobody has noticed yet.
            *other.lock().expect("a mood") = Fails::Nothing;
            *mood.lock().expect("a mood") = Fails::Everything;
        }
    });
    posted.expect("it runs");
}

/// How long the end of a run waits for a leg that is filled, in nanoseconds. A choice: far more than two legs of 2 MiB
/// take beside nothing.
const PATIENCE_NS: u64 = 30_000_000_000;

/// The time between two looks at the legs, in nanoseconds. A choice.
const LOOK_NS: u64 = 100_000_000;

/// The end of a run waits until both legs have all data, if they are to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refill {
    /// When that begins, and when to look next.
    begun: Option<u64>,
    look: Option<u64>,
}

impl Refill {
    pub fn begin(now: u64) -> Refill {
        Refill {
            begun: Some(now),
            look: Some(now),
        }
    }

    /// When to look next.
    pub fn next_time(&self) -> Option<u64> {
        self.look
    }

    /// Looks, if it is time. The answer is whether it was.
    pub fn look(&mut self, now: u64, (mailbox, told): (&Mailbox, &Tell)) -> bool {
        if self.look.is_none_or(|look| now < look) {
            return false;
        }
        self.look = None;
        let told = Arc::clone(told);
        let posted = mailbox.call(move |event_loop: &mut EventLoop| {
            let legs = event_loop.picture().mirror.expect("a mirror").legs;
            let is = |record: LegRecord| legs.iter().any(|leg| leg.state == record.name());
            let is_filled = is(LegRecord::Filling) || is(LegRecord::Doubtful);
            tell(&told, Told::Filled(is_filled));
        });
        posted.expect("it runs");
        true
    }

    /// What was seen: whether a leg is being filled. The answer is whether the wait is over.
    pub fn seen(&mut self, now: u64, is_filled: bool) -> bool {
        let is_over = !is_filled || self.begun.is_none_or(|begun| now > begun + PATIENCE_NS);
        self.look = (!is_over).then_some(now + LOOK_NS);
        is_over
    }
}

/// The images of a mirror's legs, which outlive a service.
pub struct Images([PathBuf; 2]);

impl Images {
    /// New legs of so many sectors.
    pub fn create(folder: &Path, setting: &Setting, sectors: u64) -> Images {
        let paths = ["one", "other"].map(|name| folder.join(name));
        for path in &paths {
            let file = File::create(path).expect("a leg");
            file.set_len(sectors * u64::from(setting.sector))
                .expect("a leg");
        }
        let lengths = [setting.leg_bytes(); 2];
        storage::create([&paths[0], &paths[1]], lengths).expect("a mirror");
        Images(paths)
    }

    fn paths(&self) -> [&Path; 2] {
        [&self.0[0], &self.0[1]]
    }

    /// The states by the newer superblock.
    fn states(&self) -> [LegRecord; 2] {
        let [one, other] = self.paths().map(|path| match storage::look(path) {
            FoundLeg::Whole(whole) => whole.0,
            FoundLeg::Missing(why) => panic!("{why}"),
        });
        match one.events >= other.events {
            true => one.states,
            false => other.states,
        }
    }

    /// The mirror of these legs after a start. A leg that is out is attached, or not.
    pub fn mirror(
        &self,
        leg: impl Fn(&Path) -> Box<dyn BackEnd>,
        broken: &Broken,
        dice: &mut Dice,
    ) -> Box<dyn BackEnd> {
        for mood in broken {
            *mood.lock().expect("a mood") = Fails::Nothing;
        }
        let out = self
            .states()
            .iter()
            .position(|&state| state == LegRecord::Out);
        if let Some(out) = out.filter(|_| dice.percent(70)) {
            storage::attach(self.paths(), out).expect("a leg that is out");
        }
        let assembly = assemble(self.paths().map(storage::look), Switch::Off);
        let assembly = assembly.unwrap_or_else(|why| panic!("the mirror does not begin: {why}"));
        storage::begin(self.paths(), &assembly).expect("legs");
        let legs = [0, 1].map(|number| Leg {
            back_end: Some(Box::new(Fickle::new(
                leg(&self.0[number]),
                Arc::clone(&broken[number]),
                Arc::default(),
            ))),
            name: format!("leg {number}"),
        });
        Box::new(Mirror::new(legs, assembly).expect("memory"))
    }

    /// After a stop without failures legs that are in sync have the same data.
    pub fn assert_alike(&self) {
        if self.states() != [LegRecord::InSync; 2] {
            return;
        }
        let data = self.paths().map(|path| {
            let mut bytes = vec![0; (BLOCKS * BLOCK) as usize];
            let file = File::open(path).expect("a leg");
            let origin = file.read_exact_at(&mut bytes, DATA_OFFSET + PLACE);
            origin.expect("data");
            bytes
        });
        let blocks = data[0]
            .chunks(BLOCK as usize)
            .zip(data[1].chunks(BLOCK as usize));
        let differs = blocks.into_iter().position(|(one, other)| one != other);
        assert_eq!(differs, None, "a block that differs between the legs");
    }
}
