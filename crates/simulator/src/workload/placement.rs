//! The positions of a load's requests.

use std::fmt;

use serde::Serialize;

use super::SmallFiles;
use super::dice::{Chance, Dice, Toss};

/// The distribution of positions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Placement {
    /// Uniform over the drive.
    Uniform,
    /// The drive is divided into equal regions. A region of rank r is chosen in proportion to
    /// r^-theta, and a position in it uniformly. The seed assigns ranks to regions.
    Zipf {
        /// Zero is uniform; larger values are more skewed.
        theta: f64,
        /// Number of regions.
        regions: u32,
    },
    /// Sequential runs, separated by jumps to a uniform position. The length of a run is geometric.
    Sequential {
        /// Mean number of requests per run, at least one.
        mean_run: f64,
    },
    /// Readers or writers in turn, each repeatedly passing through an equal share of the drive from
    /// beginning to end.
    Streams {
        /// Number of streams.
        streams: u32,
    },
    /// A fraction of the requests is in the same group of blocks as the previous one, the rest
    /// anywhere.
    Local {
        /// The fraction that stays, 0 to 1.
        share: f64,
        /// Bytes of a group, such as a group of cylinders.
        group_bytes: u64,
    },
    /// Files of a file system, chosen uniformly; sizes are those of the files.
    SmallFiles(SmallFiles),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Placement::Uniform => write!(f, "anywhere"),
            Placement::Zipf { theta, regions } => {
                write!(f, "{regions} regions, popularity rank^-{theta}")
            }
            Placement::Sequential { mean_run } => write!(f, "runs of {mean_run} on average"),
            Placement::Streams { streams } => write!(f, "{streams} streams in turn"),
            Placement::Local { share, group_bytes } => write!(
                f,
                "{} % within the {} MiB of the last one",
                share * 100.0,
                group_bytes as f64 / f64::from(1 << 20)
            ),
            Placement::SmallFiles(files) => files.fmt(f),
        }
    }
}

/// A drive in blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriveBlocks {
    /// Blocks of the drive.
    pub capacity: u64,
    /// Random positions are multiples of this.
    pub align: u64,
}

/// Chooses positions.
#[derive(Clone, Debug)]
pub(super) enum Placer {
    Uniform,
    Zipf(Zipf),
    Sequential { next: u64, goes_on: Chance },
    Streams { next: Vec<u64>, turn: usize },
    Local { at: u64, stays: Chance, group: u64 },
}

impl Placer {
    /// A placer for a placement that fits the drive.
    pub(super) fn new(
        placement: &Placement,
        ground: DriveBlocks,
        block_bytes: u64,
        seed: u64,
    ) -> Self {
        match *placement {
            // What a load of files asks for is decided by its reader.
            Placement::Uniform | Placement::SmallFiles(_) => Placer::Uniform,
            Placement::Zipf { theta, regions } => Placer::Zipf(Zipf::new(theta, regions, seed)),
            Placement::Sequential { mean_run } => Placer::Sequential {
                next: ground.capacity,
                goes_on: Chance::new(1.0 - 1.0 / mean_run),
            },
            Placement::Streams { streams } => Placer::Streams {
                next: (0..u64::from(streams))
                    .map(|i| ground.share_start(i, u64::from(streams)))
                    .collect(),
                turn: 0,
            },
            Placement::Local { share, group_bytes } => Placer::Local {
                at: 0,
                stays: Chance::new(share),
                group: group_bytes / block_bytes,
            },
        }
    }

    /// The number of the stream that the last request continues, from 0; `None` without streams.
    pub(super) fn stream(&self) -> Option<u32> {
        match self {
            Placer::Streams { next, turn } => Some(((turn + next.len() - 1) % next.len()) as u32),
            _ => None,
        }
    }

    /// The first block of the next request of `length` blocks, which never ends past the drive.
    pub(super) fn place(&mut self, ground: DriveBlocks, length: u64, dice: &mut Dice) -> u64 {
        match self {
            Placer::Uniform => ground.anywhere(length, dice),
            Placer::Zipf(zipf) => {
                let region = u64::from(zipf.draw(dice));
                let regions = zipf.of_rank.len() as u64;
                let from = ground.boundary(region, regions);
                ground.between(from, ground.boundary(region + 1, regions), length, dice)
            }
            Placer::Sequential { next, goes_on } => {
                let fits = next.saturating_add(length) <= ground.capacity;
                let start = match dice.happens(*goes_on) {
                    Toss::Yes if fits => *next,
                    _ => ground.anywhere(length, dice),
                };
                *next = start + length;
                start
            }
            Placer::Streams { next, turn } => {
                let (stream, streams) = (*turn, next.len());
                *turn = (stream + 1) % streams;
                let (stream_number, count) = (stream as u64, streams as u64);
                if next[stream] + length > ground.boundary(stream_number + 1, count) {
                    next[stream] = ground.share_start(stream_number, count);
                }
                let start = next[stream];
                next[stream] += length;
                start
            }
            Placer::Local { at, stays, group } => {
                let start = match dice.happens(*stays) {
                    Toss::Yes => {
                        let from = *at / *group * *group;
                        ground.between(from, from + *group, length, dice)
                    }
                    Toss::No => ground.anywhere(length, dice),
                };
                *at = start;
                start
            }
        }
    }
}

impl DriveBlocks {
    /// A uniform multiple of the alignment.
    fn anywhere(self, length: u64, dice: &mut Dice) -> u64 {
        dice.below((self.capacity - length) / self.align + 1) * self.align
    }

    /// A multiple of the alignment between `from` and `end`, at most the last one from which the
    /// request ends on the drive.
    fn between(self, from: u64, end: u64, length: u64, dice: &mut Dice) -> u64 {
        let last_fitting = (self.capacity - length) / self.align;
        let first = from.div_ceil(self.align).min(last_fitting);
        let last = ((end.max(1) - 1) / self.align).min(last_fitting).max(first);
        (first + dice.below(last - first + 1)) * self.align
    }

    /// The start of part `i` of `n` equal parts of the drive.
    pub(super) fn boundary(self, i: u64, n: u64) -> u64 {
        (u128::from(self.capacity) * u128::from(i) / u128::from(n)) as u64
    }

    /// The first multiple of the alignment in part `i` of `n`.
    pub(super) fn share_start(self, i: u64, n: u64) -> u64 {
        self.boundary(i, n).next_multiple_of(self.align)
    }
}

/// Regions by popularity.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    /// 2^64 times the probability of this rank or a more popular one, the last being 2^64 - 1.
    up_to: Vec<u64>,
    /// The region of each rank.
    of_rank: Vec<u32>,
}

impl Zipf {
    fn new(theta: f64, regions: u32, seed: u64) -> Self {
        let weights: Vec<f64> = (1..=regions)
            .map(|rank| libm::pow(f64::from(rank), -theta))
            .collect();
        let total: f64 = weights.iter().sum();
        let mut so_far = 0.0;
        let mut up_to: Vec<u64> = weights
            .iter()
            .map(|weight| {
                so_far += weight;
                (so_far / total * TWO_TO_64) as u64
            })
            .collect();
        if let Some(last) = up_to.last_mut() {
            *last = u64::MAX;
        }
        Zipf {
            up_to,
            of_rank: shuffled(regions, seed),
        }
    }

    fn draw(&self, dice: &mut Dice) -> u32 {
        let draw = dice.any();
        let rank = self.up_to.partition_point(|&up_to| up_to <= draw);
        self.of_rank[rank.min(self.of_rank.len() - 1)]
    }
}

/// A permutation of the numbers below `count` that depends on the seed (Fisher-Yates).
fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mut dice = Dice::new(seed, RANKS);
    let mut numbers: Vec<u32> = (0..count).collect();
    for i in (1..numbers.len()).rev() {
        numbers.swap(i, dice.below(i as u64 + 1) as usize);
    }
    numbers
}

/// The random stream that assigns ranks to regions; the others are in `generator`.
const RANKS: u64 = 5;

/// Scale of probabilities as 64-bit fractions.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests {
    use super::*;

    const GROUND: DriveBlocks = DriveBlocks {
        capacity: 1_000_003,
        align: 8,
    };

    #[test]
    fn zipf_ranks_come_as_often_as_the_formula_says() {
        let (theta, regions, draws) = (0.9, 64, 400_000);
        let zipf = Zipf::new(theta, regions, 7);
        let mut rank_of = vec![0; regions as usize];
        for (rank, &region) in zipf.of_rank.iter().enumerate() {
            rank_of[region as usize] = rank;
        }
        let mut counts = vec![0u32; regions as usize];
        let mut dice = Dice::new(7, 1);
        for _ in 0..draws {
            counts[rank_of[zipf.draw(&mut dice) as usize]] += 1;
        }
        let harmonic: f64 = (1..=regions).map(|r| f64::from(r).powf(-theta)).sum();
        for (rank, &count) in counts.iter().enumerate() {
            let share = ((rank + 1) as f64).powf(-theta) / harmonic;
            let expected = share * f64::from(draws);
            let off = (f64::from(count) - expected).abs();
            assert!(
                off < 4.5 * expected.sqrt(),
                "rank {rank}: {count} not {expected}"
            );
        }
    }

    #[test]
    fn theta_zero_is_uniform_and_one_region_is_everywhere() {
        let even = Zipf::new(0.0, 4, 1);
        assert_eq!(even.up_to[..3], [1 << 62, 1 << 63, 3 << 62]);
        let mut one = Placer::new(
            &Placement::Zipf {
                theta: 2.0,
                regions: 1,
            },
            GROUND,
            512,
            1,
        );
        let mut dice = Dice::new(1, 1);
        assert!((0..1000).any(|_| one.place(GROUND, 8, &mut dice) > 900_000));
    }

    #[test]
    fn streams_go_through_their_shares_and_start_over() {
        let ground = DriveBlocks {
            capacity: 100,
            align: 1,
        };
        let mut streams = Placer::new(&Placement::Streams { streams: 2 }, ground, 512, 1);
        let mut dice = Dice::new(1, 1);
        let places: Vec<(u64, Option<u32>)> = (0..8)
            .map(|_| (streams.place(ground, 20, &mut dice), streams.stream()))
            .collect();
        let one_turn = [(0, Some(0)), (50, Some(1)), (20, Some(0)), (70, Some(1))];
        assert_eq!(places, [one_turn, one_turn].concat());
    }

    #[test]
    fn runs_have_the_mean_length_asked_for() {
        let mut runs = Placer::new(&Placement::Sequential { mean_run: 16.0 }, GROUND, 512, 1);
        let mut dice = Dice::new(2, 1);
        let (mut end, mut jumps) = (u64::MAX, 0u32);
        let draws = 160_000;
        for _ in 0..draws {
            let start = runs.place(GROUND, 8, &mut dice);
            jumps += u32::from(start != end);
            end = start + 8;
        }
        assert!((9_600..10_400).contains(&jumps), "{jumps} runs, not 10000");
    }

    #[test]
    fn local_requests_stay_in_the_last_group_as_often_as_asked() {
        let placement = Placement::Local {
            share: 0.7,
            group_bytes: 10_000 * 512,
        };
        let mut local = Placer::new(&placement, GROUND, 512, 1);
        let mut dice = Dice::new(2, 1);
        let (mut group, mut stayed, draws) = (0, 0u32, 100_000);
        for _ in 0..draws {
            let start = local.place(GROUND, 8, &mut dice);
            assert!(start.is_multiple_of(8));
            stayed += u32::from(start / 10_000 == group);
            group = start / 10_000;
        }
        // A request that goes anywhere meets the same one of the hundred groups by chance.
        let expected = f64::from(draws) * (0.7 + 0.3 / 100.0);
        assert!((f64::from(stayed) - expected).abs() < 600.0, "{stayed}");
    }
}
