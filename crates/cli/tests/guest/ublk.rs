//! `headtime serve` with block devices of its own, in a guest: killed under a load, begun again,
//! refused, and ended.

use std::path::{Path, PathBuf};
use std::process::Command;

use guest::{Guest, run};

/// The program without what debuggers need, which is most of it: a guest has all of it in memory.
fn program(folder: &Path) -> PathBuf {
    let small = folder.join("headtime");
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(&small)
        .arg(env!("CARGO_BIN_EXE_headtime"))
        .status();
    let stripped = stripped.expect("strip comes with the linker");
    assert!(stripped.success());
    small
}

/// What each step says is compared below.
const SCRIPT: &str = r#"
export NO_COLOR=1
cd /tmp
# Waits a moment, as long as the service and whatever else is named are alive.
pause() {
    for process in $*; do
        kill -0 $process || { cat log fio; exit 1; }
    done
    usleep 10000
}
# A volume of so many MiB, and which exports are devices.
config() {
    cat >c.toml <<END
[[drive]]
name = "file"
back_end = { kind = "file", path = "image", size = "64 MiB", direct = false }
volume = [{ name = "a", size = "$1 MiB" }]
export = [
    { name = "db", volume = "a" },
    { name = "copy", volume = "a", read_only = true, class = "background" },
]
[[drive]]
name = "memory"
back_end = { kind = "memory", size = "4 MiB" }
volume = [{ name = "b" }]
export = [{ name = "scratch", volume = "b" }]
[ublk]
exports = [$2]
[control]
socket = "control.sock"
[limits]
buffer_size = "64 MiB"
END
}
serve() {
    : >log
    headtime serve c.toml >log 2>&1 &
    server=$!
    until grep -q 'control socket' log; do pause $server; done
}
refused() {
    headtime serve c.toml >log 2>&1 && exit 1
    grep error log
}
killed() {
    kill -9 $server
    wait $server || echo killed $?
}
ctl() { headtime ctl --socket control.sock "$@"; }
# The device of an export.
device() { ctl status | awk -v name=$1 '$3 == "ublk" && $7 == name { print $5 }'; }
nodes() { echo nodes $(cd /dev; ls -d ublkb* 2>/dev/null); }

config 48 '"db", "copy", "scratch"'
touch fio
serve
db=$(device db) copy=$(device copy) scratch=$(device scratch)
echo devices $db $copy $scratch
sys=/sys/block/${db#/dev/}
echo read-only $(cat $sys/ro) $(cat /sys/block/${copy#/dev/}/ro) bytes $(cat $sys/size)
dd if=/dev/zero of=$copy bs=4k count=1 2>/dev/null && exit 1
echo text | dd of=$scratch conv=notrunc 2>/dev/null

mkfs.ext4 -q -E lazy_itable_init=0 $db
mount -t ext4 $db /mnt
before=$(awk '{ print $5 }' $sys/stat)
fio --name=load --directory=/mnt --size=6M --rw=randwrite --bs=4k --direct=1 --fsync=100 \
    --ioengine=libaio --iodepth=16 --verify=crc32c --verify_fatal=1 --eta=never \
    --verify_state_save=0 --output=fio &
load=$!
for writes in 300 900; do
    until [ $(awk '{ print $5 }' $sys/stat) -ge $((before + writes)) ]; do pause $server $load; done
    # It stands still until the load has something under way.
    kill -STOP $server
    until [ $(awk '{ print $1 + $2 }' $sys/inflight) -ge 1 ]; do pause $server $load; done
    killed
    serve
    echo $(grep -c 'taken over' log) taken over
done
wait $load || { cat fio log; exit 1; }
echo verified
fstrim /mnt
umount /mnt
e2fsck -f -n $db >fsck 2>&1 || { cat fsck; exit 1; }
echo clean
sum() { dd if=$1 bs=1M count=2 iflag=direct 2>/dev/null | md5sum; }
first=$(sum $db)
[ "$first" = "$(sum $copy)" ] && echo the same through both
# What was in memory went with the first server; its device is a new one.
dd if=$(device scratch) bs=4 count=1 2>/dev/null | od -c | head -n 1

sed -i 's/"background"/"best-effort-1"/; s/"db", "copy", //' c.toml
ctl reload
config 32 '"db", "copy", "scratch"'
killed
refused
config 48 '"db", "copy", "scratch"'
sed -i 's/"image"/"other"/' c.toml
refused
config 48 '"db", "copy", "scratch"'
serve
[ "$first" = "$(sum $db)" ] && echo the same as before

mount -t ext4 $db /mnt
echo contents >/mnt/file
ctl drain
wait $server
echo $(grep -c 'was mounted' log) was mounted
umount /mnt
until [ "$(nodes)" = nodes ]; do usleep 10000; done
serve
mount -t ext4 $(device db) /mnt
cat /mnt/file
umount /mnt

killed
config 48 '"scratch"'
serve
echo $(grep -c 'is removed' log) removed
nodes
ctl stop
wait $server
nodes
chmod 666 image
mkdir /etc
echo user:x:1000:1000::/tmp:/bin/sh >/etc/passwd
su user -c 'headtime serve c.toml' >user 2>&1 && exit 1
grep error user
rm /dev/ublk-control
refused
"#;

const EXPECTED: [&str; 26] = [
    "devices /dev/ublkb0 /dev/ublkb1 /dev/ublkb2",
    "read-only 0 1 bytes 98304",
    "killed 137",
    // The third was of memory.
    "2 taken over",
    "killed 137",
    "2 taken over",
    "verified",
    "clean",
    "the same through both",
    "0000000  \\0  \\0  \\0  \\0",
    "now: the exports of drive file (number 1), for clients that come from now on",
    "after a restart: [ublk] differs from what is in force",
    "killed 137",
    "error: [ublk] export db: /dev/ublkb0 waits for its server, and has 50331648 bytes where the \
     export has 33554432: expected the export as it was; to give the device up, so that its \
     clients get errors, begin once without the export in [ublk]",
    "error: [ublk] export db: /dev/ublkb0 waits for its server, and was on another drive, or \
     elsewhere on it: expected the export as it was; to give the device up, so that its clients \
     get errors, begin once without the export in [ublk]",
    "the same as before",
    "draining: it stops when what was begun has ended",
    "1 was mounted",
    "contents",
    "killed 137",
    // Two that wait, and what is left of the one of memory.
    "3 removed",
    "nodes ublkb0",
    "stopping",
    "nodes",
    "error: [ublk]: /dev/ublk-control: Permission denied (os error 13): ublk devices are made by \
     root: begin the service as root",
    "error: [ublk]: /dev/ublk-control: No such file or directory (os error 2): the kernel's \
     module ublk_drv is not loaded: `modprobe ublk_drv`, from Linux 6.0 on",
];

#[test]
fn devices_outlive_a_killed_service_and_end_with_one_that_is_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let guest = Guest::new().map(|guest| {
        guest
            .module("ublk_drv", "")
            .program("mkfs.ext4")
            .program("e2fsck")
            .program("fio")
            .program(program(folder.path()))
    });
    let Some(text) = run(guest, SCRIPT) else {
        return;
    };
    // The shell says so on its own.
    let lines: Vec<&str> = text.lines().filter(|line| *line != "Killed").collect();
    assert_eq!(lines, EXPECTED, "{text}");
}
