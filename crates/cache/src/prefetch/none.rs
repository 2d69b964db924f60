//! No prefetching: the baseline, and the right choice below a level that prefetches well.

use super::{Advice, Prefetcher, Seen};
use crate::residency::Residency;

/// Fetches nothing ahead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Prefetcher for Nothing {
    fn on_request(&mut self, _: &Seen, _: &Residency, _: &mut Advice) {}
}
