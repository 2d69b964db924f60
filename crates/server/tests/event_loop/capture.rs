//! Captured live runs, replayed in virtual time: the same decisions, byte for byte.

use std::collections::BTreeSet;

use block::operation::Ask;
use block::{Durability, Duration, Extent, Lba, Sectors, Switch};
use drive::catalog::find;
use engine::{Input, Limits, Rules};
use nbd::Style;
use nbd::request::Asked;
use proptest::prelude::*;
use scheduler::Preemption;
use scheduler::background::Order;
use scheduler::freeblock::{Caution, Goal, Ranges, SameTrack, WantedBlocks};
use scheduler::preemption::{Aside, Landing, LastChunk, When};
use server::capture::{
    Belief, CaptureReader, EngineSetting, Event, FIRST, ReplayError, Replayed, Tasks, Tracking,
    frame, replay,
};

use crate::client::Client;
use crate::station::Served;

/// Bytes of the drive that the load uses: all over it.
const BYTES: u64 = 8 << 30;

fn setting(tasks: Tasks) -> EngineSetting {
    let text = find("seagate-cheetah-9lp").expect("it is shipped").text();
    let belief = Belief::plain(text);
    let policy = scheduler::policy::find("sptf").expect("a policy");
    let limits = Limits::suited_to(policy, &belief.profile().expect("a profile"));
    EngineSetting {
        tracking: Tracking::On,
        tasks,
        ..EngineSetting::plain(belief, policy, limits)
    }
}

/// Two reads of 4 KiB for each write, here and there a flush, as of a database; eight at once.
fn load(served: &Served, requests: u64) {
    let mut client = Client::connect(&served.socket(), Style::Structured);
    let payload = vec![7; 4096];
    let mut place = 1u64;
    for request in 0..requests {
        if client.under_way() == 8 {
            let end = client.end().expect("the server answers");
            assert_eq!(end.result, Ok(()));
        }
        place = place
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let offset = (place >> 20) % (BYTES / 4096) * 4096;
        let durability = match request % 9 {
            2 => Durability::Durable,
            _ => Durability::Volatile,
        };
        match request % 30 {
            29 => client.submit(Asked::Of(Ask::Flush), 0, 0, &[]),
            other if other % 3 == 2 => {
                client.submit(Asked::Of(Ask::Write { durability }), offset, 4096, &payload)
            }
            _ => client.submit(Asked::Of(Ask::Read), offset, 4096, &[]),
        };
    }
    while client.under_way() > 0 {
        client.end().expect("the server answers");
    }
}

/// A capture of the load; with background tasks beside it if the setting has them.
fn capture(setting: &EngineSetting, requests: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::captured(folder, setting.clone(), 0.1, BYTES);
    if setting.tasks != Tasks::None {
        served.ask(|event_loop| {
            let now = event_loop.now();
            let engine = event_loop.engine();
            let geometry = std::sync::Arc::clone(&engine.belief().profile().geometry);
            let order = |priority| Order {
                wanted: WantedBlocks::all(&geometry),
                priority,
                deadline: None,
            };
            let first = engine.begin_task(now, order(1)).expect("a task");
            let second = engine.begin_task(now, order(2)).expect("a task");
            engine.suspend_task(now, second).expect("it is there");
            engine.promote_task(now, first, 0).expect("it is there");
            let standing = engine.begin_standing_task(now, 0).expect("a task");
            let half = BYTES / 2 / 512;
            for (at, length) in [(0, half), (half + 8, half)] {
                let extent = Extent::new(Lba(at), Sectors(length)).expect("blocks");
                engine.want(now, standing, extent).expect("it stands");
            }
            let some = Extent::new(Lba(half / 2), Sectors(half)).expect("blocks");
            engine.unwant(now, standing, some).expect("it stands");
            engine.set_impact_budget(now, 50_000);
        });
    }
    load(&served, requests);
    let folder = served.stop();
    std::fs::read(folder.path().join("capture")).expect("a capture")
}

fn again(setting: &EngineSetting, capture: &[u8]) -> Result<Replayed, ReplayError> {
    let mut reader = CaptureReader::open(capture)?;
    replay(&mut reader, setting.engine()?)
}

#[test]
fn a_captured_run_replays_to_the_same_decisions() {
    let setting = setting(Tasks::None);
    let capture = capture(&setting, 400);
    let mut reader = CaptureReader::open(&capture[..]).expect("a capture");
    assert_eq!(reader.setting(), &setting);
    let engine = reader.setting().engine().expect("an engine");
    let replayed = replay(&mut reader, engine).expect("the same decisions");
    let flushes = 400 / 30;
    assert_eq!(replayed.finished, 400 - flushes);
    assert!(replayed.commands > 400 - flushes);
    // Another policy, another belief: both choose differently sooner or later.
    let other = EngineSetting {
        policy: "fcfs".to_owned(),
        ..setting.clone()
    };
    let difference = again(&other, &capture).expect_err("another policy");
    assert!(
        matches!(difference, ReplayError::Difference(_)),
        "{difference}"
    );
    let slower = setting.belief.text.replace("rpm = 10045", "rpm = 9000");
    assert_ne!(slower, setting.belief.text);
    let other = EngineSetting {
        belief: Belief::plain(slower),
        ..setting
    };
    let difference = again(&other, &capture).expect_err("another belief");
    assert!(
        matches!(difference, ReplayError::Difference(_)),
        "{difference}"
    );
    let text = difference.to_string();
    assert!(
        text.contains("captured: gives command") && text.contains("replayed: "),
        "{text}"
    );
}

#[test]
fn background_tasks_are_captured_too() {
    // A belief that is followed has to be confirmed before gaps are filled, and a busy machine is late.
    let setting = EngineSetting {
        tracking: Tracking::Off,
        ..setting(Tasks::By(Rules::default()))
    };
    let capture = capture(&setting, 200);
    let replayed = again(&setting, &capture).expect("the same decisions");
    assert!(replayed.commands > replayed.finished + 20, "{replayed:?}");
}

/// Large reads of background class, and small ones that are more urgent.
fn mixed(served: &Served, pairs: u64) {
    let mut client = Client::connect(&served.socket(), Style::Structured);
    let mut place = 1u64;
    for request in 0..2 * pairs {
        if client.under_way() == 6 {
            let end = client.end().expect("the server answers");
            assert_eq!(end.result, Ok(()));
        }
        place = place
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let offset = (place >> 20) % (BYTES / 4096 - 256) * 4096;
        match request % 2 {
            0 => client.submit(Asked::Of(Ask::Cache), offset, 512 << 10, &[]),
            _ => client.submit(Asked::Of(Ask::Read), offset, 4096, &[]),
        };
    }
    while client.under_way() > 0 {
        client.end().expect("the server answers");
    }
}

#[test]
fn the_rules_of_preemption_are_captured_too() {
    let plain = setting(Tasks::None);
    let belief = plain.belief.profile().expect("a profile");
    let other = Preemption {
        chunk: Some(Sectors(64)),
        just_in_time: Some(Landing::Fixed(Duration::from_micros(900))),
        split: None,
        free_prefetch: Switch::On,
        last_chunk: LastChunk::Every(3),
        aside: Some(Aside {
            fill: Switch::Off,
            most_permille: 400,
        }),
        when: When::Always,
    };
    for rules in [
        Preemption::suited_to(&belief),
        Preemption::as_in_paper(&belief),
        other,
    ] {
        let setting = EngineSetting {
            preemption: Some(rules),
            ..plain.clone()
        };
        let folder = tempfile::tempdir().expect("a folder");
        let served = Served::captured(folder, setting.clone(), 0.1, BYTES);
        mixed(&served, 40);
        let folder = served.stop();
        let capture = std::fs::read(folder.path().join("capture")).expect("a capture");
        let reader = CaptureReader::open(&capture[..]).expect("a capture");
        assert_eq!(reader.setting(), &setting);
        let replayed = again(reader.setting(), &capture).expect("the same decisions");
        assert_eq!(replayed.finished, 80);
        assert!(replayed.commands > 80, "some went in parts: {replayed:?}");
        let difference = again(&plain, &capture).expect_err("without preemption");
        assert!(
            matches!(difference, ReplayError::Difference(_)),
            "{difference}"
        );
    }
}

/// Rules of which none is the default, but for the control group: only simulations are without it.
fn other_rules(caution: Caution) -> Rules {
    Rules {
        caution,
        same_track: SameTrack::Allowed,
        ranges: Ranges::Two,
        goal: Goal::Even,
        stops: 2,
        tracks: 77,
        idle_after: None,
        idle_blocks: 99,
        paid_ppm: 1234,
        control_group: Rules::default().control_group,
    }
}

#[test]
fn the_rules_of_background_tasks_are_captured_too() {
    let fixed = Caution::Fixed {
        guard: Duration::from_nanos(300_000),
        near_miss: Duration::from_nanos(50_000),
    };
    let learned = Caution::Learned { impact_ppm: 20_000 };
    for caution in [fixed, learned] {
        // Where nothing fills a gap, other rules decide alike: see the test above of a belief that is followed.
        let setting = EngineSetting {
            tracking: Tracking::Off,
            ..setting(Tasks::By(other_rules(caution)))
        };
        let capture = capture(&setting, 60);
        let reader = CaptureReader::open(&capture[..]).expect("a capture");
        assert_eq!(reader.setting(), &setting);
        let replayed = again(reader.setting(), &capture).expect("the same decisions");
        assert!(replayed.commands > replayed.finished, "{replayed:?}");
        let other = EngineSetting {
            tasks: Tasks::By(Rules::default()),
            ..setting
        };
        let difference = again(&other, &capture).expect_err("other rules");
        assert!(
            matches!(difference, ReplayError::Difference(_)),
            "{difference}"
        );
    }
}

#[test]
fn damage_is_found_with_its_place() {
    let setting = setting(Tasks::None);
    let capture = capture(&setting, 30);
    let whole = again(&setting, &capture).expect("the same decisions");
    assert!(whole.events > 100, "{whole:?}");
    let problem_of = |bytes: &[u8]| {
        let problem = again(&setting, bytes).expect_err("it is damaged");
        let text = problem.to_string();
        assert!(matches!(problem, ReplayError::Damaged(_)), "{text}");
        assert!(
            text.starts_with("byte ") && text.contains("expected "),
            "{text}"
        );
    };
    for length in (0..capture.len()).step_by(7) {
        problem_of(&capture[..length]);
    }
    for place in (0..capture.len()).step_by(11) {
        let mut changed = capture.clone();
        changed[place] ^= 1 << (place % 8);
        problem_of(&changed);
    }
    let mut longer = capture.clone();
    longer.push(0);
    problem_of(&longer);
}

/// A setting that can be: no text, no policy, the least limits.
fn least(tasks: Tasks) -> EngineSetting {
    EngineSetting {
        belief: Belief::plain(""),
        policy: String::new(),
        tracking: Tracking::Off,
        tasks,
        limits: Limits {
            requests: 1,
            reserved_for_real_time: 0,
            commands_at_drive: 2,
            ..Limits::default()
        },
        preemption: None,
    }
}

fn bytes(setting: &EngineSetting) -> Vec<u8> {
    postcard::to_allocvec(setting).expect("memory takes everything")
}

/// A file from frames with right checksums.
fn file(payloads: &[&[u8]]) -> Vec<u8> {
    let frames = payloads.iter().flat_map(|payload| frame(payload));
    FIRST.iter().copied().chain(frames).collect()
}

proptest! {
    #[test]
    fn arbitrary_events_are_read_or_refused(
        header in prop::collection::vec(any::<u8>(), 0..60),
        events in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let with_rules = bytes(&least(Tasks::By(other_rules(Caution::default()))));
        for header in [&header[..], &bytes(&least(Tasks::None)), &with_rules] {
            let file = file(&[header, &events]);
            let Ok(mut reader) = CaptureReader::open(&file[..]) else {
                continue;
            };
            while let Ok(Some((offset, _))) = reader.next_event() {
                prop_assert!(offset < file.len() as u64);
            }
        }
    }

    /// A real setting with senseless events: the replay ends, with a problem or without.
    #[test]
    fn senseless_events_are_survived(
        events in prop::collection::vec((0u8..14, prop::collection::vec(0u8..6, 0..12)), 0..40),
    ) {
        let mut payload = Vec::new();
        for (kind, numbers) in &events {
            // Most are inputs, at the same moment.
            payload.extend_from_slice(&[kind.saturating_sub(11), 0, *kind]);
            payload.extend_from_slice(numbers);
        }
        let setting = setting(Tasks::By(Rules::default()));
        let file = file(&[&bytes(&least(Tasks::None)), &payload]);
        let mut reader = CaptureReader::open(&file[..]).expect("a setting");
        let _ = replay(&mut reader, setting.engine().expect("an engine"));
    }
}

#[test]
fn each_connection_is_an_owner_and_a_replay_has_them_too() {
    let mut setting = setting(Tasks::None);
    setting.policy = "anticipatory6".to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::captured(folder, setting.clone(), 0.1, BYTES);
    load(&served, 40);
    load(&served, 40);
    let folder = served.stop();
    let capture = std::fs::read(folder.path().join("capture")).expect("a capture");
    let mut reader = CaptureReader::open(&capture[..]).expect("a capture");
    let mut owners = BTreeSet::new();
    while let Some((_, event)) = reader.next_event().expect("a whole capture") {
        if let Event::Input(_, Input::Submit(request), _) = event {
            assert!(request.owner.is_known());
            owners.insert(request.owner);
        }
    }
    assert_eq!(owners.len(), 2);
    again(&setting, &capture).expect("the same decisions");
}

#[test]
fn a_capture_of_another_version_is_refused_by_its_number() {
    // Requests of version 2 have no owner, without which some policies decide otherwise.
    for version in [1, 2] {
        let first = format!("headtime capture {version}\n");
        let problem = CaptureReader::open(first.as_bytes()).err();
        let text = problem.expect("it is older").to_string();
        let expected = format!("byte 0: a capture of version {version}, expected 3");
        assert!(text.starts_with(&expected), "{text}");
    }
}

#[test]
fn limits_under_which_nothing_is_served_are_refused() {
    let mut setting = least(Tasks::None);
    setting.limits.commands_at_drive = 0;
    let none = file(&[&bytes(&setting)]);
    let problem = CaptureReader::open(&none[..])
        .err()
        .expect("no engine has these limits");
    assert!(problem.to_string().contains("expected limits"), "{problem}");
}
