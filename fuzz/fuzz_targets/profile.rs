//! Any text: a profile that can be used, or one error with a line and a message.

#![no_main]

use block::{Extent, Lba, Sectors};
use drive::Profile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Profile::parse(text, "fuzz.toml") {
        Err(error) => {
            let inside = |line: usize| line >= 1 && line <= text.lines().count() + 1;
            assert!(error.line.is_none_or(inside));
            assert!(!error.problem.is_empty());
        }
        Ok(profile) => {
            let geometry = &profile.geometry;
            let Sectors(blocks) = geometry.sectors();
            if let Some(confidence) = &profile.confidence {
                let least = confidence.least().unwrap_or_default();
                assert!((0.0..=1.0).contains(&least));
                let mut end = Lba(0);
                for extent in confidence.known() {
                    assert!(extent.start() >= end && extent.end().0 <= blocks);
                    assert!(confidence.is_known(extent.start()));
                    end = extent.end();
                }
            }
            for lba in [0, blocks / 3, blocks / 2, blocks - 1] {
                let place = geometry.locate(Lba(lba)).expect("a block of the drive");
                let back = geometry.lba_at(place.cylinder, place.head, place.sector);
                assert_eq!(back, Some(Lba(lba)));
                let extent = Extent::new(Lba(lba), Sectors(99)).expect("an extent");
                let run_blocks: u64 = geometry.runs(extent).map(|run| u64::from(run.blocks)).sum();
                assert_eq!(run_blocks, 99.min(blocks - lba));
            }
        }
    }
});
