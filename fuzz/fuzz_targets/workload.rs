//! Any text as a load file: refused in one line, or a load whose requests keep to the drive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simulator::workload::{Generator, LoadDescription};

fuzz_target!(|text: &str| {
    let loads = match LoadDescription::parse("fuzz.toml", text) {
        Ok(LoadDescription::Alone(load)) => vec![*load],
        Ok(LoadDescription::Mixture(mixture)) => mixture.parts,
        Err(error) => {
            assert!(!error.problem.contains('\n'), "one line: {error}");
            return;
        }
    };
    let drives = [(512, 17_783_240), (4096, 1_000), (512, 1)];
    let cases = loads
        .iter()
        .flat_map(|load| drives.map(|drive| (load, drive)));
    for (load, (block_bytes, capacity)) in cases {
        let Ok(mut requests) = Generator::new(load, block_bytes, capacity) else {
            continue;
        };
        for _ in 0..100 {
            let (_, extent) = requests.request();
            assert!(extent.end().0 <= capacity);
            requests.gap();
            if let Some((_, next)) = requests.after(extent) {
                assert!(next.end().0 <= capacity);
            }
        }
    }
});
