//! Delays that were measured on the paths to emulated drives of this project.
//!
//! `chrt -r 50 headtime bench jitter --json`, 4,000 reads of each kind, Atlas 10K, 2026-11-23 09:26 UTC, on a virtual
//! machine of two cores (KVM, Intel Xeon, Linux 6.18) that others kept busy (load 10). Both processes had real-time
//! priority: without it delays are longer.
//!
//! | | from | way |
//! |---|---|---|
//! | to the drive | reads of a buffered block, beyond the drive's own time | half of both ways |
//! | to the program | ends of reads from the medium, beyond the least | and half of the least of both ways |
//!
//! That both ways of a buffered read take alike is an assumption.
//!
//! The busy path is the same through FUSE and a loop device at 18:34 UTC, with compilers at low priority beside it (load
//! 6.5). It is the one of three runs with the most stalls: 5, 9 and 10 % of all ends were more than 0.2 ms late. The
//! kernel's threads of a loop device have no real-time priority.

/// A path whose delays were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredPath {
    /// NBD on a unix socket.
    Nbd,
    /// A file of a FUSE mount, and a loop device on it.
    FuseLoop,
    /// The same beside programs that compute.
    BusyFuseLoop,
}

/// A quantile: the share of delays that are not longer, in parts per million, and nanoseconds.
type Quantile = (u32, u64);

impl MeasuredPath {
    /// All paths, with their words in settings.
    pub const ALL: [(&str, MeasuredPath); 3] = [
        ("measured-nbd", MeasuredPath::Nbd),
        ("measured-fuse-loop", MeasuredPath::FuseLoop),
        ("measured-fuse-loop-busy", MeasuredPath::BusyFuseLoop),
    ];

    /// The word in settings.
    pub fn name(self) -> &'static str {
        match self {
            MeasuredPath::Nbd => "measured-nbd",
            MeasuredPath::FuseLoop => "measured-fuse-loop",
            MeasuredPath::BusyFuseLoop => "measured-fuse-loop-busy",
        }
    }

    fn tables(self) -> [&'static [Quantile]; 2] {
        match self {
            MeasuredPath::Nbd => [&NBD_AGAIN, &NBD_OUTCOMES],
            MeasuredPath::FuseLoop => [&FUSE_LOOP_AGAIN, &FUSE_LOOP_OUTCOMES],
            MeasuredPath::BusyFuseLoop => [&BUSY_FUSE_LOOP_AGAIN, &BUSY_FUSE_LOOP_OUTCOMES],
        }
    }

    /// The delay of a command, in nanoseconds, that a share of all delays does not exceed.
    pub fn to_drive(self, share: f64) -> u64 {
        inverse(self.tables()[0], share) / 2
    }

    /// The delay of an outcome, in nanoseconds, that a share of all delays does not exceed.
    pub fn to_program(self, share: f64) -> u64 {
        let [again, outcomes] = self.tables();
        inverse(outcomes, share) + inverse(again, 0.0) / 2
    }
}

/// The inverse of the distribution, linear between quantiles.
fn inverse(quantiles: &[Quantile], share: f64) -> u64 {
    let ppm = share * 1e6;
    let above = quantiles.partition_point(|(share, _)| f64::from(*share) < ppm);
    let (Some(last), Some(next)) = (
        quantiles.get(above.saturating_sub(1)),
        quantiles.get(above).or(quantiles.last()),
    ) else {
        return 0;
    };
    match f64::from(next.0) - f64::from(last.0) {
        0.0 => next.1,
        width => {
            let part = (ppm - f64::from(last.0)) / width;
            last.1 + ((next.1 - last.1) as f64 * part) as u64
        }
    }
}

/// NBD, both ways of a read from the buffer.
const NBD_AGAIN: [Quantile; 13] = [
    (0, 35_681),
    (10_000, 45_157),
    (50_000, 47_241),
    (100_000, 49_062),
    (250_000, 52_816),
    (500_000, 59_033),
    (750_000, 68_098),
    (900_000, 74_242),
    (950_000, 79_669),
    (990_000, 107_546),
    (995_000, 122_209),
    (999_000, 224_249),
    (1_000_000, 1_193_656),
];

/// NBD, the way back of a read from the medium, beyond the least.
const NBD_OUTCOMES: [Quantile; 13] = [
    (0, 0),
    (10_000, 21_058),
    (50_000, 28_956),
    (100_000, 34_941),
    (250_000, 50_958),
    (500_000, 64_821),
    (750_000, 78_528),
    (900_000, 93_178),
    (950_000, 99_063),
    (990_000, 145_043),
    (995_000, 628_922),
    (999_000, 2_290_877),
    (1_000_000, 4_435_031),
];

/// FUSE and a loop device, both ways of a read from the buffer.
const FUSE_LOOP_AGAIN: [Quantile; 13] = [
    (0, 79_775),
    (10_000, 85_771),
    (50_000, 92_639),
    (100_000, 98_004),
    (250_000, 107_785),
    (500_000, 118_550),
    (750_000, 129_577),
    (900_000, 146_262),
    (950_000, 159_597),
    (990_000, 238_114),
    (995_000, 3_254_553),
    (999_000, 8_953_239),
    (1_000_000, 11_775_397),
];

/// FUSE and a loop device, the way back of a read from the medium, beyond the least.
const FUSE_LOOP_OUTCOMES: [Quantile; 13] = [
    (0, 0),
    (10_000, 24_486),
    (50_000, 48_375),
    (100_000, 52_939),
    (250_000, 69_647),
    (500_000, 85_307),
    (750_000, 100_786),
    (900_000, 114_945),
    (950_000, 121_969),
    (990_000, 320_122),
    (995_000, 1_854_951),
    (999_000, 3_322_579),
    (1_000_000, 3_868_993),
];

/// FUSE and a loop device beside programs that compute, both ways of a read from the buffer.
const BUSY_FUSE_LOOP_AGAIN: [Quantile; 13] = [
    (0, 60_583),
    (10_000, 68_853),
    (50_000, 75_183),
    (100_000, 84_377),
    (250_000, 108_087),
    (500_000, 127_602),
    (750_000, 149_669),
    (900_000, 176_134),
    (950_000, 198_033),
    (990_000, 918_112),
    (995_000, 2_895_644),
    (999_000, 11_714_821),
    (1_000_000, 18_381_209),
];

/// FUSE and a loop device beside programs that compute, the way back of a read from the medium, beyond the least.
const BUSY_FUSE_LOOP_OUTCOMES: [Quantile; 13] = [
    (0, 0),
    (10_000, 39_119),
    (50_000, 57_283),
    (100_000, 65_983),
    (250_000, 82_004),
    (500_000, 102_170),
    (750_000, 122_845),
    (900_000, 237_117),
    (950_000, 1_850_851),
    (990_000, 4_671_935),
    (995_000, 5_141_361),
    (999_000, 5_680_729),
    (1_000_000, 5_764_959),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_meets_each_quantile_and_is_a_line_between_them() {
        for (_, path) in MeasuredPath::ALL {
            for table in path.tables() {
                for (ppm, nanos) in table {
                    assert_eq!(inverse(table, f64::from(*ppm) / 1e6), *nanos);
                }
                for pair in table.windows(2) {
                    let share = f64::from(pair[0].0 + pair[1].0) / 2e6;
                    let middle = (pair[0].1 + pair[1].1) / 2;
                    assert!(inverse(table, share).abs_diff(middle) <= 1);
                }
            }
            // The least of both ways is that of a buffered read.
            let least = path.to_drive(0.0) + path.to_program(0.0);
            assert!(least.abs_diff(path.tables()[0][0].1) <= 1);
        }
    }
}
