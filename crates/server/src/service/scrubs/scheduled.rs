//! Scrubs that begin by themselves.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tracing::warn;

use super::{Running, locked, now_s};
use crate::checksums::report::{History, ScrubReport, ScrubState};
use crate::checksums::schedule::{Due, Schedule};
use crate::control::{ScrubBlocks, ScrubOrder};

/// The interval of looks at the schedules. A choice.
const LOOK: Duration = Duration::from_secs(1);
/// The time after a scheduled scrub was given up. A choice.
const PAUSE_S: u64 = 60;
/// The priority of scheduled scrubs among tasks. A choice: tasks that somebody waits for go first.
const PRIORITY: u8 = 7;

impl Running {
    /// Reads the histories of the volumes with checksums, and begins to follow their schedules.
    pub(in crate::service) fn begin_schedules(&self) {
        let mut is_any = false;
        for drive in &self.drives {
            for name in drive.volumes() {
                let Some((volume, length)) = drive.found(&name) else {
                    continue;
                };
                let Some(file) = &volume.checksums else {
                    continue;
                };
                let path = History::beside(file);
                let mut report = ScrubReport {
                    volume: name.clone(),
                    asked_bytes: length,
                    ..ScrubReport::default()
                };
                match History::load(&path) {
                    Ok(mut history) => {
                        report.schedule = volume.scrub_every_s.map(|every_s| Schedule {
                            every_s,
                            since_s: history.scheduled_s.unwrap_or_else(now_s),
                        });
                        if let (Some(schedule), None) = (report.schedule, history.scheduled_s) {
                            history.scheduled_s = Some(schedule.since_s);
                            if let Err(error) = history.save(&path) {
                                warn!(volume = name, %error, "the history of scrubs cannot be saved");
                            }
                        }
                        report.verified_s = history.verified_s;
                        report.findings = history.findings;
                    }
                    Err(problem) => report.problem = Some(problem),
                }
                is_any |= report.schedule.is_some();
                locked(&self.scrubs.all).insert(name, Arc::new(Mutex::new(report)));
            }
        }
        let service = self.scrubs.service.clone();
        if is_any {
            let spawned = thread::Builder::new()
                .name("scrubs".to_owned())
                .spawn(move || {
                    // It does not keep the service alive.
                    while let Some(service) = service.upgrade() {
                        service.begin_due_scrubs(now_s());
                        drop(service);
                        thread::sleep(LOOK);
                    }
                });
            if let Err(error) = spawned {
                warn!(%error, "no thread for scheduled scrubs");
            }
        }
    }

    /// Begins the scrubs of slices that are due.
    fn begin_due_scrubs(&self, now_s: u64) {
        let due: Vec<(String, usize, u64)> = {
            let all = locked(&self.scrubs.all);
            let each = all
                .values()
                .filter_map(|report| due(&locked(report), now_s));
            each.collect()
        };
        for (volume, slice, left_s) in due {
            let order = ScrubOrder {
                volume,
                priority: PRIORITY,
                deadline_s: Some(left_s),
                blocks: ScrubBlocks::All,
            };
            if let Err(problem) = self.begin_scrub(&order, Some(slice)) {
                warn!(
                    volume = order.volume,
                    problem, "a scheduled scrub does not begin"
                );
                let all = locked(&self.scrubs.all);
                if let Some(report) = all.get(&order.volume) {
                    let mut report = locked(report);
                    report.state = ScrubState::Aborted;
                    report.begun_s = now_s;
                    report.problem = Some(problem);
                }
            }
        }
    }
}

/// The slice of a volume that is to be verified now, and the seconds that are left for it.
fn due(report: &ScrubReport, now_s: u64) -> Option<(String, usize, u64)> {
    let ended_s = report.begun_s + report.elapsed_s as u64;
    let is_pausing = report.state == ScrubState::Aborted && now_s < ended_s + PAUSE_S;
    if report.state == ScrubState::Running || is_pausing {
        return None;
    }
    match report.schedule?.due(now_s, &report.verified_s) {
        Due::Slice { slice, left_s } => Some((report.volume.clone(), slice, left_s)),
        Due::At(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksums::schedule::SLICES;

    #[test]
    fn a_slice_is_due_unless_a_scrub_runs_or_has_just_failed() {
        let mut report = ScrubReport {
            schedule: Some(Schedule {
                every_s: 1000,
                since_s: 10_000,
            }),
            begun_s: 10_500,
            verified_s: [10_000; SLICES],
            ..ScrubReport::default()
        };
        let is_due = |report: &ScrubReport, now_s| due(report, now_s).is_some();
        assert!(!is_due(&report, 10_749) && is_due(&report, 10_750));
        report.state = ScrubState::Running;
        assert!(!is_due(&report, 10_750));
        report.state = ScrubState::Aborted;
        report.elapsed_s = 200.0;
        assert!(!is_due(&report, 10_759) && is_due(&report, 10_760));
        report.schedule = None;
        assert!(!is_due(&report, 20_000));
    }
}
