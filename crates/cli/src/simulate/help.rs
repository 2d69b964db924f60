//! What stands under the help.

use std::fmt::Write;

use simulator::workload::{self, Described, Mixture};

/// What stands under the help, made from the tables.
pub fn examples() -> String {
    let mut text = String::from(
        "Examples:
  headtime simulate --drive seagate-cheetah-9lp --workload oltp --policy fcfs,c-look,sptf
  headtime simulate --drive quantum-atlas-10k --workload random --tasks 32 --policy sptf,drive
  headtime simulate --drive quantum-atlas-10k --workload random --seek-noise-us 60 --write-cache off
  headtime simulate --drive modern-20tb --workload modern --write-cache off --scan --seconds 600
  headtime simulate --drive modern-20tb --workload urgent-beside-bulk --policy sstf --preempt
  headtime simulate --drive seagate-cheetah-15k5 --trace websearch.csv.zst --device 0 --svg out.svg

Built-in loads:\n",
    );
    for load in workload::ALL {
        let summary = load.workload().map(|load| load.summary).unwrap_or_default();
        let _ = writeln!(text, "  {:12}{summary}", load.name);
    }
    text.push_str("\nBuilt-in mixtures of several loads, whose parts have figures of their own:\n");
    for mixture in workload::mixture::MIXTURES {
        if let Ok(Described::Mixture(Mixture { summary, .. })) = mixture.described() {
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
    text.push_str(COLUMNS);
    text.push_str(MODES);
    text
}

/// The columns of `--requests-out`.
const COLUMNS: &str = "
Columns of --requests-out, a line for every request in the order of their ends:
  request      its number by arrival, from 0
  direction    read or write
  lbn, blocks  where, in blocks of the drive
  arrived_ns, ended_ns, response_ns
               virtual time, and the one after the other
  status       good, medium-error, timed-out or write-pointer
  waited_ns    before its command was given to the drive
  queue_ns, overhead_ns, seek_ns, rotation_ns, transfer_ns, bus_ns
               in the drive; with waited_ns they add up to response_ns
  hit          what the drive's buffer held of it: miss, partial or full
";

/// What the label of a report means.
const MODES: &str = "
The scheduler knows the drive exactly, belief = truth (in-firmware), or all of it but the noise of
--seek-noise-us and --late-seeks (noisy), or what --belief says: `headtime profile -o` has found it
(external), or nobody has (assumed). The platter's phase is then found by nine reads before the run.
Unless it knows all, the scheduler follows the platter by the ends of its commands; where too many
of them are not as believed, it goes by block order and reads nothing for free (mode safe).";
