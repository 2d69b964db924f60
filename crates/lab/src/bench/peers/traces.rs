//! Traces as files that both programs read.

use std::fs::File;
use std::path::{Path, PathBuf};

use cache::Numbers;
use simulator::trace::objects;
use simulator::trace::{OnBad, TraceReader};

use crate::cache_curve::BLOCK_BYTES;
use crate::{Failure, Progress};

/// A trace in oracleGeneral.
pub(super) struct ObjectTrace {
    pub name: String,
    pub path: PathBuf,
    pub demands: u64,
    pub blocks: u64,
}

/// Blocks of a device, as in the misses of `crates/cache/tests/independent.rs`.
const DEVICE: u64 = 1 << 40;

impl ObjectTrace {
    /// Writes demands for single blocks into a file of the folder.
    pub(super) fn write(name: String, demands: &[u64], folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(format!("{}.oracleGeneral", name.replace(' ', "-")));
        let file = File::create(&path);
        let written = file.and_then(|mut file| objects::write_oracle_general(demands, &mut file));
        written.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        let mut numbers = Numbers::new();
        numbers
            .extend(demands, &mut Vec::new())
            .map_err(Failure::failed)?;
        Ok(Self {
            name,
            path,
            demands: demands.len() as u64,
            blocks: u64::from(numbers.count()),
        })
    }

    /// Writes a demand for each block of 4 KiB that a request of the trace touches.
    pub(super) fn convert(
        trace: &Path,
        folder: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, Failure> {
        let reader = TraceReader::open(trace, None, OnBad::Refuse).map_err(Failure::input)?;
        let mut demands = Vec::new();
        for record in reader {
            progress.check()?;
            let record = record.map_err(Failure::input)?;
            let device = record.device.place() as u64 * DEVICE;
            let bytes = record.bytes;
            let blocks = bytes.offset() / BLOCK_BYTES..=(bytes.end() - 1) / BLOCK_BYTES;
            demands.extend(blocks.map(|block| device + block));
        }
        let name = trace.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_owned();
        Self::write(name, &demands, folder)
    }

    /// The trace's blocks over this number, in tens: the sizes of S3-FIFO's queues need no rounding then.
    pub(super) fn capacity(&self, divisor: u64) -> u64 {
        (self.blocks / divisor / 10 * 10).max(10)
    }
}
