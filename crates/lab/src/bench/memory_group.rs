//! Control groups that bound the page cache of a program.
//!
//! The kernel charges a page of its cache to the group of the process that reads it first. A bound
//! on the group's memory is therefore a bound on the page cache of its files, beside the memory of
//! the program itself. Both interfaces of the kernel are known: the unified hierarchy
//! (`Documentation/admin-guide/cgroup-v2.rst`) and the older one (`cgroup-v1/memory.rst`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Failure;

/// A control group. Dropping it removes the group.
pub(super) struct MemoryGroup {
    folder: PathBuf,
    files: &'static GroupFiles,
}

/// The names of a hierarchy's files.
#[derive(Debug, PartialEq, Eq)]
struct GroupFiles {
    /// Below which folder groups are made.
    root: &'static str,
    /// The file that exists there if the hierarchy has the memory controller.
    witness: &'static str,
    limit: &'static str,
    peak: &'static str,
    /// The key of the page cache in `memory.stat`.
    page_cache: &'static str,
}

const UNIFIED: GroupFiles = GroupFiles {
    root: "/sys/fs/cgroup",
    witness: "cgroup.subtree_control",
    limit: "memory.max",
    peak: "memory.peak",
    page_cache: "file",
};

const OLDER: GroupFiles = GroupFiles {
    root: "/sys/fs/cgroup/memory",
    witness: "memory.limit_in_bytes",
    limit: "memory.limit_in_bytes",
    peak: "memory.max_usage_in_bytes",
    page_cache: "cache",
};

/// The number of groups of this process so far: their names differ.
static MADE: AtomicU32 = AtomicU32::new(0);

impl MemoryGroup {
    /// Makes a group without processes and without a bound.
    ///
    /// # Errors
    /// If the kernel has no memory controller, or this is not root.
    pub(super) fn create() -> Result<Self, Failure> {
        let files = hierarchy()?;
        if *files == UNIFIED {
            let control = Path::new(files.root).join(files.witness);
            fs::write(&control, "+memory").map_err(|error| refused(&control, &error))?;
        }
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("headtime-bench-{}-{number}", std::process::id());
        let folder = Path::new(files.root).join(name);
        fs::create_dir(&folder).map_err(|error| refused(&folder, &error))?;
        Ok(MemoryGroup { folder, files })
    }

    /// Bounds all memory of the group, in bytes.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn limit(&self, bytes: u64) -> Result<(), Failure> {
        let path = self.folder.join(self.files.limit);
        fs::write(&path, bytes.to_string()).map_err(|error| refused(&path, &error))
    }

    /// A program that runs in the group. Its arguments are added by the caller.
    pub(super) fn program(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.folder.join("cgroup.procs"))
            .arg(program);
        command
    }

    /// The page cache that is charged to the group, in bytes.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(super) fn page_cache(&self) -> Result<u64, Failure> {
        let path = self.folder.join("memory.stat");
        let text = fs::read_to_string(&path).map_err(|error| refused(&path, &error))?;
        stated(&text, self.files.page_cache).ok_or_else(|| {
            Failure::failed(format!(
                "{}: expected a line \"{} BYTES\"",
                path.display(),
                self.files.page_cache
            ))
        })
    }

    /// The most memory that the group had, in bytes.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(super) fn peak(&self) -> Result<u64, Failure> {
        let path = self.folder.join(self.files.peak);
        let text = fs::read_to_string(&path).map_err(|error| refused(&path, &error))?;
        text.trim()
            .parse()
            .map_err(|_| Failure::failed(format!("{}: expected bytes", path.display())))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The hierarchy that has the memory controller.
fn hierarchy() -> Result<&'static GroupFiles, Failure> {
    let all = [&OLDER, &UNIFIED].into_iter();
    let mut there = all.filter(|files| Path::new(files.root).join(files.witness).is_file());
    there.next().ok_or_else(|| {
        Failure::failed(
            "the kernel has no control groups for memory: expected /sys/fs/cgroup (cgroups(7))",
        )
    })
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{}: {error}: expected root", path.display()))
}

/// The value of a key in the text of `memory.stat`.
fn stated(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .find(|(name, _)| *name == key)
        .and_then(|(_, value)| value.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_whole_word() {
        let text = "cached 7\ncache 4096\nrss 12\n";
        assert_eq!(stated(text, "cache"), Some(4096));
        assert_eq!(stated(text, "file"), None);
        assert_eq!(stated("cache many\n", "cache"), None);
    }
}
