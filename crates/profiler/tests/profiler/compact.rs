//! The file of a large drive is small, and holds the layout that was found.

use std::sync::Arc;

use block::{Duration, Instant, Lba};
use drive::{Geometry, VirtualDrive};
use profiler::procedure::complete;
use profiler::rehearsal::rehearse;
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, belief};

use crate::harness::{noisy, shipped};

/// Ten million tracks of a regular drive are a few hundred numbers; a megabyte leaves room for what
/// is irregular.
const BYTES: usize = 1_000_000;

#[test]
fn the_file_of_the_largest_drive_is_small_and_says_what_was_found() {
    let mut drive = VirtualDrive::imperfect(Arc::new(shipped("modern-20tb")), noisy(), 1);
    let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Forbidden);
    let budget = Duration::from_secs(600);
    let whole = move |prober| complete(prober, budget);
    let mut profiler = Profiler::new(device, Findings::default(), whole);
    rehearse(&mut profiler, &mut drive, Instant::ZERO, budget);
    let findings = profiler.findings();
    let text = belief::text(&findings, &device, "found");
    assert!(text.len() < BYTES, "{} bytes", text.len());
    let layout = findings.layout.as_ref().expect("a layout");
    let found = Geometry::indexed(&layout.description).expect("a layout");
    let believed = belief::profile(&findings, &device, "found").expect("a profile");
    assert_eq!(believed.year, None);
    for number in 0..20_000u64 {
        let lba = Lba(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % device.blocks);
        let (is, read) = (found.locate(lba), believed.geometry.locate(lba));
        let (is, read) = (is.expect("a block"), read.expect("a block"));
        let place = (is.cylinder, is.head, is.sector);
        assert_eq!((read.cylinder, read.head, read.sector), place, "{lba:?}");
        // Angles are written in decimal.
        let off = profiler::clock::apart(is.angle, read.angle).abs();
        assert!(off < 1e-9, "{lba:?}: {off}");
    }
}
