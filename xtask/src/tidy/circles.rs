//! Sibling modules of a crate do not name each other in a circle: a circle cannot be read from one
//! end. `cargo xtask structure CRATE` shows each arrow with its place.

use super::{Check, Violation};
use crate::repository::Repository;
use crate::structure::circles;
use crate::structure::modules::Modules;

/// The check.
pub const CHECK: Check = Check {
    rule: "circles",
    about: "modules beside each other do not name each other in a circle",
    run,
};

/// Crates whose circle is known, with the reason. A new circle anywhere else is reported.
const KNOWN: &[(&str, &str)] = &[(
    "engine",
    "stages reach their neighbours in the row through StageContext (decision 0092)",
)];

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, modules) in &Modules::by_crate(repository) {
        if KNOWN.iter().any(|(known, _)| known == name) {
            continue;
        }
        for circle in circles::of(modules) {
            let message = format!(
                "{} name each other in a circle (move what they share below them): {}",
                circle.modules.join(", "),
                circle.edges.join("; "),
            );
            found.push(Violation::at(&circle.path, 1, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::CHECK;

    #[test]
    fn a_circle_is_reported_at_its_first_module_and_one_direction_is_not() {
        let root = ("crates/a/src/lib.rs", "mod one; mod two;");
        let two = ("crates/a/src/two.rs", "use crate::one::A; pub struct B;");
        let circle = ("crates/a/src/one.rs", "use crate::two::B; pub struct A;");
        let plain = ("crates/a/src/one.rs", "pub struct A;");
        assert_eq!(
            places(&CHECK, &[root, circle, two]),
            ["crates/a/src/one.rs:1"]
        );
        assert_eq!(places(&CHECK, &[root, plain, two]), Vec::<String>::new());
    }
}
