//! A client that asks for no block sizes may address single bytes: each is what was written there
//! last, whatever the blocks are.

use block::Durability;
use block::operation::{Ask, OperationError, Space, ZeroingPace};
use nbd::Style;
use nbd::request::Asked;
use proptest::prelude::*;

use crate::client::Client;
use crate::hostile;
use crate::station::{BLOCK, Medium, Served};

/// Bytes of the device: a few of the largest blocks.
const BYTES: u64 = 8 * 4096;

#[derive(Clone, Debug)]
struct Step {
    ask: Ask,
    from: u64,
    to: u64,
    fill: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let durability = prop_oneof![Just(Durability::Volatile), Just(Durability::Durable)];
    let space = prop_oneof![Just(Space::MayBeFreed), Just(Space::Kept)];
    let ask = prop_oneof![
        3 => Just(Ask::Read),
        3 => durability.clone().prop_map(|durability| Ask::Write { durability }),
        2 => (durability.clone(), space).prop_map(|(durability, space)| Ask::Zero {
            durability,
            space,
            pace: ZeroingPace::Any,
        }),
        1 => durability.prop_map(|durability| Ask::Trim { durability }),
        1 => Just(Ask::Cache),
    ];
    let place = prop_oneof![
        (0..BYTES, 0..BYTES),
        (0..BYTES, 1..40u64).prop_map(|(from, length)| (from, from + length)),
    ];
    (ask, place, 1..=255u8).prop_filter_map("some bytes", |(ask, (from, to), fill)| {
        let (from, to) = (from.min(to), from.max(to).min(BYTES));
        (from < to).then_some(Step {
            ask,
            from,
            to,
            fill,
        })
    })
}

/// What may be there after a trim: each byte as it was, or zero.
fn trimmed(expected: &mut [u8], found: &[u8]) {
    for (expected, &found) in expected.iter_mut().zip(found) {
        assert!(found == *expected || found == 0, "{found} of {expected}");
        *expected = found;
    }
}

fn play(served: Served, steps: &[Step]) {
    let mut client = Client::connect_unaware(&served.socket(), Style::Structured);
    let mut expected = vec![0; BYTES as usize];
    for Step {
        ask,
        from,
        to,
        fill,
    } in steps
    {
        let place = *from as usize..*to as usize;
        let payload = match ask {
            Ask::Write { .. } => vec![*fill; place.len()],
            _ => Vec::new(),
        };
        let end = client.ask(Asked::Of(*ask), *from, to - from, &payload);
        assert_eq!(end.result, Ok(()), "{ask:?} {place:?}");
        match ask {
            Ask::Read => assert!(end.bytes == expected[place.clone()], "{place:?}"),
            Ask::Write { .. } => expected[place.clone()].fill(*fill),
            Ask::Zero { .. } => expected[place.clone()].fill(0),
            Ask::Trim { .. } => {
                let found = client.ask(Asked::Of(Ask::Read), *from, to - from, &[]);
                trimmed(&mut expected[place.clone()], &found.bytes);
            }
            Ask::Cache | Ask::Flush => (),
        }
        // What is around it, too.
        let all = client.ask(Asked::Of(Ask::Read), 0, BYTES, &[]);
        assert!(all.bytes == expected, "{ask:?} {place:?}");
    }
    drop(client);
    served.assert_nothing_is_held();
    served.stop();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_is_what_was_written_last(steps in prop::collection::vec(step(), 1..40)) {
        for medium in [
            Medium::Memory,
            Medium::File,
            Medium::Tmpfs,
            Medium::Emulated,
            Medium::CoarseFile,
            Medium::CoarseDrive,
        ] {
            play(Served::plain(medium, BYTES), &steps);
        }
    }

    #[test]
    fn every_byte_is_what_was_written_last_through_a_cache(
        setting in crate::cached::setting(6),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        for medium in [Medium::Memory, Medium::File, Medium::Emulated, Medium::CoarseDrive] {
            play(Served::behind(Some(setting.clone()), medium, BYTES), &steps);
        }
    }
}

#[test]
fn who_asked_for_block_sizes_is_held_to_them() {
    let served = Served::plain(Medium::CoarseFile, BYTES);
    let mut aware = Client::connect(&served.socket(), Style::Simple);
    hostile::send_unchecked(&mut aware, Ask::Read, 0, BLOCK);
    assert_eq!(hostile::simple_answer(&mut aware), OperationError::Invalid);
    let mut unaware = Client::connect_unaware(&served.socket(), Style::Simple);
    let end = unaware.ask(Asked::Of(Ask::Read), BYTES - 1, 1, &[]);
    assert_eq!(end.result, Ok(()));
    served.stop();
}
