//! Any text as a configuration: refused in one line, or drives whose volumes have no common bytes.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use server::config::{Config, Places};

fuzz_target!(|text: &str| {
    let places = Places {
        data: PathBuf::from("/data"),
        runtime: PathBuf::from("/run"),
        base: PathBuf::from("/etc"),
    };
    let config = match Config::parse("fuzz.toml", text, &places) {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "one line: {error}");
            return;
        }
    };
    for drive in &config.drives {
        let mut ends: Vec<(u64, u64)> = Vec::new();
        for volume in &drive.volumes {
            let end = volume.size.map_or(u64::MAX, |size| volume.offset + size);
            ends.push((volume.offset, end));
        }
        ends.sort_unstable();
        assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "{ends:?}");
        for export in &drive.exports {
            assert!(
                drive
                    .volumes
                    .iter()
                    .any(|volume| volume.name == export.volume)
            );
        }
    }
});
