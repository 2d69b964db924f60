//! Turns a zone's spares and slips into the steps by which blocks are pushed.

use super::{Description, SlipStep, Slipping, Sparing, ZoneDescription, ZoneTable};
use crate::angle::Angle;
use crate::geometry::{LayoutError, MAX_SECTORS_PER_TRACK};

/// Checks a zone and makes it ready; its steps and slips are added to the drive's lists.
pub(super) fn prepare(
    drive: &Description,
    item: usize,
    zone: &ZoneDescription,
    steps: &mut Vec<SlipStep>,
    pushes: &mut Vec<u32>,
) -> Result<ZoneTable, LayoutError> {
    let units = Units::of(drive, item, zone)?;
    let slips = sorted_slips(drive, item, zone, &units)?;
    let first_step = steps.len() as u32;
    steps.push(SlipStep { first: 0, shift: 0 });
    match (drive.sparing, units.slipping) {
        (Sparing::Tracks, _) => track_steps(zone, &slips, steps),
        (_, Slipping::AcrossUnits) => steps_across(zone, &units, &slips, steps),
        (_, Slipping::WithinUnit) => steps_within(zone, &units, &slips, steps),
    }
    let first_push = pushes.len() as u32;
    if drive.sparing != Sparing::Tracks {
        pushes.extend_from_slice(&slips);
    }
    let skew = zone.track_skew.times(u64::from(drive.surfaces - 1));
    let ready = ZoneTable {
        first: 0,
        blocks: units.blocks,
        first_cylinder: zone.first_cylinder,
        last_cylinder: zone.last_cylinder,
        sectors: zone.sectors_per_track,
        positions: units.positions,
        unit_blocks: units.unit_blocks,
        unit_sectors: units.unit_sectors,
        unit_front: units.front,
        unmapped: zone.unmapped,
        slipping: units.slipping,
        steps: first_step..steps.len() as u32,
        pushes: first_push..pushes.len() as u32,
        start: zone.start,
        track_skew: zone.track_skew,
        cylinder_step: skew + zone.cylinder_skew,
        width: Angle::fraction(1, u64::from(zone.sectors_per_track)),
    };
    let end = last_position(&ready, &steps[first_step as usize..]);
    if end >= units.positions {
        return Err(wrong(
            item,
            "slips",
            format!(
                "{} slips push the last block to sector {end} of the zone, which has {}: \
                 expected not more slips than spares",
                slips.len(),
                units.positions
            ),
        ));
    }
    Ok(ready)
}

/// The parts of a zone that have spares of their own.
struct Units {
    positions: u32,
    blocks: u32,
    unit_sectors: u32,
    unit_blocks: u32,
    front: u32,
    slipping: Slipping,
}

impl Units {
    /// The units of a zone.
    fn of(drive: &Description, item: usize, zone: &ZoneDescription) -> Result<Self, LayoutError> {
        let positions = check_extent(drive, item, zone)?;
        let per_cylinder = drive.surfaces * zone.sectors_per_track;
        let (unit_sectors, slipping) = unit(drive, per_cylinder, zone, positions);
        let each = match drive.sparing {
            Sparing::Tracks => u64::from(zone.spares) * u64::from(zone.sectors_per_track),
            _ => u64::from(zone.spares),
        };
        let most = match drive.sparing {
            Sparing::None | Sparing::DiskEnd => 0,
            _ => u64::from(unit_sectors) - 1,
        };
        if each > most {
            return Err(wrong(
                item,
                "spares",
                format!("{each} spare sectors in every {unit_sectors}: expected at most {most}"),
            ));
        }
        let blocks = u64::from(unit_sectors) - each;
        let rest = u64::from(positions % unit_sectors).saturating_sub(blocks);
        let slipped = match drive.sparing {
            Sparing::DiskEnd
            | Sparing::CylinderEndSlipToZoneEnd
            | Sparing::CylinderFrontSlipToZoneEnd
            | Sparing::ZoneEndSlipToZoneEnd => zone.slips.len() as u64,
            _ => 0,
        };
        let spares = each * u64::from(positions / unit_sectors) + rest;
        let lost = spares + slipped + u64::from(zone.unmapped);
        if lost >= u64::from(positions) {
            return Err(wrong(
                item,
                "unmapped_sectors",
                format!("{lost} of the zone's {positions} sectors hold no blocks: expected fewer"),
            ));
        }
        let units = !matches!(
            drive.sparing,
            Sparing::None
                | Sparing::DiskEnd
                | Sparing::Tracks
                | Sparing::ZoneEnd
                | Sparing::ZoneEndSlipToZoneEnd
        );
        let front = matches!(
            drive.sparing,
            Sparing::CylinderFront | Sparing::CylinderFrontSlipToZoneEnd
        );
        Ok(Units {
            positions,
            blocks: positions - lost as u32,
            unit_sectors,
            // Spares at the end of the whole zone are left out by its number of blocks.
            unit_blocks: if units { blocks as u32 } else { unit_sectors },
            front: if front { zone.spares } else { 0 },
            slipping,
        })
    }
}

/// How many sectors have spares of their own, and where slips push.
fn unit(
    drive: &Description,
    per_cylinder: u32,
    zone: &ZoneDescription,
    positions: u32,
) -> (u32, Slipping) {
    match drive.sparing {
        Sparing::TrackEnd => (zone.sectors_per_track, Slipping::WithinUnit),
        Sparing::CylinderEnd | Sparing::CylinderFront => (per_cylinder, Slipping::WithinUnit),
        Sparing::CylinderEndSlipToZoneEnd | Sparing::CylinderFrontSlipToZoneEnd => {
            (per_cylinder, Slipping::AcrossUnits)
        }
        Sparing::RangeEnd => {
            let sectors = u64::from(per_cylinder) * u64::from(drive.range_cylinders);
            let limit = u64::from(u32::MAX / 2);
            (sectors.min(limit) as u32, Slipping::WithinUnit)
        }
        _ => (positions, Slipping::AcrossUnits),
    }
}

/// Checks where the zone lies; returns how many sectors it has.
fn check_extent(
    drive: &Description,
    item: usize,
    zone: &ZoneDescription,
) -> Result<u32, LayoutError> {
    let (first, last) = (zone.first_cylinder, zone.last_cylinder);
    if last < first || last >= drive.cylinders {
        return Err(wrong(
            item,
            "last_cylinder",
            format!(
                "zone from cylinder {first} to {last}: expected the last from {first} to {}",
                drive.cylinders.saturating_sub(1)
            ),
        ));
    }
    if let Some(before) = item.checked_sub(1).map(|i| &drive.zones[i])
        && first <= before.last_cylinder
    {
        return Err(wrong(
            item,
            "first_cylinder",
            format!(
                "zone from cylinder {first}, but the zone before ends at {}: expected zones \
                 that do not overlap, in ascending order",
                before.last_cylinder
            ),
        ));
    }
    if zone.sectors_per_track == 0 || zone.sectors_per_track > MAX_SECTORS_PER_TRACK {
        return Err(wrong(
            item,
            "sectors_per_track",
            format!(
                "{} sectors per track: expected 1 to {MAX_SECTORS_PER_TRACK}",
                zone.sectors_per_track
            ),
        ));
    }
    let tracks = u64::from(last - first + 1) * u64::from(drive.surfaces);
    let sectors = tracks * u64::from(zone.sectors_per_track);
    // Half of 32 bits, so that adding a track or a shift to a position cannot overflow.
    u32::try_from(sectors)
        .ok()
        .filter(|&sectors| sectors <= u32::MAX / 2)
        .ok_or_else(|| {
            wrong(
                item,
                "last_cylinder",
                format!(
                    "{sectors} sectors in a zone: expected at most {}",
                    u32::MAX / 2
                ),
            )
        })
}

/// The slips in ascending order, each once, all inside the zone.
fn sorted_slips(
    drive: &Description,
    item: usize,
    zone: &ZoneDescription,
    units: &Units,
) -> Result<Vec<u32>, LayoutError> {
    let limit = match drive.sparing {
        Sparing::Tracks => units.positions / zone.sectors_per_track,
        _ => units.positions,
    };
    let place = |entry, reason| LayoutError {
        item: Some(item),
        entry: Some(entry),
        key: "slips",
        reason,
    };
    for (entry, &slip) in zone.slips.iter().enumerate() {
        if slip >= limit {
            return Err(place(
                entry,
                format!("slip at {slip}: expected below {limit}, the zone's size"),
            ));
        }
    }
    let mut slips = zone.slips.clone();
    slips.sort_unstable();
    if let Some(pair) = slips.windows(2).find(|pair| pair[0] == pair[1]) {
        let entry = zone.slips.iter().rposition(|slip| *slip == pair[0]);
        return Err(place(
            entry.unwrap_or(0),
            format!("slip at {} twice: expected each once", pair[0]),
        ));
    }
    let most = match drive.sparing {
        Sparing::None => 0,
        Sparing::Tracks | Sparing::ZoneEnd => zone.spares,
        _ => u32::MAX,
    };
    if slips.len() + zone.remaps.len() > most as usize {
        return Err(wrong(
            item,
            "slips",
            format!(
                "{} slips and {} remaps, but {most} spares: expected not more than spares",
                slips.len(),
                zone.remaps.len()
            ),
        ));
    }
    if units.slipping == Slipping::WithinUnit {
        let mut first = 0;
        for (entry, slip) in slips.iter().enumerate() {
            if slip / units.unit_sectors != slips[first] / units.unit_sectors {
                first = entry;
            }
            if entry - first >= zone.spares as usize {
                return Err(wrong(
                    item,
                    "slips",
                    format!(
                        "slip at {slip} is one more than the {} spares there: expected not more",
                        zone.spares
                    ),
                ));
            }
        }
    }
    Ok(slips)
}

/// Adds a step; a later one for the same block replaces the earlier.
fn add(steps: &mut Vec<SlipStep>, first: u32, shift: i32) {
    match steps.last_mut() {
        Some(last) if last.first >= first => last.shift = shift,
        _ => steps.push(SlipStep { first, shift }),
    }
}

/// Slipped tracks push everything after them by a track.
fn track_steps(zone: &ZoneDescription, slips: &[u32], steps: &mut Vec<SlipStep>) {
    let sectors = zone.sectors_per_track;
    for (before, &slip) in (0..).zip(slips) {
        let first = ((slip - before) * sectors).saturating_sub(zone.unmapped);
        add(steps, first, ((before + 1) * sectors) as i32);
    }
}

/// Slips push everything to the end of the zone, over the units' spares.
fn steps_across(zone: &ZoneDescription, units: &Units, slips: &[u32], steps: &mut Vec<SlipStep>) {
    let mut before = 0;
    for &slip in slips {
        let (unit, offset) = (slip / units.unit_sectors, slip % units.unit_sectors);
        // A slipped spare pushes nothing.
        let Some(offset) = offset
            .checked_sub(units.front)
            .filter(|&offset| offset < units.unit_blocks)
        else {
            continue;
        };
        let place = unit * units.unit_blocks + offset;
        add(
            steps,
            (place - before).saturating_sub(zone.unmapped),
            before as i32 + 1,
        );
        before += 1;
    }
}

/// Slips push into the spares of their unit: behind it, or, where they are in front, before it.
fn steps_within(zone: &ZoneDescription, units: &Units, slips: &[u32], steps: &mut Vec<SlipStep>) {
    for of_unit in slips.chunk_by(|a, b| a / units.unit_sectors == b / units.unit_sectors) {
        let unit = of_unit[0] / units.unit_sectors;
        let begin = unit * units.unit_blocks;
        let pulled = if units.front > 0 {
            of_unit.len() as i32
        } else {
            0
        };
        add(steps, begin.saturating_sub(zone.unmapped), -pulled);
        for (before, &slip) in (0..).zip(of_unit) {
            let good = slip % units.unit_sectors - before;
            // Good sectors before the unit's first block.
            let spare = (units.front as i32 - pulled) as u32;
            let offset = good.saturating_sub(spare);
            if offset >= units.unit_blocks {
                break;
            }
            add(
                steps,
                (begin + offset).saturating_sub(zone.unmapped),
                before as i32 + 1 - pulled,
            );
        }
        add(
            steps,
            (begin + units.unit_blocks).saturating_sub(zone.unmapped),
            0,
        );
    }
}

/// The position of a zone's last block.
fn last_position(zone: &ZoneTable, steps: &[SlipStep]) -> u32 {
    let last = zone.blocks - 1;
    let step = steps[steps.partition_point(|step| step.first <= last) - 1];
    zone.place(last, step.shift).0
}

/// An error about a zone.
fn wrong(item: usize, key: &'static str, reason: String) -> LayoutError {
    LayoutError {
        item: Some(item),
        entry: None,
        key,
        reason,
    }
}
