//! What is promised when the drive turns out to take longer, or less long, than was believed.

use block::{Direction, Instant};

use super::{StreamState, Streams};
use crate::admission::Demand;
use crate::head_times::{HeadTimes, Tracks, Zone};
use crate::location::LocationMap;

impl<T: Tracks> Streams<T> {
    /// The drive has these worst times from now on, and files lie in these zones. What was promised
    /// stands: if it does not fit any more, rounds go on as they did, nobody else is granted anything
    /// before enough streams have ended, and [`Admission::promises`] says so. What others may do
    /// beside the streams is reckoned with the new times at once.
    ///
    /// [`Admission::promises`]: crate::admission::Admission::promises
    pub fn relearn(
        &mut self,
        now: Instant,
        times: HeadTimes,
        mut zone: impl FnMut(&LocationMap, Direction) -> Zone,
    ) {
        self.advance(now);
        let streams = self.table.values_mut();
        let granted = streams.filter_map(|stream| {
            let StreamState { playout, held, .. } = stream;
            let found = zone(&playout.map, playout.contract.direction());
            let before = playout.contract.demand.zone;
            let demand = Demand {
                zone: Zone {
                    tracks: found.tracks.filter(|_| before.tracks.is_some()),
                    ..found
                },
                ..playout.contract.demand
            };
            let held = held.as_mut()?;
            playout.contract.demand = demand;
            Some((held, demand))
        });
        self.admission.relearn(times.clone(), granted);
        self.rounds.relearn(times);
        self.replan(now);
    }
}
