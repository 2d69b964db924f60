//! Where a value is in its document: its line, and the keys that lead to it.
//!
//! Values carry no path, because profiles have 100,000 of them and few are wrong. An error searches the document
//! for the value instead.

use toml::de::{DeTable, DeValue};

/// A table or a value inside a document.
#[derive(Clone, Copy)]
pub(crate) enum Node<'d> {
    Table(&'d DeTable<'d>),
    Value(&'d DeValue<'d>),
}

/// The keys that lead from `root` to `node`, such as `drive[0].size`; empty for the root itself.
pub(crate) fn path(root: &DeTable<'_>, node: Node<'_>) -> String {
    let mut path = String::new();
    find_in_table(root, node, &mut path);
    path
}

/// The path of a key in the table at `path`.
pub(crate) fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

/// The number of the line in which the byte at `offset` stands, from 1.
pub(crate) fn line(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// Whether `node` is this table or in it; `path` then leads to it.
fn find_in_table(table: &DeTable<'_>, node: Node<'_>, path: &mut String) -> bool {
    if matches!(node, Node::Table(wanted) if std::ptr::eq(wanted, table)) {
        return true;
    }
    let length = path.len();
    table.iter().any(|(key, value)| {
        if length > 0 {
            path.push('.');
        }
        path.push_str(key.get_ref());
        let is_found = find_in_value(value.get_ref(), node, path);
        if !is_found {
            path.truncate(length);
        }
        is_found
    })
}

fn find_in_value(value: &DeValue<'_>, node: Node<'_>, path: &mut String) -> bool {
    if matches!(node, Node::Value(wanted) if std::ptr::eq(wanted, value)) {
        return true;
    }
    match value {
        DeValue::Table(table) => find_in_table(table, node, path),
        DeValue::Array(values) => {
            let length = path.len();
            values.iter().enumerate().any(|(index, value)| {
                path.push_str(&format!("[{index}]"));
                let is_found = find_in_value(value.get_ref(), node, path);
                if !is_found {
                    path.truncate(length);
                }
                is_found
            })
        }
        _ => false,
    }
}
