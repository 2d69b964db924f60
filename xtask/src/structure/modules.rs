//! Which module of a crate names which other, read from imports and paths.
//!
//! A name that is re-exported counts for the module that declares it: `use crate::Engine` is an
//! arrow to `engine`, not to the crate's root. What is compiled for tests only does not count.

use std::collections::{BTreeMap, BTreeSet};

use super::folder_of;
use crate::repository::Repository;
use crate::source::{Place, Source};

/// How many re-exports are followed for one name. Choice: beyond every chain that is there.
const DEEPEST: usize = 8;

/// The modules of one crate that have a file of their own.
#[derive(Default)]
pub struct Modules {
    files: BTreeMap<String, ModuleFile>,
}

/// One module.
#[derive(Default)]
struct ModuleFile {
    path: String,
    /// Names that it declares.
    items: BTreeSet<String>,
    /// Names that it imports, and where they come from as it is written.
    imports: BTreeMap<String, Vec<String>>,
    /// What it imports whole.
    globs: Vec<Vec<String>>,
    /// Paths that it mentions, with their lines.
    mentions: Vec<(Vec<String>, usize)>,
}

/// One module names another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// The module that names.
    pub from: String,
    /// The module that is named.
    pub to: String,
    /// Where: path and line.
    pub place: String,
}

impl Modules {
    /// The modules of each crate's library or program.
    pub fn by_crate(repository: &Repository) -> BTreeMap<String, Modules> {
        let mut crates: BTreeMap<String, Modules> = BTreeMap::new();
        for (path, source) in repository.rust() {
            let Some((_, inside)) = path.split_once("/src/") else {
                continue;
            };
            if inside == "tests.rs" || inside.split('/').any(|part| part.starts_with("tests")) {
                continue;
            }
            if let Some(syntax) = repository.syntax(path) {
                let file = ModuleFile::read(path, source, &syntax);
                let modules = crates.entry(folder_of(path)).or_default();
                modules.files.insert(module_of(inside), file);
            }
        }
        crates
    }

    /// The file of a module.
    pub fn path(&self, module: &str) -> String {
        self.files[module].path.clone()
    }

    /// Every arrow between two modules, by module.
    pub fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for (module, file) in &self.files {
            for (mention, line) in &file.mentions {
                let Some(to) = self.resolve(module, mention, DEEPEST) else {
                    continue;
                };
                if to != *module {
                    arrows.insert(Arrow {
                        from: module.clone(),
                        to,
                        place: format!("{}:{line}", file.path),
                    });
                }
            }
        }
        arrows
    }

    /// The module that declares what `path` means in `module`; nothing for other crates' paths.
    fn resolve(&self, module: &str, path: &[String], deepest: usize) -> Option<String> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk("", rest, deepest),
            "self" => self.walk(module, rest, deepest),
            "super" => self.walk(parent(module)?, rest, deepest),
            name => {
                let child = join(module, name);
                if self.files.contains_key(&child) {
                    return self.walk(&child, rest, deepest);
                }
                let import = self.files.get(module)?.imports.get(name)?;
                if deepest == 0 || import.first() == Some(first) {
                    return None;
                }
                let mut whole = import.clone();
                whole.extend_from_slice(rest);
                self.resolve(module, &whole, deepest - 1)
            }
        }
    }

    /// The module that declares `path` as seen from inside of `module`.
    fn walk(&self, module: &str, path: &[String], deepest: usize) -> Option<String> {
        let file = self.files.get(module)?;
        let Some((first, rest)) = path.split_first() else {
            return Some(module.to_string());
        };
        if first == "super" {
            return self.walk(parent(module)?, rest, deepest);
        }
        let child = join(module, first);
        if self.files.contains_key(&child) {
            return self.walk(&child, rest, deepest);
        }
        if file.items.contains(first) || deepest == 0 {
            return Some(module.to_string());
        }
        if let Some(import) = file.imports.get(first) {
            let mut whole = import.clone();
            whole.extend_from_slice(rest);
            return self.resolve(module, &whole, deepest - 1);
        }
        let declares = |glob: &Vec<String>| {
            let target = self.resolve(module, glob, deepest - 1)?;
            self.files
                .get(&target)?
                .items
                .contains(first)
                .then_some(target)
        };
        let found = file.globs.iter().find_map(declares);
        found.or_else(|| Some(module.to_string()))
    }
}

impl ModuleFile {
    fn read(path: &str, source: &Source, syntax: &syn::File) -> Self {
        let mut file = ModuleFile {
            path: path.to_string(),
            ..ModuleFile::default()
        };
        let is_code = |line: usize| source.place(line) == Place::Code;
        for item in &syntax.items {
            if let Some(name) = declared(item) {
                file.items.insert(name);
            }
            if let syn::Item::Use(item) = item {
                let line = item.use_token.span.start().line;
                if is_code(line) {
                    file.imported(&item.tree, &mut Vec::new(), line);
                }
            }
        }
        for mention in source.mentions.iter().filter(|m| is_code(m.line)) {
            let path: Vec<String> = mention.path.split("::").map(str::to_string).collect();
            let is_inside = matches!(path[0].as_str(), "crate" | "self" | "super");
            // What a group of imports begins with is read as part of each import.
            let is_whole = path.last().is_some_and(|last| !is_keyword(last));
            if is_inside && is_whole && path.len() > 1 {
                file.mentions.push((path, mention.line));
            }
        }
        file
    }

    fn imported(&mut self, tree: &syn::UseTree, before: &mut Vec<String>, line: usize) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.imported(&path.tree, before, line);
                before.pop();
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                if let Some(last) = before.last() {
                    self.import(last.clone(), before.clone(), line);
                }
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                let whole = [before.as_slice(), std::slice::from_ref(&name)].concat();
                self.import(name, whole, line);
            }
            syn::UseTree::Rename(name) => {
                let whole = [before.as_slice(), &[name.ident.to_string()]].concat();
                self.import(name.rename.to_string(), whole, line);
            }
            syn::UseTree::Glob(_) => {
                self.globs.push(before.clone());
                self.mentions.push((before.clone(), line));
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.imported(tree, before, line);
                }
            }
        }
    }

    fn import(&mut self, name: String, path: Vec<String>, line: usize) {
        self.mentions.push((path.clone(), line));
        self.imports.insert(name, path);
    }
}

/// Keywords that name a module only together with what follows.
fn is_keyword(word: &str) -> bool {
    matches!(word, "crate" | "self" | "super")
}

/// The name that an item gives to something.
fn declared(item: &syn::Item) -> Option<String> {
    let ident = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// `gap/slack.rs` is `gap::slack`, `lib.rs` and `main.rs` are the root.
fn module_of(inside: &str) -> String {
    match inside {
        "lib.rs" | "main.rs" => String::new(),
        _ => inside.trim_end_matches(".rs").replace('/', "::"),
    }
}

/// The module around this one; nothing around the root.
pub fn parent(module: &str) -> Option<&str> {
    match module.rsplit_once("::") {
        Some((parent, _)) => Some(parent),
        None => (!module.is_empty()).then_some(""),
    }
}

/// A module inside of another.
fn join(module: &str, name: &str) -> String {
    match module {
        "" => name.to_string(),
        _ => format!("{module}::{name}"),
    }
}
