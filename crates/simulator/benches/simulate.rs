//! What a request costs: on the whole, without a drive, and in a policy's choice.
//!
//! `cargo bench -p simulator`. The figures that we publish are those of `headtime bench simulate`.

use std::collections::VecDeque;
use std::sync::Arc;

use block::{
    Command, Direction, Duration, Extent, Instant, Lba, Outcome, Refused, Sectors, Status,
};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use drive::firmware::QueueOrder;
use drive::{Position, Profile, SeekTarget, VirtualDrive, catalog};
use engine::{Engine, Limits};
use scheduler::policy::find;
use scheduler::{Choice, EligibleRequest, PieceId, View};
use simulator::driver::{Driver, SimulatedDrive};
use simulator::ledger::{Ledger, RunReport};
use simulator::run::{Options, run};
use simulator::workload::{BuiltInWorkload, Synthetic};

/// Requests in one iteration: long enough that beginning and end do not count.
const REQUESTS: u64 = 20_000;

/// Commands that the load keeps outstanding.
const OUTSTANDING: u32 = 10;

fn main() {
    divan::main();
}

fn profile() -> Arc<Profile> {
    let entry = catalog::find("seagate-cheetah-9lp").expect("a shipped drive");
    Arc::new(entry.profile().expect("a valid profile"))
}

fn load(profile: &Profile) -> Synthetic {
    let random = BuiltInWorkload::find("random").expect("a built-in load");
    let random = random.workload().expect("a valid load");
    let blocks = profile.geometry.sectors().0;
    Synthetic::new(&random, profile.block_bytes, blocks).expect("it fits on the drive")
}

fn serve<D: SimulatedDrive>(
    profile: &Arc<Profile>,
    policy: &str,
    commands: usize,
    drive: D,
) -> RunReport {
    let policy = find(policy).expect("a policy of the table");
    let limits = Limits {
        commands_at_drive: commands,
        ..Limits::default()
    };
    let engine = Engine::new(Arc::clone(profile), &|| policy.make(), limits);
    let mut ledger = Ledger::new(profile.block_bytes, profile.actuators);
    let options = Options {
        requests: Some(REQUESTS),
        ..Options::default()
    };
    let ran = run(
        &mut Driver::new(engine, drive),
        &mut load(profile),
        &options,
        &mut ledger,
        &mut (),
    );
    ledger.report(&ran.expect("a good load"))
}

/// Load, engine, drive, ledger: a policy outside, two commands at the drive.
#[divan::bench(args = ["fcfs", "c-look", "sstf", "sptf"])]
fn simulate(bencher: Bencher, policy: &str) {
    let profile = profile();
    bencher.counter(ItemsCount::new(REQUESTS)).bench(|| {
        let drive = VirtualDrive::new(Arc::clone(&profile)).with_queue(2, QueueOrder::Fcfs);
        serve(&profile, policy, 2, drive)
    });
}

/// The same, with the drive choosing.
#[divan::bench]
fn simulate_sptf_in_drive(bencher: Bencher) {
    let profile = profile();
    bencher.counter(ItemsCount::new(REQUESTS)).bench(|| {
        let drive =
            VirtualDrive::new(Arc::clone(&profile)).with_queue(OUTSTANDING, QueueOrder::Sptf);
        serve(&profile, "drive", OUTSTANDING as usize, drive)
    });
}

/// Ends every command a millisecond after the one before, without thinking.
#[derive(Default)]
struct Clock {
    held: VecDeque<Outcome>,
    last: Instant,
}

impl SimulatedDrive for Clock {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.last = self.last.max(now) + Duration::from_millis(1);
        self.held.push_back(Outcome {
            id: command.id,
            at: self.last,
            status: Status::Good,
            account: None,
        });
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        let due = self.held.front().is_some_and(|next| next.at <= now);
        due.then(|| self.held.pop_front()).flatten()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.held.front().map(|next| next.at)
    }
}

/// Load, engine and ledger alone.
#[divan::bench(args = ["fcfs", "c-look", "sstf", "sptf"])]
fn without_a_drive(bencher: Bencher, policy: &str) {
    let profile = profile();
    bencher
        .counter(ItemsCount::new(REQUESTS))
        .bench(|| serve(&profile, policy, 2, Clock::default()));
}

/// One choice, and a new request in its place, among so many.
#[divan::bench(args = [
    ("c-look", 10), ("c-look", 100), ("c-look", 1000),
    ("sstf", 10), ("sstf", 100), ("sstf", 1000),
    ("sptf", 10), ("sptf", 100), ("sptf", 1000),
])]
fn choose(bencher: Bencher, (policy, pending): (&str, u32)) {
    let entry = find(policy).expect("a policy of the table");
    let profile = profile();
    let mut policy = entry.make();
    // Any fixed sequence that spreads over the disk will do: Knuth's multiplicative hashing.
    let request = |order: u64, ticket| {
        let lba = Lba(order.wrapping_mul(2_654_435_761) % 17_000_000);
        let place = profile.geometry.locate(lba).expect("a block of the drive");
        EligibleRequest {
            ticket,
            order,
            submitted: Instant::ZERO,
            direction: Direction::Read,
            extent: Extent::new(lba, Sectors(15)).expect("a valid extent"),
            target: SeekTarget::from(&place),
            owner: block::Owner::NOBODY,
        }
    };
    let pool: Vec<EligibleRequest> = (0..10_000)
        .map(|order| request(order, PieceId(0)))
        .collect();
    for ticket in 0..pending {
        policy.add(&request(u64::from(ticket), PieceId(ticket)));
    }
    let (mut order, mut head) = (u64::from(pending), Position::default());
    bencher.bench_local(|| {
        let now = Instant::from_nanos(order * 4_000_000);
        let view = View {
            now,
            belief: &profile,
            head,
            ready: now,
            previous: Direction::Read,
        };
        if let Choice::Serve(ticket) = policy.select(black_box(&view)) {
            let next = pool[(order % 10_000) as usize];
            head = next.target.position;
            policy.add(&EligibleRequest {
                ticket,
                order,
                ..next
            });
        }
        order += 1;
    });
}
