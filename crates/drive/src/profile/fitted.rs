//! The `[fitted]` table: constants that were fitted to measured traces, in place of published ones.

use std::sync::Arc;

use document::{DocumentError, Field};

use super::electronics::{self, Electronics};
use super::layout::revolutions;
use super::{Profile, TEXT, TableOrigin};
use crate::angle::Spindle;
use crate::geometry::Turn;

/// Reads the table; the result remembers the profile as it was published.
pub(super) fn read(field: &Field, published: Profile) -> Result<Profile, DocumentError> {
    let mut keys = vec!["origin", "revolution_ms", "turns"];
    keys.extend(electronics::OVERHEADS.map(|(key, _)| key));
    keys.extend(electronics::BUS.map(|(key, _)| key));
    keys.extend(electronics::BUFFER.map(|(key, _)| key));
    keys.extend(electronics::RARE.map(|(key, _)| key));
    let section = field.section(&keys)?;
    let mut profile = published.clone();
    profile.origins.push(TableOrigin {
        table: "fitted".to_owned(),
        text: section
            .need("origin", "the source of the numbers")?
            .text(TEXT)?
            .to_owned(),
    });
    if let Some(field) = section.get("revolution_ms") {
        let revolution = field.number_within(REVOLUTION_MS)?;
        profile.spindle = Spindle::from_period_ps((revolution * 1e9).round() as u64);
    }
    let mut electronics = Electronics {
        overheads: profile.overheads,
        bus: profile.bus,
        buffer: profile.buffer,
    };
    electronics::fit(&section, &mut electronics)?;
    Electronics {
        overheads: profile.overheads,
        bus: profile.bus,
        buffer: profile.buffer,
    } = electronics;
    if let Some(field) = section.get("turns") {
        let turns = field.list_of(|turn| {
            let [group, run, start, step] =
                turn.array("[group, run, start, step] with angles in revolutions")?;
            Ok(Turn {
                group: group.u32(0)?,
                run: run.u32(0)?,
                start: revolutions(&start)?,
                step: revolutions(&step)?,
            })
        })?;
        let key = |turn: &Turn| (turn.group, turn.run);
        if let Some(index) = turns
            .windows(2)
            .position(|two| key(&two[0]) >= key(&two[1]))
        {
            let message = "a turn that does not follow the one before: expected ascending groups \
                           and runs";
            return Err(field.at(index + 1).unwrap_or(field).error(message));
        }
        profile.geometry = Arc::new(published.geometry.turned(&turns));
    }
    profile.unfitted = Some(Arc::new(published));
    Ok(profile)
}

/// The revolutions of spindles of 30,000 to 1,000 rpm, which are those that a profile may have.
const REVOLUTION_MS: std::ops::RangeInclusive<f64> = 2.0..=60.0;
