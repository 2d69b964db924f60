//! Times of reads that tell whether a path is one hard disk: far and near reads, answers of a buffer, and
//! sightings of a few blocks over and over.
//!
//! The procedure is one of the profiler's kind: it runs in real time on a path, and in virtual time in
//! tests.

use std::sync::{Arc, Mutex, PoisonError};

use block::{Duration, Extent, Instant, Lba, Status};
use profiler::prober::{Prober, Timing};

/// The samples of a path. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct PathSamples {
    /// Times of reads at random places of the whole address range, from other such places.
    pub far: Vec<u64>,
    /// Times of reads a little away from the read before.
    pub near: Vec<u64>,
    /// Times of reads of a block that was just read.
    pub again: Vec<u64>,
    /// The number of far reads after which a block comes from the medium again, if it was found.
    pub evicting: Option<u32>,
    /// The ends of sightings, by block.
    pub ends: [Vec<u64>; PLACES],
    /// Reads that failed.
    pub failed: u32,
}

/// The number of blocks that are sighted over and over: eighths of the address range, all odd ones. A
/// choice.
pub const PLACES: usize = 4;

/// Pairs of a far and a near read. A choice: on a 7,200 rpm drive the mean of so many is exact to a third
/// of a millisecond.
const PAIRS: usize = 100;

/// Pairs after which a path without an arm is known as such.
const FIRST_PAIRS: usize = 25;

/// A near read is 1/1000 to 1/100 of the address range away: too far for any buffer, and a short seek.
const NEAR: [u64; 2] = [1000, 100];

/// Reads of one block in a row.
const AGAIN: usize = 40;

/// Numbers of far reads that are tried until they empty the buffer. The largest known buffer has 2,048
/// segments; those that need more than the last leave the comb unknown.
const EVICTIONS: [u32; 8] = [4, 8, 16, 32, 64, 128, 256, 512];

/// Sightings of each block. A choice: 64 in all tell a comb from chance.
const SIGHTINGS: usize = 16;

/// The longest time for samples: "within a minute" includes the start of the program.
const LONGEST: Duration = Duration::from_secs(45);

/// Upper bound of an answer of a buffer: 80 % of the shortest revolution of any drive, 2.9 ms, which a
/// repeated read from the medium takes at least.
const LONGEST_HIT: u64 = 2_320_000;

/// The time within which a buffer answers, by times of reads of one block in a row; `None` if none of them
/// came from a buffer. It follows the profiler's rule: the shortest and what the bus adds, and twice what
/// the host adds to nine of ten.
pub fn hit_bound(again: &[u64]) -> Option<u64> {
    let mut times = again.to_vec();
    times.sort_unstable();
    let shortest = *times.first()?;
    let late = times[(times.len() * 9 / 10).saturating_sub(1)];
    let usual = shortest * 5 / 4 + 100_000;
    (usual < LONGEST_HIT).then(|| (usual + (late - shortest) * 2).min(LONGEST_HIT))
}

/// Reads that tell how late the path answers. A choice: the latest twentieth of them is twenty.
const ANSWERS: usize = 400;

/// Reads one block over and over. What each read took so far, in nanoseconds, is in `times` at any moment.
pub async fn answers(prober: Prober, times: Arc<Mutex<Vec<u64>>>) {
    let block = Extent::block(Lba(0));
    for _ in 0..ANSWERS {
        let timing = prober.read(block).await;
        if timing.status == Status::Good {
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            times.push(took(&timing));
        }
    }
}

/// Takes the samples. Those so far are in `samples` at any time.
pub async fn sample(prober: Prober, samples: Arc<Mutex<PathSamples>>) {
    let mut sampler = Sampler {
        end: prober.now() + LONGEST,
        page: (4096 / u64::from(prober.device().block_bytes)).max(1),
        prober,
        samples,
        state: 0x9E37_79B9_7F4A_7C15,
    };
    sampler.pairs(FIRST_PAIRS).await;
    if sampler.samples(|samples| median(&samples.far)) < WITHOUT_ARM {
        return;
    }
    sampler.pairs(PAIRS - FIRST_PAIRS).await;
    sampler.again().await;
    if let Some(evicting) = sampler.evict().await {
        sampler.samples(|samples| samples.evicting = Some(evicting));
        sampler.sight(evicting).await;
    }
}

/// Half of the far reads are shorter: there is no arm. The shortest random access of any drive that was
/// sold is half a seek and a part of a revolution, 3 ms.
pub const WITHOUT_ARM: u64 = 1_000_000;

/// The median; 0 of nothing.
pub fn median(times: &[u64]) -> u64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

struct Sampler {
    prober: Prober,
    samples: Arc<Mutex<PathSamples>>,
    end: Instant,
    /// Blocks of a page: all reads have this size, so that hosts never read more than asked.
    page: u64,
    state: u64,
}

impl Sampler {
    fn samples<T>(&self, look: impl FnOnce(&mut PathSamples) -> T) -> T {
        look(&mut self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A random number below `over` (SplitMix64, Steele et al. 2014).
    fn random(&mut self, over: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(over)) >> 64) as u64
    }

    /// Pages of the address range.
    fn pages(&self) -> u64 {
        (self.prober.device().blocks / self.page).max(1)
    }

    fn is_over(&self) -> bool {
        self.prober.now() >= self.end
    }

    /// Reads a page. `None` if that fails.
    async fn read(&self, page: u64) -> Option<Timing> {
        let lba = Lba(page * self.page);
        let extent: Extent = self.prober.extent(lba, self.page);
        let timing = self.prober.read(extent).await;
        let is_good = timing.status == Status::Good;
        if !is_good {
            self.samples(|samples| samples.failed += 1);
        }
        is_good.then_some(timing)
    }

    async fn far(&mut self) -> u64 {
        let page = self.random(self.pages());
        if let Some(timing) = self.read(page).await {
            self.samples(|samples| samples.far.push(took(&timing)));
        }
        page
    }

    async fn pairs(&mut self, count: usize) {
        let pages = self.pages();
        let [least, most] = NEAR.map(|part| (pages / part).max(1));
        for _ in 0..count {
            if self.is_over() {
                return;
            }
            let page = self.far().await;
            let away = least + self.random(most - least + 1);
            let there = match page + away < pages {
                true => page + away,
                false => page.saturating_sub(away),
            };
            if let Some(timing) = self.read(there).await {
                self.samples(|samples| samples.near.push(took(&timing)));
            }
        }
    }

    async fn again(&mut self) {
        let page = self.random(self.pages());
        self.read(page).await;
        for _ in 0..AGAIN {
            if let Some(timing) = self.read(page).await {
                self.samples(|samples| samples.again.push(took(&timing)));
            }
        }
    }

    fn is_hit(&self, timing: &Timing) -> bool {
        let bound = self.samples(|samples| hit_bound(&samples.again));
        bound.is_some_and(|bound| took(timing) <= bound)
    }

    /// The number of far reads after which a block is no hit, three times of three.
    async fn evict(&mut self) -> Option<u32> {
        for count in EVICTIONS {
            let mut hits = 0;
            for _ in 0..3 {
                let page = self.random(self.pages());
                self.read(page).await;
                for _ in 0..count {
                    self.far().await;
                    if self.is_over() {
                        return None;
                    }
                }
                let timing = self.read(page).await;
                hits += u32::from(timing.is_none_or(|timing| self.is_hit(&timing)));
                if hits > 0 {
                    break;
                }
            }
            if hits == 0 {
                return Some(count);
            }
        }
        None
    }

    /// Sights each place in turn, far reads in between.
    async fn sight(&mut self, evicting: u32) {
        let pages = self.pages();
        // A round has all places and at least as many far reads as empty the buffer. Up to twice as many,
        // at random, keep the intervals from having a measure of their own: nearly equal ones would agree on
        // other periods as well.
        let between = u64::from(evicting.div_ceil(PLACES as u32));
        for _ in 0..SIGHTINGS {
            for place in 0..PLACES {
                if self.is_over() {
                    return;
                }
                let page = pages / (2 * PLACES as u64) * (2 * place as u64 + 1);
                if let Some(timing) = self.read(page).await
                    && !self.is_hit(&timing)
                {
                    let end = timing.ended.as_nanos();
                    self.samples(|samples| samples.ends[place].push(end));
                }
                for _ in 0..between + self.random(between + 2) {
                    self.far().await;
                }
            }
        }
    }
}

fn took(timing: &Timing) -> u64 {
    timing.ended.since(timing.submitted).as_nanos()
}
