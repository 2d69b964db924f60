//! Files with a priority: what anybody reads of them is served at it, at the highest if there are
//! several, and as before when nobody asks for one any more.

use block::Class;
use block::operation::Ask;
use headtime_client::wire::{
    Attach, FileChange, FilePiece, Places, Refresh, StreamMode, StreamRefused, StreamStatus, Terms,
};
use nbd::Style;
use nbd::request::Asked;
use server::volume::streams::StreamEvents;
use server::volume::streams::StreamRequest;

use crate::client::Client;
use crate::station::{BLOCK, Medium, Served};

/// A file of eight blocks at a block.
fn at(first: u64) -> Places {
    Places {
        length: 8 * BLOCK,
        pieces: vec![FilePiece(0, first * BLOCK, 8 * BLOCK)],
    }
}

fn prefer(served: &Served, stream: u64, attach: Attach) -> Result<u64, StreamRefused> {
    let (events, _) = StreamEvents::new();
    let request = StreamRequest {
        stream,
        user: 0,
        attach,
        events,
    };
    let granted = served.ask(move |event_loop| event_loop.streams().attach(request));
    granted.map(|granted| granted.stream)
}

fn only(priority: u8, places: Places) -> Attach {
    Attach {
        terms: Terms {
            priority: Some(priority),
            ..Terms::default()
        },
        places,
    }
}

/// At which priority a read of a block was served.
fn priority_of(served: &Served, client: &mut Client, block: u64) -> u8 {
    let counted = |served: &Served| {
        served.ask(|event_loop| {
            let reads = |priority| event_loop.tally().served(Class::BestEffort(priority));
            [0, 1, 2, 3, 4, 5, 6].map(|priority| reads(priority).requests[0])
        })
    };
    let before = counted(served);
    let end = client.ask(Asked::Of(Ask::Read), block * BLOCK, BLOCK, &[]);
    assert_eq!(end.result, Ok(()));
    let after = counted(served);
    let mut each = before.iter().zip(after);
    let which = each.position(|(before, after)| after > *before);
    which.expect("it was served") as u8
}

#[test]
fn what_is_read_of_a_file_has_its_priority_and_the_highest_of_several() {
    let served = Served::plain(Medium::Promising, 4096 * BLOCK);
    let mut client = Client::connect(&served.socket(), Style::Structured);
    let Class::BestEffort(usual) = Class::default() else {
        panic!("best effort is usual");
    };
    assert!(usual > 1 && usual < 5, "{usual}");
    assert_eq!(priority_of(&served, &mut client, 100), usual);
    assert_eq!(prefer(&served, 1, only(5, at(100))), Ok(1));
    assert_eq!(prefer(&served, 2, only(1, at(104))), Ok(2));
    let expected = [(99, usual), (100, 5), (104, 1), (111, 1), (112, usual)];
    for (block, priority) in expected {
        assert_eq!(
            priority_of(&served, &mut client, block),
            priority,
            "{block}"
        );
    }
    let listed = served.ask(|event_loop| event_loop.streams().list());
    let listed: Vec<_> = listed
        .iter()
        .map(|file| (file.stream, file.terms.priority, file.standing))
        .collect();
    let best_effort = StreamStatus::BestEffort;
    assert_eq!(
        listed,
        [(1, Some(5), best_effort), (2, Some(1), best_effort)]
    );
    // The second one moves, and goes.
    let refresh = Refresh {
        stream: 2,
        places: at(200),
    };
    let moved = served.ask(move |event_loop| event_loop.streams().refresh(&refresh));
    assert_eq!(moved, Ok(FileChange::Moved(0)));
    assert_eq!(priority_of(&served, &mut client, 104), 5);
    assert_eq!(priority_of(&served, &mut client, 200), 1);
    served.ask(|event_loop| event_loop.streams().close(2));
    assert_eq!(priority_of(&served, &mut client, 200), usual);
    served.ask(|event_loop| event_loop.streams().close(1));
    assert_eq!(priority_of(&served, &mut client, 104), usual);
    drop(client);
    served.assert_nothing_is_held();
}

#[test]
fn what_is_no_priority_is_refused_with_what_was_expected() {
    let served = Served::plain(Medium::Promising, 4096 * BLOCK);
    let refused = |attach: Attach| {
        let refused = prefer(&served, 9, attach).expect_err("refused");
        refused.reason
    };
    let usual = || only(3, at(100));
    let cases = [
        (
            only(7, at(100)),
            "priority 7: expected 0, the highest, to 6",
        ),
        (
            {
                let mut attach = usual();
                attach.terms.buffer = 4096;
                attach
            },
            "expected no buffer",
        ),
        (
            {
                let mut attach = usual();
                attach.terms.mode = StreamMode::Record;
                attach
            },
            "mode play",
        ),
        (only(3, at(5_000)), "expected places within"),
        (
            {
                let mut attach = usual();
                attach.terms.priority = None;
                attach
            },
            "a buffer of 0 bytes",
        ),
        (
            {
                let mut attach = usual();
                attach.terms.priority = None;
                attach.terms.buffer = 4096;
                attach
            },
            "a rate of 0",
        ),
        (
            {
                let mut attach = usual();
                attach.terms.priority = Some(9);
                attach.terms.rate = 100_000;
                attach.terms.buffer = 4096;
                attach
            },
            "priority 9: expected 0, the highest, to 6",
        ),
    ];
    for (attach, expected) in cases {
        let reason = refused(attach);
        assert!(reason.contains(expected), "{reason}: {expected}");
    }
    let plain = Served::plain(Medium::Memory, 4096 * BLOCK);
    let reason = prefer(&plain, 1, usual()).expect_err("refused").reason;
    assert!(reason.contains("promises nothing"), "{reason}");
}
