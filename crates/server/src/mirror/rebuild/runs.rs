//! Runs of bytes: a sorted list of ranges that do not touch.

use std::ops::Range;

/// A set of bytes as runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs(Vec<Range<u64>>);

impl Runs {
    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|run| run.end - run.start).sum()
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: Range<u64>) {
        if bytes.is_empty() {
            return;
        }
        // Those that touch it become one run with it.
        let from = self.0.partition_point(|run| run.end < bytes.start);
        let to = self.0.partition_point(|run| run.start <= bytes.end);
        let touching = &self.0[from..to];
        let start = touching
            .first()
            .map_or(bytes.start, |run| run.start.min(bytes.start));
        let end = touching
            .last()
            .map_or(bytes.end, |run| run.end.max(bytes.end));
        self.0.splice(from..to, std::iter::once(start..end));
    }

    /// Removes bytes.
    pub fn remove(&mut self, bytes: &Range<u64>) {
        let from = self.0.partition_point(|run| run.end <= bytes.start);
        let to = self.0.partition_point(|run| run.start < bytes.end);
        if from >= to || bytes.is_empty() {
            return;
        }
        let (first, last) = (self.0[from].start, self.0[to - 1].end);
        let left = [first..bytes.start, bytes.end..last];
        let left = left.into_iter().filter(|run| run.start < run.end);
        self.0.splice(from..to, left);
    }

    /// The runs, the lowest first.
    pub fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter()
    }

    /// Whether some of these bytes are in the set.
    pub fn has_any(&self, bytes: &Range<u64>) -> bool {
        let first = self.0.partition_point(|run| run.end <= bytes.start);
        let first = self.0.get(first);
        first.is_some_and(|run| run.start < bytes.end) && !bytes.is_empty()
    }

    /// The first run of `within` that is not in the set.
    pub fn first_gap(&self, within: &Range<u64>) -> Option<Range<u64>> {
        let mut at = within.start;
        let from = self.0.partition_point(|run| run.end <= at);
        for run in &self.0[from..] {
            if run.start > at {
                break;
            }
            at = run.end;
        }
        let next = self.0.partition_point(|run| run.start < at);
        let end = self.0.get(next).map_or(within.end, |run| run.start);
        (at < within.end).then(|| at..end.min(within.end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_a_set_of_bytes(changes in prop::collection::vec((any::<bool>(), 0_u64..64, 0_u64..16), 0..40)) {
            let (mut runs, mut naive) = (Runs::default(), [false; 80]);
            for (adds, start, length) in changes {
                let bytes = start..start + length;
                match adds {
                    true => runs.add(bytes.clone()),
                    false => runs.remove(&bytes),
                }
                naive[start as usize..(start + length) as usize].fill(adds);
                let mut found = [false; 80];
                for run in runs.iter() {
                    prop_assert!(run.start < run.end);
                    found[run.start as usize..run.end as usize].fill(true);
                }
                prop_assert_eq!(found, naive);
                prop_assert!(runs.0.is_sorted_by(|one, other| one.end < other.start));
                prop_assert_eq!(runs.bytes(), naive.iter().filter(|&&has| has).count() as u64);
                for from in 0..70 {
                    let within = from..from + length;
                    let has_any = within.clone().any(|byte| naive.get(byte as usize) == Some(&true));
                    prop_assert_eq!(runs.has_any(&within), has_any);
                }
                let gap = (start..70).find(|&byte| !naive[byte as usize]);
                let end = |from| (from..70).find(|&byte| naive[byte as usize]).unwrap_or(70);
                prop_assert_eq!(runs.first_gap(&(start..70)), gap.map(|from| from..end(from)));
            }
        }
    }
}
