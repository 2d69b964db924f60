//! No coordination: the lower level is asked for what the upper one asks for.

use block::Instant;

use super::{Coordinator, RequestPlan, UpperRequest};
use crate::residency::Residency;

/// Lets everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncoordinated;

impl Coordinator for Uncoordinated {
    fn plan(&mut self, _: Instant, _: &UpperRequest, _: &Residency) -> RequestPlan {
        RequestPlan::default()
    }
}
