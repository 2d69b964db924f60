//! The `[fitted]` table: constants that were fitted to measured traces, in place of published ones.

use std::sync::Arc;

use block::Lba;

use super::document::Field;
use super::electronics::OVERHEADS;
use super::layout::revolutions;
use super::{Origin, Profile, ProfileError, arm, millis};
use crate::angle::Spindle;
use crate::geometry::AngleBand;

/// Reads the table; the result remembers the profile as it was published.
pub(super) fn read(field: &Field, published: Profile) -> Result<Profile, ProfileError> {
    let mut keys = vec![
        "origin",
        "revolution_ms",
        "head_switch_ms",
        "write_settle_ms",
        "angle_bands",
    ];
    keys.extend(OVERHEADS.map(|(key, _)| key));
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
    if let Some(field) = section.get("angle_bands") {
        let blocks = published.geometry.sectors().0 as i64;
        let bands = field.list(|band| {
            band.exactly(2, "[first block, revolutions]")?;
            Ok(AngleBand {
                first: Lba(band.at(0)?.integer(0..=blocks - 1)? as u64),
                add: revolutions(&band.at(1)?)?,
            })
        })?;
        if let Some(index) = bands
            .windows(2)
            .position(|two| two[0].first >= two[1].first)
        {
            let band = field.at(index + 1)?;
            return Err(band.error(
                "a band that does not follow the one before: expected \
                                   ascending first blocks"
                    .into(),
            ));
        }
        profile.geometry = Arc::new(published.geometry.with_angle_bands(&bands));
    }
    profile.unfitted = Some(Arc::new(published));
    Ok(profile)
}
