//! Every row of every golden map: what DiskSim's own layout code says about random blocks.

use block::Lba;
use drive::angle::Angle;
use drive::catalog;

use crate::shared;

/// How far angles may be from the golden ones, in revolutions: the maps have nine digits, and
/// DiskSim's angles 32 bits, which it adds up over thousands of tracks.
const TOLERANCE: f64 = 1e-6;

/// The distance of two angles on the circle.
fn apart(angle: Angle, golden: f64) -> f64 {
    let distance = (angle.revolutions() - golden).rem_euclid(1.0);
    distance.min(1.0 - distance)
}

#[test]
fn every_row_of_every_golden_map_agrees() {
    let Some(shared) = shared::directory("golden maps") else {
        return;
    };
    let mut maps = 0;
    for entry in catalog::ALL {
        let profile = entry.profile().expect("a shipped profile").published();
        let Some(source) = &profile.source else {
            continue;
        };
        let path = shared
            .join("drives")
            .join(source)
            .join("golden_lbn_map.csv");
        if !path.exists() {
            // The invented drive has none.
            assert_eq!(entry.name, "wd-4tb-test", "{}", path.display());
            continue;
        }
        maps += 1;
        let text = std::fs::read_to_string(&path).expect("a readable map");
        let end: f64 = text
            .lines()
            .last()
            .and_then(|line| line.split(',').next()?.parse().ok())
            .expect("a map that is not empty");
        let mut wrong = Vec::new();
        for line in text.lines().skip(1) {
            let numbers: Vec<f64> = line
                .split(',')
                .map(|n| n.parse().expect("a number"))
                .collect();
            let lba = Lba(numbers[0] as u64);
            let place = profile.geometry.locate(lba).expect("a block of the drive");
            let track = profile
                .geometry
                .track_of(lba)
                .expect("a block of the drive");
            let ours = [
                f64::from(place.cylinder),
                f64::from(place.head),
                f64::from(place.sector),
            ];
            // The maps end with the last published block. Tracks go on beyond it where the layout
            // holds more blocks, in DiskSim, or where the drive has one more than was published.
            let bounds = [numbers[7], numbers[8].min(end)];
            let last = (track.last.0 as f64).min(end);
            let same = ours == numbers[1..4]
                && f64::from(place.sectors_per_track) == numbers[5]
                && apart(place.angle, numbers[4]) < TOLERANCE
                && apart(place.width, numbers[6]) < TOLERANCE
                && [track.first.0 as f64, last] == bounds;
            if !same {
                wrong.push(format!(
                    "{line}\n  ours: {place:?} {:.9} {track:?}",
                    place.angle.revolutions()
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{}: {} rows of {} differ, first:\n{}",
            entry.name,
            wrong.len(),
            text.lines().count() - 1,
            wrong[..wrong.len().min(4)].join("\n")
        );
    }
    assert_eq!(maps, 14);
}
