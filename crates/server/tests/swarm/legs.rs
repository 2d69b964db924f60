//! Two legs of a mirror, of which one may break.

#![allow(unsafe_code, reason = "a back end is given memory by address")]

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use block::operation::OperationError;
use block::{Command, Instant, Switch};
use drive::Lost;
use server::arena::Memory;
use server::disk::back_end::mirror::{Leg, Mirror};
use server::disk::back_end::{BackEnd, Ended, Punch, Shape, Span};
use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;
use server::mirror::assembly::{FoundLeg, assemble};
use server::mirror::superblock::LegRecord;
use server::mirror::{DATA_OFFSET, storage};
use server::ring::Ring;

use crate::plan::{Dice, PLACE, Setting};
use crate::run::{BLOCK, BLOCKS};

/// Which leg fails all its commands: one more than its number, or 0.
pub type Broken = Arc<AtomicUsize>;

/// Breaks a leg, if the mirror can do without it.
pub fn break_leg(leg: usize, broken: &Broken, mailbox: &Mailbox) {
    let broken = Arc::clone(broken);
    let posted = mailbox.call(move |event_loop: &mut EventLoop| {
        let mirror = event_loop.picture().mirror.expect("a mirror");
        let in_sync = LegRecord::InSync.name();
        if mirror.legs.iter().all(|leg| leg.state == in_sync) {
            broken.store(leg + 1, Ordering::Relaxed);
        }
    });
    posted.expect("it runs");
}

/// A leg that may break.
struct Breakable {
    inner: Box<dyn BackEnd>,
    leg: usize,
    broken: Broken,
    failed: VecDeque<Ended>,
}

impl BackEnd for Breakable {
    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        if self.broken.load(Ordering::Relaxed) == self.leg + 1 {
            self.failed.push_back(Ended {
                id: command.id,
                result: Err(OperationError::Io),
                account: None,
            });
            return;
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.start(now, command, memory, ring) };
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.inner.ring_ended(now, key, result, ring);
    }

    fn advance(&mut self, now: Instant, ring: &mut Ring) {
        self.inner.advance(now, ring);
    }

    fn is_busy(&self) -> bool {
        !self.failed.is_empty() || self.inner.is_busy()
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        self.failed.pop_front().or_else(|| self.inner.poll(now))
    }

    fn depth(&self) -> u32 {
        self.inner.depth()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.inner.next_wakeup()
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.inner.punch(key, what, span, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.inner.poll_punched()
    }

    fn power_cut(&mut self, now: Instant, ring: &mut Ring) -> Option<Lost> {
        self.inner.power_cut(now, ring)
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
        broken.store(0, Ordering::Relaxed);
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
            back_end: Some(Box::new(Breakable {
                inner: leg(&self.0[number]),
                leg: number,
                broken: Arc::clone(broken),
                failed: VecDeque::new(),
            })),
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
