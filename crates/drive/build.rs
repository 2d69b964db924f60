//! Compresses the shipped drives: a program has 0.3 MB of them in place of 1.3.

use std::error::Error;
use std::path::{Path, PathBuf};

/// The best compression of zlib.
const LEVEL: u8 = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let drives = root.join("../../drives");
    println!("cargo::rerun-if-changed={}", drives.display());
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    for entry in std::fs::read_dir(&drives)? {
        compress(&entry?.path(), &out)?;
    }
    Ok(())
}

/// Writes `NAME.toml.deflate` for `NAME.toml`.
fn compress(path: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let name = path.file_name().ok_or("a file without a name")?;
    let text = std::fs::read(path)?;
    let compressed = miniz_oxide::deflate::compress_to_vec(&text, LEVEL);
    let mut to = out.join(name).into_os_string();
    to.push(".deflate");
    std::fs::write(&to, compressed)?;
    Ok(())
}
