//! Files in which commands keep what they have done, as JSON.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;

/// Writes a state durably. A crash leaves the old file or the new one.
///
/// # Errors
/// If the file cannot be written.
pub fn store(path: &Path, state: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(state)? + "\n";
    let new = path.with_extension("json.new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    sync_folder(path)
}

/// Makes a change of a file's folder durable.
///
/// # Errors
/// If the folder cannot be opened.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}
