//! Results as data: Parquet and Arrow files.

use std::path::Path;

use lab::table::{ColumnTable, TableFormat};

use super::{Exit, NewFile};

/// A file for a table, opened before the measurement.
#[derive(Debug)]
pub struct NewTable {
    path: String,
    format: TableFormat,
    file: NewFile,
}

impl NewTable {
    /// Opens the file of `--out`, if there is one.
    ///
    /// # Errors
    /// If the end of the name means no format, or the name cannot be written to.
    pub fn begin(path: Option<&Path>) -> Result<Option<Self>, Exit> {
        let Some(path) = path else { return Ok(None) };
        Ok(Some(NewTable {
            path: path.display().to_string(),
            format: TableFormat::named("--out", path)?,
            file: NewFile::begin(path)?,
        }))
    }

    /// Writes the whole table.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(self, table: &ColumnTable) -> Result<(), Exit> {
        table
            .write(self.format, self.file)
            .map_err(|error| Exit::failed(format!("{}: {error}", self.path)))?
            .finish()
    }
}
