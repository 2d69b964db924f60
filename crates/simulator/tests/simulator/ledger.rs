//! The ledger against figures computed from all requests at once, and the lines it writes.

use block::{
    Account, BufferHit, Class, Direction, Duration, Extent, Finished, Instant, Lba, Request,
    RequestId, Sectors, Status,
};
use proptest::prelude::*;
use simulator::ledger::{Ledger, ResponseTimes, RunTotals};
use simulator::requests_file::{RequestsFile, RequestsFormat};
use simulator::run::{LoadPart, Watch};

fn finished(number: u64, direction: Direction, submitted: u64, waited: u64, seek: u64) -> Finished {
    Finished {
        request: Request {
            id: RequestId(number),
            direction,
            extent: Extent::new(Lba(100), Sectors(8)).expect("a valid extent"),
            class: Class::default(),
            durability: block::Durability::Volatile,
            owner: block::Owner::NOBODY,
        },
        submitted: Instant::from_nanos(submitted),
        at: Instant::from_nanos(submitted + waited + seek),
        status: Status::Good,
        waited_order: Duration::ZERO,
        waited: Duration::from_nanos(waited),
        account: Some(Account {
            seek: Duration::from_nanos(seek),
            hit: BufferHit::Partial,
            ..Account::default()
        }),
    }
}

/// What a ledger should say of these responses, from the sorted list.
fn check(response: &ResponseTimes, mut nanos: Vec<u64>) {
    nanos.sort_unstable();
    let n = nanos.len();
    let mean = nanos.iter().sum::<u64>() as f64 / n as f64;
    let squares = nanos.iter().map(|&x| (x as f64 - mean).powi(2));
    let deviation = (squares.sum::<f64>() / n as f64).sqrt();
    assert!((response.mean_ms * 1e6 - mean).abs() <= 0.51, "mean");
    assert!(
        (response.deviation_ms * 1e6 - deviation).abs() <= 0.51 + deviation * 1e-9,
        "deviation"
    );
    assert_eq!(response.min_ms, nanos[0] as f64 / 1e6);
    assert_eq!(response.max_ms, nanos[n - 1] as f64 / 1e6);
    for (share, value) in [
        (0.5, response.p50_ms),
        (0.9, response.p90_ms),
        (0.95, response.p95_ms),
        (0.99, response.p99_ms),
        (0.999, response.p999_ms),
    ] {
        let rank = ((n as f64 * share).ceil() as usize).clamp(1, n);
        let exact = nanos[rank - 1] as f64;
        // Three digits, and a microsecond below which nothing is told apart.
        assert!(
            (value * 1e6 - exact).abs() <= exact * 1e-3 + 1000.0,
            "{share}: {value} {exact}"
        );
    }
}

proptest! {
    #[test]
    fn means_percentiles_and_phases_are_those_of_the_list(
        requests in prop::collection::vec(
            (any::<bool>(), 0..10_000_000_000u64, 0..40_000_000u64, 1..90_000_000u64), 1..300),
    ) {
        let mut ledger = Ledger::new(512, 1);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (number, &(write, submitted, waited, seek)) in requests.iter().enumerate() {
            let (direction, side) = match write {
                true => (Direction::Write, &mut writes),
                false => (Direction::Read, &mut reads),
            };
            ledger.record(LoadPart::ONLY, &finished(number as u64, direction, submitted, waited, seek));
            side.push(waited + seek);
        }
        let report = ledger.report(&RunTotals::default());
        let all: Vec<u64> = reads.iter().chain(&writes).copied().collect();
        prop_assert_eq!(report.all.bytes, 4096 * all.len() as u64);
        prop_assert_eq!(report.all.hits.partial, all.len() as u64);
        let first = requests.iter().map(|r| r.1).min().expect("there is one");
        let last = requests.iter().map(|r| r.1 + r.2 + r.3).max().expect("there is one");
        prop_assert_eq!(report.span_ms, (last - first) as f64 / 1e6);
        let seeks: u64 = requests.iter().map(|r| r.3).sum();
        let mean = seeks as f64 / all.len() as f64;
        let account = report.all.account.expect("there are requests");
        prop_assert!((account.seek_ms * 1e6 - mean).abs() <= 0.51);
        prop_assert_eq!(account.unclaimed_ms, 0.0);
        for (side, nanos) in [(report.all, all), (report.reads, reads), (report.writes, writes)] {
            prop_assert_eq!(side.requests, nanos.len() as u64);
            match side.response {
                Some(response) => check(&response, nanos),
                None => prop_assert!(nanos.is_empty()),
            }
        }
        let counted: u64 = [Direction::Read, Direction::Write]
            .into_iter()
            .flat_map(|direction| ledger.distribution(direction))
            .map(|(_, count)| count)
            .sum();
        prop_assert_eq!(counted, requests.len() as u64);
    }
}

#[test]
fn an_empty_ledger_has_no_means() {
    let report = Ledger::new(512, 1).report(&RunTotals::default());
    assert_eq!(report.all.response, None);
    assert_eq!((report.span_ms, report.requests_per_second), (0.0, 0.0));
    assert_eq!(report.head.idle, 0.0);
}

#[test]
fn each_part_has_the_figures_of_its_own_requests_over_the_span_of_all() {
    let names = ["urgent".to_owned(), "bulk".to_owned()];
    let mut ledger = Ledger::new(512, 1).with_parts(names.to_vec());
    for number in 0..10 {
        let millis = 1_000_000 * number;
        let urgent = finished(number, Direction::Read, 50 * millis, 3_000_000, 7_000_000);
        ledger.record(LoadPart(0), &urgent);
        let bulk = finished(number, Direction::Write, 100 * millis, 0, 100_000_000);
        ledger.record(LoadPart(1), &bulk);
        ledger.record(LoadPart(1), &bulk);
    }
    let report = ledger.report(&RunTotals::default());
    assert_eq!(report.span_ms, 1000.0);
    let [urgent, bulk] = report.parts.as_slice() else {
        panic!("two parts: {:?}", report.parts);
    };
    assert_eq!(
        (urgent.name.as_str(), bulk.name.as_str()),
        ("urgent", "bulk")
    );
    assert_eq!((urgent.side.requests, bulk.side.requests), (10, 20));
    assert_eq!(
        (urgent.requests_per_second, bulk.requests_per_second),
        (10.0, 20.0)
    );
    assert_eq!(bulk.megabytes_per_second, 20.0 * 4096.0 / 1e6);
    let mean = |side: &simulator::ledger::RequestFigures| side.response.expect("requests").mean_ms;
    assert_eq!((mean(&urgent.side), mean(&bulk.side)), (10.0, 100.0));
    assert_eq!(report.all.requests, 30);
}

#[test]
fn an_arrival_waits_for_half_of_the_squares_over_all_of_the_time() {
    let mut ledger = Ledger::new(512, 1);
    assert_eq!(ledger.report(&RunTotals::default()).commands, None);
    let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
    // 2 ms, a pause of 8 ms, 10 ms, 3 ms, 16 ms; nothing more until 50 ms.
    for (began, ended) in [(0, 2), (10, 20), (20, 23), (23, 39)] {
        ledger.record_command(at(began), at(ended));
    }
    ledger.record(
        LoadPart::ONLY,
        &finished(0, Direction::Read, 0, 0, 50_000_000),
    );
    let figures = ledger
        .report(&RunTotals::default())
        .commands
        .expect("commands");
    let squares = 2.0 * 2.0 + 10.0 * 10.0 + 3.0 * 3.0 + 16.0 * 16.0;
    let close = |ours: f64, exact: f64| (ours - exact).abs() <= 1e-6;
    assert!(
        close(figures.expected_wait_ms, squares / 2.0 / 50.0),
        "{figures:?}"
    );
    assert!(
        close(figures.expected_wait_if_busy_ms, squares / 2.0 / 31.0),
        "{figures:?}"
    );
    assert_eq!((figures.commands, figures.busy), (4, 0.62));
    assert_eq!((figures.mean_ms, figures.max_ms), (7.75, 16.0));
    assert_eq!(figures.share_3_to_16_ms, 0.75);
}

proptest! {
    #[test]
    fn the_expected_wait_is_the_mean_wait_of_arrivals_at_every_moment(
        commands in prop::collection::vec((0..40u64, 1..90u64), 1..40),
    ) {
        // At a step of 0.1 ms, the mean over all steps is the integral but for half a step.
        let step = 100_000;
        let mut ledger = Ledger::new(512, 1);
        let (mut now, mut waits, mut steps) = (0, 0u64, 0u64);
        for &(pause, length) in &commands {
            steps += pause + length;
            now += pause * step;
            let ended = now + length * step;
            ledger.record_command(Instant::from_nanos(now), Instant::from_nanos(ended));
            waits += (0..length).map(|passed| (ended - now) - passed * step).sum::<u64>();
            now = ended;
        }
        let first = commands[0].0;
        let exact = waits as f64 / (steps - first) as f64 / 1e6;
        let figures = ledger.report(&RunTotals::default()).commands.expect("commands");
        prop_assert!((figures.expected_wait_ms - exact).abs() <= 0.05 + 1e-6, "{figures:?} {exact}");
    }
}

#[test]
fn shares_of_head_time_add_up() {
    let mut ledger = Ledger::new(512, 2);
    ledger.record(
        LoadPart::ONLY,
        &finished(0, Direction::Read, 0, 500_000, 1_500_000),
    );
    let ran = RunTotals {
        idle: Duration::from_micros(250),
        ..RunTotals::default()
    };
    let head = ledger.report(&ran).head;
    // Two actuators for 2 ms, one of which was seeking for 1.5 ms.
    assert_eq!((head.seek, head.other, head.idle), (0.375, 0.5, 0.125));
}

#[test]
fn every_request_is_a_line() {
    let mut bare = finished(1, Direction::Write, 7, 0, 30);
    bare.account = None;
    bare.status = Status::MediumError { at: Lba(3) };
    let requests = [finished(0, Direction::Read, 5, 10, 20), bare];
    let write = |format| {
        let mut file = RequestsFile::new(Vec::new(), format).expect("memory suffices");
        for request in &requests {
            file.finished(request).expect("memory suffices");
        }
        String::from_utf8(file.finish().expect("memory suffices")).expect("it is text")
    };
    assert_eq!(
        write(RequestsFormat::Csv),
        "request,direction,lbn,blocks,arrived_ns,ended_ns,response_ns,status,waited_ns,queue_ns,\
         overhead_ns,seek_ns,rotation_ns,transfer_ns,bus_ns,hit\n\
         0,read,100,8,5,35,30,good,10,0,0,20,0,0,0,partial\n\
         1,write,100,8,7,37,30,medium-error,0,,,,,,,\n"
    );
    assert_eq!(
        write(RequestsFormat::JsonLines),
        concat!(
            r#"{"request":0,"direction":"read","lbn":100,"blocks":8,"arrived_ns":5,"ended_ns":35,"#,
            r#""response_ns":30,"status":"good","waited_ns":10,"queue_ns":0,"overhead_ns":0,"#,
            r#""seek_ns":20,"rotation_ns":0,"transfer_ns":0,"bus_ns":0,"hit":"partial"}"#,
            "\n",
            r#"{"request":1,"direction":"write","lbn":100,"blocks":8,"arrived_ns":7,"ended_ns":37,"#,
            r#""response_ns":30,"status":"medium-error","waited_ns":0,"queue_ns":null,"#,
            r#""overhead_ns":null,"seek_ns":null,"rotation_ns":null,"transfer_ns":null,"#,
            r#""bus_ns":null,"hit":null}"#,
            "\n",
        )
    );
}
