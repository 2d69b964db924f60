//! Runs of tracks with equally many sectors, and the rows in which their numbers of sectors repeat.

use block::Lba;

use super::super::strip::{Strip, StripOrigin};
use super::MOST_LEFT_OUT;

/// Consecutive tracks with equally many sectors.
#[derive(Clone, Debug)]
pub(super) struct SectorRun {
    /// Its strips.
    pub strips: Vec<Strip>,
    pub sectors: u32,
    pub tracks: u32,
    /// Whether the run before it ends where it begins.
    pub follows: bool,
}

/// At least so many hundredths of the runs have as many sectors as the ones a row before: zones and odd
/// tracks come in between. A choice.
const REGULAR: usize = 60;

/// Some rows that follow each other: the first block of each band, the last of which is the first of
/// another row.
#[derive(Clone, Debug)]
pub(in super::super) struct ShownRows {
    pub bands: Vec<(Lba, u32)>,
    pub surfaces: u32,
}

/// Rows that are shown. A choice.
const SHOWN: usize = 4;

/// Rows as the numbers of sectors show them, wherever they begin.
pub(in super::super) fn shown(strips: &[Strip]) -> Option<ShownRows> {
    let runs = runs(strips);
    let mut periods = 2..=drive::geometry::MAX_SURFACES as usize;
    let period = periods.find(|period| is_period(&runs, *period))?;
    let regular = |rows: usize| {
        let mut windows = 0..runs.len().saturating_sub(rows * period);
        let from = windows.find(|from| is_regular(&runs[*from..], period, rows))?;
        Some((from + 1, rows - 1))
    };
    let (from, rows) = (2..=SHOWN).rev().find_map(regular)?;
    let numbers = bands_of(&runs[from..from + period]);
    let mut bands = Vec::new();
    for (run, number) in runs[from..=from + rows * period]
        .iter()
        .zip(numbers.iter().cycle())
    {
        let mut rest = run.strips.clone();
        for band in 0..*number {
            let left = rest.iter().map(|strip| strip.tracks).sum::<u32>();
            let strips = taken(&mut rest, left / (number - band));
            let tracks = strips.iter().map(|strip| strip.tracks).sum();
            bands.push((strips.first()?.first, tracks));
        }
    }
    let surfaces = numbers.iter().sum();
    bands.truncate(rows * surfaces as usize + 1);
    Some(ShownRows { bands, surfaces })
}

/// Whether so many rows follow each other, each run with as many sectors and about as many tracks.
pub(super) fn is_regular(runs: &[SectorRun], period: usize, rows: usize) -> bool {
    let Some(some) = runs.get(..=rows * period) else {
        return false;
    };
    let repeats = |run: usize| {
        let (one, two) = (&some[run], &some[run + period]);
        let is_cut = run == 0 || run + period == rows * period;
        one.sectors == two.sectors && (is_cut || one.tracks.abs_diff(two.tracks) <= MOST_LEFT_OUT)
    };
    some[1..].iter().all(|run| run.follows) && (0..=(rows - 1) * period).all(repeats)
}

/// How many surfaces each run of a row has: those of the shortest one have one.
pub(super) fn bands_of(row: &[SectorRun]) -> Vec<u32> {
    let shortest = row.iter().map(|run| run.tracks).min().unwrap_or(1).max(1);
    let bands = row.iter().map(|run| (run.tracks + shortest / 2) / shortest);
    bands.collect()
}

/// Consecutive strips with equally many sectors.
pub(super) fn runs(strips: &[Strip]) -> Vec<SectorRun> {
    let mut runs: Vec<SectorRun> = Vec::new();
    for strip in strips {
        let follows = strip.origin == StripOrigin::Map && !runs.is_empty();
        match runs.last_mut() {
            Some(last) if follows && last.sectors == strip.sectors => {
                last.tracks += strip.tracks;
                last.strips.push(*strip);
            }
            _ => runs.push(SectorRun {
                strips: vec![*strip],
                sectors: strip.sectors,
                tracks: strip.tracks,
                follows,
            }),
        }
    }
    runs
}

/// Whether most runs have as many sectors as those a row before.
pub(super) fn is_period(runs: &[SectorRun], period: usize) -> bool {
    let (mut alike, mut all) = (0, 0);
    for pair in runs.windows(period + 1) {
        if pair[1..].iter().all(|run| run.follows) {
            all += 1;
            alike += usize::from(pair[0].sectors == pair[period].sectors);
        }
    }
    all > 0 && alike * 100 >= all * REGULAR
}

/// The first tracks of some strips.
pub(super) fn taken(rest: &mut Vec<Strip>, tracks: u32) -> Vec<Strip> {
    let (mut taken, mut left) = (Vec::new(), tracks);
    while left > 0
        && let Some(first) = rest.first_mut()
    {
        if first.tracks <= left {
            left -= first.tracks;
            taken.push(rest.remove(0));
        } else {
            taken.push(first.split(left));
            left = 0;
        }
    }
    taken
}
