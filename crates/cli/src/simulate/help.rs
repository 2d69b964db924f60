//! The text below the help of `headtime simulate`.

use std::fmt::Write;

use simulator::workload::{self, LoadDescription, Mixture};

/// The text, made from the tables.
pub fn examples() -> String {
    let mut text = String::from(
        "Examples:
  headtime simulate --drive seagate-cheetah-9lp --workload oltp --policy fcfs,c-look,sptf
  headtime simulate --drive quantum-atlas-10k --workload random --tasks 32 --policy sptf,drive
  headtime simulate --drive quantum-atlas-10k --workload random --seek-noise-us 60 --write-cache off
  headtime simulate --drive modern-20tb --workload modern --write-cache off --scan --seconds 600
  headtime simulate --drive modern-20tb --workload urgent-beside-bulk --policy sstf --preempt
  headtime simulate --drive modern-20tb --workload uniform-4k --tasks 16 --mirror=nearest
  headtime simulate --drive seagate-cheetah-15k5 --trace websearch.csv.zst --device 0 --svg out.svg
  headtime simulate --drive modern-20tb --workload modern --out runs.parquet --requests-out all.parquet
  headtime simulate --drive modern-20tb --workload modern --seconds 60 --trace-events run.json
  headtime simulate --cache \"64 MiB,arc,linux-6\" --cache \"256 MiB,lru,ra(p=8),pfc\" --trace mine.csv

Built-in loads:\n",
    );
    for load in workload::ALL {
        let summary = load.workload().map(|load| load.summary).unwrap_or_default();
        let _ = writeln!(text, "  {:12}{summary}", load.name);
    }
    text.push_str("\nBuilt-in mixtures of several loads, whose parts have figures of their own:\n");
    for mixture in workload::mixture::MIXTURES {
        if let Ok(LoadDescription::Mixture(Mixture { summary, .. })) = mixture.described() {
            let _ = writeln!(text, "  {:20}{summary}", mixture.name);
        }
    }
    text.push_str("\nPolicies:\n");
    for policy in scheduler::policy::ALL {
        let _ = writeln!(text, "  {:16}{}", policy.usage(), policy.what);
        if let Some(parameter) = policy.parameter() {
            let (unit, default) = (parameter.unit, parameter.default);
            let (first, last) = (parameter.range.start(), parameter.range.end());
            let _ = writeln!(
                text,
                "  {:16}N: {first} to {last} {unit}, {default} if left out. {}",
                "", parameter.what
            );
        }
    }
    text.push_str(CACHES);
    text.push_str(COLUMNS);
    text.push_str(MODES);
    text
}

/// The words of `--cache`.
const CACHES: &str = "
Caches, from the one that clients reach to the one above the drive; left out: lru, none, none:
  --cache \"256 MiB,lru,ra(p=8),pfc\"
                  size, replacement, prefetcher, coordinator with the cache above
A trace runs at its own times, or with --closed=1 as one client that waits for each answer. Reads and
writes count alike. `headtime cache` shows the miss ratios of all sizes.
";

/// The columns of `--requests-out`.
const COLUMNS: &str = "
Columns of --requests-out, a row for every request in the order of completion:
  request      number by arrival, from 0
  direction    read or write
  lbn, blocks  first block and length, in blocks of the drive
  arrived_ns, ended_ns, response_ns
               virtual times, and their difference
  status       good, medium-error, timed-out or write-pointer
  waited_ns    wait before the command's dispatch
  queue_ns, overhead_ns, seek_ns, rotation_ns, transfer_ns, bus_ns
               phases in the drive; with waited_ns they add up to response_ns
  hit          hit in the drive's buffer: miss, partial or full
";

/// The labels of a report.
const MODES: &str = "
Labels of results, by the scheduler's belief:
  in-firmware  belief = truth
  noisy        the truth without the noise of --seek-noise-us and --late-seeks
  external     a --belief that `headtime profile -o` found
  assumed      any other --belief
With --belief, nine reads before the run find the platter's phase. Unless belief = truth, the
scheduler tracks the platter by completion times. If too many disagree with the belief, it dispatches
in block order and reads no free blocks (safe mode).";
