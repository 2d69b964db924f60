//! Every crash of short histories: at each step and at each operation of the region, with each combination of lost
//! sectors, and a second crash after it.
//!
//! Two oracles: no comparison differs, and a flipped bit is found unless its chunk is doubted or without a checksum.

use super::storage::Odometer;
use super::*;

/// Two chunks with one intent.
const SMALL: u64 = 2 * CHUNK;
/// Sectors of the drive are pages or chunks, so that combinations are few.
const PAGES_OF_BLOCKS: u32 = 3;
const CHUNKS_OF_BLOCKS: u32 = 7;
/// Blocks of a page.
const PAGE_BLOCKS: u64 = PAGE / BLOCK;

/// A crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crash {
    /// The service is killed.
    Kill,
    /// The machine and the drive lose their power.
    Machine,
    /// The drive loses its power, and the service lives on.
    Drive,
}

/// What comes after a crash.
#[derive(Clone, Copy, Debug)]
enum After {
    /// A scrub.
    Scrub,
    /// Reads without a flush, and a power cut.
    Reads,
    /// A write, and a power cut.
    Write,
    /// A write and its record: the doubts of other pages stay.
    Record,
    /// Flipped bits.
    Flips,
}

struct Script {
    steps: Vec<Step>,
    is_crowded: bool,
    shift: u32,
}

/// Explores a history of a volume whose chunks have checksums. The answer is the number of cases.
fn explore(script: &Script) -> u64 {
    let mut cases = 0;
    for crash in [Crash::Kill, Crash::Machine, Crash::Drive] {
        for after in [
            After::Scrub,
            After::Reads,
            After::Write,
            After::Record,
            After::Flips,
        ] {
            // The history is over if it burns no more of the fuse.
            let mut is_over = false;
            let mut operations = 0;
            while !is_over {
                operations += 1;
                let mut odometer = Odometer::default();
                loop {
                    let mut world = World::of(SMALL, script.shift);
                    world.drive.bytes.fill(0x5A);
                    world.scrub();
                    world.keeper.begin_pass();
                    if script.is_crowded {
                        world.keeper.most_active = 1;
                    }
                    is_over = crashed(&mut world, script, (crash, operations), &mut odometer);
                    continued(&mut world, after, &mut odometer);
                    let case = (crash, after, operations);
                    assert_eq!(world.alarms, [0; 0], "{case:?} of {:?}", script.steps);
                    cases += 1;
                    if !odometer.turn() {
                        break;
                    }
                }
            }
        }
    }
    cases
}

/// Takes the steps up to an operation, and crashes. The answer is whether the history was over before.
fn crashed(
    world: &mut World,
    script: &Script,
    (crash, operations): (Crash, u64),
    odometer: &mut Odometer,
) -> bool {
    world.fuse.set(Some(operations));
    let mut steps = script.steps.iter();
    let is_over = loop {
        if !world.fuse.burns() {
            break false;
        }
        match steps.next() {
            Some(step) => world.take(step),
            None => break true,
        }
    };
    match crash {
        Crash::Kill => world.restart(None),
        Crash::Machine => world.restart(Some(odometer)),
        Crash::Drive if world.has_stopped => {
            // It came amid an operation of the region: the machine has no power either.
            world.restart(Some(odometer));
        }
        Crash::Drive => {
            world.fuse.set(None);
            world.cut_drive(odometer);
            steps.for_each(|step| world.take(step));
        }
    }
    is_over
}

fn continued(world: &mut World, after: After, odometer: &mut Odometer) {
    match after {
        After::Scrub => (),
        After::Reads => {
            let all = world.range(0, SMALL / BLOCK);
            world.begin_read(all, Moment::Early);
            while !world.reads.is_empty() {
                world.end_read(0);
            }
            while world.order() {}
            world.restart(Some(odometer));
        }
        After::Write => {
            let page = world.range(PAGE_BLOCKS, PAGE_BLOCKS);
            world.submit(page, Some(77), Moment::Early);
            for _ in 0..2 {
                while world.order() {}
                world.release();
            }
            world.end(0, true);
            world.restart(Some(odometer));
        }
        After::Record => {
            let page = world.range(PAGE_BLOCKS, PAGE_BLOCKS);
            world.submit(page, Some(77), Moment::Early);
            world.drain();
        }
        After::Flips => {
            world.drain();
            return find_flips(world);
        }
    }
    world.drain();
    assert_eq!(world.scrub(), []);
}

/// Flips a bit of each chunk, in a page that no write changes. It is found unless the chunk has no checksum, or the
/// doubted pages leave none of the others.
fn find_flips(world: &mut World) {
    let is_guarded = |world: &mut World, chunk: u64| {
        let doubted = world.keeper.doubts.get(&chunk).copied().unwrap_or(0);
        let record = world.region.as_mut().expect("open").record(chunk);
        record.expect("memory").without(doubted) != Record::Nothing
    };
    let guarded: Vec<u64> = (0..SMALL / CHUNK)
        .filter(|&chunk| is_guarded(world, chunk))
        .collect();
    assert_eq!(world.alarms, [0; 0]);
    for &chunk in &guarded {
        // Pages whose write failed may have no checksum.
        let place = (chunk * CHUNK + 9 * PAGE + 7) as usize;
        world.drive.bytes[place] ^= 4;
    }
    let found = world.scrub();
    let mut places: Vec<u64> = found.iter().map(|damage| damage.offset / CHUNK).collect();
    places.dedup();
    assert_eq!(places, guarded, "chunks with flips");
    world.alarms.retain(|chunk| !guarded.contains(chunk));
}

fn write(first_page: u64, pages: u64, value: u8) -> Step {
    Step::Write {
        first: first_page * PAGE_BLOCKS,
        count: pages * PAGE_BLOCKS,
        value,
        moment: Moment::Early,
    }
}

fn late_write(first_page: u64, value: u8) -> Step {
    Step::Write {
        first: first_page * PAGE_BLOCKS,
        count: PAGE_BLOCKS,
        value,
        moment: Moment::Late,
    }
}

/// A read of pages as they are at its begin.
fn read(first_page: u64, pages: u64) -> Step {
    Step::Read {
        first: first_page * PAGE_BLOCKS,
        count: pages * PAGE_BLOCKS,
        moment: Moment::Early,
    }
}

const ALL: Step = Step::Read {
    first: 0,
    count: SMALL / BLOCK,
    moment: Moment::Early,
};
const REGION: Step = Step::Region { count: 9 };
const END: Step = Step::End {
    which: 0,
    ending: true,
};
/// The second command at the drive ends.
const END_SECOND: Step = Step::End {
    which: 1,
    ending: true,
};
const FAIL: Step = Step::End {
    which: 0,
    ending: false,
};
const FLUSH: Step = Step::Flush;
const END_READ: Step = Step::EndRead { which: 0 };
const TRIM: Step = Step::Punch {
    first: 2 * PAGE_BLOCKS,
    count: PAGE_BLOCKS,
};
/// Changes are quiet for long enough, without a flush.
const LOOK: Step = Step::Look { seconds: 12 };
/// Changes are quiet for long enough.
const QUIET: Step = Step::Pass { seconds: 12 };

fn none_is_missed(steps: &[Step]) {
    none_is_missed_in(&Script {
        steps: steps.to_vec(),
        is_crowded: false,
        shift: PAGES_OF_BLOCKS,
    });
}

fn none_is_missed_in(script: &Script) {
    let cases = explore(script);
    assert!(cases > 50, "{cases} cases");
}

/// From the intent to the record and the removal of the intent.
#[test]
fn a_write_of_a_page() {
    let write = write(0, 1, 5);
    none_is_missed(&[
        write, REGION, END, FLUSH, FLUSH, QUIET, REGION, ALL, END_READ, REGION,
    ]);
}

#[test]
fn a_write_of_two_pages_in_two_chunks() {
    let write = write(15, 2, 5);
    none_is_missed(&[write, REGION, END, FLUSH, FLUSH, QUIET, REGION]);
}

#[test]
fn a_second_write_amid_a_flush() {
    let (first, second) = (write(0, 1, 5), write(0, 1, 6));
    none_is_missed(&[
        first, REGION, END, FLUSH, second, END, FLUSH, QUIET, REGION, QUIET, REGION,
    ]);
}

/// Its intent is asked for while the one of the first is due to be removed.
#[test]
fn a_second_write_of_a_chunk_whose_intent_is_about_to_go() {
    let (first, second) = (write(0, 1, 5), write(2, 1, 6));
    let steps = [
        first, REGION, END, FLUSH, FLUSH, second, LOOK, REGION, END, REGION, QUIET, REGION, ALL,
        END_READ, REGION,
    ];
    none_is_missed(&steps);
}

/// The first of two intents of a chunk is due to be removed while the second is asked for.
#[test]
fn two_intents_of_a_chunk_under_way() {
    let (first, second) = (write(0, 1, 5), write(2, 1, 6));
    let one = Step::Region { count: 1 };
    none_is_missed(&[
        first, second, one, END, FLUSH, FLUSH, LOOK, REGION, END, REGION, QUIET, REGION,
    ]);
}

#[test]
fn three_writes_of_a_chunk_and_one_of_them_again() {
    let [first, second, third] = [0, 2, 7].map(|page| write(page, 1, 5));
    let steps = [
        first,
        REGION,
        END,
        second,
        REGION,
        END,
        FLUSH,
        FLUSH,
        third,
        QUIET,
        REGION,
        END,
        write(0, 1, 6),
        REGION,
        END,
        FLUSH,
        FLUSH,
    ];
    none_is_missed(&steps);
}

#[test]
fn a_second_write_after_the_intent_is_gone() {
    let (first, second) = (write(0, 1, 5), write(1, 1, 6));
    none_is_missed(&[
        first, REGION, END, FLUSH, FLUSH, QUIET, REGION, second, REGION, END, QUIET, REGION,
    ]);
}

/// The drive has no room for a flush: there is no record of what a power cut may undo.
#[test]
fn a_write_without_a_flush() {
    let write = write(0, 1, 5);
    none_is_missed(&[write, REGION, END, LOOK, REGION, FLUSH, FLUSH, LOOK, REGION]);
}

/// The drive may carry them out in either order, whatever it reports.
#[test]
fn writes_of_the_same_page_in_flight_together() {
    let (first, second) = (write(0, 1, 5), write(0, 1, 6));
    none_is_missed(&[
        first, second, REGION, END_SECOND, END, FLUSH, FLUSH, QUIET, REGION, ALL, END_READ, REGION,
    ]);
}

#[test]
fn a_failed_write() {
    let write = write(0, 1, 5);
    none_is_missed(&[
        write, REGION, FAIL, FLUSH, FLUSH, QUIET, REGION, ALL, END_READ, REGION,
    ]);
}

/// It returns the new bytes, and the record is of the old ones.
#[test]
fn a_read_after_a_write_that_has_no_record() {
    let write = write(0, 1, 5);
    none_is_missed(&[FLUSH, FLUSH, write, REGION, END, ALL, END_READ, REGION]);
}

/// It returns the old bytes, and the record is of the new ones.
#[test]
fn a_read_from_before_a_write_to_after_its_record() {
    let write = write(0, 1, 5);
    none_is_missed(&[
        FLUSH, FLUSH, ALL, write, REGION, END, FLUSH, FLUSH, QUIET, REGION, END_READ, REGION,
    ]);
}

#[test]
fn a_read_that_begins_amid_a_write() {
    let write = late_write(0, 5);
    none_is_missed(&[
        FLUSH, FLUSH, write, REGION, ALL, END, FLUSH, FLUSH, QUIET, REGION, END_READ, REGION,
    ]);
}

/// It returns bytes that the power cut undoes.
#[test]
fn a_read_that_ends_long_after_a_power_cut() {
    let write = write(0, 1, 5);
    none_is_missed(&[
        FLUSH, FLUSH, write, REGION, END, ALL, FLUSH, FLUSH, QUIET, REGION, END_READ, REGION,
    ]);
}

/// Half of the chunk was read before the write, and half after its record.
#[test]
fn reads_around_a_write() {
    let write = write(0, 1, 5);
    none_is_missed(&[
        FLUSH,
        FLUSH,
        read(0, 8),
        END_READ,
        write,
        REGION,
        END,
        FLUSH,
        FLUSH,
        QUIET,
        REGION,
        read(8, 8),
        END_READ,
        REGION,
    ]);
}

/// A power cut undoes it, unless it was flushed.
#[test]
fn a_trim_and_a_read() {
    none_is_missed(&[
        FLUSH, FLUSH, TRIM, REGION, END, ALL, END_READ, REGION, FLUSH, FLUSH,
    ]);
}

#[test]
fn a_write_and_a_trim_of_its_chunk() {
    let write = write(0, 1, 5);
    none_is_missed(&[
        FLUSH, FLUSH, write, REGION, END, TRIM, FLUSH, FLUSH, QUIET, REGION, END, FLUSH, FLUSH,
        QUIET, REGION, ALL, END_READ, REGION,
    ]);
}

/// Its checksum goes with the trim.
#[test]
fn a_whole_chunk_and_a_trim_of_a_page() {
    let whole = write(0, 16, 5);
    let steps = [
        whole, REGION, END, TRIM, REGION, END, FLUSH, FLUSH, QUIET, REGION, ALL, END_READ, REGION,
    ];
    none_is_missed_in(&Script {
        steps: steps.to_vec(),
        is_crowded: false,
        shift: CHUNKS_OF_BLOCKS,
    });
}

/// The intent goes while a trim holds its chunk's changes up.
#[test]
fn whole_chunks_around_a_trim() {
    let (before, amid) = (write(0, 16, 5), write(0, 16, 6));
    let steps = [
        before, REGION, END, FLUSH, FLUSH, TRIM, REGION, QUIET, REGION, amid, REGION, END_SECOND,
        END, QUIET, REGION, ALL, END_READ, REGION,
    ];
    none_is_missed_in(&Script {
        steps: steps.to_vec(),
        is_crowded: false,
        shift: CHUNKS_OF_BLOCKS,
    });
}

/// Changes without room leave no checksum of what a power cut may undo.
#[test]
fn more_chunks_with_changes_than_have_room() {
    let (first, second) = (write(0, 1, 5), write(16, 1, 6));
    let steps = [
        FLUSH, FLUSH, first, REGION, END, second, REGION, END, LOOK, REGION, ALL, END_READ, REGION,
    ];
    none_is_missed_in(&Script {
        steps: steps.to_vec(),
        is_crowded: true,
        shift: PAGES_OF_BLOCKS,
    });
}
