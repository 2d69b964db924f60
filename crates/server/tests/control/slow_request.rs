//! The account of a slow request, for the fake service.

use server::why::{self, Slow};

/// The parts add up.
pub fn slow() -> Slow {
    let others = |how, commands, us| why::Others { how, commands, us };
    Slow {
        request: 1841,
        drive: String::from("disk"),
        export: String::from("db"),
        class: String::from("foreground"),
        direction: String::from("read"),
        block: 5_000_000,
        blocks: 8,
        block_bytes: 512,
        good: true,
        at_s: 1_200.5,
        ended_s_ago: Some(3.25),
        response_us: 41_873.0,
        outside_us: 0.0,
        order_us: 0.0,
        others: vec![
            others(why::How::AtDrive, 1, 17_002.0),
            others(why::How::AsUrgent, 1, 8_000.0),
            others(why::How::Task, 1, 3_110.0),
        ],
        held_back_us: 2.0,
        forgotten_us: 0.0,
        in_drive: why::InDrive {
            us: 13_759.0,
            commands: 1,
            buffered: 0,
            believed_electronics_us: 100.0,
            believed_seek_us: 6_334.0,
            believed_rotation_us: 5_125.0,
            believed_transfer_us: 31.0,
            believed_bus_us: 200.0,
            mispredicted_us: 1_969.0,
            unknown_us: 0.0,
        },
        before: vec![
            why::Command {
                whose: String::from("request"),
                export: Some(String::from("bulk")),
                class: Some(String::from("best-effort-6")),
                direction: Some(String::from("read")),
                block: Some(900),
                blocks: Some(2048),
                how: why::How::AtDrive,
                given_us: -4_200.0,
                us: 17_002.0,
            },
            why::Command {
                whose: String::from("task"),
                export: None,
                class: Some(String::from("free")),
                direction: None,
                block: None,
                blocks: None,
                how: why::How::Task,
                given_us: 12_800.0,
                us: 3_110.0,
            },
        ],
    }
}
