//! The shared libraries of a program, so that it runs in the guest.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;

/// The paths of the libraries and of the loader as `ldd` finds them. Static programs have none.
///
/// # Errors
/// If `ldd` does not run, or does not find one of them.
pub fn of(program: &Path) -> Result<Vec<PathBuf>, GuestError> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .map_err(|_| GuestError::Missing {
            what: String::from("the program ldd"),
            install: "apt-get install libc-bin",
        })?;
    let text = String::from_utf8_lossy(&output.stdout);
    paths(&text).map_err(|name| GuestError::Missing {
        what: format!("the library {name} of {}", program.display()),
        install: "install the program again",
    })
}

/// Parses the output of `ldd`:
///
/// ```text
///     linux-vdso.so.1 (0x00007ffd)              is the kernel's own
///     libc.so.6 => /lib/libc.so.6 (0x00007f)    a library, or "not found"
///     /lib64/ld-linux-x86-64.so.2 (0x00007f)    the loader
///     statically linked
/// ```
fn paths(text: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        let (name, place) = line.split_once(" => ").unwrap_or(("", line));
        if place.starts_with("not found") {
            return Err(name.to_string());
        }
        let path = place.split(" (").next().unwrap_or_default();
        if path.starts_with('/') {
            found.push(PathBuf::from(path));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_loader_are_found() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(paths(text), Ok(expected.map(PathBuf::from).to_vec()));
        assert_eq!(paths("\tstatically linked\n"), Ok(Vec::new()));
    }

    #[test]
    fn a_library_that_is_missing_is_named() {
        assert_eq!(
            paths("\tlibaio.so.1 => not found\n"),
            Err(String::from("libaio.so.1"))
        );
    }
}
