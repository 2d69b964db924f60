//! Whether a path is one hard disk, judged by its samples.
//!
//! ```text
//!   floor     random reads take milliseconds       memory, flash and caches: microseconds
//!   growth    far reads take longer than near ones  a network: all alike
//!   comb      ends of one block lie on a comb       several disks: none that fits all blocks
//! ```

use serde::Serialize;

use super::sampling::{PathSamples, WITHOUT_ARM, hit_bound, median};

/// The judgement of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathVerdict {
    /// The 10th percentile of random reads over the whole address range, in microseconds.
    pub floor_us: f64,
    /// Their median.
    pub median_us: f64,
    /// By how much far reads take longer than near ones on average, in microseconds.
    pub growth_us: f64,
    /// How many standard errors that is.
    pub growth_sigmas: f64,
    /// The period of the comb, in milliseconds, if there is one.
    pub comb_ms: Option<f64>,
    /// The share of sightings that agree on one angle for each block.
    pub comb_agreement: Option<f64>,
    /// By how much the path delays nearly all answers of the buffer beyond the least: their 99th
    /// percentile, in microseconds. `None` if no buffer answers.
    pub jitter_us: Option<f64>,
    /// The least time of 4 KiB from the drive's buffer, in microseconds. The profiler reads single blocks, which
    /// take less: on a bus of 5 MB/s, 4 KiB take 0.7 ms longer than 512 bytes.
    pub path_us: Option<f64>,
    /// The reason for which this is not one hard disk.
    pub no_disk: Option<String>,
}

/// The periods of a comb, in nanoseconds: 3,000 to 20,000 rpm with a margin, all drives ever sold.
const PERIODS: (f64, f64) = (2.9e6, 20.1e6);

/// Standard errors beyond which far reads are slower than near ones. A choice: by chance once in 30,000.
const SIGMAS: f64 = 4.0;

/// The part of a revolution within which ends of one block agree: twice 2 %, of which electronics and
/// sectors need a tenth. A host only delays, so that those in time are together and the others anywhere.
const WINDOW: f64 = 0.04;

/// Agreement of a comb. 64 ends at random reach 0.3 at their best period; an emulated disk on a machine with
/// a load of nine on two cores 0.56 (measured over NBD on 2026-11-23).
const AGREES: f64 = 0.42;

/// Agreements that differ by less are as good: half of a period agrees as well as the period.
const AS_GOOD: f64 = 0.1;

/// Sightings without which a comb is not judged: 40 ends at random reach 0.38.
const LEAST_SIGHTINGS: usize = 40;

/// Judges the samples.
pub fn judge(samples: &PathSamples) -> PathVerdict {
    let (growth_us, growth_sigmas) = growth(samples);
    let comb = comb(samples);
    let again = &samples.again;
    let usual = median(&samples.far);
    let are_hits = hit_bound(again).is_some();
    let mut verdict = PathVerdict {
        floor_us: percentile(&samples.far, 0.1) as f64 / 1e3,
        median_us: usual as f64 / 1e3,
        growth_us,
        growth_sigmas,
        comb_ms: comb
            .filter(|comb| comb.agreement >= AGREES)
            .map(|comb| comb.period / 1e6),
        comb_agreement: comb.map(|comb| comb.agreement),
        jitter_us: are_hits
            .then(|| (percentile(again, 0.99) - percentile(again, 0.0)) as f64 / 1e3),
        path_us: are_hits.then(|| percentile(again, 0.0) as f64 / 1e3),
        no_disk: None,
    };
    verdict.no_disk = reason(&verdict, samples);
    verdict
}

fn reason(verdict: &PathVerdict, samples: &PathSamples) -> Option<String> {
    let fast = samples.far.iter().filter(|time| **time < WITHOUT_ARM);
    let fast = fast.count() as f64 / samples.far.len().max(1) as f64;
    if samples.far.is_empty() {
        return Some("none of its blocks can be read".to_owned());
    }
    if fast > 0.5 {
        return Some(format!(
            "random reads over the whole address range take {:.0} us (median), and an arm takes \
             milliseconds: memory, flash, or a cache of the host answers",
            verdict.median_us
        ));
    }
    // A drive answers a few random reads from its buffer; a tenth would be a buffer of a tenth of the disk.
    if fast > 0.1 {
        return Some(format!(
            "{:.0} % of random reads end within a millisecond, the others take {:.1} ms (median): a cache of \
             the host, or holes of a sparse file",
            fast * 100.0,
            verdict.median_us / 1e3
        ));
    }
    if verdict.growth_sigmas < SIGMAS {
        return Some(format!(
            "far reads take as long as near ones ({:+.0} us, {:.1} standard errors): no single arm moves",
            verdict.growth_us, verdict.growth_sigmas
        ));
    }
    match verdict.comb_agreement {
        Some(agreement) if agreement < AGREES => Some(format!(
            "ends of reads fall on no comb of one period (agreement {agreement:.2}, expected {AGREES}): \
             several disks (RAID), a thin volume, or a server that delays"
        )),
        _ => None,
    }
}

/// The difference of the means of far and near reads in microseconds, and in standard errors. A tenth of
/// each, the longest, is left out: hosts stall some.
fn growth(samples: &PathSamples) -> (f64, f64) {
    let part = |times: &[u64]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times.truncate(times.len() * 9 / 10);
        let count = times.len().max(1) as f64;
        let mean = times.iter().map(|time| *time as f64).sum::<f64>() / count;
        let square = |time: &u64| (*time as f64 - mean).powi(2);
        let variance = times.iter().map(square).sum::<f64>() / count;
        (mean, variance / count)
    };
    let (far, near) = (part(&samples.far), part(&samples.near));
    let error = (far.1 + near.1).sqrt();
    let more = far.0 - near.0;
    (more / 1e3, if error > 0.0 { more / error } else { 0.0 })
}

#[derive(Clone, Copy)]
struct Comb {
    period: f64,
    agreement: f64,
}

/// The period on which the ends of sightings agree best: each block has an angle of its own, all have one
/// period. Of periods that fit about as well the longest: halves of it fit, too.
fn comb(samples: &PathSamples) -> Option<Comb> {
    let count: usize = samples.ends.iter().map(Vec::len).sum();
    if count < LEAST_SIGHTINGS {
        return None;
    }
    let all = || samples.ends.iter().flatten().copied();
    let (first, last) = (all().min()?, all().max()?);
    let span = (last - first).max(1) as f64;
    let mut angles: Vec<f64> = Vec::new();
    let mut agreement = |period: f64| {
        let mut agreeing = 0;
        for ends in &samples.ends {
            angles.clear();
            angles.extend(
                ends.iter()
                    .map(|end| ((end - first) as f64 / period).fract()),
            );
            agreeing += most_together(&mut angles);
        }
        agreeing as f64 / count as f64
    };
    // A step turns the last end by half of a window against the first.
    let step = WINDOW / 2.0 / span;
    let (low, high) = (1.0 / PERIODS.1, 1.0 / PERIODS.0);
    let tried: Vec<Comb> = (0..((high - low) / step) as usize)
        .map(|number| {
            let period = 1.0 / (low + number as f64 * step);
            Comb {
                period,
                agreement: agreement(period),
            }
        })
        .collect();
    let best = tried.iter().map(|comb| comb.agreement).fold(0.0, f64::max);
    let first = tried
        .iter()
        .position(|comb| comb.agreement >= best - AS_GOOD)?;
    // The top of that peak.
    let peak = &tried[first..tried.len().min(first + 10)];
    peak.iter()
        .copied()
        .max_by(|a, b| a.agreement.total_cmp(&b.agreement))
}

/// The largest number of angles, in revolutions, that lie within a window.
fn most_together(angles: &mut [f64]) -> usize {
    angles.sort_unstable_by(f64::total_cmp);
    let count = angles.len();
    let mut most = 0;
    let mut end = 0;
    for begin in 0..count {
        // Places from `count` on are those of the next revolution.
        let at = |place: usize| angles[place % count] + (place / count) as f64;
        end = end.max(begin);
        while end < begin + count && at(end) - angles[begin] <= WINDOW {
            end += 1;
        }
        most = most.max(end - begin);
    }
    most
}

/// The time that a share of the times does not exceed; 0 of nothing.
fn percentile(times: &[u64], share: f64) -> u64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let place = (share * times.len().saturating_sub(1) as f64).round() as usize;
    times.get(place).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
