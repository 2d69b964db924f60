//! No coordination: requests of the upper level reach the lower one unchanged.

use block::Instant;

use super::{Coordinator, RequestPlan, UpperRequest};
use crate::residency::Residency;

/// Passes every request unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncoordinated;

impl Coordinator for Uncoordinated {
    fn plan(&mut self, _: Instant, _: &UpperRequest, _: &Residency) -> RequestPlan {
        RequestPlan::default()
    }
}
