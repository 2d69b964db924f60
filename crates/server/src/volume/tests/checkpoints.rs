//! Checkpoints over a drive by hand: what waits for a moment and for copies, and what the moment shows.

mod bitmaps;
mod shown;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use block::operation::{Ask, OperationError, Space, ZeroingPace};
use block::{Action, Class, Durability};

use crate::checkpoint::CHUNK;
use crate::checkpoint::store::StoreOrder;
use crate::event_loop::by_hand::{Answer, BLOCK, ByHand, Setup, export};
use crate::volume::{CheckpointOrder, Release};

const WRITE: Ask = Ask::Write {
    durability: Durability::Volatile,
};

/// The first byte of the volume on the drive: no multiple of a chunk.
const OFFSET: u64 = 8 * BLOCK;
/// More chunks than copies at a time, and one of them in part.
const BYTES: u64 = 20 * CHUNK - 8192;

/// What was told of a moment: the index of its export.
type Told = Arc<Mutex<Option<Result<usize, String>>>>;

fn by_hand() -> ByHand {
    let mut setup = Setup::of_blocks((OFFSET + BYTES + CHUNK) / BLOCK);
    setup.exports = vec![
        export("v0", OFFSET, BYTES),
        export("v1", OFFSET + BYTES, CHUNK),
    ];
    ByHand::new(setup)
}

fn order(chunks: u64) -> CheckpointOrder {
    CheckpointOrder {
        volume: "v0".to_owned(),
        bytes: OFFSET..OFFSET + BYTES,
        class: Class::BestEffort(5),
        bitmap: None,
        store: StoreOrder {
            folder: None,
            bytes: chunks * CHUNK,
        },
    }
}

fn begin(by_hand: &mut ByHand, order: CheckpointOrder) -> Told {
    let told = Told::default();
    let teller = Arc::clone(&told);
    let opened = Box::new(move |result| {
        let before = teller.lock().expect("no test has panicked").replace(result);
        assert_eq!(before, None, "told once");
    });
    by_hand.volumes().begin_checkpoint(order, opened);
    by_hand.work();
    told
}

fn told(told: &Told) -> Option<Result<usize, String>> {
    told.lock().expect("no test has panicked").clone()
}

/// Orders a checkpoint of a volume without changes in flight: the index of its export.
fn open(by_hand: &mut ByHand, chunks: u64) -> usize {
    let moment = begin(by_hand, order(chunks));
    told(&moment)
        .expect("its moment is now")
        .expect("an export")
}

fn write(by_hand: &mut ByHand, bytes: Range<u64>, value: u8) -> Answer {
    let length = bytes.end - bytes.start;
    by_hand.post(
        0,
        WRITE,
        (bytes.start, length),
        vec![value; length as usize],
    )
}

fn read(by_hand: &mut ByHand, export: usize, bytes: Range<u64>) -> Result<Vec<u8>, OperationError> {
    let place = (bytes.start, bytes.end - bytes.start);
    let answer = by_hand.post(export, Ask::Read, place, Vec::new());
    by_hand.run();
    answer.take().expect("it has ended")
}

fn is_done(answer: &Answer) -> bool {
    match answer.take() {
        Some(answered) => {
            assert_eq!(answered, Ok(Vec::new()));
            true
        }
        None => false,
    }
}

/// The number of reads and of writes at the drive.
fn transfers(by_hand: &ByHand) -> (usize, usize) {
    let commands = by_hand.commands();
    let reads = commands
        .iter()
        .filter(|action| matches!(action, Action::Read { .. }));
    let writes = commands
        .iter()
        .filter(|action| matches!(action, Action::Write { .. }));
    (reads.count(), writes.count())
}

#[test]
fn the_moment_comes_when_no_change_of_the_volume_is_in_flight() {
    let mut by_hand = by_hand();
    let before = write(&mut by_hand, 0..BLOCK, 1);
    let beside = by_hand.post(1, WRITE, (0, BLOCK), vec![7; BLOCK as usize]);
    let moment = begin(&mut by_hand, order(20));
    assert_eq!(told(&moment), None);
    // Changes of the volume wait for the moment, and reads of other blocks do not.
    let after = write(&mut by_hand, BLOCK..2 * BLOCK, 2);
    let same = by_hand.post(0, Ask::Read, (BLOCK, BLOCK), Vec::new());
    let other = by_hand.post(0, Ask::Read, (4 * BLOCK, BLOCK), Vec::new());
    let nothing = write(&mut by_hand, 3..3, 0);
    assert!(is_done(&nothing), "no bytes");
    assert_eq!(transfers(&by_hand), (1, 2));
    assert_eq!(by_hand.volumes().pending(), 5, "with those that are held");
    assert!(!by_hand.volumes().is_idle());
    let place = |by_hand: &ByHand, start: u64| {
        let mut commands = by_hand.commands().into_iter();
        commands.position(|action| action.extent().is_some_and(|e| e.start().0 == start))
    };
    let first = place(&by_hand, OFFSET / BLOCK).expect("the change before");
    by_hand.end(first, Ok(()));
    assert!(is_done(&before));
    assert_eq!(
        told(&moment),
        Some(Ok(2)),
        "a change of another volume is none"
    );
    assert!(!is_done(&beside));
    by_hand.run();
    assert!(is_done(&after) && is_done(&beside));
    assert!(matches!(other.take(), Some(Ok(_))));
    let found = same.take().expect("it has ended").expect("bytes");
    assert_eq!(found, [2; 512], "behind the change that was held");
    let moment = read(&mut by_hand, 2, 0..3 * BLOCK).expect("bytes");
    assert_eq!(moment[..512], [1; 512]);
    assert_eq!(moment[512..], [0; 1024]);
    assert_eq!(by_hand.volumes().pending(), 0);
}

/// A change of more chunks than copies at a time.
#[test]
fn a_change_waits_for_the_copies_of_its_chunks() {
    let mut by_hand = by_hand();
    by_hand.bytes().fill(9);
    let moment = open(&mut by_hand, 20);
    let bytes = CHUNK - 100..19 * CHUNK + 5;
    let zeroed = by_hand.post(
        0,
        Ask::Zero {
            durability: Durability::Volatile,
            space: Space::MayBeFreed,
            pace: ZeroingPace::Any,
        },
        (bytes.start, bytes.end - bytes.start),
        Vec::new(),
    );
    let mut copied = 0;
    while by_hand.punches() == 0 {
        let (reads, writes) = transfers(&by_hand);
        assert!(reads > 0 && writes == 0 || copied >= 20, "{copied}");
        assert!(!is_done(&zeroed));
        copied += 1;
        by_hand.end(0, Ok(()));
    }
    // The chunks, each once, then both edges: as they were, and without the bytes of the change.
    by_hand.run();
    assert!(is_done(&zeroed));
    assert_eq!(copied, 24);
    let all = |by_hand: &mut ByHand, export| {
        let parts = [0..BYTES / 2, BYTES / 2..BYTES];
        parts
            .map(|part| read(by_hand, export, part).expect("bytes"))
            .concat()
    };
    let now = all(&mut by_hand, 0);
    for (at, &byte) in (0..).zip(&now) {
        assert_eq!(byte == 0, bytes.contains(&at), "{at}");
    }
    let then = all(&mut by_hand, moment);
    assert!(then.iter().all(|&byte| byte == 9));
    // A part that begins and ends within a block.
    let part = read(&mut by_hand, moment, CHUNK - 7..CHUNK + 9).expect("bytes");
    assert_eq!(part, [9; 16]);
    let status = by_hand.volumes().checkpoints.statuses().remove(0);
    assert_eq!((status.store_bytes, status.lost_chunks), (20 * CHUNK, 0));
    assert_eq!(
        (status.export.as_str(), status.length_bytes),
        ("v0@checkpoint", BYTES)
    );
    // What was copied is not copied again.
    let again = write(&mut by_hand, CHUNK..CHUNK + BLOCK, 3);
    assert_eq!(transfers(&by_hand), (0, 1));
    by_hand.run();
    assert!(is_done(&again));
    assert_eq!(by_hand.volumes().operations.bytes(), 0);
}

#[test]
fn at_most_sixteen_copies_are_in_flight() {
    let mut setup = Setup::of_blocks((OFFSET + BYTES + CHUNK) / BLOCK);
    setup.exports = vec![export("v0", OFFSET, BYTES)];
    setup.commands = 64;
    let mut by_hand = ByHand::new(setup);
    open(&mut by_hand, 20);
    let all = write(&mut by_hand, 0..BYTES.min(1 << 20), 1);
    let more = write(&mut by_hand, 1 << 20..BYTES, 1);
    assert_eq!(transfers(&by_hand), (16, 0));
    by_hand.end(3, Ok(()));
    assert_eq!(transfers(&by_hand), (16, 0));
    by_hand.run();
    assert!(is_done(&all) && is_done(&more));
}

#[test]
fn a_full_store_ends_the_checkpoint_and_no_change() {
    let mut by_hand = by_hand();
    let moment = open(&mut by_hand, 2);
    for chunk in 0..4 {
        let one = write(&mut by_hand, chunk * CHUNK..chunk * CHUNK + 1, 5);
        by_hand.run();
        assert!(is_done(&one), "{chunk}");
    }
    assert_eq!(
        read(&mut by_hand, moment, 0..BLOCK),
        Err(OperationError::Io)
    );
    assert_eq!(read(&mut by_hand, moment, 0..0), Ok(Vec::new()), "no bytes");
    let volumes = by_hand.volumes();
    let problem = volumes.checkpoints.statuses()[0].problem.clone();
    assert!(problem.is_some_and(|problem| problem.contains("is full")));
    let done = volumes.release_checkpoint("v0", Release::Done);
    assert!(
        done.expect_err("no backup")
            .contains("volume v0 is lost: its store")
    );
    assert_eq!(
        volumes.release_checkpoint("v0", Release::Abandoned),
        Ok(moment)
    );
    let gone = volumes.release_checkpoint("v0", Release::Abandoned);
    assert_eq!(gone, Err("volume v0 has no checkpoint".to_owned()));
    assert_eq!(
        read(&mut by_hand, moment, 0..BLOCK),
        Err(OperationError::Io),
        "released"
    );
}

/// The change goes on: it does not need the old bytes.
#[test]
fn a_chunk_that_cannot_be_read_is_lost_and_no_other() {
    let mut by_hand = by_hand();
    by_hand.bytes().fill(4);
    let moment = open(&mut by_hand, 20);
    let two = write(&mut by_hand, CHUNK - BLOCK..CHUNK + BLOCK, 5);
    let reads = by_hand.commands();
    assert_eq!(reads.len(), 2);
    let of_second = reads.iter().position(|action| {
        let start = action.extent().expect("a read").start().0;
        start * BLOCK == OFFSET + CHUNK
    });
    by_hand.end(
        of_second.expect("the second chunk"),
        Err(OperationError::Io),
    );
    by_hand.run();
    assert!(is_done(&two));
    assert_eq!(
        read(&mut by_hand, moment, 0..CHUNK).map(|bytes| bytes[0]),
        Ok(4)
    );
    assert_eq!(
        read(&mut by_hand, moment, CHUNK..CHUNK + 1),
        Err(OperationError::Io)
    );
    assert_eq!(
        read(&mut by_hand, moment, 2 * CHUNK..2 * CHUNK + 1),
        Ok(vec![4])
    );
    assert_eq!(by_hand.volumes().checkpoints.statuses()[0].lost_chunks, 1);
}

#[test]
fn a_volume_has_one_checkpoint_and_another_volume_another() {
    let mut by_hand = by_hand();
    assert_eq!(open(&mut by_hand, 20), 2);
    let again = begin(&mut by_hand, order(20));
    let problem = told(&again).expect("at once").expect_err("it has one");
    assert!(
        problem.contains("volume v0 has a checkpoint: expected its release"),
        "{problem}"
    );
    let beside = CheckpointOrder {
        volume: "v1".to_owned(),
        bytes: OFFSET + BYTES..OFFSET + BYTES + CHUNK,
        ..order(1)
    };
    let beside = begin(&mut by_hand, beside);
    assert!(matches!(told(&beside), Some(Ok(_))), "the volumes touch");
    let names: Vec<String> = by_hand
        .volumes()
        .checkpoints
        .statuses()
        .into_iter()
        .map(|one| one.volume)
        .collect();
    assert_eq!(names, ["v0", "v1"]);
    let exports = by_hand.volumes().operations.exports.all();
    assert_eq!(exports[2].class, Class::BestEffort(5));
    assert_eq!((exports[2].offset, exports[2].length), (OFFSET, BYTES));
    assert_eq!(
        exports[3].class,
        Class::BestEffort(0),
        "of the reads of old bytes"
    );
    // The next checkpoint of the volume has the same exports.
    assert_eq!(
        by_hand.volumes().release_checkpoint("v0", Release::Done),
        Ok(2)
    );
    assert_eq!(open(&mut by_hand, 20), 2);
}

#[test]
fn a_drive_without_power_loses_all_moments() {
    let mut by_hand = by_hand();
    let change = write(&mut by_hand, 0..BLOCK, 1);
    let coming = begin(&mut by_hand, order(20));
    let beside = CheckpointOrder {
        volume: "v1".to_owned(),
        bytes: OFFSET + BYTES..OFFSET + BYTES + CHUNK,
        ..order(1)
    };
    let beside = begin(&mut by_hand, beside);
    let opened = told(&beside)
        .expect("no change is in flight")
        .expect("an export");
    let held = write(&mut by_hand, BLOCK..2 * BLOCK, 1);
    by_hand.volumes().forget();
    by_hand.run();
    let problem = told(&coming).expect("told").expect_err("lost");
    assert!(problem.contains("lost its power"), "{problem}");
    assert!(is_done(&change) && is_done(&held));
    assert_eq!(
        read(&mut by_hand, opened, 0..BLOCK),
        Err(OperationError::Io)
    );
    let left = by_hand.volumes().checkpoints.statuses();
    assert_eq!(left.len(), 1, "that of v1, until its release");
    assert!(
        left[0]
            .problem
            .as_ref()
            .is_some_and(|text| text.contains("lost its power"))
    );
}

#[test]
fn a_release_before_the_moment_is_told_and_lets_changes_go_on() {
    let mut by_hand = by_hand();
    let change = write(&mut by_hand, 0..BLOCK, 1);
    let coming = begin(&mut by_hand, order(20));
    let held = write(&mut by_hand, BLOCK..2 * BLOCK, 1);
    by_hand
        .volumes()
        .release_checkpoint("v0", Release::Abandoned)
        .expect("there is one");
    assert_eq!(
        told(&coming),
        Some(Err("it was released before its moment".to_owned()))
    );
    by_hand.work();
    assert_eq!(transfers(&by_hand), (0, 2));
    by_hand.run();
    assert!(is_done(&change) && is_done(&held));
}
