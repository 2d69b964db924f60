//! The origins of a load's values: lines of its file, or command-line flags.

use std::collections::BTreeMap;

use document::{DocumentError, Lines};

/// The lines of a load's keys, and the flags that replace them. Empty by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ValueOrigins {
    lines: Lines,
    flags: BTreeMap<&'static str, &'static str>,
}

impl From<Lines> for ValueOrigins {
    fn from(lines: Lines) -> Self {
        ValueOrigins {
            lines,
            flags: BTreeMap::new(),
        }
    }
}

impl ValueOrigins {
    /// Errors about `section` (or one key of it) name this flag from now on.
    pub(crate) fn replace_by_flag(&mut self, section: &'static str, flag: &'static str) {
        self.flags.insert(section, flag);
    }

    /// An error about a key such as `size.kib`.
    pub(crate) fn error(&self, key: &str, problem: impl AsRef<str>) -> DocumentError {
        let section = key.split('.').next().unwrap_or(key);
        let flag = self.flags.get(key).or_else(|| self.flags.get(section));
        match flag {
            Some(flag) => DocumentError::new(COMMAND_LINE, None, flag, problem.as_ref()),
            None => self.lines.error(key, problem.as_ref()),
        }
    }
}

/// The file name in errors about flags.
pub(super) const COMMAND_LINE: &str = "command line";
