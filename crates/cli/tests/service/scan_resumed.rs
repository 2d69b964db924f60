//! Live scans that are killed, stopped or left by their program, and go on.

use std::path::Path;

use headtime_client::{Client, ListedTask, TaskOrder, TaskPieces, TaskSteer};

use crate::scanned::{BYTES, Service, assembled, config, contents};
use serde_json::Value;

/// As fast as the drive was: seconds for the volume, so that a scan is under way when it is looked
/// at.
fn slow() -> String {
    config("").replace("time_scale = 0.01", "time_scale = 1")
}

/// Waits until a scan has read something; it is asked again and again.
fn until_some_is_read(service: &Service, most: u64) -> Value {
    loop {
        let tasks = service.json(&["ctl", "--json", "tasks"]);
        let task = tasks[0]["tasks"][0].clone();
        let done = task["done_bytes"].as_u64().expect("a number");
        if done >= most {
            assert!(done < BYTES as u64, "it was too fast to be stopped: {task}");
            return task;
        }
    }
}

/// Writes what it is given behind what is there, and says so; after as many portions as the file
/// `limit` says it is killed.
const COPY: &str = r#"limit=$(cat limit)
while read -r offset length; do
  { echo "$offset $length"; head -c "$length"; } >> copy
  echo "$offset $length"
  limit=$((limit - 1))
  if [ "$limit" = 0 ]; then kill -9 $$; fi
done
"#;

/// The script with its limit, where the service's folder is.
fn script(folder: &Path, limit: u64) -> String {
    let folder = folder.display();
    let script = format!("cd {folder}\n{COPY}");
    let path = format!("{folder}/copy.sh");
    std::fs::write(&path, script).expect("a script");
    std::fs::write(format!("{folder}/limit"), limit.to_string()).expect("a limit");
    path
}

/// The scan into the script.
fn copying<'a>(script: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["scan", "--json", "--state", "s", "--save-every", "0"];
    words.extend(more);
    words.extend(["small", "--command", "sh", script]);
    words
}

#[test]
fn a_checksum_goes_on_after_kills_and_is_that_of_one_scan() {
    let service = Service::start_with(&contents(), &slow());
    let words = [
        "scan",
        "--json",
        "--state",
        "s",
        "--save-every",
        "0",
        "small",
    ];
    let detached = [&words[..], &["--detach"]].concat();
    let mut folder = None;
    let mut service = Some(service);
    let mut before = 0;
    for round in 1..=2 {
        let killed = service
            .take()
            .unwrap_or_else(|| Service::start_in(folder.take().expect("a folder"), &slow()));
        let (is_good, text) = killed.run(&detached);
        assert!(is_good, "{text}");
        let task = until_some_is_read(&killed, (round * 2) << 20);
        let resumed = task["resumed_bytes"].as_u64().expect("a number");
        assert!((resumed > 0) == (round > 1), "{task}");
        assert!(resumed >= before, "{task}");
        before = resumed;
        folder = Some(killed.kill());
    }
    let service = Service::start_in(folder.expect("a folder"), &config(""));
    let resumed = service.json(&words);
    assert_eq!(resumed["state"], "finished");
    assert_eq!(resumed["done_bytes"], BYTES);
    let before = resumed["resumed_bytes"].as_u64().expect("a number");
    // What was given to the sink and not yet summed may be lost, and no more.
    assert!(before >= 1 << 20, "{resumed}");
    let read: u64 = ["free_bytes", "idle_bytes", "paid_bytes"]
        .iter()
        .map(|kind| resumed[kind].as_u64().expect("a number"))
        .sum();
    assert_eq!(read, BYTES as u64 - before, "nothing was read again");
    assert!(!service.path("s").exists(), "it is of no more use");
    let whole = service.json(&["scan", "--json", "small"]);
    assert_eq!(resumed["outcome"], whole["outcome"]);
    service.end();
}

#[test]
fn a_program_that_is_killed_gets_what_it_has_not_acknowledged_and_nothing_twice() {
    let service = Service::start(&contents(), "");
    let script = script(&service.path(""), 20);
    let text = service.refuses(&copying(&script, &[]));
    assert!(text.contains("signal: 9"), "{text}");
    assert!(text.contains("the same command goes on"), "{text}");
    assert!(service.path("s").exists());
    std::fs::write(service.path("limit"), "0").expect("no limit");
    let task = service.json(&copying(&script, &[]));
    assert_eq!(task["outcome"], "the program ended with exit status: 0");
    assert!(task["resumed_bytes"].as_u64() > Some(0), "{task}");
    assert!(assembled(&service.path("copy")) == contents());
    assert!(!service.path("s").exists(), "all is acknowledged");
    service.end();
}

#[test]
fn a_service_that_is_stopped_leaves_what_its_program_has_not_had() {
    let service = Service::start_with(&contents(), &slow());
    let script = script(&service.path(""), 0);
    let (is_good, text) = service.run(&copying(&script, &["--detach"]));
    assert!(is_good, "{text}");
    // Its program is behind the reads on a busy machine, and the service behind its program.
    while std::fs::metadata(service.path("copy")).map_or(0, |copy| copy.len()) < 2 << 20 {
        until_some_is_read(&service, 1);
    }
    let folder = service.end();
    let service = Service::start_in(folder, &config(""));
    let task = service.json(&copying(&script, &[]));
    assert!(task["resumed_bytes"].as_u64() >= Some(1 << 20), "{task}");
    assert!(assembled(&service.path("copy")) == contents());
    service.end();
}

#[test]
fn a_program_that_ends_early_or_talks_nonsense_is_told_of() {
    let service = Service::start(&contents(), "");
    for (script, more, problem) in [
        ("exit 3", &[][..], "ended with exit status: 3"),
        ("exit 0", &[], "the program took no more"),
        (
            "cat >/dev/null; exit 4",
            &["--state", "s"],
            "the program ended with exit status: 4; 16777216 bytes are left",
        ),
        (
            "echo nonsense; cat >/dev/null",
            &["--state", "s"],
            "the program answered \"nonsense\": expected \"OFFSET LENGTH\" of a portion",
        ),
        (
            "read line; echo 16777215 7; cat >/dev/null",
            &["--state", "s"],
            "answered \"16777215 7\": expected a portion that it was given",
        ),
    ] {
        let mut words = vec!["scan", "small"];
        words.extend(more);
        words.extend(["--command", "sh", "-c", script]);
        let text = service.refuses(&words);
        assert!(text.contains(problem), "{script}: {text}");
    }
    service.end();
}

/// A service that has begun a scan of the small volume, whose state is in `s`.
fn with_a_state() -> Service {
    let service = Service::start_with(&contents(), &slow());
    let words = ["scan", "small", "--state", "s", "--save-every", "0"];
    let (is_good, text) = service.run(&[&words[..], &["--detach"]].concat());
    assert!(is_good, "{text}");
    until_some_is_read(&service, 1 << 20);
    let text = service.refuses(&words);
    assert!(text.contains("task 1 uses it: expected its end"), "{text}");
    let (is_good, text) = service.run(&["ctl", "abort", "1"]);
    assert!(is_good, "{text}");
    let folder = service.end();
    Service::start_in(folder, &slow())
}

#[test]
fn a_state_of_something_else_is_refused_with_what_was_expected() {
    let service = with_a_state();
    let good = std::fs::read(service.path("s")).expect("a state");
    let mut version = good.clone();
    version[8] = 9;
    let mut flipped = good.clone();
    flipped[20] ^= 1;
    std::fs::write(service.path("version"), version).expect("written");
    std::fs::write(service.path("flipped"), flipped).expect("written");
    std::fs::write(service.path("cut"), &good[..good.len() - 3]).expect("written");
    std::fs::write(service.path("garbage"), "garbage, no state").expect("written");
    std::fs::create_dir(service.path("folder")).expect("a folder");
    for (file, volume, command, problem) in [
        (
            "s",
            "all",
            "",
            "s: the state of a scan of volume small of drive rz26",
        ),
        (
            "s",
            "small",
            "cat",
            "s: the state of a scan into a checksum: expected one into a program",
        ),
        (
            "version",
            "small",
            "",
            "version: byte 8: version 9 of a scan's state: expected 1",
        ),
        ("flipped", "small", "", "flipped: "),
        ("cut", "small", "", "cut: the blocks that are left: byte "),
        (
            "garbage",
            "small",
            "",
            "garbage: byte 0: this is no state of a scan: expected",
        ),
        ("folder", "small", "", "folder: "),
        (
            "nowhere/s",
            "small",
            "",
            "nowhere/s: No such file or directory",
        ),
    ] {
        let mut words = vec!["scan", volume, "--state", file];
        if !command.is_empty() {
            words.extend(["--command", command]);
        }
        let text = service.refuses(&words);
        assert!(text.contains(problem), "{file}: {text}");
        assert_eq!(text.matches('\n').count(), 1, "{text}");
    }
    assert_eq!(std::fs::read(service.path("s")).expect("it stays"), good);
    service.end();
}

/// A client of the service's control socket.
fn client(service: &Service) -> Client {
    Client::connect(&service.path("control.sock")).expect("a client")
}

/// Begins a task over a set, and waits for its end.
fn ended(service: &Service, set: &[&str]) -> ListedTask {
    let words = [&["ctl", "--json", "task", "start", "small"], set].concat();
    let number = service.json(&words)["task"].as_u64().expect("a number");
    task_ended(&client(service), number)
}

/// Waits for the end of a task and of its sink.
pub fn task_ended(client: &Client, number: u64) -> ListedTask {
    loop {
        let tasks = client.tasks().expect("tasks");
        let task = tasks.into_iter().find(|task| task.id == number);
        let task = task.expect("it is listed");
        if task.outcome.is_some() || task.problem.is_some() {
            return task;
        }
    }
}

#[test]
fn a_declared_set_is_read_and_any_pieces_of_it_will_do() {
    let service = Service::start(&contents(), "");
    let file = service.path("sets");
    std::fs::write(&file, "0 8192\n1048576 65536\n").expect("a file");
    let task = ended(&service, &["--extents", file.to_str().expect("a path")]);
    assert_eq!((task.done_bytes, task.pieces_done), (73_728, 2));
    // The same bytes as pieces of another size, in another order.
    let other = ended(&service, &["--blocks", "256..272,0,1"]);
    assert_eq!((other.outcome, other.pieces_done), (task.outcome, 18));
    let any = ended(
        &service,
        &["--blocks", "0..100", "--any", "50", "--priority", "1"],
    );
    assert!((50..=100).contains(&any.pieces_done), "{any:?}");
    let state = service.path("state");
    let words = [
        "--blocks",
        "0..64",
        "--any",
        "3",
        "--save-every",
        "0",
        "--state",
    ];
    let kept = ended(
        &service,
        &[&words[..], &[state.to_str().expect("a path")]].concat(),
    );
    assert!(kept.pieces_done >= 3 && kept.problem.is_none(), "{kept:?}");
    assert!(!state.exists(), "enough was read: {kept:?}");
}

#[test]
fn sets_that_make_no_sense_are_refused_and_clients_steer_tasks() {
    let service = Service::start(&contents(), "");
    for (set, problem) in [
        (&["--blocks", "4096"][..], "ends in the volume"),
        (&["--blocks", "1,1"], "overlap"),
        (&["--blocks", "1,2", "--any", "3"], "expected 1 to 2"),
        (
            &["--blocks", "1", "--block-bytes", "100"],
            "multiples of a block",
        ),
        (&["--blocks", "x"], "expected a number"),
        (&["--extents", "/dev/null"], "an empty set"),
    ] {
        let words = [&["ctl", "task", "start", "small"], set].concat();
        let refused = service.refuses(&words);
        assert!(refused.contains(problem), "{set:?}: {refused}");
    }
    for (terms, problem) in [
        (&["--deadline", "1"][..], "if the drive did nothing else"),
        (
            &["--deadline", "10 min", "--pace", "1 MB/s"],
            "at its own pace, and its deadline is 600 s",
        ),
        (&["--pace", "0"], "expected"),
    ] {
        let words = [
            &[
                "ctl",
                "task",
                "start",
                "all",
                "--blocks",
                "0..900",
                "--block-bytes",
                "1048576",
            ],
            terms,
        ];
        let refused = service.refuses(&words.concat());
        assert!(refused.contains(problem), "{terms:?}: {refused}");
    }
    let client = client(&service);
    let order = |pieces| TaskOrder {
        volume: "all".to_owned(),
        set: TaskPieces { pieces, any: None },
        ..TaskOrder::default()
    };
    assert!(client.begin_task(&order(Vec::new())).is_err(), "no piece");
    let slow = TaskOrder {
        deadline_s: Some(600),
        pace_bytes_s: Some(1_000_000),
        ..order(vec![(0, 900 << 20)])
    };
    let refused = client.begin_task(&slow).expect_err("it takes 16 minutes");
    assert!(refused.to_string().contains("at its own pace"), "{refused}");
    let long = client.begin_task(&order(vec![(0, 900 << 20)]));
    let long = long.expect("a task");
    for steer in [TaskSteer::Hasten, TaskSteer::Abort] {
        client.steer_task(long, steer).expect("it is under way");
    }
    assert!(client.steer_task(long, TaskSteer::Resume).is_err());
}
