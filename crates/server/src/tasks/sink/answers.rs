//! What a scan's program answers: a line for each portion that it has processed.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::Mutex;

use super::ledger::Ledger;
use super::locked;

/// Reads the program's acknowledgements up to the end of its output.
pub(super) fn acknowledgements(said: impl Read, ledger: &Mutex<Ledger>) -> Result<(), String> {
    let mut said = BufReader::new(said);
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = (&mut said)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|error| format!("the program's answers are lost: {error}"))?;
        if count == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let (offset, length) = portion(&text).ok_or_else(|| {
            let text = text.trim_end();
            format!("the program answered {text:?}: expected \"OFFSET LENGTH\" of a portion")
        })?;
        locked(ledger).acknowledged(offset, length)?;
    }
}

/// Two numbers of 20 digits, a blank, and the line's end.
const LONGEST_LINE: u64 = 42;

fn portion(line: &str) -> Option<(u64, u64)> {
    let (offset, length) = line.strip_suffix('\n')?.split_once(' ')?;
    Some((offset.parse().ok()?, length.parse().ok()?))
}
