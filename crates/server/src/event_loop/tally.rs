//! What a loop has done, counted as it goes.

use block::{Class, Direction, Finished};
use hdrhistogram::Histogram;

/// Counts since the beginning.
pub struct Tally {
    classes: [Served; CLASSES],
}

/// What was served to the clients of one class.
#[derive(Clone, Debug)]
pub struct Served {
    /// Requests that have ended.
    pub requests: [u64; 2],
    /// Their blocks.
    pub blocks: [u64; 2],
    /// Submission to end, in nanoseconds of the drive's time.
    pub responses: Histogram<u64>,
}

/// Real-time, seven best-effort priorities, background.
pub const CLASSES: usize = 9;

impl Default for Tally {
    fn default() -> Self {
        Tally {
            classes: std::array::from_fn(|_| Served::default()),
        }
    }
}

impl Default for Served {
    fn default() -> Self {
        Served {
            requests: [0; 2],
            blocks: [0; 2],
            // Three digits up to an hour: 150 KiB a class.
            responses: Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3)
                .expect("bounds that make sense"),
        }
    }
}

impl Tally {
    /// What was served to the clients of a class.
    pub fn served(&self, class: Class) -> &Served {
        &self.classes[place(class)]
    }

    pub(super) fn finished(&mut self, finished: &Finished) {
        let request = &finished.request;
        let served = &mut self.classes[place(request.class)];
        let way = match request.direction {
            Direction::Read => 0,
            Direction::Write => 1,
        };
        served.requests[way] += 1;
        served.blocks[way] += request.extent.length().0;
        served
            .responses
            .saturating_record(finished.response().as_nanos());
    }
}

fn place(class: Class) -> usize {
    match class {
        Class::RealTime { .. } => 0,
        Class::BestEffort(priority) => 1 + usize::from(priority.min(6)),
        Class::Background => 8,
    }
}
