//! Whatever the policy and the drive do: what is read, and what is on the drive in the end, is what
//! it would be first come, first served; barriers hold; every request ends once.
//!
//! A block's content is the number of the request that wrote it last.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::{
    Action, Class, Command, Direction, Duration, Extent, Instant, Lba, Outcome, Request, RequestId,
    Sectors, Status, Switch,
};
use drive::invented;
use engine::{Engine, Limits};
use proptest::prelude::*;
use scheduler::Preemption;
use scheduler::ordering::{Grace, Phases};
use scheduler::preemption::{Aside, Landing, LastChunk, Split, SplitCost, When};

use crate::hostile;

/// So few blocks that most requests overlap others.
const BLOCKS: u64 = 60;

/// What a client does.
#[derive(Clone, Debug)]
enum Act {
    Submit(Direction, u64, u64, Class),
    Barrier,
    /// Of the request that came so many before, the part that begins there.
    Upgrade(u64, u64, u64, Class),
    Abort(u64),
}

/// A command at the drive, when it will end and how.
#[derive(Clone, Copy, Debug)]
struct Serving {
    command: Command,
    /// Whose blocks; nobody's of what is read ahead or on the way.
    request: Option<u64>,
    due: Instant,
    status: Status,
}

/// What is known of a request.
#[derive(Clone, Copy, Debug)]
struct Known {
    direction: Direction,
    extent: Extent,
    /// How many barriers were placed before it.
    barriers: u64,
    status: Option<Status>,
    is_aborted: bool,
}

/// A drive that ends what it has in any order, a client, and what both have seen.
struct Trial {
    engine: Engine,
    /// The first of the blocks.
    base: u64,
    now: Instant,
    dice: u64,
    serving: Vec<Serving>,
    requests: Vec<Known>,
    barriers: u64,
    contents: Vec<u64>,
    /// Request, direction and blocks of the commands that were done.
    done: Vec<(u64, Direction, Extent)>,
    /// By request and block, what was read.
    read: BTreeMap<(u64, u64), u64>,
}

impl Trial {
    fn new(engine: Engine, base: u64, dice: u64) -> Self {
        Trial {
            engine,
            base,
            now: Instant::ZERO,
            dice,
            serving: Vec::new(),
            requests: Vec::new(),
            barriers: 0,
            contents: vec![0; BLOCKS as usize],
            done: Vec::new(),
            read: BTreeMap::new(),
        }
    }

    /// Knuth, MMIX.
    fn throw(&mut self, sides: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    fn act(&mut self, act: &Act) {
        let newest = self.requests.len() as u64;
        match *act {
            Act::Barrier if !self.engine.has_barriers() => {}
            Act::Barrier => {
                self.engine.barrier(self.now);
                self.barriers += 1;
            }
            Act::Submit(direction, start, length, class) => {
                let extent = blocks(self.base + start, length);
                let request = Request {
                    id: RequestId(newest),
                    direction,
                    extent,
                    class,
                    durability: block::Durability::Volatile,
                    owner: block::Owner::NOBODY,
                };
                if self.engine.submit(self.now, request).is_ok() {
                    self.requests.push(Known {
                        direction,
                        extent,
                        barriers: self.barriers,
                        status: None,
                        is_aborted: false,
                    });
                }
            }
            Act::Upgrade(before, start, length, class) => {
                if let Some(id) = newest.checked_sub(1 + before) {
                    let part = blocks(self.base + start, length);
                    // Whether it still waits is a matter of luck.
                    let _ = self.engine.upgrade(self.now, RequestId(id), part, class);
                }
            }
            Act::Abort(before) => {
                if let Some(id) = newest.checked_sub(1 + before) {
                    let aborted = self.engine.abort(self.now, RequestId(id)).is_ok();
                    self.requests[id as usize].is_aborted |= aborted;
                }
            }
        }
    }

    /// Everything that happens now.
    fn instant(&mut self) {
        while let Some(place) = self.serving.iter().position(|s| s.due <= self.now) {
            let ended = self.serving.swap_remove(place);
            self.end(ended);
        }
        while let Some(finished) = self.engine.poll_finished() {
            let known = &mut self.requests[finished.request.id.0 as usize];
            assert_eq!(known.status, None, "{finished:?} ended twice");
            assert!(known.is_aborted || finished.status != Status::Aborted);
            assert!(finished.waited_order <= finished.waited);
            known.status = Some(finished.status);
        }
        while let Some(command) = self.engine.poll(self.now) {
            self.begin(command);
        }
        let wakeup = self.engine.next_wakeup();
        assert!(wakeup.is_none_or(|then| then > self.now), "a stale wakeup");
    }

    fn begin(&mut self, command: Command) {
        let request = self.engine.request_of(command.id);
        let request = request.map(|request| request.id.0);
        let (direction, _) = parts(command);
        if let (Direction::Write, Some(request)) = (direction, request) {
            let barriers = self.requests[request as usize].barriers;
            let early = self.requests.iter().find(|other| {
                other.direction == Direction::Write
                    && other.barriers < barriers
                    && other.status.is_none()
            });
            assert!(early.is_none(), "{request} passed a barrier: {early:?}");
        }
        let due = self.now + Duration::from_micros(500 + self.throw(9_000));
        let status = match self.throw(10) {
            0 => Status::TimedOut,
            1 if self.throw(3) == 0 => Status::MediumError { at: Lba(0) },
            _ => Status::Good,
        };
        self.serving.push(Serving {
            command,
            request,
            due,
            status,
        });
        let most = self.engine.limits().commands_at_drive * self.engine.arms().count();
        assert!(self.serving.len() <= most);
    }

    fn end(&mut self, ended: Serving) {
        let (direction, extent) = parts(ended.command);
        if let (Status::Good, Some(request)) = (ended.status, ended.request) {
            self.done.push((request, direction, extent));
            for block in extent.start().0 - self.base..extent.end().0 - self.base {
                let content = &mut self.contents[block as usize];
                match direction {
                    Direction::Write => *content = 1 + request,
                    Direction::Read => {
                        let before = self.read.insert((request, block), *content);
                        assert_eq!(before, None, "{ended:?} was read twice");
                    }
                }
            }
        }
        let outcome = Outcome {
            id: ended.command.id,
            at: self.now,
            status: ended.status,
            account: None,
        };
        self.engine.complete(self.now, outcome.id, outcome);
    }

    /// Lets things happen until `until`, or until nothing does any more.
    fn pass(&mut self, until: Option<Instant>) {
        loop {
            self.instant();
            let drive = self.serving.iter().map(|serving| serving.due);
            let next = drive.chain(self.engine.next_wakeup()).min();
            match (next, until) {
                (Some(next), until) if until.is_none_or(|until| next <= until) => self.now = next,
                (_, Some(until)) => return self.now = self.now.max(until),
                (_, None) => return,
            }
        }
    }

    /// Everything has ended as it would have, first come, first served.
    fn check(mut self) {
        assert_eq!(self.engine.held(), 0, "{:?}", self.requests);
        assert_eq!(self.engine.waiting() + self.engine.at_drive(), 0);
        self.done.sort_by_key(|&(request, ..)| request);
        let mut contents = vec![0; BLOCKS as usize];
        let mut read = BTreeMap::new();
        for &(request, direction, extent) in &self.done {
            for block in extent.start().0 - self.base..extent.end().0 - self.base {
                match direction {
                    Direction::Write => contents[block as usize] = 1 + request,
                    Direction::Read => {
                        read.insert((request, block), contents[block as usize]);
                    }
                }
            }
        }
        assert_eq!(self.read, read, "read what a FIFO would not");
        assert_eq!(self.contents, contents);
        for (number, known) in self.requests.iter().enumerate() {
            let of = self.done.iter().filter(|done| done.0 == number as u64);
            let blocks: u64 = of.map(|(.., extent)| extent.length().0).sum();
            match known.status {
                Some(Status::Good) => assert_eq!(blocks, known.extent.length().0, "{number}"),
                Some(_) => assert!(blocks < known.extent.length().0, "{number}"),
                None => panic!("{number} has not ended"),
            }
        }
    }
}

fn parts(command: Command) -> (Direction, Extent) {
    match command.action {
        Action::Read { extent, .. } => (Direction::Read, extent),
        Action::Write { extent, .. } => (Direction::Write, extent),
        // A stop of the arm, which is nobody's.
        Action::Seek { to } => (Direction::Read, Extent::block(to)),
        other => panic!("{other:?} is not what an engine says"),
    }
}

fn blocks(start: u64, length: u64) -> Extent {
    Extent::new(Lba(start), Sectors(length)).expect("a valid extent")
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![
        1 => Just(Class::RealTime { deadline: Instant::ZERO }),
        4 => (0..7u8).prop_map(Class::BestEffort),
        1 => Just(Class::Background),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let direction = prop_oneof![Just(Direction::Read), Just(Direction::Write)];
    prop_oneof![
        12 => (direction, 0..BLOCKS - 20, 1..20u64, class())
            .prop_map(|(direction, start, length, class)| Act::Submit(direction, start, length, class)),
        1 => Just(Act::Barrier),
        3 => (0..12u64, 0..BLOCKS, 1..12u64, class())
            .prop_map(|(before, start, length, class)| Act::Upgrade(before, start, length, class)),
        1 => (0..12u64).prop_map(Act::Abort),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let alternate = Phases::Alternate {
        read: Duration::from_millis(40),
        write: Duration::from_millis(10),
    };
    let phases = prop_oneof![Just(Phases::Mixed), Just(alternate)];
    let grace = prop_oneof![Just(None), Just(Some(Grace::default()))];
    let numbers = (4..40usize, 1..7usize, 1..60u64, phases, grace);
    numbers.prop_map(|(requests, commands, patience, phases, grace)| Limits {
        requests,
        reserved_for_real_time: requests / 8,
        commands_at_drive: commands,
        patience: Duration::from_millis(patience),
        phases,
        grace,
    })
}

fn rules() -> impl Strategy<Value = Preemption> {
    let last_chunk = prop_oneof![
        Just(LastChunk::Buffered),
        Just(LastChunk::Forced),
        (0..4u32).prop_map(LastChunk::Every),
    ];
    let landing = prop_oneof![
        Just(Landing::Learned),
        (0..3_000u64).prop_map(|micros| Landing::Fixed(Duration::from_micros(micros))),
    ];
    let cost = prop_oneof![Just(SplitCost::Hidden), Just(SplitCost::Revolution)];
    let split = (1..30u32, cost).prop_map(|(longest, cost)| Split { longest, cost });
    let switch = || prop_oneof![Just(Switch::Off), Just(Switch::On)];
    let aside = (switch(), 0..1001u16).prop_map(|(fill, most_permille)| Aside {
        fill,
        most_permille,
    });
    let when = prop_oneof![Just(When::Always), Just(When::Worth)];
    let parts = (
        prop::option::of(1..8u64),
        prop::option::of(landing),
        prop::option::of(split),
    );
    (parts, switch(), last_chunk, prop::option::of(aside), when).prop_map(
        |((chunk, just_in_time, split), free_prefetch, last_chunk, aside, when)| Preemption {
            chunk: chunk.map(Sectors),
            just_in_time,
            split,
            free_prefetch,
            last_chunk,
            aside,
            when,
        },
    )
}

/// The invented drive, with a buffer or without.
fn belief(has_buffer: bool, actuators: u8) -> Arc<drive::Profile> {
    let mut belief = invented::profile();
    belief.actuators = actuators;
    if has_buffer {
        belief.buffer.segments = 4;
        belief.buffer.segment_blocks = 16;
        belief.buffer.look_ahead = drive::firmware::LookAhead::Track;
        belief.buffer.write_back = drive::firmware::WriteBack::All;
    }
    Arc::new(belief)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_the_policy_contents_are_those_of_a_fifo(
        policy in 0..hostile::COUNT,
        limits in limits(),
        dice in any::<u64>(),
        rules in prop::option::of(rules()),
        has_buffer in any::<bool>(),
        in_gaps in any::<bool>(),
        actuators in 1..3u8,
        acts in prop::collection::vec((0..4_000u64, act()), 0..150),
    ) {
        let belief = belief(has_buffer, actuators);
        // On both sides of the border, if there is one.
        let base = (belief.share_end(0) - BLOCKS / 2) * u64::from(actuators - 1);
        let mut engine = Engine::new(Arc::clone(&belief), &|| hostile::make(policy), limits);
        if let Some(rules) = rules {
            engine = engine.with_preemption(rules);
        }
        if in_gaps && limits.commands_at_drive > 1 {
            engine = engine.with_background(engine::Rules::default());
        }
        let mut trial = Trial::new(engine, base, dice);
        for (gap, act) in &acts {
            trial.act(act);
            // Several acts may fall into one instant.
            if gap % 3 > 0 {
                let until = trial.now + Duration::from_micros(*gap);
                trial.pass(Some(until));
            }
        }
        trial.pass(None);
        trial.check();
    }
}
