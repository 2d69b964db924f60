//! DU: what was sent to the upper level is the first that the lower one evicts.
//!
//! Chen, Zhang, Zhou, Scott, Schiefer, SIGMETRICS 2005, as Zhang et al., ICDCS 2008, describe it. The
//! marks are the replacement's affair; prefetching stays as it is. Not where several upper levels share
//! what they read.

use block::Instant;

use super::{Coordinator, Manners, RequestPlan, Retention, UpperRequest};
use crate::residency::Residency;

/// Marks what was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct DemoteUpward;

impl Coordinator for DemoteUpward {
    fn plan(&mut self, _: Instant, _: &UpperRequest, _: &Residency) -> RequestPlan {
        RequestPlan::default()
    }

    fn manners(&self) -> Manners {
        Manners {
            sent: Retention::Marked,
            ..Manners::default()
        }
    }
}
