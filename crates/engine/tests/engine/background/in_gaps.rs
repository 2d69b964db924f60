//! Background requests in gaps: no foreground request is later for one, and what is read and written is what it would be
//! first come, first served.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::{
    Action, Class, Command, CommandId, Direction, Durability, Instant, Lba, Owner, Request,
    RequestId, Status,
};
use drive::firmware::WriteBack;
use drive::invented::{self, SimpleDrive};
use engine::{Engine, Limits, Rules};
use scheduler::background::Order;
use scheduler::freeblock::WantedBlocks;
use scheduler::ordering::Grace;
use scheduler::policy::find;

use super::scene::{exact, extent};

/// Places of requests: few, so that many overlap.
const SITES: u64 = 60;

/// Blocks of a place.
const SITE: u64 = 16;

/// A client that has so many requests of a class held until it has submitted all.
#[derive(Clone, Copy)]
struct Client {
    class: Class,
    held: u64,
    requests: u64,
    /// Of a hundred requests.
    writes: u64,
}

/// Whether clients share places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    Common,
    Own,
    /// Those of the second client are on two tracks each.
    OverTrackEnds,
}

/// Two clients, an engine and its drive, in virtual time.
struct Pair {
    engine: Engine,
    drive: SimpleDrive,
    now: Instant,
    dice: u64,
    clients: [Client; 2],
    places: Places,
    /// By client: requests that were submitted, and those that have ended.
    submitted: [u64; 2],
    ended: [u64; 2],
    /// In the order of arrival.
    requests: Vec<Request>,
    /// By block, the request that wrote it last.
    contents: BTreeMap<u64, u64>,
    /// By request and block, the content that it read.
    read: BTreeMap<(u64, u64), u64>,
    at_drive: BTreeMap<CommandId, (Command, Option<u64>)>,
    /// The sum of the response times of the first client's requests.
    responses: u64,
    /// Writes that went to the medium at once.
    durable: u64,
}

fn foreground(requests: u64) -> Client {
    Client {
        class: Class::default(),
        held: 4,
        requests,
        writes: 30,
    }
}

fn background(requests: u64) -> Client {
    Client {
        class: Class::Background,
        held: 24,
        requests,
        writes: 80,
    }
}

impl Pair {
    fn new(rules: Option<Rules>, clients: [Client; 2], seed: u64) -> Self {
        let policy = find("sptf").expect("a policy of the table");
        let limits = Limits {
            grace: Some(Grace::default()),
            ..Limits::default()
        };
        let mut belief = invented::profile();
        if seed.is_multiple_of(2) {
            belief.buffer.write_back = WriteBack::All;
        }
        let belief = Arc::new(belief);
        let mut engine = Engine::new(belief, &|| policy.make(), limits);
        if let Some(rules) = rules {
            engine = engine.with_background(rules);
        }
        Pair {
            engine,
            drive: SimpleDrive::new(invented::profile()),
            now: Instant::ZERO,
            dice: seed,
            clients,
            places: Places::Common,
            submitted: [0; 2],
            ended: [0; 2],
            requests: Vec::new(),
            contents: BTreeMap::new(),
            read: BTreeMap::new(),
            at_drive: BTreeMap::new(),
            responses: 0,
            durable: 0,
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

    fn submit(&mut self, client: usize) {
        let Client { class, writes, .. } = self.clients[client];
        let apart = self.engine.belief().profile().geometry.sectors().0 / SITES;
        let owner = match self.places {
            Places::Common => self.throw(2),
            Places::Own | Places::OverTrackEnds => client as u64,
        };
        let place = (2 * self.throw(SITES / 2) + owner) * apart;
        let (start, length) = match client == 1 && self.places == Places::OverTrackEnds {
            true => {
                let geometry = &self.engine.belief().profile().geometry;
                let track = geometry.track_of(Lba(place)).expect("a track");
                (track.last.0 - self.throw(SITE / 2), SITE)
            }
            false => (place + self.throw(SITE / 2), 1 + self.throw(SITE / 2)),
        };
        let direction = match self.throw(100) < writes {
            true => Direction::Write,
            false => Direction::Read,
        };
        let request = Request {
            id: RequestId(self.requests.len() as u64),
            direction,
            extent: extent(start, length),
            class,
            durability: Durability::Volatile,
            owner: Owner::process(client as u32),
        };
        self.requests.push(request);
        self.submitted[client] += 1;
        self.engine.submit(self.now, request).expect("room");
    }

    fn begin(&mut self, command: Command) {
        let request = self.engine.request_of(command.id);
        let request = request.map(|request| request.id.0);
        // A drive that caches writes would write when it likes, and the gap would be over.
        if let Action::Write { durability, .. } = command.action {
            let belief = self.engine.belief().profile();
            let is_cached = belief.buffer.write_back != WriteBack::None;
            let is_in_gap = self.engine.dispatch().is_in_gap(command.id);
            let is_durable = durability == Durability::Durable;
            assert_eq!(is_durable, is_cached && is_in_gap);
            self.durable += u64::from(is_durable);
        }
        self.drive.submit(self.now, command).expect("room");
        self.at_drive.insert(command.id, (command, request));
    }

    fn end(&mut self, id: CommandId) {
        let (command, request) = self.at_drive.remove(&id).expect("a command");
        let Some(request) = request else { return };
        let (direction, extent) = match command.action {
            Action::Read { extent, .. } => (Direction::Read, extent),
            Action::Write { extent, .. } => (Direction::Write, extent),
            other => panic!("{other:?} is not what an engine says"),
        };
        // Free blocks may be before it; of a request in a gap it is a part.
        let whole = self.requests[request as usize].extent;
        let own = whole.intersection(extent).expect("blocks of the request");
        for block in own.start().0..own.end().0 {
            let content = self.contents.get(&block).copied().unwrap_or(u64::MAX);
            match direction {
                Direction::Read => drop(self.read.insert((request, block), content)),
                Direction::Write => drop(self.contents.insert(block, request)),
            }
        }
    }

    fn run(&mut self) {
        loop {
            while let Some(outcome) = self.drive.poll(self.now) {
                self.end(outcome.id);
                self.engine.complete(self.now, outcome.id, outcome);
            }
            while let Some(finished) = self.engine.poll_finished() {
                assert_eq!(finished.status, Status::Good);
                let is_first = finished.request.class == self.clients[0].class;
                self.ended[usize::from(!is_first)] += 1;
                if is_first {
                    self.responses += finished.response().as_nanos();
                }
            }
            for client in 0..2 {
                let Client { held, requests, .. } = self.clients[client];
                while self.submitted[client] < requests
                    && self.submitted[client] - self.ended[client] < held
                {
                    self.submit(client);
                }
            }
            while let Some(command) = self.engine.poll(self.now) {
                self.begin(command);
            }
            let next = [self.drive.next_wakeup(), self.engine.next_wakeup()];
            let Some(next) = next.into_iter().flatten().min() else {
                return;
            };
            assert!(next > self.now, "a stale wakeup");
            self.now = next;
        }
    }

    /// What is on the drive and what was read, first come, first served.
    fn check(&self) {
        assert_eq!(self.engine.held(), 0);
        let (mut contents, mut read) = (BTreeMap::new(), BTreeMap::new());
        for request in &self.requests {
            for block in request.extent.start().0..request.extent.end().0 {
                let id = request.id.0;
                match request.direction {
                    Direction::Write => drop(contents.insert(block, id)),
                    Direction::Read => {
                        let content = contents.get(&block).copied().unwrap_or(u64::MAX);
                        read.insert((id, block), content);
                    }
                }
            }
        }
        assert!(self.read == read, "read what a FIFO would not");
        assert!(self.contents == contents, "written as a FIFO would not");
    }

    fn served(&self) -> u64 {
        self.engine.background().gaps().requests
    }
}

#[test]
fn what_goes_in_gaps_keeps_the_order_of_overlapping_requests() {
    for seed in 0..8 {
        let mut pair = Pair::new(Some(exact()), [foreground(600), background(600)], seed);
        pair.run();
        pair.check();
        assert_eq!(pair.ended, [600, 600]);
        assert!(pair.served() > 40, "{} in gaps", pair.served());
        assert_eq!(pair.durable > 0, seed.is_multiple_of(2));
    }
}

#[test]
fn no_foreground_request_is_later_for_one_if_nothing_of_the_drive_is_unknown() {
    let run = |requests| {
        let clients = [foreground(1_500), background(requests)];
        let mut pair = Pair::new(Some(exact()), clients, 1);
        // Whoever overlaps an earlier request waits for that.
        pair.places = Places::Own;
        pair.run();
        pair.check();
        pair
    };
    let (alone, beside) = (run(0), run(400));
    let later = beside.responses as f64 / alone.responses as f64;
    assert!(later < 1.02, "{later}");
    let gaps = beside.engine.background().gaps();
    assert!(gaps.requests > 200, "{gaps:?}");
    assert_eq!(gaps.mispredicted, 0);
    let [reads, writes] = gaps.request_blocks;
    assert!(reads > 0 && writes > reads, "{reads}, {writes}");
}

/// Their parts would be smaller than a page, so they go as a whole: others would wait until only such are left.
#[test]
fn requests_over_the_end_of_a_track_go_in_gaps() {
    let clients = [foreground(4_000), background(100)];
    let mut pair = Pair::new(Some(exact()), clients, 9);
    pair.places = Places::OverTrackEnds;
    pair.run();
    pair.check();
    assert!(pair.served() >= 100, "{} in gaps", pair.served());
}

/// Tasks and requests have turns, so that neither waits for the end of the other.
#[test]
fn tasks_and_requests_share_the_gaps() {
    let mut pair = Pair::new(Some(exact()), [foreground(1_500), background(400)], 5);
    let geometry = pair.engine.belief().profile().geometry.clone();
    let mut wanted = WantedBlocks::none(&geometry);
    wanted
        .add(extent(0, geometry.sectors().0))
        .expect("all blocks");
    let order = Order {
        wanted,
        priority: 0,
        deadline: None,
    };
    pair.engine.begin_task(pair.now, order).expect("a task");
    pair.run();
    pair.check();
    let (served, account) = (pair.served(), pair.engine.background().account());
    assert!(
        served > 100 && account.free.blocks.0 > 1_000,
        "{served}, {account:?}"
    );
}

/// A client that gives up a background request takes it out of its gap, too.
#[test]
fn aborted_requests_leave_their_gaps() {
    let mut pair = Pair::new(Some(exact()), [foreground(40), background(40)], 7);
    for _ in 0..40 {
        pair.submit(1);
    }
    for _ in 0..4 {
        pair.submit(0);
    }
    while let Some(command) = pair.engine.poll(pair.now) {
        pair.begin(command);
    }
    let held = pair.engine.held();
    let aborted = (0..40).filter(|&id| pair.engine.abort(pair.now, RequestId(id)).is_ok());
    let aborted = aborted.count();
    let mut ended = 0;
    while pair.engine.poll_finished().is_some() {
        ended += 1;
    }
    assert_eq!(ended, aborted);
    assert_eq!(pair.engine.held(), held - aborted);
}
