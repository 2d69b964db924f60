//! The prefetcher of SARC: reads a sequence group by group, and a trigger in a group fetches the next
//! one. The two lists belong to the replacement policy, which gets notes.
//!
//! ```text
//!    sequential miss: n, then p tracks        trigger, g before the end
//!   |n|--------------------------------v------|----- next group: p tracks ------v------|
//! ```
//!
//! Gill, Modha, USENIX ATC 2005. Fixed degree and distance: AMP adapts both.

use super::{Advice, Ahead, FetchMode, Note, Prefetcher, Seen, Site, following};
use crate::lru_map::LruMap;
use crate::replacement::Verdict;
use crate::residency::Residency;
use crate::settings::{AlgorithmSettings, Parameter, Values};
use block::Interval;

/// A SARC prefetcher: the state of cached tracks.
#[derive(Clone, Debug)]
pub struct Sarc {
    degree: u64,
    distance: u64,
    threshold: u64,
    /// The number of blocks of a track.
    track: u64,
    tracks: LruMap<u64, Track>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Track {
    /// 0 before the first access.
    counter: u64,
    /// The last track of the group, if this is its trigger.
    trigger: Option<u64>,
}

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "p",
        what: "Tracks of a group; PFC says that it is fixed, 8 is a choice.",
        values: Values::Number {
            range: 1..=4096,
            default: 8,
        },
    },
    Parameter {
        key: "g",
        what: "How far before the end of a group its trigger is; 4 is a choice. Less than p.",
        values: Values::Number {
            range: 0..=4095,
            default: 4,
        },
    },
    Parameter {
        key: "threshold",
        what: "Accesses that make a sequence; the paper leaves it free.",
        values: Values::Number {
            range: 1..=16,
            default: 2,
        },
    },
    Parameter {
        key: "track",
        what: "Blocks of a track; 8 in the paper, 1 for PFC.",
        values: Values::Number {
            range: 1..=256,
            default: 1,
        },
    },
];

impl Sarc {
    /// A prefetcher with these settings.
    pub fn new(settings: &AlgorithmSettings, site: &Site) -> Self {
        let degree = settings.get("p");
        Sarc {
            degree,
            distance: settings.get("g").min(degree - 1),
            threshold: settings.get("threshold"),
            track: settings.get("track"),
            tracks: LruMap::new(site.frames.try_into().unwrap_or(usize::MAX)),
        }
    }

    fn blocks(&self, tracks: Interval) -> Interval {
        if tracks.is_empty() {
            return Interval::EMPTY;
        }
        let last = tracks.last.saturating_mul(self.track);
        Interval::new(
            tracks.first.saturating_mul(self.track),
            last.saturating_add(self.track - 1),
        )
    }

    /// The length of the sequence at this track; computed once, until its eviction.
    fn count(&mut self, track: u64, asked: &[Ahead], reading: &TrackRead) -> u64 {
        let before = track
            .checked_sub(1)
            .filter(|&before| reading.holds(self, asked, before));
        let counted = before.map_or(0, |before| {
            self.tracks.get(before).map_or(0, |before| before.counter)
        });
        let threshold = self.threshold;
        let known = self.tracks.touch_or(track, Track::default);
        if known.counter == 0 {
            known.counter = threshold.min(counted + 1);
        }
        known.counter
    }

    /// Fetches `tracks`, the rest of a group, and sets the trigger in it.
    fn fetch(&mut self, tracks: Interval, mode: FetchMode, advice: &mut Advice) {
        if tracks.is_empty() {
            return;
        }
        let trigger = tracks.last.saturating_sub(self.distance).max(tracks.first);
        let known = self.tracks.touch_or(trigger, Track::default);
        known.trigger = Some(tracks.last);
        advice.fetch(self.blocks(tracks), mode);
    }

    /// Refreshes the tracks of the current group that were not accessed. They would otherwise be
    /// evicted before those of the next group, which are read later.
    fn refresh(&self, trigger: u64, end: u64, advice: &mut Advice) {
        let group = Interval::new(end.saturating_sub(self.degree - 1), end);
        for track in group.blocks() {
            let is_accessed = self
                .tracks
                .get(track)
                .is_some_and(|known| known.counter > 0);
            if track == trigger || !is_accessed {
                let blocks = self.blocks(Interval::new(track, track));
                match advice.notes.last_mut() {
                    Some(Note::Refresh(run)) if run.last.checked_add(1) == Some(blocks.first) => {
                        run.last = blocks.last;
                    }
                    _ => advice.notes.push(Note::Refresh(blocks)),
                }
            }
        }
    }
}

/// A request in progress.
struct TrackRead<'a> {
    seen: &'a Seen,
    residency: &'a Residency,
    /// The first track of the request that was not processed.
    at: u64,
}

impl TrackRead<'_> {
    /// Whether the track is cached now: its last block, if it has several.
    fn holds(&self, sarc: &Sarc, asked: &[Ahead], track: u64) -> bool {
        let last = sarc.blocks(Interval::new(track, track)).last;
        let is_read = track < self.at && self.seen.blocks.contains(last);
        let mut asked = asked.iter().rev();
        is_read || asked.any(|one| one.blocks.contains(last)) || self.residency.is_resident(last)
    }
}

impl Prefetcher for Sarc {
    fn on_request(&mut self, seen: &Seen, residency: &Residency, advice: &mut Advice) {
        let walk = seen.walk();
        let tracks = Interval::new(walk.first / self.track, walk.last / self.track);
        let mut reading = TrackRead {
            seen,
            residency,
            at: tracks.first,
        };
        let from = advice.ahead.len();
        for track in tracks.blocks() {
            reading.at = track;
            let asked = &advice.ahead[from..];
            let is_cached = reading.holds(self, asked, track);
            let counter = self.count(track, asked, &reading);
            if !is_cached && counter == self.threshold {
                let ahead = following(track, self.degree);
                let group = self.blocks(Interval::new(track, ahead.last.max(track)));
                advice.notes.push(Note::SequentialMiss(group.first));
                advice.notes.push(Note::Sequential(group));
                self.fetch(ahead, FetchMode::Sync, advice);
                continue;
            }
            let trigger = self
                .tracks
                .get_mut(track)
                .and_then(|known| known.trigger.take());
            if let Some(end) = trigger {
                let ahead = following(end, self.degree);
                self.refresh(track, end, advice);
                if !ahead.is_empty() {
                    advice.notes.push(Note::Sequential(self.blocks(ahead)));
                }
                self.fetch(ahead, FetchMode::Async, advice);
            }
        }
    }

    fn on_evict(&mut self, block: u64) -> Verdict {
        self.tracks.remove(block / self.track);
        Verdict::Evict
    }

    /// Notes a silently used track as accessed. No trigger fires.
    fn on_silent_use(&mut self, seen: &Seen) {
        let walk = seen.walk();
        for track in walk.first / self.track..=walk.last / self.track {
            let threshold = self.threshold;
            if let Some(known) = self.tracks.get_mut(track) {
                known.counter = known.counter.max(threshold);
            }
        }
    }
}
