//! Finds a block's zone and step: a table of equal parts of the drive, and a search among the steps of a part.

use super::{SlipStep, ZoneTable};

/// The steps of a drive in the order of their blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct StepIndex {
    /// A part has `2^shift` blocks.
    shift: u32,
    /// For each part, and for one behind the last, the last step that begins at its first block or before.
    parts: Box<[u32]>,
    steps: Box<[IndexedStep]>,
}

#[derive(Clone, Copy, Debug)]
struct IndexedStep {
    /// The first block of the drive.
    first: u64,
    zone: u32,
    /// The index in the drive's list of steps.
    step: u32,
}

/// Parts for each step, about. A choice: a part has one step or two, and the table of a drive with a thousand slips is
/// small beside a first-level cache.
const PARTS: u64 = 2;

impl StepIndex {
    /// The index of a drive's zones, in the order of their blocks.
    pub fn new(zones: &[ZoneTable], all: &[SlipStep], blocks: u64) -> Self {
        let mut steps = Vec::new();
        for (number, zone) in zones.iter().enumerate() {
            let own = zone.steps.start..zone.steps.end;
            let of_zone = own.map(|step| IndexedStep {
                first: zone.first + u64::from(all[step as usize].first),
                zone: number as u32,
                step,
            });
            // Where the last blocks of a zone were slipped, a step may begin behind them.
            let end = zone.first + u64::from(zone.blocks);
            steps.extend(of_zone.take_while(|step| step.first < end));
        }
        let most = steps.len() as u64 * PARTS;
        let mut shift = 0;
        while blocks >> shift > most {
            shift += 1;
        }
        let last_part = (blocks - 1) >> shift;
        let parts = (0..last_part + 2).map(|part| {
            let above = steps.partition_point(|step| step.first <= part << shift);
            above as u32 - 1
        });
        StepIndex {
            shift,
            parts: parts.collect(),
            steps: steps.into(),
        }
    }

    /// The zone of a block of the drive, and the step, by their indices.
    #[inline]
    pub fn find(&self, lba: u64) -> (usize, usize) {
        let part = (lba >> self.shift) as usize;
        let (from, to) = (self.parts[part] as usize, self.parts[part + 1] as usize);
        let steps = &self.steps[from..=to];
        let found = steps[steps.partition_point(|step| step.first <= lba) - 1];
        (found.zone as usize, found.step as usize)
    }
}
