//! A scan beside a load on a whole drive, with its bus and electronics.

use std::sync::Arc;

use block::Duration;
use drive::Imperfections;
use engine::{Gaps, Limits, Rules};
use scheduler::freeblock::{Caution, Ranges, SameTrack, WantedBlocks};
use scheduler::policy::find;
use simulator::run::{AfterLoad, Options};
use simulator::scenario::{Background, Scenario};

use super::system::{atlas, oltp};

/// What came of the gaps in the first hundredths of a scan of the Atlas 10K by a scheduler that
/// knows the drive, without a guard, while ten requests are always pending.
fn in_firmware(ranges: Ranges, stops: u8) -> Gaps {
    let profile = atlas();
    let mut load = oltp(&profile);
    let policy = find("sptf").expect("a policy of the table");
    let scenario = Scenario {
        belief: Arc::clone(&profile),
        truth: Arc::clone(&profile),
        imperfections: Imperfections::default(),
        seed: 0,
        policy,
        limits: Limits::suited_to(policy, &profile),
        preemption: None,
        background: Some(Background {
            rules: Rules {
                caution: Caution::Fixed {
                    guard: Duration::ZERO,
                    near_miss: Duration::ZERO,
                },
                same_track: SameTrack::Allowed,
                ranges,
                stops,
                idle_after: None,
                ..Rules::default()
            },
            wanted: WantedBlocks::all(&profile.geometry),
            deadline: None,
            hundredths: 5,
            after_load: AfterLoad::Stop,
        }),
        mirror: None,
    };
    let played = scenario.play(&mut load, &Options::default(), &mut ());
    let scan = played.expect("a run to its end").scan;
    scan.expect("a scan").gaps
}

/// One in so many: what a command waits for is known up to some rounding and, of a third and fourth
/// one, up to the others' last blocks on the bus. (Without the rules of `Gap::lag`, one in four.)
fn late(gaps: &Gaps) -> f64 {
    gaps.mispredicted as f64 / gaps.seen as f64
}

#[test]
fn commands_on_the_foregrounds_own_tracks_make_nobody_late() {
    let gaps = in_firmware(Ranges::One, 1);
    let [.., source, destination] = gaps.planned;
    assert!(source > 1_000 && destination > 1_000, "{gaps:?}");
    assert!(late(&gaps) < 0.000_5, "{gaps:?}");
}

#[test]
fn several_reads_on_one_way_make_nearly_nobody_late() {
    for (ranges, stops) in [(Ranges::Two, 1), (Ranges::One, 3), (Ranges::Two, 3)] {
        let gaps = in_firmware(ranges, stops);
        assert!(late(&gaps) < 0.002, "{ranges:?} {stops}: {gaps:?}");
    }
}
