//! Shortest positioning time first: seek and rotational latency to the first sector.
//!
//! Seltzer, Chen, Ousterhout, USENIX Winter 1990; Jacobson, Wilkes, HPL-CSP-91-7, 1991. As good as
//! the belief: a head believed in the wrong place costs whole revolutions. Not for loads with
//! bounds on single requests: what is far away starves.
//!
//! All requests are looked at, but the seek alone, one look into a table, rules most of them out
//! before their rotation is computed.

use block::{Direction, Duration};
use drive::Target;

use crate::policy::{Choice, Pending, Policy, Sight, Ticket, View};

/// The requests in no order.
#[derive(Clone, Debug, Default)]
pub struct Sptf {
    pending: Vec<Candidate>,
    /// Where each ticket's candidate is in `pending`; of tickets that are not pending, anything.
    places: Vec<u32>,
}

/// What has to be known of a request to rank it.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    target: Target,
    order: u64,
    ticket: Ticket,
    direction: Direction,
}

impl Policy for Sptf {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &Pending) {
        let slot = pending.ticket.0 as usize;
        if self.places.len() <= slot {
            self.places.resize(slot + 1, 0);
        }
        self.places[slot] = self.pending.len() as u32;
        self.pending.push(Candidate {
            target: pending.target,
            order: pending.order,
            ticket: pending.ticket,
            direction: pending.direction,
        });
    }

    fn withdraw(&mut self, pending: &Pending) {
        let place = self.places.get(pending.ticket.0 as usize).copied();
        if let Some(place) = place.map(|place| place as usize)
            && self.pending.get(place).map(|c| c.ticket) == Some(pending.ticket)
        {
            self.remove(place);
        }
    }

    fn select(&mut self, view: &View) -> Choice {
        match self.shortest(view) {
            Some(place) => Choice::Serve(self.remove(place)),
            None => Choice::Nothing,
        }
    }
}

impl Sptf {
    /// Where the candidate with the shortest positioning time is.
    fn shortest(&self, view: &View) -> Option<usize> {
        let (read, write) = (view.start(Direction::Read), view.start(Direction::Write));
        let mut best: Option<(usize, Duration, u64)> = None;
        for (place, candidate) in self.pending.iter().enumerate() {
            let Candidate {
                target, direction, ..
            } = candidate;
            let seek = view
                .belief
                .reposition(view.head, target.position, *direction);
            if best.is_some_and(|(_, shortest, _)| seek > shortest) {
                continue;
            }
            let start = match direction {
                Direction::Read => read,
                Direction::Write => write,
            };
            let time = seek + view.belief.spindle.wait(start + seek, target.angle);
            if best.is_none_or(|(_, shortest, order)| (time, candidate.order) < (shortest, order)) {
                best = Some((place, time, candidate.order));
            }
        }
        best.map(|(place, ..)| place)
    }

    /// Forgets the candidate at `place`; the last one takes its place.
    fn remove(&mut self, place: usize) -> Ticket {
        let removed = self.pending.swap_remove(place);
        if let Some(moved) = self.pending.get(place) {
            self.places[moved.ticket.0 as usize] = place as u32;
        }
        removed.ticket
    }
}
