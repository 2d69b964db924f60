//! An export of another server before it is served.

use std::io;

use block::Duration;
use tracing::warn;

use super::Remote;
use super::dialing::{Agreement, Target};
use crate::config;
use crate::disk::back_end::Shape;
use nbd::offer::Offer;

/// A connection to an export, for the thread that will serve it.
pub struct Found {
    pub(super) target: Target,
    pub(super) agreement: Agreement,
    pub(super) shape: Shape,
    pub(super) patience: Duration,
}

/// The largest block to which volumes are aligned.
const LARGEST_BLOCK: u32 = config::ALIGN_BYTES as u32;

/// Bytes of a block, unless the server needs larger ones. A choice: the smallest that any client uses.
const BLOCK: u32 = 512;

impl Found {
    /// Connects and does the handshake. `block_bytes` is the block size of the disk's profile, if there is
    /// one.
    ///
    /// # Errors
    /// The problem, and what was expected.
    pub fn connect(config: &config::Remote, block_bytes: Option<u32>) -> Result<Self, String> {
        let at = |problem: String| format!("{}: {problem}", config.uri);
        let target = Target::of(config).map_err(at)?;
        let agreement = target.dial().map_err(|error| at(error.to_string()))?;
        let shape = shape(&agreement.session.offer, block_bytes).map_err(at)?;
        if !agreement.session.offer.features.flush {
            warn!(
                uri = config.uri,
                "the server has no flush: what is written is as safe as it makes it"
            );
        }
        Ok(Found {
            target,
            agreement,
            shape,
            patience: Duration::from_secs(u64::from(config.patience_s)),
        })
    }

    /// The properties of the export.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The server's offer.
    pub fn offer(&self) -> &Offer {
        &self.agreement.session.offer
    }

    /// The back end, for the calling thread.
    ///
    /// # Errors
    /// If there is no thread to reconnect.
    pub fn take_up(self) -> io::Result<Remote> {
        Remote::new(self)
    }
}

/// The properties of an export.
fn shape(offer: &Offer, block_bytes: Option<u32>) -> Result<Shape, String> {
    let least = offer.block.min();
    let block_bytes = match block_bytes {
        Some(bytes) if bytes >= least => bytes,
        Some(bytes) => {
            return Err(format!(
                "the server's smallest block has {least} bytes, and the profile's {bytes}: expected \
                 a profile of that disk"
            ));
        }
        None if least <= BLOCK => BLOCK,
        None => LARGEST_BLOCK,
    };
    if least > LARGEST_BLOCK {
        return Err(format!(
            "the server's smallest block has {least} bytes: expected at most {LARGEST_BLOCK}; \
             nbdkit's filter blocksize-policy can offer less"
        ));
    }
    let blocks = offer.size / u64::from(block_bytes);
    if blocks == 0 {
        return Err(format!(
            "the export has {} bytes: expected at least one block of {block_bytes}",
            offer.size
        ));
    }
    Ok(Shape {
        block_bytes,
        blocks,
        trims: offer.features.trim,
        zeroes_fast: offer.features.write_zeroes,
        rotational: false,
    })
}
