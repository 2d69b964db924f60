//! What the policies promise that decide by more than the requests: bounds on waiting, turns, and
//! when they idle.

use block::{Direction, Duration, Extent, Instant, Lba, Owner, Sectors};
use drive::{Angle, Position, Profile, SeekTarget};
use scheduler::policy::find;
use scheduler::{Choice, EligibleRequest, PieceId, Policy, View};

use drive::invented;

/// A policy and a clock. Tickets are numbers by arrival.
pub(super) struct Bench {
    policy: Box<dyn Policy>,
    pub(super) belief: Profile,
    arrived: u32,
    pub(super) now: Instant,
    ready: Instant,
}

impl Bench {
    pub(super) fn new(policy: &str) -> Self {
        Bench {
            policy: find(policy).expect("a policy of the table").make(),
            belief: invented::profile(),
            arrived: 0,
            now: Instant::ZERO,
            ready: Instant::ZERO,
        }
    }

    fn add(&mut self, direction: Direction, start: u64) -> PieceId {
        self.add_for(Owner::NOBODY, direction, start)
    }

    pub(super) fn add_for(&mut self, owner: Owner, direction: Direction, start: u64) -> PieceId {
        let ticket = PieceId(self.arrived);
        self.policy.add(&EligibleRequest {
            ticket,
            order: u64::from(self.arrived),
            submitted: self.now,
            direction,
            extent: Extent::new(Lba(start), Sectors(4)).expect("a valid extent"),
            target: SeekTarget {
                position: Position::default(),
                angle: Angle::ZERO,
            },
            owner,
        });
        self.arrived += 1;
        ticket
    }

    fn read(&mut self, start: u64) -> PieceId {
        self.add(Direction::Read, start)
    }

    pub(super) fn read_for(&mut self, process: u32, start: u64) -> PieceId {
        self.add_for(Owner::process(process), Direction::Read, start)
    }

    pub(super) fn write(&mut self, start: u64) -> PieceId {
        self.add(Direction::Write, start)
    }

    pub(super) fn select(&mut self) -> Choice {
        self.policy.select(&View {
            now: self.now,
            belief: &self.belief,
            head: Position::default(),
            ready: self.ready,
            previous: Direction::Read,
        })
    }

    /// What is chosen when the drive is idle; it is done 5 ms later.
    pub(super) fn serve(&mut self) -> Option<PieceId> {
        let choice = self.select();
        let Choice::Serve(ticket) = choice else {
            return None;
        };
        self.end();
        Some(ticket)
    }

    /// What was chosen is done.
    pub(super) fn end(&mut self) {
        self.now = self.now.max(self.ready) + SERVICE;
        self.ready = self.now;
    }

    pub(super) fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }
}

pub(super) const SERVICE: Duration = Duration::from_millis(5);

fn millis(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// A sweep that never ends: always another request further up. One that lies below is served when
/// it has expired, by the batch after, and not before.
#[test]
fn deadline_leaves_its_sweep_for_what_has_expired() {
    for (direction, expiry) in [(Direction::Read, 500), (Direction::Write, 5_000)] {
        let mut bench = Bench::new("deadline");
        bench.add(direction, 1000);
        bench.serve().expect("it is alone");
        let submitted = bench.now;
        let left_behind = bench.add(direction, 10);
        let mut further = 2000;
        loop {
            bench.add(direction, further);
            further += 4;
            if bench.serve().expect("something is pending") == left_behind {
                break;
            }
        }
        // Its service ends when the loop does.
        let waited = bench.now.since(submitted);
        let least = Duration::from_millis(expiry);
        let batch = Duration::from_nanos(SERVICE.as_nanos() * 17);
        assert!(waited >= least, "{waited:?}: before it expired");
        assert!(waited <= least + batch, "{waited:?}: long after it expired");
    }
}

/// With both waiting, two batches of 16 reads go before each batch of 16 writes.
#[test]
fn deadline_gives_writes_a_third_of_the_batches() {
    let mut bench = Bench::new("deadline");
    let reads: Vec<PieceId> = (0..64).map(|number| bench.read(number * 8)).collect();
    (0..64).for_each(|number| {
        bench.write(number * 8);
    });
    let served: Vec<bool> = (0..96)
        .map(|_| reads.contains(&bench.serve().expect("something is pending")))
        .collect();
    let batches: Vec<bool> = served.chunks(16).map(|batch| batch[0]).collect();
    assert!(
        served
            .chunks(16)
            .all(|batch| batch.iter().all(|&read| read == batch[0]))
    );
    assert_eq!(batches, [true, true, false, true, true, false]);
}

#[test]
fn anticipatory_idles_for_the_read_that_follows_and_takes_it_before_all_others() {
    let mut bench = Bench::new("anticipatory6");
    // Further than 4 MiB away: the drive has blocks of 512 bytes.
    bench.belief.block_bytes = 4096;
    bench.read(100);
    let far = bench.read(2000);
    bench.serve().expect("the first");
    let after = bench.now;
    assert_eq!(
        bench.select(),
        Choice::WaitUntil(after + Duration::from_millis(6))
    );
    bench.wait(2);
    let until = Choice::WaitUntil(after + Duration::from_millis(6));
    assert_eq!(
        bench.select(),
        until,
        "the end of the wait stays where it is"
    );
    bench.write(104);
    assert_eq!(bench.select(), until, "a write is not what it waits for");
    let follows = bench.read(104);
    assert_eq!(bench.serve(), Some(follows));
    // Now nothing follows.
    let after = bench.now;
    assert_eq!(
        bench.select(),
        Choice::WaitUntil(after + Duration::from_millis(6))
    );
    bench.wait(6);
    assert_eq!(bench.serve(), Some(far));
}

#[test]
fn anticipatory_waits_for_nobody_once_something_has_expired() {
    let mut bench = Bench::new("anticipatory6");
    bench.belief.block_bytes = 4096;
    bench.read(100);
    let far = bench.read(2000);
    bench.serve().expect("the first");
    bench.wait(500);
    bench.ready = bench.now;
    assert_eq!(bench.select(), Choice::Serve(far));
}

#[test]
fn anticipatory_learns_that_nothing_follows() {
    let mut bench = Bench::new("anticipatory6");
    bench.belief.block_bytes = 4096;
    // Each below the one before: what is pending never follows what was read. (Only the first two
    // are there together, and are served upwards.)
    let mut start = 2700;
    bench.read(start);
    let mut waits = Vec::new();
    for _ in 0..40 {
        start -= 60;
        bench.read(start);
        let idles = matches!(bench.select(), Choice::WaitUntil(_));
        waits.push(idles);
        if idles {
            bench.wait(6);
            bench.serve().expect("the wait is over");
        } else {
            bench.ready = bench.now;
        }
    }
    let count = |waits: &[bool]| waits.iter().filter(|&&idles| idles).count();
    assert_eq!(count(&waits[2..8]), 6, "{waits:?}");
    // And tries again now and then.
    assert_eq!(count(&waits[8..]), 1, "{waits:?}");
}

/// Two readers far from each other, each with enough to do, and writes: slices of 100 and 40 ms.
#[test]
fn cfq_like_gives_each_its_slice() {
    let mut bench = Bench::new("cfq-like100");
    let lower: Vec<PieceId> = (0..60).map(|number| bench.read(number)).collect();
    let upper: Vec<PieceId> = (0..60).map(|number| bench.read(2700 + number)).collect();
    (0..60).for_each(|number| {
        bench.write(1400 + number);
    });
    let turns: Vec<usize> = (0..96)
        .map(|_| match bench.serve().expect("something is pending") {
            ticket if lower.contains(&ticket) => 0,
            ticket if upper.contains(&ticket) => 1,
            _ => 2,
        })
        .collect();
    let turns: Vec<(usize, usize)> = turns
        .chunk_by(|one, other| one == other)
        .map(|turn| (turn[0], turn.len()))
        .collect();
    // At 5 ms each.
    assert_eq!(turns, [(0, 20), (1, 20), (2, 8), (0, 20), (1, 20), (2, 8)]);
}

#[test]
fn cfq_like_idles_for_its_reader_within_the_slice_only() {
    let mut bench = Bench::new("cfq-like12");
    let first = bench.read(0);
    let other = bench.read(2700);
    assert_eq!(bench.serve(), Some(first));
    // Of 12 ms, 7 are left.
    assert_eq!(bench.select(), Choice::WaitUntil(millis(12)));
    bench.wait(2);
    let follows = bench.read(4);
    assert_eq!(bench.serve(), Some(follows));
    assert_eq!(bench.serve(), Some(other), "the slice is over");
    let again = bench.read(8);
    bench.ready = bench.now;
    // The reader of `other` is idled for now: 7 ms again, and nothing comes.
    let end = bench.now + Duration::from_millis(7);
    assert_eq!(bench.select(), Choice::WaitUntil(end));
    bench.wait(7);
    assert_eq!(bench.serve(), Some(again));
}

#[test]
fn no_slice_no_idling_for_writes() {
    let mut bench = Bench::new("cfq-like100");
    let write = bench.write(0);
    let read = bench.read(2700);
    let served = [bench.serve(), bench.serve()];
    assert_eq!(served, [Some(read), None], "idles for the reader");
    bench.wait(8);
    assert_eq!(bench.serve(), Some(write));
    let read = bench.read(10);
    assert_eq!(bench.serve(), Some(read), "nobody idles for writes");
}

/// The same calls give the same answers.
#[test]
fn a_policy_has_no_dice() {
    let run = || {
        let mut bench = Bench::new("cfq-like100");
        let mut choices = Vec::new();
        for number in 0..200u64 {
            let start = number * 1_103 % 2_700;
            match number % 3 {
                0 => bench.write(start),
                _ => bench.read(start),
            };
            choices.push(bench.select());
            bench.wait(3);
        }
        choices
    };
    assert_eq!(run(), run());
}
