//! Whether tracks have as many sectors on a turn as the map says, by sightings of their own: an end of a track that is
//! checked alone is right to a share of a revolution, and one with a sector too many is not farther off.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use block::{Instant, Lba};

use super::observer::Observer;
use crate::clock::apart;
use crate::findings::{Band, Slip, TrackMap};
use crate::prober::{Prober, TrackCount};

/// Most tracks of a kind that are seen. A choice: they tell sectors that are a twentieth of the host's mean delay, and time
/// ends before.
const MOST: usize = 8192;

/// Kinds of which there are so few, all together, are not counted: one of so many tracks. A choice: half of
/// what may be wrong on a map that is believed.
const RARE: u64 = 100;

/// Counts the sectors of all common kinds of tracks on the map that were not counted before, until `until` at most, and
/// corrects the map. Kinds of narrow sectors need no count. Kinds that are not told are left as they are.
pub(crate) async fn check_counts(prober: &Prober, until: Instant) {
    let observer = Observer::new(prober);
    if observer.late() == 0.0 {
        return;
    }
    let mut kinds = prober.findings(|findings| findings.map.common_kinds());
    kinds.retain(|kind| !observer.is_narrow(kind.count.sectors));
    let work = kinds.iter().map(|kind| count(prober, kind));
    prober.within(until, prober.rounds(work.collect())).await;
    let mut desk = prober.desk();
    let desk = &mut *desk;
    for kind in kinds.into_iter().map(|kind| kind.count) {
        let told = desk.counted.told(kind);
        if let Some(sectors) = told.filter(|sectors| *sectors >= kind.blocks) {
            desk.findings.map.recount(kind, sectors);
            desk.counted.settle(TrackCount { sectors, ..kind });
        }
    }
}

/// The same, where the map is to be believed: now that no more tracks are seen, what the seen ones tell suffices. Pieces with
/// tracks of which they do not tell the number of sectors are unknown again.
pub(crate) async fn settle_counts(prober: &Prober, until: Instant) {
    check_counts(prober, until).await;
    let observer = Observer::new(prober);
    if observer.late() == 0.0 {
        return;
    }
    let mut desk = prober.desk();
    let desk = &mut *desk;
    for kind in desk.findings.map.common_kinds() {
        let kind = kind.count;
        let told = desk.counted.told_at_last(kind, desk.spares.told());
        if let Some(sectors) = told.filter(|sectors| *sectors >= kind.blocks) {
            desk.findings.map.recount(kind, sectors);
            desk.counted.settle(TrackCount { sectors, ..kind });
        }
    }
    let counted = &desk.counted;
    let is_told = |kind: TrackCount| counted.told(kind) == Some(kind.sectors);
    desk.findings
        .map
        .discard_untold(|kind| observer.is_narrow(kind.sectors) || is_told(kind));
}

/// Sights both ends of tracks of a kind until they tell how many sectors it has; ends early if one cannot be sighted.
async fn count(prober: &Prober, kind: &AlikeTracks) -> Option<()> {
    let mut observer = Observer::new(prober);
    let from = prober.desk().counted.seen(kind.count);
    for number in from..MOST {
        if prober.desk().counted.told(kind.count).is_some() {
            break;
        }
        let track = kind.track(number as u64);
        if prober.findings(|findings| findings.map.has_slips(track)) {
            // Where on the track they are is an assumption.
            continue;
        }
        // A clock that drifts is in half of the differences to either side. Look-ahead reads what is above: where that
        // stays in the buffer, always downwards.
        let upwards = number % 2 == 1 && observer.forgets_soon();
        let mut blocks = kind.blocks(number as u64);
        let mut offs = [0.0; 3];
        if !upwards {
            blocks.reverse();
        }
        for (off, block) in offs.iter_mut().zip(blocks) {
            let lba = Lba(track.0 + block);
            let expected = prober.findings(|findings| findings.map.end_angle_of(lba));
            let Some(expected) = expected else {
                continue;
            };
            *off = apart(expected, observer.look(lba).await.ok()?);
        }
        if !upwards {
            offs.reverse();
        }
        let [first, inside, last] = offs;
        let mut desk = prober.desk();
        let spares = desk.spares.told();
        desk.counted
            .add(kind.count, [inside - first, last - first], spares);
    }
    Some(())
}

/// Tracks of a map that are alike.
#[derive(Clone, Debug)]
struct AlikeTracks {
    count: TrackCount,
    /// Where they are.
    bands: Vec<AlikeBand>,
}

/// Such tracks, in a band and its repetitions.
#[derive(Clone, Copy, Debug)]
struct AlikeBand {
    first: Lba,
    tracks: u64,
    /// Blocks from one repetition to the next.
    step: u64,
    repeats: u64,
}

impl AlikeTracks {
    fn tracks(&self) -> u64 {
        let tracks = |band: &AlikeBand| band.tracks * band.repeats;
        self.bands.iter().map(tracks).sum()
    }

    /// The first block of a track, one in between, and the last one.
    fn blocks(&self, number: u64) -> [u64; 3] {
        let last = u64::from(self.count.blocks) - 1;
        [0, spread(number, last), last]
    }

    /// The first block of one of the tracks, spread by the golden section.
    fn track(&self, number: u64) -> Lba {
        let mut place = spread(number, self.tracks());
        for band in &self.bands {
            let tracks = band.tracks * band.repeats;
            if place < tracks {
                let (round, track) = (place / band.tracks, place % band.tracks);
                let blocks = u64::from(self.count.blocks);
                return Lba(band.first.0 + round * band.step + track * blocks);
            }
            place -= tracks;
        }
        self.bands[0].first
    }
}

/// A number below `below`, by the golden section.
fn spread(number: u64, below: u64) -> u64 {
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(spread) * u128::from(below)) >> 64) as u64
}

impl TrackMap {
    /// The kinds of tracks, those with most blocks first, without the rarest ones.
    fn common_kinds(&self) -> Vec<AlikeTracks> {
        let mut kinds: BTreeMap<TrackCount, Vec<AlikeBand>> = BTreeMap::new();
        for piece in &self.pieces {
            let mut first = piece.first;
            for band in &piece.cycle {
                kinds
                    .entry(TrackCount::of(band))
                    .or_default()
                    .push(AlikeBand {
                        first,
                        tracks: band.tracks.into(),
                        step: piece.cycle_blocks(),
                        repeats: piece.repeats.into(),
                    });
                first.0 += u64::from(band.tracks) * u64::from(band.blocks);
            }
        }
        let kinds = kinds.into_iter();
        let mut kinds: Vec<_> = kinds
            .map(|(count, bands)| AlikeTracks { count, bands })
            .collect();
        kinds.sort_by_key(|kind| Reverse(kind.tracks()));
        let all: u64 = kinds.iter().map(AlikeTracks::tracks).sum();
        let mut rest = all;
        kinds.retain(|kind| {
            let is_common = rest * RARE > all;
            rest -= kind.tracks();
            is_common
        });
        kinds
    }

    /// Discards the pieces with tracks of common kinds that are not told. Where that leaves little, kinds that were rare are
    /// common: these go, too.
    fn discard_untold(&mut self, is_told: impl Fn(TrackCount) -> bool) {
        loop {
            let kinds = self.common_kinds().into_iter().map(|kind| kind.count);
            let untold: Vec<TrackCount> = kinds.filter(|kind| !is_told(*kind)).collect();
            if untold.is_empty() {
                return;
            }
            let is_untold = |band: &Band| untold.contains(&TrackCount::of(band));
            let pieces = self.pieces.iter();
            let gone = pieces.filter(|piece| piece.cycle.iter().any(is_untold));
            let gone: Vec<(Lba, Lba)> = gone.map(|piece| (piece.first, piece.end())).collect();
            for (from, to) in gone {
                self.discard(from, to);
            }
        }
    }

    /// Whether sectors are left out on the track that begins with a block.
    fn has_slips(&self, first: Lba) -> bool {
        let Some(track) = self.track_of(first) else {
            return false;
        };
        let from = self.slips.partition_point(|slip| slip.before < first);
        let slip = self.slips.get(from);
        slip.is_some_and(|slip| slip.before.0 < first.0 + u64::from(track.blocks))
    }

    /// All tracks of a kind have so many sectors.
    fn recount(&mut self, count: TrackCount, sectors: u32) {
        let bands = self.pieces.iter_mut().flat_map(|piece| &mut piece.cycle);
        let alike = bands.filter(|band| TrackCount::of(band) == count);
        alike.for_each(|band| band.sectors = sectors);
        // Where a track has no more sectors than blocks, none was left out.
        let slips = std::mem::take(&mut self.slips);
        let has_room = |slip: &Slip| {
            let track = self.track_of(slip.before);
            track.is_none_or(|track| track.blocks + slip.sectors <= track.sectors)
        };
        self.slips = slips.into_iter().filter(has_room).collect();
    }
}

#[cfg(test)]
mod tests {
    use drive::Angle;

    use super::*;
    use crate::findings::MapPiece;

    fn map() -> TrackMap {
        let band = |tracks, blocks, sectors| Band {
            tracks,
            blocks,
            sectors,
            start: Angle::ZERO,
            skew: Angle::fraction(1, 7),
        };
        let piece = |first, cycle, repeats| MapPiece {
            first: Lba(first),
            angle: Angle::ZERO,
            cycle,
            repeats,
            step: Angle::fraction(1, 9),
        };
        let pieces = vec![
            piece(0, vec![band(3, 10, 11), band(1, 8, 11)], 40),
            piece(2_000, vec![band(1, 10, 11)], 100),
            piece(4_000, vec![band(1, 7, 7)], 2),
        ];
        TrackMap {
            pieces,
            ..TrackMap::default()
        }
    }

    #[test]
    fn every_track_of_a_kind_is_seen_and_no_other() {
        let map = map();
        let kinds = map.common_kinds();
        // The rarest is one track of a hundred and thirty.
        let found = |kind: &AlikeTracks| (kind.count.blocks, kind.count.sectors, kind.tracks());
        let counts: Vec<_> = kinds.iter().map(found).collect();
        assert_eq!(counts, [(10, 11, 220), (8, 11, 40)]);
        for kind in &kinds {
            let mut seen: Vec<Lba> = (0..4_000).map(|number| kind.track(number)).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len() as u64, kind.tracks());
            for first in seen {
                let track = map.track_of(first).expect("a track");
                assert_eq!(
                    (track.first, track.blocks, track.sectors),
                    (first, kind.count.blocks, kind.count.sectors)
                );
            }
        }
    }

    #[test]
    fn kinds_that_were_rare_and_never_counted_go_with_the_kinds_that_hid_them() {
        let told = |kinds: &[(u32, u32)]| {
            let mut map = map();
            map.discard_untold(|kind| kinds.contains(&(kind.blocks, kind.sectors)));
            map.pieces
                .iter()
                .map(|piece| piece.first.0)
                .collect::<Vec<_>>()
        };
        // Two tracks of a hundred and sixty are rare, of forty-two or of two they are not.
        assert_eq!(told(&[(10, 11), (8, 11)]), [0, 2_000, 4_000]);
        assert_eq!(told(&[(10, 11)]), [2_000]);
        assert_eq!(told(&[(8, 11)]), [] as [u64; 0]);
        assert_eq!(told(&[(7, 7)]), [4_000]);
    }

    #[test]
    fn a_kind_that_is_counted_changes_and_no_other_does() {
        let (before, mut map) = (map(), map());
        let kind = TrackCount {
            sectors: 11,
            blocks: 10,
        };
        map.recount(kind, 12);
        for lba in (0..5_000).map(Lba) {
            let sectors = before.track_of(lba).map(|track| match track.blocks {
                10 => 12,
                _ => track.sectors,
            });
            assert_eq!(map.track_of(lba).map(|track| track.sectors), sectors);
        }
    }

    #[test]
    fn a_track_with_as_many_sectors_as_blocks_has_left_none_out() {
        let mut map = map();
        let slip = |before| Slip {
            before: Lba(before),
            sectors: 1,
        };
        // On a track of ten blocks, and on one of eight.
        map.slips = vec![slip(5), slip(34)];
        let has = |first| map.has_slips(Lba(first));
        assert_eq!(
            [0, 10, 20, 30, 38].map(has),
            [true, false, false, true, false]
        );
        let kind = TrackCount {
            sectors: 11,
            blocks: 10,
        };
        map.recount(kind, 10);
        assert_eq!(map.slips, [slip(34)]);
    }
}
