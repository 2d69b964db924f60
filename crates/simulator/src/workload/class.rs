//! Names of priority classes, shared with the exports of a service.

use block::Class;
use serde::Serializer;

/// The classes and their names. Requests of a load have no deadlines, so none is real-time.
const ALL: [(&str, Class); 8] = [
    ("foreground", Class::BestEffort(0)),
    ("best-effort-1", Class::BestEffort(1)),
    ("best-effort-2", Class::BestEffort(2)),
    ("best-effort-3", Class::BestEffort(3)),
    ("best-effort-4", Class::BestEffort(4)),
    ("best-effort-5", Class::BestEffort(5)),
    ("best-effort-6", Class::BestEffort(6)),
    ("background", Class::Background),
];

/// The class of this name.
pub(super) fn named(name: &str) -> Option<Class> {
    let (_, class) = ALL.iter().find(|(known, _)| *known == name)?;
    Some(*class)
}

/// The name of a class.
pub fn name(class: Class) -> &'static str {
    let known = ALL.iter().find(|(_, known)| *known == class);
    known.map_or("real-time", |(name, _)| name)
}

/// Serializes a class as its name.
pub(super) fn serialize<S: Serializer>(class: &Class, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(name(*class))
}

/// The permitted names.
pub(super) const EXPECTED: &str =
    "\"foreground\", \"best-effort-1\" to \"best-effort-6\", or \"background\"";
