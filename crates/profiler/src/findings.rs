//! All findings about a drive.

use block::Duration;

use crate::clock::PlatterClock;
use crate::confidence::Confidence;

mod arm;
mod firmware;
mod host;
mod kept_seeks;
mod layout;
mod pattern;
mod progress;
mod tracks;

pub use arm::{ArmTimings, SeekPoint};
pub(crate) use arm::{NEAR_NANOS, whole_stroke};
pub use firmware::{
    ChunkRate, ChunkSizes, CountBound, Destage, Firmware, FirmwareConfidence, Honesty, WriteBuffer,
};
pub use host::HostDelays;
pub use layout::TrackLayout;
pub use pattern::{Heading, Pattern, Turning};
pub use progress::{ProfilingProgress, ProfilingStage};
pub use tracks::{Band, Elsewhere, FoundTrack, MapPiece, Slip, TrackMap};

/// The findings of the procedures so far.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The spindle, tracked continuously; its angles are those of the map.
    pub clock: Option<PlatterClock>,
    /// The accuracy of the spindle.
    pub spindle: Steadiness,
    /// Upper bound of the time of buffer hits: every command that reads the medium takes longer.
    /// Zero if unknown.
    pub fast: Duration,
    /// What the path to the drive adds to the drive's times, where it has no cache control.
    pub host: HostDelays,
    /// The tracks in block order.
    pub map: TrackMap,
    /// The confidence in predicted angles of blocks on the map.
    pub map_confidence: Confidence,
    /// The surface and cylinder of each track.
    pub layout: Option<TrackLayout>,
    /// The timing of the arm.
    pub arm: Option<ArmTimings>,
    /// The behaviour and timing of the electronics.
    pub firmware: Option<Firmware>,
    /// The progress of the whole procedure.
    pub progress: ProfilingProgress,
}

impl Findings {
    /// Lays the tracks out. Seeks over the cylinders of another number of surfaces were over other distances: they are
    /// forgotten. Where distances between known blocks are others, or its `seeks` are not as they were measured, seeks are
    /// doubted.
    pub(crate) fn lay_out(&mut self, layout: TrackLayout, seeks: Option<Confidence>) {
        if let (Some(before), Some(arm)) = (&self.layout, &mut self.arm) {
            match before.pattern.surfaces == layout.pattern.surfaces {
                true => {
                    let kept = layout.keeps_seeks_of(before, arm);
                    let all = [Some(arm.confidence), Some(kept), seeks];
                    arm.confidence = all.into_iter().flatten().min().unwrap_or_default();
                }
                false => self.arm = None,
            }
        }
        self.layout = Some(layout);
    }

    /// What a write needs before its first sector is in the bus's table, if there is one, not in the arm's.
    pub(crate) fn share_writes_with_bus(&mut self) {
        if let Some(firmware) = &self.firmware {
            let data = firmware.bus.write_block + firmware.overheads.write_reselect;
            self.arm = self.arm.take().map(|arm| arm.with_data(data));
        }
    }

    /// A layout was looked for and not found: an earlier one is no better than one check that came true.
    pub(crate) fn doubt_layout(&mut self) {
        if let Some(before) = &mut self.layout {
            before.confidence = before.confidence.min(Confidence::of(1, 1));
        }
    }
}

/// The evenness of the spindle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// The fraction of sightings within a second that were within 1 % of a revolution of their
    /// prediction.
    pub confidence: Confidence,
    /// The mean period over all sightings, in picoseconds.
    pub period_ps: u64,
    /// The deviation of the speed from its mean between sightings, in parts per million.
    pub wander_ppm: f64,
}

#[cfg(test)]
mod tests {
    use drive::geometry::indexed::Description;

    use super::*;

    fn layout(surfaces: u32) -> TrackLayout {
        TrackLayout {
            description: Description::default(),
            pattern: Pattern {
                surfaces,
                band: 1,
                turning: Turning::Alternating,
                begins: Heading::Onward,
            },
            anchors: Vec::new(),
            confidence: Confidence::NONE,
            known: Vec::new(),
            fenced: Vec::new(),
        }
    }

    /// Random drive 404:16: seeks over the 7,320 cylinders of one surface, which were 2,440 of three, were believed when time
    /// was over before they were measured again.
    #[test]
    fn seeks_over_the_cylinders_of_another_layout_are_forgotten() {
        let mut found = Findings::default();
        for (surfaces, are_kept) in [(1, true), (1, true), (3, false)] {
            found.arm = Some(ArmTimings::default());
            found.lay_out(layout(surfaces), None);
            assert_eq!(found.arm.is_some(), are_kept, "{surfaces}");
        }
    }

    /// A drive of 18 surfaces whose electronics were not told lost its seeks with them, and was not usable.
    #[test]
    fn seeks_stay_where_no_electronics_were_found() {
        let mut found = Findings {
            arm: Some(ArmTimings {
                read: vec![SeekPoint::default()],
                ..ArmTimings::default()
            }),
            ..Findings::default()
        };
        let before = found.arm.clone();
        found.share_writes_with_bus();
        assert_eq!(found.arm, before);
    }

    #[test]
    fn seeks_are_believed_no_more_than_the_times_of_the_next_layout_say() {
        let mut found = Findings::default();
        found.lay_out(layout(3), None);
        let point = SeekPoint {
            distance: 1,
            ..SeekPoint::default()
        };
        found.arm = Some(ArmTimings {
            read: vec![point],
            confidence: Confidence::of(40, 40),
            ..ArmTimings::default()
        });
        found.lay_out(layout(3), Some(Confidence::of(5, 10)));
        let arm = found.arm.expect("seeks");
        assert_eq!(arm.confidence, Confidence::of(5, 10));
    }

    #[test]
    fn a_layout_that_is_not_found_again_is_doubted() {
        let mut found = Findings::default();
        found.lay_out(
            TrackLayout {
                confidence: Confidence::of(40, 40),
                ..layout(1)
            },
            None,
        );
        found.doubt_layout();
        let layout = found.layout.expect("the earlier one");
        assert_eq!(layout.confidence, Confidence::of(1, 1));
    }
}
