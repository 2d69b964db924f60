//! Functions that have exactly one caller. The short ones are candidates for standing where they
//! are called.
//!
//! A function counts if it is not `pub`, outside of tests and of trait implementations, the only
//! function of its name in its crate, and if its name is mentioned exactly once in the crate's code
//! besides the definition. Names stand for functions here: a compiler would know more, and would
//! need a build.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use super::folder_of;
use crate::repository::Repository;
use crate::source::Place;

/// Lines from the signature to the closing brace. Choice: what a reader sees at a glance.
const SHORT: usize = 8;

/// A function with one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleUse {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// Its first line.
    pub line: usize,
    /// How many lines it has.
    pub lines: usize,
}

impl SingleUse {
    /// Whether a reader sees all of it at a glance.
    pub fn is_short(&self) -> bool {
        self.lines <= SHORT
    }
}

/// All of them, by path and line.
pub fn single_use(repository: &Repository) -> Vec<SingleUse> {
    let mut mentions: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut definitions: BTreeMap<(String, String), Vec<(SingleUse, bool)>> = BTreeMap::new();
    for (path, source) in repository.rust() {
        let Some(file) = repository.syntax(path) else {
            continue;
        };
        let name = folder_of(path);
        let is_code = |line: usize| source.place(line) == Place::Code;
        for mention in source.mentions.iter().filter(|m| is_code(m.line)) {
            for word in mention.path.split("::") {
                let key = (name.clone(), word.to_string());
                *mentions.entry(key).or_default() += 1;
            }
        }
        let mut reader = CallCollector::default();
        reader.visit_file(&file);
        for found in reader.found.into_iter().filter(|found| is_code(found.line)) {
            let single = SingleUse {
                name: found.name.clone(),
                path: path.to_string(),
                line: found.line,
                lines: found.lines,
            };
            let key = (name.clone(), found.name);
            definitions
                .entry(key)
                .or_default()
                .push((single, found.is_own));
        }
    }
    let mut found: Vec<SingleUse> = definitions
        .into_iter()
        .filter_map(|(key, mut places)| {
            let (single, is_own) = places.pop()?;
            // The definition mentions the name itself.
            let is_single = places.is_empty() && mentions.get(&key) == Some(&2);
            (is_own && is_single).then_some(single)
        })
        .collect();
    found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    found
}

struct Definition {
    name: String,
    line: usize,
    lines: usize,
    /// Whether its name and its being there were this crate's choice.
    is_own: bool,
}

#[derive(Default)]
struct CallCollector {
    found: Vec<Definition>,
    is_in_trait: bool,
}

impl CallCollector {
    fn note(&mut self, signature: &syn::Signature, end: usize, visibility: &syn::Visibility) {
        let line = signature.ident.span().start().line;
        self.found.push(Definition {
            name: signature.ident.to_string(),
            line,
            lines: end + 1 - line,
            is_own: !self.is_in_trait && !matches!(visibility, syn::Visibility::Public(_)),
        });
    }
}

impl<'ast> Visit<'ast> for CallCollector {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(
            &item.sig,
            item.block.brace_token.span.close().end().line,
            &item.vis,
        );
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let before = std::mem::replace(&mut self.is_in_trait, item.trait_.is_some());
        visit::visit_item_impl(self, item);
        self.is_in_trait = before;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(
            &item.sig,
            item.block.brace_token.span.close().end().line,
            &item.vis,
        );
        visit::visit_impl_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::SourceFile;

    #[test]
    fn one_caller_counts_and_two_or_a_test_do_not() {
        let text = "\
fn once() {}
fn twice() {}
fn tested() {}
pub fn public() {}
fn user() { once(); twice(); twice(); public(); }
impl Thing { fn method(&self) { user(); self.own(); } fn own(&self) {} }
impl Clone for Thing { fn clone(&self) -> Self { *self } }
#[cfg(test)]
mod tests { fn t() { super::tested(); } }
";
        let file = SourceFile {
            path: String::from("crates/a/src/lib.rs"),
            bytes: text.as_bytes().to_vec(),
        };
        let found = single_use(&Repository::of(vec![file], None));
        let names: Vec<&str> = found.iter().map(|single| single.name.as_str()).collect();
        assert_eq!(names, ["once", "user", "own"]);
    }
}
