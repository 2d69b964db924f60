//! Which surface and cylinder tracks are on: the time from track to track tells.
//!
//! ```text
//!   map            tracks in the order of their blocks, with angles
//!   recognise      cylinder by cylinder, or a serpentine of bands; how many surfaces
//!   rows           every track's row, surface and cylinder; guesses where the map has gaps
//!   describe       nested patterns, as a drive's profile has them
//! ```
//!
//! Which of a row's surfaces is called which cannot be seen from outside, nor whether the heads
//! of every other cylinder take their turns backwards, where a head switch is not longer than the
//! seek to the next cylinder: heads are numbered in the order of their blocks.

use std::sync::Mutex;

use block::{Duration, Extent, Lba};
use drive::Geometry;

use crate::confidence::Confidence;
use crate::device::Offers;
use crate::findings::{Findings, Pattern, TrackLayout, TrackMap};
use crate::prober::Prober;

mod bands;
mod check;
mod cylinder;
mod describe;
mod guess;
mod recognise;
mod rows;
mod skews;
mod skipped;
mod spans;
mod strip;
mod surfaces;
mod track_timer;

pub use skipped::Skipped;

use recognise::Recognised;
use rows::Laid;
use spans::TrackSpan;
use track_timer::TrackTimer;

/// Why no layout was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLayout {
    /// The map is empty.
    NoMap,
    /// Times from track to track could not be measured, or fit no pattern.
    NoPattern,
}

/// Finds the layout of the tracks on the map. If there is none, an earlier one is doubted.
///
/// # Errors
/// If there is no map, or no pattern fits it.
pub async fn find(prober: &Prober) -> Result<(), NoLayout> {
    let found = search(prober).await;
    if found.is_err() {
        prober.findings(Findings::doubt_layout);
    }
    found
}

async fn search(prober: &Prober) -> Result<(), NoLayout> {
    let timer = TrackTimer::new(prober);
    let (pieces, strips) =
        prober.findings(|found| (longest(&found.map), skews::strips(&found.map)));
    let spans = spans::spans(&strips);
    if pieces.is_empty() {
        return Err(NoLayout::NoMap);
    }
    let found = recognise::recognise(&timer, &pieces, &spans).await;
    let found = surfaces::of_densities(&timer, &strips, found).await;
    let found = found.ok_or(NoLayout::NoPattern)?;
    let anchors = match rows::show_bands(&strips, &found.pattern, found.row.first) {
        true => vec![found.row.first],
        false => anchors(&timer, &found, &spans).await,
    };
    let blocks = prober.device().blocks;
    let (places, regular) = prober.findings(|findings| {
        let laid = laid(&findings.map, found.pattern, &anchors, blocks);
        let regular = layout(&findings.map, found.pattern, &anchors, &[], blocks);
        (describe::breaks(&laid, found.pattern), regular)
    });
    let geometry = Geometry::indexed(&regular.description).map_err(|_| NoLayout::NoPattern)?;
    let skipped = match prober.device().offers {
        Offers::CacheControl => {
            skipped::find(&timer, &found.pattern, &found.row, &geometry, &places).await
        }
        // See [`skip_cylinders`].
        Offers::Nothing => Vec::new(),
    };
    let layout = prober
        .findings(|findings| layout(&findings.map, found.pattern, &anchors, &skipped, blocks));
    let geometry = Geometry::indexed(&layout.description).map_err(|_| NoLayout::NoPattern)?;
    let checked = check::check(&timer, &layout, &geometry).await;
    let confidence = checked.layout;
    let alone = layout.pattern.surfaces == 1 && prober.device().offers == Offers::Nothing;
    if alone && confidence.ppm() < ALONE {
        // One surface that was found before is no better.
        prober.findings(|findings| {
            let before = findings.layout.as_mut();
            if let Some(before) = before.filter(|before| before.pattern.surfaces == 1) {
                before.confidence = before.confidence.min(confidence);
            }
        });
        return Err(NoLayout::NoPattern);
    }
    prober.findings(|findings| {
        let layout = TrackLayout {
            confidence,
            ..layout
        };
        findings.lay_out(layout, checked.seeks);
    });
    Ok(())
}

/// Finds the cylinders that hold no blocks between zones, by reads alone and the seeks that were measured. The answer
/// is whether any were found: distances are others then. The layout stays as it is if it fits times that
/// were not used better without them.
pub(crate) async fn skip_cylinders(prober: &Prober) -> Option<()> {
    let timer = TrackTimer::new(prober);
    let blocks = prober.device().blocks;
    let (before, arm) =
        prober.findings(|found| Some((found.layout.clone()?, found.arm.clone()?)))?;
    let pattern = before.pattern;
    if pattern.band > 1 {
        return None;
    }
    let (places, regular) = prober.findings(|found| {
        let laid = laid(&found.map, pattern, &[], blocks);
        let regular = layout(&found.map, pattern, &[], &[], blocks);
        (describe::breaks(&laid, pattern), regular)
    });
    let geometry = Geometry::indexed(&regular.description).ok()?;
    let skipped = skipped::find_by_reads(&timer, &arm, &geometry, &places).await;
    if skipped.is_empty() {
        return None;
    }
    let layout = prober.findings(|found| layout(&found.map, pattern, &[], &skipped, blocks));
    let geometry = Geometry::indexed(&layout.description).ok()?;
    let checked = check::check(&timer, &layout, &geometry).await;
    let confidence = checked.layout;
    if confidence < before.confidence {
        return None;
    }
    prober.findings(|found| {
        let layout = TrackLayout {
            confidence,
            ..layout
        };
        found.lay_out(layout, checked.seeks);
    });
    Some(())
}

/// Lays a map out that has grown since its layout was found, by the pattern and the rows that were found. It stays as
/// it is if the new one is contradictory, or does not fit times that were not used.
pub(crate) async fn extend(prober: &Prober) {
    let timer = TrackTimer::new(prober);
    let blocks = prober.device().blocks;
    let grown = prober.findings(|findings| {
        let before = findings.layout.as_ref()?;
        Some(before.grown(&findings.map, blocks))
    });
    let Some(grown) = grown else { return };
    let Ok(geometry) = Geometry::indexed(&grown.description) else {
        return;
    };
    let checked = check::check(&timer, &grown, &geometry).await;
    let confidence = checked.layout;
    prober.findings(|findings| {
        let worse = findings.layout.as_ref();
        let worse = worse.is_some_and(|before| confidence.ppm() < before.confidence.ppm() / 2);
        if !worse {
            let layout = TrackLayout {
                confidence,
                ..grown
            };
            findings.lay_out(layout, checked.seeks);
        }
    });
}

/// The same without a check. Its confidence is that of the layout before.
pub(crate) fn extend_unchecked(prober: &Prober) {
    let blocks = prober.device().blocks;
    prober.findings(|findings| {
        let Some(before) = &findings.layout else {
            return;
        };
        let grown = before.grown(&findings.map, blocks);
        if before.pattern.surfaces > 1 && Geometry::indexed(&grown.description).is_ok() {
            let layout = TrackLayout {
                confidence: before.confidence,
                ..grown
            };
            findings.lay_out(layout, None);
        }
    });
}

impl TrackLayout {
    /// The layout of a map that has grown since, by the pattern and the rows that were found.
    pub fn grown(&self, map: &TrackMap, blocks: u64) -> TrackLayout {
        layout(map, self.pattern, &self.anchors, &[], blocks)
    }
}

/// The layout of a map whose pattern is known. `anchors` are blocks with which rows begin, as far
/// as they are known; `skipped` are cylinders without blocks.
pub fn layout(
    map: &TrackMap,
    pattern: Pattern,
    anchors: &[Lba],
    skipped: &[Skipped],
    blocks: u64,
) -> TrackLayout {
    let laid = laid(map, pattern, anchors, blocks);
    let fenced = map
        .elsewhere
        .iter()
        .filter_map(|moved| Extent::new(moved.first, block::Sectors(u64::from(moved.blocks))).ok());
    TrackLayout {
        description: describe::describe(&laid, pattern, blocks, &map.slips, skipped),
        pattern,
        anchors: anchors.to_vec(),
        confidence: Confidence::NONE,
        known: describe::known(&map.pieces),
        fenced: fenced.collect(),
    }
}

/// The tracks of a map, and guessed ones, each on its row, surface and cylinder.
fn laid(map: &TrackMap, pattern: Pattern, anchors: &[Lba], blocks: u64) -> Vec<Laid> {
    rows::lay(&skews::strips(map), pattern, anchors, blocks)
}

/// One surface is what is left if no pattern fits. Without cache control, where more patterns are missed,
/// so many parts in a million of the checks have to come true. A choice.
const ALONE: u32 = 900_000;

/// In how many pieces cylinders are looked for. A choice.
const PIECES: usize = 3;

/// The longest of the map's pieces, the longest first.
fn longest(map: &TrackMap) -> Vec<usize> {
    let mut pieces: Vec<usize> = (0..map.pieces.len()).collect();
    pieces.sort_by_key(|&piece| std::cmp::Reverse(map.pieces[piece].tracks()));
    pieces.truncate(PIECES);
    pieces
}

/// In how many pieces of a serpentine the beginning of a row is looked for, at most. A choice: a
/// few seconds of the drive's time each.
const ANCHORS: usize = 128;

/// How long that may take in all. A choice.
const ANCHORING: Duration = Duration::from_secs(45);

/// The same by reads alone. A choice: the map needs the time. Large drives knew more of their tracks with it in ten
/// minutes than with 45 s (docs/results/adopt.md).
const ANCHORING_BY_READS: Duration = Duration::from_secs(15);

/// How often a row's beginning is looked for in a piece.
const ATTEMPTS: u64 = 2;

/// Where rows begin in some pieces.
async fn anchors(timer: &TrackTimer<'_>, found: &Recognised, spans: &[TrackSpan]) -> Vec<Lba> {
    if found.pattern.band == 1 {
        return Vec::new();
    }
    let mut anchors = vec![found.row.first];
    let Some(limit) = recognise::limit(timer, found).await else {
        return anchors;
    };
    let pieces = timer
        .prober
        .findings(|findings| uncertain(&findings.map, &found.pattern));
    let begun = timer.prober.now();
    if timer.prober.device().offers == Offers::Nothing {
        let rows = Mutex::new(anchors);
        let rows_in = &rows;
        let work = pieces.into_iter().take(ANCHORS).map(|piece| async move {
            let row = recognise::row_in(timer, piece, spans, &found.pattern, limit, 0).await;
            if let (Some(row), Ok(mut rows)) = (row, rows_in.lock()) {
                rows.push(row.first);
            }
        });
        let work = timer.prober.rounds(work.collect());
        let end = begun + ANCHORING_BY_READS;
        timer.prober.within(end, work).await;
        let mut anchors = rows.into_inner().unwrap_or_default();
        anchors.sort_unstable();
        return anchors;
    }
    for piece in pieces.into_iter().take(ANCHORS) {
        for attempt in 0..ATTEMPTS {
            let row = recognise::row_in(timer, piece, spans, &found.pattern, limit, attempt);
            if let Some(row) = row.await {
                anchors.push(row.first);
                break;
            }
        }
        if timer.prober.now() > begun + ANCHORING {
            break;
        }
    }
    anchors.sort_unstable();
    anchors
}

/// A piece among so many rows is looked at. A choice.
const ROWS: u64 = 16;

/// The pieces in which rows have to be looked for: first those behind unknown blocks, then those
/// that are long enough to tell whether rows were counted right up to there, and some of the
/// others.
fn uncertain(map: &TrackMap, pattern: &Pattern) -> Vec<usize> {
    let pieces = &map.pieces;
    let gap = |index: &usize| *index > 0 && pieces[index - 1].end() != pieces[*index].first;
    let mut passed = 0;
    let regular = |index: &usize| {
        let tracks = pieces[*index].tracks();
        passed += tracks;
        let chosen = tracks > 3 * pattern.row() || passed > ROWS * pattern.row();
        if chosen {
            passed = 0;
        }
        chosen
    };
    let behind: Vec<usize> = (0..pieces.len()).filter(gap).collect();
    let others = (0..pieces.len())
        .filter(|index| !gap(index))
        .filter(regular);
    behind.iter().copied().chain(others).collect()
}
