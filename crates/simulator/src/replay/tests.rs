//! Replays of small traces, written for the purpose.

use std::io::Write;

use tempfile::NamedTempFile;

use super::*;

const BLOCK: NonZeroU64 = NonZeroU64::new(512).expect("not zero");

fn trace(lines: &str) -> NamedTempFile {
    let mut file = tempfile::Builder::new()
        .suffix(".csv")
        .tempfile()
        .expect("a temporary file");
    file.write_all(lines.as_bytes()).expect("room for it");
    file
}

fn plan(file: &NamedTempFile) -> ReplayPlan {
    ReplayPlan {
        path: file.path().to_owned(),
        form: TraceForm::default(),
        on_bad: OnBad::Refuse,
        devices: DeviceChoice::Only,
        pace: ReplayPace::Timed { factor: 1.0 },
        fit: AddressFit::AsTheyAre,
    }
}

/// (nanoseconds, first block, blocks) of all that comes unasked.
fn arrivals(replay: &mut Replay) -> Vec<(u64, u64, u64)> {
    let mut found = Vec::new();
    while let Some(arrival) = replay.next_arrival().expect("a proper trace") {
        let extent = arrival.demand.extent;
        found.push((arrival.at.as_nanos(), extent.start().0, extent.length().0));
    }
    found
}

const THREE: &str = "2.0,0,R,0,4096\n2.5,0,W,51200,512\n3.0,0,R,1000,100\n";

#[test]
fn times_begin_at_zero_and_are_scaled_and_bytes_are_rounded_outward() {
    let file = trace(THREE);
    let mut replay = Replay::new(plan(&file), BLOCK, 1000).expect("a proper trace");
    let expected = [(0, 0, 8), (500_000_000, 100, 1), (1_000_000_000, 1, 2)];
    assert_eq!(arrivals(&mut replay), expected);
    let counts = replay.counts();
    assert_eq!((counts.requests, counts.rounded, counts.moved), (3, 1, 0));
    let slow = ReplayPlan {
        pace: ReplayPace::Timed { factor: 2.5 },
        ..plan(&file)
    };
    let mut replay = Replay::new(slow, BLOCK, 1000).expect("a proper trace");
    assert_eq!(arrivals(&mut replay)[1].0, 1_250_000_000);
}

#[test]
fn a_closed_replay_begins_with_its_depth_and_goes_on_with_answers() {
    let file = trace(THREE);
    let closed = ReplayPlan {
        pace: ReplayPace::Closed { depth: 2 },
        ..plan(&file)
    };
    let mut replay = Replay::new(closed, BLOCK, 1000).expect("a proper trace");
    assert_eq!(arrivals(&mut replay), [(0, 0, 8), (0, 100, 1)]);
    let now = Instant::from_nanos(77);
    let last = replay.answered(now).expect("a proper trace");
    assert_eq!(last.map(|arrival| arrival.at), Some(now));
    assert_eq!(replay.answered(now).expect("a proper trace"), None);
}

#[test]
fn wrapping_and_scaling_bring_every_request_onto_the_drive() {
    let file = trace("0,0,R,0,4096\n1,0,R,5120,4096\n2,0,R,101888,512\n");
    let fitted = |fit| {
        let fitting = ReplayPlan { fit, ..plan(&file) };
        let mut replay = Replay::new(fitting, BLOCK, 15).expect("a proper trace");
        let places = arrivals(&mut replay);
        let places: Vec<_> = places.into_iter().map(|(_, start, _)| start).collect();
        (places, replay.counts().moved, replay.scaled_from())
    };
    assert_eq!(fitted(AddressFit::AsTheyAre), (vec![0, 10, 199], 0, None));
    assert_eq!(fitted(AddressFit::Wrap), (vec![0, 7, 4], 2, None));
    assert_eq!(fitted(AddressFit::Scale), (vec![0, 0, 14], 2, Some(200)));
}

#[test]
fn a_trace_that_fits_is_not_scaled() {
    let file = trace(THREE);
    let scaled = ReplayPlan {
        fit: AddressFit::Scale,
        ..plan(&file)
    };
    let mut replay = Replay::new(scaled, BLOCK, 101).expect("a proper trace");
    assert_eq!(arrivals(&mut replay)[1].1, 100);
    assert_eq!(replay.scaled_from(), None);
}

#[test]
fn several_devices_are_not_mixed_unless_asked_for() {
    let file = trace("0,a,R,0,512\n1,b,R,512,512\n2,a,R,1024,512\n");
    let replayed = |devices| {
        let chosen = ReplayPlan {
            devices,
            ..plan(&file)
        };
        Replay::new(chosen, BLOCK, 1000).expect("a proper trace")
    };
    let mut only = replayed(DeviceChoice::Only);
    assert!(only.next_arrival().is_ok());
    let error = only.next_arrival().expect_err("a second device");
    assert_eq!(
        error.to_string(),
        format!(
            "{}:2: a request for device \"b\" after some for \"a\": expected one device; choose \
             with --device NAME, or take them as one with --device all",
            file.path().display()
        )
    );
    let mut b = replayed(DeviceChoice::Named("b".to_owned()));
    assert_eq!(arrivals(&mut b), [(0, 1, 1)]);
    assert_eq!(b.counts().of_other_devices, 2);
    assert_eq!(arrivals(&mut replayed(DeviceChoice::All)).len(), 3);
    let error = replayed(DeviceChoice::Named("c".to_owned()))
        .next_arrival()
        .expect_err("no such device");
    assert!(
        error
            .to_string()
            .ends_with("no request for device \"c\": expected one of a, b")
    );
}

#[test]
fn an_arrival_knows_its_line() {
    let file = trace("0,0,R,0,512\nnonsense\n1,0,R,512,512\n");
    let skipping = ReplayPlan {
        on_bad: OnBad::Skip,
        ..plan(&file)
    };
    let mut replay = Replay::new(skipping, BLOCK, 1000).expect("a proper trace");
    assert!(replay.next_arrival().is_ok() && replay.next_arrival().is_ok());
    let place = replay.place().expect("a place");
    assert!(place.ends_with(".csv:3"), "{place}");
    assert_eq!(replay.reader().skipped().total(), 1);
}
