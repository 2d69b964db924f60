//! Types with the number of their fields and methods.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use super::folder_of;
use crate::repository::Repository;
use crate::source::Place;

/// A struct, an enum or a trait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its name.
    pub name: String,
    /// Fields of a struct; 0 for anything else.
    pub fields: usize,
    /// Methods of all its inherent `impl` blocks in the crate, wherever they stand.
    pub methods: usize,
    /// The file that declares it.
    pub path: String,
}

impl Type {
    /// Fields and methods together.
    pub fn size(&self) -> usize {
        self.fields + self.methods
    }
}

/// The types of each crate, outside of tests.
pub fn by_crate(repository: &Repository) -> BTreeMap<String, Vec<Type>> {
    let mut crates: BTreeMap<String, Vec<Type>> = BTreeMap::new();
    let mut methods: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (path, source) in repository.rust() {
        let Some(file) = repository.syntax(path) else {
            continue;
        };
        let mut reader = TypeCollector::default();
        reader.visit_file(&file);
        let name = folder_of(path);
        let is_code = |line: usize| source.place(line) == Place::Code;
        for (declared, fields, _) in reader.types.iter().filter(|(_, _, line)| is_code(*line)) {
            crates.entry(name.clone()).or_default().push(Type {
                name: declared.clone(),
                fields: *fields,
                methods: 0,
                path: path.to_string(),
            });
        }
        for (owner, _) in reader.methods.iter().filter(|(_, line)| is_code(*line)) {
            *methods.entry((name.clone(), owner.clone())).or_default() += 1;
        }
    }
    for (name, types) in &mut crates {
        let alone =
            |types: &[Type], name: &str| types.iter().filter(|t| t.name == name).count() == 1;
        let counted: Vec<bool> = types
            .iter()
            .map(|found| alone(types, &found.name))
            .collect();
        for (found, is_alone) in types.iter_mut().zip(counted) {
            // Methods of two types of one name cannot be told apart by their names.
            if is_alone {
                let key = (name.clone(), found.name.clone());
                found.methods = methods.get(&key).copied().unwrap_or(0);
            }
        }
    }
    crates
}

#[derive(Default)]
struct TypeCollector {
    /// Name, fields, line.
    types: Vec<(String, usize, usize)>,
    /// The type's name, line.
    methods: Vec<(String, usize)>,
}

impl<'ast> Visit<'ast> for TypeCollector {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let line = item.ident.span().start().line;
        self.types
            .push((item.ident.to_string(), item.fields.len(), line));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        let line = item.ident.span().start().line;
        self.types.push((item.ident.to_string(), 0, line));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let line = item.ident.span().start().line;
        self.types.push((item.ident.to_string(), 0, line));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let syn::Type::Path(owner) = &*item.self_ty else {
            return;
        };
        let owner = owner
            .path
            .segments
            .last()
            .map(|last| last.ident.to_string());
        if let (Some(owner), None) = (owner, &item.trait_) {
            for part in &item.items {
                if let syn::ImplItem::Fn(method) = part {
                    let line = method.sig.ident.span().start().line;
                    self.methods.push((owner.clone(), line));
                }
            }
        }
        visit::visit_item_impl(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::SourceFile;

    fn types(files: &[(&str, &str)]) -> BTreeMap<String, Vec<Type>> {
        let files = files.iter().map(|(path, text)| SourceFile {
            path: (*path).to_string(),
            bytes: text.as_bytes().to_vec(),
        });
        by_crate(&Repository::of(files.collect(), None))
    }

    #[test]
    fn methods_of_all_inherent_blocks_count_and_those_of_traits_and_tests_do_not() {
        let types = types(&[
            (
                "crates/a/src/lib.rs",
                "struct S<T> { a: T, b: u8 }\nimpl<T> S<T> { fn f() {} }\n\
                 impl Clone for S<u8> { fn clone(&self) -> Self { todo!() } }\n\
                 #[cfg(test)]\nmod tests { struct Other; impl super::S<u8> { fn h() {} } }",
            ),
            ("crates/a/src/more.rs", "impl crate::S<u8> { fn g() {} }"),
        ]);
        let found = &types["a"];
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].fields, found[0].methods, found[0].size()),
            (2, 2, 4)
        );
    }
}
