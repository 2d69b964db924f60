//! Tells the binary of which commit it was built.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=HEADTIME_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match std::env::var("HEADTIME_COMMIT").ok().or_else(commit) {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=HEADTIME_VERSION={version}");
    link_small();
}

/// A smaller binary: identical functions once, and relocations as a bitmap (glibc 2.36 reads it, that of Debian 12). Only
/// where Rust links with its own lld, which knows both.
fn link_small() {
    let is = |name, value| std::env::var(name).is_ok_and(|found| found == value);
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all,-z,pack-relative-relocs");
    }
}

/// The commit of the repository that the crate is in, if there are a repository and git.
fn commit() -> Option<String> {
    // The log of HEAD grows with each commit; HEAD changes with each checkout.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=10", "HEAD"])
}

/// What git prints, if it succeeds.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
