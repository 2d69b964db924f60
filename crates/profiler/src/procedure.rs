//! The whole procedure: all parts of a profile in order, each based on the previous ones.
//!
//! ```text
//!   spindle ---> map ---> arrangement ---> arm ---> firmware
//! ```
//!
//! By reads alone the map takes most of the time: see `by_reads`.

use block::{Duration, Instant, Lba};
use drive::Geometry;

use crate::arm::{self, Effort};
use crate::belief::phase;
use crate::device::Offers;
use crate::findings::{Findings, ProfilingStage, TrackMap};
use crate::firmware;
use crate::layout::{self, NoLayout};
use crate::map;
use crate::prober::{Prober, Unseen};
use crate::spindle::{self, NotFound};

mod by_reads;

/// Runs all procedures, continuing from earlier findings, within about `budget` of the drive's
/// time. The owner stops the procedure at the end of the budget in any case.
pub async fn complete(prober: Prober, budget: Duration) {
    let begun = prober.now();
    let end = begun + budget;
    if !find_spindle(&prober, end).await {
        begin(&prober, ProfilingStage::Done);
        return;
    }
    if prober.device().offers == Offers::Nothing {
        by_reads::complete(&prober, end).await;
        begin(&prober, ProfilingStage::Done);
        return;
    }
    // The map of a large drive may take hours: the other parts come before it is complete.
    find_map(&prober, Duration::from_nanos(budget.as_nanos() / 2)).await;
    find_layout(&prober).await;
    begin(&prober, ProfilingStage::Arm);
    let left = Duration::from_nanos(end.as_nanos().saturating_sub(prober.now().as_nanos()));
    let effort = match left.as_nanos() * SHARE_OF_ARM < budget.as_nanos() {
        true => Effort::QUICK,
        false => effort(prober.now().since(begun)),
    };
    find_arm(&prober, effort).await;
    limit_arm(&prober);
    begin(&prober, ProfilingStage::Firmware);
    find_firmware(&prober).await;
    complete_map(&prober, end).await;
    limit_arm(&prober);
    if let Some(geometry) = geometry(&prober) {
        firmware::measure_rest(&prober, &geometry).await;
    }
    begin(&prober, ProfilingStage::Done);
}

fn begin(prober: &Prober, step: ProfilingStage) {
    prober.findings(|findings| findings.progress.step = step);
}

fn fail(prober: &Prober, step: ProfilingStage, why: String) {
    prober.findings(|findings| findings.progress.failed.push((step, why)));
}

/// Forgets why a part was not found: it is looked for again.
fn retry(prober: &Prober, step: ProfilingStage) {
    prober.findings(|findings| findings.progress.failed.retain(|(other, _)| *other != step));
}

/// Attempts to find the spindle, each with a block of its own. A choice: a disk has no time for so many in ten minutes, and
/// what is no disk answers all of them in seconds.
const ATTEMPTS: u64 = 64;

/// Attempts that may end with too little confidence. A choice: a host that spoils three of them spoils more.
const DOUBTED: u64 = 3;

/// The confidence with which the spindle is not looked for again: half, which beliefs need.
const ENOUGH_PPM: u32 = 500_000;

/// Finds the spindle; a stage that has failed is begun again at another place, until the end. Answers whether it was found.
async fn find_spindle(prober: &Prober, end: Instant) -> bool {
    begin(prober, ProfilingStage::Spindle);
    let blocks = prober.device().blocks;
    let mut doubted = 0;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 && prober.now() >= end {
            break;
        }
        let found = spindle::find(prober, spindle_block(blocks, attempt)).await;
        retry(prober, ProfilingStage::Spindle);
        if let Err(why) = found {
            fail(prober, ProfilingStage::Spindle, of_spindle(why));
            continue;
        }
        doubted += 1;
        let sure = prober.findings(|found| found.spindle.confidence.ppm() >= ENOUGH_PPM);
        if sure || doubted >= DOUBTED {
            return true;
        }
    }
    prober.findings(|found| found.clock.is_some())
}

/// The block for an attempt to find the spindle: a third of the drive, two thirds, and then by the golden section. A choice:
/// the first ones are far from where file systems write most.
fn spindle_block(blocks: u64, attempt: u64) -> Lba {
    match attempt {
        0 | 1 => Lba(blocks / 3 * (attempt + 1)),
        _ => {
            let spread = attempt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            Lba(((u128::from(spread) * u128::from(blocks)) >> 64) as u64)
        }
    }
}

/// The reason for a missing period, for users.
fn of_spindle(why: NotFound) -> String {
    let why = match why {
        NotFound::Unseen(Unseen::Unreadable) => "the blocks that were tried cannot be read",
        NotFound::Unseen(Unseen::Buffered) => "all reads seem to be answered by the buffer",
        NotFound::Unseen(Unseen::Unsteady) => "no two reads of one block agree on where it is",
        NotFound::NoCommonMeasure => "the times between reads of one block have no common measure",
    };
    why.to_owned()
}

/// Number of fresh blocks against which a map is checked; half of it behind a host that delays, where each takes five
/// times as long, before the map is settled.
const CHECKS: u32 = 200;

/// Number of positions at which a drive is explored if it is too large to be explored completely. A
/// choice: pairs of them have seeks of most lengths.
const PLACES: u64 = 12;

/// Explores the drive from its beginning. If half of the time does not suffice for all of it,
/// explores evenly distributed positions.
async fn find_map(prober: &Prober, time: Duration) {
    begin(prober, ProfilingStage::Map);
    take_up_map(prober).await;
    let blocks = prober.device().blocks;
    let half = Duration::from_nanos(time.as_nanos() / 2);
    explore(prober, Lba(0), prober.now() + half).await;
    let each = Duration::from_nanos(half.as_nanos() / PLACES);
    for place in 1..=PLACES {
        let from = Lba(blocks / (PLACES + 1) * place);
        explore(prober, from, prober.now() + each).await;
    }
    verify(prober).await;
}

/// Resumes the earlier map if it still fits the drive; otherwise discards it.
async fn take_up_map(prober: &Prober) {
    let is_new = prober.findings(|findings| findings.map.pieces.is_empty());
    if !is_new && !phase::rejoin(prober).await {
        let why = "they are not where they were before: begun anew";
        fail(prober, ProfilingStage::Map, why.to_owned());
        prober.findings(|findings| findings.map = TrackMap::default());
    }
}

/// Explores the rest of the drive, and assigns its tracks to surfaces and cylinders.
async fn complete_map(prober: &Prober, end: Instant) {
    let left = |prober: &Prober| prober.findings(|findings| findings.map.unknown_from(Lba(0)));
    let before = left(prober);
    if before.0 >= prober.device().blocks || prober.now() >= end {
        return;
    }
    begin(prober, ProfilingStage::Map);
    let until = Instant::from_nanos(end.as_nanos().saturating_sub(TO_PLACE.as_nanos()));
    explore_rest(prober, until).await;
    if left(prober) != before {
        verify(prober).await;
        // If there is not enough time, the layout before stays.
        prober.within(end, find_layout(prober)).await;
    }
}

/// Explores all unknown blocks, until `until` or until exploration makes no progress.
async fn explore_rest(prober: &Prober, until: Instant) {
    let left = || prober.findings(|findings| findings.map.unknown_from(Lba(0)));
    let known = || prober.findings(|findings| findings.map.known());
    while prober.device().offers == Offers::Nothing && left().0 < prober.device().blocks {
        let before = known();
        prober.within(until, map::explore_regions(prober)).await;
        if prober.now() >= until || known() == before {
            return;
        }
    }
    while left().0 < prober.device().blocks && prober.now() < until {
        let from = left();
        explore(prober, from, until).await;
        if left() == from {
            break;
        }
    }
}

/// Time reserved for assigning a larger map to surfaces and cylinders. It takes 30 to 80 s for the
/// drives that we ship.
const TO_PLACE: Duration = Duration::from_secs(90);

/// Explores unknown blocks from `lba` on, until `until` at most.
async fn explore(prober: &Prober, lba: Lba, until: Instant) {
    let blocks = prober.device().blocks;
    let from = prober.findings(|findings| findings.map.unknown_from(lba));
    if from.0 < blocks {
        let work = map::explore(prober, from, Lba(blocks));
        prober.within(until, work).await;
    }
}

async fn verify(prober: &Prober) {
    let checks = match map::needs_settling(prober) {
        true => CHECKS / 2,
        false => CHECKS,
    };
    match map::verify(prober, checks, 1).await {
        Ok(confidence) => prober.findings(|findings| findings.map_confidence = confidence),
        Err(_) => fail(
            prober,
            ProfilingStage::Map,
            "the platter was lost".to_owned(),
        ),
    }
}

async fn find_layout(prober: &Prober) {
    begin(prober, ProfilingStage::Layout);
    retry(prober, ProfilingStage::Layout);
    if let Err(why) = layout::find(prober).await {
        fail(prober, ProfilingStage::Layout, of_layout(why).to_owned());
    }
}

/// The reason for a missing layout, for users.
fn of_layout(why: NoLayout) -> &'static str {
    match why {
        NoLayout::NoMap => "no track is known",
        NoLayout::NoPattern => "the times between tracks fit no order of surfaces and cylinders",
    }
}

/// The geometry of the layout, if there is one.
fn geometry(prober: &Prober) -> Option<Geometry> {
    let layout = prober.findings(|findings| findings.layout.clone())?;
    Geometry::indexed(&layout.description).ok()
}

/// Target time for drives that can be profiled completely in it: five minutes, the time of DIXtrac
/// for drives of the 1990s.
const WHOLE: Duration = Duration::from_secs(300);

/// Approximate time of arm and electronics without the refinement of the arm: 75 to 115 s for the
/// drives that we ship.
const BESIDES: Duration = Duration::from_secs(130);

/// Minimum time for refining the arm: larger drives take more than [`WHOLE`]. A choice: smooth
/// curves need no more.
const REFINING: Duration = Duration::from_secs(20);

/// The effort for the arm after `passed`.
fn effort(passed: Duration) -> Effort {
    let left = WHOLE.saturating_sub(BESIDES).saturating_sub(passed);
    Effort {
        refining: Effort::FULL.refining.min(left).max(REFINING),
        ..Effort::FULL
    }
}

/// If less than this part of the time is left for arm and electronics, the arm is measured with
/// less effort. A choice: of five minutes, the need of both on most drives.
const SHARE_OF_ARM: u64 = 3;

async fn find_arm(prober: &Prober, effort: Effort) {
    retry(prober, ProfilingStage::Arm);
    let Some(geometry) = geometry(prober) else {
        let why = "on which cylinders tracks are is not known";
        return fail(prober, ProfilingStage::Arm, why.to_owned());
    };
    if arm::measure(prober, &geometry, effort).await.is_none() {
        fail(
            prober,
            ProfilingStage::Arm,
            "no two measurements agree".to_owned(),
        );
    }
}

/// Limits the confidence of the seek table to that of the distances.
fn limit_arm(prober: &Prober) {
    prober.findings(|findings| {
        if let (Some(arm), Some(layout)) = (&mut findings.arm, &findings.layout) {
            arm.confidence = arm.confidence.min(layout.confidence);
        }
    });
}

async fn find_firmware(prober: &Prober) {
    retry(prober, ProfilingStage::Firmware);
    let Some(geometry) = geometry(prober) else {
        let why = "where blocks are is not known";
        return fail(prober, ProfilingStage::Firmware, why.to_owned());
    };
    firmware::measure(prober, &geometry).await;
    prober.findings(Findings::share_writes_with_bus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arm_is_refined_in_what_is_left_of_five_minutes() {
        let refining = |passed| effort(Duration::from_secs(passed)).refining;
        assert_eq!(refining(0), Effort::FULL.refining);
        assert_eq!(refining(130), Duration::from_secs(40));
        assert_eq!(refining(290), REFINING);
        assert_eq!(refining(400), REFINING);
    }
}
