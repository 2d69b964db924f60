//! Any bytes at the begin of a volume of zeroes: a map of the volume, or one error with a message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use server::file_systems::{Source, used};

/// Bytes of the volume. A choice: all superblocks are in it, and a large log is not.
const LENGTH: u64 = 8 << 20;

struct Volume<'a>(&'a [u8]);

impl Source for Volume<'_> {
    fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let end = offset
            .checked_add(length as u64)
            .filter(|&end| end <= LENGTH);
        let end = end.ok_or("past the end")? as usize;
        let start = (offset as usize).min(self.0.len());
        let mut bytes = self.0[start..end.min(self.0.len()).max(start)].to_vec();
        bytes.resize(length, 0);
        Ok(bytes)
    }
}

fuzz_target!(|bytes: &[u8]| {
    match used(&mut Volume(bytes), LENGTH) {
        Ok(found) => {
            assert_eq!(found.map.length(), LENGTH);
            assert!(found.map.bytes() <= LENGTH);
        }
        Err(error) => {
            let text = error.to_string();
            assert!(
                text.contains("expected") || text.contains("past the end"),
                "{text}"
            );
        }
    }
});
