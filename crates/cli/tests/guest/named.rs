//! Names of disks by udev, in a kernel of its own (see the crate `guest`): the rule of the package on disks that the
//! kernel makes up (`scsi_debug`), beside Debian's rules.

use std::path::Path;

use guest::{Guest, GuestError, run};

/// Debian's rules that find serial numbers, and the program that they and ours run.
const PERSISTENT: &str = "/usr/lib/udev/rules.d/60-persistent-storage.rules";
const SCSI_ID: &str = "/usr/lib/udev/scsi_id";

/// Two disks of one unit each, and after them a disk of two units. `scsi_debug` says that it has no platters, so that the kernel
/// is told otherwise. It numbers its disks: 2000, 3000.
const SCRIPT: &str = r#"
mkdir -p /lib/udev/rules.d /usr/lib/udev /etc /run
ln -s /bin/scsi_id /lib/udev/scsi_id
ln -s /bin/scsi_id /usr/lib/udev/scsi_id
cp /tmp/*.rules /lib/udev/rules.d/
cp /bin/udevadm /bin/systemd-udevd
systemd-udevd --daemon >/dev/null 2>&1
# names TITLE: all links, after the kernel has told of its disks anew, and the addresses of their devices (channel, target,
# unit). It is not the same with each start which disk is sda.
names() {
    for disk in /sys/block/sd*; do echo 1 >$disk/queue/rotational; done
    udevadm trigger --action=change --subsystem-match=block --subsystem-match=scsi_generic
    udevadm settle --timeout=60
    echo "$1"
    for link in $(find /dev/headtime -type l 2>/dev/null | sort); do
        node=$(basename $(readlink -f $link))
        address=$(basename $(readlink -f /sys/class/*/$node/device))
        echo "$link ${address#*:}"
    done
}
until [ -b /dev/sdb ] && [ -e /dev/sg1 ]; do usleep 10000; done
names 'two disks'
# A disk without platters has no name; its generic node keeps its name.
echo 0 >/sys/block/$(ls /sys/bus/scsi/devices/0:0:0:0/block)/queue/rotational
udevadm trigger --action=change --subsystem-match=block
udevadm settle --timeout=60
ls -1 /dev/headtime/by-serial
rmmod scsi_debug
udevadm settle --timeout=60
insmod /modules/scsi_debug.ko dev_size_mb=8 delay=0 max_luns=2
until [ -b /dev/sdb ] && [ -e /dev/sg1 ]; do usleep 10000; done
names 'two units'
"#;

#[test]
fn a_disk_and_its_generic_node_have_names_by_serial_number() {
    let missing = |what: &str| GuestError::Missing {
        what: what.to_owned(),
        install: "`make guest` installs it",
    };
    let persistent = std::fs::read_to_string(PERSISTENT);
    let guest = match &persistent {
        Ok(_) if Path::new(SCSI_ID).exists() => Guest::new().map(|guest| {
            guest
                .module("scsi_debug", "dev_size_mb=8 delay=0 num_tgts=2")
                .module("sd_mod", "")
                .module("sg", "")
                .program("udevadm")
                .program(SCSI_ID)
        }),
        _ => Err(missing("udev")),
    };
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/61-headtime.rules");
    let ours = std::fs::read_to_string(ours).expect("the rule");
    let persistent = persistent.unwrap_or_default();
    let script = format!(
        "cat >/tmp/60-persistent-storage.rules <<'END'\n{persistent}END\n\
         cat >/tmp/61-headtime.rules <<'END'\n{ours}END\n{SCRIPT}"
    );
    let Some(text) = run(guest, &script) else {
        return;
    };
    assert_eq!(text, NAMES);
}

/// A name of a disk and one of its generic node. Of a disk with two units only the first one has names.
const NAMES: &str = "two disks
/dev/headtime/by-serial/2000 0:0:0
/dev/headtime/by-serial/2000-sg 0:0:0
/dev/headtime/by-serial/3000 0:1:0
/dev/headtime/by-serial/3000-sg 0:1:0
2000-sg
3000
3000-sg
two units
/dev/headtime/by-serial/2000 0:0:0
/dev/headtime/by-serial/2000-sg 0:0:0
";
