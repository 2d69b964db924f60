//! An export of another server before it is served: whether it can be, and as what.

use std::io;

use block::Duration;
use tracing::warn;

use super::Remote;
use super::dialing::{Agreement, Target};
use crate::config;
use crate::disk::back_end::Shape;
use nbd::offer::Offer;

/// An export that was found, on its way to the thread that serves it.
pub struct Found {
    pub(super) target: Target,
    pub(super) agreement: Agreement,
    pub(super) shape: Shape,
    pub(super) patience: Duration,
}

/// The largest block that our volumes are aligned to.
const LARGEST_BLOCK: u32 = config::ALIGN_BYTES as u32;

/// Bytes in a block if the server does not want more. A choice: the smallest that any client asks
/// for.
const BLOCK: u32 = 512;

impl Found {
    /// Connects and agrees; `block_bytes` is what a profile of the disk behind says, if there is
    /// one.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
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

    /// What there is.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// As the server tells of it.
    pub fn offer(&self) -> &Offer {
        &self.agreement.session.offer
    }

    /// The back end, for the thread that this is called on.
    ///
    /// # Errors
    /// If there is no thread to look for the server when it has gone.
    pub fn take_up(self) -> io::Result<Remote> {
        Remote::new(self)
    }
}

/// What a server of this kind is to an event loop.
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
