//! Any bytes as the columns of a trace that its user states, and as the trace.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simulator::trace::conformance;

fuzz_target!(|bytes: &[u8]| conformance::check_columns(bytes));
