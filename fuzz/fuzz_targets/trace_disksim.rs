//! Any bytes as a trace in the format disksim.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simulator::trace::{Format, conformance};

fuzz_target!(|bytes: &[u8]| {
    let format = Format::named("disksim").expect("a format of that name");
    conformance::check(format, bytes);
});
