//! Lists of the streams that are there, for reports and metrics.

use block::Direction;

use super::{Listed, StreamId, Streams};
use crate::head_times::Tracks;

impl<T: Tracks> Streams<T> {
    /// The streams that were granted and have not ended, in the order of their grants.
    pub fn list(&self) -> impl Iterator<Item = Listed<'_>> {
        let plan = self.admission.plan();
        self.table.iter().map(move |(&stream, entry)| Listed {
            stream,
            user: entry.user,
            terms: &entry.terms,
            batch: plan
                .filter(|_| entry.held.is_some())
                .map(|plan| entry.playout.contract.demand.rate.bytes_until(plan.round)),
            standing: entry.playout.standing,
            window: entry.playout.window(),
        })
    }

    /// Whether no stream is there: none was granted, or all have ended.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Direction of a stream's transfers; none if there is no such stream.
    pub fn direction(&self, stream: StreamId) -> Option<Direction> {
        Some(self.table.get(&stream)?.terms.mode.direction())
    }
}
