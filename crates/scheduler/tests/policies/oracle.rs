//! Every policy against an oracle that looks at everything, and the promises that all keep.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use block::{Direction, Duration, Extent, Instant, Lba, Owner, Sectors};
use drive::{Angle, Position, Profile, SeekTarget, catalog};
use proptest::prelude::*;
use scheduler::policy::{ALL, find};
use scheduler::{Choice, EligibleRequest, NamedPolicy, PieceId, Policy, View};

use drive::invented;

/// Where requests begin: few blocks, so that ties are frequent, on the whole of the drive.
const BLOCKS: u64 = 60;

/// From one of them to the next.
const STRIDE: u64 = 46;

/// What happens to a policy.
#[derive(Clone, Debug)]
enum Step {
    Add {
        direction: Direction,
        start: u64,
        target: SeekTarget,
        owner: Owner,
    },
    /// Withdraws one of the pending requests.
    Withdraw(prop::sample::Index),
    /// Chooses, with the head there, and so long before the command before has ended.
    Select { head: Position, ahead: u64 },
}

/// Where an elevator is.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    at: Lba,
    upwards: bool,
}

/// What is known of a choice beforehand.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// This one, or that there is nothing.
    Exactly(Option<PieceId>),
    /// Any that is pending, if one is. What such a policy promises has tests of its own below.
    Something,
    /// The same, or a wait, of this length after the end of the command before at the most.
    SomethingOrWait(Duration),
}

/// A moment after the last arrival: only differences of waiting count.
const LATEST: Instant = Instant::from_nanos(1 << 40);

/// What a policy should choose, found by looking at every pending request.
fn oracle(
    policy: &NamedPolicy,
    pending: &BTreeMap<u64, EligibleRequest>,
    sweep: Sweep,
    view: &View,
) -> Expected {
    let all = pending.values();
    let time = |p: &EligibleRequest| view.positioning(&p.target, p.direction).total().as_nanos();
    let behind = |p: &EligibleRequest| p.extent.start() < sweep.at;
    let beyond = |p: &EligibleRequest| p.extent.start() > sweep.at;
    let start = |p: &EligibleRequest| p.extent.start();
    let parameter = u64::from(policy.parameter().unwrap_or(0));
    let chosen = match policy.entry.name {
        "fcfs" | "drive" => all.min_by_key(|p| p.order),
        "look" if sweep.upwards && !all.clone().all(behind) => {
            all.min_by_key(|p| (behind(p), start(p), p.order))
        }
        "look" if !sweep.upwards && all.clone().all(beyond) => {
            all.min_by_key(|p| (start(p), p.order))
        }
        "look" => all.min_by_key(|p| (beyond(p), Reverse(start(p)), p.order)),
        "c-look" => all.min_by_key(|p| (behind(p), start(p), p.order)),
        "sstf" => all.min_by_key(|p| {
            let distance = p.target.position.cylinder.abs_diff(view.head.cylinder);
            (distance, p.order)
        }),
        "sptf" => all.min_by_key(|p| (time(p), p.order)),
        "sptf-sw" => {
            let shortest = all.clone().map(time).min().unwrap_or(0);
            all.filter(|p| time(p) * 100 <= shortest * (100 + parameter))
                .min_by_key(|p| (view.positioning(&p.target, p.direction).seek, p.order))
        }
        "aged-sptf" => all.min_by_key(|p| {
            let waited = i128::from(LATEST.since(p.submitted).as_nanos());
            (
                i128::from(time(p)) * 1000 - i128::from(parameter) * waited,
                p.order,
            )
        }),
        "deadline" => return Expected::Something,
        "anticipatory" => return Expected::SomethingOrWait(Duration::from_millis(parameter)),
        "cfq-like" => return Expected::SomethingOrWait(Duration::from_millis(8)),
        name => panic!("{name} has no oracle: write one"),
    };
    Expected::Exactly(chosen.map(|p| p.ticket))
}

fn position() -> impl Strategy<Value = Position> {
    (0..invented::CYLINDERS, 0..3u32).prop_map(|(cylinder, head)| Position { cylinder, head })
}

fn step() -> impl Strategy<Value = Step> {
    let direction = prop_oneof![Just(Direction::Read), Just(Direction::Write)];
    let target = (position(), 0..8u64).prop_map(|(position, eighth)| SeekTarget {
        position,
        angle: Angle::fraction(eighth, 8),
    });
    prop_oneof![
        4 => (direction, 0..BLOCKS, target, 0..4u32)
            .prop_map(|(direction, start, target, process)| Step::Add {
                direction,
                start: start * STRIDE,
                target,
                owner: Owner::process(process),
            }),
        1 => any::<prop::sample::Index>().prop_map(Step::Withdraw),
        3 => (position(), 0..20_000_000u64)
            .prop_map(|(head, ahead)| Step::Select { head, ahead }),
    ]
}

/// A policy, the requests that it should know of, and where an oracle's sweep is.
struct Trial {
    named: NamedPolicy,
    policy: Box<dyn Policy>,
    belief: Arc<Profile>,
    pending: BTreeMap<u64, EligibleRequest>,
    sweep: Sweep,
    free: Vec<PieceId>,
    arrived: u64,
    now: Instant,
    ready: Instant,
    /// Until when the policy idles.
    waits: Option<Instant>,
    /// The owner of the last served request, if it was a read and its owner is known.
    reader: Option<Owner>,
    /// Until when that owner has the disk for itself, under a policy with slices.
    slice: Instant,
}

impl Trial {
    fn new(name: &str, belief: &Arc<Profile>) -> Self {
        let named = find(name).expect("a policy of the table");
        Trial {
            named,
            policy: named.make(),
            belief: Arc::clone(belief),
            pending: BTreeMap::new(),
            sweep: Sweep {
                at: Lba(0),
                upwards: true,
            },
            free: (0..MOST).rev().map(PieceId).collect(),
            arrived: 0,
            now: Instant::ZERO,
            ready: Instant::ZERO,
            waits: None,
            reader: None,
            slice: Instant::ZERO,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Add {
                direction,
                start,
                target,
                owner,
            } => self.add(direction, start, target, owner),
            Step::Withdraw(index) => self.withdraw(index),
            Step::Select { head, ahead } => {
                // Just in time: when the command before is taken up.
                self.now = self.now.max(self.ready);
                self.ready = self.now + Duration::from_nanos(ahead);
                self.select(head);
            }
        }
    }

    fn add(&mut self, direction: Direction, start: u64, target: SeekTarget, owner: Owner) {
        let Some(ticket) = self.free.pop() else {
            return;
        };
        let pending = EligibleRequest {
            ticket,
            order: self.arrived,
            submitted: self.now,
            direction,
            extent: Extent::new(Lba(start), Sectors(8)).expect("a valid extent"),
            target,
            owner,
        };
        self.arrived += 1;
        self.waits = None;
        self.pending.insert(pending.order, pending);
        self.policy.add(&pending);
    }

    fn withdraw(&mut self, index: prop::sample::Index) {
        if self.pending.is_empty() {
            return;
        }
        let orders: Vec<u64> = self.pending.keys().copied().collect();
        let pending = self
            .pending
            .remove(index.get(&orders))
            .expect("it is pending");
        self.policy.withdraw(&pending);
        self.free.push(pending.ticket);
    }

    /// Lets the policy choose.
    fn select(&mut self, head: Position) -> Choice {
        let name = self.named.name();
        let belief = Arc::clone(&self.belief);
        let view = View {
            now: self.now,
            belief: &belief,
            head,
            ready: self.ready,
            previous: Direction::Read,
        };
        let expected = oracle(&self.named, &self.pending, self.sweep, &view);
        let choice = self.policy.select(&view);
        match (expected, choice) {
            (Expected::Exactly(None), _) => assert_eq!(choice, Choice::Nothing, "{name}"),
            (Expected::Exactly(Some(ticket)), _) => {
                assert_eq!(choice, Choice::Serve(ticket), "{name}");
            }
            (Expected::SomethingOrWait(most), Choice::WaitUntil(then)) => {
                assert!(!self.pending.is_empty(), "{name} waits for nothing");
                assert!(then > self.now, "{name} waits for what is over");
                assert!(then <= self.ready.max(self.now) + most, "{name} waits long");
                let same = self.waits.is_none_or(|waits| then <= waits);
                assert!(same, "{name} puts off the end of its wait");
            }
            (_, Choice::WaitUntil(_)) => panic!("{name} idles"),
            (_, Choice::Nothing) => assert!(self.pending.is_empty(), "{name} serves nothing"),
            (_, Choice::Serve(_)) => {}
        }
        self.check_owners(choice);
        match choice {
            Choice::Serve(ticket) => self.served(ticket),
            Choice::WaitUntil(then) => self.waits = Some(then),
            Choice::Nothing => {}
        }
        choice
    }

    /// Nobody idles for an owner that has a read, and an owner that has some keeps the disk for its slice.
    fn check_owners(&mut self, choice: Choice) {
        let name = self.named.name();
        let reads = |p: &&EligibleRequest| p.direction == Direction::Read;
        let own = |p: &&EligibleRequest| reads(p) && Some(p.owner) == self.reader;
        let has_more = self.pending.values().any(|p| own(&p));
        let ticket = match choice {
            Choice::Serve(ticket) => ticket,
            Choice::WaitUntil(_) => return assert!(!has_more, "{name} idles for what is there"),
            Choice::Nothing => return,
        };
        let mut pending = self.pending.values();
        let served = pending.find(|p| p.ticket == ticket).expect("it is pending");
        let at = self.now.max(self.ready);
        let is_sliced = self.named.entry.name == "cfq-like";
        if is_sliced && has_more && at < self.slice {
            assert!(own(&served), "{name} ends a slice early");
        }
        let reader = (reads(&served) && served.owner.is_known()).then_some(served.owner);
        if reader != self.reader || at >= self.slice {
            let millis = u64::from(self.named.parameter().unwrap_or(0));
            self.slice = at + Duration::from_millis(millis);
        }
        self.reader = reader;
    }

    fn served(&mut self, ticket: PieceId) {
        let order = self
            .pending
            .values()
            .find(|p| p.ticket == ticket)
            .map(|p| p.order)
            .expect("only pending requests are chosen, each once");
        let served = self.pending.remove(&order).expect("it is pending");
        let start = served.extent.start();
        self.sweep.upwards = match start.cmp(&self.sweep.at) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => self.sweep.upwards,
        };
        self.sweep.at = start;
        self.free.push(ticket);
        self.waits = None;
    }

    /// Serves all that is left, idling as the policy wants, and finds nothing afterwards.
    fn drain(&mut self) {
        loop {
            match self.select(Position::default()) {
                Choice::Serve(_) => self.ready = self.ready.max(self.now) + SERVICE,
                Choice::WaitUntil(then) => self.now = then,
                Choice::Nothing => break,
            }
        }
        assert!(self.pending.is_empty(), "{} lost some", self.named.name());
    }
}

/// What a command takes where it does not matter.
const SERVICE: Duration = Duration::from_millis(5);

/// Most requests that are pending at once.
const MOST: u32 = 64;

/// Every policy of the table, and the ends of the ranges of those that take a parameter.
fn all_names() -> impl Iterator<Item = String> {
    ALL.iter().flat_map(|entry| {
        let ends = entry
            .parameter()
            .map(|p| [*p.range.start(), *p.range.end()]);
        let ends = ends.into_iter().flatten();
        let ends = ends.map(|parameter| format!("{}{parameter}", entry.name));
        std::iter::once(entry.name.to_owned()).chain(ends)
    })
}

proptest! {
    #[test]
    fn every_policy_chooses_as_its_oracle_and_serves_each_request_once(
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let belief = Arc::new(invented::profile());
        for name in all_names() {
            let mut trial = Trial::new(&name, &belief);
            for step in &steps {
                trial.step(step);
            }
            trial.drain();
        }
    }
}

#[test]
fn withdrawing_what_is_not_pending_changes_nothing() {
    let belief = Arc::new(invented::profile());
    for name in all_names() {
        let mut trial = Trial::new(&name, &belief);
        let target = SeekTarget {
            position: Position::default(),
            angle: Angle::ZERO,
        };
        trial.add(Direction::Read, 5, target, Owner::process(1));
        let known = *trial.pending.values().next().expect("one is pending");
        for ticket in [PieceId(9), known.ticket] {
            let stranger = EligibleRequest {
                ticket,
                order: 77,
                ..known
            };
            trial.policy.withdraw(&stranger);
        }
        trial.drain();
        trial.policy.withdraw(&known);
        assert_eq!(trial.select(Position::default()), Choice::Nothing, "{name}");
    }
}

/// The same against the tables of real drives, which are long and have outliers.
#[test]
fn on_the_drives_of_the_catalogue_the_choice_is_the_oracle_s_too() {
    for drive in ["quantum-atlas-10k", "hp-c2247a", "modern-20tb"] {
        let entry = catalog::find(drive).expect("a shipped drive");
        let belief = Arc::new(entry.profile().expect("a valid profile"));
        let blocks = belief.geometry.sectors().0;
        for name in all_names() {
            let mut trial = Trial::new(&name, &belief);
            let mut head = Position::default();
            for number in 0..400u64 {
                // Knuth's multiplicative hashing: any fixed sequence that spreads will do.
                let spread = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
                let start = spread % (blocks - 8);
                let place = belief.geometry.locate(Lba(start)).expect("on the drive");
                let direction = match number % 3 {
                    0 => Direction::Write,
                    _ => Direction::Read,
                };
                let owner = Owner::process((number % 5) as u32);
                trial.add(direction, start, SeekTarget::from(&place), owner);
                if number >= u64::from(MOST) {
                    let before = trial.pending.clone();
                    trial.step(&Step::Select {
                        head,
                        ahead: spread % 10_000_000,
                    });
                    let gone = before
                        .values()
                        .find(|p| !trial.pending.contains_key(&p.order));
                    head = gone.map_or(head, |served| served.target.position);
                }
            }
            trial.drain();
        }
    }
}
