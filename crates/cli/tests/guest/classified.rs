//! `headtime bench classify` over ublk, in a kernel of its own (see the crate `guest`).

use guest::{Guest, run};
use serde_json::Value;

use crate::device::headtime;

/// The service does not start without tracefs, and says so.
const SCRIPT: &str = r#"
export NO_COLOR=1
cd /tmp
headtime bench classify --drive memory --seconds 1 --rounds 1 >said 2>&1 && exit 1
grep -q 'block_rq_issue/format' said || { cat said; exit 1; }
mount -t tracefs tracefs /sys/kernel/tracing
headtime bench classify --drive memory --seconds 2 --rounds 1 --json 2>said || { cat said; exit 1; }
"#;

#[test]
fn classes_of_requests_over_ublk_are_those_of_their_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let guest = Guest::new().map(|guest| {
        guest
            .module("ublk_drv", "")
            .program("losetup")
            .program("taskset")
            .program("fio")
            .program(headtime(folder.path()))
    });
    let Some(text) = run(guest, SCRIPT) else {
        return;
    };
    let doors: Value = serde_json::from_str(&text).expect("JSON");
    let doors = doors.as_array().expect("an array");
    let door = doors.iter().find(|door| door["door"] == "ublk");
    let door = door.expect("this kernel has ublk");
    let requests = door["requests"].as_u64().expect("a number");
    assert!(requests > 100, "{door}");
    assert!(door["right_percent"].as_f64() >= Some(99.9), "{door}");
    let late = door["late_events"].as_u64().expect("a number");
    assert!(late * 1000 <= requests, "{door}");
}
