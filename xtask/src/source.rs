//! What the checks want to know of a Rust source: its functions, types, fields, tests, and every
//! path that it mentions, each with its line.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// One Rust source.
#[derive(Default)]
pub struct Source {
    /// Lines in all.
    pub lines: usize,
    /// Functions and methods, outside macros.
    pub functions: Vec<Function>,
    /// Names of types and of modules.
    pub names: Vec<Name>,
    /// Named fields of structs and variants.
    pub fields: Vec<Typed>,
    /// Tests, with the modules of this file in front: `tests::a_quarter_is_a_quarter`.
    pub tests: Vec<String>,
    /// Paths, keywords (`unsafe`), macros (`println!`) and attributes (`#[ignore]`).
    pub mentions: Vec<Mention>,
    /// First and last lines of what is compiled for tests only.
    test_lines: Vec<(usize, usize)>,
    /// Whether all of the file is for tests or benchmarks.
    role: Role,
}

/// What a whole file is for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Role {
    /// A part of a crate.
    #[default]
    Code,
    /// Below `tests/`, or a module `tests`.
    Tests,
    /// Below `benches/`.
    Benches,
}

/// What a line is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// It is a part of the crate.
    Code,
    /// It is compiled for tests only.
    Tests,
    /// It is a benchmark.
    Benches,
}

/// One function.
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of `fn`.
    pub line: usize,
    /// From the signature to the closing brace.
    pub lines: usize,
    /// Whether everybody may call it.
    pub reach: Reach,
    /// The arguments that have a name.
    pub arguments: Vec<Typed>,
}

/// Who chose a function's signature and who calls it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// `pub`, or a method of a `pub` trait.
    Public,
    /// Of this crate or module only, or in an `impl` of a trait, whose author chose the arguments.
    Private,
}

/// A name with a type: a field or an argument.
pub struct Typed {
    /// The name.
    pub name: String,
    /// The type if it is a plain path without arguments, references taken off: `bool`, `f64`.
    pub kind: Option<String>,
    /// Where.
    pub line: usize,
}

/// The name of a type or module.
pub struct Name {
    /// The name.
    pub name: String,
    /// Where.
    pub line: usize,
}

/// Something mentioned.
pub struct Mention {
    /// `std::time::Instant`, `unsafe`, `println!`, `#[ignore]`.
    pub path: String,
    /// Where.
    pub line: usize,
}

impl Source {
    /// Reads the source at `path`.
    ///
    /// # Errors
    /// The line and the reason, if it is not Rust.
    pub fn parse(path: &str, text: &str) -> Result<Self, (usize, String)> {
        let wrong = |error: syn::Error| (error.span().start().line, error.to_string());
        let tokens: TokenStream = syn::parse_str(text).map_err(wrong)?;
        let file: syn::File = syn::parse_file(text).map_err(wrong)?;
        let mut source = Source {
            lines: text.lines().count(),
            role: role(path),
            ..Source::default()
        };
        mentions(tokens, &mut source.mentions);
        let mut reader = SyntaxReader {
            source: &mut source,
            modules: Vec::new(),
        };
        reader.visit_file(&file);
        Ok(source)
    }

    /// What the line is for.
    pub fn place(&self, line: usize) -> Place {
        match self.role {
            Role::Benches => Place::Benches,
            Role::Tests => Place::Tests,
            Role::Code => {
                let inside = |&(first, last): &(usize, usize)| first <= line && line <= last;
                if self.test_lines.iter().any(inside) {
                    Place::Tests
                } else {
                    Place::Code
                }
            }
        }
    }

    /// Lines without the modules that are compiled for tests only.
    pub fn lines_without_tests(&self) -> usize {
        let test_lines = self.test_lines.iter().map(|(first, last)| last - first + 1);
        self.lines - test_lines.sum::<usize>()
    }
}

/// What the file at `path` is for.
fn role(path: &str) -> Role {
    let parts: Vec<&str> = path.split('/').collect();
    if parts.contains(&"benches") {
        Role::Benches
    } else if parts.contains(&"tests") || parts.last() == Some(&"tests.rs") {
        Role::Tests
    } else {
        Role::Code
    }
}

/// Walks the items and notes what they are.
struct SyntaxReader<'a> {
    source: &'a mut Source,
    modules: Vec<String>,
}

impl SyntaxReader<'_> {
    fn function(&mut self, signature: &syn::Signature, end: usize, reach: Reach) {
        let line = signature.span().start().line;
        let arguments = signature
            .inputs
            .iter()
            .filter_map(|argument| match argument {
                syn::FnArg::Typed(argument) => Some(Typed {
                    name: match &*argument.pat {
                        syn::Pat::Ident(pattern) => pattern.ident.to_string(),
                        _ => return None,
                    },
                    kind: kind(&argument.ty),
                    line: argument.span().start().line,
                }),
                _ => None,
            });
        self.source.functions.push(Function {
            name: signature.ident.to_string(),
            line,
            lines: end - line + 1,
            reach,
            arguments: arguments.collect(),
        });
    }

    fn name(&mut self, ident: &syn::Ident) {
        self.source.names.push(Name {
            name: ident.to_string(),
            line: ident.span().start().line,
        });
    }

    fn test(&mut self, name: String) {
        let mut path = self.modules.clone();
        path.push(name);
        self.source.tests.push(path.join("::"));
    }
}

impl<'ast> Visit<'ast> for SyntaxReader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.name(&item.ident);
        if is_test_only(&item.attrs) {
            let (first, last) = (item.span().start().line, item.span().end().line);
            self.source.test_lines.push((first, last));
        }
        self.modules.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.modules.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let end = item.block.span().end().line;
        self.function(&item.sig, end, reach(&item.vis));
        if item.attrs.iter().any(is_test_attribute) {
            self.test(item.sig.ident.to_string());
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        for part in &item.items {
            if let syn::ImplItem::Fn(method) = part {
                let reach = match item.trait_ {
                    None => reach(&method.vis),
                    Some(_) => Reach::Private,
                };
                let end = method.block.span().end().line;
                self.function(&method.sig, end, reach);
            }
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.name(&item.ident);
        for part in &item.items {
            if let syn::TraitItem::Fn(method) = part {
                self.function(&method.sig, method.span().end().line, reach(&item.vis));
            }
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.name(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.name(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.name(&item.ident);
        visit::visit_item_union(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.name(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(ident) = &field.ident {
            self.source.fields.push(Typed {
                name: ident.to_string(),
                kind: kind(&field.ty),
                line: ident.span().start().line,
            });
        }
        visit::visit_field(self, field);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        imports(&item.tree, "", &mut self.source.mentions);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        for name in tests_in_macro(item.tokens.clone()) {
            self.test(name);
        }
    }
}

/// Who may call what is declared with this visibility.
fn reach(visibility: &syn::Visibility) -> Reach {
    match visibility {
        syn::Visibility::Public(_) => Reach::Public,
        _ => Reach::Private,
    }
}

/// The type as a plain path, references taken off.
fn kind(kind: &syn::Type) -> Option<String> {
    match kind {
        syn::Type::Reference(reference) => self::kind(&reference.elem),
        syn::Type::Path(path) => path.path.get_ident().map(ToString::to_string),
        _ => None,
    }
}

/// Whether the attribute is `#[test]`, or another crate's of this name.
fn is_test_attribute(attribute: &syn::Attribute) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|segment| segment.ident == "test")
}

/// Whether `#[cfg(test)]`, alone or in an `all(...)`, is among the attributes.
fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all (test")
        }
        _ => false,
    })
}

/// The paths that an import brings in, each whole.
fn imports(tree: &syn::UseTree, before: &str, found: &mut Vec<Mention>) {
    let joined = |name: &str| match before {
        "" => name.to_string(),
        _ => format!("{before}::{name}"),
    };
    let line = tree.span().start().line;
    let mention = |name: &str| Mention {
        path: joined(name),
        line,
    };
    match tree {
        syn::UseTree::Path(path) => imports(&path.tree, &joined(&path.ident.to_string()), found),
        syn::UseTree::Name(name) if name.ident == "self" => found.push(Mention {
            path: before.to_string(),
            line,
        }),
        syn::UseTree::Name(name) => found.push(mention(&name.ident.to_string())),
        syn::UseTree::Rename(name) => found.push(mention(&name.ident.to_string())),
        syn::UseTree::Glob(_) => found.push(mention("*")),
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                imports(tree, before, found);
            }
        }
    }
}

/// Every path, keyword, macro and attribute in the tokens, also inside macros.
fn mentions(tokens: TokenStream, found: &mut Vec<Mention>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(first) => {
                let line = first.span().start().line;
                let mut path = first.to_string();
                at += 1;
                while let [
                    TokenTree::Punct(a),
                    TokenTree::Punct(b),
                    TokenTree::Ident(next),
                    ..,
                ] = &tokens[at..]
                    && a.as_char() == ':'
                    && b.as_char() == ':'
                {
                    path.push_str("::");
                    path.push_str(&next.to_string());
                    at += 3;
                }
                if let [TokenTree::Punct(mark), TokenTree::Group(_), ..] = &tokens[at..]
                    && mark.as_char() == '!'
                {
                    path.push('!');
                }
                found.push(Mention { path, line });
            }
            TokenTree::Group(group) => {
                if let Some(attribute) = attribute(tokens[..at].last(), group) {
                    found.push(attribute);
                }
                mentions(group.stream(), found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// `#[name ...]` as a mention, if that is what the two tokens are.
fn attribute(before: Option<&TokenTree>, group: &proc_macro2::Group) -> Option<Mention> {
    let TokenTree::Punct(mark) = before? else {
        return None;
    };
    if mark.as_char() != '#' || group.delimiter() != Delimiter::Bracket {
        return None;
    }
    match group.stream().into_iter().next()? {
        TokenTree::Ident(name) => Some(Mention {
            path: format!("#[{name}]"),
            line: name.span().start().line,
        }),
        _ => None,
    }
}

/// The names of functions after `#[test]` in a macro such as `proptest!`.
fn tests_in_macro(tokens: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut tested = None;
    let mut before = None;
    for token in tokens {
        match &token {
            TokenTree::Group(group) => {
                if let Some(found) = attribute(before.as_ref(), group)
                    && found.path == "#[test]"
                {
                    tested = Some(());
                }
            }
            TokenTree::Ident(name) => {
                let after_fn = matches!(&before, Some(TokenTree::Ident(word)) if *word == "fn");
                if after_fn && tested.take().is_some() {
                    names.push(name.to_string());
                }
            }
            _ => {}
        }
        before = Some(token);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
//! A file.
use std::{fs, time::{self, Instant as Clock}};
/// A thing.
pub struct Thing { pub wait_ms: f64 }
impl Thing {
    pub fn go(&self, fast: bool) {
        vec![std::thread::spawn(x)];
    }
}
#[cfg(test)]
mod tests {
    proptest! {
        /// Also.
        #[test]
        fn in_a_macro(x in 0..3u8) { println!(\"{x}\"); }
    }
    #[test]
    #[ignore]
    fn plain() {}
}
";

    fn source() -> Source {
        Source::parse("crates/block/src/thing.rs", SOURCE).expect("valid Rust")
    }

    #[test]
    fn every_path_is_found_with_its_line() {
        let source = source();
        for (path, line) in [
            ("std::fs", 2),
            ("std::time", 2),
            ("std::time::Instant", 2),
            ("std::thread::spawn", 7),
            ("println!", 15),
            ("#[ignore]", 18),
        ] {
            let here = |m: &Mention| m.path == path && m.line == line;
            assert!(source.mentions.iter().any(here), "{path} on line {line}");
        }
    }

    #[test]
    fn items_tests_and_lines_are_found() {
        let source = source();
        assert_eq!(source.tests, ["tests::in_a_macro", "tests::plain"]);
        assert_eq!((source.lines, source.lines_without_tests()), (20, 9));
        assert_eq!(source.place(7), Place::Code);
        assert_eq!(source.place(15), Place::Tests);
        let go = &source.functions[0];
        assert_eq!((go.name.as_str(), go.line, go.lines), ("go", 6, 3));
        assert_eq!(go.reach, Reach::Public);
        assert_eq!(go.arguments[0].kind.as_deref(), Some("bool"));
        assert_eq!(source.fields[0].kind.as_deref(), Some("f64"));
        assert_eq!(source.names[0].name, "Thing");
    }

    #[test]
    fn what_is_not_rust_has_a_line() {
        let error = Source::parse("x.rs", "fn a() {}\nfn (").err();
        assert_eq!(error.map(|(line, _)| line), Some(2));
    }
}
