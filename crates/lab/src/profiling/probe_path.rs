//! What the profiler's commands reach: a file or device by the kernel, and a SCSI disk past it.
//!
//! ```text
//!   command --SCSI disk with cache control--> ProbedDrive
//!           --otherwise, and long reads-----> direct reads of the file
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, OnceLock};

use block::{Action, Durability};
use profiler::{DriveIdentity, WritePermission};
use server::disk::back_end::scsi::probed::ProbedDrive;

/// A file or device, and the SCSI side of it.
#[derive(Debug)]
pub struct ProbePath {
    file: File,
    block_bytes: u64,
    /// The block of the path that the profiler calls 0.
    first: u64,
    writes: WritePermission,
    scsi: OnceLock<Arc<ProbedDrive>>,
}

impl ProbePath {
    /// A path whose commands go by the kernel, to blocks from `first` on.
    pub fn of_file(file: File, device: DriveIdentity, first: u64) -> Self {
        ProbePath {
            file,
            block_bytes: u64::from(device.block_bytes),
            first,
            writes: device.writes,
            scsi: OnceLock::new(),
        }
    }

    /// Sends the commands to the drive itself from now on.
    pub fn use_drive(&self, drive: Arc<ProbedDrive>) {
        // A path has one drive.
        let _ = self.scsi.set(drive);
    }

    /// The drive itself, if the commands go there.
    pub fn drive(&self) -> Option<&ProbedDrive> {
        self.scsi.get().map(Arc::as_ref)
    }

    /// Executes a command and waits for its end.
    ///
    /// # Errors
    /// If the path fails, or does not have the command, or must not be written.
    pub fn carry_out(&self, action: Action, buffer: &mut ProbeBuffer) -> io::Result<()> {
        let writes = matches!(action, Action::Write { .. } | Action::Flush);
        if writes && self.writes == WritePermission::Forbidden {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let action = action.numbered_from(self.first);
        let (at, length) = action.extent().map_or((0, 0), |extent| {
            let length = extent.length().0 * self.block_bytes;
            (extent.start().0 * self.block_bytes, length as usize)
        });
        let bytes = match action {
            Action::Read { .. } => buffer.aligned(length),
            Action::Write { .. } => {
                let zeroes = buffer.aligned(length);
                zeroes.fill(0);
                zeroes
            }
            _ => &mut [],
        };
        match self.drive() {
            Some(drive) if !is_long(action, length, drive) => {
                drive.carry_out(action, bytes).map_err(io::Error::other)
            }
            _ => self.by_the_kernel(action, bytes, at),
        }
    }

    fn by_the_kernel(&self, action: Action, bytes: &mut [u8], at: u64) -> io::Result<()> {
        match action {
            Action::Read { .. } => self.file.read_exact_at(bytes, at),
            Action::Write { .. } => self.file.write_all_at(bytes, at),
            Action::Flush => self.file.sync_data(),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Whether the kernel does better: it has the parts of a long read in flight together.
fn is_long(action: Action, length: usize, drive: &ProbedDrive) -> bool {
    let may_hit =
        matches!(action, Action::Read { durability, .. } if durability == Durability::Volatile);
    may_hit && length > drive.most_bytes()
}

/// Largest alignment of direct reads: memory, addresses and lengths.
const ALIGNMENT: usize = 4096;

/// A thread's memory, aligned inside a larger allocation.
#[derive(Debug, Default)]
pub struct ProbeBuffer {
    bytes: Vec<u8>,
}

impl ProbeBuffer {
    fn aligned(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.len() < length + ALIGNMENT {
            self.bytes = vec![0; length + ALIGNMENT];
        }
        let from = self.bytes.as_ptr().align_offset(ALIGNMENT);
        &mut self.bytes[from..from + length]
    }
}
