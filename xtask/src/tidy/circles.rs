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

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for modules in Modules::by_crate(repository).values() {
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

    #[test]
    fn a_circle_of_the_stages_of_the_engine_is_reported() {
        let root = ("crates/engine/src/lib.rs", "mod gap; mod new;");
        let gap = (
            "crates/engine/src/gap.rs",
            "use crate::new::B; pub struct A;",
        );
        let new = (
            "crates/engine/src/new.rs",
            "use crate::gap::A; pub struct B;",
        );
        assert_eq!(
            places(&CHECK, &[root, gap, new]),
            ["crates/engine/src/gap.rs:1"]
        );
    }
}
