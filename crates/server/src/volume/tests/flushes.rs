//! Volumes with caches: what a flush waits for, who is told of a loss, and what is kept apart.

use block::operation::{Ask, OperationError, Space, ZeroingPace};
use block::{Action, Class, Durability, Duration, Instant};

use super::random::setting;
use crate::arena::Region;
use crate::cache_setting::{CacheSetting, PAGE, Readmore, Writes};
use crate::event_loop::by_hand::{Answer, BLOCK, ByHand, Setup, export};

const WRITE: Ask = Ask::Write {
    durability: Durability::Volatile,
};
const TRIM: Ask = Ask::Trim {
    durability: Durability::Volatile,
};
const ZERO: Ask = Ask::Zero {
    durability: Durability::Volatile,
    space: Space::Kept,
    pace: ZeroingPace::Any,
};

/// The first byte of the first volume on the drive.
const OFFSET: u64 = 2 * PAGE;
/// Bytes of each of three volumes.
const BYTES: u64 = 64 * PAGE;

/// Volumes 0 and 1 have caches, and volume 2 has none.
fn by_hand(writes: Writes) -> ByHand {
    let mut setup = Setup::of_blocks((OFFSET + 3 * BYTES) / BLOCK);
    let start = |number: u64| OFFSET + number * BYTES;
    setup.exports = (0..3)
        .map(|number| export(&format!("v{number}"), start(number), BYTES))
        .collect();
    let mut by_hand = ByHand::new(setup);
    add(
        &mut by_hand,
        &[0, 1].map(|number| (setting(128, writes), start(number), BYTES)),
    )
    .expect("caches");
    by_hand
}

fn add(by_hand: &mut ByHand, all: &[(CacheSetting, u64, u64)]) -> std::io::Result<()> {
    let (volumes, disk) = by_hand.parts();
    volumes.caches.add(disk, &volumes.operations.exports, all)
}

fn write(by_hand: &mut ByHand, export: usize, page: u64, value: u8) -> Answer {
    by_hand.post(
        export,
        WRITE,
        (page * PAGE, PAGE),
        vec![value; PAGE as usize],
    )
}

fn flush(by_hand: &mut ByHand, export: usize) -> Answer {
    by_hand.post(export, Ask::Flush, (0, 0), Vec::new())
}

fn is_done(answer: &Answer) -> bool {
    match answer.take() {
        Some(answered) => {
            assert!(answered.is_ok(), "{answered:?}");
            true
        }
        None => false,
    }
}

fn writes(by_hand: &ByHand) -> usize {
    let commands = by_hand.commands();
    commands
        .iter()
        .filter(|action| matches!(action, Action::Write { .. }))
        .count()
}

#[test]
fn a_flush_waits_for_the_pages_of_its_volume_that_were_acknowledged_before_it() {
    let mut by_hand = by_hand(Writes::Back);
    let stored: Vec<Answer> = (0..3)
        .map(|page| write(&mut by_hand, 0, 2 * page, 5))
        .collect();
    assert!(stored.iter().all(is_done), "acknowledged from memory");
    assert_eq!(by_hand.commands(), Vec::new());
    assert!(is_done(&write(&mut by_hand, 1, 0, 6)));
    assert!(by_hand.volumes().is_idle());
    let none = flush(&mut by_hand, 2);
    assert_eq!(by_hand.commands(), vec![Action::Flush]);
    by_hand.run();
    assert!(is_done(&none));
    let first = flush(&mut by_hand, 0);
    assert_eq!(writes(&by_hand), 3, "and no page of the other volume");
    assert!(!by_hand.volumes().is_idle());
    // What comes later is not waited for.
    assert!(is_done(&write(&mut by_hand, 0, 20, 7)));
    while writes(&by_hand) > 0 && !is_done(&first) {
        by_hand.end(0, Ok(()));
    }
    by_hand.run();
    let medium = |page: u64| by_hand.medium()[(OFFSET + page * PAGE) as usize];
    assert_eq!([0, 2, 4].map(medium), [5, 5, 5]);
    assert_eq!(
        by_hand.medium()[(OFFSET + BYTES) as usize],
        0,
        "another volume's"
    );
}

#[test]
fn neighbours_are_written_together() {
    let mut by_hand = by_hand(Writes::Back);
    for page in [4, 5, 6, 9] {
        assert!(is_done(&write(&mut by_hand, 0, page, 5)));
    }
    let flushed = flush(&mut by_hand, 0);
    let mut extents: Vec<(u64, u64)> = by_hand
        .commands()
        .iter()
        .filter_map(|action| action.extent())
        .map(|extent| (extent.start().0, extent.length().0))
        .collect();
    extents.sort_unstable();
    let (at, page) = (|page: u64| (OFFSET + page * PAGE) / BLOCK, PAGE / BLOCK);
    assert_eq!(extents, [(at(4), 3 * page), (at(9), page)]);
    by_hand.run();
    assert!(is_done(&flushed));
}

/// Pages that nobody waits for are left until they are old: eight are written at a time.
#[test]
fn pages_are_urgent_as_long_as_a_flush_waits() {
    let mut by_hand = by_hand(Writes::Back);
    for page in 0..8 {
        assert!(is_done(&write(&mut by_hand, 0, 2 * page, 5)));
    }
    let flushed = flush(&mut by_hand, 0);
    assert_eq!(writes(&by_hand), 8);
    for page in 8..18 {
        assert!(is_done(&write(&mut by_hand, 0, 2 * page, 6)));
    }
    by_hand.run();
    assert!(is_done(&flushed));
    let status = by_hand.volumes().caches.status().remove(0);
    let (left, written) = (status.unwritten_bytes, status.written_bytes_total);
    assert!(left > 0 && written >= 8 * PAGE, "{left} {written}");
    assert_eq!(left + written, 18 * PAGE);
}

/// The earliest of all caches, a second after its page was stored.
#[test]
fn pages_are_written_in_time_without_a_flush() {
    let mut by_hand = by_hand(Writes::Back);
    let next = |by_hand: &mut ByHand| {
        let (volumes, disk) = by_hand.parts();
        volumes.caches.next_wakeup(disk.now)
    };
    let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    assert_eq!(next(&mut by_hand), None);
    by_hand.pass(ms(300));
    assert!(is_done(&write(&mut by_hand, 1, 0, 6)));
    by_hand.pass(ms(500));
    assert!(is_done(&write(&mut by_hand, 0, 0, 5)));
    assert_eq!(next(&mut by_hand), Some(ms(1300)));
    by_hand.pass(ms(1299));
    assert_eq!(writes(&by_hand), 0);
    by_hand.pass(ms(1300));
    assert_eq!(writes(&by_hand), 1);
    assert_eq!(by_hand.volumes().pending(), 0);
    assert!(!by_hand.volumes().is_idle(), "a page is on its way");
    assert_eq!(
        next(&mut by_hand),
        Some(ms(1500)),
        "the first is on its way"
    );
    by_hand.pass(ms(1500));
    by_hand.run();
    assert_eq!(next(&mut by_hand), None);
    let at = |offset: u64| by_hand.bytes()[offset as usize];
    assert_eq!([at(OFFSET), at(OFFSET + BYTES)], [5, 6]);
    let status: Vec<(u64, u64)> = by_hand
        .volumes()
        .caches
        .status()
        .iter()
        .map(|cache| (cache.unwritten_bytes, cache.written_bytes_total))
        .collect();
    assert_eq!(status, [(0, PAGE), (0, PAGE)]);
}

/// All front ends other than NBD are one client, which is told once.
#[test]
fn a_loss_of_pages_fails_the_flushes_of_its_volume_that_wait() {
    let mut by_hand = by_hand(Writes::Back);
    assert!(is_done(&write(&mut by_hand, 0, 0, 5)));
    let [first, second] = [0, 0].map(|export| flush(&mut by_hand, export));
    let other = flush(&mut by_hand, 1);
    let place = by_hand
        .commands()
        .iter()
        .position(|action| matches!(action, Action::Write { .. }));
    by_hand.end(place.expect("the page"), Err(OperationError::Io));
    by_hand.run();
    assert!(is_done(&other), "another volume's");
    assert_eq!(first.take(), Some(Err(OperationError::Io)));
    assert_eq!(second.take(), Some(Err(OperationError::Io)));
    let again = flush(&mut by_hand, 0);
    by_hand.run();
    assert!(is_done(&again), "it knows");
    let lost: Vec<u64> = by_hand
        .volumes()
        .caches
        .status()
        .iter()
        .map(|cache| cache.lost_bytes_total)
        .collect();
    assert_eq!(lost, [PAGE, 0]);
}

#[test]
fn a_loss_without_a_flush_fails_the_first_one_of_its_volume() {
    let mut by_hand = by_hand(Writes::Back);
    assert!(is_done(&write(&mut by_hand, 0, 0, 5)));
    by_hand.pass(Instant::ZERO + Duration::from_secs(1));
    by_hand.end(0, Err(OperationError::Io));
    let other = flush(&mut by_hand, 1);
    let first = flush(&mut by_hand, 0);
    by_hand.run();
    let second = flush(&mut by_hand, 0);
    by_hand.run();
    assert!(is_done(&other) && is_done(&second));
    assert_eq!(first.take(), Some(Err(OperationError::Io)));
}

/// A drive tells of it once: all pending flushes fail, of all volumes, and pages are read anew.
#[test]
fn a_failed_flush_of_the_drive_fails_all_that_wait_and_voids_the_pages() {
    let mut by_hand = by_hand(Writes::Through);
    let read = |by_hand: &mut ByHand| by_hand.post(0, Ask::Read, (0, PAGE), Vec::new());
    let fetched = read(&mut by_hand);
    by_hand.run();
    assert!(is_done(&fetched));
    assert!(is_done(&read(&mut by_hand)), "a hit");
    by_hand.bytes()[OFFSET as usize..][..PAGE as usize].fill(9);
    let [first, second] = [0, 2].map(|export| flush(&mut by_hand, export));
    by_hand.end(0, Err(OperationError::Io));
    by_hand.run();
    assert_eq!(first.take(), Some(Err(OperationError::Io)));
    assert_eq!(second.take(), Some(Err(OperationError::Io)));
    let again = read(&mut by_hand);
    by_hand.run();
    assert_eq!(again.take(), Some(Ok(vec![9; PAGE as usize])));
    let later = flush(&mut by_hand, 1);
    by_hand.run();
    assert!(is_done(&later), "it knows");
}

#[test]
fn the_service_ends_well_only_if_everything_acknowledged_is_on_the_medium() {
    let finish = |by_hand: &mut ByHand, result: Result<(), OperationError>| {
        let (volumes, disk) = by_hand.parts();
        let flushes = volumes.flush_at_the_end(disk);
        by_hand.work();
        while !by_hand.commands().is_empty() {
            let is_flush = by_hand.commands()[0] == Action::Flush;
            by_hand.end(0, if is_flush { result } else { Ok(()) });
        }
        let end = by_hand.volumes().check_end(&flushes);
        end.map_err(|error| error.to_string())
    };
    let mut well = by_hand(Writes::Back);
    assert!(is_done(&write(&mut well, 0, 3, 5)));
    assert!(!is_done(&write(&mut well, 2, 3, 5)), "it goes through");
    well.run();
    assert_eq!(finish(&mut well, Ok(())), Ok(()));
    assert_eq!(well.medium()[(OFFSET + 3 * PAGE) as usize], 5);
    assert!(well.volumes().is_idle());

    let mut failing = by_hand(Writes::Back);
    let problem = finish(&mut failing, Err(OperationError::Io)).expect_err("no flush went well");
    assert!(
        problem.contains("3 of the last flushes failed"),
        "{problem}"
    );

    let mut losing = by_hand(Writes::Back);
    assert!(is_done(&write(&mut losing, 1, 3, 5)));
    losing.pass(Instant::ZERO + Duration::from_secs(1));
    losing.end(0, Err(OperationError::Io));
    let problem = finish(&mut losing, Ok(())).expect_err("a page is lost");
    assert_eq!(
        problem,
        format!("{PAGE} acknowledged bytes could not be written")
    );
}

/// The engine orders a trim with nothing: it waits for writes of its pages, and they for it.
#[test]
fn trims_and_writes_of_the_same_pages_of_a_cached_volume_are_never_at_the_drive_together() {
    for punch in [TRIM, ZERO] {
        let mut by_hand = by_hand(Writes::Through);
        let pages = |first: u64, count: u64| (first * PAGE, count * PAGE);
        let writing = write(&mut by_hand, 0, 10, 1);
        let before = by_hand.post(0, punch, pages(8, 2), Vec::new());
        let behind = by_hand.post(0, punch, pages(11, 2), Vec::new());
        let other = by_hand.post(1, punch, pages(10, 1), Vec::new());
        assert_eq!(by_hand.punches(), 3, "pages beside it, and another volume");
        let within = by_hand.post(0, punch, (10 * PAGE + BLOCK, BLOCK), Vec::new());
        assert_eq!(
            (by_hand.punches(), by_hand.commands().len()),
            (3, 1),
            "it waits"
        );
        by_hand.end(0, Ok(()));
        assert!(is_done(&writing));
        assert_eq!(by_hand.punches(), 4);
        let free = write(&mut by_hand, 0, 13, 2);
        let same = write(&mut by_hand, 2, 10, 2);
        let again = write(&mut by_hand, 0, 10, 2);
        assert_eq!(
            by_hand.commands().len(),
            2,
            "the write of a page that is punched waits"
        );
        by_hand.run();
        for answer in [before, behind, other, within, again, free, same] {
            assert!(is_done(&answer));
        }
        let start = (OFFSET + 10 * PAGE) as usize;
        assert!(
            by_hand.bytes()[start..start + PAGE as usize]
                .iter()
                .all(|&byte| byte == 2)
        );
        assert!(by_hand.volumes().is_idle());
    }
}

/// Unwritten pages are written soon, and then trimmed.
#[test]
fn a_trim_of_unwritten_pages_waits_until_they_are_written() {
    let mut by_hand = by_hand(Writes::Back);
    assert!(is_done(&write(&mut by_hand, 0, 10, 1)));
    let trimmed = by_hand.post(0, TRIM, (10 * PAGE, PAGE), Vec::new());
    assert_eq!((by_hand.punches(), writes(&by_hand)), (0, 1));
    by_hand.end(0, Ok(()));
    assert_eq!(by_hand.punches(), 1);
    by_hand.run();
    assert!(is_done(&trimmed));
    let read = by_hand.post(0, Ask::Read, (10 * PAGE, PAGE), Vec::new());
    by_hand.run();
    assert_eq!(read.take(), Some(Ok(vec![0; PAGE as usize])));
}

#[test]
fn a_durable_write_goes_through_and_an_ordinary_one_does_not() {
    let mut by_hand = by_hand(Writes::Back);
    let durable = Ask::Write {
        durability: Durability::Durable,
    };
    let through = by_hand.post(0, durable, (0, PAGE), vec![3; PAGE as usize]);
    assert_eq!(writes(&by_hand), 1);
    assert!(!is_done(&through));
    by_hand.run();
    assert!(is_done(&through));
    assert_eq!(by_hand.medium()[OFFSET as usize], 3);
}

/// What a background read has found on the drive is older than what a cache has.
#[test]
fn bytes_of_a_background_read_get_the_newer_ones_of_the_caches() {
    let mut by_hand = by_hand(Writes::Back);
    assert!(is_done(&write(&mut by_hand, 0, 0, 5)));
    assert!(is_done(&write(&mut by_hand, 0, 63, 6)));
    assert!(is_done(&write(&mut by_hand, 1, 0, 7)));
    let mut check = |from: u64, length: usize| {
        let mut region = Region::map(length).expect("memory");
        region.bytes_mut()[..length].fill(1);
        let memory = region.memory().part(0, length);
        by_hand.volumes().caches.apply_newer(from, memory);
        let page = |offset: u64| offset..offset + PAGE;
        for (at, &byte) in (from..).zip(&region.bytes()[..length]) {
            let expected = match at {
                at if page(OFFSET).contains(&at) => 5,
                at if page(OFFSET + 63 * PAGE).contains(&at) => 6,
                at if page(OFFSET + BYTES).contains(&at) => 7,
                _ => 1,
            };
            assert_eq!(byte, expected, "{at}");
        }
    };
    check(0, (OFFSET + BLOCK) as usize);
    check(OFFSET - BLOCK, 2 * PAGE as usize);
    check(OFFSET + 63 * PAGE + BLOCK, 2 * PAGE as usize);
    check(OFFSET + BYTES, PAGE as usize);
    check(OFFSET + 30 * PAGE, PAGE as usize);
}

/// Holes of a volume are data while a cache has newer bytes of it.
#[test]
fn unwritten_pages_make_their_volume_data() {
    let mut by_hand = by_hand(Writes::Back);
    assert!(is_done(&write(&mut by_hand, 0, 0, 5)));
    let caches = &by_hand.volumes().caches;
    let written =
        [OFFSET, OFFSET + BYTES, OFFSET + 2 * BYTES].map(|offset| caches.are_written(offset));
    assert_eq!(written, [false, true, true]);
    by_hand.pass(Instant::ZERO + Duration::from_secs(1));
    by_hand.run();
    assert!(by_hand.volumes().caches.are_written(OFFSET));
}

#[test]
fn a_cache_is_for_blocks_that_divide_its_pages_and_for_drives_that_can_do_what_it_wants() {
    let mut setup = Setup::of_blocks(1 << 10);
    setup.shape.block_bytes = 512;
    let mut by_hand = ByHand::new(setup);
    let free = CacheSetting {
        coordinator: "pfc".to_owned(),
        readmore: Readmore::Free,
        ..setting(8, Writes::Through)
    };
    let problem = add(&mut by_hand, &[(free, 0, 8 * PAGE)]).expect_err("it does not turn");
    assert!(
        problem
            .to_string()
            .contains("readmore free: free blocks need"),
        "{problem}"
    );
    by_hand.disk().shape.block_bytes = 8192;
    assert!(add(&mut by_hand, &[]).is_ok());
    let large = add(&mut by_hand, &[(setting(8, Writes::Through), 0, 8 * PAGE)]);
    let problem = large.expect_err("blocks of two pages").to_string();
    assert!(
        problem.contains("blocks of 8192 bytes: expected blocks that divide"),
        "{problem}"
    );
    assert_eq!(by_hand.volumes().caches.status().len(), 0);
}

/// A read that is more urgent than a prefetch of its blocks makes that as urgent.
#[test]
fn reads_of_a_cached_volume_have_the_class_of_their_operation() {
    let mut by_hand = by_hand(Writes::Through);
    let prefetch = by_hand.post(0, Ask::Cache, (0, PAGE), Vec::new());
    by_hand.run();
    assert!(is_done(&prefetch));
    let hit = by_hand.post(0, Ask::Read, (100, 200), Vec::new());
    assert_eq!(hit.take(), Some(Ok(vec![0; 200])), "it was fetched");
    let status = by_hand.volumes().caches.status().remove(0);
    assert_eq!(status.used_bytes, PAGE);
    assert_eq!(
        (status.asked_bytes_total, status.hit_bytes_total),
        (2 * PAGE, PAGE)
    );
    assert_eq!(status.missed_bytes_total, PAGE);
    assert_eq!((status.size_bytes, status.unwritten_bytes), (128 * PAGE, 0));
    assert_eq!(Class::default(), Class::BestEffort(3));
}

/// Late requests are in the accounts of the export that has asked, and pages in that of their volume.
#[test]
fn a_request_of_a_cache_is_of_the_export_of_its_reader() {
    let mut by_hand = by_hand(Writes::Back);
    let second = export("again", OFFSET + BYTES, BYTES);
    let again = by_hand.volumes().add_export(second);
    let exports = |by_hand: &mut ByHand| -> Vec<(usize, u64)> {
        let requests = by_hand.requests();
        let volumes = by_hand.volumes();
        let each = requests
            .iter()
            .map(|one| (volumes.export_of(one), one.extent.start().0));
        let mut all: Vec<(usize, u64)> = each.collect();
        all.sort_unstable();
        all
    };
    for export in [0, 1, 2, again] {
        let start = export as u64 * 8 * PAGE;
        by_hand.post(export, Ask::Read, (start, PAGE), Vec::new());
    }
    let block = |export: usize, volume: u64| {
        let start = OFFSET + volume * BYTES + export as u64 * 8 * PAGE;
        (export, start / BLOCK)
    };
    let expected = [block(0, 0), block(1, 1), block(2, 2), block(again, 1)];
    assert_eq!(exports(&mut by_hand), expected);
    by_hand.run();
    assert!(is_done(&write(&mut by_hand, again, 40, 5)));
    by_hand.pass(Instant::ZERO + Duration::from_secs(1));
    assert_eq!(
        exports(&mut by_hand),
        [(1, (OFFSET + BYTES + 40 * PAGE) / BLOCK)]
    );
    by_hand.run();
}
