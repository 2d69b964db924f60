//! Whole loads: the built-in ones, properties of any, and what is refused.

use block::{Direction, Instant};
use proptest::prelude::*;

use super::*;
use crate::run::Load;

const BLOCKS: u64 = 17_783_240;

fn oltp() -> Workload {
    BuiltIn::find("oltp")
        .and_then(|load| load.workload().ok())
        .expect("a built-in load")
}

fn generator(workload: &Workload) -> Generator {
    Generator::new(workload, 512, BLOCKS).expect("it fits")
}

#[test]
fn built_in_loads_parse_fit_and_bear_the_name_of_their_file() {
    for built_in in ALL {
        let workload = built_in.workload().expect("a built-in load parses");
        assert_eq!(workload.name, built_in.name);
        assert!(!workload.summary.is_empty(), "{}", built_in.name);
        Generator::new(&workload, 512, BLOCKS).expect("a built-in load fits a 9 GB drive");
    }
}

#[test]
fn loads_say_what_they_are() {
    let said: Vec<String> = ALL
        .iter()
        .map(|built_in| built_in.workload().expect("it parses").to_string())
        .collect();
    assert_eq!(said.join("\n"), SAID);
}

#[test]
fn the_first_requests_of_each_built_in_load_are_golden() {
    let first: Vec<String> = ALL
        .iter()
        .map(|built_in| {
            let mut requests = generator(&built_in.workload().expect("it parses"));
            let (direction, extent) = requests.request();
            let (_, second) = requests.request();
            format!(
                "{} {direction:?} {}+{} {}+{} {}",
                built_in.name,
                extent.start().0,
                extent.length().0,
                second.start().0,
                second.length().0,
                requests.gap().as_nanos()
            )
        })
        .collect();
    assert_eq!(first.join("\n"), GOLDEN);
}

#[test]
fn the_paper_s_load_has_the_paper_s_figures() {
    let mut requests = generator(&oltp());
    let draws = 100_000u32;
    let (mut reads, mut blocks, mut first_half) = (0u32, 0, 0u32);
    for _ in 0..draws {
        let (direction, extent) = requests.request();
        reads += u32::from(direction == Direction::Read);
        blocks += extent.length().0;
        first_half += u32::from(extent.start().0 < BLOCKS / 2);
        assert!(extent.length().0.is_multiple_of(8));
    }
    // Standard deviations: 149 reads, 0.45 % of the mean size, 158 requests of a half.
    assert!((f64::from(reads) - 66_670.0).abs() < 600.0, "{reads}");
    assert!((blocks as f64 / f64::from(draws) / 16.0 - 1.0).abs() < 0.02);
    assert!((f64::from(first_half) - 50_000.0).abs() < 650.0);
    assert_eq!(requests.gap().as_nanos(), 30_000_000);
}

#[test]
fn another_read_share_or_size_leaves_the_places_alone() {
    let flags = Overrides {
        read_fraction: Some(0.1),
        rate: Some(5.0),
        ..Overrides::default()
    };
    let other = oltp().with(&flags).expect("sensible flags");
    let (mut a, mut b) = (generator(&oltp()), generator(&other));
    for _ in 0..1000 {
        assert_eq!(a.request().1, b.request().1);
    }
}

#[test]
fn arrivals_come_at_the_rate_asked_for() {
    for (gaps, tolerance) in [(Spread::Constant, 1e-9), (Spread::Exponential, 0.02)] {
        let mut load = oltp();
        load.arrivals = Arrivals::Open {
            per_second: 300.0,
            gaps,
        };
        let mut load = Synthetic::new(&load, 512, BLOCKS).expect("it fits");
        let mut last = Instant::ZERO;
        let arrivals = 60_000;
        for _ in 0..arrivals {
            let arrival = load.next_arrival().expect("no file").expect("never ends");
            assert!(arrival.at >= last);
            last = arrival.at;
        }
        let rate = f64::from(arrivals) / last.as_secs_f64();
        assert!((rate / 300.0 - 1.0).abs() < tolerance, "{gaps:?}: {rate}");
    }
}

#[test]
fn a_closed_load_begins_with_its_tasks_and_goes_on_with_answers() {
    let mut load = Synthetic::new(&oltp(), 512, BLOCKS).expect("it fits");
    let mut begun = 0;
    let mut last = None;
    while let Some(arrival) = load.next_arrival().expect("no file") {
        assert_eq!(arrival.at, Instant::ZERO);
        begun += 1;
        last = Some(arrival);
    }
    assert_eq!(begun, 10);
    let now = Instant::from_nanos(5);
    let next = load
        .on_skipped(now, &last.expect("ten arrivals"))
        .expect("no file")
        .expect("a closed load goes on");
    assert_eq!(next.at.as_nanos(), 30_000_005);
}

#[test]
fn what_makes_no_sense_is_refused_with_file_line_key_and_expectation() {
    for (old, new, complaint) in REFUSED {
        let text = ALL[0].text.replace(old, new);
        assert_ne!(text, ALL[0].text, "{old} is not in the file");
        let error = Workload::parse("load.toml", &text).expect_err(new);
        assert_eq!(error.to_string(), *complaint);
    }
}

#[test]
fn what_does_not_fit_the_drive_is_refused() {
    for (old, new, block_bytes, capacity, complaint) in UNFIT {
        let text = ALL[0].text.replace(old, new);
        let load = Workload::parse("load.toml", &text).expect("sensible in itself");
        let error = Generator::new(&load, *block_bytes, *capacity).expect_err(new);
        assert_eq!(error.to_string(), *complaint);
    }
}

#[test]
fn complaints_about_flags_name_the_flag() {
    let flags = |flags: Overrides| oltp().with(&flags).expect_err("senseless").to_string();
    assert_eq!(
        flags(Overrides {
            read_fraction: Some(1.5),
            ..Overrides::default()
        }),
        "command line: --read-fraction: 1.5: expected a number from 0 to 1"
    );
    assert_eq!(
        flags(Overrides {
            tasks: Some(0),
            ..Overrides::default()
        }),
        "command line: --tasks: 0: expected a number from 1 to 65536"
    );
    assert_eq!(
        flags(Overrides {
            tasks: Some(3),
            rate: Some(3.0),
            ..Overrides::default()
        }),
        "command line: --rate: a load is open (--rate) or closed (--tasks, --think-ms), not both"
    );
    let flags = Overrides {
        size_kib: Some(7.5),
        ..Overrides::default()
    };
    let load = oltp().with(&flags).expect("sensible in itself");
    let error = Generator::new(&load, 4096, 1000).expect_err("not whole blocks");
    assert_eq!(
        error.to_string(),
        "command line: --size-kib: 7680 bytes: expected whole blocks: \
         the drive has 1000 blocks of 4096 bytes"
    );
}

prop_compose! {
    fn any_sizes()(
        kind in 0..3, unit in prop::sample::select(vec![0.5, 4.0, 7.5, 64.0]), times in 1u32..20,
    ) -> String {
        let more = unit * f64::from(times);
        match kind {
            0 => format!("kind = \"fixed\"\nkib = {more}"),
            1 => format!("kind = \"exponential\"\nmean_kib = {more}\nmultiple_kib = {unit}"),
            _ => format!("kind = \"choice\"\nchoices = [\
                {{ kib = {unit}, weight = 9 }}, {{ kib = {more}, weight = {times} }}]"),
        }
    }
}

fn any_placement() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("kind = \"uniform\"".to_owned()),
        (0.0..3.0, 1..300u32)
            .prop_map(|(theta, n)| format!("kind = \"zipf\"\ntheta = {theta:.3}\nregions = {n}")),
        (1.0..90.0).prop_map(|mean| format!("kind = \"sequential\"\nmean_run = {mean:.2}")),
        (1..40u32).prop_map(|n| format!("kind = \"streams\"\nstreams = {n}")),
        (0.0..1.0, 1..900u32).prop_map(|(share, group)| format!(
            "kind = \"local\"\nshare = {share:.3}\ngroup_kib = {}",
            group * 32
        )),
    ]
}

proptest! {
    #[test]
    fn requests_keep_to_the_drive_the_alignment_and_the_seed(
        sizes in any_sizes(),
        placement in any_placement(),
        align in prop::sample::select(vec!["", "align_kib = 4\n", "align_kib = 32\n"]),
        (seed, capacity) in (any::<u32>(), 1u64..3_000_000),
    ) {
        let text = format!(
            "name = \"any\"\nseed = {seed}\n[arrivals]\nmodel = \"closed\"\ntasks = 1\n\
             [size]\n{sizes}\n[placement]\n{placement}\n{align}"
        );
        let load = Workload::parse("any.toml", &text).expect("sensible in itself");
        let (first, again) =
            (Generator::new(&load, 512, capacity), Generator::new(&load, 512, capacity));
        prop_assert_eq!(first.is_ok(), again.is_ok());
        let (Ok(mut first), Ok(mut again)) = (first, again) else { return Ok(()) };
        let unit = load.align_bytes.unwrap_or(512) / 512;
        for _ in 0..300 {
            let request = first.request();
            prop_assert_eq!(request, again.request());
            prop_assert!(request.1.end().0 <= capacity);
            prop_assert_eq!(request.1.start().0 % unit, 0);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z_\\[\\]{}=\", \n0-9.-]{0,200}") {
        let _ = Workload::parse("any.toml", &text);
    }
}

const REFUSED: &[(&str, &str, &str)] = &[
    (
        "tasks = 10",
        "tasks = 0",
        "load.toml:10: arrivals.tasks: 0: expected a whole number from 1 to 65536",
    ),
    (
        "tasks = 10",
        "tusks = 10",
        "load.toml:10: arrivals.tusks: unknown key; did you mean tasks?",
    ),
    (
        "tasks = 10",
        "",
        "load.toml:8: arrivals.tasks: missing: expected a whole number from 1 to 65536",
    ),
    (
        "think_ms = 30",
        "think_ms = -1",
        "load.toml:11: arrivals.think_ms: -1: expected a number from 0 to 86400000",
    ),
    (
        "think_ms = 30",
        "think_ms = nan",
        "load.toml:11: arrivals.think_ms: NaN: expected a number from 0 to 86400000",
    ),
    (
        "think_ms = 30",
        "think_ms = \"long\"",
        "load.toml:11: arrivals.think_ms: \"long\": expected milliseconds",
    ),
    (
        "think_ms = 30",
        "think = \"deep\"",
        "load.toml:11: arrivals.think: \"deep\": expected \"constant\" or \"exponential\"",
    ),
    (
        "think_ms = 30",
        "think_ms = 30\nthinks = 1",
        "load.toml:12: arrivals.thinks: unknown key: expected one of model, tasks, think_ms, think; did you mean think?",
    ),
    (
        "read_fraction = 0.6667",
        "read_fraction = 66.67",
        "load.toml:6: read_fraction: 66.67: expected a number from 0 to 1",
    ),
    (
        "mean_kib = 8",
        "mean_kib = 2",
        "load.toml:15: size.mean_kib: 2 KiB: expected at least multiple_kib, 4 KiB",
    ),
    (
        "mean_kib = 8",
        "mean_kib = 0.0001",
        "load.toml:15: size.mean_kib: 0.0001 KiB: expected a whole number of bytes, at least 1, at most 1073741824 KiB",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"everywhere\"",
        "load.toml:19: placement.kind: \"everywhere\": expected \"uniform\", \"zipf\", \"sequential\", \"streams\" or \"local\"",
    ),
    (
        "[placement]",
        "[place]",
        "load.toml: placement: missing: expected a table [placement]",
    ),
    (
        "[placement]",
        "[placement",
        "load.toml:18: not TOML: unclosed table, expected `]`",
    ),
    (
        "[arrivals]",
        "arrivals = 3\n[other]",
        "load.toml:8: arrivals: 3: expected a table [arrivals]",
    ),
    (
        "kind = \"exponential\"\nmean_kib = 8\nmultiple_kib = 4",
        "kind = \"choice\"\nchoices = [4, 8]",
        "load.toml:15: size.choices: 4: expected a list such as [{ kib = 4, weight = 3 }, { kib = 64, weight = 1 }]",
    ),
    (
        "kind = \"exponential\"\nmean_kib = 8\nmultiple_kib = 4",
        "kind = \"choice\"\nchoices = []",
        "load.toml:15: size.choices: empty: expected a list such as [{ kib = 4, weight = 3 }, { kib = 64, weight = 1 }]",
    ),
    (
        "kind = \"exponential\"\nmean_kib = 8\nmultiple_kib = 4",
        "kind = \"choice\"\nchoices = [{ kib = 4, weight = 0 }]",
        "load.toml:15: size.choices.weight: 0: expected a whole number from 1 to 65536",
    ),
];

const UNFIT: &[(&str, &str, u32, u64, &str)] = &[
    (
        "mean_kib = 8",
        "mean_kib = 8",
        512,
        1000,
        "load.toml:15: size.mean_kib: requests of up to 1024 blocks do not fit: the drive has 1000 blocks of 512 bytes",
    ),
    (
        "multiple_kib = 4",
        "multiple_kib = 2",
        4096,
        1 << 20,
        "load.toml:15: size.mean_kib: 2048 bytes: expected whole blocks: the drive has 1048576 blocks of 4096 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"uniform\"\nalign_kib = 0.75",
        512,
        1 << 20,
        "load.toml:20: placement.align_kib: 768 bytes: expected whole blocks: the drive has 1048576 blocks of 512 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"streams\"\nstreams = 2000",
        512,
        1 << 20,
        "load.toml:20: placement.streams: 2000 shares, some too small for a request of 1024 blocks: the drive has 1048576 blocks of 512 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"zipf\"\ntheta = 1\nregions = 60000\nalign_kib = 512",
        512,
        1 << 20,
        "load.toml:21: placement.regions: 60000 regions, some without a place in them: the drive has 1048576 blocks of 512 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"local\"\nshare = 0.5\ngroup_kib = 1.25",
        512,
        1 << 20,
        "load.toml:21: placement.group_kib: groups of 1280 bytes: expected a multiple of 512 bytes, at most the drive: the drive has 1048576 blocks of 512 bytes",
    ),
    (
        "kind = \"uniform\"",
        "kind = \"sequential\"\nmean_run = 4\nalign_kib = 8",
        512,
        1 << 20,
        "load.toml:21: placement.align_kib: requests of 4096 bytes do not keep to 8192 bytes: the drive has 1048576 blocks of 512 bytes",
    ),
];

const SAID: &str = "\
10 tasks thinking 30 ms; 66.67 % reads; 8 KiB on average in multiples of 4; anywhere
10 always outstanding; 66.67 % reads; 7.5 KiB; anywhere
1 always outstanding; 100 % reads; 4 KiB; anywhere
60 a second, Poisson; 70 % reads; 4 KiB; 1024 regions, popularity rank^-0.9
1 always outstanding; 100 % reads; 64 KiB; runs of 64 on average
8 always outstanding; 100 % reads; 256 KiB; 8 streams in turn
16 tasks thinking 10 ms on average; 60 % reads; 50 x 4 KiB, 25 x 16 KiB, 20 x 64 KiB, 5 x 256 KiB; \
70 % within the 64 MiB of the last one";

const GOLDEN: &str = "\
oltp Read 8122802+8 15775298+16 30000000\n\
random Read 8122799+15 15775299+15 0\n\
uniform-4k Read 8122800+8 15775304+8 0\n\
zipf Read 8629160+8 7173912+8 10614409\n\
sequential Read 15775200+128 15775328+128 0\n\
streams Read 0+512 2222912+512 0\n\
mixed Read 116272+32 1607432+8 6368645";
