//! Front ends and back ends against a real kernel, in a guest (see the crate `guest`). Each test
//! boots once and does all that belongs together, because booting is what takes the time.

use guest::{Failed, Guest, Output};

/// Runs the script and answers with what it printed. None if something is not installed, which is
/// said, and is a failure in CI.
#[allow(clippy::print_stdout, reason = "what was skipped is said in the log")]
fn run(guest: Result<Guest, Failed>, script: &str) -> Option<String> {
    match guest.and_then(|guest| guest.run(script)) {
        Ok(Output {
            status: 0, text, ..
        }) => Some(text),
        Ok(Output {
            status,
            text,
            kernel,
        }) => panic!("the script ended with {status}:\n{text}\nits kernel:\n{kernel}"),
        Err(missing @ Failed::Missing { .. }) => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{missing}");
            println!("skipped: {missing}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

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
