//! A mirror of two drives beside one drive, with beliefs that are exact.

use std::sync::Arc;

use block::{Instant, Switch};
use drive::{Imperfections, Profile, catalog};
use engine::{Limits, ReadRule, Rules};
use scheduler::freeblock::WantedBlocks;
use scheduler::policy::find;
use simulator::run::Options;
use simulator::scenario::{Background, Scenario, ScenarioResult};
use simulator::workload::{BuiltInWorkload, Overrides, Synthetic};

/// The shipped drive of the freeblock paper. Its writes end on the medium.
fn drive() -> Arc<Profile> {
    let entry = catalog::find("quantum-atlas-10k").expect("a shipped drive");
    let profile = entry.profile().expect("a valid profile");
    Arc::new(profile.switched(Switch::On, Switch::Off))
}

fn scenario(profile: &Arc<Profile>, mirror: Option<ReadRule>) -> Scenario {
    let policy = find("sptf").expect("a policy of the table");
    Scenario {
        belief: Arc::clone(profile),
        truth: Arc::clone(profile),
        imperfections: Imperfections::default(),
        seed: 1,
        policy,
        limits: Limits::suited_to(policy, profile),
        preemption: None,
        background: None,
        mirror,
    }
}

/// Runs 3,000 requests of a built-in load, 16 of which are always outstanding.
fn play(scenario: &Scenario, load: &str) -> ScenarioResult {
    let overrides = Overrides {
        tasks: Some(16),
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let load = BuiltInWorkload::find(load).expect("a built-in load");
    let load = load.workload().and_then(|load| load.with(&overrides));
    let blocks = scenario.truth.geometry.sectors().0;
    let load = load.and_then(|load| Synthetic::new(&load, scenario.truth.block_bytes, blocks));
    let options = Options {
        requests: Some(3_000),
        ..Options::default()
    };
    let played = scenario.play(&mut load.expect("it fits on the drive"), &options, &mut ());
    played.expect("a load that fits")
}

fn seconds(played: &ScenarioResult) -> f64 {
    played.ran.end.since(Instant::ZERO).as_secs_f64()
}

#[test]
fn the_nearer_head_reads_more_than_each_in_turn_and_nearly_twice_as_much_as_one() {
    let profile = drive();
    let [one, nearest, in_turn] = [None, Some(ReadRule::Nearest), Some(ReadRule::RoundRobin)]
        .map(|mirror| seconds(&play(&scenario(&profile, mirror), "uniform-4k")));
    assert!(one > 1.9 * nearest, "{one} s and {nearest} s");
    assert!(in_turn > 1.1 * nearest, "{in_turn} s and {nearest} s");
}

#[test]
fn every_write_is_on_both_drives_and_every_read_on_one() {
    let played = play(&scenario(&drive(), Some(ReadRule::Nearest)), "oltp");
    let report = played.ledger.report(&played.ran);
    let commands = report.reads.requests + 2 * report.writes.requests;
    assert!(report.writes.requests > 500, "{}", report.writes.requests);
    let given = report.commands.expect("commands were given");
    assert_eq!(given.commands, commands);
}

#[test]
fn both_drives_are_scanned_in_gaps_that_are_foreseen() {
    let profile = drive();
    let scanned = |mirror| Scenario {
        background: Some(Background::new(
            Rules {
                idle_after: None,
                ..Rules::default()
            },
            WantedBlocks::all(&profile.geometry),
        )),
        ..scenario(&profile, mirror)
    };
    let [one, both] = [None, Some(ReadRule::Nearest)].map(|mirror| {
        let played = play(&scanned(mirror), "oltp");
        let seconds = seconds(&played);
        let scan = played.scan.expect("there was one");
        let gaps = scan.gaps;
        let planned: u64 = gaps.planned.iter().sum();
        assert!(
            200 * gaps.mispredicted < planned,
            "{} of {planned} plans",
            gaps.mispredicted
        );
        scan.progress.account.free.blocks.0 as f64 / seconds
    });
    assert!(
        both > 1.4 * one,
        "{both} blocks a second, {one} of one drive"
    );
}
