//! What an engine promises to streams of the tests, and the places of their files.

use block::Duration;
use engine::Engine;
use engine::guarantees::{Beyond, FOREGROUND_BYTES};
use engine::streams::Promise;
use headtime_client::wire::{FilePiece, Places};
use server::volume::streams::Settings;
use stream::admission::Rules;
use stream::quota::Quotas;

/// Bytes of a page of a stream.
pub const PAGE_BYTES: u64 = 4096;

/// An engine that promises something to streams, and a tenth of the head time to others.
pub fn promising(engine: Engine) -> Engine {
    promising_beside(engine, 100)
}

/// The same, with another share of the head time for others.
pub fn promising_beside(engine: Engine, foreground_permille: u32) -> Engine {
    let promise = Promise {
        beyond: Beyond::default(),
        rules: Rules {
            foreground_permille,
            latency: Duration::from_millis(1),
            longest_round: Duration::from_secs(1),
            streams: 8,
        },
        quotas: Quotas::open(),
        settings: stream::streams::Settings {
            page: PAGE_BYTES,
            fill: FOREGROUND_BYTES,
            priority: 3,
        },
        place: None,
    };
    engine.with_guarantees(promise).expect("a seek curve")
}

/// What the volumes keep for streams: memory for eight of them.
pub fn settings() -> Settings {
    Settings {
        memory: 8 << 20,
        ..Settings::default()
    }
}

/// A file of two pieces of so many bytes, which begin at these bytes of the volume.
pub fn two_pieces([first, second]: [u64; 2], bytes: u64) -> Places {
    Places {
        length: 2 * bytes,
        pieces: vec![FilePiece(0, first, bytes), FilePiece(bytes, second, bytes)],
    }
}
