//! `headtime serve` on SCSI disks, in a kernel of its own (see the crate `guest`): one that the kernel
//! makes up (`scsi_debug`), by io_uring and past the kernel, and those that are refused.

use std::path::{Path, PathBuf};
use std::process::Command;

use guest::{Guest, run};

/// The program without what a debugger needs, which would not fit into the guest's memory.
pub fn headtime(folder: &Path) -> PathBuf {
    let stripped = folder.join("headtime");
    let done = Command::new("strip")
        .arg("--strip-debug")
        .arg("-o")
        .arg(&stripped)
        .arg(env!("CARGO_BIN_EXE_headtime"))
        .status();
    assert!(done.expect("binutils, as for building").success());
    stripped
}

/// What is asked of a disk in the same words by each script.
const WORDS: &str = r#"
export NO_COLOR=1
# config PATH KEYS VOLUME: serves a volume of the disk.
config() {
    cat >/tmp/c.toml <<END
[[drive]]
name = "raw"
back_end = { kind = "device", path = "$1", confirm = "$1"$2 }
volume = [{ name = "raw"$3 }]
export = [{ name = "raw", volume = "raw" }]
[[nbd]]
unix = "/tmp/nbd.sock"
[control]
socket = "/tmp/control.sock"
[limits]
request_size = "4 MiB"
buffer_size = "64 MiB"
END
}
# Begins to serve that, and waits until it does.
serve() {
    : >/tmp/said # The run before said it, too.
    headtime serve /tmp/c.toml >/tmp/said 2>/tmp/log &
    server=$!
    until grep -q 'control socket' /tmp/said; do
        kill -0 $server || { cat /tmp/said /tmp/log; exit 1; }
        usleep 10000
    done
}
# Tries to, and says why not; what begins to serve all the same is stopped.
refusal() {
    timeout 20 headtime serve /tmp/c.toml >/tmp/said 2>/tmp/log && exit 1
    grep 'drive raw' /tmp/log || { cat /tmp/said /tmp/log; exit 1; }
}
refused() {
    config "$1" "$2" "$3"
    refusal
}
drain() {
    headtime ctl drain --socket /tmp/control.sock >/dev/null
    wait $server
}
# What the drive itself says of its caches, by the kernel, which looks again.
caches() {
    echo 1 >/sys/block/sda/device/rescan
    echo "$1: $(cat /sys/class/scsi_disk/*/cache_type)"
}
load() {
    fio --ioengine=nbd --uri='nbd+unix:///raw?socket=/tmp/nbd.sock' --eta=never \
        --verify_state_save=0 --output=/tmp/fio "$@" || { cat /tmp/fio /tmp/log; exit 1; }
}
client() {
    qemu-io -f raw "$@" 'nbd+unix:///raw?socket=/tmp/nbd.sock' 2>&1
}
"#;

/// Both ways to the same disk: caches, verified loads, durable writes and flushes at the drive, bad
/// blocks, which are 4660 to 4669.
const BOTH_WAYS: &str = r#"
options=/sys/bus/pseudo/drivers/scsi_debug/opts
until [ -b /dev/sda ] && [ -e /dev/sg0 ]; do usleep 10000; done
both() {
    echo "by $1"
    caches before
    config "$1" "$2" ''
    serve
    caches served
    load --verify=crc32c --verify_fatal=1 \
        --name=small --size=2M --rw=randwrite --bs=4k --iodepth=16 \
        --name=large --offset=16M --size=4M --rw=write --bs=2M --iodepth=2
    echo verified
    # The kernel writes down what reaches the drive.
    dmesg -c >/dev/null
    echo 1 >$options
    client -t writeback -c 'write -P 1 32M 8k' -c flush -c 'write -f -P 2 32M 4k' >/tmp/client
    echo 0 >$options
    dmesg -c >/tmp/dmesg
    echo "flushes $(grep -c -e 'cmd 35 ' -e 'cmd 91 ' /tmp/dmesg)"
    echo "durable $(grep -c 'cmd 8a 08 ' /tmp/dmesg)"
    client -c 'read -P 2 32M 4k' -c 'read -P 1 33558528 4k' >/tmp/client
    echo "as written $(grep -c '^read 4096/4096' /tmp/client)"
    echo 2 >$options
    client -c 'read 2379776 4k' -c 'read 2383872 4k' -c 'read 2392064 4k' | grep '^read'
    # As one command of the kernel's, neighbours fail together.
    load --name=bad --offset=2M --size=1M --rw=read --bs=4k --iodepth=16 --continue_on_error=read
    grep -o 'total=2, first_error=5' /tmp/fio || cat /tmp/fio
    echo 0 >$options
    # The drive tells the next command that something happened, and does not carry it out.
    luns=/sys/bus/pseudo/drivers/scsi_debug/max_luns
    echo $(($(cat $luns) + 1)) >$luns
    client -c 'read -P 2 32M 4k' | grep '^read'
    drain
    caches after
    cat /tmp/log
}
both /dev/sda ''
both /dev/sg0 ', passthrough = true, write_cache = true, look_ahead = false'
echo by refusals
refused /dev/sda '' ', size = "1 GiB"'
caches refused
refused /dev/sg0 '' ''
refused /dev/sda1 '' ''
refused /dev/sdz '' ''
refused /dev/null '' ''
mkfs.ext4 -q /dev/sda1
mount -t ext4 /dev/sda1 /mnt
refused /dev/sda '' ''
refused /dev/sg0 ', passthrough = true' ''
umount /mnt
config /dev/sda '' ''
sed -i 's/^volume/belief = "quantum-atlas-10k"\nvolume/' /tmp/c.toml
refusal
blockdev --setro /dev/sda
refused /dev/sda '' ''
rmmod scsi_debug
insmod /modules/scsi_debug.ko zbc=managed dev_size_mb=64 zone_size_mb=4
until [ -b /dev/sda ] && [ -e /dev/sg0 ]; do usleep 10000; done
refused /dev/sda '' ''
refused /dev/sg0 ', passthrough = true' ''
echo end
"#;

#[test]
fn a_scsi_disk_is_served_by_io_uring_and_past_the_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let guest = Guest::new().map(|guest| {
        guest
            .module("scsi_debug", "dev_size_mb=64 delay=0 num_parts=1")
            .module("sd_mod", "")
            .module("sg", "")
            .program("fio")
            .program("qemu-io")
            .program("mkfs.ext4")
            .program(headtime(folder.path()))
    });
    let Some(text) = run(guest, &format!("{WORDS}{BOTH_WAYS}")) else {
        return;
    };
    let disk = said_by(&text, "/dev/sda");
    let expected = format!("before: write back\nserved: write through\n{SERVED}");
    assert!(disk.starts_with(&expected), "{text}");
    assert!(disk.contains("switched back"), "{text}");
    assert!(disk.contains(ADVICE), "{text}");
    let generic = said_by(&text, "/dev/sg0");
    let expected = format!("before: write back\nserved: write back\n{SERVED}");
    assert!(generic.starts_with(&expected), "{text}");
    let warning =
        "the look-ahead stays as it is: the drive does not let its look-ahead be switched";
    assert!(generic.contains(warning), "{text}");
    assert!(generic.contains(ADVICE), "{text}");
    assert!(
        generic.contains("which is repeated: sense 6/3f/0e"),
        "{text}"
    );
    let refused: Vec<&str> = said_by(&text, "refusals").lines().collect();
    assert_eq!(refused.len(), REFUSED.len(), "{text}");
    for (line, expected) in refused.iter().zip(REFUSED) {
        let line = line.trim_start_matches("error: drive raw: ");
        assert!(line.starts_with(expected), "{line}\nnot {expected}");
    }
}

/// What both ways do: a flush that was asked for and qemu's last one, one durable write, two blocks
/// of fio's with bad ones in them.
const SERVED: &str = "verified
flushes 2
durable 1
as written 2
read 4096/4096 bytes at offset 2379776
read failed: Input/output error
read 4096/4096 bytes at offset 2392064
total=2, first_error=5
read 4096/4096 bytes at offset 33554432
after: write back
";

const ADVICE: &str =
    "a read at block 4656: sense 3/11/00 at 4660: the block cannot be read: write it anew";

/// In the script's order.
const REFUSED: [&str; 13] = [
    "volume raw has 1073741824 bytes from byte 0 on, and the drive has 67108864: expected",
    "refused: write back",
    "/dev/sg0: it takes SCSI commands only: expected passthrough = true, or its disk /dev/sda",
    "/dev/sda1: a partition of /dev/sda: expected the whole drive",
    "/dev/sdz: it is not there: expected a block device",
    "/dev/null: it is neither a block device nor a SCSI generic one: expected",
    "/dev/sda: in use (mounted on /mnt): expected",
    "/dev/sg0: in use (mounted on /mnt): expected",
    "/dev/sda: 131072 blocks of 512 bytes, and its profile Quantum Atlas 10K (Tornado) has 17938986",
    "/dev/sda: the kernel does not write to it: expected",
    "/dev/sda: a zoned drive (host-managed): expected",
    "/dev/sg0: a zoned drive (host-managed): expected",
    "end",
];

/// What stands between the line `by WHAT` and the next of these.
fn said_by<'a>(text: &'a str, what: &str) -> &'a str {
    let after = text.split_once(&format!("by {what}\n"));
    let after = after.unwrap_or_else(|| panic!("nothing by {what} in:\n{text}"));
    after.1.split("\nby ").next().unwrap_or_default()
}
