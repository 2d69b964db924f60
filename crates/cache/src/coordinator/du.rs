//! DU: the lower level evicts blocks first that it sent to the upper level.
//!
//! Chen, Zhang, Zhou, Scott, Schiefer, SIGMETRICS 2005, as Zhang et al., ICDCS 2008, describe it.
//! The replacement policy keeps the marks; prefetching is unchanged. Not for several upper levels
//! that share blocks.

use block::Instant;

use super::{Coordinator, CoordinatorRules, RequestPlan, Retention, UpperRequest};
use crate::residency::Residency;

/// Marks the blocks that were sent upwards.
#[derive(Clone, Copy, Debug, Default)]
pub struct DemoteUpward;

impl Coordinator for DemoteUpward {
    fn plan(&mut self, _: Instant, _: &UpperRequest, _: &Residency) -> RequestPlan {
        RequestPlan::default()
    }

    fn rules(&self) -> CoordinatorRules {
        CoordinatorRules {
            sent: Retention::Marked,
            ..CoordinatorRules::default()
        }
    }
}
