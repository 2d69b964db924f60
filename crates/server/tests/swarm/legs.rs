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
