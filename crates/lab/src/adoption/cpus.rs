//! CPUs that stay awake while reads are timed: the end of a read is seen late by a CPU that has to wake up first.

use serde::Serialize;
use server::cpu_latency::CpuLatency;

/// Keeps all CPUs of this machine awake as long as the answer lives. If that is not permitted, `say` gets a sentence about
/// it, and reads are timed all the same.
pub fn keep_awake(say: &dyn Fn(&str)) -> Option<CpuLatency> {
    match CpuLatency::at_most(0) {
        Ok(held) => Some(held),
        Err(error) => {
            say(&format!(
                "the CPUs may sleep while a read is on its way, and see its end late: {error}; as root they are kept awake"
            ));
            None
        }
    }
}

/// What sleeping CPUs add to the times of a path: the 95th percentile of reads of one block, beyond the shortest, in
/// microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WakeUps {
    /// While CPUs may sleep.
    pub asleep_us: Option<f64>,
    /// While they are kept awake; `None` if that is not permitted.
    pub awake_us: Option<f64>,
}

/// The delay from which a service should keep CPUs awake. A choice: the guards of a drive on a punctual path are as wide.
const LATE_US: f64 = 200.0;

impl WakeUps {
    /// Whether CPUs that are awake make this path more punctual: by more than half of a delay that matters.
    pub fn matter(&self) -> bool {
        match (self.asleep_us, self.awake_us) {
            (Some(asleep), Some(awake)) => asleep >= LATE_US && awake <= asleep / 2.0,
            _ => false,
        }
    }
}

/// The 95th percentile of times in nanoseconds beyond the shortest, in microseconds; `None` of nothing.
pub(super) fn late_us(mut times: Vec<u64>) -> Option<f64> {
    times.sort_unstable();
    let late = times.get((times.len() * 19 / 20).saturating_sub(1))?;
    Some((late - times[0]) as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_matter_where_sleep_makes_reads_late_and_waking_makes_them_punctual() {
        let of = |asleep_us, awake_us| {
            WakeUps {
                asleep_us,
                awake_us,
            }
            .matter()
        };
        assert!(of(Some(987.0), Some(47.0)));
        assert!(of(Some(200.0), Some(100.0)));
        assert!(!of(Some(199.0), Some(10.0)), "punctual enough");
        assert!(!of(Some(987.0), Some(500.0)), "late for another reason");
        assert!(!of(Some(987.0), None), "not permitted");
        assert!(!of(None, Some(1.0)));
    }

    #[test]
    fn nineteen_of_twenty_reads_are_at_most_so_late() {
        assert_eq!(late_us(Vec::new()), None);
        assert_eq!(late_us(vec![5_000]), Some(0.0));
        let times = (0..20).rev().map(|late| 70_000 + late * 1_000);
        assert_eq!(late_us(times.collect()), Some(18.0));
    }
}
