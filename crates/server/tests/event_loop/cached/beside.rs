//! Streams on a drive of which a volume has a cache.

use headtime_client::wire::{Attach, FilePiece, Places, Terms};
use server::cache_setting::PAGE;

use super::posted::writing_back;
use crate::random::BLOCKS;
use crate::station::{BLOCK, Medium, Served};
use crate::streams::ask_for;

#[test]
fn a_stream_on_a_volume_with_a_cache_is_refused() {
    let served = Served::behind(Some(writing_back(8)), Medium::Promising, BLOCKS * BLOCK);
    let attach = |export: &str| Attach {
        terms: Terms {
            export: Some(export.to_owned()),
            rate: 400_000,
            buffer: PAGE,
            memory: Some(16 * PAGE),
            ..Terms::default()
        },
        places: Places {
            length: 4 * PAGE,
            pieces: vec![FilePiece(0, 0, 4 * PAGE)],
        },
    };
    ask_for(&served, 1, attach("")).expect("the first volume has none");
    let refused = ask_for(&served, 2, attach("1")).expect_err("the second has one");
    assert!(
        refused.reason.contains("a volume with a cache"),
        "{refused:?}"
    );
    served.ask(|event_loop| event_loop.streams().close(1));
    served.stop();
}
