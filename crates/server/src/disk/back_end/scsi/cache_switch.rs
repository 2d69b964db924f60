//! The cache switches of a drive, and where they are in its caching mode page.

use std::fmt;

use block::Switch;
use serde::{Deserialize, Serialize};

use super::Caching;

/// A cache switch of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheSwitch {
    /// Whether writes end before they are on the medium.
    WriteCache,
    /// Whether the drive reads on after a read.
    LookAhead,
}

impl CacheSwitch {
    /// All of them, in the order in which they are turned.
    pub const ALL: [CacheSwitch; 2] = [CacheSwitch::WriteCache, CacheSwitch::LookAhead];

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            CacheSwitch::WriteCache => "write cache",
            CacheSwitch::LookAhead => "look-ahead",
        }
    }

    /// The state in the mode page.
    pub(super) fn of(self, page: &Caching) -> Switch {
        match self {
            CacheSwitch::WriteCache => page.write_cache(),
            CacheSwitch::LookAhead => page.look_ahead(),
        }
    }

    /// The mode page with another state.
    pub(super) fn with(self, page: Caching, to: Switch) -> Caching {
        match self {
            CacheSwitch::WriteCache => page.with_write_cache(to),
            CacheSwitch::LookAhead => page.with_look_ahead(to),
        }
    }
}

impl fmt::Display for CacheSwitch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A state in messages.
pub fn word(switch: Switch) -> &'static str {
    match switch {
        Switch::On => "on",
        Switch::Off => "off",
    }
}
