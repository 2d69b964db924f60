//! Two actuators: two engines' worth of heads behind one disk, with beliefs that are exact.

use std::sync::Arc;

use block::{Instant, Switch};
use drive::{Imperfections, Profile, catalog};
use engine::{Limits, Rules};
use scheduler::freeblock::WantedBlocks;
use scheduler::policy::find;
use simulator::run::{AfterLoad, Options};
use simulator::scenario::{Background, Scenario, ScenarioResult};
use simulator::workload::{BuiltInWorkload, Overrides, Synthetic};

/// The shipped drive of two actuators, or the same with one that serves all blocks.
fn drive(actuators: u8) -> Arc<Profile> {
    let entry = catalog::find("modern-18tb-dual").expect("a shipped drive");
    let mut profile = entry.profile().expect("a valid profile");
    profile.actuators = actuators;
    Arc::new(profile)
}

/// So many outstanding requests of a built-in load.
fn load(profile: &Profile, name: &str, tasks: u32) -> Synthetic {
    let overrides = Overrides {
        tasks: Some(tasks),
        ..Overrides::default()
    };
    let load = BuiltInWorkload::find(name).expect("a built-in load");
    let load = load.workload().and_then(|load| load.with(&overrides));
    let blocks = profile.geometry.sectors().0;
    let load = load.and_then(|load| Synthetic::new(&load, profile.block_bytes, blocks));
    load.expect("it fits on the drive")
}

fn scenario(profile: &Arc<Profile>, policy: &str) -> Scenario {
    let policy = find(policy).expect("a policy of the table");
    Scenario {
        belief: Arc::clone(profile),
        truth: Arc::clone(profile),
        imperfections: Imperfections::default(),
        seed: 1,
        policy,
        limits: Limits::suited_to(policy, profile),
        preemption: None,
        background: None,
        mirror: None,
    }
}

fn play(scenario: &Scenario, load: &mut Synthetic, requests: u64) -> ScenarioResult {
    let options = Options {
        requests: Some(requests),
        ..Options::default()
    };
    let played = scenario.play(load, &options, &mut ());
    played.expect("a load that fits")
}

/// Random reads of 4 KiB in a second.
fn iops(policy: &str, actuators: u8, outstanding: u32) -> f64 {
    let profile = drive(actuators);
    let requests = 4_000;
    let mut load = load(&profile, "uniform-4k", outstanding);
    let played = play(&scenario(&profile, policy), &mut load, requests);
    requests as f64 / played.ran.end.since(Instant::ZERO).as_secs_f64()
}

#[test]
fn two_actuators_bring_nearly_twice_the_random_reads_of_one() {
    // As many outstanding for each actuator: SPTF chooses among as many.
    let (two, one) = (iops("sptf", 2, 32), iops("sptf", 1, 16));
    assert!(two > 1.9 * one, "{two} for {one}");
    // As many in all: an order that gains nothing from a longer queue.
    let (two, one) = (iops("fcfs", 2, 32), iops("fcfs", 1, 32));
    assert!(two > 1.9 * one, "{two} for {one}");
}

#[test]
fn both_actuators_are_scanned_in_gaps_that_are_exactly_foreseen() {
    // A write ends on the medium, so that its end tells where the head is.
    let profile = Arc::new(drive(2).switched(Switch::On, Switch::Off));
    let plain = scenario(&profile, "sptf");
    let scanned = Scenario {
        background: Some(Background {
            rules: Rules {
                idle_after: None,
                ..Rules::default()
            },
            wanted: WantedBlocks::all(&profile.geometry),
            deadline: None,
            hundredths: 100,
            after_load: AfterLoad::Stop,
        }),
        ..plain.clone()
    };
    let [without, with] = [&plain, &scanned].map(|scenario| {
        let mut load = load(&profile, "oltp", 32);
        play(scenario, &mut load, 2_000)
    });
    let mean = |played: &ScenarioResult| {
        let report = played.ledger.report(&played.ran);
        report.all.response.expect("requests were served").mean_ms
    };
    let scan = with.scan.as_ref().expect("there was one");
    assert_eq!(scan.gaps.mispredicted, 0);
    let (mean, before) = (mean(&with), mean(&without));
    assert!(mean < 1.05 * before, "{mean} ms instead of {before}");
    assert!(scan.losses.share() < 0.01, "{:?}", scan.losses);
    for actuator in [0, 1] {
        let share = profile.share_of(actuator);
        let extents = scan.left.extents();
        let left = extents.filter_map(|extent| extent.intersection(share));
        let left: u64 = left.map(|extent| extent.length().0).sum();
        let read = share.length().0 - left;
        assert!(read > 300_000, "{read} blocks of actuator {actuator}");
    }
}
