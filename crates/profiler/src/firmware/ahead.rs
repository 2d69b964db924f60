//! Look-ahead: its kind, its length, and its continuation.
//!
//! Each test reads a block, leaves the drive idle for as long as look-ahead may need, and requests
//! one other block: it is in the buffer or not. Each test uses fresh tracks.

use block::Lba;
use drive::firmware::{BufferRules, LookAhead};
use drive::geometry::Track;

use super::site::{TestSite, agreed};
use crate::confidence::Confidence;
use crate::findings::FirmwareConfidence;

/// Number of repetitions of each test. A choice: two may fail.
const AGAIN: u32 = 5;

/// Distance of the read block from the end of a track. A choice: less than the blocks of any known
/// look-ahead.
const NEAR: u64 = 8;

/// The longest look-ahead that can be found, in blocks.
const LONGEST: u64 = 16_384;

/// The results of a repeated test.
#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    came: u32,
    asked: u32,
}

impl Votes {
    fn yes(self) -> bool {
        self.came * 2 > self.asked
    }

    /// The number of results that agree with the majority, without the first, which was the
    /// finding.
    fn agreed(self) -> (u32, u32) {
        let with = self.came.max(self.asked - self.came);
        (with.saturating_sub(1), self.asked.saturating_sub(1))
    }
}

/// The tracks that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextTrack {
    SameCylinder,
    OtherCylinder,
    Any,
}

pub(super) async fn measure(
    site: &mut TestSite,
    buffer: &mut BufferRules,
    parts: &mut FirmwareConfidence,
) {
    if site.hit.is_none() {
        return;
    }
    let (mut agreed, mut asked) = (0, 0);
    let mut count = |votes: Votes| {
        let (with, all) = votes.agreed();
        agreed += with;
        asked += all;
        votes.yes()
    };
    let to_end = count(votes(site, NextTrack::Any, to_track_end).await);
    let over_track = count(votes(site, NextTrack::SameCylinder, over_the_end).await);
    let over_cylinder = count(votes(site, NextTrack::OtherCylinder, over_the_end).await);
    buffer.look_ahead = if !to_end {
        LookAhead::None
    } else if over_cylinder {
        LookAhead::Segment
    } else if over_track {
        LookAhead::Cylinder
    } else if count(votes(site, NextTrack::Any, if_sequential).await) {
        LookAhead::TrackIfSequential
    } else {
        LookAhead::Track
    };
    if buffer.look_ahead != LookAhead::None {
        if buffer.look_ahead != LookAhead::TrackIfSequential {
            buffer.look_ahead_blocks = distance(site, buffer.look_ahead).await as u32;
        }
        buffer.look_ahead_on_hit = goes_on(site, buffer).await;
    }
    parts.look_ahead = Confidence::of(agreed, asked);
}

/// One test on a pair of neighbouring tracks.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// Consecutive reads: first block and number of blocks; zero for none.
    reads: [(Lba, u64); 2],
    /// The requested block.
    wanted: Lba,
    /// Idle time of the drive, in revolutions.
    turns: f64,
}

/// Repeats a test.
async fn votes(
    site: &mut TestSite,
    next: NextTrack,
    question: fn(&[Track; 3]) -> Question,
) -> Votes {
    let mut votes = Votes::default();
    for _ in 0..AGAIN {
        let Some(tracks) = neighbours(site, next) else {
            return votes;
        };
        votes.came += u32::from(is_there(site, question(&tracks)).await);
        votes.asked += 1;
    }
    votes
}

/// Executes a test: whether the requested block is in the buffer.
async fn is_there(site: &mut TestSite, question: Question) -> bool {
    for (lba, blocks) in question.reads {
        if blocks > 0 {
            site.read(lba, blocks).await;
        }
    }
    // Asked for at any angle, so that a read of the medium is not as short as a hit each time.
    let turns = question.turns + site.draw();
    site.pause(turns * site.period()).await;
    site.hits(question.wanted).await
}

/// Three consecutive tracks without gaps.
fn neighbours(site: &mut TestSite, next: NextTrack) -> Option<[Track; 3]> {
    for _ in 0..2000 {
        let first = site.fresh();
        let Some(second) = site.after(&first).filter(|track| site.is_whole(track)) else {
            continue;
        };
        let Some(third) = site.after(&second).filter(|track| site.is_whole(track)) else {
            continue;
        };
        let same = first.cylinder == second.cylinder;
        let fits = match next {
            NextTrack::SameCylinder => same,
            NextTrack::OtherCylinder => !same,
            NextTrack::Any => true,
        };
        if fits {
            return Some([first, second, third]);
        }
    }
    None
}

fn to_track_end([first, ..]: &[Track; 3]) -> Question {
    Question {
        reads: [(Lba(first.last.0 - NEAR), 1), (Lba(0), 0)],
        wanted: Lba(first.last.0 - 1),
        turns: 4.0,
    }
}

fn over_the_end([first, second, _]: &[Track; 3]) -> Question {
    Question {
        wanted: Lba(second.first.0 + 2),
        ..to_track_end(&[*first, *second, *second])
    }
}

/// A read across the end of a track: whether the end of the next track is in the buffer.
fn if_sequential([_, second, third]: &[Track; 3]) -> Question {
    Question {
        reads: [(Lba(second.first.0 - 4), 4), (second.first, 4)],
        wanted: Lba(third.last.0 - 2),
        turns: 8.0,
    }
}

/// Maximum number of blocks of look-ahead; zero if the end of the track or cylinder comes first.
async fn distance(site: &mut TestSite, kind: LookAhead) -> u64 {
    let mut low = 1;
    let mut high = 2;
    while high < LONGEST && agreed!(comes(site, high).await) {
        low = high;
        high *= 2;
    }
    while high - low > 1 {
        let middle = (low + high) / 2;
        if agreed!(comes(site, middle).await) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let track = site.fresh();
    let blocks = track.last.0 - track.first.0;
    let ended_by_track = kind != LookAhead::Segment && low + u64::from(track.sectors) / 8 > blocks;
    if ended_by_track { 0 } else { low }
}

/// Whether look-ahead after the first block of a track reaches the block at this distance.
async fn comes(site: &mut TestSite, blocks: u64) -> bool {
    let track = site.fresh();
    site.skip(blocks);
    let question = Question {
        reads: [(track.first, 1), (Lba(0), 0)],
        wanted: Lba(track.first.0 + blocks),
        turns: 4.0 + 1.5 * blocks as f64 / f64::from(track.sectors),
    };
    is_there(site, question).await
}

/// Whether a hit resumes a completed look-ahead.
async fn goes_on(site: &mut TestSite, buffer: &BufferRules) -> bool {
    let mut came = 0;
    for _ in 0..AGAIN {
        let Some([first, second, _]) = neighbours(site, NextTrack::Any) else {
            return false;
        };
        let (read, hit, wanted, turns) = match buffer.look_ahead {
            LookAhead::Segment => {
                let most = u64::from(buffer.look_ahead_blocks);
                site.skip(2 * most);
                let (read, hit) = (first.first.0, first.first.0 + most);
                let turns = 4.0 + 1.5 * most as f64 / f64::from(first.sectors);
                (read, hit, hit + most / 2, turns)
            }
            _ => (first.last.0 - NEAR, first.last.0, second.first.0 + 2, 6.0),
        };
        site.read(Lba(read), 1).await;
        site.pause(turns * site.period()).await;
        let question = Question {
            reads: [(Lba(hit), 1), (Lba(0), 0)],
            wanted: Lba(wanted),
            turns,
        };
        came += u32::from(is_there(site, question).await);
    }
    came * 2 > AGAIN
}
