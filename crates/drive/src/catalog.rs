//! The shipped drives: every file of `drives/`, built in, and compressed by the build script.

use std::sync::OnceLock;

use document::{DocumentError, most_similar};

use crate::profile::Profile;

/// A shipped drive.
#[derive(Debug)]
pub struct CatalogEntry {
    /// The name.
    pub name: &'static str,
    /// The profile file as a stream of DEFLATE (RFC 1951).
    compressed: &'static [u8],
    /// What it holds, once somebody has asked.
    text: OnceLock<String>,
}

impl CatalogEntry {
    /// The text of the profile file.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| {
            let bytes = miniz_oxide::inflate::decompress_to_vec(self.compressed);
            let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            text.expect("the build script has compressed it")
        })
    }

    /// Parses the profile.
    ///
    /// # Errors
    /// If the file is not a profile, which the tests exclude.
    pub fn profile(&self) -> Result<Profile, DocumentError> {
        Profile::parse(self.text(), &format!("drives/{}.toml", self.name))
    }
}

/// No shipped drive has the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no drive is called \"{name}\"{}", near.map_or_else(
    || String::from(": `headtime drives` lists them all"),
    |near| format!(": did you mean \"{near}\"?")
))]
pub struct UnknownDrive {
    /// The name.
    pub name: String,
    /// The drive with the most similar name, if one is similar.
    pub near: Option<&'static str>,
}

/// Finds a shipped drive by its name.
///
/// # Errors
/// If no drive has the name; the error suggests a similar one.
pub fn find(name: &str) -> Result<&'static CatalogEntry, UnknownDrive> {
    ALL.iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| UnknownDrive {
            name: name.to_owned(),
            near: ALL
                .iter()
                .map(|entry| entry.name)
                .find(|known| name.len() >= 3 && known.contains(name))
                .or_else(|| most_similar(name, ALL.iter().map(|entry| entry.name))),
        })
}

/// An entry made from a file.
macro_rules! drive {
    ($name:literal) => {
        CatalogEntry {
            name: $name,
            compressed: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".toml.deflate")),
            text: OnceLock::new(),
        }
    };
}

/// All shipped drives, in the order of their names. A static: each crate that names a constant would have a copy of the
/// texts.
pub static ALL: &[CatalogEntry] = &SHIPPED;

static SHIPPED: [CatalogEntry; 22] = [
    drive!("dec-rz26"),
    drive!("hitachi-travelstar-80gn"),
    drive!("hp-c2247a"),
    drive!("hp-c2249a"),
    drive!("hp-c2490a"),
    drive!("hp-c3323a"),
    drive!("ibm-ultrastar-18es"),
    drive!("maxtor-atlas-10k5-300"),
    drive!("modern-18tb-dual"),
    drive!("modern-20tb"),
    drive!("quantum-atlas-10k"),
    drive!("quantum-atlas-3"),
    drive!("seagate-barracuda-4lp"),
    drive!("seagate-cheetah-15k5"),
    drive!("seagate-cheetah-18lp"),
    drive!("seagate-cheetah-4lp"),
    drive!("seagate-cheetah-9lp"),
    drive!("seagate-elite-st41601n"),
    drive!("seagate-st318437lw"),
    drive!("toshiba-x300-5tb"),
    drive!("wd-4tb-test"),
    drive!("wd-caviar-wd400bb"),
];
