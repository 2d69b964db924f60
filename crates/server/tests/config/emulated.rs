//! What an emulated drive does and no belief contains.

use block::Duration;
use drive::host::MeasuredPath;
use drive::imperfection::{
    AheadTrigger, Chance, HeldLookAhead, Periodic, SlowHead, UnalignedWrites,
};
use drive::{HostJitter, Imperfections};
use server::config::{BackEnd, DEFAULT};

use crate::{complains, parse};

/// An emulated drive rehearses what a real one does and no belief has.
#[test]
fn an_emulated_drive_deviates_from_its_belief_as_told() {
    let told = "seed = 1\nlate_seeks = { permille = 10, ms = 1.5 }\nheld_ahead = { blocks = 64, after = \
                \"every\" }\nown_scan = { every_ms = 400, ms = 20 }\nslow_head = { head = 3, percent = 20 }\nread_first = true\nhost_jitter_us = 30\nhost_jitter = \"measured-nbd\"\n";
    let text = DEFAULT.replacen("\nseek_noise_us = 0\n", "\nseek_noise_us = 60.5\n", 1);
    let text = text.replacen("seed = 1\n", told, 1);
    let config = parse(&text).unwrap();
    let BackEnd::Emulated(emulated) = &config.drives[0].back_end else {
        panic!("{:?}", config.drives[0].back_end);
    };
    let expected = Imperfections {
        seek_noise: Duration::from_nanos(60_500),
        settle_retry: Chance {
            per_million: 10_000,
            costs: Duration::from_micros(1_500),
        },
        held_look_ahead: HeldLookAhead {
            blocks: 64,
            after: AheadTrigger::EveryRead,
        },
        irregular_scan: Periodic {
            every: Duration::from_millis(400),
            costs: Duration::from_millis(20),
        },
        slow_head: Some(SlowHead {
            head: 3,
            slower_ppm: 200_000,
        }),
        unaligned_writes: UnalignedWrites::ReadFirst,
        host: HostJitter {
            measured: Some(MeasuredPath::Nbd),
            ..HostJitter::exponential(Duration::from_micros(30))
        },
        ..Imperfections::default()
    };
    assert_eq!(emulated.imperfections, expected);
    let plain = parse(DEFAULT).unwrap();
    let BackEnd::Emulated(plain) = &plain.drives[0].back_end else {
        panic!("{:?}", plain.drives[0].back_end);
    };
    assert_eq!(plain.imperfections, Imperfections::default());
}

#[test]
fn each_deviation_wrong_once_is_named() {
    for (from, to, complaint) in [
        (
            "seed = 1\n",
            "late_seeks = { permille = 1001, ms = 1 }\n",
            "drive[0].back_end.late_seeks.permille: 1001: expected a number from 0 to 1000",
        ),
        (
            "seed = 1\n",
            "held_ahead = { blocks = 64, after = \"never\" }\n",
            "drive[0].back_end.held_ahead.after: \"never\": expected one of \"same-track\", \"every\"",
        ),
        (
            "seed = 1\n",
            "own_scan = { every_ms = 0.5, ms = 1 }\n",
            "drive[0].back_end.own_scan.every_ms: 0.5: expected milliseconds, from 1 to 60000",
        ),
        (
            "seed = 1\n",
            "slow_head = { head = 3 }\n",
            "drive[0].back_end.slow_head.percent: missing key: expected a number of percent from 0 to 1000",
        ),
        (
            "seed = 1\n",
            "slow_head = { head = 3, percent = -1 }\n",
            "drive[0].back_end.slow_head.percent: -1: expected a number of percent from 0 to 1000",
        ),
        (
            "seed = 1\n",
            "read_first = \"on\"\n",
            "drive[0].back_end.read_first: \"on\": expected true or false",
        ),
        (
            "seed = 1\n",
            "host_jitter = \"nbd\"\n",
            "drive[0].back_end.host_jitter: \"nbd\": expected one of \"measured-nbd\", ",
        ),
        (
            "seed = 1\n",
            "host_jitter_us = -1\n",
            "drive[0].back_end.host_jitter_us: -1: expected microseconds",
        ),
    ] {
        complains(from, to, complaint);
    }
}
