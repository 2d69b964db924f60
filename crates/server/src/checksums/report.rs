//! The report of a scrub, and the history of a volume's damage.
//!
//! ```text
//!   pass 1: bytes A damaged        pass 2: A damaged, B damaged      pass 3: B damaged
//!   A seen once, present           A seen twice, B once              A gone, B seen twice
//! ```

use std::io::Write as _;
use std::path::{Path, PathBuf};

use headtime_client::private;
use serde::{Deserialize, Serialize};

use super::pass::{Damage, DamageKind};
use super::schedule::{Moments, SLICES, Schedule, oldest, slice_of};

/// The state of a scrub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScrubState {
    /// None was begun since the service began.
    #[default]
    Idle,
    /// It reads.
    Running,
    /// It has read everything that was not being changed.
    Finished,
    /// It was given up.
    Aborted,
}

/// The progress or the result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScrubReport {
    /// The volume.
    pub volume: String,
    /// The state.
    pub state: ScrubState,
    /// The number of its present or last task.
    pub task: u64,
    /// Why it was given up, or what is wrong with the checksums.
    #[serde(default)]
    pub problem: Option<String>,
    /// The begin in seconds since 1970.
    pub begun_s: u64,
    /// Seconds from the begin to now or to the end.
    pub elapsed_s: f64,
    /// Bytes of the volume.
    pub asked_bytes: u64,
    /// Bytes of chunks that were compared.
    pub verified_bytes: u64,
    /// Bytes of chunks that had no checksum and have one now.
    pub adopted_bytes: u64,
    /// Bytes of chunks that differed where a write had been interrupted, and whose new checksum was kept.
    pub adopted_after_crash_bytes: u64,
    /// Bytes of chunks with trimmed bytes, which have no checksum.
    pub undefined_bytes: u64,
    /// Bytes of chunks that were changed whenever they were read, or whose reads failed.
    pub skipped_bytes: u64,
    /// Bytes of these that can be read and lie beside unreadable blocks, and of which the checksum guards nothing.
    #[serde(default)]
    pub unverified_bytes: u64,
    /// Chunks that differed once and not again.
    pub transient_total: u64,
    /// Damaged sectors of the file with the checksums: their chunks have none.
    pub damaged_checksums_total: u64,
    /// The slice of the volume that a scheduled scrub verifies, or all.
    #[serde(default)]
    pub slice: Option<usize>,
    /// The file system whose blocks the scrub verifies, unless it verifies all.
    #[serde(default)]
    pub used: Option<UsedReport>,
    /// The schedule of the volume.
    #[serde(default)]
    pub schedule: Option<Schedule>,
    /// The end of each slice's last verification in seconds since 1970, or 0.
    #[serde(default)]
    pub verified_s: Moments,
    /// Chunks that earlier scrubs compared since the service began.
    #[serde(default)]
    pub verified_before_chunks: u64,
    /// The seconds by which the oldest verification is late for the schedule.
    #[serde(default)]
    pub late_by_s: u64,
    /// What is damaged, and what was.
    pub findings: Vec<Finding>,
}

impl ScrubReport {
    /// The findings that are still there.
    pub fn present(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.gone_s.is_none())
    }
}

/// Damaged bytes of a volume, through all scrubs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The first block on the drive.
    pub lbn: u64,
    /// The first byte in the volume.
    pub offset_bytes: u64,
    /// The number of bytes.
    pub length_bytes: u64,
    /// What is wrong.
    pub kind: FindingKind,
    /// When it was first found, in seconds since 1970.
    pub first_seen_s: u64,
    /// When it was last found.
    pub last_seen_s: u64,
    /// In how many scrubs it was found.
    pub scrubs_total: u64,
    /// When a scrub found it no more.
    #[serde(default)]
    pub gone_s: Option<u64>,
}

/// The part of a volume that a scrub covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    /// All of it.
    All,
    /// A slice.
    Slice(usize),
    /// What its file system uses. No slice is verified by that.
    Used,
}

/// What the file system of a volume used when a scrub began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedReport {
    /// The kind of the file system.
    pub file_system: String,
    /// Bytes in use, in chunks of 64 KiB.
    pub used_bytes: u64,
    /// Groups whose metadata are damaged or contradict themselves: all of each was verified.
    pub distrusted_groups: u64,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The drive cannot read the bytes: a latent sector error.
    Unreadable,
    /// The drive reads other bytes than those that were written.
    Changed,
}

impl From<DamageKind> for FindingKind {
    fn from(kind: DamageKind) -> Self {
        match kind {
            DamageKind::Unreadable => FindingKind::Unreadable,
            DamageKind::Changed => FindingKind::Changed,
        }
    }
}

/// The history of a volume: its findings and its last complete scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The end of the last complete scrub, in seconds since 1970.
    #[serde(default)]
    pub last_scrub_s: Option<u64>,
    /// The end of each slice's last verification in seconds since 1970, or 0.
    #[serde(default)]
    pub verified_s: Moments,
    /// The begin of the schedule, in seconds since 1970.
    #[serde(default)]
    pub scheduled_s: Option<u64>,
    /// The findings, by their first block.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// The largest number of findings in a history. A choice: such a drive is to be replaced. Gone ones are removed first.
const MOST_FINDINGS: usize = 10_000;

impl History {
    /// The file of the history beside the checksums.
    pub fn beside(checksums: &Path) -> PathBuf {
        let mut name = checksums.file_name().unwrap_or_default().to_owned();
        name.push(".history");
        checksums.with_file_name(name)
    }

    /// Reads a history. A missing file is an empty one.
    ///
    /// # Errors
    /// If the file cannot be read or is no history.
    pub fn load(path: &Path) -> Result<Self, String> {
        match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                format!("{}: {error}: expected a scrub's history", path.display())
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(History::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// Replaces the file atomically.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let beside = path.with_file_name(name);
        let mut file = private::create_file(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    }

    /// Adds what a complete scrub has found. `checked` says whether the scrub has seen the bytes of a finding.
    pub fn add(
        &mut self,
        (now_s, covered): (u64, Covered),
        damaged: &[Damage],
        (offset, block_bytes): (u64, u64),
        checked: impl Fn(&Finding) -> bool,
    ) {
        match covered {
            Covered::Slice(slice) => self.verified_s[slice] = now_s,
            Covered::All => self.verified_s = [now_s; SLICES],
            Covered::Used => {}
        }
        self.last_scrub_s = Some(oldest(&self.verified_s).1).filter(|&oldest_s| oldest_s > 0);
        for damage in damaged {
            let kind = FindingKind::from(damage.kind);
            let mut all = self.findings.iter_mut();
            let known = all.find(|finding| {
                finding.offset_bytes == damage.offset
                    && finding.kind == kind
                    && finding.gone_s.is_none()
            });
            match known {
                Some(finding) => {
                    finding.last_seen_s = now_s;
                    finding.scrubs_total += 1;
                    finding.length_bytes = damage.length;
                }
                None => self.findings.push(Finding {
                    lbn: (offset + damage.offset) / block_bytes,
                    offset_bytes: damage.offset,
                    length_bytes: damage.length,
                    kind,
                    first_seen_s: now_s,
                    last_seen_s: now_s,
                    scrubs_total: 1,
                    gone_s: None,
                }),
            }
        }
        for finding in &mut self.findings {
            let is_found = damaged.iter().any(|damage| {
                damage.offset == finding.offset_bytes
                    && FindingKind::from(damage.kind) == finding.kind
            });
            let is_inside = match covered {
                Covered::Slice(slice) => slice == slice_of(finding.offset_bytes),
                Covered::All | Covered::Used => true,
            };
            if !is_found && is_inside && finding.gone_s.is_none() && checked(finding) {
                finding.gone_s = Some(now_s);
            }
        }
        self.findings
            .sort_by_key(|finding| (finding.gone_s.is_some(), finding.lbn));
        self.findings.truncate(MOST_FINDINGS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_a_history() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = History::beside(&folder.path().join("disk.sums"));
        assert_eq!(
            path.file_name().and_then(|name| name.to_str()),
            Some("disk.sums.history")
        );
        let damage = |offset, kind| Damage {
            offset,
            length: 4096,
            kind,
        };
        let (first, second) = (
            damage(8192, DamageKind::Changed),
            damage(65_536, DamageKind::Unreadable),
        );
        let place = (1 << 20, 512);
        for (now, damaged) in [
            (10, vec![first]),
            (20, vec![first, second]),
            (30, vec![second]),
        ] {
            let mut history = History::load(&path).expect("a history");
            history.add((now, Covered::All), &damaged, place, |_| true);
            history.save(&path).expect("a file");
        }
        let History {
            last_scrub_s,
            findings,
            verified_s,
            ..
        } = History::load(&path).expect("a history");
        assert_eq!((last_scrub_s, verified_s), (Some(30), [30; SLICES]));
        let [present, gone] = &findings[..] else {
            panic!("{findings:?}");
        };
        assert_eq!(
            (present.lbn, present.first_seen_s, present.last_seen_s),
            (2176, 20, 30)
        );
        assert_eq!((present.scrubs_total, present.gone_s), (2, None));
        assert_eq!(
            (gone.lbn, gone.scrubs_total, gone.gone_s),
            (2064, 2, Some(30))
        );
        // A slice that has other bytes says nothing about these.
        let mut history = History::load(&path).expect("a history");
        history.add((40, Covered::Slice(1)), &[], place, |_| true);
        assert_eq!(history.findings[0].gone_s, None);
        assert_eq!(history.last_scrub_s, Some(30), "the oldest");
        // The used blocks have it, if the scrub has seen it, and verify no slice.
        history.add((45, Covered::Used), &[], place, |_| false);
        assert_eq!(history.findings[0].gone_s, None);
        assert!(history.verified_s.iter().all(|&moment_s| moment_s <= 40));
        history.add((50, Covered::Slice(0)), &[], place, |_| true);
        assert_eq!(history.findings[1].gone_s, Some(50));
        std::fs::write(&path, "{").expect("a file");
        assert!(
            History::load(&path)
                .expect_err("no JSON")
                .contains("expected")
        );
    }
}
