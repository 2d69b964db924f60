//! One drive's published parameters as the text of a profile.

use std::fmt::Write as _;

use serde_json::Value;

use super::Drive;

mod electronics;
mod layout;

/// The text, or `None` if something is not where it was expected.
pub(super) fn convert(drive: &Drive, json: &Value) -> Option<String> {
    let mut out = String::new();
    head(&mut out, drive, json)?;
    spindle(&mut out, drive, json)?;
    seek(&mut out, drive, json)?;
    electronics::tables(&mut out, drive, json)?;
    layout::layout(&mut out, drive, json)?;
    Some(out)
}

/// Adds a line.
fn line(out: &mut String, text: impl AsRef<str>) {
    out.push_str(text.as_ref());
    out.push('\n');
}

/// Adds `key = value`, with a comment if there is one to make.
fn set(out: &mut String, key: &str, value: impl std::fmt::Display, comment: &str) {
    let separator = if comment.is_empty() { "" } else { "  # " };
    line(out, format!("{key} = {value}{separator}{comment}"));
}

/// Begins a table whose numbers come from a part of the drive's parameters.
fn table(out: &mut String, drive: &Drive, name: &str, part: &str) {
    let _ = write!(out, "\n[{name}]\norigin = \"{}: {part}\"\n", source(drive));
}

/// The file that the numbers come from, and where that comes from.
fn source(drive: &Drive) -> String {
    format!(
        "{}; shared/drives/{}/drive.json",
        drive.origin, drive.directory
    )
}

/// A number as it was published, without a fraction of zero.
fn number(value: f64) -> String {
    format!("{value}")
}

fn head(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    line(
        out,
        "# Made by `cargo xtask import-drives`; only a [fitted] table at the end is kept.",
    );
    for remark in drive.remarks {
        line(out, format!("# {remark}"));
    }
    set(out, "name", format!("\"{}\"", drive.name), "");
    set(out, "model", format!("\"{}\"", drive.model), "");
    set(out, "year", drive.year, "");
    set(out, "provenance", format!("\"{}\"", drive.provenance), "");
    set(out, "origin", format!("\"{}\"", source(drive)), "");
    set(out, "source", format!("\"{}\"", drive.directory), "");
    set(out, "block_bytes", json["block_bytes"].as_u64()?, "");
    set(
        out,
        "physical_block_bytes",
        json["block_bytes"].as_u64()?,
        "",
    );
    match drive.blocks {
        Some((blocks, why)) => {
            line(out, format!("# {why}"));
            set(out, "blocks", blocks, "");
        }
        None => set(out, "blocks", json["blocks"].as_u64()?, ""),
    }
    set(out, "actuators", 1, "");
    Some(())
}

fn spindle(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    table(out, drive, "spindle", "rpm_nominal");
    let error = json["rpm_error_pct"].as_f64()?;
    let comment = match error {
        0.0 => String::new(),
        _ => format!("published with an error of {error} %, of unknown sign"),
    };
    set(out, "rpm", number(json["rpm_nominal"].as_f64()?), &comment);
    Some(())
}

fn seek(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    table(out, drive, "seek", "seek, head_switch_ms, write_settle_ms");
    set(
        out,
        "head_switch_ms",
        number(json["head_switch_ms"].as_f64()?),
        "",
    );
    set(
        out,
        "write_settle_ms",
        number(json["write_settle_ms"].as_f64()?),
        "",
    );
    let seek = &json["seek"];
    if seek["type"] == "hplplus10" {
        let v: Vec<f64> = seek["hpl_v1_v6"]
            .as_array()?
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        let first: Vec<String> = seek["first10_ms"]
            .as_array()?
            .iter()
            .filter_map(Value::as_f64)
            .map(number)
            .collect();
        table(
            out,
            drive,
            "seek.formula",
            "seek.hpl_v1_v6, seek.first10_ms",
        );
        set(out, "first_ms", format!("[{}]", first.join(", ")), "");
        set(out, "far_cylinders", *v.first()?, "");
        set(out, "near_ms", number(*v.get(1)?), "");
        set(out, "near_root_ms", number(*v.get(2)?), "");
        set(out, "far_ms", number(*v.get(3)?), "");
        set(out, "far_cylinder_ms", number(*v.get(4)?), "");
        return Some(());
    }
    let columns: Vec<&str> = seek["columns"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let rows = seek["table"].as_array()?;
    for (key, column) in [("read_points", "read_ms"), ("write_points", "write_ms")] {
        let Some(index) = columns.iter().position(|name| *name == column) else {
            continue;
        };
        let mut points = Vec::new();
        for row in rows {
            points.push(format!(
                "[{}, {}]",
                row[0].as_u64()?,
                number(row[index].as_f64()?)
            ));
        }
        list(out, key, &points);
    }
    Some(())
}

/// Adds an array, a few values to a line.
fn list(out: &mut String, key: &str, values: &[String]) {
    line(out, format!("{key} = ["));
    let mut row = String::new();
    for value in values {
        if row.len() + value.len() > 92 {
            line(out, format!("  {}", row.trim_end()));
            row.clear();
        }
        let _ = write!(row, "{value}, ");
    }
    line(out, format!("  {}", row.trim_end()));
    line(out, "]");
}
