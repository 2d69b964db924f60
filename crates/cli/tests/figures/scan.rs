//! `headtime simulate --scan` as a whole binary: what it promises in JSON, what it costs, that what
//! is left is gone on with, and what it refuses.

use crate::scene::{Scene, keys};
use serde_json::Value;

/// A drive that is known exactly: its bus is no bottleneck, and writes end on the medium.
const ATLAS: &str =
    "simulate --drive quantum-atlas-10k --write-cache off --bus-mb-s 80 --workload oltp";

/// Ten always pending.
const BUSY: &str = "--think-ms 0 --policy sptf-sw60";

/// The drive has 17,938,986 blocks; these are enough for a few hundred requests.
const SOME: &str = "--scan 0..20000";

fn number(object: &Value, name: &str) -> f64 {
    let value = object[name].as_f64();
    value.unwrap_or_else(|| panic!("{name} of {object}"))
}

/// The figures that are promised, all numbers.
fn check_promised(figures: &Value) {
    for name in ["free_mb_s", "idle_mb_s", "paid_mb_s"] {
        assert!(number(figures, name) >= 0.0, "{name}");
    }
    for part in [figures, &figures["baseline"]] {
        for name in ["foreground_mean_ms", "foreground_p99_ms"] {
            assert!(number(part, name) > 0.0, "{name}");
        }
    }
    assert_eq!(
        keys(&figures["baseline"]),
        ["foreground_mean_ms", "foreground_p99_ms"]
    );
}

#[test]
fn json_has_what_is_promised_at_the_top_with_one_policy_and_by_policy_always() {
    let scene = Scene::with(&[]);
    let one = scene.json(&format!("{ATLAS} {BUSY} {SOME} --requests 300"));
    check_promised(&one);
    check_promised(&one["results"][0]["scan"]);
    assert_eq!(one["free_mb_s"], one["results"][0]["scan"]["free_mb_s"]);
    let two = format!("{ATLAS} --think-ms 0 --policy sptf,sstf {SOME} --requests 300");
    let two = scene.json(&two);
    assert!(two.get("free_mb_s").is_none() && two.get("baseline").is_none());
    for result in [0, 1] {
        check_promised(&two["results"][result]["scan"]);
    }
    let none = scene.json(&format!("{ATLAS} {BUSY} --requests 300"));
    assert!(none.get("free_mb_s").is_none() && none["results"][0].get("scan").is_none());
}

#[test]
fn in_firmware_a_scan_is_free() {
    let scene = Scene::with(&[]);
    for policy in ["sptf", "sptf-sw60", "sstf"] {
        let load = format!("{ATLAS} --think-ms 0 --policy {policy}");
        let json = scene.json(&format!("{load} --scan --scan-until 2"));
        assert_eq!(json["mode"], "in-firmware");
        let loss = number(&json, "foreground_mean_ms")
            / number(&json["baseline"], "foreground_mean_ms")
            - 1.0;
        assert!(loss.abs() < 0.005, "{policy}: {loss}");
        assert!(number(&json, "free_mb_s") > 2.0, "{policy}: {json}");
        assert_eq!(json["idle_mb_s"], 0.0, "it is never idle");
        assert_eq!(json["paid_mb_s"], 0.0, "nothing was granted");
        let (wanted, left) = (number(&json, "wanted_blocks"), number(&json, "left_blocks"));
        let share = (wanted - left) / wanted;
        assert!(
            (0.02..0.022).contains(&share),
            "{share} of the scan is read"
        );
        assert_eq!(json["progress"].as_array().map(Vec::len), Some(2));
    }
}

/// A belief that was profiled from timings alone: the scan goes on, and costs what its guard may cost.
#[test]
fn with_a_profiled_belief_a_scan_is_external_and_costs_no_more_than_its_budget() {
    let scene = Scene::with(&[]);
    scene.prints("profile --drive seagate-cheetah-18lp --seed 3 -o found.toml");
    let load = "simulate --drive seagate-cheetah-18lp --write-cache off --look-ahead off --bus-mb-s 80 \
                --seek-noise-us 60 --workload oltp --think-ms 0 --policy sptf-sw60 \
                --scan --scan-until 10 --guard learned --impact-percent 1 --belief found.toml";
    let json = scene.json(load);
    assert_eq!(json["mode"], "external");
    assert_eq!(json["truth"]["belief"], "found.toml");
    check_promised(&json);
    // The guard's budget is 1 %. The loss of a run this short scatters by 0.1 points, so several loads are taken.
    let losses = [1, 2, 3, 4, 5, 6].map(|seed| {
        let json = scene.json(&format!("{load} --seed {seed}"));
        let baseline = number(&json["baseline"], "foreground_mean_ms");
        number(&json, "foreground_mean_ms") / baseline - 1.0
    });
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean < 0.01, "{losses:?}");
    assert!(number(&json, "free_mb_s") > 1.5, "{json}");
    let (wanted, left) = (number(&json, "wanted_blocks"), number(&json, "left_blocks"));
    assert!((wanted - left) / wanted >= 0.1, "{left} of {wanted} left");
    assert_eq!(json["results"][0]["tracking"]["mode"], "positioning");
    // Of another drive it is no belief.
    let other = scene.run("simulate --drive dec-rz26 --workload oltp --scan --belief found.toml");
    assert_eq!(other.status.code(), Some(2), "{other:?}");
}

#[test]
fn a_load_that_pauses_leaves_idle_time_and_a_set_of_several_ranges_is_all_read() {
    let scene = Scene::with(&[]);
    let ranges = "--scan 0..5000,9000000..9010000,17938900..17938986";
    let slow = format!("{ATLAS} --rate 5 --requests 50 {ranges}");
    let json = scene.json(&format!("{slow} --idle-ms 20"));
    assert!(
        number(&json, "idle_mb_s") > number(&json, "free_mb_s"),
        "{json}"
    );
    assert_eq!(json["wanted_blocks"], 15_086);
    assert_eq!(json["left_blocks"], 0);
    assert_eq!(json["state"], "finished");
    let never = scene.json(&format!("{slow} --idle-ms never"));
    assert_eq!(never["idle_mb_s"], 0.0);
    assert_ne!(never["left_blocks"], 0);
}

#[test]
fn granted_head_time_is_spent_and_no_more_of_it() {
    let scene = Scene::with(&[]);
    let json = scene.json(&format!(
        "{ATLAS} {BUSY} --scan --scan-until 2 --paid-percent 10"
    ));
    assert!(number(&json, "paid_mb_s") > 0.5, "{json}");
    let loss = number(&json, "foreground_loss_percent");
    assert!(
        (2.0..13.0).contains(&loss),
        "{loss} % for a tenth of head time"
    );
    // A deadline that is met anyway costs nothing.
    let early = format!("{ATLAS} {BUSY} {SOME} --requests 300 --paid-percent 10");
    let json = scene.json(&format!("{early} --deadline 100000000"));
    assert_eq!(json["paid_mb_s"], 0.0, "{json}");
}

#[test]
fn what_is_left_is_gone_on_with_and_nothing_is_lost_in_between() {
    let scene = Scene::with(&[]);
    // Requests far apart: when a read in idle time reaches the end, the next is at the drive.
    let slow = format!("{ATLAS} --rate 5 --requests 200 --idle-ms 5");
    let first = scene.json(&format!(
        "{slow} --scan 0..200000 --scan-until 30 --scan-left left.set"
    ));
    assert_eq!(first["state"], "active");
    let read = |json: &Value| {
        let all = ["free_blocks", "idle_blocks", "paid_blocks"].map(|name| number(json, name));
        all.iter().sum::<f64>()
    };
    assert_eq!(
        read(&first) + number(&first, "left_blocks"),
        200_000.0,
        "what is at the drive at the end is read"
    );
    let second = scene.json(&format!(
        "{slow} --scan-from left.set --scan-left none.set --after-load finish"
    ));
    assert_eq!(second["wanted_blocks"], first["left_blocks"]);
    assert_eq!(second["state"], "finished");
    assert_eq!(read(&first) + read(&second), 200_000.0);
    // What was said to be read was: bandwidth and time give the same blocks.
    let end = second["progress"]
        .as_array()
        .and_then(|all| all.last())
        .expect("its end");
    let rate = number(&second, "free_mb_s") + number(&second, "idle_mb_s");
    let blocks = rate * number(end, "seconds") * 1e6 / 512.0;
    assert!(
        (blocks / read(&second) - 1.0).abs() < 0.01,
        "{blocks} blocks in {second}"
    );
    assert_eq!(
        scene.refuses(&format!("{slow} --scan-from none.set")),
        "none.set: everything was read: expected a file with blocks that are left"
    );
}

#[test]
fn a_trace_is_served_beside_a_scan() {
    let lines: String = (0..300)
        .map(|n| {
            format!(
                "{}.{:03},0,R,{},4096\n",
                n / 100,
                n * 10 % 1000,
                n * 7919 % 1000 * 1_048_576
            )
        })
        .collect();
    let scene = Scene::with(&[("t.csv", &lines)]);
    let on = "simulate --drive quantum-atlas-10k --bus-mb-s 80 --trace t.csv --policy sptf";
    for pace in ["", "--closed=8"] {
        let json = scene.json(&format!("{on} {pace} --scan"));
        check_promised(&json);
        assert!(number(&json, "free_mb_s") > 0.0, "{json}");
        assert_eq!(json["results"][0]["all"]["requests"], 300);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let scene = Scene::with(&[]);
    let load = format!("{ATLAS} {BUSY} {SOME} --requests 500 --seek-noise-us 60");
    for form in ["", "--json"] {
        let run = |seed| scene.prints(&format!("{load} --seed {seed} {form}"));
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
    let left = |name: &str| {
        scene.prints(&format!("{load} --scan-left {name}"));
        std::fs::read(scene.path(name)).expect("written")
    };
    assert_eq!(left("one.set"), left("two.set"));
}

#[test]
fn the_report_has_the_scan_beside_the_load_without_it() {
    let report = Scene::with(&[]).prints(&format!("{ATLAS} {BUSY} --scan --scan-until 1"));
    for part in [
        "in the background of sptf-sw60",
        "of 17,938,986 blocks read (1.0 %), active",
        "MB/s            free ",
        "free by part    at the start ",
        "(without the scan ",
        "learned; reads ",
        " not worth it, ",
    ] {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
}

#[test]
fn a_fixed_guard_is_what_was_said_and_fewer_plans_fail_with_it() {
    let scene = Scene::with(&[]);
    let load = format!("{ATLAS} {BUSY} --scan --scan-until 1 --seek-noise-us 150");
    let run = |guard: &str| scene.json(&format!("{load} --guard {guard}"));
    let (none, large) = (run("0"), run("0.5"));
    assert_eq!(large["guard"]["rule"], "fixed");
    assert_eq!(
        large["guard"]["guards_us"],
        serde_json::json!([500.0, 500.0, 500.0, 500.0])
    );
    let failed = |json: &Value| number(&json["gaps"], "mispredicted");
    assert!(failed(&none) > 10.0 * failed(&large), "{none} {large}");
    let learned = run("learned --impact-percent 1");
    assert_eq!(learned["guard"]["impact_budget_percent"], 1.0);
    assert!(failed(&learned) < failed(&none) / 4.0, "{learned}");
}

#[test]
fn the_drive_s_own_queue_is_scanned_beside_where_it_keeps_the_order() {
    let scene = Scene::with(&[]);
    let in_order = format!("{ATLAS} --think-ms 0 --policy drive --scan --scan-until 1");
    let json = scene.json(&in_order);
    assert!(
        number(&json, "foreground_loss_percent").abs() < 0.5,
        "{json}"
    );
    let modern = "simulate --drive modern-20tb --workload modern --policy drive --scan";
    let said = scene.refuses(&format!("{modern} --requests 100"));
    assert_eq!(
        said,
        "--policy drive: modern-20tb puts its queue in an order of its own, in which no read is \
         free: expected --depth 2 or another policy with a scan"
    );
    check_promised(&scene.json(&format!("{modern} --requests 100 --depth 2")));
}

/// What is given after the drive and the load, and how the complaint begins.
const REFUSED: &[(&str, &str)] = &[
    (
        "--scan 17938980..17938987",
        "--scan 17938980..17938987: blocks 17938980..17938987 of a drive of 17938986 blocks: \
         expected an extent that ends on the drive",
    ),
    (
        "--scan 0..10,99999999999..100000000000",
        "--scan 99999999999..100000000000: blocks ",
    ),
    ("--scan 20..10", "--scan 20..10: expected FIRST..END"),
    ("--scan 10..10", "--scan 10..10: expected FIRST..END"),
    ("--scan 10", "--scan 10: expected FIRST..END"),
    ("--scan=-5..10", "--scan -5..10: expected FIRST..END"),
    ("--scan 0..10,", "--scan : expected FIRST..END"),
    (
        "--scan 0..18446744073709551616",
        "--scan 0..18446744073709551616: expected FIRST..END",
    ),
    (
        "--scan --deadline 0",
        "--deadline 0: it has passed when the scan begins",
    ),
    (
        "--scan --deadline -1",
        "--deadline -1: expected seconds to come",
    ),
    (
        "--scan --deadline nan",
        "--deadline NaN: expected seconds to come",
    ),
    (
        "--scan --deadline inf",
        "--deadline inf: expected seconds to come",
    ),
    (
        "--scan --deadline 1e-12",
        "--deadline 0.000000000001: it has passed",
    ),
    (
        "--scan --paid-percent 101",
        "--paid-percent 101: expected a share of head time, 0 to 100",
    ),
    (
        "--scan --paid-percent -1",
        "--paid-percent -1: expected a share",
    ),
    (
        "--scan --paid-percent nan",
        "--paid-percent NaN: expected a share",
    ),
    (
        "--scan --impact-percent 100.5",
        "--impact-percent 100.5: expected a share of the mean",
    ),
    (
        "--scan --impact-percent 0",
        "--impact-percent 0: expected a share of the mean",
    ),
    (
        "--scan --impact-percent -1",
        "--impact-percent -1: expected",
    ),
    (
        "--scan --impact-percent nan",
        "--impact-percent NaN: expected",
    ),
    (
        "--scan --impact-percent 1 --guard 0.3",
        "--impact-percent: a fixed guard keeps to no budget",
    ),
    (
        "--scan --guard soft",
        "--guard soft: expected milliseconds, or learned",
    ),
    ("--scan --guard -0.1", "--guard -0.1: expected milliseconds"),
    ("--scan --guard nan", "--guard NaN: expected milliseconds"),
    (
        "--scan --guard 1000",
        "--guard 1000: expected milliseconds, or learned, 0 to 60",
    ),
    (
        "--scan --near-miss-us 10",
        "--near-miss-us: a learned guard finds out itself",
    ),
    (
        "--scan --guard 0.3 --near-miss-us -1",
        "--near-miss-us -1: expected microseconds",
    ),
    (
        "--scan --idle-ms soon",
        "--idle-ms soon: expected milliseconds, or never",
    ),
    ("--scan --idle-ms -1", "--idle-ms -1: expected milliseconds"),
    ("--scan --stops 0", "invalid value '0' for '--stops"),
    ("--scan --stops 99", "invalid value '99' for '--stops"),
    (
        "--scan --scan-until 0",
        "invalid value '0' for '--scan-until",
    ),
    (
        "--scan --scan-until 101",
        "invalid value '101' for '--scan-until",
    ),
    (
        "--scan --after-load wait",
        "invalid value 'wait' for '--after-load",
    ),
    ("--scan --policy lifo", "no policy is called \"lifo\""),
    (
        "--scan --depth 1",
        "--depth 1: a scan's reads are given while another command is in service",
    ),
    (
        "--scan --scan-from left.set",
        "the argument '--scan [<BLOCKS>]' cannot be used with",
    ),
    (
        "--scan --policy sptf,sstf --scan-left x",
        "--scan-left writes one file: expected one policy",
    ),
    (
        "--scan --scan-left load.toml --workload load.toml",
        "--scan-left load.toml: used for something",
    ),
    (
        "--scan-from left.set --scan-left ./left.set",
        "--scan-left ./left.set: used for something",
    ),
    (
        "--scan --scan-left x --svg x",
        "--scan-left x: used for something",
    ),
    ("--scan --scan-left folder", "folder: "),
    (
        "--guard 0.3",
        "--guard: nothing is scanned: expected --scan, too",
    ),
    ("--same-track", "--same-track: nothing is scanned"),
    ("--scan-left x", "--scan-left: nothing is scanned"),
    ("--deadline 5", "--deadline: nothing is scanned"),
    ("--paid-percent 0", "--paid-percent: nothing is scanned"),
    ("--scan-until 5", "--scan-until: nothing is scanned"),
    ("--after-load stop", "--after-load: nothing is scanned"),
    ("--scan-from nowhere.set", "nowhere.set: No such file"),
    ("--scan-from folder", "folder: "),
    ("--scan-from empty.set", "empty.set: byte 0: "),
    (
        "--scan-from garbage.set",
        "garbage.set: byte 0: these bytes are not a set of wanted blocks: expected \"HTWANTED\"",
    ),
    ("--scan-from cut.set", "cut.set: byte "),
    ("--scan-from flipped.set", "flipped.set: byte "),
    (
        "--scan-from other.set",
        "other.set: byte 12: wanted blocks of a drive of 17783240 blocks: expected one of 17938986",
    ),
    ("--phases turns", "invalid value 'turns' for '--phases"),
];

#[test]
fn what_makes_no_sense_is_refused_in_one_line_and_leaves_nothing() {
    let scene = Scene::with(&[
        ("empty.set", ""),
        ("garbage.set", "garbage, not a set of blocks"),
    ]);
    std::fs::create_dir(scene.path("folder")).expect("a folder");
    let load = include_str!("../../../../workloads/uniform-4k.toml");
    std::fs::write(scene.path("load.toml"), load).expect("written");
    let set = "--workload oltp --requests 20 --scan 5..900,2000..3000 --scan-left";
    scene.prints(&format!(
        "simulate --drive quantum-atlas-10k {set} left.set"
    ));
    scene.prints(&format!(
        "simulate --drive seagate-cheetah-9lp {set} other.set"
    ));
    let good = std::fs::read(scene.path("left.set")).expect("written");
    std::fs::write(scene.path("cut.set"), &good[..good.len() - 9]).expect("written");
    let mut flipped = good.clone();
    flipped[22] ^= 1;
    std::fs::write(scene.path("flipped.set"), flipped).expect("written");
    let files = || {
        let entries = scene.path("").read_dir().expect("a folder");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    };
    let before = files();
    for (flags, begin) in REFUSED {
        let load = match flags.contains("--workload") {
            true => "",
            false => "--workload oltp",
        };
        let on = format!("simulate --drive quantum-atlas-10k {load} --requests 20");
        let said = scene.refuses(&format!("{on} {flags}"));
        assert!(said.starts_with(begin), "{flags}: {said}\nnot\n{begin}");
        assert_eq!(files(), before, "{flags}");
    }
    assert_eq!(std::fs::read(scene.path("left.set")).expect("there"), good);
}

#[test]
fn drives_that_cannot_be_scanned_beside_a_load_are_refused() {
    let scene = Scene::with(&[]);
    let refused = scene.refuses("simulate --drive hitachi-travelstar-80gn --workload oltp --scan");
    let said = "--scan on hitachi-travelstar-80gn: it holds one command";
    assert!(refused.starts_with(said), "{refused}");
}
