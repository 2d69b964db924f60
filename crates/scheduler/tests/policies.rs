//! Every policy against an oracle that looks at everything, and the promises that all keep.

use std::collections::BTreeMap;

use block::{Direction, Extent, Instant, Lba, Sectors};
use drive::{Angle, Position, Profile, Target};
use proptest::prelude::*;
use scheduler::policy::{ALL, find};
use scheduler::{Choice, Pending, Policy, Ticket, View};

#[path = "drives/invented.rs"]
mod invented;

/// Where requests begin: few blocks, so that ties are frequent.
const BLOCKS: u64 = 60;

/// What happens to a policy.
#[derive(Clone, Debug)]
enum Step {
    Add {
        direction: Direction,
        start: u64,
        target: Target,
    },
    /// Withdraws one of the pending requests.
    Withdraw(prop::sample::Index),
    /// Chooses, with the head there and then.
    Select { head: Position, ready: u64 },
}

/// What a policy should choose, found by looking at every pending request.
fn oracle(name: &str, pending: &BTreeMap<u64, Pending>, sweep: Lba, view: &View) -> Option<Ticket> {
    let all = pending.values();
    let chosen = match name {
        "fcfs" | "drive" => all.min_by_key(|p| p.order),
        "c-look" => all.min_by_key(|p| (p.extent.start() < sweep, p.extent.start(), p.order)),
        "sstf" => all.min_by_key(|p| {
            let distance = p.target.position.cylinder.abs_diff(view.head.cylinder);
            (distance, p.order)
        }),
        "sptf" => all.min_by_key(|p| (view.positioning(&p.target, p.direction).total(), p.order)),
        "sptf-sw" => {
            let time = |p: &&Pending| view.positioning(&p.target, p.direction).total();
            let shortest = all.clone().map(|p| time(&p).as_nanos()).min();
            all.filter(|p| shortest.is_some_and(|ns| time(p).as_nanos() * 100 <= ns * 160))
                .min_by_key(|p| (view.positioning(&p.target, p.direction).seek, p.order))
        }
        _ => panic!("{name} has no oracle: write one"),
    };
    chosen.map(|p| p.ticket)
}

fn position() -> impl Strategy<Value = Position> {
    (0..invented::CYLINDERS, 0..3u32).prop_map(|(cylinder, head)| Position { cylinder, head })
}

fn step() -> impl Strategy<Value = Step> {
    let direction = prop_oneof![Just(Direction::Read), Just(Direction::Write)];
    let target = (position(), 0..8u64).prop_map(|(position, eighth)| Target {
        position,
        angle: Angle::fraction(eighth, 8),
    });
    prop_oneof![
        4 => (direction, 0..BLOCKS, target)
            .prop_map(|(direction, start, target)| Step::Add { direction, start, target }),
        1 => any::<prop::sample::Index>().prop_map(Step::Withdraw),
        3 => (position(), 0..20_000_000u64)
            .prop_map(|(head, ready)| Step::Select { head, ready }),
    ]
}

/// A policy, the requests that it should know of, and where an oracle's sweep is.
struct Trial {
    name: &'static str,
    policy: Box<dyn Policy>,
    belief: Profile,
    pending: BTreeMap<u64, Pending>,
    sweep: Lba,
    free: Vec<Ticket>,
    arrived: u64,
}

impl Trial {
    fn new(name: &'static str) -> Self {
        let entry = find(name).expect("a policy of the table");
        Trial {
            name,
            policy: entry.make(),
            belief: invented::profile(),
            pending: BTreeMap::new(),
            sweep: Lba(0),
            free: (0..64).rev().map(Ticket).collect(),
            arrived: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Add {
                direction,
                start,
                target,
            } => self.add(direction, start, target),
            Step::Withdraw(index) => self.withdraw(index),
            Step::Select { head, ready } => {
                self.select(head, ready);
            }
        }
    }

    fn add(&mut self, direction: Direction, start: u64, target: Target) {
        let Some(ticket) = self.free.pop() else {
            return;
        };
        let pending = Pending {
            ticket,
            order: self.arrived,
            direction,
            extent: Extent::new(Lba(start), Sectors(8)).expect("a valid extent"),
            target,
        };
        self.arrived += 1;
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

    /// Lets the policy choose; `false` if it found nothing.
    fn select(&mut self, head: Position, ready: u64) -> bool {
        let view = View {
            now: Instant::from_nanos(ready.saturating_sub(150_000)),
            belief: &self.belief,
            head,
            ready: Instant::from_nanos(ready),
            previous: Direction::Read,
        };
        let expected = oracle(self.name, &self.pending, self.sweep, &view);
        let choice = self.policy.select(&view);
        let Some(ticket) = expected else {
            assert_eq!(choice, Choice::Nothing, "{}", self.name);
            return false;
        };
        assert_eq!(choice, Choice::Serve(ticket), "{}", self.name);
        let order = self
            .pending
            .values()
            .find(|p| p.ticket == ticket)
            .map(|p| p.order)
            .expect("only pending requests are chosen, each once");
        let served = self.pending.remove(&order).expect("it is pending");
        self.sweep = served.extent.start();
        self.free.push(ticket);
        true
    }

    /// Serves all that is left, and finds nothing afterwards.
    fn drain(&mut self) {
        while self.select(Position::default(), 1_000_000) {}
        assert!(self.pending.is_empty(), "{} lost requests", self.name);
    }
}

proptest! {
    #[test]
    fn every_policy_chooses_as_its_oracle_and_serves_each_request_once(
        steps in prop::collection::vec(step(), 0..200),
    ) {
        for entry in ALL {
            let mut trial = Trial::new(entry.name);
            for step in &steps {
                trial.step(step);
            }
            trial.drain();
        }
    }
}

#[test]
fn withdrawing_what_is_not_pending_changes_nothing() {
    for entry in ALL {
        let mut trial = Trial::new(entry.name);
        let target = Target {
            position: Position::default(),
            angle: Angle::ZERO,
        };
        trial.add(Direction::Read, 5, target);
        let known = *trial.pending.values().next().expect("one is pending");
        let stranger = Pending {
            ticket: Ticket(9),
            order: 77,
            ..known
        };
        trial.policy.withdraw(&stranger);
        trial.drain();
        trial.policy.withdraw(&known);
        assert!(!trial.select(Position::default(), 0), "{}", entry.name);
    }
}
