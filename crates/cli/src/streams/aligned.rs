//! Memory for direct I/O, and errors of files.

use std::io;
use std::path::Path;

use crate::output::Exit;

/// The alignment of direct I/O, in bytes.
pub(super) const PAGE: u64 = 4096;

/// Aligned memory for direct I/O.
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    pub(super) fn new(length: usize) -> Self {
        let memory = vec![0; length + PAGE as usize];
        let start = memory.as_ptr().align_offset(PAGE as usize);
        Aligned {
            memory,
            start,
            length,
        }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

/// An error of the file at `path`.
pub(super) fn at(path: &Path, error: &io::Error) -> Exit {
    Exit::input(format!("{}: {error}", path.display()))
}
