//! Which requests are kept for those who ask why they were slow, and to whom it is owed.

use std::sync::{Arc, mpsc};

use block::Class;
use block::operation::Ask;
use drive::catalog::find;
use server::accounts::slowest::KEPT;
use server::event_loop::mailbox::Letter;
use server::volume::Export;
use server::volume::posted::{Contents, Posted};
use server::why::{How, Query, Slow};

use crate::station::Served;

const BYTES: u64 = 1 << 29;

/// So many reads of each export.
const READS: u64 = 60;

/// A drive in service: an urgent export beside one that is not, after some load.
fn served() -> Served {
    let truth = find("dec-rz26").expect("it is shipped").profile();
    let truth = Arc::new(truth.expect("a profile"));
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::emulated(folder, truth, "sptf", 0.01, BYTES, 1);
    let urgent = served.ask(|event_loop| {
        event_loop.add_export(Export {
            name: "urgent".to_owned(),
            offset: 0,
            length: BYTES,
            class: Class::BestEffort(0),
        })
    });
    let (tell, told) = mpsc::channel();
    for number in 0..READS {
        for (export, length) in [(0, 256 << 10), (urgent, 4096)] {
            let tell = tell.clone();
            let at = (number * 2 + export as u64) * 7_654_321 % (BYTES / 4096 - 64);
            let posted = Posted {
                export,
                ask: Ask::Read,
                offset: at * 4096,
                length,
                contents: Contents::Owned(Vec::new()),
                owner: block::Owner::NOBODY,
                reply: Box::new(move |result| {
                    let _ = tell.send(result.is_ok());
                }),
            };
            let station = served.station.as_ref().expect("it runs");
            let letter = Letter::Operation(posted);
            station.mailbox().post(letter).expect("it runs");
        }
    }
    for _ in 0..2 * READS {
        assert_eq!(told.recv(), Ok(true));
    }
    served
}

fn asked(served: &Served, query: Query) -> Vec<Slow> {
    served.ask(move |event_loop| event_loop.slowest(&query))
}

fn of(export: &str) -> Query {
    Query {
        export: Some(export.to_owned()),
        ..Query::default()
    }
}

#[test]
fn the_slowest_of_each_export_are_kept_with_those_who_went_before_them() {
    let served = served();
    let (bulk, urgent) = (asked(&served, of("")), asked(&served, of("urgent")));
    assert_eq!((bulk.len(), urgent.len()), (KEPT, KEPT));
    let all = asked(&served, Query::default());
    assert_eq!(all.len(), 2 * KEPT);
    assert!(all.is_sorted_by(|a, b| a.response_us >= b.response_us));
    for slow in &all {
        let others: f64 = slow.others.iter().map(|others| others.us).sum();
        let waits = slow.outside_us + slow.order_us + slow.held_back_us + slow.forgotten_us;
        let sum = waits + others + slow.in_drive.us;
        assert!((sum - slow.response_us).abs() < 0.01, "{slow:?}");
        let (export, blocks) = match slow.export.as_str() {
            "urgent" => ("foreground", 8),
            _ => ("best-effort-3", 512),
        };
        assert_eq!((slow.class.as_str(), slow.blocks), (export, blocks));
        for command in &slow.before {
            let blocks = match command.export.as_deref() {
                Some("urgent") => 8,
                Some("") => 512,
                other => panic!("{other:?}"),
            };
            assert_eq!(command.blocks, Some(blocks), "{command:?}");
        }
    }
    let last = &bulk[0];
    let more_urgent = last.others.iter().find(|o| o.how == How::MoreUrgent);
    assert!(more_urgent.is_some(), "the urgent went before: {last:?}");
    let urgent = |slow: &Slow| slow.others.iter().any(|o| o.how == How::MoreUrgent);
    assert!(!asked(&served, of("urgent")).iter().any(urgent));
    served.stop();
}

#[test]
fn a_request_is_found_by_its_number_and_the_number_asked_for_is_told() {
    let served = served();
    let all = asked(&served, Query::default());
    let some = Query {
        slowest: Some(5),
        ..Query::default()
    };
    let numbers = |slow: &[Slow]| -> Vec<u64> { slow.iter().map(|one| one.request).collect() };
    assert_eq!(numbers(&asked(&served, some)), numbers(&all[..5]));
    for slow in &all {
        let one = Query {
            request: Some(slow.request),
            ..Query::default()
        };
        let found: Vec<u64> = asked(&served, one).iter().map(|one| one.block).collect();
        assert_eq!(found, [slow.block]);
    }
    let none = Query {
        request: Some(3 * READS),
        ..Query::default()
    };
    assert!(asked(&served, none).is_empty());
    served.stop();
}
