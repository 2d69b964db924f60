//! The `[fitted]` table: constants that were fitted to measured traces, in place of published ones.

use std::sync::Arc;

use block::Duration;

use super::document::Field;
use super::electronics::OVERHEADS;
use super::layout::revolutions;
use super::{Origin, Profile, ProfileError, arm, millis};
use crate::angle::Spindle;
use crate::firmware::Bus;
use crate::geometry::Turn;

/// Where a number of [`Bus`] is.
type Place = fn(&mut Bus) -> &mut Duration;

/// The keys of `[bus]`, and where their numbers go.
const BUS: [(&str, Place); 2] =
    [("read_block_ms", |bus| &mut bus.read_block), ("write_block_ms", |bus| &mut bus.write_block)];

/// Reads the table; the result remembers the profile as it was published.
pub(super) fn read(field: &Field, published: Profile) -> Result<Profile, ProfileError> {
    let mut keys = vec![
        "origin",
        "revolution_ms",
        "head_switch_ms",
        "write_settle_ms",
        "turns",
    ];
    keys.extend(OVERHEADS.map(|(key, _)| key));
    keys.extend(BUS.map(|(key, _)| key));
    let section = field.section(&keys)?;
    let mut profile = published.clone();
    profile.origins.push(Origin {
        table: "fitted".to_owned(),
        text: section.need("origin")?.text()?.to_owned(),
    });
    if let Some(field) = section.get("revolution_ms") {
        // 30,000 rpm to 1,000 rpm.
        let revolution = field.number(2.0..=60.0)?;
        profile.spindle = Spindle::from_period_ps((revolution * 1e9).round() as u64);
    }
    if let Some(field) = section.get("head_switch_ms") {
        profile.head_switch = millis(&field)?;
    }
    if let Some(field) = section.get("write_settle_ms") {
        profile.write_settle_nanos = (field.number(arm::SETTLE_MS)? * 1e6).round() as i64;
    }
    for (key, place) in OVERHEADS {
        if let Some(field) = section.get(key) {
            *place(&mut profile.overheads) = millis(&field)?;
        }
    }
    for (key, place) in BUS {
        if let Some(field) = section.get(key) {
            *place(&mut profile.bus) = millis(&field)?;
        }
    }
    if let Some(field) = section.get("turns") {
        let turns = field.list(|turn| {
            turn.exactly(4, "[group, run, start, step] with angles in revolutions")?;
            Ok(Turn {
                group: turn.at(0)?.u32(0)?,
                run: turn.at(1)?.u32(0)?,
                start: revolutions(&turn.at(2)?)?,
                step: revolutions(&turn.at(3)?)?,
            })
        })?;
        profile.geometry = Arc::new(published.geometry.turned(&turns));
    }
    profile.unfitted = Some(Arc::new(published));
    Ok(profile)
}
