//! The `[seek]` table: points or a formula, the head switch, the settling of writes.

use block::Duration;

use document::{DocumentError, Field, Section};

use super::{TableOrigin, millis};
use crate::seek::{SeekCurve, SeekError, SeekTable};

/// What the table says.
pub(super) struct SeekSection {
    pub seek: SeekCurve,
    /// How far the time of a distance spreads, where that is said.
    pub deviation: Option<SeekTable>,
    pub head_switch: Duration,
    pub write_settle_nanos: i64,
    /// Of the formula's own table, where the arm has one.
    pub formula: Option<TableOrigin>,
}

/// At most how much faster or slower writes settle: a revolution of the slowest drives.
const SETTLE_MS: std::ops::RangeInclusive<f64> = -20.0..=20.0;

/// Reads the table, for a drive of so many cylinders.
pub(super) fn read(field: &Field, cylinders: u32) -> Result<SeekSection, DocumentError> {
    let section = field.section(&[
        "origin",
        "head_switch_ms",
        "write_settle_ms",
        "read_points",
        "write_points",
        "deviation_points",
        "formula",
    ])?;
    let mut origin = None;
    let read = match (section.get("read_points"), section.get("formula")) {
        (Some(points), None) => read_points(&points, cylinders)?,
        (None, Some(formula)) => {
            origin = Some(TableOrigin {
                table: "seek.formula".to_owned(),
                text: super::origin_of(&formula)?,
            });
            read_formula(&formula, cylinders)?
        }
        (None, None) => {
            return Err(section.error("missing key: expected read_points or formula"));
        }
        (Some(_), Some(formula)) => {
            return Err(formula.error("a formula besides read_points: expected one of them"));
        }
    };
    let write = match section.get("write_points") {
        Some(points) => read_points(&points, cylinders)?,
        None => read.clone(),
    };
    let settle = section
        .need("write_settle_ms", "milliseconds")?
        .number_within(SETTLE_MS)?;
    Ok(SeekSection {
        seek: SeekCurve::new(read, write),
        deviation: match section.get("deviation_points") {
            Some(points) => Some(read_points(&points, cylinders)?),
            None => None,
        },
        head_switch: millis(&section.need("head_switch_ms", "milliseconds")?)?,
        write_settle_nanos: (settle * 1e6).round() as i64,
        formula: origin,
    })
}

/// `[[distance, milliseconds], ...]`
fn read_points(field: &Field, cylinders: u32) -> Result<SeekTable, DocumentError> {
    let points = field.list_of(|point| {
        let [cylinders, time] = point.array("[cylinders, milliseconds]")?;
        Ok((cylinders.u32(1)?, millis(&time)?))
    })?;
    let unordered = points.windows(2).position(|pair| pair[0].0 >= pair[1].0);
    SeekTable::new(points, cylinders).map_err(|error| {
        let wrong = match (&error, unordered) {
            (SeekError::NotAscending(..), Some(before)) => field.at(before + 1),
            _ => None,
        };
        wrong.unwrap_or(*field).error(error.to_string())
    })
}

/// The formula of the HP drives (Ruemmler and Wilkes; DiskSim's "HPL plus ten"): measured times
/// for the shortest distances, then a root, then a line.
///
/// ```text
///   distance  1..=n              first_ms
///             below far          near_ms + near_root_ms * sqrt(distance)
///             from far on        far_ms + far_cylinder_ms * distance
/// ```
fn read_formula(field: &Field, cylinders: u32) -> Result<SeekTable, DocumentError> {
    let section = field.section(&[
        "origin",
        "first_ms",
        "far_cylinders",
        "near_ms",
        "near_root_ms",
        "far_ms",
        "far_cylinder_ms",
    ])?;
    let first = section
        .need("first_ms", "a list of milliseconds")?
        .list_of(|time| millis(&time))?;
    let far = section
        .need("far_cylinders", "a number of cylinders")?
        .u32(1)?;
    let number = |section: &Section, key| {
        section
            .need(key, "milliseconds")?
            .number_within(0.0..=1_000.0)
    };
    let (near_ms, near_root_ms) = (
        number(&section, "near_ms")?,
        number(&section, "near_root_ms")?,
    );
    let (far_ms, far_cylinder_ms) = (
        number(&section, "far_ms")?,
        number(&section, "far_cylinder_ms")?,
    );
    let time = |distance: u32| {
        if let Some(&time) = first.get(distance as usize - 1) {
            return Some(time);
        }
        let d = f64::from(distance);
        Duration::from_millis_f64(if distance < far {
            near_ms + near_root_ms * d.sqrt()
        } else {
            far_ms + far_cylinder_ms * d
        })
    };
    let points: Option<Vec<_>> = (1..cylinders.max(2))
        .map(|distance| Some((distance, time(distance)?)))
        .collect();
    points
        .ok_or(SeekError::Empty)
        .and_then(|points| SeekTable::new(points, cylinders))
        .map_err(|error| field.error(error.to_string()))
}
