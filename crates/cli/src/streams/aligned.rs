//! Memory for input and output past the page cache, and what goes wrong with files.

use std::io;
use std::path::Path;

use crate::output::Exit;

/// What is read and written past the page cache begins and ends at multiples of it.
pub(super) const PAGE: u64 = 4096;

/// Memory for input and output past the page cache.
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

/// What went wrong with a file.
pub(super) fn at(path: &Path, error: &io::Error) -> Exit {
    Exit::input(format!("{}: {error}", path.display()))
}
