//! Keys with units: the configuration is that of the number in the key's own unit.

use crate::parse;

/// A configuration in which these lines stand in the tables of their names.
fn with(drive: &str, more: &str) -> String {
    format!(
        "[[drive]]\nname = \"d\"\n{drive}\n[[drive.volume]]\nname = \"v\"\n[[drive.export]]\nname = \"e\"\n\
         volume = \"v\"\n{more}\n"
    )
}

fn emulated(keys: &str) -> String {
    format!(
        "[drive.back_end]\nkind = \"emulated\"\ndrive = \"dec-rz26\"\nimage = \"d.img\"\n{keys}"
    )
}

#[test]
fn keys_may_have_units() {
    let back_end = |keys: &str| with(&emulated(keys), "");
    let drive = |keys: &str| with(&format!("{keys}\n{}", emulated("")), "");
    let streams = |keys: &str| with(&format!("{}[drive.streams]\n{keys}", emulated("")), "");
    let rule = |rate: &str| streams(&format!("[[drive.streams.rule]]\nrate = {rate}"));
    let limits = |keys: &str| with(&emulated(""), &format!("[limits]\n{keys}"));
    let phases = |keys: &str| with(&format!("{}[drive.phases]\n{keys}", emulated("")), "");
    for (number, unit) in [
        (
            drive("impact_percent = 1.5"),
            drive("impact_percent = \"1.5 %\""),
        ),
        (
            back_end("bus_mb_s = 10"),
            back_end("bus_mb_s = \"10 MB/s\""),
        ),
        (
            back_end("bus_mb_s = 0.5"),
            back_end("bus_mb_s = \"500 kB/s\""),
        ),
        (
            back_end("seek_noise_us = 60"),
            back_end("seek_noise_us = \"0.06 ms\""),
        ),
        (
            back_end("own_scan = { every_ms = 400, ms = 20 }"),
            back_end("own_scan = { every_ms = \"0.4 s\", ms = \"20 ms\" }"),
        ),
        (
            streams("latency_ms = 10"),
            streams("latency_ms = \"10 ms\""),
        ),
        (
            streams("longest_round_s = 2"),
            streams("longest_round_s = \"2 s\""),
        ),
        (
            streams("seek_margin_us = 100"),
            streams("seek_margin_us = \"100 us\""),
        ),
        (
            streams("foreground_percent = 30"),
            streams("foreground_percent = \"30%\""),
        ),
        (rule("2500000"), rule("\"2.5 MB/s\"")),
        (
            limits("handshake_s = 120"),
            limits("handshake_s = \"2 minutes\""),
        ),
        (phases("read_ms = 2000"), phases("read_ms = \"2 s\"")),
    ] {
        let plain = parse(&number).unwrap_or_else(|error| panic!("{error}: {number}"));
        let said = parse(&unit).unwrap_or_else(|error| panic!("{error}: {unit}"));
        assert_eq!(plain, said, "{unit}");
    }
}

#[test]
fn a_unit_of_another_quantity_or_out_of_range_is_refused() {
    for (keys, key) in [
        ("bus_mb_s = \"10 ms\"", "bus_mb_s"),
        ("seek_noise_us = \"1 s\"", "seek_noise_us"),
        ("own_scan = { every_ms = \"1\", ms = \"5 %\" }", "ms"),
    ] {
        let error = parse(&with(&emulated(keys), "")).expect_err(keys);
        assert!(error.key.ends_with(key), "{keys}: {error}");
        assert!(error.problem.contains("expected"), "{keys}: {error}");
    }
    let seconds = with(&emulated(""), "[limits]\nhandshake_s = \"1500 ms\"");
    let error = parse(&seconds).expect_err("no whole number of seconds");
    assert!(error.problem.contains("whole number"), "{error}");
}
