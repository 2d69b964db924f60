//! Programs of scans: they end with their task, with its client and with the service, and say so much.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;

use crate::scanned::Service;

/// A program that takes nothing, knows no SIGTERM, and has a child that is the same. Their numbers are in `pids`.
const STUBBORN: &str =
    "trap '' TERM; sleep 1000 & echo $$ $! > pids.new; mv pids.new pids; sleep 1000";

/// A service that takes longer hangs. Nothing is measured by it.
const HANGS: Duration = Duration::from_secs(60);

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + HANGS;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::yield_now();
    }
}

/// The numbers of the program's processes, once it has written them.
fn processes(service: &Service) -> Vec<String> {
    let file = service.path("pids");
    wait_until("the program runs", || file.exists());
    let text = std::fs::read_to_string(&file).expect("numbers");
    std::fs::remove_file(file).expect("it was there");
    let numbers: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    assert_eq!(numbers.len(), 2, "{text}");
    assert!(numbers.iter().all(|number| runs(number)));
    numbers
}

/// Whether a process runs: it is there, and no zombie.
fn runs(number: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(number).join("stat"));
    stat.is_ok_and(|stat| {
        let state = stat.rsplit(") ").next();
        state.is_some_and(|state| !state.starts_with('Z'))
    })
}

fn scan(service: &Service, more: &[&str], script: &str) -> Command {
    let mut scan = Command::new(cargo_bin("headtime"));
    scan.current_dir(service.path(""))
        .args(["scan", "--socket", "control.sock"])
        .args(more)
        .args(["small", "--command", "sh", "-c", script])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    scan
}

fn is_aborted(service: &Service) -> bool {
    service.json(&["ctl", "--json", "tasks"])[0]["tasks"][0]["state"] == "aborted"
}

#[test]
fn a_program_and_its_children_end_with_their_task() {
    let service = Service::start(&[], "");
    let begun = scan(&service, &["--detach"], STUBBORN).status();
    assert!(begun.expect("it runs").success());
    let numbers = processes(&service);
    let (is_good, text) = service.run(&["ctl", "abort", "1"]);
    assert!(is_good, "{text}");
    wait_until("both are ended", || !numbers.iter().any(|one| runs(one)));
    service.end();
}

#[test]
fn a_program_and_its_children_end_with_the_service() {
    let service = Service::start(&[], "");
    let begun = scan(&service, &["--detach"], STUBBORN).status();
    assert!(begun.expect("it runs").success());
    let numbers = processes(&service);
    service.end();
    assert!(!numbers.iter().any(|one| runs(one)), "no longer than it");
}

/// A program that has got all blocks may work on, until its task is given up.
#[test]
fn a_program_that_has_all_blocks_ends_with_its_task_too() {
    let service = Service::start(&[], "");
    let script = format!("cat > /dev/null; {STUBBORN}");
    let begun = scan(&service, &["--detach"], &script).status();
    assert!(begun.expect("it runs").success());
    let numbers = processes(&service);
    let tasks = service.json(&["ctl", "--json", "tasks"]);
    assert_eq!(tasks[0]["tasks"][0]["state"], "finished", "{tasks}");
    let (is_good, text) = service.run(&["ctl", "abort", "1"]);
    assert!(is_good, "{text}");
    wait_until("both are ended", || !numbers.iter().any(|one| runs(one)));
    service.end();
}

#[test]
fn a_scan_ends_with_its_client_unless_it_was_detached() {
    let service = Service::start(&[], "");
    let mut client = scan(&service, &[], STUBBORN).spawn().expect("it runs");
    let numbers = processes(&service);
    assert!(!is_aborted(&service));
    client.kill().expect("it waits for the scan");
    client.wait().expect("it was killed");
    wait_until("its task ends", || is_aborted(&service));
    wait_until("both are ended", || !numbers.iter().any(|one| runs(one)));
    service.end();
}

#[test]
fn what_a_program_says_is_in_the_log_with_its_task_and_bounded() {
    let service = Service::start(&[], "");
    let script = "echo a line; printf '\\033[31mred\\n' >&2; cat > /dev/null; \
                  head -c 1000000 /dev/zero | tr '\\0' x >&2";
    let done = scan(&service, &[], script).status();
    assert!(done.expect("it runs").success());
    wait_until("all is read", || service.log().contains("said more"));
    let log = service.log();
    let line = |part: &str| {
        log.lines()
            .find(|line| line.contains(part))
            .map(str::to_owned)
    };
    let said = line("the scan's program says: a line").expect("a line");
    assert!(said.contains("task=1") || said.contains("task"), "{said}");
    assert!(said.contains("stdout"), "{said}");
    let red = line("[31mred").expect("a line");
    assert!(
        red.contains("\\u{1b}[31mred"),
        "control characters are escaped: {red}"
    );
    // 64 KiB of lines of 1 KiB, each with a time and a label.
    assert!(log.len() < 128 << 10, "{} bytes", log.len());
    service.end();
}
