//! What takes longer than a command of others does: it goes only if all batches are in time after it.

use std::collections::BTreeMap;

use block::{Direction, Duration, Lba};
use drive::SeekTarget;
use engine::guarantees::{Beyond, head_times, worst_cost};
use engine::streams::Promise;
use scheduler::background::Order;
use scheduler::freeblock::WantedBlocks;
use scheduler::{Choice, EligibleRequest, PieceId, Policy, Sight, View};
use stream::admission::Rules;
use stream::playout::Standing;

use super::world::{LONGEST, MB, World, ask, drive, extent, map, promise};
use super::worst::Scene;

/// Takes what lies farthest back on the disk.
#[derive(Default)]
struct Last {
    waiting: BTreeMap<(Lba, PieceId), ()>,
}

impl Policy for Last {
    fn sight(&self) -> Sight {
        Sight::Order
    }

    fn add(&mut self, pending: &EligibleRequest) {
        let place = (pending.extent.start(), pending.ticket);
        self.waiting.insert(place, ());
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.waiting
            .remove(&(pending.extent.start(), pending.ticket));
    }

    fn select(&mut self, _: &View) -> Choice {
        let last = self.waiting.pop_last();
        last.map_or(Choice::Nothing, |((_, ticket), ())| Choice::Serve(ticket))
    }
}

/// Small streams at the front of the disk wait for as long as they can, behind clients; the batch of a
/// large one at its end takes longer than a command of others.
#[test]
fn a_large_batch_goes_out_of_its_turn_only_if_the_others_are_in_time() {
    let blocks = drive().geometry.sectors().0;
    let short = Promise {
        rules: Rules {
            longest_round: Duration::from_secs(1),
            ..promise(0).rules
        },
        ..promise(0)
    };
    let film = |number: u64| match number {
        0 => {
            let mut ask = ask(Direction::Read, map(blocks - 900_000, 3_000));
            ask.terms.rate = 30 * MB;
            ask.terms.memory = Some(200 * MB);
            ask
        }
        number => {
            let mut ask = ask(Direction::Read, map(number * 50_000, 100));
            ask.terms.memory = Some(6 * MB);
            ask
        }
    };
    let make = || -> Box<dyn Policy> { Box::new(Last::default()) };
    let mut scene = Scene::new(&make, short, (0..7).map(film));
    assert_eq!(scene.streams.len(), 7);
    scene.play(2_000, 8);
    assert_eq!((scene.engine.guarantees().late(), scene.waited), (0, 0));
}

/// Reads of whole tracks in idle time, which has begun shortly before the next round is frozen: the head
/// has been at the end of the disk for a client, and the scan is at its beginning.
#[test]
fn a_long_read_of_a_scan_leaves_room_for_the_round_that_comes() {
    let belief = drive();
    let blocks = belief.geometry.sectors().0;
    let mut world = World::new(promise(0));
    world = world.with(|engine| engine.with_background(engine::Rules::default()));
    let stream = world.ask(Direction::Read, blocks - 900_000, 300);
    while world.engine.guarantees().standing(stream) != Some(Standing::Serving) {
        world.run_for(100);
    }
    let mut wanted = WantedBlocks::none(&belief.geometry);
    wanted.add(extent(0, 16_000_000)).expect("on the drive");
    let order = Order {
        wanted,
        priority: 0,
        deadline: None,
    };
    let begun = world.engine.begin_task(world.now, order);
    begun.expect("there is room");
    let times = head_times(&belief, Beyond::default()).expect("a seek curve");
    let begun = world.now;
    let (mut seen, mut long) = (world.commands.len(), 0);
    for round in 0..60 {
        let at = world
            .engine
            .guarantees()
            .next_round()
            .expect("there are rounds");
        // A client's read, an idle pause of 10 ms, and the scan goes on.
        world.run(at.saturating_sub(Duration::from_millis(20 + round % 30)));
        world.request(Direction::Read, blocks - 2_000 - 64 * round, 4, 0);
        while world.engine.guarantees().next_round() == Some(at) {
            let plan = world.engine.guarantees().plan().expect("a stream");
            let until = (at + plan.within).saturating_sub(plan.worst);
            let before = world.now;
            world.run_for(1);
            for index in seen..world.commands.len() {
                let Some(this) = world.commands[index].action.extent() else {
                    continue;
                };
                let last = world.commands[index - 1].action.extent();
                let last = last.and_then(|last| belief.geometry.locate(last.last()));
                let head = SeekTarget::from(&last.expect("on the drive")).position;
                if this.length().0 > LONGEST && this.start().0 < 16_000_000 {
                    let beyond = Beyond::default();
                    let worst = worst_cost((&times, beyond), &belief, head, this);
                    assert!(before + worst <= until, "{this} leaves no room");
                    long += 1;
                }
            }
            seen = world.commands.len();
        }
        let point = world.now.since(begun).as_nanos() / 1_000 * MB / 1_000_000;
        let moved = world
            .engine
            .stream(world.now, stream, engine::StreamInput::Position(point));
        moved.expect("it is open");
    }
    assert!(long > 60, "{long} long reads");
}
