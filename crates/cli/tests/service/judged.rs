//! What `--json` prints, judged by the schemas of the reference. The helpers that run commands judge by themselves.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Orders to a service whose answer is `true`, or the number of a task: `docs/reference/json.md` has them.
pub const ORDERS: [&str; 12] = [
    "headtime ctl",
    "headtime ctl task",
    "headtime ctl checkpoint",
    "headtime ctl bitmap",
    "headtime ctl suspend",
    "headtime ctl resume",
    "headtime ctl abort",
    "headtime ctl promote",
    "headtime ctl impact",
    "headtime ctl drain",
    "headtime ctl stop",
    "headtime bench",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas")
}

fn schema(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).expect("JSON")
}

/// Judges an output by the schema of this name. Lines of JSON are judged one by one.
pub fn judge(name: &str, said: &str) -> Value {
    let schema = jsonschema::validator_for(&schema(name)).expect("a schema");
    let whole = serde_json::from_str(said).map(|value| vec![value]);
    let values = whole.or_else(|_| said.lines().map(serde_json::from_str).collect());
    let values: Vec<Value> = values.unwrap_or_else(|_| panic!("{name}: {said}"));
    for value in &values {
        let errors = schema.iter_errors(value);
        let problems: Vec<String> = errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{name}: {}", problems.join("\n"));
    }
    values.into_iter().next_back().unwrap_or_default()
}

/// Judges what a command printed, if it has `--json` and is no order.
pub fn judge_command<'a>(words: impl IntoIterator<Item = &'a str>, said: &str) {
    let words: Vec<&str> = words.into_iter().collect();
    if !words.contains(&"--json") {
        return;
    }
    match schema_of(&words) {
        Some(name) => drop(judge(&name, said)),
        None => {
            let command = format!("headtime {}", command_of(&words).join(" "));
            let is_order = ORDERS.iter().any(|order| command.starts_with(order));
            assert!(is_order, "{command}: expected a schema");
        }
    }
}

/// The words of the command, without flags and the socket.
fn command_of<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let socket = words.iter().position(|word| *word == "--socket");
    let is_name = |word: &&str| {
        word.chars()
            .all(|letter| letter.is_ascii_lowercase() || letter == '-')
    };
    let places = words.iter().enumerate();
    let rest = places.filter(|(place, _)| socket.is_none_or(|at| *place != at && *place != at + 1));
    let rest = rest
        .map(|(_, word)| *word)
        .skip_while(|word| word.starts_with("--"));
    rest.filter(|word| *word != "--json")
        .take_while(|word| is_name(word) && !word.starts_with("--"))
        .collect()
}

/// The schema whose title has most of the command's words and flags, and no others.
fn schema_of(words: &[&str]) -> Option<String> {
    let command = command_of(words);
    let mut best: Option<(usize, String)> = None;
    for file in std::fs::read_dir(folder()).expect("the folder") {
        let name = file.expect("a file").path();
        let name = name.file_stem().expect("a name").display().to_string();
        let title = schema(&name)["title"].as_str().expect("a title").to_owned();
        for usage in title.replace(", one line", "").split(" and ") {
            let usage: Vec<&str> = usage.split(' ').skip(1).collect();
            let is_flag = |word: &&&str| word.starts_with("--");
            let named: Vec<&str> = usage
                .iter()
                .filter(|word| !is_flag(word) && **word != word.to_uppercase())
                .copied()
                .collect();
            let fits = command.starts_with(&named)
                && usage
                    .iter()
                    .filter(is_flag)
                    .all(|flag| words.contains(flag));
            let length = usage.len();
            if fits && best.as_ref().is_none_or(|(most, _)| length > *most) {
                best = Some((length, name.clone()));
            }
        }
    }
    best.map(|(_, name)| name)
}

#[test]
fn the_schema_of_a_command_is_found_by_its_words_and_flags() {
    for (words, name) in [
        ("profile --drive a --check --json", Some("profile-check")),
        ("profile --drive a --json", Some("profile")),
        ("ctl --socket tasks --json status", Some("ctl-status")),
        ("ctl streams --json", Some("streams")),
        ("paper pfc --json", Some("paper")),
        ("bench streams --memory 2 --json", Some("bench-streams")),
        ("ctl --json suspend 3", None),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(schema_of(&words).as_deref(), name, "{words:?}");
    }
}
