//! Power cuts of the emulated drive under a load that knows what it wrote.

use std::sync::Arc;

use block::Durability;
use block::operation::{Ask, OperationError};
use drive::catalog::find;
use drive::{Lost, Profile};
use nbd::Style;
use nbd::request::Asked;

use crate::client::Client;
use crate::ledger::{Ledger, Rule};
use crate::station::{FASTEST, Served};

/// Whether the load takes a flush for granted that was never sent: what a server that lies about
/// flushes looks like to its clients.
#[derive(Clone, Copy, PartialEq)]
enum Flushes {
    Sent,
    Imagined,
}

/// What 200 cuts did.
#[derive(Default)]
struct Cuts {
    lost: Lost,
    broken: Vec<String>,
    unreadable: usize,
}

/// A drive with a write cache of several segments, whose sectors are its blocks.
fn drive() -> Arc<Profile> {
    let entry = find("seagate-cheetah-9lp").expect("it is shipped");
    let profile = entry.profile().expect("a profile");
    assert_eq!(profile.physical_block_bytes, profile.block_bytes);
    Arc::new(profile)
}

/// On a busy machine the drive rarely has a sector under its head: then the power is cut more often, at most so many times.
const MOST: u64 = 10;

/// Cuts the power so often, each time within a load, and until a sector was torn; imagined flushes until they are found
/// out.
fn cut(rounds: u64, flushes: Flushes) -> Cuts {
    let folder = tempfile::tempdir().expect("a folder");
    let truth = drive();
    let mut ledger = Ledger::new(1);
    let bytes = ledger.bytes();
    // On a busy machine a fast drive has written all that it holds before it is cut.
    let scale = match flushes {
        Flushes::Sent => FASTEST * 10.0,
        Flushes::Imagined => FASTEST * 100.0,
    };
    let served = Served::emulated(folder, truth, "sptf", scale, bytes, 7);
    let mut cuts = Cuts::default();
    for round in 0..MOST * rounds {
        let lacks = flushes == Flushes::Sent && (cuts.lost.torn.is_empty() || cuts.unreadable == 0);
        if round >= rounds && !lacks {
            break;
        }
        let mut client = Client::connect(&served.socket(), Style::Structured);
        // As many ends are taken as the round says: the cut comes anywhere in the load.
        let mut left = 5 + round % 60;
        while left > 0 {
            while client.under_way() < 8 {
                let (rule, flush) = ledger.next();
                let is_imagined = flushes == Flushes::Imagined && rule == Rule::Flush;
                match is_imagined {
                    true => ledger.imagine(flush),
                    false => ledger.submit(&mut client, rule, flush),
                }
            }
            let end = client.end().expect("the server answers");
            assert_eq!(end.result, Ok(()));
            ledger.ended(&end);
            left -= 1;
        }
        let lost = served.ask(|event_loop| event_loop.power_cut().expect("a drive with power"));
        // What was answered before counts.
        while let Some(end) = client.end() {
            match end.result {
                Ok(()) => ledger.ended(&end),
                Err(OperationError::Io) => ledger.failed(&end),
                other => panic!("{other:?}"),
            }
        }
        ledger.nobody_answers();
        let mut client = Client::connect(&served.socket(), Style::Structured);
        cuts.lost.written.extend(lost.written);
        cuts.lost.undecided.extend(lost.undecided);
        cuts.lost.torn.extend(lost.torn);
        let (broken, unreadable) = ledger.verify(&mut client);
        cuts.broken.extend(broken);
        cuts.unreadable += unreadable;
        drop(client);
        if flushes == Flushes::Imagined && !cuts.broken.is_empty() {
            break;
        }
    }
    served.assert_nothing_is_held();
    served.stop();
    cuts
}

#[test]
fn what_was_flushed_survives_200_power_cuts() {
    let cuts = cut(200, Flushes::Sent);
    assert_eq!(cuts.broken, [""; 0]);
    // Something was lost, interrupted and torn, or this test tests nothing.
    let Lost {
        written,
        undecided,
        torn,
        ..
    } = &cuts.lost;
    let counts = [written.len(), undecided.len(), torn.len(), cuts.unreadable];
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

#[test]
fn a_flush_that_was_never_sent_is_found_out() {
    let cuts = cut(200, Flushes::Imagined);
    assert_ne!(cuts.broken, [""; 0]);
}

#[test]
fn a_torn_sector_is_unreadable_until_it_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::emulated(folder, drive(), "fcfs", FASTEST * 100.0, 1 << 30, 3);
    let write = Asked::Of(Ask::Write {
        durability: Durability::Durable,
    });
    let read = Asked::Of(Ask::Read);
    let payload = vec![1; 1 << 20];
    let mut looks = 0;
    let torn = loop {
        let mut client = Client::connect(&served.socket(), Style::Simple);
        client.submit(write, 0, 1 << 20, &payload);
        while served.ask(|event_loop| event_loop.engine().dispatch().at_drive()) == 0 {
            std::thread::yield_now();
        }
        // Each time a little later in the write.
        for _ in 0..looks {
            served.ask(|event_loop| event_loop.now());
        }
        looks = (looks + 7) % 200;
        let lost = served.ask(|event_loop| event_loop.power_cut().expect("a drive with power"));
        // A write that the drive had not been given yet is done afterwards.
        served.wait_for_connections(0);
        if let [torn] = lost.torn[..] {
            break torn;
        }
    };
    let mut client = Client::connect(&served.socket(), Style::Simple);
    let (offset, length) = (torn.start().0 * 512, torn.length().0 * 512);
    let is_there = |client: &mut Client| client.ask(read, offset, length, &[]).result;
    assert_eq!(is_there(&mut client), Err(OperationError::Io));
    let other = client.ask(read, offset + length, 512, &[]);
    assert_eq!(other.result, Ok(()));
    let end = client.ask(write, offset, length, &payload[..length as usize]);
    assert_eq!(end.result, Ok(()));
    assert_eq!(is_there(&mut client), Ok(()));
}
