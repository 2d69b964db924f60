//! One checkpoint, from its order to its end.
//!
//! ```text
//!   Ending ---no change in flight---> Freezing ---bitmap---> Open ---store full, power cut---> Failed
//!   (changes wait)                    (changes wait)         (they wait for copies)            (nothing waits)
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::marks::hexadecimal;
use super::store::Store;
use super::{Frontier, chunks_of};

/// A checkpoint of a volume.
pub struct Checkpoint {
    /// The number, which the drive never uses twice while the service runs.
    pub number: u64,
    /// The name of the volume.
    pub volume: String,
    /// The first byte of the volume on its drive.
    pub offset: u64,
    /// Bytes of the volume.
    pub length: u64,
    /// The index of the export by which clients read the moment.
    pub export: usize,
    /// The index of the export by which old bytes are read before changes.
    pub urgent: usize,
    /// The dirty bitmap that begins anew at the moment, if one does: its name, and the checkpoint's number there.
    pub bitmap: Option<(String, u64)>,
    stage: Stage,
    store: Store,
    /// Chunks whose old bytes are being read.
    copying: BTreeSet<u64>,
    frontier: Frontier,
}

/// The stage of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The moment comes when the changes in flight have ended. New ones wait.
    Ending,
    /// The dirty bitmap is being frozen. Changes wait.
    Freezing,
    /// The moment has come.
    Open,
    /// The moment is lost, for this reason.
    Failed(String),
}

/// Whether a change may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Free,
    /// It waits for copies. These chunks have none yet.
    Waits(Vec<u64>),
}

/// A checkpoint in the answers of the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointStatus {
    /// The name of the volume.
    pub volume: String,
    /// The name of the export.
    pub export: String,
    /// The name of the dirty bitmap, if one begins anew at the moment.
    pub bitmap: Option<String>,
    /// The checkpoint's number in the bitmap: 16 hexadecimal digits.
    pub checkpoint: Option<String>,
    /// Bytes of the volume.
    pub length_bytes: u64,
    /// Bytes of old chunks in the store.
    pub store_bytes: u64,
    /// The bound of the store in bytes.
    pub store_bound_bytes: u64,
    /// Chunks whose old bytes could not be read.
    pub lost_chunks: u64,
    /// Why the moment is lost, if it is.
    pub problem: Option<String>,
}

/// Chunks of a long change that are looked at together. A choice: several times the copies at a time.
const MOST_LOOKS: usize = 256;

impl Checkpoint {
    /// A checkpoint whose moment has not come. `number` and the exports (for clients, for copies) are its own.
    pub fn new(
        (number, volume): (u64, String),
        bytes: Range<u64>,
        (export, urgent): (usize, usize),
        bitmap: Option<(String, u64)>,
        store: Store,
    ) -> Self {
        Checkpoint {
            number,
            volume,
            offset: bytes.start,
            length: bytes.end - bytes.start,
            export,
            urgent,
            bitmap,
            stage: Stage::Ending,
            store,
            copying: BTreeSet::new(),
            frontier: Frontier::default(),
        }
    }

    /// The stage.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The bytes of the drive.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + self.length
    }

    /// No change is in flight: the dirty bitmap is being frozen.
    pub fn freeze(&mut self) {
        assert_eq!(self.stage, Stage::Ending, "a checkpoint has one moment");
        self.stage = Stage::Freezing;
    }

    /// The moment is now: no change is in flight.
    pub fn open(&mut self) {
        let is_before = matches!(self.stage, Stage::Ending | Stage::Freezing);
        assert!(is_before, "a checkpoint has one moment");
        self.stage = Stage::Open;
    }

    /// The moment is lost. Old bytes are dropped, and no change waits any more.
    pub fn fail(&mut self, problem: String) {
        if !matches!(self.stage, Stage::Failed(_)) {
            tracing::warn!(volume = self.volume, problem, "a checkpoint is lost");
            self.stage = Stage::Failed(problem);
            self.store.empty();
        }
    }

    /// Whether a change of these bytes of the drive may begin.
    pub fn admit(&mut self, bytes: &Range<u64>) -> Admission {
        let chunks = chunks_of(bytes, self.offset, self.length);
        match self.stage {
            Stage::Failed(_) => Admission::Free,
            Stage::Ending | Stage::Freezing => match chunks.is_empty() {
                true => Admission::Free,
                false => Admission::Waits(Vec::new()),
            },
            Stage::Open => {
                let left = self.frontier.left(&chunks, |chunk| self.store.has(chunk));
                if left.is_empty() {
                    return Admission::Free;
                }
                let missing = left
                    .take(MOST_LOOKS)
                    .filter(|chunk| !self.store.has(*chunk) && !self.copying.contains(chunk));
                Admission::Waits(missing.collect())
            }
        }
    }

    /// Begins the copy of a chunk. The answer is whether there is room; without room the moment is lost.
    pub fn begin_copy(&mut self, chunk: u64) -> bool {
        if self.store.left() <= self.copying.len() as u64 {
            self.fail(format!(
                "its store of {} bytes is full: expected a larger one, or fewer changes until its end",
                self.store.bound_bytes()
            ));
            return false;
        }
        self.copying.insert(chunk)
    }

    /// A copy could not begin now.
    pub fn cancel_copy(&mut self, chunk: u64) {
        self.copying.remove(&chunk);
    }

    /// The old bytes of a chunk were read, or are not readable.
    pub fn copied(&mut self, chunk: u64, bytes: Option<&[u8]>) {
        self.copying.remove(&chunk);
        if self.stage != Stage::Open {
            return;
        }
        match bytes {
            Some(bytes) => {
                if let Err(error) = self.store.keep(chunk, bytes) {
                    self.fail(format!("its store fails: {error}"));
                }
            }
            None => self.store.lose(chunk),
        }
    }

    /// Makes bytes of the volume those of the moment. They begin at byte `start` of the volume.
    ///
    /// # Errors
    /// If the moment is lost, or some of its bytes are.
    pub fn restore(&self, start: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        match &self.stage {
            Stage::Open => self.store.restore(start, bytes),
            Stage::Ending | Stage::Freezing => {
                Err(std::io::Error::other("the moment has not come"))
            }
            Stage::Failed(problem) => Err(std::io::Error::other(problem.clone())),
        }
    }

    /// The chunks of a range whose old bytes are in the store.
    pub fn copies(&self, chunks: Range<u64>) -> impl Iterator<Item = u64> {
        self.store.kept(chunks)
    }

    /// The checkpoint for the control plane.
    pub fn status(&self) -> CheckpointStatus {
        CheckpointStatus {
            volume: self.volume.clone(),
            export: export_of(&self.volume),
            bitmap: self.bitmap.as_ref().map(|(name, _)| name.clone()),
            checkpoint: (self.bitmap.as_ref()).map(|(_, number)| hexadecimal(*number)),
            length_bytes: self.length,
            store_bytes: self.store.used_bytes(),
            store_bound_bytes: self.store.bound_bytes(),
            lost_chunks: self.store.lost(),
            problem: match &self.stage {
                Stage::Failed(problem) => Some(problem.clone()),
                Stage::Ending | Stage::Freezing | Stage::Open => None,
            },
        }
    }
}

/// The name of the export of a volume's checkpoint.
pub fn export_of(volume: &str) -> String {
    format!("{volume}@checkpoint")
}

#[cfg(test)]
mod tests {
    use super::super::CHUNK;
    use super::super::store::StoreOrder;
    use super::*;

    fn checkpoint(chunks: u64) -> Checkpoint {
        let order = StoreOrder {
            folder: None,
            bytes: chunks * CHUNK,
        };
        let store = Store::begin(&order).expect("a store");
        Checkpoint::new(
            (1, "disk".into()),
            CHUNK..CHUNK + 10 * CHUNK,
            (1, 2),
            None,
            store,
        )
    }

    #[test]
    fn changes_wait_for_the_moment_and_then_for_their_chunks() {
        let mut one = checkpoint(4);
        let bytes = 2 * CHUNK..4 * CHUNK;
        assert_eq!(one.admit(&bytes), Admission::Waits(Vec::new()));
        assert_eq!(one.admit(&(0..CHUNK)), Admission::Free, "another volume");
        one.open();
        assert_eq!(one.admit(&bytes), Admission::Waits(vec![1, 2]));
        assert!(one.begin_copy(1));
        assert_eq!(one.admit(&bytes), Admission::Waits(vec![2]));
        one.copied(1, Some(&[7; CHUNK as usize]));
        assert_eq!(one.admit(&(2 * CHUNK..3 * CHUNK)), Admission::Free);
        one.copied(2, None);
        assert_eq!(one.admit(&bytes), Admission::Free, "it is lost");
        let mut read = vec![0; CHUNK as usize];
        one.restore(CHUNK, &mut read).expect("a copy");
        assert_eq!(read, [7; CHUNK as usize]);
        assert!(one.restore(2 * CHUNK, &mut read).is_err());
        assert_eq!(one.status().lost_chunks, 1);
    }

    #[test]
    fn a_full_store_ends_the_checkpoint_and_no_change() {
        let mut one = checkpoint(1);
        one.open();
        assert!(one.begin_copy(0));
        assert!(!one.begin_copy(1), "no room for a second chunk");
        assert_eq!(one.admit(&(0..u64::MAX)), Admission::Free);
        let problem = one.restore(0, &mut [0]).expect_err("it is lost");
        assert!(
            problem
                .to_string()
                .contains("store of 65536 bytes is full: expected"),
            "{problem}"
        );
        one.copied(0, Some(&[0; CHUNK as usize]));
        assert_eq!(one.status().store_bytes, 0, "a late copy is of no use");
    }
}
