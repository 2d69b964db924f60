//! Any bytes as a capture: as a whole file, and as frames with right checksums, the first byte
//! saying where the second frame begins. Events come in their order, or one error says where the
//! file is damaged and what was expected.

#![no_main]

use libfuzzer_sys::fuzz_target;
use server::capture::{CaptureReader, FIRST, frame};

fn read(file: &[u8]) {
    let mut reader = match CaptureReader::open(file) {
        Ok(reader) => reader,
        Err(damaged) => return assert!(damaged.to_string().contains("expected")),
    };
    let mut last = 0;
    loop {
        match reader.next_event() {
            Ok(Some((offset, _))) => {
                assert!(last < offset && offset < file.len() as u64);
                last = offset;
            }
            Ok(None) => return,
            Err(damaged) => return assert!(damaged.to_string().contains("expected")),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    let Some((&cut, rest)) = bytes.split_first() else {
        return;
    };
    let (setting, events) = rest.split_at(usize::from(cut).min(rest.len()));
    read(&[FIRST, &frame(setting), &frame(events)].concat());
});
