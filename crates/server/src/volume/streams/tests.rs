//! Streams over a drive by hand, in virtual time.

mod asked;
mod copied;
mod played;
mod preferred;
mod recorded;

use std::sync::Arc;

use block::operation::Ask;
use block::{Durability, Duration, Terms};
use engine::Engine;
use engine::guarantees::{Beyond, FOREGROUND_BYTES};
use engine::streams::Promise;
use headtime_client::wire::{Attach, FilePiece, Listed, Places, StreamNotice, StreamUpdate};
use headtime_client::wire::{Granted, StreamRefused};
use stream::admission::Rules;
use stream::quota::Quotas;
use tokio::sync::mpsc::Receiver;

use super::{Settings, StreamEvents, StreamRequest};
use crate::event_loop::by_hand::{Answer, BLOCK, ByHand, Setup, export};

/// Bytes of a page of a stream.
const PAGE: u64 = 4096;

/// The first byte of the first volume on the drive.
const OFFSET: u64 = 4 * PAGE;
/// Bytes of each of two volumes.
const BYTES: u64 = 256 * PAGE;

/// The share of the head time for others, in thousandths.
const FOREGROUND: u32 = 100;

const WRITE: Ask = Ask::Write {
    durability: Durability::Volatile,
};

pub(in crate::volume) fn promising(engine: Engine) -> Engine {
    let promise = Promise {
        beyond: Beyond::default(),
        rules: Rules {
            foreground_permille: FOREGROUND,
            latency: Duration::from_millis(1),
            longest_round: Duration::from_secs(1),
            streams: 8,
        },
        quotas: Quotas::open(),
        settings: stream::streams::Settings {
            page: PAGE,
            fill: FOREGROUND_BYTES,
            priority: 3,
        },
        place: None,
    };
    engine.with_guarantees(promise).expect("a seek curve")
}

fn setup() -> Setup {
    let entry = drive::catalog::find("dec-rz26").expect("it is shipped");
    let mut setup = Setup::of_blocks((OFFSET + 2 * BYTES) / BLOCK);
    setup.exports = vec![
        export("v0", OFFSET, BYTES),
        export("v1", OFFSET + BYTES, BYTES),
    ];
    setup.profile = Some(Arc::new(entry.profile().expect("a profile")));
    setup.adapt = promising;
    setup
}

fn by_hand() -> ByHand {
    by_hand_of(setup())
}

fn by_hand_of(setup: Setup) -> ByHand {
    let mut by_hand = ByHand::new(setup);
    by_hand.volumes().streams.set(Settings {
        memory: 1 << 20,
        ..Settings::default()
    });
    by_hand
}

/// A file of `length` bytes in one piece of the volume.
fn file(start: u64, length: u64) -> Places {
    pieces(length, &[(0, start, length)])
}

fn pieces(length: u64, pieces: &[(u64, u64, u64)]) -> Places {
    Places {
        length,
        pieces: pieces
            .iter()
            .map(|&(offset, start, length)| FilePiece(offset, start, length))
            .collect(),
    }
}

/// Terms for so many pages of memory, at ten pages a second.
fn terms(pages: u64) -> Terms {
    Terms {
        memory: Some(pages * PAGE),
        export: Some("v0".to_owned()),
        ..Terms::play(10 * PAGE, PAGE)
    }
}

fn attach(
    by_hand: &mut ByHand,
    stream: u64,
    terms: Terms,
    places: Places,
) -> (Result<Granted, StreamRefused>, Receiver<StreamNotice>) {
    let (events, receiver) = StreamEvents::new();
    let request = StreamRequest {
        stream,
        user: 1000 + stream as u32,
        attach: Attach { terms, places },
        events,
    };
    let (volumes, disk) = by_hand.parts();
    let granted = volumes.attach(disk, request);
    by_hand.work();
    (granted, receiver)
}

fn granted(
    by_hand: &mut ByHand,
    stream: u64,
    terms: Terms,
    places: Places,
) -> Receiver<StreamNotice> {
    let (granted, events) = attach(by_hand, stream, terms, places);
    assert_eq!(granted.expect("granted").stream, stream);
    events
}

fn refused(by_hand: &mut ByHand, terms: Terms, places: Places) -> String {
    let (granted, _) = attach(by_hand, 99, terms, places);
    granted.expect_err("refused").reason
}

fn updates(events: &mut Receiver<StreamNotice>) -> Vec<StreamUpdate> {
    let all = std::iter::from_fn(|| events.try_recv().ok());
    all.map(|notice| notice.event).collect()
}

/// Commands end one after the other, and time passes, for so long.
fn run_for(by_hand: &mut ByHand, time: Duration) {
    let until = by_hand.disk().now + time;
    loop {
        by_hand.run();
        if by_hand.disk().now >= until {
            return;
        }
        by_hand.pass(until);
    }
}

fn listed(by_hand: &mut ByHand) -> Vec<Listed> {
    let (volumes, disk) = by_hand.parts();
    volumes.streams.listed(disk)
}

fn position(by_hand: &mut ByHand, stream: u64, offset: u64) {
    let (volumes, disk) = by_hand.parts();
    let position = headtime_client::wire::Position { stream, offset };
    volumes.streams.position(disk, &position);
    volumes.poll_streams(disk);
    by_hand.work();
}

fn close(by_hand: &mut ByHand, stream: u64) {
    let (volumes, disk) = by_hand.parts();
    volumes.streams.close(disk, stream);
    volumes.poll_streams(disk);
    by_hand.work();
}

fn read(by_hand: &mut ByHand, start: u64, length: u64) -> Answer {
    by_hand.post(0, Ask::Read, (start, length), Vec::new())
}

fn write(by_hand: &mut ByHand, start: u64, length: u64, value: u8) -> Answer {
    by_hand.post(0, WRITE, (start, length), vec![value; length as usize])
}

fn bytes_of(answer: &Answer) -> Option<Vec<u8>> {
    Some(answer.take()?.expect("bytes"))
}

fn is_done(answer: &Answer) -> bool {
    matches!(answer.take(), Some(Ok(_)))
}

/// Fills bytes of the drive that belong to the first volume.
fn fill(by_hand: &ByHand, start: u64, length: u64, value: u8) {
    let start = (OFFSET + start) as usize;
    by_hand.bytes()[start..start + length as usize].fill(value);
}
