//! Scrubs in the status: progress, findings, and the age of what was verified.

use serde::{Deserialize, Serialize};

use crate::checksums::CHUNK;
use crate::checksums::report::{FindingKind, ScrubReport, ScrubState};
use crate::checksums::schedule::oldest;

/// Why a pass is not there any more.
pub(crate) const GONE: &str = "the volume was resized, or another scrub took its place";
/// What the user of a scrub has done.
pub(crate) const GIVEN_UP: &str = "its task was given up";
/// The problems of scrubs that somebody has ended.
pub(crate) const ENDED: [&str; 2] = [GONE, GIVEN_UP];

/// The scrub of a volume with checksums.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScrubStatus {
    /// The volume.
    pub volume: String,
    /// The state of the present or last scrub since the service began.
    pub state: ScrubState,
    /// Bytes that it is to verify.
    pub asked_bytes: u64,
    /// Bytes of those that were compared.
    pub verified_bytes: u64,
    /// Chunks that were compared by scrubs since the service began.
    pub verified_chunks_total: u64,
    /// Places whose bytes differ from those that were written.
    pub changed: u64,
    /// Places that the drive cannot read.
    pub unreadable: u64,
    /// Bytes that were adopted, because there was no checksum or a write was interrupted.
    pub adopted_bytes: u64,
    /// Bytes that were compared with nothing: changed each time, or beside unreadable blocks.
    pub skipped_bytes: u64,
    /// Seconds since the oldest verification, once each block was verified.
    pub oldest_age_s: Option<u64>,
    /// Seconds in which each block is to be verified, if there is a schedule.
    pub every_s: Option<u64>,
    /// Seconds by which the schedule is late.
    pub late_by_s: u64,
    /// Why the scrub was given up.
    pub problem: Option<String>,
}

impl ScrubStatus {
    /// The status of a report at a moment in seconds since 1970.
    pub fn of(report: &ScrubReport, now_s: u64) -> Self {
        let count = |kind: FindingKind| {
            let present = report.present().filter(|finding| finding.kind == kind);
            present.count() as u64
        };
        let (_, oldest_s) = oldest(&report.verified_s);
        ScrubStatus {
            volume: report.volume.clone(),
            state: report.state,
            asked_bytes: report.asked_bytes,
            verified_bytes: report.verified_bytes,
            verified_chunks_total: report.verified_before_chunks
                + report.verified_bytes.div_ceil(CHUNK),
            changed: count(FindingKind::Changed),
            unreadable: count(FindingKind::Unreadable),
            adopted_bytes: report.adopted_bytes + report.adopted_after_crash_bytes,
            skipped_bytes: report.skipped_bytes,
            oldest_age_s: (oldest_s > 0).then(|| now_s.saturating_sub(oldest_s)),
            every_s: report.schedule.map(|schedule| schedule.every_s),
            late_by_s: report
                .schedule
                .map_or(0, |schedule| schedule.late_by_s(now_s, &report.verified_s)),
            problem: report.problem.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksums::report::Finding;
    use crate::checksums::schedule::{SLICES, Schedule};

    #[test]
    fn only_present_findings_count_and_the_oldest_slice_has_the_age() {
        let finding = |kind, gone_s| Finding {
            lbn: 1,
            offset_bytes: 512,
            length_bytes: 512,
            kind,
            first_seen_s: 1,
            last_seen_s: 2,
            scrubs_total: 1,
            gone_s,
        };
        let mut report = ScrubReport {
            verified_s: [900; SLICES],
            verified_bytes: 3 * CHUNK,
            verified_before_chunks: 7,
            schedule: Some(Schedule {
                every_s: 300,
                since_s: 100,
            }),
            findings: vec![
                finding(FindingKind::Changed, None),
                finding(FindingKind::Changed, Some(9)),
                finding(FindingKind::Unreadable, None),
            ],
            ..ScrubReport::default()
        };
        report.verified_s[3] = 600;
        let status = ScrubStatus::of(&report, 1000);
        assert_eq!((status.changed, status.unreadable), (1, 1));
        assert_eq!((status.oldest_age_s, status.late_by_s), (Some(400), 100));
        assert_eq!(status.verified_chunks_total, 10);
        report.verified_s[4] = 0;
        assert_eq!(ScrubStatus::of(&report, 1000).oldest_age_s, None);
    }
}
