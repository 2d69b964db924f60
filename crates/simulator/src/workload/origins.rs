//! Where the values of a load came from: lines of its file, or flags that replaced some of them.

use std::collections::BTreeMap;

use document::{DocumentError, Lines};

/// The lines of a load's keys, and the flags in their place. By default nothing is known.
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
    /// From now on errors about `section` (or one key of it) name this flag.
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

/// The origin of values that came as flags.
pub(super) const COMMAND_LINE: &str = "command line";
