//! Fields that several tables have: names, classes, switches, sizes and paths.

use std::path::PathBuf;

use block::Switch;
use document::{DocumentError, Field, Section};

use super::size::bytes;
use super::{ALIGN_BYTES, Access, ExportClass, Places};

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

/// Whether a volume or an export is writable.
pub(super) fn access(table: &Section<'_>) -> Result<Access, DocumentError> {
    match table
        .get("read_only")
        .map(|value| value.boolean())
        .transpose()?
    {
        Some(true) => Ok(Access::ReadOnly),
        _ => Ok(Access::ReadWrite),
    }
}

/// A unique name that needs no quotes in a shell, a URI or a metric.
pub(super) fn name<'n>(
    value: &Field<'_>,
    mut taken: impl Iterator<Item = &'n str>,
) -> Result<String, DocumentError> {
    let name = value.text(NAME)?;
    let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.len() > MOST_NAME || name.starts_with(['.', '-']) || !name.chars().all(letter) {
        return Err(value.mismatch(NAME));
    }
    match taken.any(|other| other == name) {
        true => Err(value.mismatch("a name that no other has")),
        false => Ok(name.to_owned()),
    }
}

pub(super) const NAME: &str = "a name of at most 64 letters, digits, hyphens, dots and underscores";
const MOST_NAME: usize = 64;
