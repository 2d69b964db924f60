//! Whole loads: the built-in ones, properties of any, and what is refused.

use block::{Class, Direction, Duration, Finished, Instant, Owner, Request, RequestId, Status};
use proptest::prelude::*;

use super::*;
use crate::load::{Load, LoadPart};

mod refused;

const BLOCKS: u64 = 17_783_240;

fn oltp() -> Workload {
    BuiltInWorkload::find("oltp")
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

/// Numbers of a load may have units: the load is that of the numbers alone.
#[test]
fn quantities_of_a_load_may_have_units() {
    let text = |fraction: &str, think: &str, sizes: [&str; 4]| {
        let [mean, multiple, group, align] = sizes;
        format!(
            "name = \"units\"\nread_fraction = {fraction}\n[arrivals]\nmodel = \"closed\"\ntasks = 3\n\
             think_ms = {think}\n[size]\nkind = \"exponential\"\nmean_kib = {mean}\nmultiple_kib = {multiple}\n\
             [placement]\nkind = \"local\"\nshare = {fraction}\ngroup_kib = {group}\nalign_kib = {align}\n"
        )
    };
    let plain = text("0.67", "500", ["8", "4", "1024", "4"]);
    let said = text(
        "\"67 %\"",
        "\"0.5 s\"",
        ["\"8 KiB\"", "\"4096 B\"", "\"1 MiB\"", "\"4KiB\""],
    );
    let parsed = |text: &str| Workload::parse("units.toml", text).expect("a load");
    let [plain, said] = [parsed(&plain), parsed(&said)];
    assert_eq!(plain.to_string(), said.to_string());
    assert_eq!(
        (
            plain.sizes,
            plain.placement,
            plain.arrivals,
            plain.read_fraction,
            plain.align_bytes
        ),
        (
            said.sizes,
            said.placement,
            said.arrivals,
            said.read_fraction,
            said.align_bytes
        )
    );
    let wrong = text("0.67", "\"5 MB\"", ["8", "4", "1024", "4"]);
    let refused = Workload::parse("units.toml", &wrong).expect_err("a size");
    assert!(
        refused.to_string().contains("expected milliseconds"),
        "{refused}"
    );
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
        assert_eq!(arrival.demand.owner, Owner::process(begun));
        last = Some(arrival);
    }
    assert_eq!(begun, 10);
    let now = Instant::from_nanos(5);
    let next = load
        .on_skipped(now, &last.expect("ten arrivals"))
        .expect("no file")
        .expect("a closed load goes on");
    assert_eq!(next.at.as_nanos(), 30_000_005);
    assert_eq!(next.demand.owner, Owner::process(10), "it is the same task");
}

#[test]
fn a_closed_load_of_files_thinks_between_files_only() {
    let load = BuiltInWorkload::find("small-files").and_then(|load| load.workload().ok());
    let mut load = load.expect("a built-in load");
    load.arrivals = Arrivals::Closed {
        tasks: 1,
        think_ms: 5.0,
        think: Spread::Constant,
    };
    let mut load = Synthetic::new(&load, 512, BLOCKS).expect("it fits");
    let first = load.next_arrival().expect("no file").expect("one task");
    assert_eq!(load.next_arrival().expect("no file"), None);
    let mut extent = first.demand.extent;
    let mut gaps = Vec::new();
    for at in 0..6 {
        let now = Instant::from_nanos(at);
        let finished = Finished {
            request: Request {
                id: RequestId(0),
                direction: Direction::Read,
                extent,
                class: Class::default(),
                durability: block::Durability::Volatile,
                owner: Owner::process(7),
            },
            submitted: now,
            at: now,
            status: Status::Good,
            waited: Duration::ZERO,
            waited_order: Duration::ZERO,
            account: None,
        };
        let next = load
            .on_finished(now, LoadPart::ONLY, &finished)
            .expect("no file");
        let next = next.expect("a closed load goes on");
        assert_eq!(next.demand.owner, Owner::process(7), "the task goes on");
        gaps.push(next.at.since(now).as_nanos());
        extent = next.demand.extent;
    }
    // Entry, inode, contents; nothing is in memory at the beginning.
    assert_eq!(gaps, [0, 0, 5_000_000, 0, 0, 5_000_000]);
}

prop_compose! {
    fn any_sizes()(
        kind in 0..4, unit in prop::sample::select(vec![0.5, 4.0, 7.5, 64.0]), times in 1u32..20,
    ) -> String {
        let more = unit * f64::from(times);
        match kind {
            0 => format!("kind = \"fixed\"\nkib = {more}"),
            1 => format!("kind = \"exponential\"\nmean_kib = {more}\nmultiple_kib = {unit}"),
            2 => format!("kind = \"uniform\"\nfrom_kib = {unit}\nto_kib = {more}\n\
                multiple_kib = {unit}"),
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
    fn files_keep_to_the_drive_the_blocks_of_their_system_and_the_seed(
        (directories, files, cached) in (1..300u32, 1..100u32, 1..200u32),
        (kib, block_kib) in (1..40u32, prop::sample::select(vec![0.5, 4.0, 16.0])),
        (group_kib, every) in (64..40_000u32, 1..64u32),
        (seed, capacity, tasks) in (any::<u32>(), 1u64..3_000_000, 1usize..5),
    ) {
        let text = format!(
            "name = \"any\"\nseed = {seed}\nread_fraction = 0.5\n\
             [arrivals]\nmodel = \"closed\"\ntasks = 1\n[size]\nkind = \"fixed\"\nkib = {kib}\n\
             [placement]\nkind = \"small-files\"\ndirectories = {directories}\n\
             files_per_directory = {files}\nfs_block_kib = {block_kib:.1}\n\
             group_kib = {}\ninode_bytes = 128\ninode_every_kib = {every}\n\
             cached_blocks = {cached}\n",
            group_kib * 16
        );
        let load = Workload::parse("any.toml", &text).expect("sensible in itself");
        let (first, again) =
            (Generator::new(&load, 512, capacity), Generator::new(&load, 512, capacity));
        prop_assert_eq!(first.is_ok(), again.is_ok());
        let (Ok(mut first), Ok(mut again)) = (first, again) else { return Ok(()) };
        let unit = (block_kib * 2.0) as u64;
        let mut asked = std::collections::VecDeque::new();
        for _ in 0..300 {
            if asked.len() < tasks {
                let request = first.request();
                prop_assert_eq!(request, again.request());
                asked.push_back(request.1);
            }
            let ended = asked.pop_front().expect("at least one was asked for");
            prop_assert!(ended.end().0 <= capacity);
            prop_assert_eq!((ended.start().0 % unit, ended.length().0 % unit), (0, 0));
            let step = first.after(ended);
            prop_assert_eq!(step, again.after(ended));
            asked.extend(step.map(|(_, extent)| extent));
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z_\\[\\]{}=\", \n0-9.-]{0,200}") {
        let _ = Workload::parse("any.toml", &text);
    }
}

const SAID: &str = "\
10 tasks thinking 30 ms; 66.67 % reads; 8 KiB on average in multiples of 4; anywhere
10 always outstanding; 66.67 % reads; 7.5 KiB; anywhere
1 always outstanding; 100 % reads; 4 KiB; anywhere
60 a second, Poisson; 70 % reads; 4 KiB; 1024 regions, popularity rank^-0.9
1 always outstanding; 100 % reads; 64 KiB; runs of 64 on average
8 always outstanding; 100 % reads; 256 KiB; 8 streams in turn
16 tasks thinking 10 ms on average; 60 % reads; 50 x 4 KiB, 25 x 16 KiB, 20 x 64 KiB, 5 x 256 KiB; \
70 % within the 64 MiB of the last one
16 always outstanding; 66.67 % reads; 4 to 64 KiB in multiples of 4; anywhere
1 always outstanding; 100 % reads; 3 KiB; files in 2000 directories of 50, groups of 128 MiB, \
1024 blocks of metadata in memory
1 always outstanding; 66.67 % reads; 256 KiB; anywhere
1 always outstanding; 66.67 % reads; 8 KiB; 70 % within the 16 MiB of the last one";

const GOLDEN: &str = "\
oltp Read 8122802+8 15775298+16 30000000\n\
random Read 8122799+15 15775299+15 0\n\
uniform-4k Read 8122800+8 15775304+8 0\n\
zipf Read 8629160+8 7173912+8 10614409\n\
sequential Read 15775200+128 15775328+128 0\n\
streams Read 0+512 2222912+512 0\n\
mixed Read 116272+32 1607432+8 6368645\n\
modern Read 8122768+88 15775272+48 0\n\
small-files Read 11019480+8 8403344+8 0\n\
random-256k Read 8122568+512 15774864+512 0\n\
local-small Read 29064+16 1607432+16 0";
