//! First come, first served; also the policy in front of the drive's own queue.
//!
//! It is the baseline of every comparison. Not for a disk with several pending requests: the arm
//! travels a third of the disk between two random ones.

use std::collections::VecDeque;

use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The pending requests in the order of arrival.
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
