//! The file of the blocks that a scan has left.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use scheduler::freeblock::WantedBlocks;

use crate::output::{Exit, NewFile};

/// A file for the remaining blocks.
pub struct LeftFile {
    name: String,
    file: BufWriter<NewFile>,
}

impl LeftFile {
    /// Opens the file.
    ///
    /// # Errors
    /// If the name cannot be written to.
    pub fn begin(path: &Path) -> Result<LeftFile, Exit> {
        Ok(LeftFile {
            name: path.display().to_string(),
            file: BufWriter::new(NewFile::begin(path)?),
        })
    }

    /// Writes the remaining blocks.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(mut self, left: &WantedBlocks) -> Result<(), Exit> {
        left.encode(&mut self.file)
            .and_then(|()| self.file.flush())
            .and_then(|()| {
                self.file
                    .into_inner()
                    .map_err(io::IntoInnerError::into_error)
            })
            .map_err(|error| Exit::failed(format!("{}: {error}", self.name)))?
            .finish()
    }
}
