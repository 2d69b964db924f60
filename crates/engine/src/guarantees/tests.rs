//! The stage alone: when others may have the drive, and which batch goes if they may not.

use std::collections::BTreeSet;

use block::{Class, Direction, Durability, Duration, Owner, Sectors, Status, Terms};
use stream::admission::Rules;
use stream::playout::Standing;
use stream::quota::Quotas;
use stream::streams::{Attach, Settings};
use stream::{LocationMap, Piece};

use super::*;
use crate::command::Purpose;
use crate::context::tests::{StageBench, blocks, profile};
use crate::intake::slots::{End, Parts};
use drive::firmware::WriteBack;
use streams::NotGranted;

const MB: u64 = 1_000_000;

/// The stage, with what it looks at; nothing is in parts.
struct StreamBench {
    bench: StageBench,
    guarantees: Guarantees,
}

fn promise() -> Promise {
    Promise {
        beyond: Beyond::default(),
        rules: Rules {
            foreground_permille: 0,
            latency: Duration::from_millis(10),
            longest_round: Duration::from_secs(10),
            streams: 1_000,
        },
        quotas: Quotas::open(),
        settings: Settings {
            page: 4096,
            fill: FOREGROUND_BYTES,
            priority: 0,
        },
        place: None,
    }
}

/// A stream at 1 MB/s in the n-th place.
fn film(number: u64) -> Attach {
    let piece = Piece {
        offset: 0,
        extent: blocks(number * 40_000_000, 25_000),
    };
    Attach {
        user: 0,
        terms: Terms {
            name: "film".to_owned(),
            memory: Some(4 * MB),
            ..Terms::play(MB, 64 * 1024)
        },
        map: LocationMap::new(vec![piece], 4096, 100 * MB).expect("a valid map"),
    }
}

impl StreamBench {
    fn new(write_back: WriteBack) -> Self {
        let mut profile = profile();
        profile.buffer.write_back = write_back;
        let bench = StageBench::of(profile);
        let guarantees = Guarantees::by(promise(), &bench.belief, Instant::ZERO);
        StreamBench {
            guarantees: guarantees.expect("a seek curve"),
            bench,
        }
    }

    /// As many streams as are admitted, and the leftover of the buffer flushed.
    fn full(write_back: WriteBack) -> Self {
        let mut bench = StreamBench::new(write_back);
        let mut count = 0;
        while bench.attach(film(count)).is_ok() {
            count += 1;
        }
        assert!(count > 10, "{count} streams");
        bench
    }

    fn attach(&mut self, attach: Attach) -> Result<stream::streams::Attached, NotGranted> {
        let now = self.bench.now;
        self.guarantees.attach(now, &self.bench.belief, attach)
    }

    fn restrict(&mut self) -> Restriction {
        let cx = &mut self.bench.cx();
        self.guarantees.restrict(cx, PartsInProgress::default())
    }

    fn check_chosen(&mut self) -> Restriction {
        let cx = &mut self.bench.cx();
        self.guarantees.check_chosen(cx, PartsInProgress::default())
    }

    /// All that waits is served in no time. Returns whose it was.
    fn serve(&mut self) -> BTreeSet<Owner> {
        let mut owners = BTreeSet::new();
        let mut cx = self.bench.cx();
        while let Some(piece) = cx.choose() {
            let slot = cx.ordering.request_slot(piece);
            cx.ordering.give(cx.now, piece);
            cx.ordering.end(cx.now, piece);
            let end = End {
                at: cx.now,
                status: Status::Good,
                waited: Duration::ZERO,
                waited_order: Duration::ZERO,
                account: None,
            };
            owners.insert(cx.intake.slots.get(slot).request.owner);
            assert_eq!(cx.intake.slots.part_ended(slot, end), Parts::All);
            self.guarantees.end_request(&mut cx, slot);
        }
        owners
    }

    /// Fills all buffers, plays, and serves nothing from then on until others must not have the drive:
    /// what is demanded then.
    fn crowded(&mut self) -> Restriction {
        let streams: Vec<_> = self.guarantees.streams().map(|it| it.stream).collect();
        let mut played = None;
        for tick in 0..6_000 {
            self.bench.now += Duration::from_millis(10);
            let now = self.bench.now;
            self.guarantees.freeze_rounds(&mut self.bench.cx());
            let standing = |&stream: &_| self.guarantees.standing(stream);
            let mut standings = streams.iter().map(standing);
            if played.is_none() && standings.all(|it| it == Some(Standing::Serving)) {
                played = Some(tick);
            }
            let Some(began) = played else {
                self.serve();
                continue;
            };
            for &stream in &streams {
                let point = StreamInput::Position((tick - began) * MB / 100);
                let moved = self.guarantees.stream(now, stream, point);
                moved.expect("it is open");
            }
            match self.restrict() {
                Restriction::None => {}
                demanded => return demanded,
            }
        }
        panic!("there was always room");
    }

    /// A command ends.
    fn end(&mut self, id: CommandId) {
        let sent = self.bench.dispatch.take(id);
        self.guarantees.note_end(&self.bench.cx(), &sent);
    }

    /// A chosen batch is given to the drive.
    fn give(&mut self, piece: scheduler::PieceId) {
        let now = self.bench.now;
        self.bench.ordering.give(now, piece);
        let (_, extent) = self.bench.ordering.blocks(piece);
        let unplanned = None;
        let purpose = Purpose::Request { piece, unplanned };
        let cx = self.bench.cx();
        let (way, durability) = (Direction::Read, Durability::Durable);
        let worst = self
            .guarantees
            .note_given(&cx, &purpose, (way, extent), durability);
        assert!(worst > Duration::ZERO);
        self.bench.send(purpose, extent);
    }
}

#[test]
fn without_a_promise_nothing_is_granted_and_nothing_restricted() {
    let mut bench = StreamBench::new(WriteBack::All);
    bench.guarantees = Guarantees::none();
    assert_eq!(bench.attach(film(0)), Err(NotGranted::NoPromise));
    assert!(!bench.guarantees.is_on() && !bench.guarantees.serves_streams());
    bench.guarantees.freeze_rounds(&mut bench.bench.cx());
    assert_eq!(bench.restrict(), Restriction::None);
    assert_eq!(bench.check_chosen(), Restriction::None);
    assert_eq!(bench.guarantees.next_wakeup(), None);
    assert_eq!(bench.guarantees.poll(), None);
    let piece = bench
        .bench
        .submit(Direction::Read, blocks(0, 8), Class::default());
    let whole = blocks(0, 1 << 20);
    let longest = bench
        .guarantees
        .longest_part(&bench.bench.cx(), piece, whole);
    assert_eq!(longest, u64::MAX);
}

#[test]
fn what_the_buffer_held_before_the_first_stream_is_flushed_before_all_else() {
    let mut bench = StreamBench::new(WriteBack::All);
    assert_eq!(bench.restrict(), Restriction::None);
    bench.attach(film(0)).expect("there is room for one");
    assert_eq!(bench.restrict(), Restriction::Flush);
    let flush = bench.bench.send(Purpose::Flush, blocks(0, 1));
    assert_eq!(bench.restrict(), Restriction::Wait);
    bench.end(flush);
    assert_eq!(bench.restrict(), Restriction::None);

    // A drive that buffers no writes has nothing to flush.
    let mut bench = StreamBench::new(WriteBack::None);
    bench.attach(film(0)).expect("there is room for one");
    assert_eq!(bench.restrict(), Restriction::None);
}

/// Whatever a stream's end has told nobody yet: what is buffered while none is guaranteed is flushed.
#[test]
fn what_is_buffered_between_two_streams_is_flushed_as_well() {
    let mut bench = StreamBench::new(WriteBack::All);
    let attached = bench.attach(film(0)).expect("there is room for one");
    assert_eq!(bench.restrict(), Restriction::Flush);
    let flush = bench.bench.send(Purpose::Flush, blocks(0, 1));
    bench.end(flush);
    let now = bench.bench.now;
    let left = bench
        .guarantees
        .stream(now, attached.stream, StreamInput::Detach);
    left.expect("it is open");
    assert!(!bench.guarantees.serves_streams());
    let (hop, extent) = (Purpose::Hop, blocks(0, 8));
    let write = (Direction::Write, extent);
    let cx = bench.bench.cx();
    bench
        .guarantees
        .note_given(&cx, &hop, write, Durability::Volatile);
    let write = bench.bench.send(hop, extent);
    assert_eq!(bench.restrict(), Restriction::None);
    bench.attach(film(0)).expect("there is room for one");
    assert_eq!(
        bench.restrict(),
        Restriction::Wait,
        "it may be buffered yet"
    );
    bench.end(write);
    assert_eq!(bench.restrict(), Restriction::Flush);
}

/// The buffer may have answered the command before, and look-ahead may have moved the arm.
#[test]
fn a_command_is_counted_from_anywhere_whatever_is_believed_of_the_arm() {
    let mut bench = StreamBench::new(WriteBack::None);
    let extent = blocks(0, 8);
    let worst = |bench: &mut StreamBench| {
        let cx = bench.bench.cx();
        let read = (Direction::Read, extent);
        bench
            .guarantees
            .note_given(&cx, &Purpose::Hop, read, Durability::Durable)
    };
    let near = worst(&mut bench);
    let last = bench.bench.belief.capacity().0 - 8;
    let position = bench.bench.route(blocks(last, 8)).target().position;
    bench.bench.belief.head.position = position;
    assert_eq!(worst(&mut bench), near);
    let times = head_times(bench.bench.belief.profile(), Beyond::default());
    assert!(near > times.expect("a seek curve").seek.longest());
}

#[test]
fn each_stream_owns_its_reads() {
    let mut bench = StreamBench::new(WriteBack::None);
    let mut expected = BTreeSet::new();
    for number in 0..2 {
        let attached = bench.attach(film(number)).expect("there is room for two");
        expected.insert(Owner::stream(attached.stream.0));
    }
    bench.bench.now += Duration::from_millis(10);
    bench.guarantees.freeze_rounds(&mut bench.bench.cx());
    assert_eq!(bench.serve(), expected);
}

#[test]
fn others_are_cut_to_their_longest_command_while_there_are_streams() {
    let mut bench = StreamBench::new(WriteBack::None);
    let piece = bench
        .bench
        .submit(Direction::Read, blocks(0, 8), Class::default());
    let whole = blocks(0, 1 << 20);
    let none = bench
        .guarantees
        .longest_part(&bench.bench.cx(), piece, whole);
    bench.attach(film(0)).expect("there is room for one");
    let one = bench
        .guarantees
        .longest_part(&bench.bench.cx(), piece, whole);
    assert_eq!((none, one), (u64::MAX, FOREGROUND_BYTES / 4096));
    assert!(bench.guarantees.longest_of_others() > Duration::ZERO);
}

#[test]
fn batches_go_in_the_order_of_their_sweep_where_a_command_of_others_makes_one_late() {
    let mut bench = StreamBench::full(WriteBack::None);
    let mut cylinders = Vec::new();
    let mut demanded = bench.crowded();
    while cylinders.len() < 2 {
        let Restriction::Piece(piece) = demanded else {
            panic!("{demanded:?}");
        };
        assert!(bench.guarantees.is_batch(&bench.bench.cx(), piece));
        cylinders.push(bench.bench.belief.route(piece).target().position.cylinder);
        bench.give(piece);
        demanded = bench.restrict();
    }
    // Two are at the drive: more would leave their order to it.
    assert_eq!(demanded, Restriction::Wait);
    let head = bench.bench.cx().belief.head.position.cylinder;
    let ways = cylinders.iter().map(|cylinder| cylinder.abs_diff(head));
    assert!(ways.is_sorted(), "{cylinders:?} from {head}");
}

#[test]
fn a_choice_of_others_is_given_up_for_a_batch() {
    let mut bench = StreamBench::full(WriteBack::None);
    bench.bench.now = Instant::ZERO;
    let other = bench
        .bench
        .submit_chosen(Direction::Read, blocks(4_000_000_000, 8));
    let Restriction::Piece(batch) = bench.crowded() else {
        panic!("a batch is due");
    };
    assert_ne!(batch, other);
    assert_eq!(bench.bench.dispatch.chosen_piece(), None);
    assert_eq!(
        bench.bench.ordering.stage(other),
        scheduler::ordering::PieceState::Waiting
    );
    assert!(!bench.guarantees.is_batch(&bench.bench.cx(), other));
}

#[test]
fn long_free_reads_leave_no_room_while_batches_wait_and_short_ones_do() {
    let mut bench = StreamBench::full(WriteBack::None);
    bench.crowded();
    let short = blocks(0, 8);
    let long = Extent::new(Lba(0), Sectors(1 << 16)).expect("blocks");
    let cx = bench.bench.cx();
    assert!(bench.guarantees.leaves_room(&cx, short));
    assert!(!bench.guarantees.leaves_room(&cx, long));
}

#[test]
fn files_outside_of_the_place_of_streams_and_of_other_blocks_are_refused() {
    let mut bench = StreamBench::new(WriteBack::None);
    let place = blocks(0, 1_000_000);
    let narrow = Promise {
        place: Some(place),
        ..promise()
    };
    let guarantees = Guarantees::by(narrow, &bench.bench.belief, Instant::ZERO);
    bench.guarantees = guarantees.expect("a seek curve");
    assert!(bench.attach(film(0)).is_ok());
    let Err(NotGranted::Outside { place: allowed, .. }) = bench.attach(film(1)) else {
        panic!("the second file is elsewhere");
    };
    assert_eq!(allowed, place);
    let map = LocationMap::new(Vec::new(), 512, MB).expect("a map");
    let refused = bench.attach(Attach { map, ..film(0) });
    let (block, expected) = (512, 4096);
    assert_eq!(refused, Err(NotGranted::Block { block, expected }));
}
