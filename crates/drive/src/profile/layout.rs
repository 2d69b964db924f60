//! The `[layout]` table: zones, or nested patterns of tracks.

use super::ProfileError;
use super::document::{Field, Section};
use crate::angle::Angle;
use crate::geometry::indexed::{self, GroupDescription, GroupRun, TrackRun};
use crate::geometry::remap::Remap;
use crate::geometry::zoned::{self, HeadOrder, Sparing, ZoneDescription};
use crate::geometry::{Geometry, LayoutError};

/// The words for [`HeadOrder`].
const HEAD_ORDERS: [(&str, HeadOrder); 3] = [
    ("ascending", HeadOrder::Ascending),
    ("alternating-in-zone", HeadOrder::AlternatingInZone),
    ("alternating-by-parity", HeadOrder::AlternatingByParity),
];

/// The words for [`Sparing`].
const SPARINGS: [(&str, Sparing); 11] = [
    ("none", Sparing::None),
    ("tracks", Sparing::Tracks),
    ("cylinder-end", Sparing::CylinderEnd),
    ("track-end", Sparing::TrackEnd),
    (
        "cylinder-end-slip-to-zone-end",
        Sparing::CylinderEndSlipToZoneEnd,
    ),
    ("cylinder-front", Sparing::CylinderFront),
    (
        "cylinder-front-slip-to-zone-end",
        Sparing::CylinderFrontSlipToZoneEnd,
    ),
    ("disk-end", Sparing::DiskEnd),
    ("range-end", Sparing::RangeEnd),
    ("zone-end", Sparing::ZoneEnd),
    ("zone-end-slip-to-zone-end", Sparing::ZoneEndSlipToZoneEnd),
];

/// The two kinds of layout.
#[derive(Clone, Copy)]
enum Kind {
    Zoned,
    Indexed,
}

/// Reads the layout of a document, and its number of blocks.
pub(super) fn read(root: &Section) -> Result<Geometry, ProfileError> {
    let blocks = root.need("blocks")?.u64()?;
    let field = root.need("layout")?;
    let kind = field
        .table()?
        .need("kind")?
        .choice(&[("zoned", Kind::Zoned), ("indexed", Kind::Indexed)])?;
    let geometry = match kind {
        Kind::Zoned => Geometry::zoned(&read_zoned(&field, blocks)?),
        Kind::Indexed => Geometry::indexed(&read_indexed(&field, blocks)?),
    };
    geometry.map_err(|error| {
        let list = match kind {
            Kind::Zoned => "zone",
            Kind::Indexed => "group",
        };
        place(root, &field, list, error).unwrap_or_else(|missing| missing)
    })
}

/// The error at the place that it is about.
fn place(
    root: &Section,
    field: &Field,
    list: &str,
    error: LayoutError,
) -> Result<ProfileError, ProfileError> {
    if error.key == "blocks" {
        return Ok(root.need("blocks")?.error(error.reason));
    }
    let section = field.table()?;
    let items;
    let item;
    let holder = match error.item {
        None => section,
        Some(index) => {
            items = section.need(list)?;
            item = items.at(index)?;
            item.table()?
        }
    };
    let Some(value) = holder.get(error.key) else {
        return Ok(holder.error(error.reason));
    };
    let at = match error.entry {
        Some(entry) => value
            .at(entry)
            .map(|value| value.error(error.reason.clone())),
        None => return Ok(value.error(error.reason)),
    };
    Ok(at.unwrap_or_else(|_| value.error(error.reason)))
}

/// Zones.
fn read_zoned(field: &Field, blocks: u64) -> Result<zoned::Description, ProfileError> {
    let section = field.section(&[
        "origin",
        "kind",
        "surfaces",
        "cylinders",
        "head_order",
        "sparing",
        "range_cylinders",
        "zone",
    ])?;
    let sparing = section.need("sparing")?.choice(&SPARINGS)?;
    Ok(zoned::Description {
        surfaces: section.need("surfaces")?.u32(1)?,
        cylinders: section.need("cylinders")?.u32(1)?,
        blocks,
        head_order: section.need("head_order")?.choice(&HEAD_ORDERS)?,
        sparing,
        range_cylinders: match sparing {
            Sparing::RangeEnd => section.need("range_cylinders")?.u32(1)?,
            _ => 0,
        },
        zones: section.need("zone")?.list(|zone| read_zone(&zone))?,
    })
}

/// One zone.
fn read_zone(field: &Field) -> Result<ZoneDescription, ProfileError> {
    let section = field.section(&[
        "first_cylinder",
        "last_cylinder",
        "sectors_per_track",
        "start_sectors",
        "track_skew_sectors",
        "cylinder_skew_sectors",
        "unmapped_sectors",
        "spares",
        "slips",
        "remaps",
    ])?;
    let sectors = section.need("sectors_per_track")?;
    let sectors_per_track = sectors.u32(1)?;
    let angle = |key| {
        let sectors = section.need(key)?.number(-1e6..=1e6)?;
        Ok(sectors_to_angle(sectors, sectors_per_track))
    };
    let optional = |key| section.get(key).map_or(Ok(0), |field| field.u32(0));
    Ok(ZoneDescription {
        first_cylinder: section.need("first_cylinder")?.u32(0)?,
        last_cylinder: section.need("last_cylinder")?.u32(0)?,
        sectors_per_track,
        start: angle("start_sectors")?,
        unmapped: optional("unmapped_sectors")?,
        track_skew: angle("track_skew_sectors")?,
        cylinder_skew: angle("cylinder_skew_sectors")?,
        spares: optional("spares")?,
        slips: match section.get("slips") {
            Some(slips) => slips.list(|slip| slip.u32(0))?,
            None => Vec::new(),
        },
        remaps: match section.get("remaps") {
            Some(remaps) => remaps.list(|pair| {
                pair.exactly(2, "[from, to]")?;
                Ok((pair.at(0)?.u32(0)?, pair.at(1)?.u32(0)?))
            })?,
            None => Vec::new(),
        },
    })
}

/// So many sectors as an angle: exactly, if it is a whole number of them.
fn sectors_to_angle(sectors: f64, per_track: u32) -> Angle {
    if sectors >= 0.0 && sectors.fract() == 0.0 {
        Angle::fraction(sectors as u64, u64::from(per_track))
    } else {
        Angle::from_revolutions(sectors / f64::from(per_track)).unwrap_or_default()
    }
}

/// Nested patterns.
fn read_indexed(field: &Field, blocks: u64) -> Result<indexed::Description, ProfileError> {
    let section = field.section(&[
        "origin",
        "kind",
        "surfaces",
        "cylinders",
        "slips",
        "remaps",
        "group",
    ])?;
    Ok(indexed::Description {
        surfaces: section.need("surfaces")?.u32(1)?,
        cylinders: section.need("cylinders")?.u32(1)?,
        blocks,
        groups: section.need("group")?.list(|group| read_group(&group))?,
        slips: match section.get("slips") {
            Some(slips) => slips.list(|slip| {
                slip.exactly(2, "[place, count]")?;
                Ok((slip.at(0)?.u64()?, slip.at(1)?.u32(1)?))
            })?,
            None => Vec::new(),
        },
        remaps: match section.get("remaps") {
            Some(remaps) => remaps.list(|remap| read_remap(&remap))?,
            None => Vec::new(),
        },
    })
}

/// `[block, count, cylinder, head, sector]`
fn read_remap(field: &Field) -> Result<Remap, ProfileError> {
    field.exactly(5, "[block, count, cylinder, head, sector]")?;
    Ok(Remap {
        first: field.at(0)?.u64()?,
        blocks: field.at(1)?.u32(1)?,
        cylinder: field.at(2)?.u32(0)?,
        head: field.at(3)?.u32(0)?,
        sector: field.at(4)?.u32(0)?,
    })
}

/// Either `tracks` or `groups`.
fn read_group(field: &Field) -> Result<GroupDescription, ProfileError> {
    let section = field.section(&["tracks", "groups"])?;
    match (section.get("tracks"), section.get("groups")) {
        (Some(tracks), None) => Ok(GroupDescription::Tracks(
            tracks.list(|run| read_tracks(&run))?,
        )),
        (None, Some(groups)) => Ok(GroupDescription::Groups(
            groups.list(|run| read_groups(&run))?,
        )),
        _ => Err(section.error("expected either tracks or groups".into())),
    }
}

/// `[cylinder, head, sectors, start]`, and `tracks, step` if there is more than one, and `blocks`
/// if not all sectors hold some.
fn read_tracks(field: &Field) -> Result<TrackRun, ProfileError> {
    let length = field.len()?;
    if !matches!(length, 4 | 6 | 7) {
        return Err(field.error(format!(
            "{length} numbers: expected [cylinder, head, sectors, start_revolutions], or these \
             and tracks, step_revolutions, or all these and blocks"
        )));
    }
    let sectors = field.at(2)?.u32(1)?;
    Ok(TrackRun {
        cylinder: field.at(0)?.u32(0)?,
        head: field.at(1)?.u32(0)?,
        sectors,
        start: revolutions(&field.at(3)?)?,
        tracks: match length {
            4 => 1,
            _ => field
                .at(4)?
                .integer(i64::from(-i32::MAX)..=i64::from(i32::MAX))? as i32,
        },
        step: match length {
            4 => Angle::ZERO,
            _ => revolutions(&field.at(5)?)?,
        },
        blocks: match length {
            7 => field.at(6)?.u32(1)?,
            _ => sectors,
        },
    })
}

/// `[group, cylinder, start, repeats, cylinders, step]`
fn read_groups(field: &Field) -> Result<GroupRun, ProfileError> {
    field.exactly(
        6,
        "[group, cylinder, start_revolutions, repeats, cylinders, step_revolutions]",
    )?;
    Ok(GroupRun {
        group: field.at(0)?.u32(0)?,
        cylinder: field.at(1)?.u32(0)?,
        start: revolutions(&field.at(2)?)?,
        repeats: field.at(3)?.u32(1)?,
        cylinders: field.at(4)?.u32(0)?,
        step: revolutions(&field.at(5)?)?,
    })
}

/// An angle in revolutions.
pub(super) fn revolutions(field: &Field) -> Result<Angle, ProfileError> {
    let revolutions = field.number(-1e6..=1e6)?;
    Angle::from_revolutions(revolutions).ok_or_else(|| {
        field.error(format!(
            "{revolutions} revolutions: expected a finite number"
        ))
    })
}
