//! The kernel and its modules as `.ci/guest-kernel` unpacks them, and the loading order of modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;

/// The advice for a missing kernel.
const INSTALL: &str = "`make guest` fetches it";

/// A kernel and its modules.
pub struct Kernel {
    /// The image that QEMU boots.
    pub image: PathBuf,
    folder: PathBuf,
    /// The paths of the modules by name, with underscores.
    modules: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

/// A module of the kernel.
pub struct Module {
    /// The name, with underscores.
    pub name: String,
    /// The uncompressed object file.
    pub contents: Vec<u8>,
}

impl Kernel {
    /// Finds the kernel in `folder`: `boot/vmlinuz-*` and `lib/modules/*`, as in Debian's packages.
    ///
    /// # Errors
    /// If `folder` has no kernel.
    pub fn find(folder: &Path) -> Result<Self, GuestError> {
        let missing = || GuestError::Missing {
            what: format!("a kernel in {}", folder.display()),
            install: INSTALL,
        };
        let image = fs::read_dir(folder.join("boot"))
            .map_err(|_| missing())?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| name_of(path).starts_with("vmlinuz-"))
            .ok_or_else(missing)?;
        let version = name_of(&image).trim_start_matches("vmlinuz-").to_string();
        let lib = folder.join("lib/modules").join(version);
        let listed = lib.join("modules.builtin");
        let built_in = fs::read_to_string(&listed).map_err(GuestError::file(&listed))?;
        let mut modules = BTreeMap::new();
        collect(&lib.join("kernel"), &mut modules)?;
        Ok(Kernel {
            image,
            folder: lib,
            modules,
            built_in: built_in
                .lines()
                .map(|line| module_name(line.as_ref()))
                .collect(),
        })
    }

    /// The modules of these names and their dependencies, each after its dependencies. Built-in modules
    /// are left out.
    ///
    /// # Errors
    /// If there is no such module.
    pub fn in_order<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<Module>, GuestError> {
        let mut loaded = Vec::new();
        let mut seen = BTreeSet::new();
        for name in names {
            self.visit(name, &mut seen, &mut loaded)?;
        }
        Ok(loaded)
    }

    fn visit(
        &self,
        name: &str,
        seen: &mut BTreeSet<String>,
        loaded: &mut Vec<Module>,
    ) -> Result<(), GuestError> {
        let name = name.replace('-', "_");
        if self.built_in.contains(&name) || !seen.insert(name.clone()) {
            return Ok(());
        }
        let path = self
            .modules
            .get(&name)
            .ok_or_else(|| GuestError::NoModule {
                name: name.clone(),
                folder: self.folder.clone(),
            })?;
        let contents = unpacked(path)?;
        for needed in needs(&contents) {
            self.visit(&needed, seen, loaded)?;
        }
        loaded.push(Module { name, contents });
        Ok(())
    }
}

/// Collects every `*.ko*` below the folder.
fn collect(folder: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<(), GuestError> {
    for entry in fs::read_dir(folder).map_err(GuestError::file(folder))? {
        let path = entry.map_err(GuestError::file(folder))?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if name_of(&path).contains(".ko") {
            found.insert(module_name(&path), path);
        }
    }
    Ok(())
}

/// The last part of the path.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// `kernel/drivers/md/dm-log.ko.xz` is called `dm_log`.
fn module_name(path: &Path) -> String {
    let name = name_of(path);
    let stem = name.split(".ko").next().unwrap_or_default();
    stem.replace('-', "_")
}

/// The module's uncompressed object file. Debian compresses modules.
fn unpacked(path: &Path) -> Result<Vec<u8>, GuestError> {
    if path.extension().is_none_or(|extension| extension != "xz") {
        return fs::read(path).map_err(GuestError::file(path));
    }
    let output = Command::new("xz")
        .args(["--decompress", "--stdout"])
        .arg(path)
        .output()
        .map_err(|_| GuestError::Missing {
            what: String::from("the program xz"),
            install: "apt-get install xz-utils",
        })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let reason = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(GuestError::file(path)(std::io::Error::other(reason)))
}

/// The dependencies of a module: its section `.modinfo` has a string `depends=a,b`.
fn needs(contents: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(start) = contents.windows(KEY.len()).position(|part| part == KEY) else {
        return Vec::new();
    };
    let value = contents[start + KEY.len()..].split(|&byte| byte == 0);
    let value = value.into_iter().next().unwrap_or_default();
    String::from_utf8_lossy(value)
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with these modules, each with the value of its `depends`.
    fn kernel(folder: &Path, modules: &[(&str, &str)]) -> Kernel {
        let lib = folder.join("lib/modules/6.0");
        fs::create_dir_all(lib.join("kernel/drivers")).expect("a folder");
        fs::create_dir_all(folder.join("boot")).expect("a folder");
        fs::write(folder.join("boot/vmlinuz-6.0"), "").expect("a file");
        fs::write(lib.join("modules.builtin"), "kernel/fs/ext4/ext4.ko\n").expect("a file");
        for (name, needs) in modules {
            let text = format!("ELF\0license=GPL\0depends={needs}\0retpoline=Y\0");
            let path = lib.join("kernel/drivers").join(format!("{name}.ko"));
            fs::write(path, text).expect("a file");
        }
        Kernel::find(folder).expect("a kernel")
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it_and_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let modules = [
            ("dm-log", "dm-mod"),
            ("dm-mod", ""),
            ("sd_mod", "dm-log,dm-mod"),
        ];
        let kernel = kernel(folder.path(), &modules);
        let order = kernel.in_order(["sd-mod", "dm-mod", "ext4"].into_iter());
        let order = order.expect("all there");
        let order: Vec<&str> = order.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(order, ["dm_mod", "dm_log", "sd_mod"]);
    }

    #[test]
    fn a_module_that_is_nowhere_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let kernel = kernel(folder.path(), &[("a", "b")]);
        let error = kernel.in_order(["a"].into_iter()).err().expect("no `b`");
        assert!(error.to_string().starts_with("no module `b` in "));
    }

    #[test]
    fn a_kernel_that_is_not_there_says_how_to_get_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = Kernel::find(folder.path()).err().expect("no kernel");
        assert!(error.to_string().contains("make guest"), "{error}");
    }
}
