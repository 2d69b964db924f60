//! The archive of the initial file system: cpio in the "newc" format (the kernel's documentation,
//! driver-api/early-userspace/buffer-format).
//!
//! ```text
//!   "070701" and 13 numbers of 8 hex digits | name, 0 | pad to 4 | contents | pad to 4 | next ...
//! ```

use std::collections::BTreeSet;

/// A growing archive.
pub struct Archive {
    bytes: Vec<u8>,
    /// The folders in the archive.
    folders: BTreeSet<String>,
    entries: u32,
}

/// The kind of a file, in the upper bits of its mode (inode(7)).
const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTERS: u32 = 0o020_000;

impl Archive {
    /// An empty archive.
    pub fn new() -> Self {
        Archive {
            bytes: Vec::new(),
            folders: BTreeSet::new(),
            entries: 0,
        }
    }

    /// Adds a folder and its parents. The path has no leading slash.
    pub fn folder(&mut self, path: &str) {
        if path.is_empty() || self.folders.contains(path) {
            return;
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        self.folders.insert(path.to_string());
        self.entry(path, FOLDER | 0o755, (0, 0), &[]);
    }

    /// Adds a file that every user may run.
    pub fn file(&mut self, path: &str, contents: &[u8]) {
        self.folder_of(path);
        self.entry(path, REGULAR | 0o755, (0, 0), contents);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.folder_of(path);
        self.entry(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds the node of a character device.
    pub fn characters(&mut self, path: &str, major: u32, minor: u32) {
        self.folder_of(path);
        self.entry(path, CHARACTERS | 0o600, (major, minor), &[]);
    }

    /// The bytes of the complete archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn folder_of(&mut self, path: &str) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let length = u32::try_from(contents.len()).expect("a file of less than 4 GiB");
        let name_length = u32::try_from(name.len() + 1).expect("a short name");
        self.bytes.extend_from_slice(b"070701");
        // Inode, mode, user, group, links, time, length, device of the file system, device of the
        // node, length of the name, and a sum that this format leaves at zero.
        let numbers = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            length,
            0,
            0,
            device.0,
            device.1,
            name_length,
            0,
        ];
        for number in numbers {
            self.bytes
                .extend_from_slice(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        let length = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(length, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_head_name_and_contents_each_padded_to_four() {
        let mut archive = Archive::new();
        archive.file("a/bc", b"hello");
        let bytes = archive.finish();
        let text: Vec<String> = bytes
            .chunks(4)
            .map(|four| String::from_utf8_lossy(four).into_owned())
            .collect();
        // The folder, the file and the end: heads of 110 bytes, names and contents.
        assert_eq!(bytes.len(), (110 + 2) + (110 + 6 + 8) + (110 + 11 + 3));
        let text = text.concat().replace('\0', ".");
        assert!(text.contains("a/bc..hello...070701"));
        assert!(text.ends_with("TRAILER!!!...."));
    }

    #[test]
    fn folders_are_made_once_and_before_what_is_in_them() {
        let mut archive = Archive::new();
        archive.file("x/y/one", b"1");
        archive.file("x/y/two", b"2");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let at = |name: &str| text.find(name).expect("in the archive");
        assert_eq!(text.matches("070701").count(), 5);
        assert!(at("x/y\0") < at("x/y/one\0"));
        assert!(at("x/y/one\0") < at("x/y/two\0"));
    }
}
