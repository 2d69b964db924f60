//! `headtime adopt` on SCSI devices that are no disk to adopt, in a kernel of its own (see the crate `guest`):
//! flash, a disk that fails reads in a region, and one that is unplugged in the middle. Each is told in clear
//! words, nothing is written, and the switches are as before.

use guest::{Guest, run};

use crate::assert_says_in_order;
use crate::device::headtime;

const SCRIPT: &str = r#"
export NO_COLOR=1
disk() {
    until [ -b /dev/sda ] && [ -e /dev/sg0 ]; do usleep 10000; done
}
# The kernel's drive again, with other parameters.
other() {
    rmmod scsi_debug
    insmod /modules/scsi_debug.ko dev_size_mb=64 "$@"
    disk
}
ended() {
    code=0
    wait $adopting || code=$?
    echo "code $code"
    tail -1 /tmp/log
    ls /tmp/new* 2>/dev/null || echo 'no files'
    echo "records: $(ls /run/headtime 2>/dev/null | wc -l)"
}
begin() {
    headtime adopt /dev/sda --minutes 1 -o /tmp/new.toml >/tmp/said 2>/tmp/log &
    adopting=$!
}
caches() {
    echo 1 >/sys/block/sda/device/rescan
    echo "caches: $(cat /sys/class/scsi_disk/*/cache_type)"
}
disk
echo flash
begin
ended
caches
echo failing
other delay=0 opts=2 medium_error_start=60000 medium_error_count=71072
begin
ended
caches
echo unplugged
other delay=40
begin
# Samples are under way.
until [ "$(awk '{ print $1 }' /sys/block/sda/stat)" -gt 8 ]; do
    kill -0 $adopting || { cat /tmp/said /tmp/log; exit 1; }
    usleep 10000
done
echo 1 >/sys/block/sda/device/delete
ended
echo end
"#;

/// In the script's order: each is in the output after the one before.
const EXPECTED: &[&str] = &[
    "flash\ncode 3\n",
    "no single hard disk",
    "no profile is written\n",
    "no files\nrecords: 0\ncaches: write back\n",
    "failing\ncode 1\n",
    "error: /dev/sda: ",
    "failed",
    "nothing is written\n",
    "no files\nrecords: 0\ncaches: write back\n",
    "unplugged\ncode 1\n",
    "error: /dev/sda: ",
    "the path is gone",
    "no files\nrecords: 0\nend",
];

#[test]
fn devices_that_are_no_disk_to_adopt_are_told_and_left_as_they_were() {
    let folder = tempfile::tempdir().expect("a folder");
    let guest = Guest::new().map(|guest| {
        guest
            .module("scsi_debug", "dev_size_mb=64 delay=0")
            .module("sd_mod", "")
            .module("sg", "")
            .program(headtime(folder.path()))
    });
    let Some(text) = run(guest, SCRIPT) else {
        return;
    };
    assert_says_in_order(&text, EXPECTED);
}
