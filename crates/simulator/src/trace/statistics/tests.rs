//! Statistics against a naive count, and against the published table of the shared traces.

use super::*;
use crate::trace::{ByteRange, Format, OnBad, TraceReader};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The records of a canonical trace, and their statistics.
fn statistics(text: &str) -> TraceSummary {
    let input = std::io::Cursor::new(text.as_bytes().to_vec());
    let mut reader = TraceReader::new("t", input, None, OnBad::Refuse).expect("canonical");
    let mut statistics = Statistics::default();
    for record in reader.by_ref() {
        statistics.add(&record.expect("good"));
    }
    statistics.summary(reader.devices()).expect("not empty")
}

#[test]
fn a_small_trace_by_hand() {
    let summary = statistics(
        "1,a,R,0,4096\n\
         1,a,R,4096,4096\n\
         1.5,b,W,4096,1024\n\
         4,a,W,4095,2\n",
    );
    assert_eq!(summary.requests, 4);
    assert_eq!((summary.reads, summary.read_percent), (2, 50.0));
    assert_eq!((summary.bytes, summary.read_bytes), (9218, 8192));
    assert_eq!(summary.footprint_bytes, 3 * 4096);
    assert_eq!(summary.span_seconds, 3.0);
    assert_eq!(summary.random_percent, 75.0);
    assert_eq!((summary.size_bytes.min, summary.size_bytes.max), (2, 4096));
    assert_eq!(summary.size_bytes.p50, 1024);
    assert_eq!(summary.size_bytes.mean, 2304.5);
    let gaps = summary.gap_nanos.expect("more than one request");
    assert_eq!((gaps.min, gaps.max), (0, 2_500_000_000));
    assert_eq!(gaps.mean, 1e9);
    let named: Vec<_> = summary
        .devices
        .iter()
        .map(|device| (device.name.as_str(), device.requests, device.end_byte))
        .collect();
    assert_eq!(named, [("a", 3, 8192), ("b", 1, 5120)]);
}

#[test]
fn an_end_is_forgotten_after_thirty_two_requests() {
    for (others, random) in [(31, 32), (32, 34)] {
        let mut text = String::from("0,a,R,0,8\n");
        for other in 0..others {
            text += &format!("0,b,R,{},8\n", 100 * other);
        }
        text += "0,a,R,8,8\n";
        let requests = others + 2;
        let expected = 100.0 * f64::from(random) / f64::from(requests);
        assert_eq!(statistics(&text).random_percent, expected, "{others}");
    }
}

proptest! {
    #[test]
    fn statistics_are_those_of_a_naive_count(
        requests in prop::collection::vec(
            (0..5_u64, 0..3_usize, any::<bool>(), 0..40_u64, 1..30_u64), 1..150),
    ) {
        let mut text = String::new();
        let mut now = 0;
        let mut pages = BTreeSet::new();
        let mut ends: Vec<(usize, u64)> = Vec::new();
        let mut random = 0;
        let mut bytes = 0;
        for &(gap, device, reads, start, length) in &requests {
            now += gap;
            let (start, length) = (start * 1024, length * 1024);
            let direction = if reads { 'R' } else { 'W' };
            text += &format!("{now},{device},{direction},{start},{length}\n");
            for byte in (start..start + length).step_by(512) {
                pages.insert((device, byte / 4096));
            }
            if !ends.iter().rev().take(32).any(|&end| end == (device, start)) {
                random += 1;
            }
            ends.push((device, start + length));
            bytes += length;
        }
        let summary = statistics(&text);
        prop_assert_eq!(summary.requests, requests.len() as u64);
        prop_assert_eq!(summary.bytes, bytes);
        prop_assert_eq!(summary.footprint_bytes, pages.len() as u64 * 4096);
        let expected = 100.0 * f64::from(random) / requests.len() as f64;
        prop_assert!((summary.random_percent - expected).abs() < 1e-9);
        let mut lengths: Vec<u64> = requests.iter().map(|request| request.4 * 1024).collect();
        lengths.sort_unstable();
        prop_assert_eq!(summary.size_bytes.p50, lengths[(lengths.len() - 1) / 2]);
    }
}

#[test]
fn the_largest_request_costs_little() {
    let mut statistics = Statistics::default();
    let bytes = ByteRange::new(1, crate::trace::MAX_REQUEST_BYTES).expect("the largest");
    statistics.add(&Record {
        at: Instant::ZERO,
        device: DeviceIndex::default(),
        direction: Direction::Read,
        bytes,
        owner: block::Owner::NOBODY,
        measured: None,
    });
    let pages = &statistics.devices[0].pages;
    assert_eq!(pages.len(), 1 << 20);
    assert!(pages.serialized_size() < 16 * 8192 + 1024);
}

/// The shared data, or `None` with a line that says so; missing data fails where everything must
/// run.
fn shared(below: &str) -> Option<PathBuf> {
    let root = std::env::var_os("HEADTIME_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join(below);
    if path.is_dir() {
        return Some(path);
    }
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "CI needs the shared data in {}", path.display());
    std::io::Write::write_all(
        &mut std::io::stderr(),
        format!("skipped: no {} (no shared data)\n", path.display()).as_bytes(),
    )
    .expect("standard error");
    None
}

/// A row of the table of shared/traces/README.md.
struct Row {
    name: &'static str,
    requests: u64,
    read_percent: f64,
    data_mb: f64,
    footprint_mb: f64,
    span_s: f64,
    random_percent: f64,
}

/// The table as it is published.
#[rustfmt::skip]
static TABLE: [Row; 8] = [
    row("websearch1_first24783",  24_783,  100.0, 382.0,    381.0,    60.0,      71.1),
    row("financial1_first10000",  10_000,  41.0,  55.0,     30.0,     260.0,     47.7),
    row("financial1_asu0_12h_4k", 153_566, 0.7,   1_017.0,  247.0,    43_178.0,  20.3),
    row("ms_dtrs_5min",           127_043, 89.0,  7_198.0,  5_211.0,  300.0,     15.3),
    row("hadoop_e10",             137_309, 99.0,  40_708.0, 40_705.0, 169.0,     9.8),
    row("mobile_youcut_exec",     313_826, 87.0,  33_455.0, 10_886.0, 1_098.0,   20.2),
    row("msr_web_3",              31_380,  32.0,  1_226.0,  634.0,    594_376.0, 40.1),
    row("diskmon_sys1",           58_818,  50.0,  1_404.0,  716.0,    1_205.0,   59.6),
];

const fn row(
    name: &'static str,
    requests: u64,
    read_percent: f64,
    data_mb: f64,
    footprint_mb: f64,
    span_s: f64,
    random_percent: f64,
) -> Row {
    Row {
        name,
        requests,
        read_percent,
        data_mb,
        footprint_mb,
        span_s,
        random_percent,
    }
}

#[test]
fn the_table_of_the_shared_traces_comes_out() {
    let Some(traces) = shared("traces") else {
        return;
    };
    for row in &TABLE {
        let path = traces.join(format!("{}.csv.zst", row.name));
        let mut reader = TraceReader::open(&path, None, OnBad::Refuse).expect("a trace");
        let mut statistics = Statistics::default();
        for record in reader.by_ref() {
            statistics.add(&record.expect("good"));
        }
        let ours = statistics.summary(reader.devices()).expect("not empty");
        assert_eq!(ours.requests, row.requests, "{}", row.name);
        let read_places = if row.read_percent < 1.0 { 1 } else { 0 };
        let footprint_mb = ours.footprint_bytes as f64 / 1e6;
        for (what, ours, table, places) in [
            ("read %", ours.read_percent, row.read_percent, read_places),
            ("data MB", ours.bytes as f64 / 1e6, row.data_mb, 0),
            ("footprint MB", footprint_mb, row.footprint_mb, 0),
            ("span s", ours.span_seconds, row.span_s, 0),
            ("random %", ours.random_percent, row.random_percent, 1),
        ] {
            let printed = rounded_as_published(ours, places);
            assert_eq!(printed, table, "{}: {what}: {ours}", row.name);
        }
    }
}

/// To one decimal, and from there to none: two figures of the table (a footprint of 10,885.46 MB
/// given as 10,886, data of 1,403.49 MB given as 1,404) show that it was rounded in two steps.
fn rounded_as_published(figure: f64, places: u32) -> f64 {
    let tenths = (figure * 10.0).round() / 10.0;
    match places {
        0 => tenths.round(),
        _ => tenths,
    }
}

#[test]
fn the_measured_traces_of_the_shared_drives_are_read_whole() {
    let Some(drives) = shared("drives") else {
        return;
    };
    // Requests with measured times, from the inventory in shared/drives/README.md.
    for (path, requests) in [
        ("dec_rz26/dec_rz26.trace", 7_980),
        ("hp_c2247a/hp_c2247a.trace", 9_999),
        ("hp_c3323a/hp_c3323a.trace", 9_074),
        ("ibm_dnes309170w_ultrastar18es/ibm18es.trace", 10_000),
        ("quantum_atlas10k_tornado/atlas10k.trace", 10_000),
        ("quantum_qm39100td_atlas3/atlas_III.trace", 10_000),
        ("seagate_st3146855fc_cheetah15k5/random.trace", 10_000),
        ("seagate_st39102lw_cheetah9lp/cheetah9LP.trace", 10_000),
        ("seagate_st41601n_elite/st41601n.trace", 9_999),
    ] {
        let path = drives.join(path);
        let reader = TraceReader::open(&path, None, OnBad::Refuse).expect("a trace");
        assert_eq!(reader.format().name, "validate");
        assert!(Format::by_extension(&path, |_| true).is_some());
        let records: Vec<Record> = reader.collect::<Result<_, _>>().expect("good");
        assert_eq!(records.len(), requests, "{}", path.display());
        assert!(records.iter().all(|record| record.measured.is_some()));
    }
}
