//! The whole procedure on a drive that answers, and on one that does not.

use std::sync::Arc;

use block::{Duration, Extent, Instant, Lba, Sectors};
use drive::{Imperfections, VirtualDrive, catalog};
use profiler::procedure::{Step, complete};
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{Device, Findings, Offers, Profiler, Writes};

/// What is found of a drive of which some blocks cannot be read.
fn found(unreadable: Vec<Extent>) -> Findings {
    let entry = catalog::find("hp-c2247a").expect("a shipped drive");
    let truth = Imperfections {
        unreadable,
        ..Imperfections::default()
    };
    let profile = Arc::new(entry.profile().expect("a valid one"));
    let mut drive = VirtualDrive::imperfect(profile, truth, 1);
    let device = Device::of(&drive, Offers::CacheControl, Writes::Forbidden);
    let budget = Duration::from_secs(300);
    let whole = move |prober| complete(prober, budget);
    let mut profiler = Profiler::new(device, Findings::default(), whole);
    let ended = rehearse(&mut profiler, &mut drive, Instant::ZERO, budget);
    assert!(matches!(ended, Rehearsed::Finished(_)), "{ended:?}");
    profiler.findings()
}

fn blocks(first: u64, length: u64) -> Extent {
    Extent::new(Lba(first), Sectors(length)).expect("an extent")
}

#[test]
fn a_block_that_cannot_be_read_does_not_end_it() {
    let third = 2_054_864 / 3;
    let found = found(vec![blocks(third - 50, 100)]);
    assert!(found.spindle.period_ps > 0);
    assert!(
        found
            .progress
            .failed
            .iter()
            .all(|(step, _)| *step != Step::Spindle)
    );
    assert_eq!(found.progress.step, Step::Done);
}

#[test]
fn a_drive_without_readable_blocks_has_no_profile() {
    let found = found(vec![blocks(0, 2_054_864)]);
    assert_eq!(found.spindle.period_ps, 0);
    let [(Step::Spindle, why)] = &found.progress.failed[..] else {
        panic!("{:?}", found.progress);
    };
    assert!(why.contains("cannot be read"), "{why}");
}
