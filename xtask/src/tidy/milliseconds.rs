//! Time is integer nanoseconds in the core. Published figures are milliseconds with fractions:
//! they become `block::Duration` where they are read, and milliseconds again where they are shown.

use super::{Check, Violation};
use crate::repository::{Repository, crate_of};
use crate::source::{Place, Typed};

/// The check.
pub const CHECK: Check = Check {
    rule: "milliseconds",
    about: "no time in floating point in the core, outside of parsing profiles",
    run,
};

/// The crates that calculate with time.
const CORE: &[&str] = &[
    "block",
    "drive",
    "profiler",
    "scheduler",
    "cache",
    "stream",
    "engine",
];

/// What a name with a unit of time ends with.
const UNITS: &[&str] = &[
    "_ms", "_us", "_ns", "_s", "_millis", "_micros", "_nanos", "_secs", "_seconds",
];

/// Files that may: (beginning of the path, reason).
const EXCEPT: &[(&str, &str)] = &[(
    "crates/drive/src/profile/",
    "the profile's file has the units of the publications; they end here",
)];

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in repository.rust() {
        let in_core = crate_of(path).is_some_and(|folder| CORE.contains(&folder));
        if !in_core || EXCEPT.iter().any(|(start, _)| path.starts_with(start)) {
            continue;
        }
        let arguments = source.functions.iter().flat_map(|f| &f.arguments);
        for named in source.fields.iter().chain(arguments) {
            if is_floating_time(named) && source.place(named.line) == Place::Code {
                let message = format!(
                    "`{}` is a time in floating point (use `block::Duration`; convert where it is read or shown)",
                    named.name
                );
                found.push(Violation::at(path, named.line, message));
            }
        }
    }
    found
}

/// Whether it is an `f64` or `f32` whose name ends with a unit of time.
fn is_floating_time(named: &Typed) -> bool {
    matches!(named.kind.as_deref(), Some("f64" | "f32"))
        && UNITS.iter().any(|unit| named.name.ends_with(unit))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::places;

    const TEXT: &str = "//! A.\nstruct A {\n    seek_ms: f64,\n    share: f64,\n    wait_ns: u64,\n}\nfn go(gap_us: f32) {}\n";

    #[test]
    fn fields_and_arguments_are_reported() {
        assert_eq!(
            places(&CHECK, &[("crates/drive/src/a.rs", TEXT)]),
            ["crates/drive/src/a.rs:3", "crates/drive/src/a.rs:7"]
        );
    }

    #[test]
    fn parsing_tests_and_reports_are_fine() {
        let files = [
            ("crates/drive/src/profile/file.rs", TEXT),
            ("crates/drive/tests/a.rs", TEXT),
            ("crates/simulator/src/report.rs", TEXT),
        ];
        assert_eq!(places(&CHECK, &files), [""; 0]);
    }
}
