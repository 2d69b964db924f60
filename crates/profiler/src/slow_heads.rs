//! Slow heads: a head whose reads are late more often than those of the other heads of its drive.
//!
//! ```text
//!   read --known place, wait of an eighth of a revolution--> as believed, or whole revolutions late
//!        --64 of them, or those of 10 s--> a block: reads and late ones of each head
//!        --per head--> score = max(0, score + log likelihood ratio) --above the threshold--> slow
//! ```
//!
//! A head that reads badly tries again, and each try costs a revolution. A healthy drive has late reads, too: seeks settle
//! late, the drive writes its cache or scans itself, the host is busy. Their rate changes with the load. So the test compares
//! heads with each other inside a short block of reads, and never with a fixed rate.
//!
//! **The test.** Of the N reads of a block, n are of one head, and L of the N are late, l of them of this head. If lateness does
//! not depend on the head, l is hypergeometric. The ratio of a head that is late R = 4 times as often is
//! R^l / ((N - n + R n) / N)^L. Its mean is at most 1 for a healthy drive, because the hypergeometric distribution is less
//! spread than the binomial one with the same mean (Hoeffding 1963, theorem 4). The score is Page's cumulative sum of its
//! logarithm. It reaches h after e^h blocks or more on average (Lorden 1971), so that the threshold follows from a rate of
//! false alarms: see [`FALSE_ALARMS`].
//!
//! **What it assumes.** In a block, a healthy drive's reads are equally likely to be late by whichever head. Reads whose wait for
//! the sector is short do not count, because a small error of the seek makes them late. Of a hot track the first read counts.
//!
//! **What it says.** A head is slow if the score is above the threshold, and its reads took at least 5 % longer than those of
//! the other heads in the same time. Drives with one head are never slow: there is nothing to compare with.

use block::{Duration, Instant};

mod logarithm;
mod record;

use logarithm::ln;
use record::{BANDS, HeadRecord, ReadCount};

/// Compares the heads of a drive.
#[derive(Clone, Debug)]
pub struct SlowHeads {
    heads: Vec<HeadRecord>,
    /// The tracks of each head that were read last, by a hash. Cylinders are counted from 1.
    tracks: Vec<u32>,
    /// The cylinders of a band.
    band: u32,
    /// The score from which a head is slow, in millionths.
    threshold: i64,
    block: ReadBlock,
    /// The reads of all heads since the beginning.
    all: ReadCount,
    alarms: u64,
    windows: Windows,
}

/// The reads of the drive as a whole, lately and before.
#[derive(Clone, Copy, Debug, Default)]
struct Windows {
    /// All reads at the beginning of the present window.
    begun: ReadCount,
    /// Those at the beginning of the last one, and those of the last one.
    last: Option<(ReadCount, ReadCount)>,
}

/// Sums over the compared reads of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparedReads {
    /// Their number.
    pub reads: u64,
    /// Those that were late by a revolution or more.
    pub late: u64,
    /// The time of these revolutions, in parts per million of the believed head time of all.
    pub lost_ppm: u64,
    /// The same of the last whole [`WINDOW`] of reads.
    pub recent_ppm: Option<u64>,
    /// The same of all reads before it.
    pub past_ppm: Option<u64>,
}

/// A read of the medium whose end was compared with the belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedRead {
    /// The head.
    pub head: u32,
    /// The cylinder of its first block.
    pub cylinder: u32,
    /// The head time that was believed.
    pub believed: Duration,
    /// The believed wait for its first sector.
    pub wait: Duration,
    /// A revolution.
    pub period: Duration,
    /// How it ended.
    pub end: ReadEnd,
}

/// The end of a compared read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadEnd {
    /// So many revolutions later than believed; zero: as believed.
    Late(u32),
    /// At another angle than believed.
    Elsewhere,
}

/// A head that reads slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowHead {
    /// The head, counted from 0.
    pub head: u32,
    /// The reads since which it is slow.
    pub since: Instant,
    /// When that was found.
    pub found: Instant,
    /// Its compared reads in between.
    pub reads: u64,
    /// Those of them that were late.
    pub late: u64,
    /// By how much its reads took longer than those of the other heads, in parts per million.
    pub slower_ppm: u64,
    /// The same before that time, if it had enough reads.
    pub before_ppm: Option<u64>,
    /// The only cylinders where it is slow, if its other ones are not: the first and the last.
    pub only: Option<(u32, u32)>,
}

/// The reads of a block so far.
#[derive(Clone, Copy, Debug, Default)]
struct ReadBlock {
    begun: Instant,
    reads: u64,
    late: u64,
}

/// False alarms per drive: at most one in 100,000 years. A choice: 304 of 248,000 drives became slow in ten months (Lu et al.,
/// "Perseus", FAST 2023), which is 0.15 % a year. At most one alarm in a hundred is then a healthy drive.
pub const FALSE_ALARMS: (u64, u64) = (1, 100_000);

/// Compared reads of a block at most. A choice: a third of a second of a busy drive, in which its load does not change much.
const BLOCK_READS: u64 = 64;

/// The longest block. A choice: beyond that the load may be another one.
const BLOCK_LENGTH: Duration = Duration::from_secs(10);

/// Compared reads of a drive a second at most. A choice: 200 random reads a second are many for a disk.
const MOST_READS: u64 = 200;

/// Reads that are recent. A choice: about a minute of a busy drive.
pub const WINDOW: u64 = 2_048;

/// Seconds in a year.
const YEAR_S: u64 = 31_557_600;

/// How much more often than the others a slow head is late, by the alternative of the test. A choice: a head that is late up
/// to twice as often as the others lowers the score, and heads of healthy drives differ by less.
const RATIO: u64 = 4;

/// The least by which a slow head is slower, in parts per million: 5 %. A choice: a quarter of the 20 % of issue 26.
const LEAST_PPM: u64 = 50_000;

/// The tracks that each head remembers. A read of one of them does not count, so that a weak sector on a hot track is no
/// slow head. A choice: eight such tracks are then 3 % of the compared reads, and 20 heads need 20 KiB.
const TRACKS: usize = 256;

/// The part of a revolution that a read has to wait for its sector, to count. A choice: 0.75 ms or more, ten times the noise of
/// known seeks (60 us); the late seeks of old drives (1.5 ms) make any head late.
const LEAST_WAIT: u64 = 8;

/// The part of a head's reads that may end elsewhere. Otherwise the profile is wrong there, and says nothing. A choice: as
/// many as the tracker tolerates.
const MOST_ELSEWHERE: u64 = 20;

/// Reads without which there is no figure. A choice: 5 % of a read's time are then about 6 revolutions in all.
const FEWEST_READS: u64 = 256;

/// Reads of a slow head after which it is looked at again. A choice: a minute or two of load.
const AGAIN_READS: u64 = 1_024;

impl SlowHeads {
    /// For a drive of so many heads and cylinders, of which nothing was read yet.
    pub fn new(heads: u32, cylinders: u32) -> Self {
        let (alarms, years) = FALSE_ALARMS;
        let blocks = YEAR_S * MOST_READS / BLOCK_READS;
        let tests = blocks * u64::from(heads.max(1)) * years;
        SlowHeads {
            heads: vec![HeadRecord::default(); heads as usize],
            tracks: vec![0; heads as usize * TRACKS],
            band: cylinders.div_ceil(BANDS as u32).max(1),
            threshold: ln(tests, alarms),
            block: ReadBlock::default(),
            all: ReadCount::default(),
            alarms: 0,
            windows: Windows::default(),
        }
    }

    /// Takes in the end of a read.
    pub fn observe(&mut self, now: Instant, read: &ComparedRead) {
        if read.wait.as_nanos() < read.period.as_nanos() / LEAST_WAIT {
            return;
        }
        let band = (read.cylinder / self.band) as usize;
        if read.head as usize >= self.heads.len() || !self.is_another_track(read) {
            return;
        }
        let ReadEnd::Late(revolutions) = read.end else {
            self.heads[read.head as usize].elsewhere += 1;
            return;
        };
        if self.block.reads > 0 && now.since(self.block.begun) > BLOCK_LENGTH {
            self.end_block(now);
        }
        if self.block.reads == 0 {
            self.block.begun = now;
        }
        let count = ReadCount::of(read, revolutions);
        let head = &mut self.heads[read.head as usize];
        head.add(band.min(BANDS - 1), &count);
        self.all.add(&count);
        let begun = self.windows.begun;
        if self.all.reads - begun.reads == WINDOW {
            self.windows = Windows {
                begun: self.all,
                last: Some((begun, self.all.since(&begun))),
            };
        }
        self.block.reads += 1;
        self.block.late += count.late;
        if self.block.reads == BLOCK_READS {
            self.end_block(now);
        }
    }

    /// Whether a track is none of those that its head has read lately; remembers it.
    fn is_another_track(&mut self, read: &ComparedRead) -> bool {
        let track = read.cylinder.wrapping_add(1);
        // The high bits of a product with the golden section are mixed best (Knuth, vol. 3, 6.4).
        let place = track.wrapping_mul(0x9E37_79B9) as usize >> (u32::BITS - TRACKS.ilog2());
        let place = &mut self.tracks[read.head as usize * TRACKS + place];
        std::mem::replace(place, track) != track
    }

    /// The heads that are slow.
    pub fn slow(&self) -> impl Iterator<Item = SlowHead> + '_ {
        self.heads.iter().filter_map(|head| head.slow)
    }

    /// How often a head was found slow.
    pub fn alarms(&self) -> u64 {
        self.alarms
    }

    /// The compared reads of all heads.
    pub fn compared(&self) -> ComparedReads {
        let last = self.windows.last;
        ComparedReads {
            recent_ppm: last.and_then(|(_, recent)| recent.lost_ppm()),
            past_ppm: last.and_then(|(past, _)| past.lost_ppm()),
            reads: self.all.reads,
            late: self.all.late,
            lost_ppm: self.all.lost_ppm().unwrap_or(0),
        }
    }

    /// Scores the heads by the block.
    fn end_block(&mut self, now: Instant) {
        let ReadBlock { reads, late, .. } = std::mem::take(&mut self.block);
        for (number, head) in self.heads.iter_mut().enumerate() {
            let [mine, mine_late] = std::mem::take(&mut head.block);
            if head.slow.is_some() {
                head.look_again(now, &self.all);
                continue;
            }
            if mine > 0 && late > 0 {
                let weight = ln(reads - mine + RATIO * mine, reads);
                head.score += mine_late as i64 * LN_RATIO - late as i64 * weight;
            }
            if head.score <= 0 {
                head.begin(now, &self.all);
            } else if head.score >= self.threshold {
                head.judge(now, number as u32, self.band, &self.all);
                self.alarms += u64::from(head.slow.is_some());
            }
        }
    }
}

/// The natural logarithm of [`RATIO`], in millionths.
const LN_RATIO: i64 = ln(RATIO, 1);

#[cfg(test)]
mod tests;
