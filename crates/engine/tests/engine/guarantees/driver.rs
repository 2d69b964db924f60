//! A driver as simple as possible: one command at the drive at a time, chosen by a policy among all
//! that is safe, beside applications that play and record. It is not the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::{
    Action, Class, Command, CommandId, Direction, Durability, Duration, Extent, Instant, Lba,
    Sectors, StreamMode, Terms,
};
use drive::firmware::QueueOrder;
use drive::{Position, Profile, SeekTarget, VirtualDrive, catalog};
use engine::guarantees::{BelievedTracks, FOREGROUND_BYTES, head_times, slowest_zone};
use stream::admission::Rules;
use stream::location::Piece;
use stream::playout::{AccessId, Served, Standing};
use stream::quota::Quotas;
use stream::rounds::Slot;
use stream::streams::{Answer, Attach, Order, Settings, StreamId, Streams, Transfer, TransferId};
use stream::{LocationMap, Rate, Zone};

use super::setup::{Policy, Result, Setup};

const PAGE: u64 = 4096;
/// What an application reads at once (ABISS, 4: rdrt's reads).
const READ: u64 = 64 * 1024;
/// How often applications report where they are.
const LATENCY: Duration = Duration::from_millis(10);
/// Foreground commands that always wait.
const GREED: usize = 8;

/// Seconds in which all buffers have to be full.
const FILLING: u64 = 1_000;

/// Numbers that look random (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Something that waits, and how much the policy wants it: the least rank most.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    who: Who,
    slot: Option<Slot>,
    rank: u64,
    worst: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Who {
    Foreground(usize),
    Transfer(TransferId),
}

struct Application {
    stream: StreamId,
    direction: Direction,
    began: Option<Instant>,
    /// Where it reads or writes next.
    next: u64,
}

/// What waits or is at the drive.
#[derive(Clone, Copy, Debug)]
enum Job {
    Foreground(Extent),
    Transfer(Transfer),
}

pub struct Driver {
    setup: Setup,
    rate: Rate,
    belief: Arc<Profile>,
    drive: VirtualDrive,
    streams: Streams<BelievedTracks>,
    applications: Vec<Application>,
    transfers: BTreeMap<TransferId, Transfer>,
    foreground: Vec<Extent>,
    head: Position,
    now: Instant,
    tick: Instant,
    dice: Dice,
    commands: u64,
    result: Result,
}

fn the_drive() -> Arc<Profile> {
    let entry = catalog::find("modern-20tb").expect("a shipped drive");
    Arc::new(entry.profile().expect("a valid profile"))
}

/// The blocks of the innermost zone.
fn inner_zone(belief: &Profile) -> Extent {
    let blocks = belief.geometry.sectors().0;
    let first = belief.geometry.zones().last().expect("a zone").first.0;
    Extent::new(Lba(first), Sectors(blocks - first)).expect("blocks")
}

impl Driver {
    /// Streams of `rate` bytes in a second, as many as are granted.
    pub fn new(setup: Setup, rate: u64) -> Driver {
        let belief = the_drive();
        let times = head_times(&belief, setup.beyond).expect("a seek curve");
        let rules = Rules {
            foreground_permille: setup.foreground_permille,
            latency: LATENCY,
            longest_round: Duration::from_secs(10),
            streams: setup.mix.most(),
        };
        let settings = Settings {
            page: PAGE,
            fill: FOREGROUND_BYTES,
            priority: 3,
        };
        let drive =
            VirtualDrive::imperfect(belief.clone(), setup.imperfections.clone(), setup.seed);
        let mut driver = Driver {
            rate: Rate::new(rate).expect("not zero"),
            drive: drive.with_queue(1, QueueOrder::Fcfs),
            streams: Streams::new(
                times,
                rules,
                Quotas::open(),
                settings,
                BelievedTracks(belief.clone()),
            ),
            belief,
            applications: Vec::new(),
            transfers: BTreeMap::new(),
            foreground: Vec::new(),
            head: Position::default(),
            now: Instant::ZERO,
            tick: Instant::ZERO,
            dice: Dice(setup.seed * 2_654_435_769),
            commands: 0,
            result: Result::default(),
            setup,
        };
        driver.attach_all();
        driver
    }

    /// As many streams as are granted; and then some, granted on a false belief.
    fn attach_all(&mut self) {
        let zone = |direction| {
            let place = inner_zone(&self.belief);
            slowest_zone(&self.belief, place, self.setup.beyond, direction)
        };
        let zone = zone(Direction::Read).and(zone(Direction::Write));
        while self.attach(zone) {}
        let granted = self.applications.len();
        let wanted = (granted * self.setup.streams_permille).div_ceil(1_000);
        if wanted > granted {
            // All anew, on a medium that is thought to be faster than it is: by so much that they
            // just fit.
            let mut promille = 1_000;
            while self.applications.len() < wanted {
                for application in std::mem::take(&mut self.applications) {
                    let closed = self.streams.close(self.now, application.stream);
                    closed.expect("it is open");
                }
                promille += 5;
                let faster = faster(zone, promille);
                while self.applications.len() < wanted && self.attach(faster) {}
            }
        }
        self.result.streams = self.applications.len();
    }

    fn attach(&mut self, zone: Zone) -> bool {
        let seconds = self.setup.lasts.as_nanos() / 1_000_000_000 + FILLING;
        let bytes = (self.rate.bytes() * seconds + self.setup.memory).next_multiple_of(PAGE);
        let inner = inner_zone(&self.belief);
        let room = inner.length().0 - bytes / PAGE;
        let start = Lba(inner.start().0 + self.dice.below(room));
        let extent = Extent::new(start, Sectors(bytes / PAGE)).expect("blocks");
        let map = LocationMap::new(vec![Piece { offset: 0, extent }], PAGE, bytes);
        let direction = self.setup.mix.direction(self.applications.len());
        let attached = self.streams.attach(
            self.now,
            Attach {
                user: 0,
                terms: Terms {
                    mode: match direction {
                        Direction::Read => StreamMode::Play,
                        Direction::Write => StreamMode::Record,
                    },
                    memory: Some(self.setup.memory),
                    ..Terms::play(self.rate.bytes(), READ)
                },
                map: map.expect("a valid map"),
            },
            zone,
        );
        let Ok(attached) = attached else {
            return false;
        };
        self.applications.push(Application {
            stream: attached.stream,
            direction,
            began: None,
            next: 0,
        });
        true
    }

    /// Plays until all has lasted, from when all are served.
    pub fn run(mut self) -> Result {
        // Until all are served nobody competes with the filling.
        while self
            .applications
            .iter()
            .any(|application| application.began.is_none())
        {
            let passed = self.now.since(Instant::ZERO);
            assert!(
                passed < Duration::from_secs(FILLING),
                "filling takes too long"
            );
            self.step();
        }
        let whole = self.belief.geometry.sectors().0 - FOREGROUND_BYTES / PAGE;
        while self.foreground.len() < GREED {
            let at = self.dice.below(whole);
            self.foreground.push(foreground_at(at));
        }
        let began = self.now;
        self.result = Result {
            streams: self.result.streams,
            ..Result::default()
        };
        while self.now.since(began) < self.setup.lasts {
            self.step();
        }
        Result {
            late: self.streams.late(),
            time: self.now.since(began),
            ..self.result
        }
    }

    /// One decision, and all that happens until the command has ended.
    fn step(&mut self) {
        self.catch_up(self.now);
        let Some(job) = self.choose() else {
            // Nothing is safe, or there is nothing: until something changes.
            let next = self
                .streams
                .next_wakeup()
                .map_or(self.tick, |at| at.min(self.tick));
            self.catch_up(next.max(self.now));
            return;
        };
        let (extent, direction) = match job {
            Job::Foreground(extent) => (extent, Direction::Read),
            Job::Transfer(transfer) => (transfer.extent, transfer.direction),
        };
        let durability = Durability::Durable;
        self.commands += 1;
        let action = match direction {
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        let command = Command::new(CommandId(self.commands), action);
        self.drive.submit(self.now, command).expect("it is free");
        let began = self.now;
        let outcome = loop {
            if let Some(outcome) = self.drive.poll(self.now) {
                break outcome;
            }
            let wakeup = self.drive.next_wakeup().expect("it has a command");
            self.catch_up(wakeup);
        };
        assert_eq!(outcome.status, block::Status::Good);
        let place = self
            .belief
            .geometry
            .locate(extent.last())
            .expect("on the drive");
        self.head = SeekTarget::from(&place).position;
        match job {
            Job::Foreground(_) => self.result.foreground += 1,
            Job::Transfer(transfer) => {
                self.result.head += outcome.at.since(began);
                self.result.batches += u64::from(matches!(transfer.class, Class::RealTime { .. }));
                self.streams
                    .complete(self.now, transfer.id, outcome.status, Duration::ZERO);
            }
        }
    }

    /// Applications, rounds and answers until `until`; then it is `until`.
    fn catch_up(&mut self, until: Instant) {
        loop {
            while let Some(order) = self.streams.poll(self.now) {
                match order {
                    Order::Transfer(transfer) => {
                        self.transfers.insert(transfer.id, transfer);
                    }
                    Order::Raise { id, class } => {
                        if let Some(transfer) = self.transfers.get_mut(&id) {
                            transfer.class = class;
                        }
                    }
                }
            }
            while let Some(answer) = self.streams.poll_answer() {
                if let Answer::Access { served, .. } = answer {
                    assert_ne!(served, Served::PastEnd, "files are too short");
                    self.result.waited += u64::from(served != Served::Memory);
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
                self.tick += LATENCY;
                self.report();
            }
        }
        self.now = self.now.max(until);
    }

    /// Every application plays on, and reads or writes what it is due.
    fn report(&mut self) {
        for application in &mut self.applications {
            let stream = application.stream;
            if application.began.is_none()
                && self.streams.standing(stream) == Some(Standing::Serving)
            {
                application.began = Some(self.now);
            }
            let Some(began) = application.began else {
                continue;
            };
            let point = self.rate.bytes_within(self.now.since(began));
            match application.direction {
                Direction::Read => {
                    let moved = self.streams.position(self.now, stream, point);
                    moved.expect("it is open");
                    if point < application.next {
                        continue;
                    }
                    application.next += READ;
                    let read = (point + self.setup.further, READ - PAGE);
                    let access = AccessId(self.result.accesses);
                    let taken = self.streams.read(self.now, stream, access, read);
                    taken.expect("it is taken");
                }
                Direction::Write => {
                    if point + self.setup.further < application.next + READ {
                        continue;
                    }
                    let access = AccessId(self.result.accesses);
                    let write = (application.next, READ);
                    application.next += READ;
                    let taken = self.streams.write(self.now, stream, access, write);
                    taken.expect("it is taken");
                }
            }
            self.result.accesses += 1;
        }
    }

    /// What goes next: whatever the policy wants most of all that is safe, or the batch that has to.
    fn choose(&mut self) -> Option<Job> {
        let mut wanted = self.wanted();
        wanted.sort_unstable_by_key(|wanted| wanted.rank);
        let rounds = self.streams.rounds();
        let safe = wanted.into_iter().find(|wanted| match wanted.slot {
            None => rounds.safe(self.now, wanted.worst),
            Some(slot) => rounds.may_join(self.now, wanted.worst, slot),
        });
        let id = match safe.map(|wanted| wanted.who) {
            Some(Who::Foreground(index)) => {
                let whole = self.belief.geometry.sectors().0 - FOREGROUND_BYTES / PAGE;
                let extent = self.foreground.remove(index);
                let at = self.dice.below(whole);
                self.foreground.push(foreground_at(at));
                return Some(Job::Foreground(extent));
            }
            Some(Who::Transfer(id)) => id,
            None => TransferId(rounds.first(self.head.cylinder)?.key),
        };
        self.streams.started(id);
        self.transfers.remove(&id).map(Job::Transfer)
    }

    /// All that waits.
    fn wanted(&self) -> Vec<Wanted> {
        let times = self.streams.admission().times();
        let access = times.revolution + times.read.overhead + times.foreground;
        let foreground = self.foreground.iter().enumerate();
        let mut wanted: Vec<Wanted> = foreground
            .map(|(index, &extent)| {
                let who = Who::Foreground(index);
                self.want(who, extent, index as u64, access)
            })
            .collect();
        let best_effort = self.transfers.iter();
        let best_effort =
            best_effort.filter(|(_, transfer)| matches!(transfer.class, Class::BestEffort(_)));
        wanted
            .extend(best_effort.map(|(&id, transfer)| {
                self.want(Who::Transfer(id), transfer.extent, id.0, access)
            }));
        for (slot, batch) in self.streams.rounds().waiting() {
            let id = TransferId(batch.key);
            let extent = self.transfers[&id].extent;
            let one = self.want(Who::Transfer(id), extent, id.0, batch.work);
            let last = match self.setup.policy {
                Policy::Sptf => 0,
                Policy::Farthest | Policy::Fcfs => u64::MAX / 2,
            };
            wanted.push(Wanted {
                slot: Some(slot),
                rank: one.rank + last,
                ..one
            });
        }
        wanted
    }

    /// One that waits, and takes at most `access` besides its seek.
    fn want(&self, who: Who, extent: Extent, order: u64, access: Duration) -> Wanted {
        let place = self
            .belief
            .geometry
            .locate(extent.start())
            .expect("on the drive");
        let target = SeekTarget::from(&place);
        let cost = self
            .belief
            .positioning(self.head, self.now, &target, Direction::Read);
        let distance = self.head.cylinder.abs_diff(target.position.cylinder);
        let times = self.streams.admission().times();
        Wanted {
            who,
            slot: None,
            rank: match self.setup.policy {
                Policy::Sptf => cost.total().as_nanos(),
                Policy::Farthest => u64::from(u32::MAX - distance),
                Policy::Fcfs => order,
            },
            worst: times.seek.at(distance) + access,
        }
    }
}

fn foreground_at(at: u64) -> Extent {
    Extent::new(Lba(at), Sectors(FOREGROUND_BYTES / PAGE)).expect("blocks")
}

/// The zone of a medium that is faster by so much, in thousandths of the true one.
fn faster(zone: Zone, promille: u64) -> Zone {
    let faster = |rate: Rate| Rate::new(rate.bytes() * promille / 1_000).expect("not zero");
    Zone {
        sustained: faster(zone.sustained),
        tracks: zone.tracks.map(|tracks| stream::WholeTracks {
            time: Duration::from_nanos(tracks.time.as_nanos() * 1_000 / promille),
            sustained: faster(tracks.sustained),
            ..tracks
        }),
        ..zone
    }
}
