//! Any bytes as a trace of objects, and as the words of its columns.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simulator::trace::objects;

fuzz_target!(|bytes: &[u8]| objects::check(bytes));
