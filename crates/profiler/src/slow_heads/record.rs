//! The reads of one head, and of a time.

use block::Instant;

use super::{AGAIN_READS, ComparedRead, FEWEST_READS, LEAST_PPM, MOST_ELSEWHERE, SlowHead};

/// Sums over compared reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadCount {
    /// Their number.
    pub(super) reads: u64,
    /// Those that were late.
    pub(super) late: u64,
    /// The time of the revolutions by which they were late, in nanoseconds.
    pub(super) lost: u64,
    /// Their believed head time, in nanoseconds.
    pub(super) believed: u64,
}

/// The reads of one head.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeadRecord {
    /// Those of the present block: all, and late ones.
    pub(super) block: [u64; 2],
    /// The score, in millionths.
    pub(super) score: i64,
    /// When the score was last zero, or a slow head was last looked at.
    since: Instant,
    /// Reads that ended elsewhere since then.
    pub(super) elsewhere: u64,
    /// The head is slow.
    pub(super) slow: Option<SlowHead>,
    /// All reads of the head.
    total: ReadCount,
    /// `total`, and the sums of all heads, at `since`.
    at_since: [ReadCount; 2],
    /// The reads since then by bands of cylinders: all, and late ones.
    bands: [[u32; 2]; BANDS],
}

/// The bands of cylinders in which the reads of a head are counted. A choice: zones of drives are 8 to 20.
pub(super) const BANDS: usize = 8;

/// The part of the late reads that one band has if the head is slow only there: nine tenths. A choice.
const ALONE: u64 = 10;

impl ReadCount {
    /// One read that was late by so many revolutions.
    pub(super) fn of(read: &ComparedRead, revolutions: u32) -> Self {
        // A read that fails after many attempts counts as a few. A choice.
        const MOST: u32 = 4;
        ReadCount {
            reads: 1,
            late: u64::from(revolutions > 0),
            lost: (read.period * u64::from(revolutions.min(MOST))).as_nanos(),
            believed: read.believed.as_nanos(),
        }
    }

    pub(super) fn add(&mut self, other: &ReadCount) {
        self.reads += other.reads;
        self.late += other.late;
        self.lost += other.lost;
        self.believed += other.believed;
    }

    /// Those that came after `earlier`.
    pub(super) fn since(&self, earlier: &ReadCount) -> ReadCount {
        ReadCount {
            reads: self.reads - earlier.reads,
            late: self.late - earlier.late,
            lost: self.lost - earlier.lost,
            believed: self.believed - earlier.believed,
        }
    }

    /// The lost time in parts per million of the believed head time; `None` without any.
    pub(super) fn lost_ppm(&self) -> Option<u64> {
        let lost = u128::from(self.lost) * 1_000_000;
        lost.checked_div(u128::from(self.believed))
            .map(|ppm| ppm as u64)
    }

    /// By how much the reads took longer than those of other heads, in parts per million.
    fn slower_than(&self, others: &ReadCount) -> u64 {
        let ppm = |count: &ReadCount| count.lost_ppm().unwrap_or(0);
        ppm(self).saturating_sub(ppm(others))
    }
}

impl HeadRecord {
    /// Adds a read of a band.
    pub(super) fn add(&mut self, band: usize, count: &ReadCount) {
        self.total.add(count);
        self.block[0] += count.reads;
        self.block[1] += count.late;
        let band = &mut self.bands[band];
        band[0] += count.reads as u32;
        band[1] += count.late as u32;
    }

    /// The score is zero at `now`, and everything is counted from here on.
    pub(super) fn begin(&mut self, now: Instant, all: &ReadCount) {
        self.score = 0;
        self.since = now;
        self.elsewhere = 0;
        self.at_since = [self.total, *all];
        self.bands = Default::default();
    }

    /// The score is above the threshold: the head is slow if it loses enough time, and is known well enough.
    pub(super) fn judge(&mut self, now: Instant, number: u32, band: u32, all: &ReadCount) {
        let (mine, slower_ppm) = self.lately(all);
        let is_known = self.elsewhere * MOST_ELSEWHERE <= mine.reads;
        if slower_ppm < LEAST_PPM || !is_known {
            self.begin(now, all);
            return;
        }
        let before = self.at_since[0];
        let others_before = self.at_since[1].since(&before);
        let has_past = before.reads >= FEWEST_READS;
        self.slow = Some(SlowHead {
            head: number,
            since: self.since,
            found: now,
            reads: mine.reads,
            late: mine.late,
            slower_ppm,
            before_ppm: has_past.then(|| before.slower_than(&others_before)),
            only: self.only_band(&mine).map(|place| {
                let first = place as u32 * band;
                (first, first + band - 1)
            }),
        });
        self.begin(now, all);
    }

    /// A slow head that is slow no longer is healthy again; of one that still is, the figures are new.
    pub(super) fn look_again(&mut self, now: Instant, all: &ReadCount) {
        let (mine, slower_ppm) = self.lately(all);
        if mine.reads < AGAIN_READS {
            return;
        }
        match slower_ppm < LEAST_PPM / 2 {
            true => self.slow = None,
            false => {
                if let Some(slow) = &mut self.slow {
                    slow.slower_ppm = slower_ppm;
                    slow.reads += mine.reads;
                    slow.late += mine.late;
                }
            }
        }
        self.begin(now, all);
    }

    /// The reads since the score was zero, and by how much they took longer than those of the other heads.
    fn lately(&self, all: &ReadCount) -> (ReadCount, u64) {
        let mine = self.total.since(&self.at_since[0]);
        let others = all.since(&self.at_since[1]).since(&mine);
        (mine, mine.slower_than(&others))
    }

    /// The band that has nearly all late reads, and not nearly all reads.
    fn only_band(&self, mine: &ReadCount) -> Option<usize> {
        let is_alone = |&(_, band): &(usize, &[u32; 2])| {
            let [reads, late] = band.map(u64::from);
            late * ALONE >= mine.late * (ALONE - 1) && reads * ALONE < mine.reads * (ALONE - 2)
        };
        self.bands
            .iter()
            .enumerate()
            .find(is_alone)
            .map(|(place, _)| place)
    }
}
