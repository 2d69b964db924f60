//! A mirror in the configuration file: its two legs, and where reads go.
//!
//! ```text
//!   [[drive]]            back_end = { kind = "mirror", read = "nearest", degraded = false,
//!                                     rebuild = { deadline = "12 hours", paid_percent = 10 } }
//!     [[drive.leg]]      a back end and what is believed of it
//!     [[drive.leg]]
//! ```

use block::{Duration, Switch};
use document::quantity::Unit;
use document::{DocumentError, Section};
use engine::ReadRule;

use super::fields::switch;
use super::size::{PERIOD, period};
use super::{BackEnd, Belief, Leg, Mirror, Way};
use crate::mirror::RebuildRule;

/// The keys of the back end.
pub(super) const KEYS: [&str; 4] = ["kind", "read", "degraded", "rebuild"];

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
        rebuild: rebuild(table)?,
    })
}

/// The share that is paid for a deadline if none is stated, in per cent. A choice: what a copy without gaps takes.
const PAID_PERCENT: f64 = 10.0;

/// By when a leg is to be filled.
fn rebuild(table: &Section<'_>) -> Result<RebuildRule, DocumentError> {
    let Some(rebuild) = table.section("rebuild", &["deadline", "paid_percent"])? else {
        return Ok(RebuildRule::default());
    };
    let deadline = period(&rebuild.need("deadline", PERIOD)?)?;
    let percent = rebuild.get("paid_percent").map(|value| {
        value.quantity(
            Unit::Percent,
            0.0..=100.0,
            "a number of percent from 0 to 100",
        )
    });
    let percent = percent.transpose()?.unwrap_or(PAID_PERCENT);
    Ok(RebuildRule {
        deadline: Some(Duration::from_secs(deadline)),
        paid_ppm: (percent * 1e4).round() as u32,
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

#[cfg(test)]
mod tests {
    use super::super::{Config, Places};
    use super::*;

    /// The rule of a mirror with these keys of its back end.
    fn parse(keys: &str) -> Result<RebuildRule, String> {
        let leg = |path| {
            format!(
                "[[drive.leg]]\nback_end = {{ kind = \"file\", path = \"{path}\", size = \"1 GiB\" }}\n"
            )
        };
        let text = format!(
            "[[drive]]\nname = \"d\"\nback_end = {{ kind = \"mirror\"{keys} }}\n{}{}[[drive.volume]]\nname = \
             \"v\"\n[[drive.export]]\nname = \"e\"\nvolume = \"v\"\n",
            leg("/one"),
            leg("/two")
        );
        let places = Places {
            data: "/data".into(),
            runtime: "/run".into(),
            base: "/etc".into(),
        };
        let config = Config::parse("c.toml", &text, &places);
        let config = config.map_err(|error| error.to_string())?;
        match &config.drives[0].back_end {
            BackEnd::Mirror(mirror) => Ok(mirror.rebuild),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_rebuild_has_a_deadline_and_a_share_that_is_paid_for_it_or_neither() {
        assert_eq!(parse(""), Ok(RebuildRule::default()));
        let rule = |paid_ppm| RebuildRule {
            deadline: Some(Duration::from_secs(12 * 3600)),
            paid_ppm,
        };
        let default = parse(", rebuild = { deadline = \"12 hours\" }");
        assert_eq!(default, Ok(rule(100_000)));
        let stated = parse(", rebuild = { deadline = \"12 hours\", paid_percent = 2.5 }");
        assert_eq!(stated, Ok(rule(25_000)));
        for (keys, expected) in [
            ("paid_percent = 10", "deadline"),
            ("deadline = 12", "a text such as \"30 days\""),
            ("deadline = \"10 seconds\"", "a text such as \"30 days\""),
            (
                "deadline = \"1 day\", paid_percent = 101",
                "paid_percent: 101: expected a number of percent",
            ),
            ("deadline = \"1 day\", share = 1", "share"),
        ] {
            let refused = parse(&format!(", rebuild = {{ {keys} }}")).unwrap_err();
            assert!(refused.contains("c.toml:3"), "{refused}");
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
