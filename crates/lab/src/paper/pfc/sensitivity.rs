//! The effect of each reading of an ambiguity: the mean gain over some cases with one reading
//! changed.

use simulator::caching::cases::{ALGORITHMS, CachingCase, Upper};

use super::loads::{NAMES, Which};
use super::pfc;
use super::served::{CachingRun, CachingRuns};
use crate::Failure;
use crate::paper::{PaperBench, Table};

/// The other readings: the ambiguity, and the other answer.
const OTHERS: [(&str, &str); 27] = [
    ("as used", ""),
    ("A1, bypass_len at most rm", "a1=rm"),
    ("A1, bypass_len at most the request", "a1=n"),
    ("A2, bypass_len below 0", "a2=below"),
    ("A3, large is more than half the mean", "a3=half"),
    ("A4, a large request keeps readmore at 0", "a4=veto"),
    ("A4, a large request is bypassed", "a4=bypass-all"),
    ("A5, full is all valid", "a5=all-valid"),
    ("A6, the window has the last block too", "a6=code"),
    ("A6, any block of the window", "a6=any"),
    ("A7, blocks in flight are absent", "a7=absent"),
    ("A8, only bypassed blocks make a hit", "a8=bypassed"),
    ("A8, all blocks make a hit", "a8=all"),
    (
        "A9, the readmore window begins with the last block",
        "a9=code",
    ),
    ("A10, all requests in the mean", "a10=all"),
    ("A10, the mean without this request", "a10=previous"),
    ("A11, silent hits move blocks", "a11=otherwise"),
    ("A12, the prefetcher is told of silent use", "a12=otherwise"),
    ("A13, of long runs the highest stay", "a13=highest"),
    ("A14, being found changes nothing", "a14=stay"),
    ("A14, what is found is taken out", "a14=remove"),
    ("A15, readmore blocks are prefetches below", "a15=otherwise"),
    ("readmore is a fetch of its own", "readmore=otherwise"),
    ("A16, an empty request is seen below", "a16=otherwise"),
    ("A17, one submission", "a17=otherwise"),
    ("A18, L1's own prefetches pass", "a18=passed"),
    ("queues of 50 %", "queue=50"),
];

/// Divisor of each load's length. A choice, for time.
const PART: u64 = 8;

/// The table.
///
/// # Errors
/// If a run is not possible.
pub(super) fn table(bench: &PaperBench) -> Result<Table, Failure> {
    let readings: Vec<String> = OTHERS.map(|(_, other)| pfc("", other)).to_vec();
    let mut wanted = Vec::new();
    for (load, case) in cases() {
        wanted.push(CachingRun::new(load, case, "none"));
        for coordinator in &readings {
            wanted.push(CachingRun::new(load, case, coordinator));
        }
    }
    let runs = CachingRuns::of(bench, PART, wanted)?;
    let mut table = Table::new(
        format!(
            "Sensitivity: PFC with one reading changed, {} cases (L2 of 200 and 5 %), an eighth of each load",
            cases().len()
        ),
        &[
            "reading",
            "improved",
            "mean gain %",
            "change",
            "oltp",
            "websearch",
            "multi",
        ],
    );
    let mut as_used = None;
    for ((what, _), coordinator) in OTHERS.iter().zip(&readings) {
        let mut gains = Vec::new();
        for (load, case) in cases() {
            gains.push((load, runs.gain(&CachingRun::new(load, case, coordinator))?));
        }
        let mean = |of: &dyn Fn(Which) -> bool| {
            let some: Vec<f64> = gains
                .iter()
                .filter(|gain| of(gain.0))
                .map(|gain| gain.1)
                .collect();
            some.iter().sum::<f64>() / some.len().max(1) as f64
        };
        let all = mean(&|_| true);
        let change = all - *as_used.get_or_insert(all);
        let improved = gains.iter().filter(|gain| gain.1 > 0.0).count();
        let mut row = vec![
            (*what).to_owned(),
            improved.to_string(),
            format!("{all:.1}"),
            format!("{change:+.1}"),
        ];
        for at in 0..NAMES.len() {
            let of_load = mean(&|load| load == Which::Calibrated(at, 1));
            row.push(format!("{of_load:.1}"));
        }
        table.rows.push(row);
    }
    Ok(table)
}

fn cases() -> Vec<(Which, CachingCase)> {
    let mut all = Vec::new();
    for load in 0..NAMES.len() {
        for algorithm in ALGORITHMS {
            for (upper, percent) in [(Upper::High, 200), (Upper::Low, 5)] {
                let case = CachingCase::homogeneous(algorithm, upper, percent);
                all.push((Which::Calibrated(load, 1), case));
            }
        }
    }
    all
}
