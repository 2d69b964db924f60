//! Free reads on a bus that is slower than the medium: the data of the request behind them are not late.

use std::sync::Arc;

use block::{
    Class, Direction, Durability, Duration, Extent, Instant, Lba, Request, RequestId, Sectors,
};
use drive::{Profile, VirtualDrive};
use engine::{Engine, Limits, Rules};
use scheduler::background::Order;
use scheduler::freeblock::{Caution, WantedBlocks};
use scheduler::policy::find;

use crate::forecast::profile;

const REQUESTS: u64 = 200;

/// What came of a load.
struct Served {
    /// Free reads.
    reads: u64,
    /// Requests that they made half a revolution late.
    late: u64,
    /// The mean response time in nanoseconds.
    mean: f64,
    /// The share of it that was measured to be lost.
    impact: f64,
}

/// Requests at random places of a drive, four at a time, with a scan of so careful plans.
fn scanned(profile: Profile, direction: Direction, caution: Caution) -> Served {
    served(profile, direction, Some(caution))
}

fn served(profile: Profile, direction: Direction, scan: Option<Caution>) -> Served {
    let profile = Arc::new(profile);
    let policy = find("fcfs").expect("a policy of the table");
    let engine = Engine::new(Arc::clone(&profile), &|| policy.make(), Limits::default());
    let mut engine = engine.with_background(Rules {
        idle_after: None,
        caution: scan.unwrap_or_default(),
        ..Rules::default()
    });
    let mut drive = VirtualDrive::new(Arc::clone(&profile));
    let order = Order {
        wanted: WantedBlocks::all(&profile.geometry),
        priority: 0,
        deadline: None,
    };
    let mut now = Instant::ZERO;
    if scan.is_some() {
        engine.begin_task(now, order).expect("a task");
    }
    let capacity = profile.geometry.sectors().0;
    let (mut submitted, mut responses) = (0, 0);
    loop {
        while let Some(outcome) = drive.poll(now) {
            engine.complete(now, outcome.id, outcome);
        }
        while let Some(finished) = engine.poll_finished() {
            responses += finished.at.since(finished.submitted).as_nanos();
        }
        while submitted < REQUESTS && engine.held() < 4 {
            // Multiplication by a prime: a walk over the disk that repeats itself late.
            let start = Lba(submitted.wrapping_mul(2_654_435_761) % (capacity - 8));
            let request = Request {
                id: RequestId(submitted),
                direction,
                extent: Extent::new(start, Sectors(1 + submitted % 8)).expect("a valid extent"),
                class: Class::default(),
                durability: Durability::Volatile,
                owner: block::Owner::NOBODY,
            };
            engine.submit(now, request).expect("room");
            submitted += 1;
        }
        while let Some(command) = engine.poll(now) {
            drive.submit(now, command).expect("room");
        }
        match drive.next_wakeup() {
            Some(next) => now = next,
            None => break,
        }
    }
    let gaps = engine.background().gaps();
    Served {
        reads: gaps.planned.iter().sum(),
        late: gaps.mispredicted,
        mean: responses as f64 / REQUESTS as f64,
        impact: engine.background().losses().share(),
    }
}

#[test]
fn a_free_read_is_off_the_bus_when_the_request_behind_it_needs_that() {
    for direction in [Direction::Read, Direction::Write] {
        for mb_s in [5.0, 10.0, 20.0, 40.0] {
            for watermark in [0, 300, 500, 1000] {
                let Served { reads, late, .. } =
                    scanned(profile(mb_s, watermark), direction, Caution::default());
                let what = format!("{direction:?}, {mb_s} MB/s, watermark {watermark}");
                assert!(reads > REQUESTS / 4, "{what}: {reads} free reads");
                // One write of eight blocks in a hundred is late where the bus is not: the cause is not known.
                assert!(late * 50 <= reads, "{what}: {late} late behind {reads}");
            }
        }
    }
}

/// The request after the next is chosen when the free read is off the bus: what the drive takes it up later
/// for that is measured.
#[test]
fn a_choice_that_a_slow_bus_makes_late_is_measured() {
    let unguarded = Caution::Fixed {
        guard: Duration::ZERO,
        near_miss: Duration::ZERO,
    };
    for watermark in [0, 1000] {
        let [with, without] = [Some(unguarded), None]
            .map(|scan| served(profile(2.5, watermark), Direction::Read, scan));
        let lost = 1.0 - without.mean / with.mean;
        let ratio = with.impact / lost;
        assert_eq!(with.late, 0, "{watermark}: no request is late itself");
        assert!(lost > 0.01, "{watermark}: {lost}");
        assert!(
            (0.5..1.5).contains(&ratio),
            "{watermark}: lost {lost}, measured {}",
            with.impact
        );
    }
}
