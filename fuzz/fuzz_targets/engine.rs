//! Any bytes as inputs of an engine: the contract holds, and everything ends exactly once.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| engine::trial::run(bytes));
