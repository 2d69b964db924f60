//! Fields that several tables have: classes, switches, sizes and paths.

use std::path::PathBuf;

use block::Switch;
use document::{DocumentError, Field, Section};

use super::size::bytes;
use super::{ALIGN_BYTES, ExportClass, Places};

pub(super) fn class_of(field: &Field<'_>) -> Result<ExportClass, DocumentError> {
    let mut choices = vec![("foreground", ExportClass::Foreground)];
    for (index, name) in BEST_EFFORT.iter().enumerate() {
        choices.push((name, ExportClass::BestEffort(index as u8 + 1)));
    }
    choices.push(("background", ExportClass::Background));
    field.choice(&choices)
}

const BEST_EFFORT: [&str; 6] = [
    "best-effort-1",
    "best-effort-2",
    "best-effort-3",
    "best-effort-4",
    "best-effort-5",
    "best-effort-6",
];

pub(super) fn switch(
    table: &Section<'_>,
    key: &str,
    default: Switch,
) -> Result<Switch, DocumentError> {
    match table.get(key).map(|value| value.boolean()).transpose()? {
        Some(true) => Ok(Switch::On),
        Some(false) => Ok(Switch::Off),
        None => Ok(default),
    }
}

/// A size, which is at least one aligned block.
pub(super) fn size(value: &Field<'_>) -> Result<u64, DocumentError> {
    match bytes(value, ALIGN_BYTES)? {
        0 => Err(value.mismatch("at least 4096 bytes")),
        bytes => Ok(bytes),
    }
}

pub(super) fn path(value: &Field<'_>, places: &Places) -> Result<PathBuf, DocumentError> {
    places
        .path(value.text(PATH)?)
        .map_err(|expected| value.mismatch(expected))
}

pub(super) const PATH: &str = "a path";
