//! Which skews are regular: those of most tracks of a zone, wherever the map's pieces begin.

use drive::Angle;

use super::strip::{self, RegularSkews, Strip, StripOrigin, other_density};
use crate::clock::apart;
use crate::findings::TrackMap;

/// Skews that differ by less, in revolutions, are the same. A choice: a few sectors.
const SAME: f64 = 0.008;

/// One of so many skews at least is regular. A choice: more than drives have surfaces, by far.
const RARE: u64 = 100;

/// So many tracks tell a zone's step. A choice.
const ENOUGH: u64 = 4;

/// The map's tracks in order, with the skews that are regular in their zones. A zone that is too short to tell
/// has those of the zone before, or else of the zone behind.
pub(super) fn strips(map: &TrackMap) -> Vec<Strip> {
    let mut strips = strip::strips(map);
    settle(&mut strips);
    strips
}

fn settle(strips: &mut [Strip]) {
    let begins = beginnings(strips);
    let mut zones: Vec<(usize, Option<Angle>, Option<Angle>)> = Vec::new();
    let mut from = 0;
    let mut near: Option<Angle> = None;
    for end in 1..=strips.len() {
        if end == strips.len() || begins[end] {
            find_fronts(&mut strips[from..end]);
            let (step, jump) = regular(&strips[from..end], near);
            near = step.or(near);
            zones.push((end, step, jump));
            from = end;
        }
    }
    let mut regular_skews = RegularSkews {
        step: zones.iter().find_map(|zone| zone.1).unwrap_or_default(),
        jump: zones.iter().find_map(|zone| zone.2).unwrap_or_default(),
    };
    let mut from = 0;
    for (end, step, jump) in zones {
        regular_skews = RegularSkews {
            step: step.unwrap_or(regular_skews.step),
            jump: jump.unwrap_or(regular_skews.jump),
        };
        for strip in &mut strips[from..end] {
            strip.regular_skews = regular_skews;
        }
        from = end;
    }
}

/// So many skews alike in a row are those of a band. A choice.
const ALIKE: u64 = 4;

/// With which strips zones begin: with other densities, or with bands of another skew.
fn beginnings(strips: &[Strip]) -> Vec<bool> {
    let mut begins = vec![false; strips.len()];
    // The skews alike up to here, how many they are, and with which strip they begin.
    let (mut run, mut times, mut from) = (Angle::ZERO, 0, 0);
    let mut regular_skews: Option<Angle> = None;
    for (index, strip) in strips.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &strips[before]);
        let other = before.is_none_or(|before| other_density(before.sectors, strip.sectors));
        if other || strip.origin != StripOrigin::Map {
            begins[index] = true;
            (times, regular_skews) = (0, None);
        }
        let next = strips
            .get(index + 1)
            .filter(|next| next.origin == StripOrigin::Map);
        let within = (strip.skew, u64::from(strip.tracks - 1), index);
        let after = next.map(|next| {
            let first = if strip.tracks > 1 { index + 1 } else { index };
            (next.start - strip.last_start(), 1, first)
        });
        for (skew, more, first) in [Some(within), after].into_iter().flatten() {
            if more == 0 {
                continue;
            }
            if times == 0 || apart(run, skew).abs() > SAME {
                (run, times, from) = (skew, 0, first);
            }
            times += more;
            if times >= ALIKE {
                let turned = regular_skews
                    .is_some_and(|regular_skews| apart(regular_skews, run).abs() > 2.0 * SAME);
                begins[from] |= turned;
                regular_skews = Some(run);
            }
        }
    }
    begins
}

/// Finds out whether a zone's shorter tracks have their spare sectors before their blocks: then the
/// skews from turn to turn are of fewer kinds than those from first block to first block.
fn find_fronts(zone: &mut [Strip]) {
    let Some(full) = zone.iter().map(Strip::spare).min() else {
        return;
    };
    let plain = of_two_kinds(zone);
    for strip in &mut *zone {
        let spare = u64::from(strip.spare() - full);
        strip.front = Angle::fraction(1, u64::from(strip.sectors.max(1))).times(spare);
    }
    if of_two_kinds(zone) <= plain {
        for strip in zone {
            strip.front = Angle::ZERO;
        }
    }
}

/// How many skews of a zone are of one of the two commonest kinds.
fn of_two_kinds(zone: &[Strip]) -> u64 {
    let skews = skews(zone);
    let Some((one, times)) = commonest(&skews) else {
        return 0;
    };
    let away = |skew: &&(Angle, u64)| apart(one, skew.0).abs() > SAME;
    let others: Vec<(Angle, u64)> = skews.iter().filter(away).copied().collect();
    times + commonest(&others).map_or(0, |other| other.1)
}

/// The step and the jump of a zone. If both are as common, the step is nearer to `near`, or else
/// what comes first.
fn regular(zone: &[Strip], near: Option<Angle>) -> (Option<Angle>, Option<Angle>) {
    let skews = skews(zone);
    let all: u64 = skews.iter().map(|skew| skew.1).sum();
    if all < ENOUGH {
        return (None, None);
    }
    let Some((one, times)) = commonest(&skews) else {
        return (None, None);
    };
    let away = |skew: &&(Angle, u64)| apart(one, skew.0).abs() > 2.0 * SAME;
    let others: Vec<(Angle, u64)> = skews.iter().filter(away).copied().collect();
    let other = commonest(&others).filter(|other| other.1 >= 2 && other.1 * RARE >= all);
    let Some((other, other_times)) = other else {
        return (Some(one), None);
    };
    let as_common = other_times * 10 > times * 9;
    let like = near.unwrap_or(skews[0].0);
    if as_common && apart(like, other).abs() < apart(like, one).abs() {
        return (Some(other), Some(one));
    }
    (Some(one), Some(other))
}

/// The skews in a zone, and how often they come.
fn skews(zone: &[Strip]) -> Vec<(Angle, u64)> {
    let mut skews: Vec<(Angle, u64)> = Vec::new();
    let mut add = |skew: Angle, times: u64| {
        if times > 0 {
            skews.push((skew, times));
        }
    };
    for (index, strip) in zone.iter().enumerate() {
        add(strip.skew, u64::from(strip.tracks - 1));
        if let Some(next) = zone.get(index + 1) {
            add(next.turn_start() - strip.last_turn_start(), 1);
        }
    }
    skews
}

/// The skew that most others are near to, and how many are.
fn commonest(skews: &[(Angle, u64)]) -> Option<(Angle, u64)> {
    let mut sorted = skews.to_vec();
    sorted.sort_unstable_by_key(|skew| skew.0.raw());
    let at = |index: usize| sorted[index % sorted.len()];
    let (mut end, mut times) = (0, 0);
    let mut best: Option<(u64, usize, usize)> = None;
    for from in 0..sorted.len() {
        while end < from + sorted.len() && (at(end).0 - at(from).0).revolutions() <= SAME {
            times += at(end).1;
            end += 1;
        }
        if best.is_none_or(|best| times > best.0) {
            best = Some((times, from, end));
        }
        times -= at(from).1;
    }
    let (times, from, end) = best?;
    // The middle one of them.
    let mut left = times / 2;
    let middle = (from..end).find(|&index| {
        let own = at(index).1;
        let found = own > left;
        left = left.saturating_sub(own);
        found
    });
    Some((at(middle.unwrap_or(from)).0, times))
}
