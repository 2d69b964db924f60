//! The files of equal applications, and their streams.

use block::{Direction, Extent, Instant, Lba, Sectors, StreamMode, Terms};
use engine::Engine;
use engine::streams::NotGranted;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use stream::LocationMap;
use stream::location::Piece;
use stream::streams::{Attach, StreamId};

use super::{PAGE, StreamingSetup};

/// The number of blocks of each file.
pub(super) fn file_blocks(engine: &Engine, wish: &StreamingSetup) -> u64 {
    let block = u64::from(engine.belief().profile().block_bytes);
    let seconds = wish.until.as_nanos().div_ceil(stream::rate::SECOND) + 1;
    let length = wish.rate.bytes() * seconds + wish.memory + wish.further + wish.at_once;
    let blocks = length.div_ceil(PAGE) * (PAGE / block);
    blocks.min(wish.place.length().0)
}

/// A random offset of a file in the extent.
pub(super) fn anywhere(engine: &Engine, wish: &StreamingSetup, dice: &mut Pcg64Mcg) -> u64 {
    let page = PAGE / u64::from(engine.belief().profile().block_bytes);
    match wish.place.length().0 - file_blocks(engine, wish) {
        0 => 0,
        spread => (dice.next_u64() % spread) / page * page,
    }
}

/// Attaches one stream over a contiguous file.
pub(super) fn attach(
    engine: &mut Engine,
    wish: &StreamingSetup,
    direction: Direction,
    offset: u64,
) -> Result<StreamId, NotGranted> {
    let block = u64::from(engine.belief().profile().block_bytes);
    let place = wish.place;
    let blocks = file_blocks(engine, wish);
    let extent = Extent::new(Lba(place.start().0 + offset), Sectors(blocks));
    let extent = extent.expect("a file of at least one page, on the drive");
    let map = LocationMap::new(vec![Piece { offset: 0, extent }], block, blocks * block);
    let ask = Attach {
        user: 0,
        terms: Terms {
            name: "simulated".to_owned(),
            mode: match direction {
                Direction::Read => StreamMode::Play,
                Direction::Write => StreamMode::Record,
            },
            memory: Some(wish.memory),
            ..Terms::play(wish.rate.bytes(), wish.at_once)
        },
        map: map.expect("one piece is a map"),
    };
    Ok(engine.attach(Instant::ZERO, ask)?.stream)
}
