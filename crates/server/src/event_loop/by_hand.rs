//! An event loop in the hands of a test: no sockets, virtual time, and a drive whose commands end when and as
//! the test says.
//!
//! ```text
//!   post(...) --> [ loop's work ] --command--> [ drive ] --- end(place, result) --.
//!      ^                 ^                                                        |
//!      '--- answers -----'<-------------------------------------------------------'
//! ```

#![allow(
    unsafe_code,
    reason = "the drive copies to and from the memory of commands, as back ends do"
)]

use std::cell::{Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time;

use block::operation::{Ask, OperationError};
use block::{Action, Class, Command, Durability, Instant, Owner, Request};
use engine::{Engine, Limits};
use scheduler::policy::find;

use super::EventLoop;
use super::mailbox::Mailbox;
use crate::arena::Memory;
use crate::clients::Bounds;
use crate::clock::{Clock, TimeScale};
use crate::disk::Disk;
use crate::disk::back_end::{BackEnd, Ended, Holds, Punch, Run, Shape, Span};
use crate::featureless;
use crate::ring::Ring;
use crate::volume::posted::{Contents, Posted};
use crate::volume::{Export, Volumes};

/// Bytes of a block of the drive.
pub(crate) const BLOCK: u64 = 512;

/// The end of a posted operation, with the bytes of a read.
pub(crate) type Answered = Result<Vec<u8>, OperationError>;

/// An operation that a test has posted.
pub(crate) struct Answer(Arc<Mutex<Option<Answered>>>);

impl Answer {
    /// Takes the answer, if there is one.
    pub(crate) fn take(&self) -> Option<Answered> {
        self.0.lock().expect("no test has panicked").take()
    }
}

/// What a test chooses of a loop.
pub(crate) struct Setup {
    pub(crate) exports: Vec<Export>,
    pub(crate) shape: Shape,
    pub(crate) bounds: Bounds,
    /// The requests that the engine takes at a time.
    pub(crate) requests: Option<usize>,
    /// The commands at the drive at a time.
    pub(crate) commands: usize,
    /// The profile, or none for a featureless drive.
    pub(crate) profile: Option<Arc<drive::Profile>>,
    pub(crate) policy: &'static str,
    pub(crate) adapt: fn(Engine) -> Engine,
}

impl Setup {
    /// One export `v0` with the whole drive, of so many blocks.
    pub(crate) fn of_blocks(blocks: u64) -> Self {
        Setup {
            exports: vec![export("v0", 0, blocks * BLOCK)],
            shape: Shape {
                block_bytes: BLOCK as u32,
                blocks,
                trims: true,
                zeroes_fast: true,
                rotational: false,
            },
            bounds: Bounds {
                memory: 8 << 20,
                longest: 1 << 20,
                ..Bounds::default()
            },
            requests: None,
            // Several, so that they end in any order.
            commands: 8,
            profile: None,
            policy: "c-look",
            adapt: |engine| engine,
        }
    }
}

/// An export of ordinary class.
pub(crate) fn export(name: &str, offset: u64, length: u64) -> Export {
    Export {
        name: name.to_owned(),
        offset,
        length,
        class: Class::default(),
    }
}

/// A loop and its drive.
pub(crate) struct ByHand {
    pub(crate) event_loop: EventLoop,
    drive: Rc<RefCell<Drive>>,
}

impl ByHand {
    pub(crate) fn new(setup: Setup) -> Self {
        let shape = setup.shape;
        let drive = Rc::new(RefCell::new(Drive::new(shape)));
        let belief = setup.profile.unwrap_or_else(|| {
            let profile = featureless::profile("by-hand", shape.blocks, shape.block_bytes);
            Arc::new(profile.expect("a profile"))
        });
        let policy = find(setup.policy).expect("a policy");
        let mut limits = Limits::suited_to(policy, &belief);
        limits.commands_at_drive = setup.commands;
        if let Some(requests) = setup.requests {
            limits.requests = requests;
            limits.reserved_for_real_time = 0;
        }
        let engine = (setup.adapt)(Engine::new(belief, &|| policy.make(), limits));
        let event_loop = EventLoop::over(
            Clock::start(TimeScale::REAL),
            Ring::new,
            engine,
            Box::new(Shared(Rc::clone(&drive))),
            setup.exports,
            Mailbox::new().expect("a mailbox"),
            setup.bounds,
        );
        let mut event_loop = event_loop.expect("a loop");
        event_loop.disk.now = Instant::ZERO;
        ByHand { event_loop, drive }
    }

    /// The volumes and the disk.
    pub(crate) fn parts(&mut self) -> (&mut Volumes, &mut Disk) {
        let EventLoop { volumes, disk, .. } = &mut self.event_loop;
        (volumes, disk)
    }

    pub(crate) fn volumes(&mut self) -> &mut Volumes {
        &mut self.event_loop.volumes
    }

    pub(crate) fn disk(&mut self) -> &mut Disk {
        &mut self.event_loop.disk
    }

    /// Posts an operation on an export. Contents are for writes.
    pub(crate) fn post(
        &mut self,
        export: usize,
        ask: Ask,
        (offset, length): (u64, u64),
        contents: Vec<u8>,
    ) -> Answer {
        let contents = Contents::Owned(contents);
        self.post_with(export, ask, (offset, length), contents)
    }

    /// The same with contents of any kind.
    pub(crate) fn post_with(
        &mut self,
        export: usize,
        ask: Ask,
        (offset, length): (u64, u64),
        contents: Contents,
    ) -> Answer {
        let answered = Arc::new(Mutex::new(None));
        let told = Arc::clone(&answered);
        let posted = Posted {
            export,
            ask,
            offset,
            length,
            contents,
            owner: Owner::NOBODY,
            reply: Box::new(move |result| {
                let before = (told.lock().expect("no test has panicked"))
                    .replace(result.map(<[u8]>::to_vec));
                assert!(before.is_none(), "an operation is answered once");
            }),
        };
        let class = self.event_loop.volumes.classify(export, (offset, length));
        self.event_loop.volumes.posted.push(posted, class);
        self.work();
        Answer(answered)
    }

    /// The loop does everything that needs no wait.
    pub(crate) fn work(&mut self) {
        self.event_loop.work();
    }

    /// The commands at the drive, the oldest first.
    pub(crate) fn commands(&self) -> Vec<Action> {
        let drive = self.drive.borrow();
        let actions = drive.in_flight.iter().map(|one| one.command.action);
        actions.collect()
    }

    /// The requests of the commands at the drive.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let drive = self.drive.borrow();
        let engine = &self.event_loop.disk.engine;
        let requests = (drive.in_flight.iter()).filter_map(|one| engine.request_of(one.command.id));
        requests.collect()
    }

    /// Ends the command at a place of the list. A failed one has moved nothing.
    pub(crate) fn end(&mut self, place: usize, result: Result<(), OperationError>) {
        self.drive.borrow_mut().end(place, result);
        self.work();
    }

    /// The number of trims and zeroes at the drive.
    pub(crate) fn punches(&self) -> usize {
        self.drive.borrow().punching.len()
    }

    /// Ends the trim or zeroes at a place of their list.
    pub(crate) fn end_punch(&mut self, place: usize, result: Result<(), OperationError>) {
        self.drive.borrow_mut().end_punch(place, result);
        self.work();
    }

    /// Ends everything that is at the drive, and what follows from it.
    pub(crate) fn run(&mut self) {
        loop {
            if !self.commands().is_empty() {
                self.end(0, Ok(()));
            } else if self.punches() > 0 {
                self.end_punch(0, Ok(()));
            } else {
                return;
            }
        }
    }

    /// Advances the time to the next wakeup, if there is one before `until`, or else to `until`.
    pub(crate) fn pass(&mut self, until: Instant) {
        let EventLoop { volumes, disk, .. } = &mut self.event_loop;
        let wakeups = [disk.next_wakeup(), volumes.caches.next_wakeup(disk.now)];
        let next = wakeups.into_iter().flatten().min();
        disk.now = next.unwrap_or(until).min(until).max(disk.now);
        self.work();
    }

    /// Takes answers of other threads until `is_done`. They come within ten seconds, or never.
    pub(crate) fn listen(&mut self, is_done: impl Fn(&mut ByHand) -> bool) {
        let until = time::Instant::now() + time::Duration::from_secs(10);
        while !is_done(self) {
            assert!(time::Instant::now() < until, "a thread does not answer");
            let ring = &mut self.event_loop.disk.ring;
            let waited = ring.submit_and_wait(time::Duration::ZERO, Some(until));
            waited.expect("a ring");
            while let Some((ticket, result)) = self.event_loop.disk.ring.next_end() {
                self.event_loop.ended(ticket, result);
            }
            self.work();
        }
    }

    /// The bytes of the drive.
    pub(crate) fn bytes(&self) -> RefMut<'_, [u8]> {
        RefMut::map(self.drive.borrow_mut(), |drive| drive.bytes.as_mut_slice())
    }

    /// The bytes that outlive the power: those of durable writes, and all when a flush has ended.
    pub(crate) fn medium(&self) -> Ref<'_, [u8]> {
        Ref::map(self.drive.borrow(), |drive| drive.medium.as_slice())
    }

    /// Changes what a drive says of holes.
    pub(crate) fn set_runs(&mut self, runs: Vec<Run>) {
        self.drive.borrow_mut().runs = runs;
    }
}

/// A drive that executes a command when a test ends it.
struct Drive {
    shape: Shape,
    bytes: Vec<u8>,
    medium: Vec<u8>,
    in_flight: Vec<InFlight>,
    ended: VecDeque<Ended>,
    punching: Vec<(u32, Span)>,
    punched: VecDeque<(u32, Result<(), OperationError>)>,
    runs: Vec<Run>,
}

struct InFlight {
    command: Command,
    memory: Vec<Memory>,
}

impl Drive {
    fn new(shape: Shape) -> Self {
        Drive {
            shape,
            bytes: vec![0; shape.bytes() as usize],
            medium: vec![0; shape.bytes() as usize],
            in_flight: Vec::new(),
            ended: VecDeque::new(),
            punching: Vec::new(),
            punched: VecDeque::new(),
            runs: Vec::new(),
        }
    }

    fn end(&mut self, place: usize, result: Result<(), OperationError>) {
        let InFlight { command, memory } = self.in_flight.remove(place);
        if result.is_ok() {
            self.transfer(&command, &memory);
        }
        self.ended.push_back(Ended {
            id: command.id,
            result,
            account: None,
        });
    }

    fn transfer(&mut self, command: &Command, memory: &[Memory]) {
        if command.action == Action::Flush {
            self.medium.copy_from_slice(&self.bytes);
        }
        let (Action::Read { extent, .. } | Action::Write { extent, .. }) = command.action else {
            return;
        };
        let start = extent.start().0 as usize * BLOCK as usize;
        let mut at = start;
        for piece in memory {
            let here = &mut self.bytes[at..at + piece.length];
            // SAFETY: memory of a command in flight, which is the drive's until its end.
            let bytes = unsafe { piece.bytes_mut() };
            match command.action {
                Action::Write { .. } => here.copy_from_slice(bytes),
                _ => bytes.copy_from_slice(here),
            }
            at += piece.length;
        }
        assert_eq!(at as u64, extent.end().0 * BLOCK, "memory for all blocks");
        if let Action::Write {
            durability: Durability::Durable,
            ..
        } = command.action
        {
            self.medium[start..at].copy_from_slice(&self.bytes[start..at]);
        }
    }

    fn end_punch(&mut self, place: usize, result: Result<(), OperationError>) {
        let (key, Span { offset, length }) = self.punching.remove(place);
        if result.is_ok() {
            self.bytes[offset as usize..(offset + length) as usize].fill(0);
        }
        self.punched.push_back((key, result));
    }
}

/// The loop's end of the drive.
struct Shared(Rc<RefCell<Drive>>);

impl BackEnd for Shared {
    fn shape(&self) -> Shape {
        self.0.borrow().shape
    }

    unsafe fn start(&mut self, _: Instant, command: &Command, memory: &[Memory], _: &mut Ring) {
        self.0.borrow_mut().in_flight.push(InFlight {
            command: *command,
            memory: memory.to_vec(),
        });
    }

    fn ring_ended(&mut self, _: Instant, _: u32, _: i32, _: &mut Ring) {}

    fn poll(&mut self, _: Instant) -> Option<Ended> {
        self.0.borrow_mut().ended.pop_front()
    }

    fn punch(&mut self, key: u32, _: Punch, span: Span, _: &mut Ring) {
        self.0.borrow_mut().punching.push((key, span));
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.0.borrow_mut().punched.pop_front()
    }

    fn runs(&mut self, span: Span) -> Vec<Run> {
        let runs = self.0.borrow().runs.clone();
        match runs.is_empty() {
            true => vec![Run {
                length: span.length,
                holds: Holds::Bytes,
            }],
            false => runs,
        }
    }
}
