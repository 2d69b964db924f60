//! Any text as a set of streams, and as a group of the command line: refused in one line, or parsed.
#![no_main]

use block::StreamMode;
use lab::stream_plan::{MOST_STREAMS, StreamSet, group};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match StreamSet::parse("fuzz.toml", text) {
        Ok(set) => assert!(
            set.groups
                .iter()
                .all(|group| (1..=MOST_STREAMS).contains(&group.count))
        ),
        Err(error) => assert!(!error.problem.contains('\n'), "one line: {error}"),
    }
    if let Ok(group) = group("fuzz", StreamMode::Play, text) {
        assert!(group.rate > 0 && group.buffer > 0);
    }
});
