//! Circles between sibling modules: `a` names `b`, `b` names `c`, and `c` names `a`.
//!
//! ```text
//!   engine ---+--- gap ------- slack, plan       gap and its children are one node here;
//!             '--- belief                        slack and plan are nodes one level below
//! ```
//!
//! A module and those inside of it are one chapter, so that a table `ALL` may name the files beside
//! it that use its trait. Between siblings names point one way only: a circle of siblings cannot be
//! read from one end.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Arrow, Modules, parent};

/// Siblings that name each other in a circle.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    /// The siblings, in order.
    pub modules: Vec<String>,
    /// The file of the first one.
    pub path: String,
    /// One arrow for each pair that names each other: `a -> b (path:line)`.
    pub edges: Vec<String>,
}

/// Every circle, the largest ones first.
pub fn of(modules: &Modules) -> Vec<Circle> {
    // By the module around them: which sibling names which, and one place where.
    let mut levels: BTreeMap<String, BTreeMap<(String, String), Arrow>> = BTreeMap::new();
    for arrow in modules.arrows() {
        if let Some((around, from, to)) = siblings(&arrow.from, &arrow.to) {
            let level = levels.entry(around).or_default();
            level.entry((from, to)).or_insert(arrow);
        }
    }
    let mut circles: Vec<Circle> = levels.values().flat_map(circles).collect();
    for circle in &mut circles {
        circle.path = modules.path(&circle.modules[0]);
    }
    circles.sort_by(|a, b| {
        let sizes = b.modules.len().cmp(&a.modules.len());
        sizes.then_with(|| a.modules.cmp(&b.modules))
    });
    circles
}

/// The circles among the nodes of these arrows.
fn circles(arrows: &BTreeMap<(String, String), Arrow>) -> Vec<Circle> {
    let reached = |from: &str| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for (_, to) in arrows.keys().filter(|(from, _)| from == at) {
                if seen.insert(to) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let nodes: BTreeSet<&str> = arrows.keys().map(|(from, _)| from.as_str()).collect();
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        nodes.iter().map(|node| (*node, reached(node))).collect();
    let mut found = Vec::new();
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    for node in &nodes {
        if placed.contains(node) || !reach[node].contains(node) {
            continue;
        }
        let together: BTreeSet<&str> = nodes
            .iter()
            .filter(|other| reach[node].contains(*other) && reach[*other].contains(node))
            .copied()
            .collect();
        placed.extend(&together);
        let inside = |(from, to): &(String, String)| {
            together.contains(from.as_str()) && together.contains(to.as_str())
        };
        let edges = arrows.iter().filter(|(ends, _)| inside(ends));
        found.push(Circle {
            modules: together.iter().map(|name| (*name).to_string()).collect(),
            path: String::new(),
            edges: edges
                .map(|((from, to), arrow)| format!("{from} -> {to} ({})", arrow.place))
                .collect(),
        });
    }
    found
}

/// The module around both, and the two modules directly in it that `from` and `to` belong to;
/// nothing if one is inside of the other.
fn siblings(from: &str, to: &str) -> Option<(String, String, String)> {
    let above = |module: &str| {
        let mut chain = vec![module.to_string()];
        while let Some(around) = parent(&chain[chain.len() - 1]) {
            chain.push(around.to_string());
        }
        chain.reverse();
        chain
    };
    let (from, to) = (above(from), above(to));
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let (a, b) = (from.get(shared)?, to.get(shared)?);
    Some((from[shared - 1].clone(), a.clone(), b.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::{Repository, SourceFile};

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files = files.iter().map(|(path, text)| SourceFile {
            path: format!("crates/a/src/{path}"),
            bytes: text.as_bytes().to_vec(),
        });
        let crates = Modules::by_crate(&Repository::of(files.collect(), None));
        of(&crates["a"])
            .into_iter()
            .map(|circle| circle.modules)
            .collect()
    }

    #[test]
    fn two_siblings_that_import_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod one; mod two;"),
            ("one.rs", "use crate::two::B; pub struct A;"),
            ("two.rs", "pub struct B; fn f(_: super::one::A) {}"),
        ];
        assert_eq!(found(&files), [["one", "two"]]);
    }

    #[test]
    fn a_circle_through_a_re_export_is_found() {
        let files = [
            ("lib.rs", "mod one; mod two; pub use two::B;"),
            ("one.rs", "use crate::B; pub struct A;"),
            ("two.rs", "use crate::one::A; pub struct B;"),
        ];
        assert_eq!(found(&files), [["one", "two"]]);
    }

    #[test]
    fn children_stand_for_their_parents_among_its_siblings() {
        let files = [
            ("lib.rs", "mod one; mod two;"),
            ("one.rs", "pub mod inner;"),
            ("one/inner.rs", "use crate::two::B; pub struct A;"),
            ("two.rs", "use crate::one::inner::A; pub struct B;"),
        ];
        assert_eq!(found(&files), [["one", "two"]]);
    }

    #[test]
    fn one_direction_a_table_of_children_and_tests_are_no_circles() {
        let files = [
            ("lib.rs", "mod one; mod two; use one::A;"),
            (
                "one.rs",
                "mod inner; pub struct A; const ALL: &[u8] = &[self::inner::B];",
            ),
            ("one/inner.rs", "use super::A; pub const B: u8 = 0;"),
            ("two.rs", "use crate::one::A;"),
            ("three.rs", "#[cfg(test)] mod tests { use crate::four::X; }"),
            ("four.rs", "use crate::three::Y;"),
        ];
        assert_eq!(found(&files), Vec::<Vec<String>>::new());
    }
}
