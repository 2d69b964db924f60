//! The layout of files that makes a sweep as long as possible: an adversary's choice, computed from
//! the drive's profile alone.
//!
//! ```text
//!   place  |1        |2        |3        |4     ...        n|      equal seeks over the whole of it
//!
//!   track of 2   . . . .[first sector of 2]^ . . . . . . . .
//!                                          the head arrives: the sector has just passed
//! ```
//!
//! Files start at equal distances over the whole place, so that the seeks of a sweep are as long as
//! possible in total. Each file starts at the beginning of a nearby track: the one on which the
//! head, coming from the previous batch, needs the most time to reach the end of its batch. All
//! files start together, so all batches have the same length and the same offset in their tracks.
//! The worst case at the start then recurs in every round while the arm moves upward.

use block::{Direction, Duration, Extent, Instant, Lba, Sectors};
use drive::{Position, Profile, SeekTarget};

/// The first blocks of `files` files of `blocks` blocks each, in ascending order, if a sweep reads
/// `batch` of each.
pub(super) fn starts(
    drive: &Profile,
    place: Extent,
    (files, blocks): (usize, u64),
    batch: Sectors,
) -> Vec<Lba> {
    let mut starts = Vec::with_capacity(files);
    let mut head = HeadState::default();
    for file in 0..files {
        let nominal = nominal(place, (files, blocks), file);
        let mut worst: Option<(Duration, Lba)> = None;
        let mut at = nominal;
        for _ in 0..TRACKS {
            let Some(track) = drive.geometry.track_of(at) else {
                break;
            };
            at = Lba(track.last.0 + 1);
            let room = track.first >= place.start() && track.first.0 + blocks <= place.end().0;
            let Ok(extent) = Extent::new(track.first, batch) else {
                break;
            };
            let took = head.least(drive, extent);
            if room && worst.is_none_or(|(longest, _)| took > longest) {
                worst = Some((took, track.first));
            }
        }
        let start = worst.map_or(nominal, |(_, start)| start);
        if let Ok(extent) = Extent::new(start, batch) {
            head = head.after(drive, extent, Duration::ZERO);
        }
        starts.push(start);
    }
    starts
}

/// The start of a file if files lie at equal distances.
fn nominal(place: Extent, (files, blocks): (usize, u64), file: usize) -> Lba {
    let room = place.length().0.saturating_sub(blocks);
    let steps = files.saturating_sub(1).max(1) as u128;
    let offset = u128::from(room) * file as u128 / steps;
    Lba(place.start().0 + offset as u64)
}

/// The head at the end of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct HeadState {
    position: Position,
    at: Instant,
}

impl HeadState {
    /// The state after reading an extent, if the head starts `later` later.
    fn after(self, drive: &Profile, extent: Extent, later: Duration) -> HeadState {
        let mut head = HeadState {
            at: self.at + later,
            ..self
        };
        for run in drive.geometry.runs(extent) {
            let pass = match drive.buffer.zero_latency_read {
                true => drive.pass_zero_latency(head.position, head.at, &run, Direction::Read),
                false => drive.pass(head.position, head.at, &run, Direction::Read),
            };
            head = HeadState {
                position: SeekTarget::from(&run).position,
                at: head.at + pass.total(),
            };
        }
        head
    }

    /// The shortest time to read the extent, with or without electronics overhead and with slightly
    /// longer or shorter seeks.
    fn least(self, drive: &Profile, extent: Extent) -> Duration {
        let electronics = drive.overheads.read_miss.read;
        let slack = Duration::from_nanos(drive.spindle.period().as_nanos() / SLACK);
        let leaves = [Duration::ZERO, slack, electronics, electronics + slack];
        let takes = leaves.map(|later| self.after(drive, extent, later).at.since(self.at));
        takes.into_iter().min().unwrap_or_default()
    }
}

/// Tracks among which the worst is looked for: on two surfaces' worth of any skew of a sixteenth of a
/// revolution or more every angle is among them. A choice.
const TRACKS: usize = 32;

/// By which part of a revolution seeks may differ from round to round, because files go on over the
/// arm's ways in either direction, and noise: a choice, not above what it costs the adversary.
const SLACK: u64 = 64;
