//! Orders of users to read a volume in free time.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// An order to read every block of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// The name of the volume.
    pub volume: String,
    /// The priority; 0 is the highest.
    #[serde(default)]
    pub priority: u8,
    /// The deadline, in seconds from now.
    #[serde(default)]
    pub deadline_s: Option<u64>,
    /// The sink of the blocks.
    #[serde(default)]
    pub sink: Sink,
    /// The state file, to resume the scan after a stop or a crash.
    #[serde(default)]
    pub state: Option<ScanState>,
}

/// The state file of a scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanState {
    /// The absolute path. The service's user writes the file, so only the control socket accepts it. An
    /// existing file resumes its scan.
    pub file: PathBuf,
    /// The shortest interval between two writes of the file, in seconds. With 0 every processed block is
    /// written.
    pub every_s: u64,
}

/// The sink of a scan's blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sink {
    /// A checksum of all blocks.
    #[default]
    Checksum,
    /// A program and its arguments. It runs as the service's user, so only the control socket accepts it.
    Command(Vec<String>),
}
