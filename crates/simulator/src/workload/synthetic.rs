//! A synthetic load as the source of a run's requests.

use block::{Class, Direction, Extent, Finished, Instant};
use document::DocumentError;

use super::generator::Generator;
use super::{Arrivals, Workload};
use crate::load::{Arrival, Demand, Load, LoadError, LoadPart};

/// A load on a drive. It never ends on its own; the run's [`Options`](crate::run::Options) bound
/// it.
#[derive(Clone, Debug)]
pub struct Synthetic {
    generator: Generator,
    class: Class,
    source: RequestSource,
}

#[derive(Clone, Copy, Debug)]
enum RequestSource {
    /// The number of tasks that have not sent a request yet.
    Closed { unborn: u32 },
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
                Arrivals::Closed { tasks, .. } => RequestSource::Closed { unborn: tasks },
                Arrivals::Open { .. } => RequestSource::Open {
                    clock: Instant::ZERO,
                },
            },
        })
    }

    fn arrival(&mut self, at: Instant) -> Arrival {
        let request = self.generator.request();
        self.request(at, request)
    }

    fn request(&self, at: Instant, (direction, extent): (Direction, Extent)) -> Arrival {
        Arrival {
            at,
            demand: Demand {
                direction,
                extent,
                class: self.class,
                part: LoadPart::ONLY,
            },
        }
    }

    fn answered(&mut self, now: Instant) -> Option<Arrival> {
        match self.source {
            RequestSource::Closed { .. } => {
                let at = now.checked_add(self.generator.gap())?;
                Some(self.arrival(at))
            }
            RequestSource::Open { .. } => None,
        }
    }
}

impl Load for Synthetic {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        let at = match &mut self.source {
            RequestSource::Closed { unborn: 0 } => return Ok(None),
            RequestSource::Closed { unborn } => {
                *unborn -= 1;
                Instant::ZERO
            }
            RequestSource::Open { clock } => match clock.checked_add(self.generator.gap()) {
                Some(at) => {
                    *clock = at;
                    at
                }
                None => return Ok(None),
            },
        };
        Ok(Some(self.arrival(at)))
    }

    fn on_finished(
        &mut self,
        now: Instant,
        _: LoadPart,
        finished: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        Ok(match self.generator.after(finished.request.extent) {
            Some(step) => Some(self.request(now, step)),
            None => self.answered(now),
        })
    }

    fn on_skipped(&mut self, now: Instant, _: &Arrival) -> Result<Option<Arrival>, LoadError> {
        Ok(self.answered(now))
    }
}
