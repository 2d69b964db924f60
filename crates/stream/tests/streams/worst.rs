//! A drive on which everything takes its worst case, beside a foreground that takes every moment
//! that is safe: nothing is late, whoever comes and goes.

use block::{Class, Direction, Duration, Extent, Instant, Status, StreamMode, Terms};
use proptest::prelude::*;
use stream::admission::Rules;
use stream::location::{LocationMap, Piece};
use stream::playout::{AccessId, Served, Standing};
use stream::quota::Quotas;
use stream::streams::{Answer, Attach, Order, Settings, StreamId, Streams, Transfer, TransferId};
use stream::{HeadTimes, Tracks, Zone};

use crate::disk::{BLOCK, Flat, LATENCY, rules, times, zone};

/// What an application reads at once.
const READ: u64 = 16 * BLOCK;

/// Blocks of a file of which the end is not reached.
const FILE: u64 = 200_000;

/// A client.
#[derive(Debug)]
struct Client {
    stream: StreamId,
    direction: Direction,
    rate: u64,
    began: Option<Instant>,
    /// What it has read or written.
    done: u64,
}

#[derive(Clone, Copy, Debug)]
enum Happens {
    /// Somebody comes: rate, how many milliseconds his buffer lasts, where his file is, and of
    /// how many blocks its extents are.
    Comes(StreamMode, u64, u64, u64, u64),
    /// One of those present goes.
    Goes(usize),
}

/// Of what a test differs from others.
#[derive(Clone, Copy)]
struct Setup {
    /// Blocks of every file.
    file: u64,
    rules: Rules,
    zone: Zone,
    page: u64,
    /// What each round loses besides.
    stall: Duration,
}

fn usual() -> Setup {
    Setup {
        file: FILE,
        rules: rules(),
        zone: zone(),
        page: BLOCK,
        stall: Duration::ZERO,
    }
}

struct Slowest {
    setup: Setup,
    times: HeadTimes,
    /// When the last round was frozen, and whether its stall is to come.
    frozen: Instant,
    stalls: u64,
    streams: Streams<Flat>,
    clients: Vec<Client>,
    waiting: Vec<Transfer>,
    head: u32,
    now: Instant,
    tick: Instant,
    accesses: u64,
    waited: u64,
    /// Commands of others.
    others: u64,
    /// Reads that fill buffers.
    filled: u64,
}

impl Slowest {
    fn new(setup: Setup) -> Self {
        let settings = Settings {
            page: setup.page,
            fill: 32 * BLOCK,
            priority: 3,
        };
        let times = HeadTimes {
            stall: setup.stall,
            ..worst_times()
        };
        let quotas = Quotas::open();
        Slowest {
            streams: Streams::new(times.clone(), setup.rules, quotas, settings, Flat),
            setup,
            times,
            frozen: Instant::ZERO,
            stalls: 0,
            clients: Vec::new(),
            waiting: Vec::new(),
            head: 0,
            now: Instant::ZERO,
            tick: Instant::ZERO,
            accesses: 0,
            waited: 0,
            others: 0,
            filled: 0,
        }
    }

    fn happens(&mut self, what: Happens) {
        match what {
            Happens::Comes(mode, rate, lasts, start, blocks) => {
                let file = self.setup.file;
                let blocks = blocks.min(file);
                let pieces = (0..file.div_ceil(blocks)).map(|number| {
                    let start = block::Lba(start + number * (blocks + 50_000));
                    let extent = Extent::new(start, block::Sectors(blocks));
                    Piece {
                        offset: number * blocks * BLOCK,
                        extent: extent.expect("a valid extent"),
                    }
                });
                let map = LocationMap::new(pieces.collect(), BLOCK, file * BLOCK);
                let attached = self.streams.attach(
                    self.now,
                    Attach {
                        user: 0,
                        terms: Terms {
                            mode,
                            memory: Some(READ + rate * lasts / 1_000),
                            ..Terms::play(rate, READ)
                        },
                        map: map.expect("a valid map"),
                    },
                    self.setup.zone,
                );
                if let Ok(attached) = attached {
                    self.clients.push(Client {
                        stream: attached.stream,
                        direction: mode.direction(),
                        rate,
                        began: None,
                        done: 0,
                    });
                }
            }
            Happens::Goes(index) if !self.clients.is_empty() => {
                let client = self.clients.remove(index % self.clients.len());
                let closed = self.streams.close(self.now, client.stream);
                closed.expect("it is open");
            }
            Happens::Goes(_) => {}
        }
    }

    fn run(&mut self, until: Instant) {
        while self.now < until {
            self.catch_up(self.now);
            if !self.serve() {
                let next = self
                    .streams
                    .next_wakeup()
                    .map_or(self.tick, |at| at.min(self.tick));
                self.catch_up(next.max(self.now));
            }
        }
    }

    /// As many readers as are granted come and are served; how many.
    fn fill_and_serve(&mut self, rate: u64, lasts: u64) -> usize {
        for number in 0..100 {
            let start = number * 1_400_000;
            self.happens(Happens::Comes(StreamMode::Play, rate, lasts, start, FILE));
        }
        let count = self.clients.len();
        assert!(count > 10 && count < 100, "{count} of {rate} B/s");
        self.run_until_served();
        count
    }

    /// Runs until all clients are served.
    fn run_until_served(&mut self) {
        while self.clients.iter().any(|client| client.began.is_none()) {
            self.run(self.now + Duration::from_secs(1));
            let waited = self.now.since(Instant::ZERO);
            assert!(waited < Duration::from_secs(900), "it never begins");
        }
    }

    /// Gives the drive whatever is safe, reads that fill buffers and then what others want; and otherwise
    /// what must be. Both take as long as the longest command of others.
    fn serve(&mut self) -> bool {
        let longest = self.times.foreground_worst();
        let best_effort = |transfer: &Transfer| matches!(transfer.class, Class::BestEffort(_));
        if self.streams.rounds().safe(self.now, longest) {
            let filling = self.waiting.iter().position(best_effort);
            self.catch_up(self.now + longest);
            self.head = Flat.cylinder(block::Lba(self.now.as_nanos() % 200_000_000));
            let Some(index) = filling else {
                self.others += 1;
                return true;
            };
            self.filled += 1;
            let id = self.waiting.remove(index).id;
            self.streams
                .complete(self.now, id, Status::Good, Duration::ZERO);
            return true;
        }
        let Some(batch) = self.streams.rounds().first(self.head) else {
            return false;
        };
        let id = TransferId(batch.key);
        self.streams.started(id);
        self.waiting.retain(|transfer| transfer.id != id);
        let seek = self.times.seek.at(self.head.abs_diff(batch.cylinder));
        self.head = batch.cylinder;
        let stalled = self.setup.stall * std::mem::take(&mut self.stalls);
        self.catch_up(self.now + stalled + seek + batch.work);
        self.streams
            .complete(self.now, id, Status::Good, Duration::ZERO);
        true
    }

    /// Clients and rounds until `until`; then it is `until`.
    fn catch_up(&mut self, until: Instant) {
        loop {
            while let Some(order) = self.streams.poll(self.now) {
                match order {
                    Order::Transfer(transfer) => {
                        let is_batch = matches!(transfer.class, Class::RealTime { .. });
                        if is_batch && self.frozen != self.now {
                            (self.frozen, self.stalls) = (self.now, self.stalls + 1);
                        }
                        self.waiting.push(transfer);
                    }
                    Order::Raise { id, class } => {
                        let mut waiting = self.waiting.iter_mut();
                        if let Some(transfer) = waiting.find(|transfer| transfer.id == id) {
                            transfer.class = class;
                        }
                    }
                }
            }
            while let Some(answer) = self.streams.poll_answer() {
                if let Answer::Access { served, .. } = answer {
                    let memory = matches!(served, Served::Memory | Served::PastEnd);
                    self.waited += u64::from(!memory);
                }
            }
            let next = self
                .streams
                .next_wakeup()
                .map_or(self.tick, |at| at.min(self.tick));
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            if self.tick <= self.now {
                self.tick += self.setup.rules.latency;
                self.play();
            }
        }
        self.now = self.now.max(until);
    }

    fn play(&mut self) {
        for client in &mut self.clients {
            let standing = self.streams.standing(client.stream);
            if client.began.is_none() && standing == Some(Standing::Serving) {
                client.began = Some(self.now);
            }
            let Some(began) = client.began else {
                continue;
            };
            let point = client.rate * (self.now.since(began).as_nanos() / 1_000) / 1_000_000;
            self.accesses += 1;
            let access = AccessId(self.accesses);
            match client.direction {
                Direction::Read => {
                    let moved = self.streams.position(self.now, client.stream, point);
                    moved.expect("it is open");
                    let last = (point + READ - BLOCK, BLOCK);
                    let read = self.streams.read(self.now, client.stream, access, last);
                    read.expect("it is taken");
                }
                Direction::Write => {
                    // All that it may at once, as late as it may.
                    let page = self.setup.page;
                    let length = (point + READ.max(page) - client.done) / page * page;
                    if length == 0 {
                        continue;
                    }
                    let next = (client.done, length);
                    client.done += length;
                    let written = self.streams.write(self.now, client.stream, access, next);
                    written.expect("it is taken");
                }
            }
        }
    }
}

/// The longest command of others is a read of a filling buffer.
fn worst_times() -> HeadTimes {
    HeadTimes {
        foreground: zone().sustained.at_most(32 * BLOCK),
        ..times()
    }
}

fn happens() -> impl Strategy<Value = (u64, Happens)> {
    let mode = prop_oneof![Just(StreamMode::Play), Just(StreamMode::Record)];
    let extents = prop_oneof![3 => Just(FILE), 1 => 800u64..FILE];
    let start = 0u64..140_000_000;
    let comes = (mode, 50_000u64..5_000_000, 300u64..6_000, start, extents);
    let what = prop_oneof![
        4 => comes.prop_map(|(mode, rate, lasts, start, blocks)| {
            Happens::Comes(mode, rate, lasts, start, blocks)
        }),
        1 => (0usize..100).prop_map(Happens::Goes),
    ];
    // Most at once, some after a while.
    (prop_oneof![3 => 0u64..20, 1 => 0u64..3_000], what)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_is_late_on_the_slowest_drive(happens in prop::collection::vec(happens(), 1..80)) {
        let mut slowest = Slowest::new(usual());
        for (after, what) in happens {
            slowest.run(slowest.now + Duration::from_millis(after));
            slowest.happens(what);
        }
        slowest.run(slowest.now + Duration::from_secs(20));
        // Buffers fill before others are served here, and large ones fill for longer than that.
        slowest.run_until_served();
        slowest.run(slowest.now + Duration::from_secs(1));
        prop_assert_eq!((slowest.streams.late(), slowest.waited), (0, 0));
        prop_assert!(slowest.others > 0, "{} fillings", slowest.filled);
    }
}

/// The worst of rounds: all streams are due one track more in the same one, and all files end in
/// the same one.
#[test]
fn nothing_is_late_where_all_are_in_step() {
    for (rate, lasts) in [
        (700_000, 2_000),
        (700_000, 4_000),
        (1_000_000, 8_000),
        (1_300_000, 4_000),
    ] {
        // The end of a file has a part of a track for itself.
        for tail in [1, 20, 77, 150] {
            let mut slowest = Slowest::new(Setup {
                file: 30 * rate / BLOCK / 200 * 200 + tail,
                ..usual()
            });
            slowest.fill_and_serve(rate, lasts);
            slowest.run(slowest.now + Duration::from_secs(45));
            assert!(slowest.others > 0, "{} fillings", slowest.filled);
            assert_eq!(
                (slowest.streams.late(), slowest.waited),
                (0, 0),
                "{rate} B/s, {lasts} ms, {tail}"
            );
        }
    }
}

/// Of the head's time others have as much as was promised to them, however many streams there are: while
/// buffers fill they share it with these, and afterwards it is theirs.
#[test]
fn others_have_their_share_of_the_slowest_drive() {
    for (permille, rate, lasts) in [
        (100, 700_000, 2_000),
        (300, 700_000, 4_000),
        (300, 3_000_000, 1_000),
        (500, 1_000_000, 4_000),
        (800, 1_000_000, 8_000),
    ] {
        for mode in [StreamMode::Play, StreamMode::Record] {
            let rules = Rules {
                foreground_permille: permille,
                ..rules()
            };
            let mut slowest = Slowest::new(Setup { rules, ..usual() });
            for number in 0..100 {
                let start = number * 1_400_000;
                slowest.happens(Happens::Comes(mode, rate, lasts, start, FILE));
            }
            let count = slowest.clients.len();
            assert!(count > 0 && count < 64, "{count} of {rate} B/s");
            slowest.run_until_served();
            let (others, filled, since) = (slowest.others, slowest.filled, slowest.now);
            slowest.run(since + Duration::from_secs(100));
            assert_eq!((slowest.streams.late(), slowest.waited), (0, 0));
            assert_eq!(slowest.filled, filled, "nothing is filled any more");
            let theirs = worst_times().foreground_worst() * (slowest.others - others);
            let share = theirs.as_secs_f64() / slowest.now.since(since).as_secs_f64();
            // What has begun in the one or the other round.
            let promised = f64::from(permille) / 1_000.0 - 0.005;
            assert!(
                share >= promised,
                "{share:.3} of {promised:.3}, {count} streams of {rate} B/s for {lasts} ms"
            );
        }
    }
}

/// Whatever a round may lose is counted: a recalibration in each of them, the part of a page by which all
/// batches of the same one are larger, and what the host noticed late in the round before.
#[test]
fn nothing_is_late_where_rounds_stall_pages_are_large_and_the_host_is_late() {
    let uncut = Zone {
        tracks: None,
        ..zone()
    };
    let (none, some) = (Duration::ZERO, Duration::from_millis(300));
    for (zone, page, stall, latency) in [
        (zone(), BLOCK, some, LATENCY),
        (uncut, BLOCK, some, LATENCY),
        (uncut, 128 * BLOCK, none, LATENCY),
        (zone(), BLOCK, none, some),
        (uncut, BLOCK, none, some),
    ] {
        for (rate, lasts) in [(700_000, 6_000), (1_000_000, 4_000)] {
            let mut slowest = Slowest::new(Setup {
                zone,
                page,
                stall,
                rules: Rules {
                    streams: 100,
                    latency,
                    ..rules()
                },
                ..usual()
            });
            let count = slowest.fill_and_serve(rate, lasts);
            slowest.run(slowest.now + Duration::from_secs(60));
            assert_eq!(
                (slowest.streams.late(), slowest.waited),
                (0, 0),
                "{count} streams of {rate} B/s for {lasts} ms, pages of {page}, late by {latency}"
            );
        }
    }
}
