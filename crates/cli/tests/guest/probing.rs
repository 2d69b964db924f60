//! `headtime profile --device` on a SCSI disk, in a kernel of its own (see the crate `guest`): its switches
//! are off meanwhile and as before at the end, also after signals, a kill, and the next start.

use guest::{Guest, run};

use crate::assert_says_in_order;
use crate::device::headtime;

/// `scsi_debug` answers after a jiffy, 4 ms, so that its reads seem to come from a medium. It has a write
/// cache that can be switched, and a look-ahead that cannot.
const SCRIPT: &str = r#"
export NO_COLOR=1
until [ -b /dev/sda ] && [ -e /dev/sg0 ]; do usleep 10000; done
# What the drive itself says of its caches, by the kernel, which looks again.
caches() {
    echo 1 >/sys/block/sda/device/rescan
    echo "$1: $(cat /sys/class/scsi_disk/*/cache_type)"
}
records() { echo "records: $(ls /run/headtime 2>/dev/null | wc -l)"; }
# How many jiffies each command takes. The kernel refuses to change that while one is under way.
delay() { until echo $1 >/sys/bus/pseudo/drivers/scsi_debug/delay 2>/dev/null; do :; done; }
# Begins to profile a disk, and waits until its write cache is off. A slower disk keeps it busy from then on.
begin() {
    : >/tmp/log # The run before said it, too.
    headtime profile --device $1 --budget 60s -o /tmp/new.toml >/tmp/said 2>/tmp/log &
    probing=$!
    until grep -q 'write cache is off' /tmp/log; do
        kill -0 $probing || { cat /tmp/said /tmp/log; exit 1; }
        usleep 1000
    done
    delay 50
}
ended() {
    code=0
    wait $probing || code=$?
    echo "code $code"
    cat /tmp/log
    [ ! -e /tmp/new.toml ] || echo "a profile"
}
caches before
begin /dev/sda
caches probing
headtime profile --device /dev/sda --budget 1s 2>&1 | tail -1
kill -TERM $probing
delay 1
ended
caches terminated
records
begin /dev/sg0
kill -KILL $probing
delay 1
ended
caches killed
records
headtime profile --device /dev/sda --budget 1s >/tmp/said 2>/tmp/log || echo "code $?"
cat /tmp/log
caches next
records
begin /dev/sda
echo 1 >/sys/block/sda/device/delete
delay 1
ended
echo end
"#;

/// In the script's order: each is in the output after the one before.
const EXPECTED: &[&str] = &[
    "before: write back",
    "probing: write through",
    "another Headtime process has this drive",
    "code 1",
    "sda: reads with FUA come from the medium",
    "sda: the look-ahead stays as it is: the drive does not let its look-ahead be switched",
    "sda: the write cache is off while it is probed",
    "sda: the write cache is on again, as before",
    "error: /dev/sda: stopped by a signal; no profile is written",
    "terminated: write back",
    "records: 0",
    "code 137",
    "killed: write through",
    "records: 1",
    "code 1",
    "sda: an earlier run was killed: the write cache is on again, as before",
    "sda: the write cache is off while it is probed",
    "sda: the write cache is on again, as before",
    "next: write back",
    "records: 0",
    "code 1",
    "the write cache was on before, and is not switched back",
    "error: /dev/sda: ",
    "reads in a row failed",
    "the path is gone",
    "end",
];

#[test]
fn switches_are_as_before_after_signals_kills_and_unplugging() {
    let folder = tempfile::tempdir().expect("a folder");
    let guest = Guest::new().map(|guest| {
        guest
            .module("scsi_debug", "dev_size_mb=64 delay=1")
            .module("sd_mod", "")
            .module("sg", "")
            .program(headtime(folder.path()))
    });
    let Some(text) = run(guest, SCRIPT) else {
        return;
    };
    assert_says_in_order(&text, EXPECTED);
    assert!(!text.contains("a profile"), "{text}");
}
