//! A mirror in the configuration file: its two legs, and where reads go.
//!
//! ```text
//!   [[drive]]            back_end = { kind = "mirror", read = "nearest", degraded = false }
//!     [[drive.leg]]      a back end and what is believed of it
//!     [[drive.leg]]
//! ```

use block::Switch;
use document::{DocumentError, Section};
use engine::ReadRule;

use super::fields::switch;
use super::{BackEnd, Belief, Leg, Mirror, Way};

/// The keys of the back end.
pub(super) const KEYS: [&str; 3] = ["kind", "read", "degraded"];

const READ: [(&str, ReadRule); 2] = [
    ("nearest", ReadRule::Nearest),
    ("round-robin", ReadRule::RoundRobin),
];

/// The mirror of a drive whose back end is this table. `leg` understands a table of a leg.
pub(super) fn mirror(
    drive: &Section<'_>,
    table: &Section<'_>,
    leg: impl Fn(&Section<'_>) -> Result<Leg, DocumentError>,
) -> Result<Mirror, DocumentError> {
    for key in ["belief", "belief_unchecked"] {
        if let Some(field) = drive.get(key) {
            return Err(field.mismatch("that in each [[drive.leg]] of a mirror"));
        }
    }
    for key in ["phases", "preemption", "streams", "capture"] {
        if let Some(field) = drive.get(key) {
            return Err(field.error(format!(
                "a mirror has no {key}: expected a drive that is no mirror"
            )));
        }
    }
    let read = table.get("read").map(|value| value.choice(&READ));
    let legs = drive.sections("leg")?;
    let [one, other] = &legs[..] else {
        let problem = format!("{} legs: expected two tables [[drive.leg]]", legs.len());
        return Err(drive.missing("leg", &problem));
    };
    let legs = [leg(one)?, leg(other)?];
    for (table, leg) in [one, other].into_iter().zip(&legs) {
        possible(table, &leg.back_end)?;
    }
    let is_known = legs.each_ref().map(|leg| leg.belief != Belief::Nothing);
    if is_known[0] != is_known[1] {
        return Err(other.error("a belief of one leg only: expected one of each, or none"));
    }
    let [first, second] = legs.each_ref().map(|leg| leg.path());
    if first == second {
        return Err(other.error("the path of the other leg: expected another one"));
    }
    Ok(Mirror {
        legs,
        read: read.transpose()?.unwrap_or_default(),
        degraded: switch(table, "degraded", Switch::Off)?,
    })
}

/// Checks that a back end can be a leg.
fn possible(table: &Section<'_>, back_end: &BackEnd) -> Result<(), DocumentError> {
    let is_possible = match back_end {
        BackEnd::File { .. } | BackEnd::Emulated(_) => true,
        BackEnd::Device(device) => device.way == Way::Kernel,
        BackEnd::Memory { .. } | BackEnd::Nbd(_) | BackEnd::Mirror(_) => false,
    };
    match is_possible {
        true => Ok(()),
        false => Err(table.error(
            "expected a leg of kind \"file\", \"emulated\", or \"device\" without passthrough",
        )),
    }
}
