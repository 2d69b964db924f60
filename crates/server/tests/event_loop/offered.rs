//! What clients of the tests are offered: a volume with all features.

use nbd::Context;
use nbd::offer::{BlockSizes, Features, Offer, Text};

/// The longest read or write: the protocol's least.
pub const LONGEST: u32 = 1 << 20;

/// A volume of so many bytes, in blocks of so many.
pub fn offer(name: &str, size: u64, block: u32) -> Offer {
    Offer {
        name: Text::new(name).expect("a name"),
        description: Text::default(),
        size,
        block: BlockSizes::new(block, 4096, LONGEST).expect("sizes"),
        features: Features {
            read_only: false,
            flush: true,
            fua: true,
            trim: true,
            write_zeroes: true,
            fast_zero: true,
            multi_conn: true,
            cache: true,
            rotational: true,
            df: true,
        },
        contexts: vec![Context::Allocation],
    }
}
