//! The `[layout]` table: zones, or nested patterns of tracks.

use document::{DocumentError, Field, Section};

use crate::angle::Angle;
use crate::geometry::indexed::{self, GroupDescription, GroupRun, TrackRun};
use crate::geometry::remap::Remap;
use crate::geometry::zoned::{self, HeadOrder, Sparing, ZoneDescription};
use crate::geometry::{Geometry, LayoutError};

/// The words for [`HeadOrder`].
pub(super) const HEAD_ORDERS: [(&str, HeadOrder); 3] = [
    ("ascending", HeadOrder::Ascending),
    ("alternating-in-zone", HeadOrder::AlternatingInZone),
    ("alternating-by-parity", HeadOrder::AlternatingByParity),
];

/// The words for [`Sparing`].
pub(super) const SPARINGS: [(&str, Sparing); 11] = [
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
pub(super) fn read(root: &Section) -> Result<Geometry, DocumentError> {
    let blocks = root.need("blocks", "the capacity in blocks")?.u64()?;
    let field = root.need("layout", "a table [layout]")?;
    let kind = field
        .table("a table")?
        .need("kind", "\"zoned\" or \"indexed\"")?
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
        locate(root, &field, list, &error).error(error.reason)
    })
}

/// The value that a layout's error is about.
fn locate<'d>(
    root: &Section<'d>,
    layout: &Field<'d>,
    list: &str,
    error: &LayoutError,
) -> Field<'d> {
    if error.key == "blocks" {
        return root.get("blocks").unwrap_or(*layout);
    }
    let table = |field: Field<'d>| field.table("a table").ok();
    let item = error.item.and_then(|index| {
        let items = table(*layout)?.get(list)?;
        items.at(index)
    });
    let holder = item.unwrap_or(*layout);
    let value = table(holder).and_then(|table| table.get(error.key));
    let value = value.unwrap_or(holder);
    error
        .entry
        .and_then(|entry| value.at(entry))
        .unwrap_or(value)
}

/// Zones.
fn read_zoned(field: &Field, blocks: u64) -> Result<zoned::Description, DocumentError> {
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
    let sparing = section
        .need("sparing", "the place of the spare sectors")?
        .choice(&SPARINGS)?;
    Ok(zoned::Description {
        surfaces: section.need("surfaces", "the number of surfaces")?.u32(1)?,
        cylinders: section
            .need("cylinders", "the number of cylinders")?
            .u32(1)?,
        blocks,
        head_order: section
            .need("head_order", "the order of the heads")?
            .choice(&HEAD_ORDERS)?,
        sparing,
        range_cylinders: match sparing {
            Sparing::RangeEnd => section
                .need("range_cylinders", "the cylinders of a range")?
                .u32(1)?,
            _ => 0,
        },
        zones: section
            .need("zone", "tables [[layout.zone]]")?
            .list_of(|zone| read_zone(&zone))?,
    })
}

/// One zone.
fn read_zone(field: &Field) -> Result<ZoneDescription, DocumentError> {
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
    let sectors = section.need("sectors_per_track", "a number of sectors")?;
    let sectors_per_track = sectors.u32(1)?;
    let angle = |key| {
        let sectors = section
            .need(key, "a number of sectors")?
            .number_within(-1e6..=1e6)?;
        Ok(sectors_to_angle(sectors, sectors_per_track))
    };
    let optional = |key| section.get(key).map_or(Ok(0), |field| field.u32(0));
    Ok(ZoneDescription {
        first_cylinder: section.need("first_cylinder", "a cylinder")?.u32(0)?,
        last_cylinder: section.need("last_cylinder", "a cylinder")?.u32(0)?,
        sectors_per_track,
        start: angle("start_sectors")?,
        unmapped: optional("unmapped_sectors")?,
        track_skew: angle("track_skew_sectors")?,
        cylinder_skew: angle("cylinder_skew_sectors")?,
        spares: optional("spares")?,
        slips: match section.get("slips") {
            Some(slips) => slips.list_of(|slip| slip.u32(0))?,
            None => Vec::new(),
        },
        remaps: match section.get("remaps") {
            Some(remaps) => remaps.list_of(|pair| {
                let [from, to] = pair.array("[from, to]")?;
                Ok((from.u32(0)?, to.u32(0)?))
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
fn read_indexed(field: &Field, blocks: u64) -> Result<indexed::Description, DocumentError> {
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
        surfaces: section.need("surfaces", "the number of surfaces")?.u32(1)?,
        cylinders: section
            .need("cylinders", "the number of cylinders")?
            .u32(1)?,
        blocks,
        groups: section
            .need("group", "tables [[layout.group]]")?
            .list_of(|group| read_group(&group))?,
        slips: match section.get("slips") {
            Some(slips) => slips.list_of(|slip| {
                let [sector, count] = slip.array("[sector, count]")?;
                Ok((sector.u64()?, count.u32(1)?))
            })?,
            None => Vec::new(),
        },
        remaps: match section.get("remaps") {
            Some(remaps) => remaps.list_of(|remap| read_remap(&remap))?,
            None => Vec::new(),
        },
    })
}

/// `[block, count, cylinder, head, sector]`
fn read_remap(field: &Field) -> Result<Remap, DocumentError> {
    let [first, blocks, cylinder, head, sector] =
        field.array("[block, count, cylinder, head, sector]")?;
    Ok(Remap {
        first: first.u64()?,
        blocks: blocks.u32(1)?,
        cylinder: cylinder.u32(0)?,
        head: head.u32(0)?,
        sector: sector.u32(0)?,
    })
}

/// Either `tracks` or `groups`.
fn read_group(field: &Field) -> Result<GroupDescription, DocumentError> {
    let section = field.section(&["tracks", "groups"])?;
    match (section.get("tracks"), section.get("groups")) {
        (Some(tracks), None) => Ok(GroupDescription::Tracks(
            tracks.list_of(|run| read_tracks(&run))?,
        )),
        (None, Some(groups)) => Ok(GroupDescription::Groups(
            groups.list_of(|run| read_groups(&run))?,
        )),
        _ => Err(section.error("expected either tracks or groups")),
    }
}

/// `[cylinder, head, sectors, start]`, and `tracks, step` if there is more than one, and `blocks`
/// if not all sectors hold some.
fn read_tracks(field: &Field) -> Result<TrackRun, DocumentError> {
    let expected = "[cylinder, head, sectors, start_revolutions], or these and tracks, \
                    step_revolutions, or all these and blocks";
    let numbers = field.list(expected)?;
    let (cylinder, head, sectors, start, more, blocks) = match numbers[..] {
        [cylinder, head, sectors, start] => (cylinder, head, sectors, start, None, None),
        [cylinder, head, sectors, start, tracks, step] => {
            (cylinder, head, sectors, start, Some((tracks, step)), None)
        }
        [cylinder, head, sectors, start, tracks, step, blocks] => (
            cylinder,
            head,
            sectors,
            start,
            Some((tracks, step)),
            Some(blocks),
        ),
        _ => {
            let length = numbers.len();
            return Err(field.error(format!("{length} numbers: expected {expected}")));
        }
    };
    let sectors = sectors.u32(1)?;
    let most = i64::from(i32::MAX);
    let (tracks, step) = match more {
        None => (1, Angle::ZERO),
        Some((tracks, step)) => (tracks.integer(-most..=most)? as i32, revolutions(&step)?),
    };
    Ok(TrackRun {
        cylinder: cylinder.u32(0)?,
        head: head.u32(0)?,
        sectors,
        start: revolutions(&start)?,
        tracks,
        step,
        blocks: blocks.map_or(Ok(sectors), |blocks| blocks.u32(1))?,
    })
}

/// `[group, cylinder, start, repeats, cylinders, step]`
fn read_groups(field: &Field) -> Result<GroupRun, DocumentError> {
    let [group, cylinder, start, repeats, cylinders, step] = field
        .array("[group, cylinder, start_revolutions, repeats, cylinders, step_revolutions]")?;
    Ok(GroupRun {
        group: group.u32(0)?,
        cylinder: cylinder.u32(0)?,
        start: revolutions(&start)?,
        repeats: repeats.u32(1)?,
        cylinders: cylinders.u32(0)?,
        step: revolutions(&step)?,
    })
}

/// An angle in revolutions.
pub(super) fn revolutions(field: &Field) -> Result<Angle, DocumentError> {
    let revolutions = field.number_within(-1e6..=1e6)?;
    Angle::from_revolutions(revolutions).ok_or_else(|| {
        field.error(format!(
            "{revolutions} revolutions: expected a finite number"
        ))
    })
}
