//! Serpentines whose surfaces differ in density: bands of other lengths in other zones, odd rows, slipped
//! tracks.

use std::sync::Arc;

use block::{Duration, Instant, Lba};
use drive::firmware::{LookAhead, WriteBack};
use drive::geometry::indexed::{Description, GroupDescription, GroupRun, TrackRun};
use drive::{Angle, Geometry, Profile, VirtualDrive};
use profiler::procedure::complete;
use profiler::rehearsal::rehearse;
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission};

use crate::harness::{noisy, shipped};

/// Four surfaces that differ by up to 7 %, two of them equally dense. In the second zone the first two have
/// equally many sectors, too.
const ZONES: [[u32; 4]; 2] = [[600, 603, 560, 600], [400, 400, 372, 398]];

/// Rows of each zone: tracks of a band, and how many follow each other.
const ROWS: [&[(u32, u32)]; 2] = [&[(40, 9), (33, 1), (40, 7)], &[(56, 6), (70, 1), (56, 6)]];

fn row(sectors: [u32; 4], band: u32) -> (GroupDescription, Angle) {
    let skew = Angle::fraction(13, 100);
    let hop = Angle::fraction(5, 100);
    let mut start = Angle::ZERO;
    let mut tracks = Vec::new();
    for (head, sectors) in sectors.into_iter().enumerate() {
        let is_back = head % 2 == 1;
        tracks.push(TrackRun {
            cylinder: if is_back { band - 1 } else { 0 },
            head: head as u32,
            sectors,
            start,
            tracks: if is_back { -(band as i32) } else { band as i32 },
            step: skew,
            blocks: sectors,
        });
        start = start + skew.times(u64::from(band)) + hop;
    }
    (GroupDescription::Tracks(tracks), start)
}

fn uneven() -> Profile {
    let mut description = Description {
        surfaces: 4,
        ..Description::default()
    };
    let (mut rows, mut start) = (Vec::new(), Angle::ZERO);
    for (sectors, bands) in ZONES.into_iter().zip(ROWS) {
        for &(band, repeats) in bands {
            let (group, step) = row(sectors, band);
            rows.push(GroupRun {
                group: description.groups.len() as u32,
                cylinder: description.cylinders,
                start,
                repeats,
                cylinders: band,
                step,
            });
            description.groups.push(group);
            description.cylinders += band * repeats;
            let cylinder = sectors.into_iter().sum::<u32>();
            description.blocks += u64::from(cylinder) * u64::from(band * repeats);
            start = start + step.times(u64::from(repeats));
        }
    }
    description.groups.push(GroupDescription::Groups(rows));
    // A track of the first surface in the third row, one of the second in the fifth.
    let places = |row: u64, surface: &[u32], track: u64| {
        let cylinder: u32 = ZONES[0].iter().sum();
        let before: u32 = surface.iter().sum();
        let sectors = u64::from(ZONES[0][surface.len()]);
        row * 40 * u64::from(cylinder) + 40 * u64::from(before) + track * sectors
    };
    let slips = [(places(2, &[], 11), 600), (places(4, &[600], 20), 603)];
    description.slips = slips.to_vec();
    description.blocks -= 1203;
    let mut profile = shipped("quantum-atlas-10k").published();
    profile.geometry = Arc::new(Geometry::indexed(&description).expect("a layout"));
    profile.buffer.look_ahead = LookAhead::None;
    profile.buffer.write_back = WriteBack::None;
    profile
}

fn found(truth: &Arc<Profile>, offers: Offers, budget: Duration) -> Findings {
    let mut drive = VirtualDrive::imperfect(Arc::clone(truth), noisy(), 1);
    let device = DriveIdentity::of(&drive, offers, WritePermission::Forbidden);
    let whole = move |prober| complete(prober, budget);
    let mut profiler = Profiler::new(device, Findings::default(), whole);
    rehearse(&mut profiler, &mut drive, Instant::ZERO, budget);
    profiler.findings()
}

/// Every track is found, and is on its cylinder and surface.
#[test]
fn rows_of_any_length_are_laid_out() {
    let truth = Arc::new(uneven());
    for offers in [Offers::CacheControl, Offers::Nothing] {
        let found = found(&truth, offers, Duration::from_secs(600));
        assert_eq!(found.map.known(), truth.geometry.sectors().0, "{offers:?}");
        let layout = found.layout.expect("a layout");
        assert_eq!(layout.pattern.surfaces, 4, "{offers:?}");
        let geometry = Geometry::indexed(&layout.description).expect("a layout");
        let (mut first, mut wrong, mut tracks) = (Lba(0), 0, 0);
        while let Some(track) = truth.geometry.track_of(first) {
            let believed = geometry.track_of(track.first).expect("all blocks");
            let is_same = (believed.first, believed.sectors) == (track.first, track.sectors);
            assert!(is_same, "{offers:?}: {track:?} {believed:?}");
            wrong += u32::from((believed.cylinder, believed.head) != (track.cylinder, track.head));
            tracks += 1;
            first = Lba(track.last.0 + 1);
        }
        assert_eq!((wrong, tracks), (0, 5_658), "{offers:?}");
        assert!(
            layout.confidence.ppm() > 800_000,
            "{offers:?}: {:?}",
            layout.confidence
        );
    }
}
