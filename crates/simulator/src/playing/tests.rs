//! Players, the reader beside them, copies and buffers: limits that are known, and runs that have to be so.

use std::sync::Arc;

use block::{Duration, Instant, Lba};
use drive::{Imperfections, Profile, catalog};
use proptest::prelude::*;
use scheduler::ordering::Phases;
use stream::Rate;

use super::buffer::PlayoutBuffer;
use super::copier::{Copier, CopyTarget, Ready};
use super::reader::BackgroundReader;
use super::*;

const MB: u64 = 1_000_000;
const KB: u64 = 1024;

fn rate(bytes: u64) -> Rate {
    Rate::new(bytes).expect("not zero")
}

fn travelstar() -> Profile {
    let entry = catalog::find("hitachi-travelstar-80gn").expect("shipped");
    let mut profile = entry.profile().expect("valid");
    // Nobody writes, and the skew of this profile has no room for the settling of writes.
    profile.write_settle_nanos = 0;
    profile
}

/// So many players of 1 MB/s, one file after the other, and then the background reader's.
fn setup(count: usize, service: PlayerService) -> PlayingSetup {
    let truth = Arc::new(travelstar());
    let mut first = Lba(0);
    let mut file = |bytes: u64| {
        let file = PlayedFile::new(first, bytes / PAGE * PAGE, 512).expect("whole blocks");
        first = file.end();
        file
    };
    PlayingSetup {
        belief: Arc::clone(&truth),
        truth,
        imperfections: Imperfections::default(),
        seed: 1,
        policy: scheduler::policy::find("fcfs").expect("there"),
        phases: Phases::Mixed,
        copies: Some(rate(11_200_000)),
        players: Players {
            files: (0..count).map(|_| file(105 * MB)).collect(),
            rate: rate(MB),
            read: 64 * KB,
            service,
        },
        beside: OtherClients::Reader {
            file: file(30 * MB),
            read_ahead: 128 * KB,
        },
        dirty: None,
        lasts: Duration::from_secs(10),
    }
}

fn played(setup: &PlayingSetup) -> PlayingReport {
    play(setup).expect("it is played")
}

fn abiss(pages: u64) -> PlayerService {
    PlayerService::Abiss(PacedBuffer {
        memory: 564 * KB,
        batch: pages * PAGE,
    })
}

fn guaranteed(memory: u64) -> PlayerService {
    PlayerService::Guaranteed(Guarantee {
        memory,
        longest_round: Duration::from_secs(10),
    })
}

#[test]
fn a_reader_alone_is_as_fast_as_the_copies_or_as_the_medium() {
    let limited = setup(0, PlayerService::Plain);
    let got = played(&limited).background_rate();
    // The drive's look-ahead ends with its segment, and the end of a window sometimes waits for it.
    assert!((10.6..=11.2).contains(&got), "{got}");
    let free = PlayingSetup {
        copies: None,
        ..limited
    };
    // 756 sectors a revolution of 908, skew included, 70 times a second, 512 bytes each.
    let sustained = 756.0 / 908.0 * 756.0 * 512.0 * 70.0 / 1e6;
    let got = played(&free).background_rate();
    assert!((got / sustained - 1.0).abs() < 0.02, "{got} {sustained}");
}

#[test]
fn players_with_a_buffer_never_wait_and_those_without_do() {
    for service in [abiss(20), guaranteed(564 * KB)] {
        let report = played(&setup(4, service));
        assert!(report.count() > 300, "{}", report.count());
        assert_eq!(report.waited(), 0, "{service:?}");
        assert_eq!(report.late, 0);
        // The copy of 64 kB, and a page of the background's before it.
        let most = rate(11_200_000).at_most(64 * KB + PAGE) + Duration::from_micros(1);
        assert!(report.longest() <= most, "{}", report.longest());
    }
    let plain = played(&setup(4, PlayerService::Plain));
    assert_eq!(plain.waited(), plain.count());
    assert!(plain.longest_wait() > Duration::from_millis(30));
}

#[test]
fn a_buffer_with_no_room_for_the_disk_makes_players_wait() {
    let service = PlayerService::Abiss(PacedBuffer {
        memory: 160 * KB,
        batch: 20 * PAGE,
    });
    assert!(played(&setup(4, service)).waited() > 0);
    let service = PlayerService::Abiss(PacedBuffer {
        memory: 140 * KB,
        batch: 20 * PAGE,
    });
    let error = play(&setup(4, service)).expect_err("nothing would ever be due");
    assert_eq!(
        error.to_string(),
        "a buffer of 143360 bytes: expected a batch and a read, 147456 bytes, or more"
    );
}

#[test]
fn players_get_their_rate_and_no_more() {
    for service in [abiss(20), guaranteed(564 * KB), PlayerService::Plain] {
        let report = played(&setup(1, service));
        let reads = report.count() as u64;
        let due = rate(MB).bytes_within(report.span) / (64 * KB) + 1;
        assert!(reads == due || reads + 1 == due, "{reads} of {due}");
    }
}

#[test]
fn larger_batches_leave_more_to_the_reader() {
    let left = |pages| played(&setup(4, abiss(pages))).background_rate();
    let [ten, forty, eighty] = [10, 40, 80].map(left);
    assert!(ten < forty && forty < eighty, "{ten} {forty} {eighty}");
}

#[test]
fn the_same_run_is_the_same() {
    let setup = setup(2, guaranteed(564 * KB));
    assert_eq!(played(&setup), played(&setup));
}

#[test]
fn a_stream_that_is_refused_says_which_and_why() {
    let error = play(&setup(4, guaranteed(128 * KB))).expect_err("too small");
    let said = error.to_string();
    assert!(said.starts_with("stream ") && said.contains("needed") || said.contains("memory"));
    assert!(matches!(error, PlayingError::Stream { .. }), "{said}");
}

#[test]
fn greedy_tasks_are_served_with_and_without_streams() {
    let tasks = OtherClients::Tasks(GreedyLoad {
        tasks: 8,
        bytes: 128 * KB,
        seed: 3,
    });
    let p99 = |count, service| {
        let report = played(&PlayingSetup {
            beside: tasks,
            ..setup(count, service)
        });
        assert_eq!(report.waited(), 0);
        assert!(report.tasks.len() > 100, "{}", report.tasks.len());
        report.tasks_permille(990).expect("tasks")
    };
    let without = p99(0, PlayerService::Plain);
    let with = p99(4, guaranteed(1064 * KB));
    assert!(without < with, "{without} {with}");
}

#[test]
fn the_window_ahead_is_asked_for_with_the_second_page() {
    let file = PlayedFile::new(Lba(0), MB / PAGE * PAGE, 512).expect("whole blocks");
    let mut reader = BackgroundReader::new(file, 128 * KB);
    let asked = |reader: &mut BackgroundReader| reader.ask().map(|(_, bytes)| bytes);
    let window = |number: u64| Some((number * 128 * KB, (number + 1) * 128 * KB));
    assert_eq!(asked(&mut reader), window(0));
    assert_eq!(asked(&mut reader), None);
    assert_eq!(reader.ready(), Ready::Nothing);
    reader.came(0);
    assert_eq!(reader.ready(), Ready::Page);
    assert_eq!(asked(&mut reader), None);
    reader.copied();
    assert_eq!(asked(&mut reader), window(1));
    for _ in 0..31 {
        reader.copied();
    }
    // It waits for the next window, and nothing else is at the disk.
    assert_eq!(reader.ready(), Ready::Nothing);
    assert_eq!(asked(&mut reader), None);
    reader.came(128 * KB);
    reader.copied();
    assert_eq!(asked(&mut reader), window(2));
}

#[test]
fn players_are_copied_for_first_and_a_page_is_never_broken_off() {
    let mut copier = Copier::new(Some(rate(PAGE * 1000)));
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    assert!(copier.begin(at(0), Ready::Page));
    copier.read(1, 2 * PAGE);
    assert!(!copier.begin(at(0), Ready::Page));
    assert_eq!(copier.copied(at(0)), None);
    assert_eq!(copier.copied(at(1)), Some(CopyTarget::Reader));
    for (millis, is_whole) in [(1, false), (2, true)] {
        assert!(copier.begin(at(millis), Ready::Page));
        assert_eq!(copier.copied(at(millis + 1)), Some(CopyTarget::Player(1)));
        assert_eq!(copier.is_whole(), is_whole);
    }
    assert!(!copier.begin(at(3), Ready::Nothing));
    assert_eq!(copier.next_event(), None);
}

proptest! {
    /// Whatever the application does and whenever the disk answers: what is asked for is one piece after
    /// the other, in batches, never more than the rate allows, and never beyond what was played.
    #[test]
    fn batches_follow_the_playout_point_and_keep_to_the_rate(
        batch in 1u64..40,
        steps in prop::collection::vec((0u64..200, 0u64..40, 0u64..3), 1..80),
    ) {
        let end = 100 * MB;
        let batch = batch * PAGE;
        let mut buffer = PlayoutBuffer::new(rate(MB), batch, end);
        let (_, filled) = buffer.fill(564 * KB);
        let (mut now, mut point, mut edge) = (Instant::ZERO, 0, filled);
        let mut under = None;
        for (millis, pages, answered) in steps {
            now += Duration::from_millis(millis);
            point = (point + pages * PAGE).min(edge);
            buffer.position(point);
            if answered > 0 && let Some(from) = under.take() {
                buffer.came(from);
            }
            let expected = buffer.next_event();
            let due = buffer.due(now);
            prop_assert_eq!(due.is_some(), expected.is_some_and(|at| at <= now));
            let Some((from, to)) = due else {
                continue;
            };
            prop_assert!(under.is_none());
            prop_assert_eq!(from, edge);
            prop_assert!(to - from >= batch && (to - from) % PAGE == 0);
            edge = to;
            // What was played is what may be replaced.
            prop_assert!(edge - filled <= point);
            let allowed = rate(MB).bytes_within(now.since(Instant::ZERO)) + 10_000;
            prop_assert!(edge - filled <= allowed);
            prop_assert!(to - from <= batch + 10_000);
            buffer.asked(from);
            under = Some(from);
            prop_assert!(!buffer.has(from, to) && buffer.has(point, from));
        }
    }
}

#[test]
fn plain_reads_wait_for_bursts_of_dirty_pages_longer_than_buffered_ones() {
    let with_bursts = |service, megabytes: u64| {
        let plain = PlayingSetup {
            phases: match service {
                PlayerService::Abiss(_) => Phases::ABISS,
                _ => Phases::Mixed,
            },
            ..setup(4, service)
        };
        let bytes = megabytes * MB / PAGE * PAGE;
        // Smaller than two bursts, so that the second begins at the file's beginning again.
        let file = PlayedFile::new(Lba(20_000_000), bytes + PAGE, 512).expect("whole blocks");
        played(&PlayingSetup {
            dirty: (bytes > 0).then_some(DirtyPages {
                file,
                every: Duration::from_secs(3),
                bytes,
            }),
            ..plain
        })
    };
    let longest = |megabytes| with_bursts(PlayerService::Plain, megabytes).longest_wait();
    let waits = [0, 5, 10, 20].map(longest);
    assert!(waits.is_sorted(), "{waits:?}");
    // First come, first served: a read waits for the 128 writes before it, 16.8 MB at 20 to 22 MB/s, and for the reader's.
    let most = Duration::from_millis(750)..Duration::from_millis(1_300);
    assert!(most.contains(&waits[3]), "{waits:?}");
    // The drive acknowledges writes from its buffer, and writes them before it takes up the refill.
    let buffered = with_bursts(abiss(20), 20);
    let wait = buffered.longest_wait();
    assert!(wait < Duration::from_millis(200), "{wait}");
    assert!(buffered.background_rate() < with_bursts(abiss(20), 0).background_rate());
}
