//! The repository as the checks see it: its files with their contents, and the shared material
//! that must not be among them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::Source;

/// One file that git tracks, or would.
pub struct SourceFile {
    /// From the root of the repository, with slashes.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

impl SourceFile {
    /// The contents as text, if they are text.
    pub fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.bytes).ok()?;
        (!text.contains('\0')).then_some(text)
    }

    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The part of the name after its last dot; empty without one.
    pub fn extension(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, end)| end)
    }
}

/// Everything that is checked.
pub struct Repository {
    /// All files, by path.
    pub files: Vec<SourceFile>,
    /// The Rust sources among them, by path; those that are not Rust with the place of the error.
    pub sources: BTreeMap<String, Result<Source, (usize, String)>>,
    /// The material that is only lent, if it is on this machine.
    pub shared: Option<PathBuf>,
}

impl Repository {
    /// The repository whose root is `root`.
    ///
    /// # Errors
    /// If git cannot list its files, or one of them cannot be read.
    pub fn read(root: &Path) -> Result<Self, String> {
        let listing = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .map_err(|error| format!("git ls-files: {error}"))?;
        if !listing.status.success() {
            let reason = String::from_utf8_lossy(&listing.stderr);
            return Err(format!("git ls-files in {}: {reason}", root.display()));
        }
        let listing = String::from_utf8(listing.stdout)
            .map_err(|_| String::from("git ls-files: a path that is not UTF-8"))?;
        let mut files = Vec::new();
        for path in listing.split_terminator('\0') {
            let place = root.join(path);
            // Deleted but not yet committed, or a link to what is checked under its own name.
            if !place.symlink_metadata().is_ok_and(|there| there.is_file()) {
                continue;
            }
            let bytes = std::fs::read(&place).map_err(|error| format!("{path}: {error}"))?;
            files.push(SourceFile {
                path: path.to_string(),
                bytes,
            });
        }
        let shared = shared(root);
        Ok(Self::of(files, shared.is_dir().then_some(shared)))
    }

    /// A repository of these files.
    pub fn of(mut files: Vec<SourceFile>, shared: Option<PathBuf>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        let sources = files
            .iter()
            .filter(|file| file.extension() == "rs")
            .filter_map(|file| Some((file.path.clone(), Source::parse(&file.path, file.text()?))))
            .collect();
        Repository {
            files,
            sources,
            shared,
        }
    }

    /// The syntax of the Rust source at `path`; nothing if it is none.
    pub fn syntax(&self, path: &str) -> Option<syn::File> {
        let file = self
            .files
            .binary_search_by(|file| file.path.as_str().cmp(path));
        syn::parse_file(self.files[file.ok()?].text()?).ok()
    }

    /// The sources that are Rust, by path.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources
            .iter()
            .filter_map(|(path, source)| Some((path.as_str(), source.as_ref().ok()?)))
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        let place = self
            .files
            .binary_search_by(|file| file.path.as_str().cmp(path));
        place.ok().map(|index| &self.files[index])
    }

    /// The manifests of the workspace's packages: `crates/*`, `bindings/*`, `xtask`.
    pub fn manifests(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| {
            let parts: Vec<&str> = file.path.split('/').collect();
            matches!(
                parts.as_slice(),
                ["crates" | "bindings", _, "Cargo.toml"] | ["xtask", "Cargo.toml"]
            )
        })
    }
}

/// Where the lent files would be: `HEADTIME_SHARED`, or `../shared`.
pub fn shared(root: &Path) -> PathBuf {
    std::env::var_os("HEADTIME_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from)
}

/// The root of the workspace: `cargo run` says where xtask is now, which need not be where it was
/// built.
pub fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask
        .parent()
        .expect("xtask lies in the workspace")
        .to_path_buf()
}

/// The cargo that runs this program, or the one in the path.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// The crate's folder under `crates/`, if the path lies in one.
pub fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}
