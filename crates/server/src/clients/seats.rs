//! The limit of connections, over all drives and front ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The places of all connections.
#[derive(Clone, Debug)]
pub struct Seats {
    most: usize,
    taken: Arc<AtomicUsize>,
}

/// The place of a connection, freed when it is dropped.
#[derive(Debug)]
pub struct Seat {
    taken: Arc<AtomicUsize>,
}

impl Seats {
    /// `most` places.
    #[must_use]
    pub fn new(most: usize) -> Seats {
        let taken = Arc::default();
        Seats { most, taken }
    }

    /// A place, if one is free.
    #[must_use]
    pub fn take(&self) -> Option<Seat> {
        let one_more = |taken: usize| (taken < self.most).then_some(taken + 1);
        let result = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        let taken = Arc::clone(&self.taken);
        result.ok().map(|_| Seat { taken })
    }

    /// The number of places.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }
}

impl Default for Seats {
    /// As many places as one drive's loop accepts connections.
    fn default() -> Self {
        Seats::new(super::bounds::Bounds::default().connections)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
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
    }
}
