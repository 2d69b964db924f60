//! The angles of the pieces of a map, sighted again behind a host that delays: explorations tell where tracks end by
//! few sightings, and each piece begins as far off as the last sighting before it was.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use block::{Instant, Lba};

use super::observer::Observer;
use super::shared_delay::{SharedDelay, TimedOff};
use crate::clock::forward;
use crate::findings::{MapPiece, TrackMap};
use crate::prober::Prober;

/// Pieces that are sighted in turns, and corrected together. A choice: eight seconds of a drive of 7,200 rpm, so that
/// little is lost if time ends.
const BATCH: usize = 100;

/// The share of what is seen that is believed. A choice: pieces are off by 25 us and the median by 16 where delays
/// vary by 30 us, so that this leaves least.
const GAIN: f64 = 0.7;

/// Ends that are farther off are not where the map says, in revolutions: checks tell. A choice: twice what angles are to
/// be right to.
const FAR: f64 = 0.02;

/// Pieces with more than one of so many known blocks are sighted in their middle, too: turns of long leaps are means of
/// turns that differ. A choice: one check of the map is of as many blocks.
const LONG: u64 = 500;

/// A piece is bent if its middle is farther off than the line between its ends, in revolutions. A choice: half of what
/// predictions may be off by, and three times the error of a median of five where delays vary by 30 us.
const BENT: f64 = 5e-3;

/// Pieces between two that are sighted again are turned with them if they have no more tracks. A choice: they were found in one
/// leap or two, and are off alike.
const SHORT: u64 = 32;

/// Whether a host's delays make this necessary.
pub fn needs_settling(prober: &Prober) -> bool {
    Observer::new(prober).late() > 0.0
}

/// The pieces whose angles were sighted again, as their first blocks and lengths.
#[derive(Debug, Default)]
pub struct SettledPieces(BTreeSet<(Lba, u64)>);

impl SettledPieces {
    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Joins tracks that are in two parts, sights both ends of the largest pieces again that are new, and corrects their
/// angles.
pub async fn settle(prober: &Prober, settled: &mut SettledPieces, until: Instant) {
    let late = Observer::new(prober).late();
    let far = FAR.max(late);
    prober.findings(|findings| {
        findings.map.join_parts();
        findings.map.share_turns(late);
    });
    let mut pieces = prober.findings(|findings| {
        let pieces = findings.map.pieces.iter();
        pieces
            .map(|piece| (piece.blocks(), piece.first))
            .filter(|(blocks, first)| !settled.0.contains(&(*first, *blocks)))
            .collect::<Vec<_>>()
    });
    pieces.sort_unstable_by_key(|piece| Reverse(*piece));
    let mut turned = Turned::new();
    for some in pieces.chunks(BATCH) {
        if prober.now() >= until {
            break;
        }
        let mut firsts: Vec<Lba> = some.iter().map(|(_, first)| *first).collect();
        firsts.sort_unstable();
        let work = firsts.iter().map(|first| sight_piece(prober, *first));
        let sighted = prober.rounds(work.collect()).await;
        let sighted: Vec<SightedPiece> = sighted.into_iter().flatten().collect();
        let all = sighted.iter().flat_map(SightedPiece::offs);
        let common = SharedDelay::of(all.copied().collect());
        prober.findings(|findings| {
            for piece in &sighted {
                let corrections = findings.map.correct(piece, &common, far);
                for (first, ends) in &corrections {
                    findings.map.turn_piece(*first, *ends);
                }
                turned.extend(corrections);
            }
        });
        settled
            .0
            .extend(some.iter().map(|(blocks, first)| (*first, *blocks)));
    }
    prober.findings(|findings| findings.map.turn_between(&turned, settled));
}

/// How far pieces were turned at their ends, in revolutions, by their first blocks.
type Turned = BTreeMap<Lba, [f64; 2]>;

/// Tracks of a piece that were sighted: the first, the middle one of a long piece, and the last.
struct SightedPiece {
    first: Lba,
    ends: [Vec<TimedOff>; 2],
    middle: Option<(Lba, Vec<TimedOff>)>,
}

impl SightedPiece {
    /// How far off all of them were.
    fn offs(&self) -> impl Iterator<Item = &TimedOff> {
        let middle = self.middle.iter().flat_map(|(_, offs)| offs);
        self.ends.iter().flatten().chain(middle)
    }
}

/// Sights these tracks of a piece; nothing if a block cannot be sighted.
async fn sight_piece(prober: &Prober, first: Lba) -> Option<SightedPiece> {
    let (last, middle) = prober.findings(|findings| {
        let last = last_track(findings.map.piece_at(first)?);
        Some((last, findings.map.middle(first)))
    })?;
    let ends = [offs_of(prober, first).await?, offs_of(prober, last).await?];
    let middle = match middle {
        Some(middle) => Some((middle, offs_of(prober, middle).await?)),
        None => None,
    };
    Some(SightedPiece {
        first,
        ends,
        middle,
    })
}

/// How far off a block is by some sightings.
async fn offs_of(prober: &Prober, lba: Lba) -> Option<Vec<TimedOff>> {
    let expected = prober.findings(|findings| findings.map.end_angle_of(lba))?;
    let mut observer = Observer::new(prober);
    let sightings = observer.exact_sightings();
    observer.offs((lba, expected), sightings).await.ok()
}

/// The first block of a piece's last track.
fn last_track(piece: &MapPiece) -> Lba {
    let blocks = piece.cycle.last().map_or(0, |band| band.blocks);
    Lba(piece.end().0 - u64::from(blocks))
}

impl TrackMap {
    /// The piece that begins with a block.
    fn piece_at(&self, first: Lba) -> Option<&MapPiece> {
        let place = self
            .pieces
            .binary_search_by_key(&first, |piece| piece.first);
        self.pieces.get(place.ok()?)
    }

    /// By how much a piece is to be turned whose ends were so far off, besides what they have in common with others. A long one
    /// that is bent becomes two. One with an end that is elsewhere stays as it is.
    fn correct(
        &mut self,
        piece: &SightedPiece,
        common: &SharedDelay,
        far: f64,
    ) -> Vec<(Lba, [f64; 2])> {
        let [begin, end] = [0, 1].map(|end| common.rest(&piece.ends[end]));
        let middle = piece.middle.as_ref();
        let middle = middle.map(|(lba, offs)| (*lba, common.rest(offs)));
        let offs = [Some(begin), Some(end), middle.map(|(_, off)| off)];
        if offs.into_iter().flatten().any(|off| off.abs() > far) {
            return Vec::new();
        }
        let [begin, end] = [begin, end].map(|off| off * GAIN);
        let bent = middle.map(|(middle, off)| (middle, off * GAIN));
        match bent.filter(|(_, off)| (off - (begin + end) / 2.0).abs() > BENT * GAIN) {
            Some((middle, off)) => {
                self.cut_piece(piece.first, middle);
                vec![(piece.first, [begin, off]), (middle, [off, end])]
            }
            None => vec![(piece.first, [begin, end])],
        }
    }

    /// Turns short pieces that were not sighted by what their neighbours were turned: each begins where the one before it ends,
    /// and is as far off.
    fn turn_between(&mut self, turned: &Turned, settled: &SettledPieces) {
        let is_sighted = |piece: &MapPiece| {
            turned.contains_key(&piece.first) || settled.0.contains(&(piece.first, piece.blocks()))
        };
        let mut from = 0;
        while from < self.pieces.len() {
            if is_sighted(&self.pieces[from]) {
                from += 1;
                continue;
            }
            let mut to = from;
            let joins = |place: usize| self.pieces[place - 1].end() == self.pieces[place].first;
            while to + 1 < self.pieces.len() && joins(to + 1) && !is_sighted(&self.pieces[to + 1]) {
                to += 1;
            }
            let before = self.pieces[..from]
                .last()
                .filter(|_| from > 0 && joins(from));
            let behind = self.pieces.get(to + 1).filter(|_| joins(to + 1));
            let before = before.and_then(|piece| turned.get(&piece.first));
            let behind = behind.and_then(|piece| turned.get(&piece.first));
            if let (Some([_, before]), Some([behind, _])) = (before, behind) {
                let tracks: u64 = self.pieces[from..=to].iter().map(MapPiece::tracks).sum();
                let mut passed = 0;
                for place in (from..=to).filter(|_| tracks <= SHORT) {
                    let piece = &self.pieces[place];
                    let ends = [passed, passed + piece.tracks()];
                    let part = |track: u64| track as f64 / tracks as f64;
                    let off = ends.map(|track| before + (behind - before) * part(track));
                    passed = ends[1];
                    self.turn_piece(piece.first, off);
                }
            }
            from = to + 1;
        }
    }

    /// The first block of the middle repetition of a long piece.
    fn middle(&self, first: Lba) -> Option<Lba> {
        let piece = self.piece_at(first)?;
        let is_long = piece.repeats >= 4 && piece.blocks() * LONG > self.known();
        is_long.then(|| Lba(first.0 + u64::from(piece.repeats / 2) * piece.cycle_blocks()))
    }

    /// Makes two pieces of one, before the repetition that begins with a block.
    fn cut_piece(&mut self, first: Lba, at: Lba) {
        let place = self
            .pieces
            .binary_search_by_key(&first, |piece| piece.first);
        let Ok(place) = place else {
            return;
        };
        let piece = &mut self.pieces[place];
        let before = (at.0 - first.0) / piece.cycle_blocks();
        let behind = MapPiece {
            first: at,
            angle: piece.angle + piece.step.times(before),
            repeats: piece.repeats - before as u32,
            ..piece.clone()
        };
        piece.repeats = before as u32;
        self.pieces.insert(place + 1, behind);
    }

    /// Turns a piece by how far its first and its last track are off, in revolutions, and the tracks in between by parts
    /// of it.
    fn turn_piece(&mut self, first: Lba, [begin, end]: [f64; 2]) {
        let place = self
            .pieces
            .binary_search_by_key(&first, |piece| piece.first);
        let Some(piece) = place.ok().and_then(|place| self.pieces.get_mut(place)) else {
            return;
        };
        let tracks = piece.cycle_tracks();
        let between = (tracks * u64::from(piece.repeats) - 1).max(1);
        let each = (end - begin) / between as f64;
        piece.angle = piece.angle + forward(begin);
        piece.step = piece.step + forward(each * tracks as f64);
        let mut before = 0;
        for band in &mut piece.cycle {
            band.start = band.start + forward(each * f64::from(before));
            band.skew = band.skew + forward(each);
            before += band.tracks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::Angle;

    use crate::clock::apart;
    use crate::findings::Band;

    #[test]
    fn both_ends_of_a_turned_piece_are_where_they_were_seen() {
        let band = Band {
            tracks: 3,
            blocks: 100,
            sectors: 100,
            start: Angle::ZERO,
            skew: Angle::fraction(1, 10),
        };
        for repeats in [1, 2, 50] {
            let mut map = TrackMap::default();
            map.pieces.push(MapPiece {
                first: Lba(1000),
                angle: Angle::fraction(1, 4),
                cycle: vec![band],
                repeats,
                step: Angle::fraction(1, 3),
            });
            let last = last_track(&map.pieces[0]);
            let ends = |map: &TrackMap| [Lba(1000), last].map(|lba| map.end_angle_of(lba).unwrap());
            let before = ends(&map);
            let off = [0.002, -0.005];
            map.turn_piece(Lba(1000), off);
            for ((before, after), off) in before.into_iter().zip(ends(&map)).zip(off) {
                assert!(
                    (apart(before, after) - off).abs() < 1e-9,
                    "{repeats}: {off}"
                );
            }
            map.turn_piece(Lba(1001), [0.1, 0.1]);
            assert_eq!(map.piece_at(Lba(1001)), None);
        }
    }

    #[test]
    fn short_pieces_are_turned_with_their_neighbours() {
        let piece = |first, tracks| MapPiece {
            first: Lba(first),
            angle: Angle::ZERO,
            cycle: vec![Band {
                tracks,
                blocks: 100,
                sectors: 100,
                start: Angle::ZERO,
                skew: Angle::fraction(1, 10),
            }],
            repeats: 1,
            step: Angle::fraction(1, 3),
        };
        // Two short ones between long ones, a long one, and a short one behind a gap.
        let pieces = vec![
            piece(0, 100),
            piece(10_000, 1),
            piece(10_100, 3),
            piece(10_400, 100),
            piece(20_400, 40),
            piece(24_400, 100),
            piece(40_000, 1),
        ];
        let before = TrackMap {
            pieces,
            ..TrackMap::default()
        };
        let mut map = before.clone();
        let off = [(0, 0.004), (10_400, 0.008), (24_400, 0.008)];
        let turned = off.map(|(first, off)| (Lba(first), [off; 2])).into();
        // One was sighted before, and stays.
        let mut sighted = before.clone();
        let settled = SettledPieces([(Lba(10_000), 100)].into());
        sighted.turn_between(&turned, &settled);
        assert_eq!(sighted.pieces, before.pieces);
        map.turn_between(&turned, &SettledPieces::default());
        let turned = |first: u64| {
            let ends = [&before, &map].map(|map| map.end_angle_of(Lba(first)).expect("a track"));
            apart(ends[0], ends[1])
        };
        for (first, expected) in [
            (0, 0.0),
            (10_000, 0.004),
            (10_100, 0.005),
            (20_400, 0.0),
            (40_000, 0.0),
        ] {
            let is = turned(first);
            assert!((is - expected).abs() < 1e-9, "{first}: {is}");
        }
    }
}
