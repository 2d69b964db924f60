//! A scan beside a load on a whole drive, with its bus and electronics.

use std::sync::Arc;

use block::{Duration, Switch};
use drive::firmware::Bus;
use drive::{Imperfections, catalog};
use engine::{Gaps, Limits, Rules};
use scheduler::freeblock::{Caution, Ranges, SameTrack, Wanted};
use scheduler::policy::find;
use simulator::run::{AfterLoad, Options};
use simulator::scenario::{Background, Scenario};
use simulator::workload::{BuiltIn, Overrides, Synthetic};

/// What came of the gaps in the first hundredths of a scan of the Atlas 10K by a scheduler that
/// knows the drive, without a guard, while ten requests are always pending.
fn in_firmware(ranges: Ranges, stops: u8) -> Gaps {
    let shipped = catalog::find("quantum-atlas-10k").expect("a shipped drive");
    let profile = shipped.profile().expect("a valid profile");
    let mut profile = profile.switched(Switch::Off, Switch::Off);
    // Ultra2 Wide SCSI, as in the freeblock paper's system: the profile's own is another one's.
    let block = Duration::from_nanos(6_400);
    profile.bus = Bus {
        read_block: block,
        write_block: block,
    };
    let profile = Arc::new(profile);
    let busy = Overrides {
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let load = BuiltIn::find("oltp").expect("a built-in load").workload();
    let load = load
        .and_then(|load| load.with(&busy))
        .expect("a valid load");
    let capacity = profile.geometry.sectors().0;
    let mut load = Synthetic::new(&load, profile.block_bytes, capacity).expect("it fits");
    let policy = find("sptf").expect("a policy of the table");
    let scenario = Scenario {
        belief: Arc::clone(&profile),
        truth: Arc::clone(&profile),
        imperfections: Imperfections::default(),
        seed: 0,
        policy,
        limits: Limits::suited_to(policy, &profile),
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
            wanted: Wanted::all(&profile.geometry),
            deadline: None,
            hundredths: 5,
            after_load: AfterLoad::Stop,
        }),
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
