//! Classes of single operations of classified exports.

use block::Class;

use super::operation::Operation;
use super::{Export, Volumes};
use crate::classify::Watch;
use crate::classify::priority::Rule;

impl Volumes {
    /// The class of an operation that has just arrived, unless it has that of its export: of an offset and a
    /// length in bytes.
    pub(crate) fn classify(&mut self, export: usize, bytes: (u64, u64)) -> Option<Class> {
        let own = self.operations.exports.get(export)?.class;
        self.classifiers.class_of(export, bytes, own)
    }

    /// The same operation with its class.
    pub(crate) fn classified(&mut self, operation: Operation) -> Operation {
        let bytes = (operation.offset, operation.length);
        Operation {
            class: self.classify(operation.export, bytes),
            ..operation
        }
    }

    /// Adds an export. The answer is its index.
    pub(crate) fn add_export(&mut self, export: Export) -> usize {
        let name = export.name.clone();
        let index = self.operations.exports.add(export);
        self.classifiers.note_export(&name, index);
        index
    }

    /// Classifies the requests of an export.
    pub(crate) fn classify_export(&mut self, name: String, rules: Vec<Rule>) {
        let exports = self.operations.exports.all().iter().enumerate();
        let same = exports.filter(|(_, export)| export.name == name);
        let indices = same.map(|(index, _)| index).collect();
        self.classifiers.add(name, indices, rules);
    }

    /// Watches these devices over a classified export. The answer is what was watched before.
    #[must_use]
    pub(crate) fn watch(&mut self, export: &str, watch: Watch) -> Watch {
        self.classifiers.watch(export, watch)
    }
}
