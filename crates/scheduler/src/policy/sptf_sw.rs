//! Shortest positioning time first with a seek window: of the requests that are nearly as soon
//! under the head as the soonest, the one with the smallest seek time.
//!
//! Lumb, Schindler, Ganger, FAST 2002, 5.3, where it is called SPTF-SW60%: a positioning time may
//! be up to 60 % longer than the shortest. What the arm saves is left as rotational latency, which
//! free blocks fill. Not for a disk without background work: it is then a worse SPTF.

use block::{Direction, Duration};

use crate::policy::{Choice, Pending, Policy, Sight, View};

/// The requests, and how wide the window is.
#[derive(Clone, Debug)]
pub struct SptfSw {
    pending: Vec<Pending>,
    percent: u32,
}

impl SptfSw {
    /// One whose window ends `percent` per cent above the shortest positioning time.
    pub fn new(percent: u32) -> Self {
        SptfSw {
            pending: Vec::new(),
            percent,
        }
    }

    /// The longest positioning time that is in the window.
    fn window(&self, shortest: Duration) -> Duration {
        let nanos = shortest.as_nanos() * u64::from(100 + self.percent) / 100;
        Duration::from_nanos(nanos)
    }
}

impl Policy for SptfSw {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &Pending) {
        self.pending.push(*pending);
    }

    fn withdraw(&mut self, pending: &Pending) {
        self.pending.retain(|other| other.order != pending.order);
    }

    fn select(&mut self, view: &View) -> Choice {
        let time = |p: &Pending| view.positioning(&p.target, p.direction).total();
        let Some(shortest) = self.pending.iter().map(time).min() else {
            return Choice::Nothing;
        };
        let window = self.window(shortest);
        let seek = |p: &Pending| -> Duration {
            let direction: Direction = p.direction;
            view.belief
                .reposition(view.head, p.target.position, direction)
        };
        let chosen = (0..self.pending.len())
            .filter(|&place| time(&self.pending[place]) <= window)
            .min_by_key(|&place| (seek(&self.pending[place]), self.pending[place].order))
            .expect("the shortest is in the window");
        Choice::Serve(self.pending.swap_remove(chosen).ticket)
    }
}

/// How much longer than the shortest a positioning time in the window may be, in percent
/// (Lumb et al., FAST 2002, 5.3).
pub const WINDOW_PERCENT: u32 = 60;
