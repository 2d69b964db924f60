//! The storage of a region: a file, or memory in tests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The storage of a region.
pub trait Medium {
    /// The number of bytes.
    ///
    /// # Errors
    /// If the storage fails.
    fn length(&self) -> io::Result<u64>;

    /// Changes the number of bytes. New ones are zeroes.
    ///
    /// # Errors
    /// If the storage fails.
    fn set_length(&mut self, bytes: u64) -> io::Result<()>;

    /// Reads all of `bytes` from `offset` on.
    ///
    /// # Errors
    /// If the storage fails or ends before.
    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// If the storage fails.
    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns when everything before is durable.
    ///
    /// # Errors
    /// If the storage fails.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}
