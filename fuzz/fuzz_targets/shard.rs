//! Any text as a shard of an experiment: refused in one line, or parsed and written again.
#![no_main]

use lab::experiment::ShardResults;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match ShardResults::parse("fuzz.jsonl", text) {
        Ok(shard) => {
            let again = shard.text().expect("what was parsed can be written");
            assert_eq!(ShardResults::parse("fuzz.jsonl", &again), Ok(shard));
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "one line: {error}"),
    }
});
