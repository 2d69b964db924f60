//! No coordination: the lower level is asked for what the upper one asks for.

use block::Instant;

use super::{Asked, Coordinator, Plan};
use crate::residency::Residency;

/// Lets everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncoordinated;

impl Coordinator for Uncoordinated {
    fn plan(&mut self, _: Instant, _: &Asked, _: &Residency) -> Plan {
        Plan::default()
    }
}
