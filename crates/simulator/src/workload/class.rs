//! How urgent a load's requests are, by the names that exports of a service have for it, too.

use block::Class;
use serde::Serializer;

/// The classes and their names. A load's requests have no deadlines, so that none is real-time.
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

/// As reports have it.
pub(super) fn serialize<S: Serializer>(class: &Class, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(name(*class))
}

/// What a class may be called.
pub(super) const EXPECTED: &str =
    "\"foreground\", \"best-effort-1\" to \"best-effort-6\", or \"background\"";
