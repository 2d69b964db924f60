//! `cargo xtask structure [CRATE]`: the shape of the workspace in numbers.
//!
//! The numbers are thermometers, not limits: they show where to look, and nothing is sliced, merged
//! or renamed to move one. Only circles between modules are a rule of `tidy`.
//!
//! | column | meaning |
//! |---|---|
//! | code, tests | lines of Rust outside and inside of tests and benchmarks |
//! | largest | the type with the most fields and methods, over all of its inherent `impl` blocks |
//! | circles | sets of sibling modules that name each other in a circle ([`circles`]) |
//! | shared names | type names that the workspace declares three or more times |
//! | one caller | functions with exactly one caller, and how many of them are short ([`calls`]) |

pub mod calls;
pub mod circles;
pub mod modules;
pub mod sizes;

use std::collections::BTreeMap;

use crate::Failure;
use crate::repository::{self, Repository};
use crate::source::Place;
use circles::Circle;
use modules::Modules;
use sizes::Type;

/// Type names that mean the same everywhere by idiom: how a module calls its error or its kind.
const IDIOM: &[&str] = &["Error", "Kind", "Iter", "Result"];

/// A type name is shared if this many types have it.
const SHARED: usize = 3;

/// What one crate looks like.
#[derive(Default)]
struct CrateShape {
    code: usize,
    tests: usize,
    largest: Option<Type>,
    circles: Vec<Circle>,
    single_use: Vec<calls::SingleUse>,
}

/// `cargo xtask structure [CRATE]`: the table; with a crate, also what the numbers are made of.
///
/// # Errors
/// If the repository cannot be read, or has no such crate.
pub fn run(words: &[String]) -> Result<(), Failure> {
    let only = match words {
        [] => None,
        [name] if !name.starts_with('-') => Some(name.as_str()),
        _ => {
            let usage =
                "usage: cargo xtask structure [CRATE]\n\nexample: cargo xtask structure engine";
            return Err(Failure::Usage(usage.to_string()));
        }
    };
    let repository = Repository::read(&repository::root()).map_err(Failure::Usage)?;
    let shared = shared_names(&repository);
    let shapes = shapes(&repository);
    if let Some(name) = only {
        let shape = shapes.get(name).ok_or_else(|| {
            let names: Vec<&str> = shapes.keys().map(String::as_str).collect();
            Failure::Usage(format!("no crate {name}; there are {}", names.join(", ")))
        })?;
        details(name, shape, &shared);
        return Ok(());
    }
    table(&shapes, &shared);
    Ok(())
}

/// The shape of every crate, by the name of its folder.
fn shapes(repository: &Repository) -> BTreeMap<String, CrateShape> {
    let mut shapes: BTreeMap<String, CrateShape> = BTreeMap::new();
    for (path, source) in repository.rust() {
        let shape = shapes.entry(folder_of(path)).or_default();
        for line in 1..=source.lines {
            match source.place(line) {
                Place::Code => shape.code += 1,
                Place::Tests | Place::Benches => shape.tests += 1,
            }
        }
    }
    for (name, types) in sizes::by_crate(repository) {
        let largest = types.into_iter().max_by_key(Type::size);
        shapes.entry(name).or_default().largest = largest;
    }
    for (name, modules) in Modules::by_crate(repository) {
        shapes.entry(name).or_default().circles = circles::of(&modules);
    }
    for single in calls::single_use(repository) {
        let shape = shapes.entry(folder_of(&single.path)).or_default();
        shape.single_use.push(single);
    }
    shapes
}

/// The places of every type name that the workspace declares too often, outside of tests.
fn shared_names(repository: &Repository) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, types) in sizes::by_crate(repository) {
        for found in types {
            places.entry(found.name).or_default().push(found.path);
        }
    }
    places.retain(|name, places| places.len() >= SHARED && !IDIOM.contains(&name.as_str()));
    places
}

/// `crates/engine/src/gap.rs` is of `engine`, `xtask/src/main.rs` of `xtask`.
fn folder_of(path: &str) -> String {
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or_default();
    match first {
        "crates" | "bindings" => parts.next().unwrap_or_default().to_string(),
        _ => first.to_string(),
    }
}

fn table(shapes: &BTreeMap<String, CrateShape>, shared: &BTreeMap<String, Vec<String>>) {
    let head = [
        "crate",
        "code",
        "tests",
        "circles",
        "single use",
        "fields + methods of the largest",
    ];
    println!(
        "{:<12}{:>8}{:>8}{:>9}{:>18}  {}",
        head[0], head[1], head[2], head[3], head[4], head[5]
    );
    let (mut code, mut tests, mut circles) = (0, 0, 0);
    for (name, shape) in shapes {
        let largest = shape.largest.as_ref().map_or(String::new(), |found| {
            format!("{} + {} {}", found.fields, found.methods, found.name)
        });
        println!(
            "{name:<12}{:>8}{:>8}{:>9}{:>18}  {largest}",
            shape.code,
            shape.tests,
            shape.circles.len(),
            one_caller(shape.single_use.iter()),
        );
        code += shape.code;
        tests += shape.tests;
        circles += shape.circles.len();
    }
    let single = one_caller(shapes.values().flat_map(|shape| &shape.single_use));
    println!("{:<12}{code:>8}{tests:>8}{circles:>9}{single:>18}", "all");
    println!("\n{} lines in all", code + tests);
    println!(
        "{} type names that are declared {SHARED} or more times",
        shared.len()
    );
}

/// How many functions have one caller, and how many of them are short.
fn one_caller<'a>(found: impl Iterator<Item = &'a calls::SingleUse>) -> String {
    let (mut all, mut short) = (0, 0);
    for single in found {
        all += 1;
        short += usize::from(single.is_short());
    }
    format!("{all} ({short} short)")
}

fn details(name: &str, shape: &CrateShape, shared: &BTreeMap<String, Vec<String>>) {
    println!(
        "{name}: {} lines of code, {} of tests",
        shape.code, shape.tests
    );
    if let Some(found) = &shape.largest {
        let Type {
            name,
            fields,
            methods,
            path,
        } = found;
        println!("largest type: {name}, {fields} fields, {methods} methods ({path})");
    }
    println!("\ncircles between modules: {}", shape.circles.len());
    for circle in &shape.circles {
        println!("  {}", circle.modules.join(", "));
        for edge in &circle.edges {
            println!("    {edge}");
        }
    }
    let here = |place: &String| folder_of(place) == name;
    println!("\ntype names that the workspace declares {SHARED} or more times:");
    for (name, places) in shared.iter().filter(|(_, places)| places.iter().any(here)) {
        println!("  {name} ({}): {}", places.len(), places.join(", "));
    }
    println!(
        "\nshort functions with one caller: {}",
        shape.single_use.len()
    );
    for calls::SingleUse {
        name,
        path,
        line,
        lines,
    } in &shape.single_use
    {
        println!("  {path}:{line} {name} ({lines} lines)");
    }
}
