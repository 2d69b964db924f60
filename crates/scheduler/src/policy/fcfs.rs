//! First come, first served; also what stands before the drive's own queue.
//!
//! The baseline of every comparison. Not for a disk with more than one request pending: the arm
//! travels a third of the disk between two random requests.

use std::collections::VecDeque;

use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The requests in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Fcfs {
    /// (order, ticket), ascending.
    queue: VecDeque<(u64, PieceId)>,
}

impl Policy for Fcfs {
    fn sight(&self) -> Sight {
        Sight::Order
    }

    fn add(&mut self, pending: &EligibleRequest) {
        let entry = (pending.order, pending.ticket);
        match self.queue.back() {
            Some(last) if *last > entry => {
                let at = self.queue.partition_point(|other| *other < entry);
                self.queue.insert(at, entry);
            }
            _ => self.queue.push_back(entry),
        }
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        if let Ok(at) = self.queue.binary_search(&(pending.order, pending.ticket)) {
            self.queue.remove(at);
        }
    }

    fn select(&mut self, _view: &View) -> Choice {
        match self.queue.pop_front() {
            Some((_, ticket)) => Choice::Serve(ticket),
            None => Choice::Nothing,
        }
    }
}
