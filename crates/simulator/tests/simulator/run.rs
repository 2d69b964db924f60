//! The run loop against a naive queue, and what it promises to loads and watchers.

mod hesitant;

use std::io;
use std::sync::Arc;

use block::{
    Class, Command, Direction, Duration, Extent, Finished, Instant, Lba, Outcome, Refused, Sectors,
};
use drive::{Profile, VirtualDrive, invented};
use engine::{Engine, Limits};
use proptest::prelude::*;
use scheduler::policy::{ALL, find};
use scheduler::{Choice, EligibleRequest, Policy, Sight, View};
use simulator::driver::{Driver, SimulatedDrive, serve_alone};
use simulator::ledger::{Ledger, RunReport, RunTotals};
use simulator::requests_file::{RequestsFile, RequestsFormat};
use simulator::run::{
    Arrival, Demand, Load, LoadError, LoadPart, Options, PastEnd, RunError, RunProgress, Watch, run,
};

/// The simple drive, as the driver of the simulator takes one.
struct SimpleDrive(invented::SimpleDrive);

impl SimpleDrive {
    fn new(truth: Profile) -> Self {
        SimpleDrive(invented::SimpleDrive::new(truth))
    }
}

impl SimulatedDrive for SimpleDrive {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.0.submit(now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        self.0.poll(now)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.0.next_wakeup()
    }
}

fn arrival(at: u64, start: u64, length: u64) -> Arrival {
    let direction = match start % 3 {
        0 => Direction::Write,
        _ => Direction::Read,
    };
    Arrival {
        at: Instant::from_nanos(at),
        demand: Demand {
            direction,
            extent: Extent::new(Lba(start), Sectors(length)).expect("a valid extent"),
            class: Class::default(),
            part: LoadPart::ONLY,
            owner: block::Owner::NOBODY,
        },
    }
}

/// Arrivals at given times; the place of an arrival is its line.
struct Listed {
    arrivals: Vec<Arrival>,
    line: usize,
}

impl Listed {
    fn new(arrivals: Vec<Arrival>) -> Self {
        Listed { arrivals, line: 0 }
    }
}

impl Load for Listed {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        let next = self.arrivals.get(self.line).copied();
        self.line += 1;
        Ok(next)
    }

    fn place(&self) -> Option<String> {
        Some(format!("listed.csv:{}", self.line))
    }
}

/// So many clients; each asks again some time after it was answered.
struct Closed {
    clients: u64,
    think: Duration,
    asked: u64,
}

impl Closed {
    fn new(clients: u64, think: Duration) -> Self {
        Closed {
            clients,
            think,
            asked: 0,
        }
    }

    fn ask(&mut self, at: Instant) -> Arrival {
        self.asked += 1;
        arrival(at.as_nanos(), self.asked * 7919 % 2700, 1 + self.asked % 40)
    }
}

impl Load for Closed {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        Ok((self.asked < self.clients).then(|| self.ask(Instant::ZERO)))
    }

    fn on_finished(
        &mut self,
        now: Instant,
        _: LoadPart,
        _: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        let at = now + self.think;
        Ok(Some(self.ask(at)))
    }
}

/// Everything that a watcher is told.
#[derive(Default)]
struct Record {
    finished: Vec<Finished>,
    progress: Vec<RunProgress>,
}

impl Watch for Record {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        self.finished.push(*finished);
        Ok(())
    }

    fn progress(&mut self, progress: RunProgress) {
        self.progress.push(progress);
    }
}

fn engine(policy: &str, limits: Limits) -> Engine {
    let entry = find(policy).expect("a policy of the table");
    Engine::new(Arc::new(invented::profile()), &|| entry.make(), limits)
}

fn ledger() -> Ledger {
    Ledger::new(512, 1)
}

fn limits(requests: usize, commands_at_drive: usize) -> Limits {
    Limits {
        requests,
        reserved_for_real_time: 0,
        commands_at_drive,
        ..Limits::default()
    }
}

fn first(requests: u64) -> Options {
    Options {
        requests: Some(requests),
        ..Options::default()
    }
}

/// Serves a load with fcfs on a simple drive.
fn serve<L: Load>(
    load: &mut L,
    limits: Limits,
    options: &Options,
) -> (Result<RunTotals, RunError>, Record, RunReport) {
    let engine = engine("fcfs", limits);
    let drive = SimpleDrive::new(invented::profile());
    let (mut ledger, mut record) = (ledger(), Record::default());
    let ran = run(
        &mut Driver::new(engine, drive),
        load,
        options,
        &mut ledger,
        &mut record,
    );
    let report = ledger.report(ran.as_ref().unwrap_or(&RunTotals::default()));
    (ran, record, report)
}

/// When each of the arrivals ends if they are served one by one.
fn one_by_one(arrivals: &[Arrival]) -> Vec<Instant> {
    let mut drive = SimpleDrive::new(invented::profile());
    let mut now = Instant::ZERO;
    let mut ends = Vec::new();
    for arrival in arrivals {
        now = now.max(arrival.at);
        let Demand {
            direction, extent, ..
        } = arrival.demand;
        let durability = block::Durability::Volatile;
        let action = match direction {
            Direction::Read => block::Action::Read { extent, durability },
            Direction::Write => block::Action::Write { extent, durability },
        };
        let command = Command::new(block::CommandId(0), action);
        let outcome = serve_alone(&mut drive, now, command);
        now = outcome.expect("the drive is idle").at;
        ends.push(now);
    }
    ends
}

proptest! {
    #[test]
    fn an_open_load_ends_when_a_naive_queue_says_however_much_is_held_back(
        gaps in prop::collection::vec((0..12_000_000u64, 0..10u64, 1..36u64), 1..60),
        requests in 1..9usize,
    ) {
        let mut at = 0;
        let arrivals: Vec<Arrival> = gaps
            .iter()
            .enumerate()
            .map(|(number, &(gap, start, length))| {
                at += gap;
                // No two have blocks in common: what waited behind another goes before others.
                arrival(at, number as u64 * 37 % 60 * 45 + start, length)
            })
            .collect();
        let expected = one_by_one(&arrivals);
        let mut load = Listed::new(arrivals.clone());
        let (ran, record, report) = serve(&mut load, limits(requests, 1), &Options::default());
        let ran = ran.expect("a good load");
        prop_assert_eq!(ran.requests, arrivals.len() as u64);
        let mut held_back = 0;
        for (number, finished) in record.finished.iter().enumerate() {
            prop_assert_eq!(finished.request.id.0, number as u64);
            prop_assert_eq!(finished.submitted, arrivals[number].at);
            prop_assert_eq!(finished.at, expected[number]);
            // It could not enter before the one that is `requests` places ahead had ended.
            let blocker = number.checked_sub(requests).map(|ahead| expected[ahead]);
            held_back += u64::from(blocker.is_some_and(|end| end > finished.submitted));
            let account = finished.account.expect("the drive keeps accounts");
            prop_assert_eq!(finished.waited + account.total(), finished.response());
        }
        prop_assert_eq!(ran.held_back, held_back);
        let unclaimed = report.all.account.map(|account| account.unclaimed_ms);
        prop_assert_eq!(unclaimed, Some(0.0));
    }
}

#[test]
fn a_closed_load_keeps_its_clients_busy_until_enough_is_asked() {
    let mut load = Closed::new(5, Duration::from_millis(3));
    let (ran, record, report) = serve(&mut load, limits(100, 2), &first(200));
    let ran = ran.expect("a good load");
    assert_eq!((ran.requests, ran.held_back, ran.overruled), (200, 0, 0));
    assert_eq!(report.all.requests, 200);
    assert_eq!(report.span_ms, ran.end.as_nanos() as f64 / 1e6);
    let mut numbers: Vec<u64> = record.finished.iter().map(|f| f.request.id.0).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..200), "each number once");
    // Five clients: when one asks, at most four others are unanswered.
    for finished in &record.finished {
        let open = record
            .finished
            .iter()
            .filter(|other| other.submitted <= finished.submitted && finished.submitted < other.at);
        assert!(open.count() <= 5);
    }
}

#[test]
fn a_run_stops_taking_arrivals_at_its_end_and_serves_what_it_took() {
    let arrivals: Vec<Arrival> = (0..100)
        .map(|i| arrival(i * 1_000_000, i * 20, 8))
        .collect();
    let options = Options {
        until: Some(Instant::from_nanos(30_000_000)),
        ..Options::default()
    };
    let mut load = Listed::new(arrivals);
    let (ran, record, _) = serve(&mut load, limits(100, 2), &options);
    let ran = ran.expect("a good load");
    // The arrivals at 0, 1, ... 30 ms.
    assert_eq!(ran.requests, 31);
    assert!(ran.end > Instant::from_nanos(30_000_000));
    assert_eq!(record.finished.len(), 31);
    assert_eq!(load.line, 32, "one arrival is looked at ahead, no more");
}

#[test]
fn progress_is_told_at_every_nth_end() {
    let options = Options {
        progress_every: 30,
        ..first(100)
    };
    let mut load = Closed::new(3, Duration::ZERO);
    let (_, record, _) = serve(&mut load, limits(100, 2), &options);
    let told: Vec<u64> = record.progress.iter().map(|p| p.finished).collect();
    assert_eq!(told, [30, 60, 90]);
    assert_eq!(record.progress[0].now, record.finished[29].at);
}

#[test]
fn blocks_that_are_not_there_stop_the_run_or_are_counted() {
    let arrivals = vec![arrival(5, 0, 8), arrival(6, 2795, 6), arrival(7, 2792, 8)];
    let (ran, ..) = serve(
        &mut Listed::new(arrivals.clone()),
        limits(9, 1),
        &Options::default(),
    );
    assert_eq!(
        ran.expect_err("six blocks are not there").to_string(),
        "listed.csv:2: blocks 2795..2801 end past the last block of the drive, which has 2800 \
         blocks"
    );
    let options = Options {
        past_end: PastEnd::Skip,
        ..Options::default()
    };
    let (ran, ..) = serve(&mut Listed::new(arrivals), limits(9, 1), &options);
    let ran = ran.expect("the bad arrival is left out");
    assert_eq!((ran.requests, ran.skipped), (2, 1));
}

#[test]
fn time_without_a_request_is_idle() {
    // Two apart, then two at once: the drive is idle between the first and the second, and before
    // the third, and nowhere else.
    let far = 1_000_000_000;
    let arrivals = [(7, 0), (far, 90), (2 * far, 900), (2 * far, 30)];
    let arrivals = arrivals.map(|(at, start)| arrival(at, start, 8));
    let mut load = Listed::new(arrivals.to_vec());
    let (ran, record, _) = serve(&mut load, limits(9, 2), &Options::default());
    let ran = ran.expect("a proper load");
    let ends: Vec<u64> = record.finished.iter().map(|f| f.at.as_nanos()).collect();
    let idle = (far - ends[0]) + (2 * far - ends[1]);
    assert_eq!(ran.idle, Duration::from_nanos(idle));
}

/// Asks for nothing but blocks past the end, over and over.
struct Astray;

impl Load for Astray {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        Ok(Some(arrival(0, 1 << 40, 8)))
    }
}

#[test]
fn a_load_that_never_fits_the_drive_is_given_up() {
    let options = Options {
        past_end: PastEnd::Skip,
        ..Options::default()
    };
    let (ran, ..) = serve(&mut Astray, limits(9, 1), &options);
    let error = ran.expect_err("nothing fits");
    assert!(matches!(error, RunError::NeverFits { .. }), "{error}");
    assert!(error.to_string().starts_with("10000000 requests in a row"));
}

#[test]
fn an_arrival_after_the_end_of_time_stops_the_run() {
    let late = || Listed::new(vec![arrival(5, 0, 8), arrival(u64::MAX - 3, 8, 8)]);
    let (ran, ..) = serve(&mut late(), limits(9, 1), &Options::default());
    assert_eq!(
        ran.expect_err("it is too late").to_string(),
        "listed.csv:2: an arrival 18446744073 virtual seconds after the first: expected at most \
         3200000000, a century"
    );
    let bounded = Options {
        until: Some(Instant::from_nanos(1_000)),
        ..Options::default()
    };
    let (ran, ..) = serve(&mut late(), limits(9, 1), &bounded);
    assert_eq!(ran.expect("it is not asked for").requests, 1);
}

#[test]
fn times_that_go_back_stop_the_run() {
    let arrivals = vec![arrival(50, 0, 8), arrival(49, 8, 8)];
    let (ran, ..) = serve(
        &mut Listed::new(arrivals),
        limits(9, 1),
        &Options::default(),
    );
    assert_eq!(
        ran.expect_err("it goes back").to_string(),
        "listed.csv:2: an arrival at 49 ns after one at 50 ns: expected times that never go back"
    );
}

/// Lets every request lie for a millisecond.
#[derive(Default)]
struct Dawdler {
    pending: Vec<(EligibleRequest, Option<Instant>)>,
}

impl Policy for Dawdler {
    fn sight(&self) -> Sight {
        Sight::Order
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.pending.push((*pending, None));
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.pending.retain(|(known, _)| known != pending);
    }

    fn select(&mut self, view: &View) -> Choice {
        let Some((pending, until)) = self.pending.first_mut() else {
            return Choice::Nothing;
        };
        let until = *until.get_or_insert(view.now + Duration::from_millis(1));
        if view.now < until {
            return Choice::WaitUntil(until);
        }
        let ticket = pending.ticket;
        self.pending.remove(0);
        Choice::Serve(ticket)
    }
}

#[test]
fn a_policy_that_waits_is_woken_in_time() {
    let belief = Arc::new(invented::profile());
    let engine = Engine::new(belief, &|| Box::new(Dawdler::default()), limits(9, 1));
    let drive = SimpleDrive::new(invented::profile());
    let mut record = Record::default();
    let mut load = Listed::new(vec![arrival(0, 0, 8), arrival(90_000_000, 8, 8)]);
    let ran = run(
        &mut Driver::new(engine, drive),
        &mut load,
        &Options::default(),
        &mut ledger(),
        &mut record,
    );
    assert_eq!(ran.expect("a good load").overruled, 0);
    for finished in &record.finished {
        assert_eq!(finished.waited, Duration::from_millis(1));
    }
}

fn shipped(name: &str) -> Profile {
    let entry = drive::catalog::find(name).expect("a shipped drive");
    entry.profile().expect("a valid profile")
}

/// A run on a virtual drive: its report and the file of all its requests.
fn virtually(policy: &str, depth: usize) -> (RunReport, Vec<u8>) {
    let mut profile = shipped("seagate-cheetah-9lp");
    profile.queue.depth = 16;
    let profile = Arc::new(profile);
    let entry = find(policy).expect("a policy of the table");
    let limits = limits(64, depth);
    let engine = Engine::new(Arc::clone(&profile), &|| entry.make(), limits);
    let drive = VirtualDrive::new(profile);
    let mut file =
        RequestsFile::new(Vec::new(), RequestsFormat::JsonLines).expect("memory suffices");
    let mut ledger = ledger();
    let mut load = Closed::new(10, Duration::ZERO);
    let ran = run(
        &mut Driver::new(engine, drive),
        &mut load,
        &first(2000),
        &mut ledger,
        &mut file,
    );
    let report = ledger.report(&ran.expect("a good load"));
    (report, file.finish().expect("memory suffices"))
}

#[test]
fn the_same_run_gives_the_same_bytes_under_every_policy() {
    for entry in ALL {
        for depth in [1, 2, 7] {
            let (report, requests) = virtually(entry.name, depth);
            let (again, requests_again) = virtually(entry.name, depth);
            let name = entry.name;
            assert_eq!(report.all.requests, 2000, "{name}");
            assert_eq!(report.overruled, 0, "{name}");
            let bytes = |report| serde_json::to_string(report).expect("figures are JSON");
            assert_eq!(bytes(&report), bytes(&again), "{name}");
            assert_eq!(requests, requests_again, "{name}");
        }
    }
}
