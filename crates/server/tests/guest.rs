//! Front ends and back ends against a real kernel, in a guest (see the crate `guest`). Each test
//! boots once and does all that belongs together, because booting is what takes the time.

use std::os::unix::fs::FileExt;

use guest::{Guest, run};

#[test]
fn a_kernel_boots_loads_modules_and_formats_a_disk() {
    let guest = Guest::new().map(|guest| {
        guest
            .module("null_blk", "nr_devices=1 memory_backed=1 gb=1")
            .module("dm-mod", "")
            .program("mkfs.ext4")
    });
    let script = "
        uname -r
        mkfs.ext4 -q /dev/nullb0
        mount -t ext4 /dev/nullb0 /mnt
        echo contents > /mnt/file
        umount /mnt
        mount -t ext4 /dev/nullb0 /mnt
        cat /mnt/file
        grep -c -e ^null_blk -e ^dm_mod /proc/modules
    ";
    let Some(text) = run(guest, script) else {
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("6."), "{text}");
    assert_eq!(lines[1..], ["contents", "2"], "{text}");
}

/// The program that runs what is tested inside of the guest.
const INSIDE: &str = env!("CARGO_BIN_EXE_inside");

/// The numbers behind the words of a line like `reads 3 writes 4`.
fn number(text: &str, word: &str) -> u64 {
    let mut words = text.split_whitespace().skip_while(|&other| other != word);
    let value = words.nth(1).and_then(|value| value.parse().ok());
    value.unwrap_or_else(|| panic!("no `{word}` in:\n{text}"))
}

/// Writes, kills, verifies, formats, mounts, trims, checks, and ends.
const UBLK_SCRIPT: &str = "
mkfifo /tmp/stop
truncate -s 96M /tmp/image
inside ublk add 0 4096 /tmp/image /tmp/stop 700 >/tmp/first 2>&1 &
server=$!
# Waits a moment, as long as both are alive.
pause() {
    for process in $*; do
        kill -0 $process || { cat /tmp/first /tmp/last /tmp/fio; exit 1; }
    done
    usleep 10000
}
until [ -b /dev/ublkb0 ] && [ -e /sys/block/ublkb0/queue/rotational ]; do pause $server; done
cd /sys/block/ublkb0
quiet='--eta=never --verify_state_save=0 --output=/tmp/fio'
echo rotational $(cat queue/rotational) fua $(cat queue/fua) \
    block $(cat queue/logical_block_size) bytes $(cat size)

fio --name=load --filename=/dev/ublkb0 --size=12M --rw=randwrite --bs=4k --direct=1 \
    --ioengine=libaio --iodepth=16 --verify=crc32c --verify_fatal=1 $quiet &
load=$!
# Two servers stop answering after 700 requests, and are killed then; the third is killed
# whatever it does.
for kill in 600 1200 1800; do
    until [ $(awk '{ print $5 }' stat) -ge $kill ]; do pause $server $load; done
    hold=700
    case $kill in
        600 | 1200)
            until [ -e /tmp/held ]; do pause $server $load; done
            until [ $(awk '{ print $2 }' inflight) -eq 16 ]; do pause $server $load; done
            rm /tmp/held ;;
    esac
    case $kill in
        1200 | 1800) hold=1000000 ;;
    esac
    # Before, because the kernel does not count requests that wait for the next server.
    echo inflight $(awk '{ print $2 }' inflight)
    kill -9 $server
    wait $server || echo killed $?
    inside ublk recover 0 /tmp/image /tmp/stop $hold >/tmp/last 2>&1 &
    server=$!
done
wait $load || { cat /tmp/fio /tmp/last; exit 1; }
echo verified

mkfs.ext4 -q -E lazy_itable_init=0,nodiscard /dev/ublkb0
mount -t ext4 /dev/ublkb0 /mnt
fio --name=files --directory=/mnt --size=4M --rw=randrw --bs=8k --fsync=32 \
    --ioengine=psync --verify=crc32c --verify_fatal=1 $quiet \
    || { cat /tmp/fio; exit 1; }
rm /mnt/files*
fstrim /mnt
umount /mnt
e2fsck -f -n /dev/ublkb0 >/tmp/fsck 2>&1 || { cat /tmp/fsck; exit 1; }
echo clean

# A volume that fails, and goes on.
truncate -s 64M /tmp/image
dd if=/dev/ublkb0 of=/dev/null bs=4k skip=20000 count=1 iflag=direct 2>/tmp/dd && exit 1
grep -o 'Input/output error' /tmp/dd || { cat /tmp/dd; exit 1; }
dd if=/dev/ublkb0 of=/dev/null bs=4k skip=1000 count=1 iflag=direct 2>/dev/null

echo now >/tmp/stop
wait $server
cat /tmp/last
test ! -e /dev/ublkb0
test ! -e /dev/ublkc0
";

#[test]
fn ublk_serves_a_file_system_and_outlives_its_server() {
    let guest = Guest::new().map(|guest| {
        guest
            .module("ublk_drv", "")
            .program("mkfs.ext4")
            .program("e2fsck")
            .program("fio")
            .program(INSIDE)
    });
    let Some(text) = run(guest, UBLK_SCRIPT) else {
        return;
    };
    let expected = "rotational 1 fua 1 block 4096 bytes 196608\n";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.matches("killed 137\n").count(), 3, "{text}");
    assert!(text.matches("inflight 16\n").count() >= 2, "{text}");
    assert!(
        text.contains("verified\nclean\nInput/output error\n"),
        "{text}"
    );
    for word in ["reads", "writes", "durable", "flushes", "trims", "zeroes"] {
        assert!(number(&text, word) > 0, "{text}");
    }
}

/// What `inside scsi` says of a drive that the kernel makes up.
const SCSI_DEBUG: &str = "Linux scsi_debug, serial 2000, Solid
131072 blocks of 512, 4096 on the medium
write cache On, FUA true
write cache Off
write cache On
look-ahead: the drive does not let its look-ahead be switched
same
same
seek: sense 5/20/00: the drive does not know the command
block 4660: sense 3/11/00 at 4660: the block cannot be read: write it anew from a copy, \
so that the drive can put it elsewhere
block 131072: sense 5/21/00: the block is past the end of the drive: is its capacity still the same?
";

/// And of QEMU's.
const QEMU_DRIVE: &str = "QEMU QEMU HARDDISK, serial Z1, PerMinute(7200)
131072 blocks of 512, 512 on the medium
write cache On, FUA false
write cache Off
write cache On
look-ahead: the drive does not let its look-ahead be switched
same
same
seek done
block 131072: sense 5/21/00: the block is past the end of the drive: is its capacity still the same?
";

#[test]
fn scsi_drives_are_switched_written_read_and_understood() {
    let image = tempfile::NamedTempFile::new().expect("a file for an image");
    image.as_file().set_len(64 << 20).expect("room");
    let path = image.path().display();
    let drive = format!("file={path},format=raw,if=none,id=image");
    let guest = Guest::new().map(|guest| {
        guest
            // Reads of ten blocks from 0x1234 on fail (its option 2).
            .module("scsi_debug", "dev_size_mb=64 physblk_exp=3 opts=2 delay=0")
            .module("virtio_scsi", "")
            .module("sd_mod", "")
            .module("sg", "")
            .argument("-drive")
            .argument(&drive)
            .argument("-device")
            .argument("virtio-scsi-pci")
            .argument("-device")
            .argument("scsi-hd,drive=image,serial=Z1,rotation_rate=7200")
            .program(INSIDE)
    });
    let script = "
        until [ -e /dev/sda ] && [ -e /dev/sdb ] && [ -e /dev/sg1 ]; do usleep 10000; done
        for drive in sg0 sg1 sda sdb; do
            echo \"by $drive\"
            inside scsi /dev/$drive
        done
    ";
    let Some(text) = run(guest, script) else {
        return;
    };
    // Which is which depends on who is found first.
    for (kind, first, second) in [("generic", "sg0", "sg1"), ("disk", "sda", "sdb")] {
        let said = |drive| said_by(&text, drive);
        let mut found = [said(first), said(second)];
        found.sort_unstable();
        assert_eq!(found, [SCSI_DEBUG, QEMU_DRIVE], "by {kind}:\n{text}");
    }
    let mut bytes = vec![0; 8 * 512];
    let read = image.as_file().read_exact_at(&mut bytes, 1000 * 512);
    read.expect("the image");
    let expected: Vec<u8> = (0..8 * 512).map(|at| (at / 7) as u8).collect();
    assert!(bytes == expected, "what was written is not in the image");
}

/// What stands after the line `by DRIVE`.
fn said_by<'a>(text: &'a str, drive: &str) -> &'a str {
    let after = text.split_once(&format!("by {drive}\n"));
    let after = after.unwrap_or_else(|| panic!("nothing by {drive} in:\n{text}"));
    let end = after.1.find("by s").unwrap_or(after.1.len());
    &after.1[..end]
}
