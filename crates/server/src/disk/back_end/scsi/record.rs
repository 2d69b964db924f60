//! The record of turned switches, which outlives a killed process.
//!
//! ```text
//!   lock the record of this drive --locked by another process--> refused
//!     -> what a killed process has left in it is put back
//!     -> written before each turn of a switch
//!     -> removed when all switches are back
//! ```
//!
//! Switches are turned until power off or reset only. After a restart of the machine a record means nothing.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use block::Switch;
use headtime_client::private::{create_folder, temporary_folder};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::cache_switch::{CacheSwitch, word};

/// A switch that was turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnedSwitch {
    /// The switch.
    pub switch: CacheSwitch,
    /// Its former state.
    pub before: Switch,
    /// The state that it was turned to.
    pub now: Switch,
}

/// The record of one drive, locked for this process.
#[derive(Debug)]
pub struct SwitchRecord {
    file: File,
    path: PathBuf,
    boot: String,
}

/// The reason for which a drive has no record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another process has turned switches of this drive.
    #[error(
        "{0}: another Headtime process has this drive and its switches: wait until it has ended"
    )]
    Locked(PathBuf),
    /// The file cannot be used.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl fmt::Display for TurnedSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, now, before) = (self.switch.name(), word(self.now), word(self.before));
        write!(f, "its {name} is {now} and was {before}")
    }
}

/// The record that a killed process has left, and that no process has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedRecord {
    /// The drive, by the letters of the record's name.
    pub drive: String,
    /// The switches that are turned.
    pub turned: Vec<TurnedSwitch>,
}

/// The text of a record: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct RecordLine {
    /// The boot of the machine.
    boot: String,
    switches: Vec<RecordedSwitch>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedSwitch {
    switch: CacheSwitch,
    was_on: bool,
    is_on: bool,
}

/// The folder of records, which a restart empties on most machines: `/run/headtime` for root, and the user's
/// runtime folder for others.
pub fn folder() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return PathBuf::from("/run/headtime");
    }
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match session.filter(|session| session.is_absolute()) {
        Some(session) => session.join("headtime"),
        None => temporary_folder(user.as_raw()),
    }
}

/// The boot of this machine (the kernel's documentation, admin-guide/sysctl/kernel).
pub fn this_boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map_or_else(|_| String::new(), |text| text.trim().to_owned())
}

/// The records of this boot in a folder that no process has, in the order of their names. Nothing is changed. A folder
/// that cannot be read has none.
pub fn abandoned(folder: &Path, boot: &str) -> Vec<AbandonedRecord> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let record = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        let drive = name.strip_prefix("switches-")?.strip_suffix(".json")?;
        let file = File::open(&path).ok()?;
        // A process that has the record has locked it; this lock ends with the file.
        flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
        let turned = left_over(&fs::read_to_string(&path).ok()?, boot);
        (!turned.is_empty()).then(|| AbandonedRecord {
            drive: drive.to_owned(),
            turned,
        })
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut records: Vec<AbandonedRecord> = paths.filter_map(record).collect();
    records.sort_by(|a, b| a.drive.cmp(&b.drive));
    records
}

impl SwitchRecord {
    /// Opens and locks the record of a drive, and returns the switches that a killed process has left turned.
    ///
    /// # Errors
    /// If another process has it, or there is no such file.
    pub fn open(
        folder: &Path,
        drive: &str,
        boot: &str,
    ) -> Result<(Self, Vec<TurnedSwitch>), RecordError> {
        let path = folder.join(format!("switches-{}.json", file_name(drive)));
        let failed = |source| RecordError::File {
            path: path.clone(),
            source,
        };
        create_folder(folder).map_err(failed)?;
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.mode(0o600);
            let file = options.open(&path).map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(RecordError::Locked(path)),
                Err(error) => return Err(failed(error.into())),
            }
            // Another process may have removed the file between opening and locking.
            if file.metadata().map_err(failed)?.nlink() == 0 {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(failed)?;
            let record = SwitchRecord {
                file,
                path: path.clone(),
                boot: boot.to_owned(),
            };
            return Ok((record, left_over(&text, boot)));
        }
    }

    /// Writes the turned switches. A killed process keeps what it has written.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, turned: &[TurnedSwitch]) -> io::Result<()> {
        let line = RecordLine {
            boot: self.boot.clone(),
            switches: turned
                .iter()
                .map(|turned| RecordedSwitch {
                    switch: turned.switch,
                    was_on: turned.before == Switch::On,
                    is_on: turned.now == Switch::On,
                })
                .collect(),
        };
        let line = serde_json::to_string(&line)? + "\n";
        // The rest of a longer line before comes after the end of this one, until it is cut off.
        self.file.write_all_at(line.as_bytes(), 0)?;
        self.file.set_len(line.len() as u64)
    }

    /// Removes the record: all switches are as before.
    pub fn remove(&self) {
        // A record that stays has switches that are as before: nothing is put back then.
        let _ = fs::remove_file(&self.path);
    }
}

/// The switches of a record of this boot. A text that is no record has none.
fn left_over(text: &str, boot: &str) -> Vec<TurnedSwitch> {
    let line = text.lines().next().unwrap_or_default();
    let state = |is_on| match is_on {
        true => Switch::On,
        false => Switch::Off,
    };
    match serde_json::from_str::<RecordLine>(line) {
        Ok(record) if record.boot == boot => record
            .switches
            .iter()
            .map(|switch| TurnedSwitch {
                switch: switch.switch,
                before: state(switch.was_on),
                now: state(switch.is_on),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// A file name of letters, digits and `-`.
fn file_name(drive: &str) -> String {
    let letter = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    };
    drive.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURNED: TurnedSwitch = TurnedSwitch {
        switch: CacheSwitch::LookAhead,
        before: Switch::On,
        now: Switch::Off,
    };

    fn open(folder: &Path, boot: &str) -> Result<(SwitchRecord, Vec<TurnedSwitch>), RecordError> {
        SwitchRecord::open(folder, "ACME disk/../1", boot)
    }

    #[test]
    fn a_killed_process_leaves_its_switches_to_the_next_one_of_the_same_boot() {
        let folder = tempfile::tempdir().expect("a folder");
        let (record, left) = open(folder.path(), "today").expect("a record");
        assert_eq!(left, []);
        let both = [
            TURNED,
            TurnedSwitch {
                switch: CacheSwitch::WriteCache,
                ..TURNED
            },
        ];
        record.write(&both).expect("written");
        record.write(&[TURNED]).expect("written");
        drop(record);
        for (boot, expected) in [("tomorrow", &[][..]), ("today", &[TURNED])] {
            let (_, left) = open(folder.path(), boot).expect("a record");
            assert_eq!(left, expected, "{boot}");
        }
        let (record, _) = open(folder.path(), "today").expect("a record");
        record.remove();
        drop(record);
        let names = fs::read_dir(folder.path()).expect("the folder");
        assert_eq!(names.count(), 0, "nothing stays");
    }

    #[test]
    fn only_a_record_that_no_process_has_is_abandoned() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("other.json"), "{}").expect("a file");
        let (record, _) = open(folder.path(), "today").expect("a record");
        record.write(&[TURNED]).expect("written");
        assert_eq!(abandoned(folder.path(), "today"), []);
        drop(record);
        let left = AbandonedRecord {
            drive: "ACME-disk----1".to_owned(),
            turned: vec![TURNED],
        };
        assert_eq!(abandoned(folder.path(), "today"), [left]);
        assert_eq!(TURNED.to_string(), "its look-ahead is off and was on");
        assert_eq!(abandoned(folder.path(), "tomorrow"), []);
        assert_eq!(abandoned(&folder.path().join("none"), "today"), []);
        assert!(
            open(folder.path(), "today").is_ok(),
            "looking locks nothing"
        );
    }

    #[test]
    fn a_drive_has_one_owner_of_its_switches() {
        let folder = tempfile::tempdir().expect("a folder");
        let (record, _) = open(folder.path(), "today").expect("a record");
        let refused = open(folder.path(), "today").expect_err("a refusal");
        assert!(matches!(refused, RecordError::Locked(_)), "{refused}");
        drop(record);
        assert!(open(folder.path(), "today").is_ok());
    }

    #[test]
    fn a_text_that_is_no_record_has_no_switches() {
        for text in ["", "{", "{\"boot\":\"today\"}", "null\n", "\u{0}"] {
            assert_eq!(left_over(text, "today"), []);
        }
    }
}
