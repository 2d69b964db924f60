//! A synthetic load as the source of a run's requests.

use block::{Class, Direction, Extent, Finished, Instant, Owner};
use document::DocumentError;

use super::generator::Generator;
use super::{Arrivals, Workload};
use crate::load::{Arrival, Demand, Load, LoadError, LoadPart};

/// A load on a drive. Each stream is an owner, or else each task of a closed load. Other requests are nobody's. It never ends on its own; the run's [`Options`](crate::run::Options) bound
/// it.
#[derive(Clone, Debug)]
pub struct Synthetic {
    generator: Generator,
    class: Class,
    source: RequestSource,
    /// The number of tasks that other loads have before those of this one.
    tasks_before: u32,
}

#[derive(Clone, Copy, Debug)]
enum RequestSource {
    /// The number of tasks, and of those that have sent a request.
    Closed { tasks: u32, born: u32 },
    /// The time of the last arrival.
    Open { clock: Instant },
}

impl Synthetic {
    /// `workload` on a drive of `capacity` blocks.
    ///
    /// # Errors
    /// If the load does not fit the drive.
    pub fn new(
        workload: &Workload,
        block_bytes: u32,
        capacity: u64,
    ) -> Result<Self, DocumentError> {
        Ok(Synthetic {
            generator: Generator::new(workload, block_bytes, capacity)?,
            class: workload.class,
            source: match workload.arrivals {
                Arrivals::Closed { tasks, .. } => RequestSource::Closed { tasks, born: 0 },
                Arrivals::Open { .. } => RequestSource::Open {
                    clock: Instant::ZERO,
                },
            },
            tasks_before: 0,
        })
    }

    /// The load beside others that have this number of tasks: its tasks are other owners than theirs.
    #[must_use]
    pub fn after_tasks(self, tasks_before: u32) -> Self {
        Synthetic {
            tasks_before,
            ..self
        }
    }

    #[inline]
    fn arrival(&mut self, at: Instant, owner: Owner) -> Arrival {
        let request = self.generator.request();
        // Streams take turns, whichever task has time: a reader is a stream.
        let stream = self.generator.stream();
        let owner = stream.map_or(owner, |stream| {
            Owner::process(self.tasks_before + 1 + stream)
        });
        self.request(at, owner, request)
    }

    #[inline]
    fn request(
        &self,
        at: Instant,
        owner: Owner,
        (direction, extent): (Direction, Extent),
    ) -> Arrival {
        Arrival {
            at,
            demand: Demand {
                direction,
                extent,
                class: self.class,
                part: LoadPart::ONLY,
                owner,
            },
        }
    }

    /// The next request of a task whose former one has ended.
    #[inline]
    fn answered(&mut self, now: Instant, owner: Owner) -> Option<Arrival> {
        match self.source {
            RequestSource::Closed { .. } => {
                let at = now.checked_add(self.generator.gap())?;
                Some(self.arrival(at, owner))
            }
            RequestSource::Open { .. } => None,
        }
    }
}

impl Load for Synthetic {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        let (at, owner) = match &mut self.source {
            RequestSource::Closed { tasks, born } if born == tasks => return Ok(None),
            RequestSource::Closed { born, .. } => {
                *born += 1;
                (Instant::ZERO, Owner::process(self.tasks_before + *born))
            }
            RequestSource::Open { clock } => match clock.checked_add(self.generator.gap()) {
                Some(at) => {
                    *clock = at;
                    (at, Owner::NOBODY)
                }
                None => return Ok(None),
            },
        };
        Ok(Some(self.arrival(at, owner)))
    }

    fn on_finished(
        &mut self,
        now: Instant,
        _: LoadPart,
        finished: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        Ok(match self.generator.after(finished.request.extent) {
            Some(step) => Some(self.request(now, finished.request.owner, step)),
            None => self.answered(now, finished.request.owner),
        })
    }

    fn on_skipped(
        &mut self,
        now: Instant,
        arrival: &Arrival,
    ) -> Result<Option<Arrival>, LoadError> {
        Ok(self.answered(now, arrival.demand.owner))
    }
}
