//! What the keeper asks of the region, in its order, and the region's answers.

use std::io;
use std::ops::Range;

use super::record::{Changes, PageSums, Record};
use super::region::{Medium, Region, Verified};

/// A request of the keeper. Requests are carried out in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Makes intents of these chunks and pages durable. Answered by [`Report::Intended`].
    Intend(Vec<(u64, u16)>),
    /// Writes records, and then removes intents.
    Settle {
        /// Durable changes by chunk.
        changes: Vec<(u64, Changes)>,
        /// The chunks whose intents are removed.
        clear: Vec<u64>,
    },
    /// Removes the checksum of a chunk.
    Forget(u64),
    /// Removes the checksums of chunks durably, before their space is changed. Answered by [`Report::Voided`].
    Void {
        /// The change of space.
        key: u64,
        /// The chunks.
        chunks: Range<u64>,
        /// Their records from now on.
        record: Record,
    },
    /// Compares a chunk that was read. Answered by [`Report::Verified`].
    Verify {
        /// The chunk.
        chunk: u64,
        /// The checksums of its pages.
        sums: PageSums,
        /// The pages with a change that may have been interrupted.
        doubted: u16,
        /// Its unreadable pages, whose sums are void.
        unreadable: u16,
    },
    /// Changes the number of the volume's bytes.
    Resize(u64),
}

/// An answer of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// These intents are durable.
    Intended(Vec<(u64, u16)>),
    /// The checksums of this change of space are gone.
    Voided(u64),
    /// A chunk was compared.
    Verified {
        /// The chunk.
        chunk: u64,
        /// The result.
        verified: Verified,
    },
}

impl<M: Medium> Region<M> {
    /// Carries out a request of the keeper.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn carry_out(&mut self, order: Order) -> io::Result<Option<Report>> {
        match order {
            Order::Intend(intents) => {
                self.intend(&intents)?;
                return Ok(Some(Report::Intended(intents)));
            }
            Order::Settle { changes, clear } => {
                self.settle(&changes)?;
                self.clear(&clear)?;
            }
            Order::Forget(chunk) => self.forget(chunk)?,
            Order::Void {
                key,
                chunks,
                record,
            } => {
                self.void_chunks(chunks, record)?;
                return Ok(Some(Report::Voided(key)));
            }
            Order::Verify {
                chunk,
                sums,
                doubted,
                unreadable,
            } => {
                let verified = match unreadable {
                    0 => self.verify(chunk, &sums, doubted)?,
                    _ => self.verify_beside(chunk, &sums, (doubted, unreadable))?,
                };
                return Ok(Some(Report::Verified { chunk, verified }));
            }
            Order::Resize(length) => self.resize(length)?,
        }
        Ok(None)
    }
}
