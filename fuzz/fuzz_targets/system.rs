//! Any text as a description of a system: refused in one line, or clients of exports that are there.
#![no_main]

use std::path::PathBuf;

use lab::system::SystemFile;
use libfuzzer_sys::fuzz_target;
use server::config::Places;

fuzz_target!(|text: &str| {
    let places = Places {
        data: PathBuf::from("/data"),
        runtime: PathBuf::from("/run"),
        base: PathBuf::from("/etc"),
    };
    let system = match SystemFile::parse("fuzz.toml", text, &places) {
        Ok(system) => system,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "one line: {error}");
            return;
        }
    };
    let exports = || system.config.drives.iter().flat_map(|drive| &drive.exports);
    let clients = system.loads.iter().map(|load| &load.export);
    let clients = clients.chain(system.streams.iter().map(|stream| &stream.export));
    for export in clients {
        assert!(exports().any(|known| known.name == *export), "{export}");
    }
});
