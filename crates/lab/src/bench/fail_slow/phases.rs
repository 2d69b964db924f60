//! A load that changes every few minutes: hot files, writes beside them, sequential reads, bursts, and nothing.

use block::{Class, Direction, Duration, Extent, Instant, Lba, Owner, Sectors};
use simulator::run::{Arrival, Demand, Load, LoadError, LoadPart};
use simulator::workload::dice::Dice;

/// The load of a drive. It never ends.
#[derive(Clone, Debug)]
pub(super) struct Phases {
    dice: Dice,
    kinds: &'static [PhaseKind],
    /// Blocks of the drive.
    blocks: u64,
    /// Blocks of 4 KiB.
    page: u64,
    /// The first blocks of the hot files, the same all the time.
    files: [u64; FILES],
    /// The mean time between two requests over all phases.
    gap: Duration,
    now: Instant,
    phase: Phase,
    /// What is left of a burst.
    burst: u64,
}

/// A few minutes of one kind.
#[derive(Clone, Copy, Debug)]
struct Phase {
    ends: Instant,
    kind: PhaseKind,
    /// The mean time between two requests.
    gap: Duration,
    file: u64,
    /// The next block of a sequential reader.
    next: u64,
}

/// The kinds of phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseKind {
    /// Two reads to one write, anywhere.
    Anywhere,
    /// Reads, nine in ten of a hot file.
    HotFile,
    /// Six in ten are reads of a hot file, three writes anywhere, one a read anywhere.
    HotFileBesideWrites,
    /// A sequential reader, and one read in ten anywhere.
    Sequential,
    /// Sixteen reads and writes at once.
    Bursts,
    /// Nothing.
    Idle,
}

/// All kinds.
pub(super) const ALL: &[PhaseKind] = &[
    PhaseKind::Idle,
    PhaseKind::Anywhere,
    PhaseKind::HotFile,
    PhaseKind::HotFileBesideWrites,
    PhaseKind::Sequential,
    PhaseKind::Bursts,
];

/// Those with requests.
pub(super) const BUSY: &[PhaseKind] = ALL.split_at(1).1;

/// Hot files of a drive, and their bytes. Choices: on a modern drive such a file lies on one or two heads.
const FILES: usize = 3;
const FILE_BYTES: u64 = 256 << 20;

/// The shortest and the longest phase, in seconds. Choices.
const PHASE_S: [u64; 2] = [30, 600];

/// Requests of a burst. A choice: the depth of many programs.
const BURST: u64 = 16;

/// One kind, whose rate is always the same.
pub(super) const STEADY: &[PhaseKind] = &[PhaseKind::Anywhere];

impl Phases {
    /// A load of phases of these kinds, of about so many requests a second in the mean, on a drive of so many blocks of
    /// so many bytes.
    pub(super) fn new(
        seed: u64,
        kinds: &'static [PhaseKind],
        (blocks, block_bytes): (u64, u32),
        per_second: f64,
    ) -> Self {
        let mut dice = Dice::new(seed, 0);
        let page = (4096 / u64::from(block_bytes.max(1))).max(1);
        let length = FILE_BYTES / 4096 * page;
        let files = [(); FILES].map(|()| dice.below(blocks.saturating_sub(length).max(1)));
        let mut load = Phases {
            blocks,
            page,
            files,
            gap: Duration::from_nanos((1e9 / per_second.max(1e-3)) as u64),
            now: Instant::ZERO,
            phase: Phase {
                ends: Instant::ZERO,
                kind: PhaseKind::Idle,
                gap: Duration::ZERO,
                file: 0,
                next: 0,
            },
            burst: 0,
            dice,
            kinds,
        };
        load.begin_phase();
        load
    }

    fn begin_phase(&mut self) {
        let [shortest, longest] = PHASE_S;
        let length = shortest + self.dice.below(longest - shortest);
        let kind = self.kinds[self.dice.below(self.kinds.len() as u64) as usize];
        // A quarter to four times the mean rate; one phase in six is idle.
        let quarter = self.gap.as_nanos() / 4;
        let gap = match self.kinds {
            [_] => self.gap.as_nanos(),
            _ => quarter << self.dice.below(5),
        };
        self.phase = Phase {
            ends: self.now + Duration::from_secs(length),
            kind,
            gap: Duration::from_nanos(gap),
            file: self.files[self.dice.below(FILES as u64) as usize],
            next: self.dice.below(self.blocks),
        };
    }

    /// The moment of the next request.
    fn advance(&mut self) {
        if self.burst > 0 {
            self.burst -= 1;
            return;
        }
        loop {
            let mean = match self.phase.kind {
                PhaseKind::Bursts => self.phase.gap * BURST,
                _ => self.phase.gap,
            };
            let gap = -self.dice.ln_uniform() * mean.as_nanos() as f64;
            let next = self.now + Duration::from_nanos(gap as u64);
            if self.phase.kind != PhaseKind::Idle && next <= self.phase.ends {
                self.now = next;
                break;
            }
            self.now = self.phase.ends;
            self.begin_phase();
        }
        if self.phase.kind == PhaseKind::Bursts {
            self.burst = BURST - 1;
        }
    }

    /// A request of the present phase.
    fn demand(&mut self) -> (Direction, u64, u64) {
        let tenth = self.dice.below(10);
        let way = |is_read| match is_read {
            true => Direction::Read,
            false => Direction::Write,
        };
        let length = self.page << self.dice.below(4);
        match self.phase.kind {
            PhaseKind::HotFile if tenth > 0 => (Direction::Read, self.in_file(), length),
            PhaseKind::HotFileBesideWrites if tenth < 6 => {
                (Direction::Read, self.in_file(), length)
            }
            PhaseKind::HotFileBesideWrites => (way(tenth == 9), self.anywhere(), length),
            PhaseKind::Sequential if tenth > 0 => {
                let first = self.phase.next;
                self.phase.next += 16 * self.page;
                (Direction::Read, first, 16 * self.page)
            }
            PhaseKind::HotFile | PhaseKind::Sequential => {
                (Direction::Read, self.anywhere(), length)
            }
            PhaseKind::Anywhere | PhaseKind::Bursts | PhaseKind::Idle => {
                (way(tenth < 7), self.anywhere(), length)
            }
        }
    }

    fn in_file(&mut self) -> u64 {
        self.phase.file + self.dice.below(FILE_BYTES / 4096) * self.page
    }

    fn anywhere(&mut self) -> u64 {
        self.dice.below(self.blocks / self.page) * self.page
    }
}

impl Load for Phases {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        self.advance();
        let (direction, first, length) = self.demand();
        let length = length.min(self.blocks);
        // What would be past the end is at the beginning.
        let first = match first + length <= self.blocks {
            true => first,
            false => 0,
        };
        let extent = Extent::new(Lba(first), Sectors(length)).map_err(LoadError::new)?;
        Ok(Some(Arrival {
            at: self.now,
            demand: Demand {
                direction,
                extent,
                class: Class::default(),
                part: LoadPart::ONLY,
                owner: Owner::NOBODY,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_about_that_of_the_settings_and_hot_files_are_hot() {
        let mut load = Phases::new(7, ALL, (1 << 30, 512), 20.0);
        let files = load.files;
        let (mut hot, mut count) = (0, 0_u64);
        let day = Instant::ZERO + Duration::from_secs(10 * 86_400);
        loop {
            let arrival = load
                .next_arrival()
                .expect("it never fails")
                .expect("nor ends");
            if arrival.at > day {
                break;
            }
            count += 1;
            let first = arrival.demand.extent.start().0;
            let is_in = |file: &u64| (*file..file + FILE_BYTES / 512).contains(&first);
            hot += u64::from(files.iter().any(is_in));
        }
        let per_second = count as f64 / (10.0 * 86_400.0);
        assert!((10.0..40.0).contains(&per_second), "{per_second}");
        assert!(hot * 5 > count, "{hot} of {count}");
    }
}
