//! Block status of moments: holes and data, and dirty bytes.

use super::Checkpoints;
use crate::checkpoint::{CHUNK, bytes_of};
use crate::disk::back_end::{Holds, Run};

/// The chunks of one answer about dirty bytes. A choice: 16 GiB, which take a fraction of a millisecond. Clients ask
/// again behind them.
const MOST_CHUNKS: u64 = 1 << 18;

impl Checkpoints {
    /// Holes and data of a moment from byte `offset` on, of those of the volume: old bytes are data.
    pub(crate) fn runs_of_moment(&self, export: usize, offset: u64, runs: &[Run]) -> Vec<Run> {
        let mut all = self.all.iter();
        let Some(one) = all.find(|one| one.export == export) else {
            return runs.to_vec();
        };
        let (mut at, mut parts) = (offset, Vec::new());
        for run in runs {
            let end = at + run.length;
            for chunk in one.copies(at / CHUNK..end.div_ceil(CHUNK)) {
                let copy = bytes_of(chunk, end);
                push(&mut parts, copy.start.saturating_sub(at), run.holds);
                at = at.max(copy.start);
                push(&mut parts, copy.end - at, Holds::Bytes);
                at = copy.end;
            }
            push(&mut parts, end - at, run.holds);
            at = end;
        }
        let run = |(length, holds)| Run { length, holds };
        parts.into_iter().map(run).collect()
    }

    /// Dirty bytes and others of a moment's bitmap, in the bytes from `offset` on, or the first of them. None if there
    /// is no such bitmap.
    pub(crate) fn dirty_runs(
        &self,
        export: usize,
        name: &str,
        (offset, length): (u64, u64),
    ) -> Vec<(u64, bool)> {
        let mut all = self.all.iter();
        let one = all.find(|one| one.export == export);
        let Some(dirty) = one.and_then(|one| self.bitmaps.frozen(&one.volume, name)) else {
            return Vec::new();
        };
        let (mut at, mut runs) = (offset, Vec::new());
        let end = (offset + length).min(offset + MOST_CHUNKS * CHUNK);
        while at < end {
            let next = bytes_of(at / CHUNK, end).end;
            push(&mut runs, next - at, dirty.has(at / CHUNK));
            at = next;
        }
        runs
    }
}

/// Adds bytes to runs whose neighbours differ.
fn push<T: PartialEq>(runs: &mut Vec<(u64, T)>, length: u64, what: T) {
    match runs.last_mut() {
        _ if length == 0 => (),
        Some((before, same)) if *same == what => *before += length,
        _ => runs.push((length, what)),
    }
}
