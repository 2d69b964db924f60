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
    step: SlipStep,
    /// The block of the zone before which it ends.
    end: u32,
}

/// Parts for each step, about. A choice: most parts have one step, and the table of a drive with a thousand slips fits into
/// a first-level cache.
const PARTS: u64 = 4;

impl StepIndex {
    /// The index of a drive's zones, in the order of their blocks.
    pub fn new(zones: &[ZoneTable], all: &[SlipStep], blocks: u64) -> Self {
        let mut steps = Vec::new();
        for (number, zone) in zones.iter().enumerate() {
            let own = &all[zone.steps.start as usize..zone.steps.end as usize];
            // Where the last blocks of a zone were slipped, a step may begin behind them.
            let ends = own[1..].iter().map(|next| next.first.min(zone.blocks));
            let of_zone = own.iter().zip(ends.chain([zone.blocks]));
            let of_zone = of_zone.take_while(|(step, _)| step.first < zone.blocks);
            steps.extend(of_zone.map(|(&step, end)| IndexedStep {
                first: zone.first + u64::from(step.first),
                zone: number as u32,
                step,
                end,
            }));
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

    /// The zone of a block of the drive by its index, the step, and the block of the zone before which the step ends.
    #[inline]
    pub fn find(&self, lba: u64) -> (usize, SlipStep, u32) {
        let part = (lba >> self.shift) as usize;
        let (from, to) = (self.parts[part] as usize, self.parts[part + 1] as usize);
        let steps = &self.steps[from..=to];
        let found = steps[steps.partition_point(|step| step.first <= lba) - 1];
        (found.zone as usize, found.step, found.end)
    }
}
