//! Any text as an experiment file: refused in one line, or combinations of settings.
#![no_main]

use lab::experiment::{Experiment, MOST_RUNS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Experiment::parse("fuzz.toml", text) {
        Ok(experiment) => {
            let points = experiment.points();
            assert!(!points.is_empty() && points.len() as u64 <= MOST_RUNS);
            for (setting, _) in experiment.values(&points[0]) {
                assert!(experiment.sets(setting.name));
            }
        }
        Err(error) => assert!(!error.problem.contains('\n'), "one line: {error}"),
    }
});
