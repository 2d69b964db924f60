//! Reads text files that users name: profiles, loads, experiments.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::Failure;

/// Reads a text file.
///
/// # Errors
/// If the file cannot be read, is longer than 16 MiB, or is not UTF-8.
pub fn read(path: &Path) -> Result<String, Failure> {
    let problem = |what: &str| Failure::input(format!("{}{what}", path.display()));
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST_TEXT + 1).read_to_end(&mut bytes))
        .map_err(|error| problem(&format!(": {error}")))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        let most = LONGEST_TEXT >> 20;
        return Err(problem(&format!(": more than {most} MiB: expected less")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        problem(&format!(":{line}: a byte that is not UTF-8: expected text"))
    })
}

/// Longest text file. A choice: twenty times the longest shipped profile.
const LONGEST_TEXT: u64 = 16 << 20;
