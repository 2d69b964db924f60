//! What becomes of promises when the drive turns out to be another one.

use super::{Admission, Demand, Held};
use crate::head_times::HeadTimes;

/// Whether what was promised fits what is known of the drive now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promises {
    /// It fits.
    Kept,
    /// The drive was found to take longer than when they were given. They stand, and rounds go on as
    /// they did; but at worst a batch may be late, and nobody else is granted anything.
    Strained,
}

impl Admission {
    /// Whether what was promised fits what is known of the drive.
    pub fn promises(&self) -> Promises {
        self.standing
    }

    /// The drive has other worst times than was believed, and so have the zones of the streams that
    /// were granted: all of them, with what each would ask for now. Their promises stand.
    pub fn relearn<'a>(
        &mut self,
        times: HeadTimes,
        granted: impl Iterator<Item = (&'a mut Held, Demand)>,
    ) {
        for (held, demand) in granted {
            let part = demand.part(&self.rules);
            self.take(&part);
            self.give_back(std::mem::replace(held, Held { part }));
        }
        self.times = times;
        self.plan_anew();
    }

    /// The plan of those that are there. If none is safe, rounds go on as they did.
    pub(super) fn plan_anew(&mut self) {
        let lasts = [self.shortest(None), self.shortest_cut(None)];
        let Some(place) = self.cylinders() else {
            self.plan = None;
            self.standing = Promises::Kept;
            return;
        };
        let plan = self.plan_of(&self.sums, lasts, place);
        self.standing = match plan {
            Some(_) => Promises::Kept,
            None => Promises::Strained,
        };
        self.plan = plan.or(self.plan);
    }
}
