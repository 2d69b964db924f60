//! Random operations whose commands end in any order and in any way, against a naive model.

mod beside_streams;

use block::operation::{Ask, OperationError, Space, ZeroingPace};
use block::{Class, Durability, Duration};
use proptest::prelude::*;

use super::model::{Change, Model, UNIT};
use crate::cache_setting::{CacheSetting, PAGE, Readmore, Writes};
use crate::event_loop::by_hand::{Answer, Answered, BLOCK, ByHand, Setup, export};

/// Bytes of a volume. There are two, and the first does not begin with the drive.
const BYTES: u64 = 16 * PAGE;
const UNITS: u64 = BYTES / UNIT;
const OFFSET: u64 = 2 * PAGE;

#[derive(Clone, Debug)]
enum Step {
    Submit {
        export: usize,
        ask: Ask,
        first: u64,
        count: u64,
    },
    /// One of the commands at the drive ends, or all.
    End(usize, Result<(), OperationError>),
    Punched(usize, Result<(), OperationError>),
    Run,
    Pass(u64),
}

/// What serves the operations.
#[derive(Clone, Debug)]
struct World {
    trims: bool,
    zeroes_fast: bool,
    /// The engine's requests.
    requests: usize,
    cache: Option<(u64, Writes)>,
}

fn ask() -> impl Strategy<Value = Ask> {
    let durability = prop_oneof![3 => Just(Durability::Volatile), 1 => Just(Durability::Durable)];
    let space = prop_oneof![Just(Space::MayBeFreed), Just(Space::Kept)];
    let pace = prop_oneof![3 => Just(ZeroingPace::Any), 1 => Just(ZeroingPace::Fast)];
    prop_oneof![
        8 => Just(Ask::Read),
        8 => durability.clone().prop_map(|durability| Ask::Write { durability }),
        3 => (durability.clone(), space, pace).prop_map(|(durability, space, pace)| Ask::Zero { durability, space, pace }),
        2 => durability.prop_map(|durability| Ask::Trim { durability }),
        2 => Just(Ask::Flush),
        1 => Just(Ask::Cache),
    ]
}

fn step(fails: bool) -> impl Strategy<Value = Step> {
    let place = prop_oneof![
        4 => (0..64u64, 0..24u64),
        1 => (0..UNITS, 0..UNITS),
        2 => (0..16u64, 1..6u64).prop_map(|(first, count)| (first * 4, count * 4)),
    ];
    let result = move || {
        prop::bool::weighted(if fails { 0.05 } else { 0.0 }).prop_map(|fails| match fails {
            true => Err(OperationError::NoSpace),
            false => Ok(()),
        })
    };
    prop_oneof![
        12 => (0..2usize, ask(), place).prop_map(|(export, ask, (first, count))| Step::Submit {
            export, ask, first, count: count.min(UNITS - first)
        }),
        12 => (any::<usize>(), result()).prop_map(|(which, result)| Step::End(which, result)),
        3 => (any::<usize>(), result()).prop_map(|(which, result)| Step::Punched(which, result)),
        1 => Just(Step::Run),
        1 => (0..700u64).prop_map(Step::Pass),
    ]
}

fn world() -> impl Strategy<Value = World> {
    let cache = prop_oneof![
        2 => Just(None),
        1 => (2..10u64).prop_map(|pages| Some((pages, Writes::Through))),
        2 => (2..10u64).prop_map(|pages| Some((pages, Writes::Back))),
    ];
    let requests = prop_oneof![Just(4usize), Just(64)];
    (any::<bool>(), any::<bool>(), requests, cache).prop_map(
        |(trims, zeroes_fast, requests, cache)| World {
            trims,
            zeroes_fast,
            requests,
            cache,
        },
    )
}

/// An operation that was submitted.
struct Pending {
    answer: Answer,
    export: usize,
    ask: Ask,
    first: u64,
    since: usize,
    change: Option<Change>,
    /// What a read may find, or the medium may have after a flush.
    possible: Vec<Vec<u8>>,
}

struct Run {
    by_hand: ByHand,
    world: World,
    models: [Model; 2],
    pending: Vec<Pending>,
    fill: u8,
}

pub(in crate::volume) fn setting(pages: u64, writes: Writes) -> CacheSetting {
    CacheSetting {
        bytes: pages * PAGE,
        replacement: "lru".to_owned(),
        prefetch: "none".to_owned(),
        coordinator: "none".to_owned(),
        readmore: Readmore::Ordinary,
        writes,
        ahead: Class::BestEffort(6),
    }
}

fn setup(world: &World) -> Setup {
    let mut setup = Setup::of_blocks((2 * BYTES + OFFSET) / BLOCK);
    setup.exports = vec![
        export("v0", OFFSET, BYTES),
        export("v1", OFFSET + BYTES, BYTES),
    ];
    setup.shape.trims = world.trims;
    setup.shape.zeroes_fast = world.zeroes_fast;
    setup.requests = Some(world.requests);
    setup
}

impl Run {
    fn new(world: World) -> Self {
        Run::over(setup(&world), world)
    }

    fn over(setup: Setup, world: World) -> Self {
        let mut by_hand = ByHand::new(setup);
        if let Some((pages, writes)) = world.cache {
            let caches = [(setting(pages, writes), OFFSET, BYTES)];
            let (volumes, disk) = by_hand.parts();
            let exports = &volumes.operations.exports;
            volumes.caches.add(disk, exports, &caches).expect("a cache");
        }
        Run {
            by_hand,
            world,
            models: [Model::new(UNITS), Model::new(UNITS)],
            pending: Vec::new(),
            fill: 0,
        }
    }

    fn take_step(&mut self, step: &Step) {
        match *step {
            Step::Submit {
                export,
                ask,
                first,
                count,
            } => self.submit(export, ask, first, count),
            Step::End(which, result) => {
                let commands = self.by_hand.commands();
                if !commands.is_empty() {
                    let place = which % commands.len();
                    // A failed write of pages is a loss, see `caching`.
                    let is_failable = self.world.cache.is_none();
                    self.by_hand
                        .end(place, result.or(if is_failable { result } else { Ok(()) }));
                }
            }
            Step::Punched(which, result) => {
                let count = self.by_hand.punches();
                if count > 0 {
                    self.by_hand.end_punch(which % count, result);
                }
            }
            Step::Run => self.by_hand.run(),
            Step::Pass(ms) => {
                let now = self.by_hand.disk().now;
                self.by_hand.pass(now + Duration::from_millis(ms));
            }
        }
        self.take_answers();
    }

    fn submit(&mut self, export: usize, ask: Ask, first: u64, count: u64) {
        let (first, count) = match ask {
            Ask::Flush => (0, 0),
            _ => (first, count),
        };
        let mut contents = Vec::new();
        let value = match ask {
            Ask::Write { .. } => {
                self.fill = self.fill % 250 + 1;
                contents = vec![self.fill; (count * UNIT) as usize];
                Some(self.fill)
            }
            Ask::Zero { .. } | Ask::Trim { .. } => Some(0),
            _ => None,
        };
        let model = &mut self.models[export];
        let change = value.map(|value| model.submit(first, count, value));
        if let Some(value) = value {
            let reads = self.pending.iter_mut().filter(|one| one.export == export);
            for read in reads {
                for (unit, possible) in (read.first..).zip(&mut read.possible) {
                    if (first..first + count).contains(&unit) {
                        possible.push(value);
                    }
                }
            }
        }
        let possible = match ask {
            Ask::Read => model.possible(first, count),
            Ask::Flush => model.on_medium(0, UNITS),
            _ => Vec::new(),
        };
        let since = model.now();
        let place = (first * UNIT, count * UNIT);
        let answer = self.by_hand.post(export, ask, place, contents);
        self.pending.push(Pending {
            answer,
            export,
            ask,
            first,
            since,
            change,
            possible,
        });
    }

    fn take_answers(&mut self) {
        let mut place = 0;
        while place < self.pending.len() {
            match self.pending[place].answer.take() {
                Some(answered) => {
                    let ended = self.pending.swap_remove(place);
                    self.ended(&ended, &answered);
                }
                None => place += 1,
            }
        }
    }

    fn ended(&mut self, ended: &Pending, answered: &Answered) {
        let model = &mut self.models[ended.export];
        let is_certain = answered.is_ok() && !matches!(ended.ask, Ask::Trim { .. });
        let is_refused = *answered == Err(OperationError::Unsupported);
        match ended.change {
            Some(change) if is_refused => model.forget(change),
            Some(change) => model.end(change, is_certain),
            None => (),
        }
        match (ended.ask, answered) {
            (Ask::Read, Ok(bytes)) => {
                assert_eq!(bytes.len(), ended.possible.len() * UNIT as usize);
                let units = bytes.chunks_exact(UNIT as usize).zip(&ended.possible);
                for (unit, (bytes, possible)) in (ended.first..).zip(units) {
                    let found = bytes[0];
                    let is_one = bytes.iter().all(|&byte| byte == found);
                    assert!(
                        is_one && possible.contains(&found),
                        "unit {unit} of {}: {found} (one value: {is_one}), expected one of {possible:?}",
                        ended.export
                    );
                    model.found(unit, found, ended.since);
                }
            }
            (Ask::Zero { pace, .. }, Err(OperationError::Unsupported)) => {
                assert!(pace == ZeroingPace::Fast && !self.world.zeroes_fast);
            }
            // Of a flush of the drive nothing else is known.
            (Ask::Flush, Err(OperationError::Io)) => (),
            (Ask::Zero { durability, .. } | Ask::Trim { durability }, Err(OperationError::Io))
                if durability == Durability::Durable => {}
            (_, Err(failed)) => {
                assert_eq!(*failed, OperationError::NoSpace, "the drive's own error");
            }
            (Ask::Flush, Ok(_)) => self.assert_on_medium(ended.export, 0, &ended.possible),
            (
                Ask::Write {
                    durability: Durability::Durable,
                }
                | Ask::Zero {
                    durability: Durability::Durable,
                    ..
                },
                Ok(_),
            ) => {
                let change = ended.change.expect("a change");
                let possible = model.on_medium(change.first, change.count);
                self.assert_on_medium(ended.export, change.first, &possible);
            }
            (_, Ok(bytes)) => assert!(bytes.is_empty()),
        }
    }

    fn assert_on_medium(&self, export: usize, first: u64, possible: &[Vec<u8>]) {
        let start = OFFSET + export as u64 * BYTES + first * UNIT;
        let medium = self.by_hand.medium();
        let units = medium[start as usize..].chunks_exact(UNIT as usize);
        for ((unit, bytes), possible) in (first..).zip(units).zip(possible) {
            assert!(
                possible.contains(&bytes[0]) && bytes.iter().all(|&byte| byte == bytes[0]),
                "unit {unit} of {export} is {} on the medium, expected one of {possible:?}",
                bytes[0]
            );
        }
    }

    /// Everything ends, and is where the model says.
    fn finish(mut self) {
        self.by_hand.run();
        self.take_answers();
        assert!(self.pending.is_empty(), "an operation is not answered");
        for export in 0..2 {
            self.submit(export, Ask::Flush, 0, 0);
            self.submit(export, Ask::Read, 0, UNITS);
        }
        self.by_hand.run();
        self.take_answers();
        assert!(self.pending.is_empty());
        for export in 0..2 {
            let possible = self.models[export].on_medium(0, UNITS);
            self.assert_on_medium(export, 0, &possible);
        }
        let medium = self.by_hand.medium()[..OFFSET as usize].to_vec();
        assert!(medium.iter().all(|&byte| byte == 0), "no volume's bytes");
        let volumes = self.by_hand.volumes();
        assert!(volumes.is_idle() && volumes.pending() == 0);
        assert_eq!(
            volumes.operations.bytes(),
            0,
            "memory of an operation is lost"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_some_order_of_the_operations_gives(
        world in world(),
        steps in prop::collection::vec(step(false), 1..80),
    ) {
        let mut run = Run::new(world);
        steps.iter().for_each(|step| run.take_step(step));
        run.finish();
    }

    /// A failed operation may have changed any of its bytes, and no other.
    #[test]
    fn a_failure_is_of_its_operation_alone(
        world in world(),
        steps in prop::collection::vec(step(true), 1..80),
    ) {
        let world = World { cache: None, ..world };
        let mut run = Run::new(world);
        steps.iter().for_each(|step| run.take_step(step));
        run.finish();
    }
}
