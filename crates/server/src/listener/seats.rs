//! How many clients there may be at once, over all drives and all ways in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The seats of all clients.
#[derive(Clone, Debug)]
pub struct Seats {
    most: usize,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    taken: AtomicUsize,
    ever: AtomicU64,
    refused: AtomicU64,
}

/// A client's seat, given up when it is dropped.
#[derive(Debug)]
pub struct Seat {
    counts: Arc<Counts>,
}

impl Seats {
    /// So many.
    #[must_use]
    pub fn new(most: usize) -> Seats {
        let counts = Arc::default();
        Seats { most, counts }
    }

    /// A seat, if one is free.
    pub(super) fn take(&self) -> Option<Seat> {
        let (taken, most) = (&self.counts.taken, self.most);
        let one_more = |taken: usize| (taken < most).then_some(taken + 1);
        let result = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        let count = match result {
            Ok(_) => &self.counts.ever,
            Err(_) => &self.counts.refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let counts = Arc::clone(&self.counts);
        result.ok().map(|_| Seat { counts })
    }

    /// How many there are.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many clients had a seat since the beginning.
    #[must_use]
    pub fn ever(&self) -> u64 {
        self.counts.ever.load(Ordering::Relaxed)
    }

    /// How many found none.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Ordering::Relaxed)
    }
}

impl Default for Seats {
    /// As many as one drive's loop takes.
    fn default() -> Self {
        Seats::new(crate::event_loop::Bounds::default().connections)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.counts.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_free_again_when_its_client_has_left() {
        let seats = Seats::new(2);
        let (one, two) = (seats.take(), seats.take());
        assert!(one.is_some() && two.is_some());
        assert!(seats.take().is_none());
        drop(one);
        assert!(seats.clone().take().is_some());
        assert_eq!((seats.ever(), seats.refused()), (3, 1));
    }
}
