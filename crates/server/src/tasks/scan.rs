//! Orders of users to read a volume, or a declared set of its bytes, in free time.

use std::path::PathBuf;

use block::{Extent, Lba, Sectors};
use scheduler::background::DeclaredSet;
use serde::{Deserialize, Serialize};

use super::scan_file::fnv;

/// An order to read every block of a volume, or a set of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// The name of the volume.
    pub volume: String,
    /// The bytes to read, in any order; all without a set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<PieceSet>,
    /// The priority; 0 is the highest.
    #[serde(default)]
    pub priority: u8,
    /// The deadline, in seconds from now.
    #[serde(default)]
    pub deadline_s: Option<u64>,
    /// The most bytes a second that the task takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace_bytes_s: Option<u64>,
    /// The sink of the blocks.
    #[serde(default)]
    pub sink: Sink,
    /// The state file, to resume the scan after a stop or a crash.
    #[serde(default)]
    pub state: Option<ScanState>,
    /// Whether the scan ends with its client.
    #[serde(default)]
    pub lifetime: TaskLifetime,
}

impl Scan {
    /// An order to read all of a volume into a checksum, of the highest priority and without a deadline.
    pub fn whole(volume: impl Into<String>) -> Scan {
        Scan {
            volume: volume.into(),
            set: None,
            priority: 0,
            deadline_s: None,
            pace_bytes_s: None,
            sink: Sink::default(),
            state: None,
            lifetime: TaskLifetime::default(),
        }
    }
}

/// Whether a task that is not done ends with its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskLifetime {
    /// It does not.
    #[default]
    Detached,
    /// It ends with the connection that began it. Only the control socket has such connections.
    Connection,
}

/// Pieces of a volume, in any order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PieceSet {
    /// The first byte of each piece in the volume and its length, both in multiples of a block.
    pub pieces: Vec<(u64, u64)>,
    /// Any so many of the pieces will do; all are needed without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any: Option<u64>,
}

impl Scan {
    /// The blocks of a drive, whose volume has `length` bytes from `offset` on in blocks of `block` bytes.
    ///
    /// # Errors
    /// The first piece that is no range of blocks of the volume, or two that overlap, or a number of pieces
    /// that are needed which makes no sense.
    pub fn declared(
        &self,
        (offset, length): (u64, u64),
        block: u64,
    ) -> Result<DeclaredSet, String> {
        let whole = PieceSet {
            pieces: vec![(0, length)],
            any: None,
        };
        let set = self.set.as_ref().unwrap_or(&whole);
        let mut pieces = Vec::with_capacity(set.pieces.len());
        for &(first, bytes) in &set.pieces {
            let end = first.checked_add(bytes).filter(|&end| end <= length);
            if end.is_none() {
                return Err(format!(
                    "{bytes} bytes from {first} on: expected a piece that ends in the volume, which has \
                     {length} bytes"
                ));
            }
            if bytes == 0 || !first.is_multiple_of(block) || !bytes.is_multiple_of(block) {
                return Err(format!(
                    "{bytes} bytes from {first} on: expected multiples of a block of {block} bytes, one or \
                     more"
                ));
            }
            let piece = Extent::new(Lba((offset + first) / block), Sectors(bytes / block));
            pieces.push(piece.map_err(|error| error.to_string())?);
        }
        let declared = DeclaredSet::all(pieces).and_then(|declared| match set.any {
            None => Ok(declared),
            Some(needed) => declared.any(usize::try_from(needed).unwrap_or(usize::MAX)),
        });
        declared.map_err(|refused| refused.to_string())
    }

    /// What is read, for the state file and people: the volume, and the fingerprint of a set.
    pub fn described(&self) -> String {
        let Some(set) = &self.set else {
            return self.volume.clone();
        };
        let mut bytes: Vec<u8> = Vec::with_capacity(16 * set.pieces.len());
        for &(first, length) in &set.pieces {
            bytes.extend(first.to_le_bytes());
            bytes.extend(length.to_le_bytes());
        }
        let (print, pieces) = (fnv(&bytes), set.pieces.len());
        match set.any {
            None => format!("{} ({pieces} pieces {print:016x})", self.volume),
            Some(any) => format!(
                "{} (any {any} of {pieces} pieces {print:016x})",
                self.volume
            ),
        }
    }
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
    /// A file by its whole path: the pieces one behind the other, in the order in which they were named, and then a bit for
    /// each block that has come. The service's user writes it, so only the control socket accepts it.
    Buffer(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(pieces: &[(u64, u64)], any: Option<u64>) -> Scan {
        let text = serde_json::json!({
            "volume": "db", "set": { "pieces": pieces, "any": any }
        });
        serde_json::from_value(text).expect("an order")
    }

    #[test]
    fn pieces_of_a_volume_are_blocks_of_its_drive() {
        let volume = (4096 * 10, 4096 * 100);
        let declared = |pieces: &[(u64, u64)], any| order(pieces, any).declared(volume, 4096);
        let set = declared(&[(8192, 4096), (0, 4096)], Some(1)).expect("two pieces");
        let starts: Vec<u64> = set.pieces().iter().map(|piece| piece.start().0).collect();
        assert_eq!((starts, set.needed()), (vec![10, 12], 1));
        for (pieces, any, problem) in [
            (&[(4096 * 99, 8192)][..], None, "ends in the volume"),
            (&[(u64::MAX, 4096)], None, "ends in the volume"),
            (&[(0, 0)], None, "one or more"),
            (&[(512, 4096)], None, "multiples of a block"),
            (&[], None, "an empty set"),
            (&[(0, 8192), (4096, 4096)], None, "overlap"),
            (&[(0, 4096)], Some(2), "expected 1 to 1"),
            (&[(0, 4096)], Some(0), "expected 1 to 1"),
        ] {
            let refused = declared(pieces, any).expect_err("no set");
            assert!(refused.contains(problem), "{pieces:?}: {refused}");
        }
        let whole: Scan = serde_json::from_str(r#"{"volume":"db"}"#).expect("an order");
        let set = whole.declared(volume, 4096).expect("a volume");
        assert_eq!((set.pieces().len(), set.blocks().0), (1, 100));
    }

    #[test]
    fn another_set_is_described_otherwise() {
        let one = order(&[(0, 4096)], None).described();
        assert!(one.starts_with("db (1 pieces "), "{one}");
        assert_ne!(one, order(&[(0, 8192)], None).described());
        assert_ne!(one, order(&[(0, 4096)], Some(1)).described());
    }
}
