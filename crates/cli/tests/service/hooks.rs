//! The programs that a service runs when its tasks have ended or its mirrors have changed.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::scanned::{Service, config, contents};
use crate::scrubbed::{checked, scrub};

/// A service that takes longer hangs. Nothing is measured by it.
const HANGS: Duration = Duration::from_secs(60);

/// A line of `hooked` for each run of a hook.
pub const HOOKS: &str = r#"
[hooks]
on_done = ["/bin/sh", "-c", "echo $HEADTIME_HOOK $HEADTIME_TASK $HEADTIME_NAME: $HEADTIME_RESULT >> hooked; echo said"]
on_error = ["/bin/sh", "-c", "echo $HEADTIME_HOOK $HEADTIME_TASK $HEADTIME_NAME: $HEADTIME_RESULT >> hooked; exit 3"]
"#;

/// The lines of a folder's file, once there are so many.
pub fn hooked(folder: &Path, count: usize) -> Vec<String> {
    let until = Instant::now() + HANGS;
    loop {
        let text = std::fs::read_to_string(folder.join("hooked")).unwrap_or_default();
        if text.ends_with('\n') && text.lines().count() >= count {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(Instant::now() < until, "{text:?}, and not {count} lines");
        std::thread::yield_now();
    }
}

#[test]
fn each_task_that_is_not_given_up_has_the_hook_of_its_end() {
    let service = Service::start_with(&contents(), &(config("") + HOOKS));
    let (is_good, text) = service.run(&["scan", "small"]);
    assert!(is_good, "{text}");
    let lines = hooked(&service.path(""), 1);
    assert!(
        lines[0].starts_with("on_done 1 scan small: checksum "),
        "{lines:?}"
    );
    service.run(&["scan", "small", "--command", "/bin/sh", "-c", "exit 5"]);
    let lines = hooked(&service.path(""), 2);
    assert!(lines[1].starts_with("on_error 2 scan small: "), "{lines:?}");
    assert!(lines[1].ends_with("exit status: 5"), "{lines:?}");
    // A user gives up the third one. The fourth comes after it.
    let (is_good, text) = service.run(&["scan", "all", "--detach"]);
    assert!(is_good, "{text}");
    let (is_good, text) = service.run(&["ctl", "abort", "3"]);
    assert!(is_good, "{text}");
    let (is_good, text) = service.run(&["scan", "small"]);
    assert!(is_good, "{text}");
    let lines = hooked(&service.path(""), 3);
    assert!(lines[2].starts_with("on_done 4 "), "{lines:?}");
    let log = service.log();
    assert!(log.contains("the hook says: said"), "{log}");
    assert!(
        log.contains("the hook failed: it ended with exit status: 3"),
        "{log}"
    );
    service.end();
}

#[test]
fn a_scrub_that_finds_damage_has_the_hook_of_an_error() {
    let bad = checked().replace("write_cache = true", "write_cache = true\nunreadable = [9]");
    let service = Service::start_with(&contents(), &(bad + HOOKS));
    let (is_good, found) = scrub(&service);
    assert!(!is_good, "{found}");
    let lines = hooked(&service.path(""), 1);
    assert!(
        lines[0].ends_with(" scrub small: 1 places with damage"),
        "{lines:?}"
    );
    assert!(lines[0].starts_with("on_error "), "{lines:?}");
    service.end();
}
