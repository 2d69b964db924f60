//! Any text as the kernel's description of a tracepoint, and any bytes as an event: one error in one line, or an event
//! of exactly the bytes that have its fields.
#![no_main]

use libfuzzer_sys::fuzz_target;
use server::classify::format::EventFormat;

fuzz_target!(|input: (&str, &[u8])| {
    let (text, raw) = input;
    match EventFormat::parse(text) {
        Err(error) => {
            let error = error.to_string();
            assert!(
                error.contains("expected") && !error.contains('\n'),
                "{error}"
            );
        }
        Ok(format) => assert_eq!(format.event(raw).is_some(), raw.len() >= format.bytes()),
    }
});
