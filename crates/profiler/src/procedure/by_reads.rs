//! The order of the procedures by reads alone, where the map takes most of the time.
//!
//! ```text
//!   first tracks, everywhere --> surfaces --> arm, roughly --> electronics     usable from here on
//!   rest of the tracks --> their cylinders                                     again and again
//!   arm, thoroughly
//! ```
//!
//! A service uses the gaps between known blocks. A small part of the map with a seek table is therefore
//! worth more than a complete map without one.

use std::future::Future;
use std::pin::Pin;

use block::{Duration, Instant};

use super::{
    CHECKS, ENOUGH_PPM, TO_PLACE, begin, explore_rest, fail, find_arm, find_firmware, find_layout,
    find_spindle, limit_arm, spindle_block, take_up_map, verify,
};
use crate::arm::Effort;
use crate::confidence::Confidence;
use crate::findings::{Findings, ProfilingStage, TrackLayout, TrackMap};
use crate::map::{MOST_INQUIRED, SettledPieces};
use crate::prober::Prober;
use crate::{layout, map, spindle};

/// How long no track may be found before the spindle is doubted; twice as long each time. A choice: most drives show one
/// within 30 s, and a look at the clock takes 5 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// The reason for a missing map, for users.
const NO_TRACK: &str = "no track could be made out so far";

/// The arm is measured when one of so many blocks is known. A choice: the regions of an exploration are
/// all over the drive then, and each has tens of cylinders.
const FIRST_PART: u64 = 10;

/// The rest of the map is explored in so many parts of its time, each of which the profile gains. A
/// choice: the checks of a part take 15 s.
const PARTS: u64 = 2;

/// Time for measuring the arm thoroughly. It takes 65 to 105 s on the drives that we ship.
const THOROUGHLY: Duration = Duration::from_secs(110);

/// The arm is measured thoroughly if one of so many parts of what is left suffices. A choice: the square
/// of the known share says how many gaps can be used, and errors of seeks only widen a guard.
const ARM_PART: u64 = 2;

/// The least time of a part of the map. A choice: its checks take nearly as long.
const SHORTEST: Duration = Duration::from_secs(20);

/// Time for the check of a map that has grown, and for the check of its layout.
const CHECKING: Duration = Duration::from_secs(20);

/// Time for the layout of a map that was settled and checked, which a host that is slower than others delays. A choice.
const PLACING: Duration = Duration::from_secs(15);

/// Time for cylinders without blocks: two rounds of times at ten places, and the check of the layout. A choice.
const SKIPPED: Duration = Duration::from_secs(60);

/// Time for sighting the pieces of the map again behind a host that delays, and for their check. A choice: 40 s on a
/// drive of 10,000 rpm.
const SETTLING: Duration = Duration::from_secs(75);

/// One of so many parts of the time that is left is for sighting pieces at most: of a map that grows, and of all of it at the
/// end. A choice: exploration, and counting and checks, need more.
const SETTLING_PARTS: (u64, u64) = (8, 3);

/// Time for counting the sectors of tracks by themselves between parts of the map; at the end it is half of what is left if
/// that is more. A choice: half of the drives need less.
const COUNTING: Duration = Duration::from_secs(40);

/// The least time for exploring again what checks have discarded: with the checks, and the arm.
const MORE: Duration = Duration::from_nanos(
    SHORTEST.as_nanos() + SETTLING.as_nanos() + CHECKING.as_nanos() + THOROUGHLY.as_nanos(),
);

/// What has not ended so long before the end is given up, before the procedure is stopped. A choice: some
/// reads.
const ENDING: Duration = Duration::from_secs(1);

/// The part of a thorough measurement that is not for refining the seek curve.
const UNREFINED: Duration = Duration::from_secs(80);

/// Finds all parts that are left after the spindle until `end`.
pub(super) async fn complete(prober: &Prober, end: Instant) {
    begin(prober, ProfilingStage::Map);
    take_up_map(prober).await;
    let mut settled = SettledPieces::default();
    let (mut map, mut explored) = first_tracks(prober, &mut settled, end).await;
    find_layout(prober).await;
    arm_and_electronics(prober, Effort::QUICK).await;
    let mut measured = surfaces(prober);
    let for_map = for_map(prober, left(prober, end));
    let mut until = prober.now() + for_map;
    let length = part(for_map, PARTS).max(shortest(prober));
    let mut again = false;
    while explored.is_none() && left(prober, until) >= SHORTEST + CHECKING {
        begin(prober, ProfilingStage::Map);
        let stop = until.min(prober.now() + length).saturating_sub(CHECKING);
        explored = prober
            .part(|prober| prober.now() >= stop, Pin::new(&mut map))
            .await;
        let has_ended = explored.is_some() || left(prober, until) < SHORTEST + CHECKING;
        if map::needs_settling(prober) && is_arm_known(prober) && has_ended {
            // All of the map is counted, settled and checked below.
            break;
        }
        count(prober, end).await;
        let begun = prober.now();
        settle(prober, &mut settled, end, SETTLING_PARTS.0).await;
        until += prober.now().since(begun);
        verify(prober).await;
        // A map that is not checked at the end is not believed.
        let before = end.saturating_sub(for_checks(prober));
        let seeks = seeks(prober);
        prober.within(before, place(prober)).await;
        if surfaces(prober) != measured || self::seeks(prober) < seeks {
            // Cylinders are counted otherwise now.
            prober
                .within(before, arm_and_electronics(prober, Effort::QUICK))
                .await;
            measured = surfaces(prober);
        }
        if explored.is_some() && !again {
            // Checks may have discarded tracks.
            again = true;
            if !is_whole(prober) {
                map = exploration(prober, end);
                explored = None;
            }
        }
    }
    if map::needs_settling(prober) {
        let before = end.saturating_sub(ENDING);
        let work = settle_all(prober, &mut settled, end.saturating_sub(PLACING));
        match prober.within(before, work).await {
            Some(()) => place_checked(prober, before).await,
            None => {
                layout::extend_unchecked(prober);
                doubt_layout(prober);
            }
        }
        explore_discarded(prober, &mut settled, end).await;
        place_again(prober, end).await;
    }
    arm_thoroughly(prober, end).await;
}

/// Finds cylinders without blocks, and measures the arm again in the time that is left.
async fn arm_thoroughly(prober: &Prober, end: Instant) {
    let has_skipped = prober.within(end, skip_cylinders(prober)).await.flatten();
    // Seeks that are doubted are measured again, like unknown ones.
    let is_known = seeks(prober) > Confidence::of(1, 1) && has_skipped.is_none();
    let refining = left(prober, end).saturating_sub(UNREFINED);
    let effort = match refining.is_zero() {
        true => Effort::QUICK,
        false => Effort {
            refining: refining.min(Effort::FULL.refining),
            ..Effort::FULL
        },
    };
    if !is_known || effort != Effort::QUICK {
        let work = arm_and_electronics(prober, effort);
        prober.within(end, work).await;
    }
}

/// Puts the tracks of a map that was checked on their surfaces and cylinders. If that does not end before `before`, the
/// pattern that is known says where they are, and the layout is doubted: without them, gaps beside them would
/// bring nothing.
async fn place_checked(prober: &Prober, before: Instant) {
    if prober.within(before, place(prober)).await.is_none() {
        layout::extend_unchecked(prober);
        doubt_layout(prober);
    }
}

/// What checks of the map discard changes the cylinders in between: a layout that was not checked since is doubted, and seeks
/// over its cylinders.
fn doubt_layout(prober: &Prober) {
    prober.findings(Findings::doubt_layout);
    limit_arm(prober);
}

/// Looks for surfaces and cylinders once more if they are not known with confidence, and time is left for them and the arm.
async fn place_again(prober: &Prober, end: Instant) {
    let before = end.saturating_sub(for_quick_arm());
    let confidence = prober.findings(|found| Some(found.layout.as_ref()?.confidence));
    let is_sure = confidence.unwrap_or_default().ppm() >= ENOUGH_PPM;
    if !is_sure && left(prober, before) >= TO_PLACE {
        prober.within(before, find_layout(prober)).await;
    }
}

/// Explores what the checks of a settled map have discarded, as long as there is time and the map grows.
async fn explore_discarded(prober: &Prober, settled: &mut SettledPieces, end: Instant) {
    while left(prober, end) >= MORE && !is_whole(prober) {
        let before = known(prober);
        let checked = prober.findings(|found| CheckedMap::of(found));
        let stop = end.saturating_sub(MORE.saturating_sub(SHORTEST));
        let mut map = exploration(prober, end);
        prober
            .part(|prober| prober.now() >= stop, Pin::new(&mut map))
            .await;
        drop(map);
        let until = end.saturating_sub(ENDING);
        let work = settle_all(prober, settled, end.saturating_sub(PLACING));
        if prober.within(until, work).await.is_none() {
            // What was explored since was not checked.
            prober.findings(|found| checked.restore(found));
            break;
        }
        place_checked(prober, until).await;
        if known(prober) <= before {
            break;
        }
    }
}

/// A map that was checked, with its confidence and its layout.
struct CheckedMap {
    map: TrackMap,
    confidence: Confidence,
    layout: Option<TrackLayout>,
}

impl CheckedMap {
    fn of(found: &Findings) -> Self {
        CheckedMap {
            map: found.map.clone(),
            confidence: found.map_confidence,
            layout: found.layout.clone(),
        }
    }

    /// Makes it the map again.
    fn restore(self, found: &mut Findings) {
        found.map = self.map;
        found.map_confidence = self.confidence;
        found.layout = self.layout;
    }
}

/// An exploration of all unknown blocks, on its way.
type Exploration<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn exploration(prober: &Prober, end: Instant) -> Exploration<'_> {
    Box::pin(explore_rest(prober, end))
}

/// Finds the first tracks everywhere. While there is none, the clock is doubted; if it does not keep the time, or the
/// exploration has given up, all begins anew. Answers the exploration, and whether it has ended.
async fn first_tracks<'a>(
    prober: &'a Prober,
    settled: &mut SettledPieces,
    end: Instant,
) -> (Exploration<'a>, Option<()>) {
    let half = prober.now() + part(left(prober, end), 2);
    let (mut map, mut patience) = (exploration(prober, end), PATIENCE);
    loop {
        let stop = prober.now() + patience;
        let enough = |prober: &Prober| has_enough(prober, half, stop);
        let explored = prober.part(enough, Pin::new(&mut map)).await;
        settle(prober, settled, end, SETTLING_PARTS.0).await;
        verify(prober).await;
        prober.findings(|found| found.progress.failed.retain(|(_, why)| why != NO_TRACK));
        if prober.findings(|found| found.map.known() > 0) || prober.now() >= end {
            return (map, explored);
        }
        fail(prober, ProfilingStage::Map, NO_TRACK.to_owned());
        patience = patience + patience;
        let block = spindle_block(prober.device().blocks, 0);
        if explored.is_some() || !spindle::keeps_time(prober, block).await {
            prober.forget_time();
            find_spindle(prober, end).await;
            begin(prober, ProfilingStage::Map);
            map = exploration(prober, end);
        }
    }
}

/// The least time of a part of the map. Behind a host its checks take longer; a choice: a quarter of it at most, if the seeks
/// between its tracks are known already.
fn shortest(prober: &Prober) -> Duration {
    match map::needs_settling(prober) && is_arm_known(prober) {
        true => Duration::from_nanos(4 * (SETTLING + CHECKING).as_nanos()),
        false => SHORTEST,
    }
}

/// Whether the first tracks suffice, or half of the time is over, or no track was found until `stop`.
fn has_enough(prober: &Prober, half: Instant, stop: Instant) -> bool {
    let now = prober.now();
    let some = prober.device().blocks / FIRST_PART;
    match prober.findings(|found| found.map.known()) {
        0 => now >= stop,
        known => known >= some || now >= half,
    }
}

/// Counts the sectors of tracks by themselves where a host's delays hide single ones.
async fn count(prober: &Prober, end: Instant) {
    let until = end.min(prober.now() + COUNTING);
    map::check_counts(prober, until).await;
}

/// Makes the angles of new pieces of the map more exact where a host delays sightings; whether there were any.
async fn settle(prober: &Prober, settled: &mut SettledPieces, end: Instant, of: u64) -> bool {
    let before = settled.count();
    if !for_settling(prober).is_zero() {
        let until = prober.now() + SETTLING.min(part(left(prober, end), of));
        prober
            .within(end, map::settle(prober, settled, until))
            .await;
    }
    settled.count() > before
}

/// Makes the map as exact as it becomes behind such a host: counts, angles, and checks of all of it.
async fn settle_all(prober: &Prober, settled: &mut SettledPieces, end: Instant) {
    if !for_settling(prober).is_zero() {
        begin(prober, ProfilingStage::Map);
        // Angles and bounds that are not checked are not believed.
        let checking = prober.time_of_checks(CHECKS) + ENDING;
        let end = end.saturating_sub(checking.max(CHECKING));
        let inquiring = prober.time_of_checks(MOST_INQUIRED);
        let before = end.saturating_sub(inquiring);
        settle(prober, settled, before, SETTLING_PARTS.1).await;
        let counting = COUNTING.max(part(left(prober, end), 2));
        map::settle_counts(prober, before.min(prober.now() + counting)).await;
        map::inquire(prober, end).await;
        map::verify_settled(prober, CHECKS, end + checking).await;
    }
}

/// How much of the time the checks of a settled map take.
fn for_checks(prober: &Prober) -> Duration {
    match map::needs_settling(prober) {
        true => prober.time_of_checks(CHECKS + MOST_INQUIRED) + ENDING,
        false => Duration::ZERO,
    }
}

/// How much of the time is for that.
fn for_settling(prober: &Prober) -> Duration {
    match map::needs_settling(prober) {
        true => SETTLING,
        false => Duration::ZERO,
    }
}

/// How many blocks are on known tracks.
fn known(prober: &Prober) -> u64 {
    prober.findings(|found| found.map.known())
}

/// Whether all blocks are.
fn is_whole(prober: &Prober) -> bool {
    known(prober) >= prober.device().blocks
}

/// Finds the cylinders without blocks between zones, if the arm is known.
async fn skip_cylinders(prober: &Prober) -> Option<()> {
    begin(prober, ProfilingStage::Layout);
    layout::skip_cylinders(prober).await
}

/// The confidence in seeks over the cylinders of the layout.
fn seeks(prober: &Prober) -> Confidence {
    let seeks = prober.findings(|found| Some(found.arm.as_ref()?.confidence));
    seeks.unwrap_or_default()
}

/// How many surfaces the layout has.
fn surfaces(prober: &Prober) -> Option<u32> {
    prober.findings(|found| Some(found.layout.as_ref()?.pattern.surfaces))
}

/// Measures the arm, and the electronics if they are not known yet.
async fn arm_and_electronics(prober: &Prober, effort: Effort) {
    begin(prober, ProfilingStage::Arm);
    find_arm(prober, effort).await;
    limit_arm(prober);
    let is_whole = prober.findings(|found| {
        if let (Some(firmware), Some(arm)) = (&mut found.firmware, &found.arm) {
            firmware.follow_arm(arm.overhead);
        }
        found.firmware.as_ref().is_some_and(|found| found.is_whole)
    });
    if !is_whole {
        begin(prober, ProfilingStage::Firmware);
        find_firmware(prober).await;
    }
}

/// How long the arm takes without refining.
fn for_quick_arm() -> Duration {
    THOROUGHLY.saturating_sub(UNREFINED) + CHECKING
}

/// How much of the time that is left is for the map. Behind a host that delays it is half of that at least, and all but for its
/// checks if the arm is known: of all that a profile needs, unknown blocks cost a service most.
fn for_map(prober: &Prober, left: Duration) -> Duration {
    let settling = for_settling(prober);
    let rest = left.saturating_sub(for_arm(prober, left) + for_skipped(prober) + settling);
    match (settling.is_zero(), is_arm_known(prober)) {
        (true, _) => rest,
        (false, false) => rest.max(part(left, 2)),
        (false, true) => rest.max(left.saturating_sub(COUNTING + SETTLING + CHECKING)),
    }
}

/// How much of the time that is left is for the arm.
fn for_arm(prober: &Prober, left: Duration) -> Duration {
    let is_known = is_arm_known(prober);
    match (part(left, ARM_PART) >= THOROUGHLY, is_known) {
        (true, _) => THOROUGHLY,
        (false, true) => Duration::ZERO,
        (false, false) => part(left, ARM_PART),
    }
}

/// How much of the time is for cylinders without blocks, which drives have that are filled cylinder by cylinder.
fn for_skipped(prober: &Prober) -> Duration {
    let band = prober.findings(|found| Some(found.layout.as_ref()?.pattern.band));
    match (band, prober.findings(|found| found.arm.is_some())) {
        (Some(1), true) => SKIPPED,
        _ => Duration::ZERO,
    }
}

/// Whether seeks were measured.
fn is_arm_known(prober: &Prober) -> bool {
    prober.findings(|found| found.arm.is_some())
}

/// One of so many parts of a time.
fn part(time: Duration, of: u64) -> Duration {
    Duration::from_nanos(time.as_nanos() / of)
}

/// Puts new tracks on their surfaces and cylinders: by the pattern that is known, else by all of the procedure.
async fn place(prober: &Prober) {
    let surfaces = prober.findings(|found| Some(found.layout.as_ref()?.pattern.surfaces));
    match surfaces {
        Some(2..) => layout::extend(prober).await,
        _ => find_layout(prober).await,
    }
}

/// The time until `end`.
fn left(prober: &Prober, end: Instant) -> Duration {
    end.max(prober.now()).since(prober.now())
}
