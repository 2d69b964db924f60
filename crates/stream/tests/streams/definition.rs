//! The definition of the service (ABISS, 2.2), against random applications.
//!
//! For accesses a_i at t_i with playout point p_i, all are served from memory while, for t_i < t_j,
//! `p_i <= p_j < p_i + b + r (t_j - t_i)` and `p_j <= a_j < b + min(p_j, p_i + r (t_j - t_i))`.
//! A playout point that moves is reported at least every `LATENCY`; one that is not reported
//! stands still.

use block::{Class, Duration, Instant, Status, StreamMode};
use proptest::prelude::*;
use stream::playout::{Served, Standing};
use stream::streams::{Notice, StreamId};

use crate::disk::{BLOCK, LATENCY};
use crate::world::{Fate, World, attach, file, with_memory};

const SECOND: u64 = 1_000_000_000;

/// The naive oracle: all that was reported, compared with each other.
struct Application {
    stream: StreamId,
    rate: u64,
    buffer: u64,
    length: u64,
    reports: Vec<(Instant, u64)>,
}

impl Application {
    /// Below this, what the definition says of all earlier reports: the last one's point excluded.
    fn least(&self, now: Instant, add: u64) -> u64 {
        let bounds = self.reports.iter().map(|&(at, point)| {
            let passed = u128::from(self.rate) * u128::from(now.since(at).as_nanos());
            point + add + (passed / u128::from(SECOND)) as u64
        });
        bounds.min().unwrap_or(0)
    }

    /// The next playout point, `part` thousandths of the way that it may go.
    fn moved(&self, now: Instant, part: u64) -> u64 {
        let last = self.reports.last().map_or(0, |report| report.1);
        let end = self.least(now, self.buffer).min(self.length);
        let way = end.saturating_sub(last).saturating_sub(1);
        last + way * part / 1_000
    }

    /// The byte after the last one that may be read.
    fn reach(&self, now: Instant, point: u64) -> u64 {
        (self.buffer + point.min(self.least(now, 0))).min(self.length)
    }
}

/// What an application does next: how long after, how far its point goes, which part it reads.
type Step = (u64, Way, u64, u64);

#[derive(Clone, Copy, Debug)]
enum Way {
    /// Not at all, after a pause.
    Pauses,
    /// At the rate.
    Plays,
    /// A part of what it may, in thousandths.
    Jumps(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let way = prop_oneof![
        1 => Just(Way::Pauses),
        6 => Just(Way::Plays),
        3 => (0u64..=1_000).prop_map(Way::Jumps),
    ];
    prop::collection::vec((1u64..=1_000, way, 0u64..=1_000, 1u64..=1_000), 20..250)
}

fn play(world: &mut World, application: &mut Application, step: Step) -> Result<(), TestCaseError> {
    let (after, way, from, length) = step;
    let after = match way {
        // Up to five seconds.
        Way::Pauses => Duration::from_millis(5 * after),
        _ => Duration::from_nanos(LATENCY.as_nanos() * after / 1_000),
    };
    world.run_for(after);
    let now = world.now;
    let point = match way {
        Way::Pauses => application.reports.last().map_or(0, |report| report.1),
        Way::Plays => application.moved(now, 1_000).min(
            application.reports.last().map_or(0, |report| report.1)
                + application.rate * after.as_nanos() / SECOND,
        ),
        Way::Jumps(part) => application.moved(now, part),
    };
    world.position(application.stream, point);
    let reach = application.reach(now, point);
    application.reports.push((now, point));
    // The farthest byte is the hardest: most reads end there.
    if reach > point {
        let from = if from < 300 {
            point
        } else {
            point + (reach - 1 - point) * from / 1_000
        };
        let length = ((reach - from) * length / 1_000).max(1);
        let length = if length * 3 > reach - from {
            reach - from
        } else {
            length
        };
        let served = world.read(application.stream, from, length);
        prop_assert_eq!(
            served,
            Some(Served::Memory),
            "{}..{} at {:?}, point {}",
            from,
            from + length,
            now,
            point
        );
    }
    prop_assert_eq!(
        world.streams.standing(application.stream),
        Some(Standing::Serving)
    );
    Ok(())
}

/// Transfers that are due end somewhere before their deadlines, one after the other.
fn in_time(parts: Vec<u64>) -> Fate {
    let mut parts = parts.into_iter().cycle();
    Box::new(move |now, transfer| {
        let part = parts.next().unwrap_or(1_000);
        let at = match transfer.class {
            Class::RealTime { deadline } => {
                let rest = deadline.since(now).as_nanos();
                // Half of them at the last moment.
                now + Duration::from_nanos(rest.min(rest / 500 * part))
            }
            _ => now + Duration::from_micros(20 * part),
        };
        (at, Status::Good)
    })
}

/// Memory that lasts so many milliseconds beyond the application's part: rounds are as short.
fn memory(rate: u64, buffer: u64, lasts: u64) -> u64 {
    buffer + rate * (lasts + 20) / 1_000 + 3 * BLOCK
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whoever keeps to his rate and his buffer never waits, whatever the disk does within its
    /// deadlines and whoever comes and goes besides; whoever leaves is told, and served again after
    /// his buffer has filled.
    #[test]
    fn whoever_keeps_to_rate_and_buffer_is_served_from_memory(
        rate in 20_000u64..4_000_000,
        buffer in 1u64..1_000_000,
        start in 0u64..100_000_000,
        ends in prop::collection::vec(1u64..=1_000, 1..50),
        first in steps(),
        second in steps(),
        neighbours in prop::collection::vec((100_000u64..2_000_000, 0usize..250), 0..4),
        far in 0u64..245_000_000,
        lasts in 60u64..3_000,
        blocks in prop_oneof![Just(60_000u64), 1u64..1_000],
    ) {
        let mut world = World::new(in_time(ends));
        let map = file(5, blocks);
        let length = map.length();
        let (start, far) = (start % length, far % length);
        let attached = {
            let mut asked = attach(StreamMode::Play, rate, buffer, map.clone());
            asked.terms.start = start;
            world.attach(with_memory(memory(rate, buffer, lasts), asked))
        };
        // Some are too short even for an empty disk.
        let Ok(attached) = attached else { return Ok(()) };
        let stream = attached.stream;
        world.position(stream, start);
        world.until_serving(stream);
        let mut application = Application { stream, rate, buffer, length, reports: Vec::new() };
        application.reports.push((world.now, start));
        for (number, step) in first.into_iter().enumerate() {
            for &(rate, _) in neighbours.iter().filter(|neighbour| neighbour.1 == number) {
                let neighbour = attach(StreamMode::Play, rate, 100_000, file(70_000, 60_000));
                let _ = world.attach(neighbour);
            }
            play(&mut world, &mut application, step)?;
        }
        prop_assert_eq!(world.streams.late(), 0);
        if neighbours.is_empty() {
            // The time that the plan gives to every sweep.
            let within = world.streams.admission().plan().expect("a stream").within;
            for (when, transfer) in &world.ordered {
                if let Class::RealTime { deadline } = transfer.class {
                    prop_assert!(deadline.since(*when) >= within, "{:?} at {:?}", transfer, when);
                }
            }
        }
        // Somewhere else.
        let (low, high) = world.streams.window(stream).expect("it is open");
        let outside = far < low || far > high;
        world.position(stream, far);
        let told = world.was_told(stream, &Notice::Stands(Standing::Filling));
        prop_assert_eq!(told, outside);
        world.until_serving(stream);
        if outside {
            application.reports = vec![(world.now, far)];
        } else {
            return Ok(());
        }
        for step in second {
            play(&mut world, &mut application, step)?;
        }
    }

    /// A recorder that keeps to its rate and its buffer always finds room, and all that it has
    /// written is ordered to be written once.
    #[test]
    fn a_recorder_within_its_terms_always_finds_room(
        rate in 40_000u64..4_000_000,
        buffer in 1u64..200,
        lasts in 60u64..3_000,
        ends in prop::collection::vec(1u64..=1_000, 1..50),
        steps in steps(),
    ) {
        let mut world = World::new(in_time(ends));
        let buffer = buffer * BLOCK;
        let map = file(5, 60_000);
        let length = map.length();
        let attached = {
            let asked = attach(StreamMode::Record, rate, buffer, map);
            world.attach(with_memory(memory(rate, buffer, lasts), asked))
        };
        let Ok(attached) = attached else { return Ok(()) };
        let stream = attached.stream;
        world.until_serving(stream);
        let mut application = Application { stream, rate, buffer, length, reports: Vec::new() };
        application.reports.push((world.now, 0));
        let mut written = 0;
        for (after, way, ..) in steps {
            let after = match way {
                Way::Pauses => Duration::from_millis(5 * after),
                _ => Duration::from_nanos(LATENCY.as_nanos() * after / 1_000),
            };
            world.run_for(after);
            let end = match way {
                Way::Pauses => written,
                Way::Plays => application.moved(world.now, 1_000),
                Way::Jumps(part) => application.moved(world.now, part),
            };
            let end = end - end % BLOCK;
            if end > written {
                let served = world.write(stream, written, end - written);
                prop_assert_eq!(served, Some(Served::Memory), "{}..{}", written, end);
                written = end;
            }
            application.reports.push((world.now, written));
        }
        prop_assert_eq!(world.streams.late(), 0);
        world.streams.close(world.now, stream).expect("it is open");
        world.run_for(Duration::from_secs(600));
        prop_assert!(world.was_told(stream, &Notice::Closed));
        let mut orders: Vec<_> = world.ordered.iter().map(|(_, transfer)| transfer.extent).collect();
        orders.sort_unstable();
        let mut at = 5;
        for extent in orders {
            prop_assert_eq!(extent.start().0, at);
            at = extent.end().0;
        }
        prop_assert_eq!((at - 5) * BLOCK, written);
    }
}
