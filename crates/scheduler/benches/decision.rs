//! What a decision costs: one choice among so many requests, and a new request in its place.
//!
//! `cargo bench -p scheduler`. The queue is in its steady state: what a policy puts off is still
//! there, so that it is full of old requests far from the head.

use std::sync::Arc;

use block::{Direction, Duration, Extent, Instant, Lba, Owner, Sectors};
use divan::{Bencher, black_box};
use drive::{Position, Profile, SeekTarget, catalog};
use scheduler::policy::find;
use scheduler::{Choice, EligibleRequest, PieceId, Policy, View};

/// The drive of the free-block papers, and the largest one.
const DRIVES: [&str; 2] = ["quantum-atlas-10k", "modern-20tb"];

/// Every policy with its default, without `drive`, which is fcfs.
const POLICIES: [&str; 10] = [
    "fcfs",
    "look",
    "c-look",
    "sstf",
    "sptf",
    "sptf-sw60",
    "aged-sptf6",
    "deadline",
    "anticipatory6",
    "cfq-like100",
];

/// How many requests there are from which arrivals are taken by turns: many more than are pending.
const POOL: u64 = 10_000;

/// Decisions before the first one counts: a queue of 1024 has then been replaced several times.
const WARM_UP: u64 = 10_000;

/// Decisions in one sample: much longer than the clock's step, and many different situations.
const BATCH: u32 = 1000;

fn main() {
    divan::main();
}

/// A policy with its queue, and a head that does what it is told.
struct Queue {
    policy: Box<dyn Policy>,
    belief: Arc<Profile>,
    pool: Vec<EligibleRequest>,
    /// By ticket.
    pending: Vec<EligibleRequest>,
    arrived: u64,
    head: Position,
    previous: Direction,
    now: Instant,
    ready: Instant,
}

impl Queue {
    fn new(drive: &str, policy: &str, pending: u32) -> Self {
        let entry = catalog::find(drive).expect("a shipped drive");
        let belief = Arc::new(entry.profile().expect("a valid profile"));
        let mut queue = Queue {
            policy: find(policy).expect("a policy of the table").make(),
            pool: (0..POOL).map(|number| request(&belief, number)).collect(),
            belief,
            pending: Vec::new(),
            arrived: 0,
            head: Position::default(),
            previous: Direction::Read,
            now: Instant::ZERO,
            ready: Instant::ZERO,
        };
        for ticket in 0..pending {
            let arrival = queue.arrival(PieceId(ticket));
            queue.policy.add(&arrival);
            queue.pending.push(arrival);
        }
        for _ in 0..WARM_UP {
            queue.decide();
        }
        queue
    }

    fn arrival(&mut self, ticket: PieceId) -> EligibleRequest {
        let order = self.arrived;
        self.arrived += 1;
        EligibleRequest {
            ticket,
            order,
            submitted: self.now,
            ..self.pool[(order % POOL) as usize]
        }
    }

    /// One choice. What is chosen is served as the belief says, and another request arrives.
    fn decide(&mut self) {
        let belief = Arc::clone(&self.belief);
        let view = View {
            now: self.now,
            belief: &belief,
            head: self.head,
            ready: self.ready,
            previous: self.previous,
        };
        let ticket = match self.policy.select(black_box(&view)) {
            Choice::Serve(ticket) => ticket,
            Choice::WaitUntil(then) => {
                self.now = then;
                return;
            }
            Choice::Nothing => panic!("the queue is never empty"),
        };
        let served = self.pending[ticket.0 as usize];
        let way = view.positioning(&served.target, served.direction);
        let begins = view.start(served.direction);
        // Just in time: the next choice is made when this command is taken up.
        self.now = self.ready.max(self.now);
        self.ready = begins + way.total() + TRANSFER;
        self.head = served.target.position;
        self.previous = served.direction;
        let arrival = self.arrival(ticket);
        self.pending[ticket.0 as usize] = arrival;
        self.policy.add(&arrival);
    }
}

/// Two reads and a write by turns, anywhere. Any fixed sequence that spreads over the disk will
/// do: this is Knuth's multiplicative hashing.
fn request(belief: &Profile, number: u64) -> EligibleRequest {
    let spread = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    let lba = Lba(spread % (belief.geometry.sectors().0 - BLOCKS));
    let place = belief.geometry.locate(lba).expect("a block of the drive");
    EligibleRequest {
        ticket: PieceId(0),
        order: number,
        submitted: Instant::ZERO,
        direction: match number % 3 {
            0 => Direction::Write,
            _ => Direction::Read,
        },
        extent: Extent::new(lba, Sectors(BLOCKS)).expect("a valid extent"),
        target: SeekTarget::from(&place),
        owner: Owner::process((number % 16) as u32),
    }
}

/// Blocks of a request: 8 KiB on a drive of 512-byte blocks, the mean of the FAST 2002 load.
const BLOCKS: u64 = 16;

/// How long the medium of the Atlas 10K takes for them, on its middle tracks (279 sectors, 6 ms).
const TRANSFER: Duration = Duration::from_micros(344);

/// The goal is 2 microseconds for sptf at 256.
#[divan::bench(args = POLICIES, consts = [0, 1], sample_size = BATCH)]
fn decide_among_256<const DRIVE: usize>(bencher: Bencher, policy: &str) {
    let mut queue = Queue::new(DRIVES[DRIVE], policy, 256);
    bencher.bench_local(|| queue.decide());
}

/// How the cost grows.
#[divan::bench(args = [4, 16, 64, 1024], consts = [0, 1], sample_size = BATCH)]
fn sptf_among<const DRIVE: usize>(bencher: Bencher, pending: u32) {
    let mut queue = Queue::new(DRIVES[DRIVE], "sptf", pending);
    bencher.bench_local(|| queue.decide());
}
