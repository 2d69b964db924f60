//! Files with a priority and no guarantee.

use block::{Class, Instant, Owner, StreamMode};
use headtime_client::wire::{FileChange, Refresh, StreamStatus, StreamUpdate};

use super::*;
use crate::volume::operation::Operation;

fn prefer(priority: u8) -> Terms {
    Terms {
        name: format!("file {priority}"),
        export: Some("v0".to_owned()),
        ..Terms::prefer(priority)
    }
}

/// The class of a read of these bytes, on an export of this class.
fn class_of(by_hand: &mut ByHand, class: Option<Class>, start: u64, length: u64) -> Class {
    let operation = Operation {
        export: 0,
        ask: Ask::Read,
        offset: start,
        length,
        owner: Owner::NOBODY,
        class,
    };
    let volumes = by_hand.volumes();
    volumes
        .streams
        .class_of(&volumes.operations.exports, &operation)
}

#[test]
fn the_highest_priority_of_the_files_of_a_block_counts() {
    let mut by_hand = by_hand();
    let plain = Class::default();
    let low = pieces(
        12 * PAGE,
        &[(0, 20 * PAGE, 2 * PAGE), (2 * PAGE, 8 * PAGE, 4 * PAGE)],
    );
    granted(&mut by_hand, 1, prefer(6), low);
    granted(&mut by_hand, 2, prefer(1), file(10 * PAGE, 2 * PAGE));
    let guaranteed = Terms {
        priority: Some(2),
        ..terms(24)
    };
    granted(&mut by_hand, 3, guaranteed, file(40 * PAGE, 8 * PAGE));
    granted(&mut by_hand, 4, terms(24), file(60 * PAGE, 8 * PAGE));
    let effort = Class::BestEffort;
    for (start, length, expected) in [
        (0, 8 * PAGE, plain),
        (0, 8 * PAGE + 1, effort(6)),
        (8 * PAGE, 2 * PAGE, effort(6)),
        (8 * PAGE, 2 * PAGE + 1, effort(1)),
        (12 * PAGE - 1, 1, effort(1)),
        (12 * PAGE, 8 * PAGE, plain),
        (21 * PAGE, PAGE, effort(6)),
        (22 * PAGE, PAGE, plain),
        (47 * PAGE, PAGE, effort(2)),
        (48 * PAGE, PAGE, plain),
        (60 * PAGE, PAGE, plain),
        (0, 60 * PAGE, effort(1)),
        (8 * PAGE, 0, plain),
    ] {
        assert_eq!(
            class_of(&mut by_hand, None, start, length),
            expected,
            "{start}+{length}"
        );
    }
    let background = class_of(&mut by_hand, Some(Class::Background), 10 * PAGE, PAGE);
    assert_eq!(background, effort(1));
    let real_time = Class::RealTime {
        deadline: Instant::ZERO,
    };
    assert_eq!(
        class_of(&mut by_hand, Some(real_time), 10 * PAGE, PAGE),
        real_time
    );
    close(&mut by_hand, 2);
    assert_eq!(class_of(&mut by_hand, None, 10 * PAGE, PAGE), effort(6));
    close(&mut by_hand, 1);
    assert_eq!(class_of(&mut by_hand, None, 10 * PAGE, PAGE), plain);
}

#[test]
fn a_priority_is_asked_for_alone_and_is_at_most_the_lowest() {
    let mut by_hand = by_hand();
    let good = || file(0, PAGE);
    let alone = "expected no buffer, no memory and mode play";
    for (terms, reason) in [
        (prefer(7), "priority 7: expected 0, the highest, to 6"),
        (
            Terms {
                buffer: 1,
                ..prefer(6)
            },
            alone,
        ),
        (
            Terms {
                memory: Some(0),
                ..prefer(6)
            },
            alone,
        ),
        (
            Terms {
                mode: StreamMode::Record,
                ..prefer(6)
            },
            alone,
        ),
    ] {
        let found = refused(&mut by_hand, terms, good());
        assert!(found.contains(reason), "{found}");
    }
    granted(&mut by_hand, 1, prefer(6), good());
    granted(&mut by_hand, 2, prefer(0), good());
}

#[test]
fn a_preferred_file_is_listed_moved_and_ended() {
    let mut by_hand = by_hand();
    let mut events = granted(&mut by_hand, 4, prefer(5), file(8 * PAGE, 2 * PAGE));
    let mut other = granted(&mut by_hand, 5, prefer(4), file(0, PAGE));
    let all = listed(&mut by_hand);
    assert_eq!(all.len(), 2);
    let expected = Listed {
        stream: 4,
        user: 1004,
        terms: Terms {
            memory: Some(0),
            ..prefer(5)
        },
        standing: StreamStatus::BestEffort,
        ..Listed::default()
    };
    assert_eq!(all[0], expected);
    let refresh = |by_hand: &mut ByHand, places: Places| {
        let (volumes, disk) = by_hand.parts();
        let refresh = Refresh { stream: 4, places };
        volumes
            .streams
            .refresh(disk, &volumes.operations.exports, &refresh)
    };
    assert_eq!(
        refresh(&mut by_hand, file(8 * PAGE, 2 * PAGE)),
        Ok(FileChange::Same)
    );
    assert_eq!(
        refresh(&mut by_hand, file(16 * PAGE, 2 * PAGE)),
        Ok(FileChange::Moved(0))
    );
    assert!(refresh(&mut by_hand, file(BYTES, PAGE)).is_err());
    assert_eq!(
        class_of(&mut by_hand, None, 8 * PAGE, PAGE),
        Class::default()
    );
    assert_eq!(
        class_of(&mut by_hand, None, 16 * PAGE, PAGE),
        Class::BestEffort(5)
    );
    close(&mut by_hand, 5);
    assert_eq!(listed(&mut by_hand).len(), 1);
    assert!(updates(&mut other).is_empty(), "its client has closed it");
    by_hand.event_loop.stop();
    let reason = "the service is stopping".to_owned();
    assert_eq!(updates(&mut events), [StreamUpdate::Ended { reason }]);
    assert!(listed(&mut by_hand).is_empty());
}
