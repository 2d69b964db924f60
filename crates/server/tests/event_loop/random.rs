//! Random operations of several clients at once, beside hostile ones, against a naive model.

mod steps;

use block::Durability;
use block::operation::{Ask, OperationError, ZeroingPace};
use nbd::request::{Asked, Wanted};
use nbd::{HOLE, Style};
use proptest::prelude::*;

pub use steps::Step;
pub use steps::{BLOCKS, steps, steps_beside_streams};
use steps::{Leaving, steps_with_a_belief};

use crate::client::{Client, End};
use crate::hostile;
use crate::model::{Change, Model, Stamp, contents, stamp_of};
use crate::station::{self, BLOCK, LONGEST, Medium, Served};
use crate::streams::Streams;

/// Blocks of what one client may wait for: a quarter of the loop's memory, so that none has to wait
/// for another that takes no replies.
const MOST_HELD: u64 = station::MEMORY as u64 / BLOCK / 4;

/// A client and what it waits for.
struct Caller {
    client: Client,
    style: Style,
    /// Blocks of the volumes before its own.
    base: u64,
    waits: Vec<Wait>,
}

impl Caller {
    /// The blocks of what it waits for.
    fn holds(&self) -> u64 {
        self.waits.iter().map(|wait| wait.count).sum()
    }
}

struct Wait {
    cookie: u64,
    what: Asked,
    /// Of all volumes' blocks.
    first: u64,
    count: u64,
    /// Of what changes blocks.
    change: Option<Change>,
    /// Of what looks at them, what it may find.
    possible: Vec<Vec<Stamp>>,
}

struct World {
    medium: Medium,
    served: Served,
    volumes: u64,
    opened: u64,
    /// Of all volumes, one after the other.
    model: Model,
    callers: Vec<Caller>,
    streams: Streams,
}

impl World {
    /// The volumes take turns.
    fn open(&mut self, style: Style) {
        let volume = self.opened % self.volumes;
        self.opened += 1;
        let socket = self.served.socket();
        let mut client = match (self.medium.is_coarse(), volume) {
            (true, _) => Client::connect_unaware(&socket, style),
            (false, 0) => Client::connect(&socket, style),
            (false, number) => Client::connect_to(&socket, &number.to_string(), style),
        };
        // Whoever was answered is known to the loop.
        client.ask(Asked::Of(Ask::Read), 0, BLOCK, &[]);
        self.callers.push(Caller {
            client,
            style,
            base: volume * BLOCKS,
            waits: Vec::new(),
        });
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::Open(style) if self.callers.len() < 4 => self.open(style),
            Step::Open(_) => (),
            Step::Hostile(hostile) => hostile::meet(&self.served, hostile),
            Step::Stream(step) => self.streams.meet(&self.served, &step),
            Step::Record { who, stream } => {
                let callers = self.callers.len();
                let mut each = (0..callers).map(|more| (who + more) % callers);
                // The volume with streams is the first.
                let Some(who) = each.find(|&who| self.callers[who].base == 0) else {
                    return;
                };
                if let Some((first, count)) = self.streams.next_page(stream) {
                    while self.callers[who].holds() + count > MOST_HELD {
                        self.take(who);
                    }
                    let durability = Durability::Volatile;
                    self.submit(who, Asked::Of(Ask::Write { durability }), first, count);
                }
            }
            Step::Submit {
                who,
                what,
                first,
                count,
            } => {
                let who = who % self.callers.len();
                let is_status = matches!(what, Asked::BlockStatus { .. });
                // Who takes no replies may not hold all memory.
                while self.callers[who].holds() + count > MOST_HELD {
                    self.take(who);
                }
                if !is_status || self.callers[who].style != Style::Simple {
                    self.submit(who, what, first, count);
                }
            }
            // Later ones are refused: the drive has a belief.
            Step::TakeUp => drop(self.served.take_up()),
            Step::Take(who) => {
                let who = who % self.callers.len();
                if !self.callers[who].waits.is_empty() {
                    self.take(who);
                }
            }
            Step::Leave(who, how) => {
                let who = who % self.callers.len();
                self.leave(who, how);
                if self.callers.is_empty() {
                    self.open(Style::Structured);
                }
            }
        }
    }

    fn submit(&mut self, who: usize, what: Asked, in_volume: u64, count: u64) {
        let first = self.callers[who].base + in_volume;
        let mut payload = Vec::new();
        let mut change = None;
        let mut changed = None;
        match what {
            Asked::Of(Ask::Write { .. }) => {
                let stamp = self.model.stamp();
                payload = contents(first, count, stamp);
                changed = Some(stamp);
            }
            Asked::Of(Ask::Zero { .. } | Ask::Trim { .. }) => changed = Some(0),
            _ => (),
        }
        if let Some(stamp) = changed {
            self.may_be_found(first, count, stamp);
            change = Some(self.model.submit(first, count, stamp));
        }
        let looks = matches!(what, Asked::Of(Ask::Read) | Asked::BlockStatus { .. });
        let possible = match looks {
            true => self.model.possible(first, count),
            false => Vec::new(),
        };
        let (offset, length) = match what {
            Asked::Of(Ask::Flush) => (0, 0),
            _ => (in_volume * BLOCK, count * BLOCK),
        };
        let caller = &mut self.callers[who];
        let cookie = caller.client.submit(what, offset, length, &payload);
        caller.waits.push(Wait {
            cookie,
            what,
            first,
            count,
            change,
            possible,
        });
    }

    /// Reads that are under way may find a value that is written now.
    fn may_be_found(&mut self, first: u64, count: u64, stamp: Stamp) {
        for wait in self.callers.iter_mut().flat_map(|c| &mut c.waits) {
            for (block, possible) in (wait.first..).zip(&mut wait.possible) {
                if (first..first + count).contains(&block) {
                    possible.push(stamp);
                }
            }
        }
    }

    fn take(&mut self, who: usize) -> End {
        let caller = &mut self.callers[who];
        let end = caller.client.end().expect("the server answers");
        let place = caller.waits.iter().position(|w| w.cookie == end.cookie);
        let wait = caller.waits.swap_remove(place.expect("it was asked"));
        self.ended(&wait, &end);
        end
    }

    fn ended(&mut self, wait: &Wait, end: &End) {
        let what = wait.what;
        let is_fast = matches!(
            what,
            Asked::Of(Ask::Zero {
                pace: ZeroingPace::Fast,
                ..
            })
        );
        if is_fast && self.medium.is_drive() {
            assert_eq!(
                end.result,
                Err(OperationError::Unsupported),
                "it would take as long as writing"
            );
            if let Some(change) = wait.change {
                self.model.never_was(change);
            }
            return;
        }
        assert_eq!(end.result, Ok(()), "{what:?} {}+{}", wait.first, wait.count);
        match (what, wait.change) {
            // What is trimmed may keep its bytes.
            (Asked::Of(Ask::Trim { .. }), Some(change)) => self.model.end(change),
            (_, Some(change)) => self.model.done(change),
            _ => (),
        }
        if what == Asked::Of(Ask::Read) {
            let blocks = end.bytes.chunks_exact(BLOCK as usize);
            for ((block, bytes), possible) in (wait.first..).zip(blocks).zip(&wait.possible) {
                let found = stamp_of(block, bytes);
                // Memory is sent from where it is: a write beside the read may come in between.
                let is_beside = found.is_none() && possible.len() > 1;
                let is_mixed = is_beside && matches!(self.medium, Medium::Memory);
                assert!(
                    is_mixed || found.is_some_and(|stamp| possible.contains(&stamp)),
                    "block {block} has {found:?}, expected one of {possible:?}"
                );
            }
        }
        if let Asked::BlockStatus { .. } = what {
            assert_states(wait, end);
        }
    }

    fn leave(&mut self, who: usize, how: Leaving) {
        match how {
            Leaving::Politely => self.callers[who].client.say_goodbye(),
            Leaving::ByHalf => self.callers[who].client.close_half(),
            Leaving::Abruptly => (),
            Leaving::WithinPayload => {
                // Nothing of a write whose payload never comes may be done.
                let stamp = self.model.stamp();
                let payload = contents(0, 100, stamp);
                let ask = Asked::Of(Ask::Write {
                    durability: Durability::Volatile,
                });
                let client = &mut self.callers[who].client;
                client.submit(ask, 0, 100 * BLOCK, &payload[..30_000]);
            }
        }
        match how {
            Leaving::Politely | Leaving::ByHalf => {
                while !self.callers[who].waits.is_empty() {
                    self.take(who);
                }
                let mut caller = self.callers.remove(who);
                assert!(caller.client.is_closed_by_server());
            }
            Leaving::Abruptly | Leaving::WithinPayload => {
                let Caller { client, waits, .. } = self.callers.remove(who);
                drop(client);
                self.served.wait_for_connections(self.callers.len());
                for change in waits.iter().filter_map(|wait| wait.change) {
                    self.model.end(change);
                }
            }
        }
        self.served.wait_for_connections(self.callers.len());
    }

    fn finish(mut self) {
        while let Some(who) = self.callers.len().checked_sub(1) {
            self.leave(who, Leaving::ByHalf);
        }
        self.streams.end(&self.served);
        let most = u64::from(LONGEST) / BLOCK;
        let mut last = Vec::new();
        for volume in 0..self.volumes {
            self.opened = volume;
            self.open(Style::Extended);
            for first in (0..BLOCKS).step_by(most as usize) {
                self.submit(0, Asked::Of(Ask::Read), first, most);
                let end = self.take(0);
                last.extend(end.bytes);
            }
            self.leave(0, Leaving::Politely);
        }
        if let Medium::Unknown = self.medium {
            self.served.assert_follows_with_calibrations_only();
        } else {
            self.served.assert_nothing_is_held();
        }
        let folder = self.served.stop();
        self.medium.assert_holds(&folder, &last);
    }
}

/// A hole reads as zeroes, and at least something of what was asked for is told.
fn assert_states(wait: &Wait, end: &End) {
    let mut block = wait.first;
    for state in &end.states {
        assert!(state.length > 0 && state.length.is_multiple_of(BLOCK));
        for possible in
            &wait.possible[(block - wait.first) as usize..][..(state.length / BLOCK) as usize]
        {
            let is_hole = state.state & HOLE != 0;
            assert!(
                !is_hole || possible.contains(&0),
                "a hole with {possible:?}"
            );
        }
        block += state.length / BLOCK;
    }
    assert!(block > wait.first);
    if let Asked::BlockStatus {
        wanted: Wanted::One,
    } = wait.what
    {
        assert_eq!(end.states.len(), 1);
    }
}

pub fn play(medium: Medium, steps: Vec<Step>) {
    play_on(Served::plain(medium, BLOCKS * BLOCK), medium, steps);
}

/// The steps with so many blocks of a medium, however they are served.
pub fn play_on(served: Served, medium: Medium, steps: Vec<Step>) {
    play_on_volumes(served, medium, 1, steps);
}

/// The same with so many volumes, one after the other on a medium; what streams do is done to the first.
pub fn play_on_volumes(served: Served, medium: Medium, volumes: u64, steps: Vec<Step>) {
    let mut world = World {
        medium,
        served,
        volumes,
        opened: 0,
        model: Model::new(volumes * BLOCKS),
        callers: Vec::new(),
        streams: Streams::default(),
    };
    world.open(Style::Structured);
    for step in steps {
        world.take_step(step);
    }
    world.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn memory_holds_what_some_order_of_the_operations_gives(steps in steps()) {
        play(Medium::Memory, steps);
    }

    #[test]
    fn a_file_holds_what_some_order_of_the_operations_gives(steps in steps()) {
        play(Medium::File, steps);
    }

    #[test]
    fn an_emulated_drive_holds_what_some_order_of_the_operations_gives(steps in steps()) {
        play(Medium::Emulated, steps);
    }

    /// Whatever is in the memory of streams that play and record.
    #[test]
    fn a_drive_of_two_actuators_holds_what_some_order_of_the_operations_gives(steps in steps()) {
        play(Medium::TwoActuators, steps);
    }

    #[test]
    fn a_drive_with_streams_holds_what_some_order_of_the_operations_gives(
        steps in steps_beside_streams()
    ) {
        play(Medium::Promising, steps);
    }

    /// A belief is taken up in the middle of the operations.
    #[test]
    fn a_drive_that_takes_up_a_belief_holds_what_some_order_of_the_operations_gives(
        steps in steps_with_a_belief()
    ) {
        play(Medium::Unknown, steps);
    }

    /// A block of these has several of the model's: most operations change parts of some.
    #[test]
    fn parts_of_blocks_of_a_file_hold_what_some_order_gives(steps in steps()) {
        play(Medium::CoarseFile, steps);
    }

    #[test]
    fn parts_of_blocks_of_a_drive_hold_what_some_order_gives(steps in steps()) {
        play(Medium::CoarseDrive, steps);
    }
}

/// Far more than a socket takes, and than the loop's memory holds, is asked for before the client
/// takes any of it.
#[test]
fn replies_that_do_not_fit_into_the_socket_come_all_the_same() {
    for medium in [Medium::Memory, Medium::File] {
        let served = Served::plain(medium, BLOCKS * BLOCK);
        let mut client = Client::connect(&served.socket(), Style::Structured);
        for round in 0..2 {
            let count = 40;
            for _ in 0..count {
                client.submit(Asked::Of(Ask::Read), 0, u64::from(LONGEST), &[]);
            }
            for _ in 0..count {
                let end = client.end().expect("an answer");
                assert_eq!(end.result, Ok(()), "round {round}");
            }
        }
        assert_eq!(client.under_way(), 0);
        drop(client);
        served.assert_nothing_is_held();
    }
}

/// A read or write beyond the limits is refused, and the connection goes on.
#[test]
fn what_makes_no_sense_is_refused_and_the_connection_goes_on() {
    let served = Served::plain(Medium::Memory, BLOCKS * BLOCK);
    for (ask, offset, length, expected) in [
        (
            Ask::Read,
            0,
            u64::from(LONGEST) + BLOCK,
            OperationError::Invalid,
        ),
        (Ask::Read, BLOCKS * BLOCK, BLOCK, OperationError::Invalid),
        (Ask::Read, 1, BLOCK, OperationError::Invalid),
        (
            Ask::Write {
                durability: Durability::Volatile,
            },
            BLOCKS * BLOCK,
            BLOCK,
            OperationError::NoSpace,
        ),
    ] {
        let mut client = Client::connect(&served.socket(), Style::Simple);
        hostile::send_unchecked(&mut client, ask, offset, length);
        assert_eq!(hostile::simple_answer(&mut client), expected, "{ask:?}");
        let end = client.ask(Asked::Of(Ask::Read), 0, BLOCK, &[]);
        assert_eq!(end.result, Ok(()));
    }
    served.assert_nothing_is_held();
}

/// The service is told to stop while clients are in the middle of everything.
#[test]
fn stopping_ends_everything() {
    for round in 0..30 {
        let served = Served::plain(Medium::File, BLOCKS * BLOCK);
        let mut clients: Vec<Client> = (0..4)
            .map(|_| Client::connect(&served.socket(), Style::Structured))
            .collect();
        let payload = contents(0, 64, 1);
        let sender = std::thread::spawn(move || {
            for turn in 0..100 {
                for client in &mut clients {
                    let length = 64 * BLOCK;
                    let mut bytes = Vec::new();
                    hostile::header(
                        &mut bytes,
                        Ask::Write {
                            durability: Durability::Volatile,
                        },
                        Style::Structured,
                        turn,
                        0,
                        length,
                    );
                    bytes.extend_from_slice(&payload);
                    client.send(&bytes);
                }
            }
        });
        if round % 2 == 0 {
            let _ = served.ask(|event_loop| event_loop.holds());
        }
        served.stop();
        sender.join().expect("no panic");
    }
}
