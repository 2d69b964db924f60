//! Random reads of heads: the false alarms of healthy drives, and how soon a slow head is found.

use super::*;

const PERIOD: Duration = Duration::from_micros(8_333);

/// Uniform numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn happens(&mut self, per_million: u64) -> bool {
        self.below(1_000_000) < per_million
    }
}

fn read(head: u32, cylinder: u32, revolutions: u32) -> ComparedRead {
    ComparedRead {
        head,
        cylinder,
        believed: Duration::from_millis(8),
        wait: Duration::from_millis(4),
        period: PERIOD,
        end: ReadEnd::Late(revolutions),
    }
}

/// A drive with a rate of late reads for each head, in millionths.
struct Reads {
    dice: Dice,
    now: Instant,
    heads: SlowHeads,
}

const CYLINDERS: u32 = 100_000;

impl Reads {
    fn of(heads: u32, seed: u64) -> Self {
        Reads {
            dice: Dice(seed),
            now: Instant::ZERO,
            heads: SlowHeads::new(heads, CYLINDERS),
        }
    }

    fn one(&mut self, head: u32, cylinder: u32, late_per_million: u64) {
        self.now += Duration::from_millis(10);
        let revolutions = u32::from(self.dice.happens(late_per_million));
        self.heads
            .observe(self.now, &read(head, cylinder, revolutions));
    }

    /// Reads of random heads and cylinders.
    fn uniform(&mut self, count: u64, rate: impl Fn(u32) -> u64) {
        let heads = self.heads.heads.len() as u64;
        for _ in 0..count {
            let head = self.dice.below(heads) as u32;
            let cylinder = self.dice.below(CYLINDERS.into()) as u32;
            self.one(head, cylinder, rate(head));
        }
    }

    fn slow(&self) -> Vec<u32> {
        self.heads.slow().map(|slow| slow.head).collect()
    }
}

/// The mean of the likelihood ratio of a block, over the hypergeometric distribution, is at most 1: the whole proof
/// of the bound on false alarms rests on it.
#[test]
fn the_mean_ratio_of_a_healthy_block_is_at_most_one() {
    let choose = |n: u64, k: u64| (0..k).fold(1.0, |all, i| all * (n - i) as f64 / (i + 1) as f64);
    for reads in [2, 7, 20, 64] {
        for mine in 1..=reads {
            for late in 1..=reads {
                let weight = ln(reads - mine + RATIO * mine, reads);
                let least = late.saturating_sub(reads - mine);
                let mean: f64 = (least..=mine.min(late))
                    .map(|l| {
                        let chance = choose(mine, l) * choose(reads - mine, late - l);
                        let score = l as i64 * LN_RATIO - late as i64 * weight;
                        chance / choose(reads, late) * (score as f64 / 1e6).exp()
                    })
                    .sum();
                // Each logarithm is a few millionths too small.
                assert!(mean <= 1.0 + 3e-4, "{mine} of {reads}, {late} late: {mean}");
            }
        }
    }
}

/// With a low threshold there are false alarms, and not more than the bound says.
#[test]
fn healthy_drives_alarm_less_often_than_the_bound() {
    for (seed, rate) in [(1, 3_000), (2, 30_000), (3, 200_000)] {
        let mut reads = Reads::of(6, seed);
        // Six heads, each with an alarm in 2,000 blocks on average, or less often.
        reads.heads.threshold = ln(2_000, 1);
        let (mut alarms, blocks) = (0, 20_000);
        for _ in 0..blocks {
            reads.uniform(BLOCK_READS, |_| rate);
            for head in &mut reads.heads.heads {
                // The bound is on the score; its alarm need not lose enough time.
                if head.slow.take().is_some() {
                    alarms += 1;
                }
            }
        }
        assert!(alarms <= blocks * 6 / 2_000, "{rate}: {alarms}");
    }
}

/// The load and the rate of late reads change together: bursts on one head while the drive writes its cache.
#[test]
fn bursts_on_a_head_in_bad_times_are_no_alarm() {
    let mut reads = Reads::of(8, 5);
    for round in 0..4_000_u64 {
        let (hot, bad) = ((round % 8) as u32, 250_000);
        // Reads of a large file on one head, among a few others.
        for _ in 0..40 {
            let head = match reads.dice.below(10) {
                0 => reads.dice.below(8) as u32,
                _ => hot,
            };
            let cylinder = reads.dice.below(CYLINDERS.into()) as u32;
            reads.one(head, cylinder, bad);
        }
        reads.uniform(100, |_| 1_000);
        assert_eq!(reads.slow(), [], "{round}");
    }
}

#[test]
fn a_slow_head_is_found_and_measured() {
    for (heads, healthy) in [
        (2, 2_000),
        (8, 2_000),
        (20, 2_000),
        (8, 50_000),
        (20, 100_000),
    ] {
        let mut reads = Reads::of(heads, 11);
        reads.uniform(50_000, |_| healthy);
        assert_eq!(reads.slow(), []);
        let before = reads.now;
        // 20 % of 8 ms are 0.192 revolutions.
        let slow = |head| healthy + if head == 1 { 192_000 } else { 0 };
        let mut needed = 0;
        while reads.slow().is_empty() && needed < 60_000 {
            reads.uniform(100, slow);
            needed += 100;
        }
        assert_eq!(reads.slow(), [1]);
        // Ten minutes of a hundred reads a second.
        assert!(needed <= 20_000, "{heads} heads, {healthy}: {needed}");
        let found = reads.heads.slow().next().expect("it is slow");
        assert!(found.since + Duration::from_secs(60) > before && found.since <= found.found);
        assert!(
            found.before_ppm.is_some_and(|ppm| ppm < 20_000),
            "{found:?}"
        );
        assert_eq!(found.only, None, "{found:?}");
        reads.uniform(4_000 * u64::from(heads), slow);
        let slower = reads.heads.slow().next().expect("it still is").slower_ppm;
        assert!((150_000..250_000).contains(&slower), "{slower}");
        reads.uniform(4_000 * u64::from(heads), |_| healthy);
        assert_eq!(reads.slow(), [], "it is healthy again");
    }
}

#[test]
fn a_bad_region_is_named() {
    let mut reads = Reads::of(4, 3);
    let bad = CYLINDERS / 2..CYLINDERS / 2 + CYLINDERS / 10;
    while reads.slow().is_empty() {
        let head = reads.dice.below(4) as u32;
        let cylinder = reads.dice.below(CYLINDERS.into()) as u32;
        let is_bad = head == 2 && bad.contains(&cylinder);
        reads.one(head, cylinder, if is_bad { 900_000 } else { 1_000 });
        assert!(reads.now < Instant::ZERO + Duration::from_secs(10_000));
    }
    let found = reads.heads.slow().next().expect("it is slow");
    let (first, last) = found.only.expect("it is one region");
    assert!(first <= bad.start && bad.end <= last + 1, "{found:?}");
}

/// One weak sector on a track that is read again and again is no slow head.
#[test]
fn hot_tracks_count_once() {
    let mut reads = Reads::of(4, 9);
    for round in 0..20_000 {
        reads.uniform(3, |_| 1_000);
        reads.one(1, 77 + round % 8, 1_000_000);
    }
    assert_eq!(reads.slow(), []);
}

/// A profile that is wrong for a head: reads end elsewhere, and some of them by chance at the angle of a later revolution.
#[test]
fn a_head_that_is_not_known_is_not_judged() {
    let mut reads = Reads::of(4, 9);
    for _ in 0..100_000 {
        reads.uniform(1, |_| 1_000);
        let cylinder = reads.dice.below(CYLINDERS.into()) as u32;
        let end = match reads.dice.below(10) {
            0 => ReadEnd::Late(1),
            1..6 => ReadEnd::Elsewhere,
            _ => ReadEnd::Late(0),
        };
        let wrong = ComparedRead {
            end,
            ..read(3, cylinder, 0)
        };
        reads.heads.observe(reads.now, &wrong);
    }
    assert_eq!(reads.slow(), []);
}

/// Heads of healthy drives differ. What costs less than 5 % of the time is no alarm either.
#[test]
fn small_differences_between_heads_are_no_alarm() {
    for (others, one) in [(20_000, 32_000), (500, 5_000)] {
        let mut reads = Reads::of(8, 21);
        reads.uniform(2_000_000, |head| if head == 5 { one } else { others });
        assert_eq!(reads.slow(), [], "{others}, {one}");
    }
}

/// The whole drive becomes slow: no head is, and the last reads are beside those before.
#[test]
fn recent_reads_are_beside_those_before() {
    let mut reads = Reads::of(4, 8);
    reads.uniform(WINDOW * 4 + 100, |_| 10_000);
    reads.uniform(WINDOW * 2, |_| 300_000);
    let compared = reads.heads.compared();
    let [recent, past] = [compared.recent_ppm, compared.past_ppm].map(|ppm| ppm.expect("windows"));
    // 30 % of the reads lose 8.333 ms of 8; 1 % before, but for most of the window before the last.
    assert!((280_000..350_000).contains(&recent), "{recent}");
    assert!((50_000..80_000).contains(&past), "{past}");
    assert_eq!(reads.slow(), []);
}

#[test]
fn one_head_has_no_others_and_bad_input_is_harmless() {
    let mut reads = Reads::of(1, 2);
    reads.uniform(50_000, |_| 400_000);
    assert_eq!(reads.slow(), []);
    let mut none = SlowHeads::new(0, 0);
    none.observe(Instant::ZERO, &read(0, 5, 1));
    none.observe(Instant::ZERO, &read(u32::MAX, u32::MAX, u32::MAX));
    assert_eq!(
        (none.slow().count(), none.compared()),
        (0, ComparedReads::default())
    );
}
