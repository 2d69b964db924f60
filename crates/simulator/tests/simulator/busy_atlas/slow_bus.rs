//! A scan on a bus that is slower than the medium: what it costs stays within its budget.

use std::sync::Arc;

use block::{Duration, Instant};
use drive::Imperfections;
use drive::firmware::Bus;
use engine::{Limits, Rules};
use scheduler::freeblock::{Caution, Ranges, SameTrack, WantedBlocks};
use scheduler::policy::find;
use simulator::run::{AfterLoad, Options};
use simulator::scenario::{Background, Scenario, ScenarioResult};

use super::system::{atlas, oltp};

/// Three minutes of ten requests that are always pending, on a bus of so many MB/s; seeks scatter by
/// 60 us.
fn played(mb_s: f64, scan: bool) -> ScenarioResult {
    let mut profile = drive::Profile::clone(&atlas());
    profile.bus = Bus::at(mb_s, profile.block_bytes);
    let profile = Arc::new(profile);
    let mut load = oltp(&profile);
    let policy = find("sptf-sw60").expect("a policy of the table");
    let rules = Rules {
        caution: Caution::Learned { impact_ppm: 10_000 },
        same_track: SameTrack::Allowed,
        ranges: Ranges::Two,
        idle_after: None,
        ..Rules::default()
    };
    let scenario = Scenario {
        belief: Arc::clone(&profile),
        truth: Arc::clone(&profile),
        imperfections: Imperfections {
            seek_noise: Duration::from_micros(60),
            ..Imperfections::default()
        },
        seed: 1,
        policy,
        limits: Limits::suited_to(policy, &profile),
        preemption: None,
        background: scan.then(|| Background {
            rules,
            wanted: WantedBlocks::all(&profile.geometry),
            deadline: None,
            hundredths: 100,
            after_load: AfterLoad::Stop,
        }),
        mirror: None,
    };
    let options = Options {
        until: Some(Instant::ZERO + Duration::from_secs(180)),
        ..Options::default()
    };
    let played = scenario.play(&mut load, &options, &mut ());
    played.expect("a run to its end")
}

/// The budget is 1 %; on the slowest a little more is lost that nobody measures: the next command is given
/// to the drive when one has ended, on the bus. Not planned for, a bus that was hardly slower than the
/// medium cost a seventh, the slowest a fifth.
#[test]
fn a_slow_bus_costs_the_scan_and_not_the_foreground() {
    for mb_s in [2.5, 5.0, 10.0, 20.0, 80.0] {
        let (alone, beside) = (played(mb_s, false), played(mb_s, true));
        let loss = 1.0 - beside.ran.requests as f64 / alone.ran.requests as f64;
        let scan = beside.scan.expect("there is one");
        assert!(loss < 0.02, "{mb_s} MB/s: {loss}, {:?}", scan.gaps);
        // An eighth of what the bus could carry at least, or what the medium gives.
        let read = scan.progress.account.blocks().0 as f64 * 512.0 / 180e6;
        assert!(
            read > (mb_s / 8.0).min(7.0),
            "{mb_s} MB/s: {read} free, {:?}",
            scan.gaps
        );
    }
}
