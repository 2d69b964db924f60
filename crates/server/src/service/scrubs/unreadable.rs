//! Blocks that cannot be read, and pages beside them.

use std::ops::Range;
use std::time::Duration;

use super::Scrub;
use crate::checksums::probing::Probing;

/// The largest number of comparisons of pages beside unreadable blocks. A choice: damage is read twice.
const MOST_BESIDE: usize = 3;
/// The interval of looks at the task while single blocks are searched. A choice.
const LOOK_SOON: Duration = Duration::from_millis(10);

impl Scrub {
    /// Compares the pages beside unreadable blocks. Those that differ are read once more.
    pub(super) fn compare_beside(&self) -> Result<(), String> {
        for _ in 0..MOST_BESIDE {
            self.of_pass(|keeper| {
                keeper.compare_beside();
                Some(())
            })?;
            self.wait_until(|look| !look.is_comparing)?;
            let places = self.of_pass(|keeper| Some(keeper.pass()?.remaining_beside()))?;
            if places.is_empty() {
                return Ok(());
            }
            self.read_apart(Probing::over(self.block_bytes, places))?;
            self.probe()?;
        }
        Ok(())
    }

    /// Reads what could not be read in parts: one bad block fails the whole of a read.
    pub(super) fn probe(&self) -> Result<(), String> {
        self.read_apart(Probing::new(self.block_bytes, &self.unreadable()?))
    }

    fn read_apart(&self, mut probing: Probing) -> Result<(), String> {
        loop {
            let places = probing.next_places();
            if places.is_empty() {
                return Ok(());
            }
            self.round(self.wanted(move |_| places)?, LOOK_SOON)?;
            probing.ended(&self.unreadable()?);
        }
    }

    pub(super) fn unreadable(&self) -> Result<Vec<Range<u64>>, String> {
        self.of_pass(|keeper| Some(keeper.pass()?.unreadable()))
    }
}
