//! The most bytes a second that a task takes: its sink waits, and a sink that waits holds its task.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::LOOK_UP;

/// The pace of a sink.
#[derive(Debug)]
pub(super) struct Pace {
    /// Bytes a second, if there is a limit.
    most: Option<u64>,
    /// The next portion may be taken at this time.
    next: Cell<Option<Instant>>,
}

impl Pace {
    pub(super) fn new(most: Option<u64>) -> Self {
        Pace {
            most,
            next: Cell::new(None),
        }
    }

    /// Waits until another portion may be taken, unless the task is cut.
    pub(super) fn wait(&self, bytes: usize, is_cut: &AtomicBool) {
        let until = self.due(Instant::now(), bytes);
        while let Some(left) = until.checked_duration_since(Instant::now())
            && !left.is_zero()
            && !is_cut.load(Ordering::Acquire)
        {
            thread::sleep(left.min(LOOK_UP));
        }
    }

    /// When the portion after one of so many bytes may be taken, which is taken now. Time that was not used is lost.
    fn due(&self, now: Instant, bytes: usize) -> Instant {
        let Some(most) = self.most else {
            return now;
        };
        let from = self.next.get().map_or(now, |next| next.max(now));
        let takes = Duration::from_secs_f64(bytes as f64 / most.max(1) as f64);
        // A time beyond the clock's end is none.
        let next = from.checked_add(takes).unwrap_or(from);
        self.next.set(Some(next));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_bytes_take_their_time_and_unused_time_is_lost() {
        let (pace, now) = (Pace::new(Some(1_000)), Instant::now());
        let after = |millis| now + Duration::from_millis(millis);
        assert_eq!(pace.due(now, 500), after(500));
        assert_eq!(pace.due(now, 250), after(750));
        assert_eq!(pace.due(after(700), 250), after(1_000));
        assert_eq!(pace.due(after(5_000), 100), after(5_100));
        assert_eq!(Pace::new(None).due(now, 500), now);
    }

    #[test]
    fn a_task_that_is_cut_waits_no_longer() {
        let pace = Pace::new(Some(1));
        let begun = Instant::now();
        pace.wait(1 << 20, &AtomicBool::new(true));
        Pace::new(None).wait(1 << 20, &AtomicBool::new(false));
        assert!(begun.elapsed() < Duration::from_secs(3_600));
    }
}
