//! Requests for streams: what is refused, and with which reason.

use block::StreamMode;
use headtime_client::wire::StreamUpdate;

use super::*;

#[test]
fn a_stream_is_refused_with_the_reason() {
    let mut by_hand = by_hand();
    let good = || file(0, 16 * PAGE);
    let unnamed = Terms {
        export: Some("v7".to_owned()),
        ..terms(24)
    };
    for (terms, places, reason) in [
        (
            Terms {
                buffer: 0,
                ..terms(24)
            },
            good(),
            "a buffer of 0 bytes",
        ),
        (unnamed, good(), "no export v7"),
        (terms(24), file(BYTES, PAGE), "expected places within"),
        (terms(24), file(1, PAGE), "expected whole blocks"),
        (
            Terms {
                rate: 1 << 40,
                ..terms(24)
            },
            good(),
            "would be granted now",
        ),
    ] {
        let found = refused(&mut by_hand, terms, places);
        assert!(found.contains(reason), "{found}, expected {reason}");
    }
    assert!(listed(&mut by_hand).is_empty());
    // An export of the same name that was another volume's before a reload.
    let moved = crate::volume::Export {
        offset: OFFSET + BYTES,
        ..export("v0", 0, PAGE)
    };
    by_hand.volumes().add_export(moved);
    let found = refused(&mut by_hand, terms(24), good());
    assert!(
        found.contains("export v0 was another volume's before a reload"),
        "{found}"
    );
}

#[test]
fn a_volume_with_a_cache_has_no_streams() {
    let mut by_hand = by_hand();
    let setting = crate::volume::tests::random::setting(8, crate::cache_setting::Writes::Through);
    let (volumes, disk) = by_hand.parts();
    let exports = &volumes.operations.exports;
    volumes
        .caches
        .add(disk, exports, &[(setting, OFFSET, BYTES)])
        .expect("a cache");
    let found = refused(&mut by_hand, terms(24), file(0, 16 * PAGE));
    assert!(
        found.contains("export v0 is of a volume with a cache"),
        "{found}"
    );
    let other = Terms {
        export: Some("v1".to_owned()),
        ..terms(24)
    };
    granted(&mut by_hand, 1, other, file(0, 16 * PAGE));
}

/// Streams leave each other what is left of the memory, and a refusal says what would be enough.
#[test]
fn memory_is_shared_by_all_streams() {
    let mut by_hand = by_hand();
    let half = terms(128);
    granted(&mut by_hand, 1, half.clone(), file(0, 64 * PAGE));
    let held = listed(&mut by_hand)[0].terms.memory.expect("its buffer");
    let left = (1 << 20) - held;
    let more = Terms {
        memory: Some(left + PAGE),
        ..half.clone()
    };
    let (no, _) = attach(&mut by_hand, 2, more, file(64 * PAGE, 64 * PAGE));
    let no = no.expect_err("more than is left");
    let reason = format!("{} bytes of memory, and {left} of 1048576", left + PAGE);
    assert!(no.reason.contains(&reason), "{}", no.reason);
    assert_eq!(no.least_memory, None);
    let rest = Terms {
        memory: Some(left - 4 * PAGE),
        ..half
    };
    granted(&mut by_hand, 2, rest, file(64 * PAGE, 64 * PAGE));
    let any = Terms {
        memory: None,
        ..terms(1)
    };
    let (no, _) = attach(&mut by_hand, 3, any, file(128 * PAGE, 64 * PAGE));
    let no = no.expect_err("four pages are left");
    let least = no.least_memory.expect("what would be enough");
    assert!(least > 4 * PAGE, "{least}");
    let reason = format!("{least} bytes of memory would be enough, and 16384 of 1048576");
    assert!(no.reason.contains(&reason), "{}", no.reason);
}

/// A rate that is too high: the refusal has the largest one, which is granted.
#[test]
fn the_largest_rate_of_a_refusal_is_granted() {
    let mut by_hand = by_hand();
    let fast = Terms {
        rate: 100 << 20,
        memory: None,
        ..terms(1)
    };
    let (no, _) = attach(&mut by_hand, 1, fast.clone(), file(0, 200 * PAGE));
    let no = no.expect_err("faster than the drive");
    let largest = no.largest_rate.expect("a smaller one would do");
    let mb_s = format!(
        "{:.3} MB/s ({largest} bytes in a second) would be granted now",
        largest as f64 / 1e6
    );
    assert!(no.reason.contains(&mb_s), "{}", no.reason);
    let slower = Terms {
        rate: largest,
        ..fast
    };
    let (yes, _) = attach(&mut by_hand, 1, slower, file(0, 200 * PAGE));
    let yes = yes.expect("granted");
    assert!(yes.memory > 0 && yes.batch > 0 && yes.batch <= yes.memory);
    // A round is at most a second, as the rules say.
    assert!(
        (1_000..=1_000_000).contains(&yes.round_us),
        "{}",
        yes.round_us
    );
    assert_eq!(listed(&mut by_hand)[0].terms.memory, Some(yes.memory));
}

#[test]
fn an_export_with_a_stream_is_in_use() {
    let mut by_hand = by_hand();
    let uses = |by_hand: &mut ByHand| [0, 1].map(|export| by_hand.volumes().streams.uses(export));
    assert_eq!(uses(&mut by_hand), [false, false]);
    granted(&mut by_hand, 1, terms(24), file(0, 16 * PAGE));
    assert_eq!(uses(&mut by_hand), [true, false]);
    let prefer = Terms {
        export: Some("v1".to_owned()),
        ..Terms::prefer(2)
    };
    granted(&mut by_hand, 2, prefer, file(0, PAGE));
    assert_eq!(uses(&mut by_hand), [true, true]);
    let (volumes, disk) = by_hand.parts();
    for (volume, offset) in [("v0", OFFSET), ("v1", OFFSET + BYTES)] {
        let resize = |from, to| crate::volume::Resize {
            volume: volume.to_owned(),
            offset,
            from,
            to,
        };
        let shrunk = volumes.may_resize(disk, &resize(BYTES, PAGE), 0);
        let problem = shrunk.expect_err("streams are on it");
        assert!(problem.contains("streams are on it"), "{problem}");
        assert_eq!(volumes.may_resize(disk, &resize(BYTES, BYTES), 0), Ok(()));
        assert_eq!(
            volumes.may_resize(disk, &resize(2 * BYTES, PAGE), 0),
            Ok(()),
            "no export of it"
        );
    }
}

/// Only the recordings of the blocks end.
#[test]
fn a_recording_ends_for_its_own_blocks_only() {
    let mut by_hand = by_hand();
    let record = || Terms {
        mode: StreamMode::Record,
        ..terms(24)
    };
    let mut first = granted(&mut by_hand, 1, record(), file(0, 16 * PAGE));
    let mut second = granted(&mut by_hand, 2, record(), file(16 * PAGE, 16 * PAGE));
    let mut played = granted(&mut by_hand, 3, terms(24), file(16 * PAGE, 16 * PAGE));
    let part = write(&mut by_hand, 20 * PAGE + 1, 5, 1);
    run_for(&mut by_hand, Duration::from_secs(1));
    assert!(is_done(&part));
    let ended = |events: &mut Receiver<StreamNotice>| {
        updates(events)
            .iter()
            .any(|update| matches!(update, StreamUpdate::Ended { .. }))
    };
    assert_eq!(
        [ended(&mut first), ended(&mut second), ended(&mut played)],
        [false, true, false]
    );
}
