//! The layout: zones, or groups of tracks.

use serde_json::Value;

use super::{line, list, number, set, table};
use crate::import_drives::Drive;

/// The `[layout]` table.
pub(super) fn layout(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    match json["layout"]["generation"].as_str()? {
        "g1" => zoned(out, drive, json),
        "g4" => indexed(out, drive, json),
        _ => None,
    }
}

fn zoned(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    let layout = &json["layout"];
    let zones = layout["zones"].as_array()?;
    table(out, drive, "layout", "layout");
    set(out, "kind", "\"zoned\"", "");
    set(out, "surfaces", json["surfaces"].as_u64()?, "");
    let published = json["cylinders"].as_u64()?;
    let last = zones.last()?["cyl_last"].as_u64()?;
    cylinders(out, published, last + 1);
    let head_order = match layout["mapping"].as_u64()? {
        0 => "ascending",
        1 => "alternating-in-zone",
        2 => "alternating-by-parity",
        _ => return None,
    };
    set(out, "head_order", format!("\"{head_order}\""), "");
    let sparing = match layout["sparing"].as_u64()? {
        0 => "none",
        1 => "tracks",
        2 => "cylinder-end",
        3 => "track-end",
        4 => "cylinder-end-slip-to-zone-end",
        5 => "cylinder-front",
        6 => "cylinder-front-slip-to-zone-end",
        7 => "disk-end",
        8 => "range-end",
        9 => "zone-end",
        10 => "zone-end-slip-to-zone-end",
        _ => return None,
    };
    set(out, "sparing", format!("\"{sparing}\""), "");
    if sparing == "range-end" {
        set(out, "range_cylinders", layout["rangesize"].as_u64()?, "");
    }
    zones.iter().try_for_each(|zone| one_zone(out, zone))
}

fn cylinders(out: &mut String, published: u64, used: u64) {
    let comment = match published >= used {
        true => String::new(),
        false => format!("published as {published}, but the layout reaches further"),
    };
    set(out, "cylinders", published.max(used), &comment);
}

fn one_zone(out: &mut String, zone: &Value) -> Option<()> {
    line(out, "\n[[layout.zone]]");
    for (key, theirs) in [
        ("first_cylinder", "cyl_first"),
        ("last_cylinder", "cyl_last"),
        ("sectors_per_track", "spt"),
    ] {
        set(out, key, zone[theirs].as_u64()?, "");
    }
    for (key, theirs) in [
        ("start_sectors", "first_block_offset_sectors"),
        ("track_skew_sectors", "track_skew_sectors"),
        ("cylinder_skew_sectors", "cyl_skew_sectors"),
    ] {
        set(out, key, number(zone[theirs].as_f64()?), "");
    }
    for (key, theirs) in [
        ("unmapped_sectors", "deadspace_sectors"),
        ("spares", "spares"),
    ] {
        match zone[theirs].as_u64()? {
            0 => {}
            value => set(out, key, value, ""),
        }
    }
    let slips = zone["slips"].as_array()?;
    if !slips.is_empty() {
        let slips: Vec<String> = slips.iter().map(Value::to_string).collect();
        list(out, "slips", &slips);
    }
    // A defect that is remapped to itself is known, but not moved.
    let moved: Vec<String> = zone["defect_pairs"]
        .as_array()?
        .iter()
        .filter(|pair| pair[0] != pair[1])
        .map(Value::to_string)
        .collect();
    if moved.len() < zone["defect_pairs"].as_array()?.len() {
        line(
            out,
            format!(
                "# Left out: defects that are remapped to themselves, of {}.",
                zone["defect_pairs"]
            ),
        );
    }
    if !moved.is_empty() {
        list(out, "remaps", &moved);
    }
    Some(())
}

/// Fields of an entry of a node: `lbn, cyl, off, len, cyllen, alen, runlen, cylrunlen, kind, child`
/// and, in a node of tracks, the head.
const ENTRY: usize = 10;

fn indexed(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    let layout = &json["layout"];
    let nodes = layout["IDX"].as_array()?;
    table(out, drive, "layout", "layout");
    set(out, "kind", "\"indexed\"", "");
    set(out, "surfaces", json["surfaces"].as_u64()?, "");
    let mut reach = Vec::new();
    let mut groups = String::new();
    for node in nodes {
        let (text, cylinders) = group(node.as_array()?, layout, &reach)?;
        groups.push_str(&text);
        reach.push(cylinders);
    }
    cylinders(out, json["cylinders"].as_u64()?, *reach.last()?);
    let slips = pairs(layout["Slips"].as_array()?);
    if !slips.is_empty() {
        list(out, "slips", &slips);
    }
    if !layout["Remaps"].as_array()?.is_empty() {
        return None;
    }
    out.push_str(&groups);
    Some(())
}

fn pairs(flat: &[Value]) -> Vec<String> {
    let pairs = flat.chunks_exact(2);
    pairs
        .map(|pair| format!("[{}, {}]", pair[0], pair[1]))
        .collect()
}

/// One node as a group, and how many cylinders it reaches over.
fn group(node: &[Value], layout: &Value, reach: &[u64]) -> Option<(String, u64)> {
    let mut out = String::new();
    let (mut entries, mut cylinders) = (Vec::new(), 0);
    let mut left = node;
    let tracks = left.get(8)? == "TRACK";
    while !left.is_empty() {
        let size = if tracks { ENTRY + 1 } else { ENTRY };
        let entry = left.get(..size)?;
        left = &left[size..];
        let whole = |index: usize| entry[index].as_i64();
        let angle = |index: usize| Some(number(entry[index].as_f64()?));
        let (cylinder, start, step) = (whole(1)?, angle(2)?, angle(5)?);
        let repeats = whole(6)? / whole(3)?;
        let child = entry[9].as_u64()? as usize;
        if tracks {
            let sectors = layout["TP"][3 * child + 2].as_i64()?;
            // Whole tracks from sector 0 on: nothing else is published.
            if layout["TP"][3 * child] != 0 || sectors != whole(3)? || whole(4)? != 1 {
                return None;
            }
            let head = entry[10].as_u64()?;
            let signed = whole(7)?;
            entries.push(match repeats {
                1 => format!("[{cylinder}, {head}, {sectors}, {start}]"),
                _ => format!("[{cylinder}, {head}, {sectors}, {start}, {signed}, {step}]"),
            });
            let last = cylinder + signed - signed.signum();
            cylinders = cylinders.max(cylinder.max(last) as u64 + 1);
        } else {
            let each = whole(4)?;
            entries.push(format!(
                "[{child}, {cylinder}, {start}, {repeats}, {each}, {step}]"
            ));
            let last = (cylinder + each * (repeats - 1)) as u64;
            cylinders = cylinders.max(last + reach.get(child)?);
        }
    }
    line(&mut out, "\n[[layout.group]]");
    list(&mut out, if tracks { "tracks" } else { "groups" }, &entries);
    Some((out, cylinders))
}
