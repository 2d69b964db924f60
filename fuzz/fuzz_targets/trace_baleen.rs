//! Any bytes as a trace in the format baleen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simulator::trace::{Format, conformance};

fuzz_target!(|bytes: &[u8]| {
    let format = Format::named("baleen").expect("a format of that name");
    conformance::check(format, bytes);
});
