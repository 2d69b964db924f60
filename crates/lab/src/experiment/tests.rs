//! Experiment files: what they mean, and what is refused.

use proptest::prelude::*;

use super::*;

const GOOD: &str = "\
# What it shows.
name = \"depth\"
summary = \"throughput over depth\"
drive = \"quantum-atlas-10k\"
workload = \"oltp\"
requests = 1000
repeat = 2
[load]
think_ms = 0
[truth]
write_cache = \"off\"
[sweep]
policy = [\"sstf\", \"sptf\"]
tasks = [1, 2, 4]
[figure]
x = \"tasks\"
y = [\"requests_per_second\"]
";

/// All settings of each point in one line.
fn settings_by_point(experiment: &Experiment) -> Vec<String> {
    let points = experiment.points();
    let lines = points.iter().map(|point| {
        let values = experiment.values(point);
        let said = values.map(|(setting, value)| format!("{}={value}", setting.path()));
        said.collect::<Vec<_>>().join(" ")
    });
    lines.collect()
}

#[test]
fn every_combination_is_a_point_with_all_settings() {
    let experiment = Experiment::parse("depth.toml", GOOD).expect("a good one");
    assert_eq!((experiment.repeat, experiment.figure.x), (2, 1));
    let points = settings_by_point(&experiment);
    assert_eq!(points.len(), 6);
    assert_eq!(
        points[5],
        "drive=quantum-atlas-10k workload=oltp requests=1000 load.think_ms=0 \
         truth.write_cache=off policy=sptf load.tasks=4"
    );
}

#[test]
fn settings_may_have_units() {
    let points = |from: &str, to: &str| {
        let text = GOOD.replace(from, to);
        let experiment = Experiment::parse("units.toml", &text);
        settings_by_point(&experiment.unwrap_or_else(|error| panic!("{error}")))
    };
    for (setting, number, unit) in [
        ("think_ms = 0", "think_ms = 2000", "think_ms = \"2 s\""),
        ("requests = 1000", "seconds = 90", "seconds = \"1.5 min\""),
        (
            "write_cache = \"off\"",
            "bus_mb_s = 2",
            "bus_mb_s = \"2 MB/s\"",
        ),
        (
            "policy = [\"sstf\", \"sptf\"]",
            "policy = [\"sstf\"]\nseek_noise_us = [30, 60]",
            "policy = [\"sstf\"]\nseek_noise_us = [\"30 us\", \"0.06 ms\"]",
        ),
    ] {
        assert_eq!(points(setting, number), points(setting, unit), "{unit}");
    }
    let wrong = GOOD.replace("think_ms = 0", "think_ms = \"3 MB\"");
    let error = Experiment::parse("units.toml", &wrong).expect_err("no time");
    assert_eq!(error.key, "load.think_ms");
}

#[test]
fn settings_have_a_name_of_their_own_and_those_of_a_table_stand_together() {
    let mut tables = Vec::new();
    for (place, setting) in SETTINGS.iter().enumerate() {
        let before = &SETTINGS[..place];
        assert!(before.iter().all(|other| other.name != setting.name));
        if tables.last() != Some(&setting.table) {
            assert!(!tables.contains(&setting.table), "{}", setting.table);
            tables.push(setting.table);
        }
    }
    assert_eq!(tables.first(), Some(&""));
}

#[test]
fn what_makes_no_sense_is_refused_with_file_line_key_and_expectation() {
    for (old, new, complaint) in REFUSED {
        let text = GOOD.replacen(old, new, 1);
        assert_ne!(text, GOOD, "{old} is not in the file");
        let error = Experiment::parse("depth.toml", &text).expect_err(new);
        assert_eq!(error.to_string(), *complaint);
    }
}

#[test]
fn complaints_of_those_who_use_the_values_name_the_line() {
    let experiment = Experiment::parse("depth.toml", GOOD).expect("a good one");
    for (name, place) in [
        ("tasks", "depth.toml:14: sweep.tasks: so"),
        ("think_ms", "depth.toml:9: load.think_ms: so"),
        ("drive", "depth.toml:4: drive: so"),
        ("figure.y", "depth.toml:17: figure.y: so"),
        ("seed", "depth.toml: seed: so"),
    ] {
        assert_eq!(experiment.complain(name, "so").to_string(), place);
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z_\\[\\]{}=\", \n0-9.-]{0,200}") {
        let _ = Experiment::parse("any.toml", &text);
    }

    #[test]
    fn mutated_files_are_refused_in_one_line_or_mean_something(
        at in 0..GOOD.len(), length in 0..20usize, put in "[a-z_\\[\\]=\", \n0-9.-]{0,6}",
    ) {
        let end = (at + length).min(GOOD.len());
        let text = format!("{}{put}{}", &GOOD[..at], &GOOD[end..]);
        match Experiment::parse("any.toml", &text) {
            Ok(experiment) => prop_assert!(!experiment.points().is_empty()),
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}

const REFUSED: &[(&str, &str, &str)] = &[
    (
        "tasks = [1, 2, 4]",
        "tusks = [1, 2, 4]",
        "depth.toml:14: sweep.tusks: unknown key: did you mean `tasks`?",
    ),
    (
        "tasks = [1, 2, 4]",
        "tasks = [1, 0]",
        "depth.toml:14: sweep.tasks[1]: 0: expected a whole number from 1 to 65536",
    ),
    (
        "tasks = [1, 2, 4]",
        "tasks = [1, 2, 1]",
        "depth.toml:14: sweep.tasks[2]: 1 is there twice: expected each once",
    ),
    (
        "tasks = [1, 2, 4]",
        "tasks = 4",
        "depth.toml:14: sweep.tasks: 4: expected a list, each a whole number from 1 to 65536",
    ),
    (
        "think_ms = 0",
        "think_ms = [0, 30]",
        "depth.toml:9: load.think_ms: [0, 30]: expected a number; lists stand in [sweep]",
    ),
    (
        "think_ms = 0",
        "think_ms = nan",
        "depth.toml:9: load.think_ms: nan: expected a number",
    ),
    (
        "think_ms = 0",
        "tasks = 3",
        "depth.toml:14: sweep.tasks: has a value in load.tasks, too: expected one of the two",
    ),
    (
        "write_cache = \"off\"",
        "write_cash = \"off\"",
        "depth.toml:11: truth.write_cash: unknown key: did you mean `write_cache`?",
    ),
    (
        "[sweep]",
        "[scan]\nguard = \"learnt\"\n[sweep]",
        "depth.toml:13: scan.guard: \"learnt\": expected a number, or \"learned\"",
    ),
    (
        "tasks = [1, 2, 4]",
        "idle_ms = [1, \"never\", inf]",
        "depth.toml:14: sweep.idle_ms[2]: inf: expected a number, or \"never\"",
    ),
    (
        "[sweep]",
        "[scan]\nuntil_percent = 0\n[sweep]",
        "depth.toml:13: scan.until_percent: 0: expected a whole number from 1 to 100",
    ),
    (
        "drive = \"quantum-atlas-10k\"\n",
        "",
        "depth.toml: drive: missing: expected a value, or a list in [sweep]",
    ),
    (
        "workload = \"oltp\"\n",
        "",
        "depth.toml: workload: missing: expected a workload or a trace",
    ),
    (
        "requests = 1000",
        "trace = \"a.csv\"",
        "depth.toml:5: workload: and trace: expected a workload or a trace",
    ),
    (
        "repeat = 2",
        "repeat = 5000",
        "depth.toml:12: sweep: 30000 runs: expected at most 10000",
    ),
    (
        "repeat = 2",
        "repeat = 0",
        "depth.toml:7: repeat: 0: expected a whole number from 1 to 10000",
    ),
    (
        "x = \"tasks\"",
        "x = \"depth\"",
        "depth.toml:16: figure.x: \"depth\": expected one of [sweep]: policy, tasks",
    ),
    (
        "y = [\"requests_per_second\"]",
        "y = \"mean_ms\"",
        "depth.toml:17: figure.y: \"mean_ms\": expected a list of measures, such as \
         [\"requests_per_second\"]",
    ),
    (
        "policy = [\"sstf\", \"sptf\"]\ntasks = [1, 2, 4]\n",
        "",
        "depth.toml:12: sweep: 0 settings: expected 1 to 3, such as tasks = [1, 2, 4]",
    ),
    (
        "[sweep]",
        "[sweep",
        "depth.toml:12: not TOML: unclosed table, expected `]`",
    ),
];
