//! Patterns that `qemu-io` writes and verifies.

use super::served::{Served, has};

/// Each command does something, and each pattern is the one that is expected: a wrong one is said,
/// and not an error to `qemu-io`.
fn all(served: &Served, commands: &[&str]) {
    let printed = served.io(commands);
    let reads = commands.iter().filter(|c| c.starts_with("read")).count();
    let done = printed.lines().filter(|line| line.starts_with("read "));
    assert_eq!(done.count(), reads, "{printed}");
}

#[test]
fn patterns_are_read_as_they_were_written() {
    if !has("qemu-io") {
        return;
    }
    let served = Served::start();
    all(
        &served,
        &[
            "write -P 17 0 64k",
            "write -P 34 64k 1M",
            "read -P 17 0 64k",
            "read -P 34 64k 1M",
            // Less than a block: QEMU reads, changes and writes back the blocks around it.
            "write -P 51 1000 100",
            "write -P 68 65000 2000",
            "read -P 17 0 1000",
            "read -P 51 1000 100",
            "read -P 17 1100 63900",
            "read -P 68 65000 2000",
            "read -P 34 67000 1000",
            // Durable ones.
            "write -f -P 85 4M 512",
            "flush",
            "read -P 85 4M 512",
            // The last block, and the longest request.
            "write -P 102 67108352 512",
            "read -P 102 67108352 512",
            "write -P 119 16M 32M",
            "read -P 119 16M 32M",
        ],
    );
    // Another connection sees the same.
    all(&served, &["read -P 51 1000 100", "read -P 119 16M 32M"]);
    served.stop();
}

#[test]
fn zeroes_and_discards_leave_what_is_beside_them() {
    if !has("qemu-io") {
        return;
    }
    let served = Served::start();
    all(
        &served,
        &[
            "write -P 17 0 4M",
            "write -z 64k 64k",
            "write -z -u 1M 64k",
            "write -z -f 2M 4k",
            "write -z 3000 3000",
            "discard 3M 64k",
            "flush",
            "read -P 17 0 3000",
            "read -P 0 3000 3000",
            "read -P 17 6000 59536",
            "read -P 0 64k 64k",
            "read -P 17 128k 896k",
            "read -P 0 1M 64k",
            "read -P 17 1088k 960k",
            "read -P 0 2M 4k",
            "read -P 17 2052k 1020k",
            "read -P 0 3M 64k",
            "read -P 17 3136k 960k",
        ],
    );
    served.stop();
}
