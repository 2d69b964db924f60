//! The CPU time of the engine alone, while it serves reads of small files (section 5.4).
//!
//! ```text
//!   recorded    engine <--> virtual drive, load       what came in, and when
//!   measured    engine alone, the same inputs again   its CPU time
//! ```
//!
//! The paper's figures are those of a whole machine of 1999. Ours exclude kernel and copies, so
//! that only the order is comparable.

use std::mem;
use std::sync::Arc;

use block::{Finished, Instant, Outcome, Request, RequestId};
use engine::{Engine, Rules};
use scheduler::background::Order;
use scheduler::freeblock::WantedBlocks;
use simulator::driver::{Activity, Driver, Host};
use simulator::run::{Arrival, Load as _, LoadPart, RunError};
use simulator::workload::{Overrides, Synthetic, Workload};

use super::atlas::JUDGED;
use super::finding::{Finding, MeasuredFigure, ShapeVerdict};
use super::grounds::Grounds;
use super::scene::{PaperScene, load};
use super::{Measurement, MeasurementOutcome, PaperBench};
use crate::Failure;
use crate::cpu_time;

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "CPU time",
    claims: &[ID],
    run,
};

const ID: &str = "fb.cpu";

/// The engine's work besides requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Background {
    /// Requests alone.
    None,
    /// A scan of the whole drive in the gaps.
    Scan,
}

/// All inputs of one moment.
struct Moment {
    now: Instant,
    outcomes: Vec<Outcome>,
    requests: Vec<Request>,
}

/// The cost of an engine.
pub(super) struct Cost {
    /// CPU time of a request, in seconds.
    pub each: f64,
    /// Requests a second of virtual time.
    pub rate: f64,
}

impl Cost {
    /// The share of a CPU, in percent, while the drive is never idle.
    pub(super) fn percent(&self) -> f64 {
        self.each * self.rate * 100.0
    }
}

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let cases = [
        ("stock_percent", "c-look", Background::None),
        ("sptf_percent", "sptf", Background::None),
        ("sptf_and_freeblock_percent", "sptf", Background::Scan),
    ];
    bench.expect(cases.len());
    let scene = PaperScene::external(JUDGED.model, JUDGED.noise)?;
    let flags = Overrides {
        tasks: Some(TASKS),
        ..Overrides::default()
    };
    let files = load("small-files", &flags)?;
    let mut ours = Vec::new();
    let mut costs = Vec::new();
    for (name, policy, background) in cases {
        // One after the other: CPU time is counted for the whole process.
        let requests = bench.requests(REQUESTS);
        let cost = cost(&scene, &files, policy, background, requests)?;
        bench.done();
        ours.push(MeasuredFigure {
            name: Some(name.to_owned()),
            value: cost.percent(),
        });
        let micros = cost.each * 1e6;
        costs.push(format!("{micros:.2} us at {:.0}/s", cost.rate));
    }
    let shape = ShapeVerdict::of(&[ours[0].value < ours[1].value, ours[1].value < ours[2].value]);
    let note = format!(
        "CPU time of the engine's decisions alone, of this machine, without kernel or copying: \
         each request takes {}; c-look stands for the stock kernel; {TASKS} readers of small files, \
         2 commands at the drive; {scene}; scanned at the beginning, when every block is wanted",
        costs.join(", ")
    );
    let finding = Finding {
        grounds: Grounds {
            reading: String::from("the order of the three, of the engine's decisions alone"),
            incomparable: Some(
                "theirs are shares of a 550 MHz Pentium III with kernel and copying; ours are the \
                 engine's decisions alone on this machine",
            ),
            ..Grounds::default()
        },
        id: ID,
        mode: None,
        ours,
        shape: Some(shape),
        note,
    };
    Ok(MeasurementOutcome::figures(vec![finding]))
}

/// The cost of an engine that serves a closed load whose clients do not think.
///
/// # Errors
/// If there is no such policy, or the load does not fit on the drive.
pub(super) fn cost(
    scene: &PaperScene,
    load: &Workload,
    policy: &str,
    background: Background,
    requests: u64,
) -> Result<Cost, Failure> {
    let engine_of = || engine(scene, policy, background);
    let moments = record(scene, load, engine_of()?, requests)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let mut engine = engine_of()?;
        let begin = cpu_time();
        for moment in &moments {
            feed(&mut engine, moment)?;
        }
        times.push(cpu_time().saturating_sub(begin));
    }
    times.sort_unstable();
    let span = moments.last().map_or(Instant::ZERO, |moment| moment.now);
    Ok(Cost {
        each: times[times.len() / 2].as_secs_f64() / requests as f64,
        rate: requests as f64 / span.as_secs_f64(),
    })
}

fn engine(scene: &PaperScene, policy: &str, background: Background) -> Result<Engine, Failure> {
    let scenario = scene.scenario(policy)?;
    let belief = Arc::clone(&scenario.belief);
    let policy = scenario.policy;
    let mut engine = Engine::new(belief, &|| policy.make(), scenario.limits);
    if background == Background::Scan {
        engine = engine.with_background(Rules::default());
        let order = Order {
            wanted: WantedBlocks::all(&scenario.belief.geometry),
            priority: 0,
            deadline: None,
        };
        let begun = engine.begin_task(Instant::ZERO, order);
        begun.map_err(Failure::failed)?;
    }
    Ok(engine)
}

/// Serves the load, and records the inputs. The last requests may still be in flight.
fn record(
    scene: &PaperScene,
    load: &Workload,
    engine: Engine,
    requests: u64,
) -> Result<Vec<Moment>, Failure> {
    let mut load = scene.begin(load)?;
    let mut arrived = Vec::new();
    while let Some(arrival) = load.next_arrival().map_err(Failure::failed)? {
        arrived.push(request(arrived.len() as u64, &arrival));
    }
    let mut recorder = Recorder {
        load,
        submitted: arrived.len() as u64,
        left: requests,
        moments: Vec::new(),
        outcomes: Vec::new(),
        requests: arrived,
    };
    let mut driver = Driver::new(engine, scene.drive());
    driver.run(&mut recorder).map_err(Failure::failed)?;
    Ok(recorder.moments)
}

/// A host that records the engine's inputs. Readers do not think: an end makes the next request
/// arrive at once.
struct Recorder {
    load: Synthetic,
    submitted: u64,
    /// Completions until the end of the recording.
    left: u64,
    moments: Vec<Moment>,
    /// The outcomes of the current moment.
    outcomes: Vec<Outcome>,
    requests: Vec<Request>,
}

impl Host for Recorder {
    type Error = RunError;

    fn command_ended(&mut self, _: Instant, _: &Engine, outcome: &Outcome) {
        self.outcomes.push(*outcome);
    }

    fn request_ended(
        &mut self,
        now: Instant,
        _: &mut Engine,
        finished: &mut Finished,
    ) -> Result<(), RunError> {
        self.left = self.left.saturating_sub(1);
        if let Some(arrival) = self.load.on_finished(now, LoadPart::ONLY, finished)? {
            self.requests.push(request(self.submitted, &arrival));
            self.submitted += 1;
        }
        Ok(())
    }

    fn act(&mut self, now: Instant, engine: &mut Engine) -> Result<Activity, RunError> {
        let moment = Moment {
            now,
            outcomes: mem::take(&mut self.outcomes),
            requests: mem::take(&mut self.requests),
        };
        for request in &moment.requests {
            engine.submit(now, *request)?;
        }
        self.moments.push(moment);
        Ok(Activity::Waits)
    }

    fn is_over(&mut self, _: Instant, _: &mut Engine) -> bool {
        self.left == 0
    }

    fn next_event(&self, _: Instant, _: &Engine) -> Option<Instant> {
        None
    }
}

/// Feeds the recorded inputs to an engine, and drops its commands.
fn feed(engine: &mut Engine, moment: &Moment) -> Result<(), Failure> {
    for outcome in &moment.outcomes {
        engine.complete(moment.now, outcome.id, *outcome);
    }
    while engine.poll_finished().is_some() {}
    for request in &moment.requests {
        engine
            .submit(moment.now, *request)
            .map_err(Failure::failed)?;
    }
    while engine.poll(moment.now).is_some() {}
    Ok(())
}

fn request(number: u64, arrival: &Arrival) -> Request {
    Request {
        id: RequestId(number),
        direction: arrival.demand.direction,
        extent: arrival.demand.extent,
        class: arrival.demand.class,
        durability: block::Durability::Volatile,
        owner: arrival.demand.owner,
    }
}

/// Concurrent readers: as many as the pending requests of the paper's OLTP. The paper has no
/// figure.
const TASKS: u32 = 10;

/// Recorded requests.
const REQUESTS: u64 = 50_000;

/// Rounds of a measurement: the median tolerates disturbances. A choice.
const ROUNDS: usize = 5;
