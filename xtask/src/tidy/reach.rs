//! What a crate may reach for. Below `server` and `lab` nothing has a clock, threads, sockets or
//! `unsafe`, and nothing depends on the order of a hash: the same inputs at the same moments give
//! the same outputs on every machine.

use super::{Check, Violation};
use crate::repository::{Repository, crate_of};
use crate::source::Place;

/// The check.
pub const CHECK: Check = Check {
    rule: "reach",
    about: "no clock, thread, socket, unsafe, hash order below server and lab; files only where listed",
    run,
};

/// Everything that runs in virtual time and in real time alike.
const CORE: &[&str] = &[
    "block",
    "drive",
    "profiler",
    "scheduler",
    "cache",
    "stream",
    "engine",
];

/// The crate that runs the core in virtual time.
const SIMULATOR: &[&str] = &["simulator"];

/// Whether tests and benchmarks are meant, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BanScope {
    /// Tests may: they read golden tables, and count with whatever is at hand.
    CodeOnly,
    /// Tests may not either.
    TestsToo,
}

/// One thing that some crates may not mention.
struct Ban {
    /// The path, and everything below it.
    path: &'static str,
    /// The folders under `crates/` that may not.
    crates: &'static [&'static [&'static str]],
    /// Whether their tests may.
    extent: BanScope,
    /// What to use.
    instead: &'static str,
}

/// Every ban.
const BANS: &[Ban] = &[
    Ban {
        path: "std::time",
        crates: &[CORE, SIMULATOR],
        extent: BanScope::TestsToo,
        instead: "`now: block::Instant` as an argument, and `block::Duration`",
    },
    Ban {
        path: "std::thread",
        crates: &[CORE, SIMULATOR],
        extent: BanScope::TestsToo,
        instead: "a state machine that its owner drives; threads belong to server, lab and cli",
    },
    Ban {
        path: "rayon",
        crates: &[CORE, SIMULATOR],
        extent: BanScope::TestsToo,
        instead: "independent runs that the lab spreads over the cores",
    },
    Ban {
        path: "std::net",
        crates: &[CORE, SIMULATOR],
        extent: BanScope::TestsToo,
        instead: "descriptors; sockets belong to server",
    },
    Ban {
        path: "unsafe",
        crates: &[CORE, SIMULATOR],
        extent: BanScope::TestsToo,
        instead: "safe code, or move it to server",
    },
    Ban {
        path: "std::fs",
        crates: &[CORE, SIMULATOR],
        extent: BanScope::CodeOnly,
        instead: "text or a reader as the argument; opening files belongs to the caller",
    },
    Ban {
        path: "HashMap",
        crates: &[CORE, SIMULATOR],
        extent: BanScope::CodeOnly,
        instead: "`BTreeMap` or a vector with an index: their order is the same in every run",
    },
    Ban {
        path: "HashSet",
        crates: &[CORE, SIMULATOR],
        extent: BanScope::CodeOnly,
        instead: "`BTreeSet` or a sorted vector: their order is the same in every run",
    },
];

/// Files that may mention one of them all the same: (beginning of the path, what, reason).
const EXCEPT: &[(&str, &str, &str)] = &[
    (
        "crates/drive/build.rs",
        "std::fs",
        "it runs while the crate is compiled, and compresses the files of the shipped drives",
    ),
    (
        "crates/simulator/src/trace",
        "std::fs",
        "a trace is read from a file as it is replayed, not held in memory",
    ),
    (
        "crates/simulator/src/report",
        "std::fs",
        "a report with its plots is a folder of files",
    ),
];

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in repository.rust() {
        let Some(folder) = crate_of(path) else {
            continue;
        };
        for mention in &source.mentions {
            for ban in BANS {
                let place = source.place(mention.line);
                let meant = place == Place::Code
                    || (place == Place::Tests && ban.extent == BanScope::TestsToo);
                if meant
                    && ban.crates.iter().any(|crates| crates.contains(&folder))
                    && is_below(&mention.path, ban.path)
                    && !is_excepted(path, ban.path)
                {
                    let message = format!("`{}` in {folder} (use {})", mention.path, ban.instead);
                    found.push(Violation::at(path, mention.line, message));
                }
            }
        }
    }
    found.dedup_by(|a, b| (&a.path, a.line) == (&b.path, b.line));
    found
}

/// Whether `path` is the banned one or lies below it. A ban of one word is of that word in any
/// place, also at the end of another (`FxHashMap`), because its origin does not matter.
fn is_below(path: &str, banned: &str) -> bool {
    if banned.contains("::") {
        let path = path.replacen("core::", "std::", usize::from(path.starts_with("core::")));
        path == banned
            || path
                .strip_prefix(banned)
                .is_some_and(|rest| rest.starts_with("::"))
    } else {
        let is_type = banned.starts_with(char::is_uppercase);
        path.split("::")
            .any(|part| part == banned || (is_type && part.ends_with(banned)))
    }
}

/// Whether the file is listed for what is banned.
fn is_excepted(path: &str, banned: &str) -> bool {
    EXCEPT
        .iter()
        .any(|(start, what, _)| path.starts_with(start) && *what == banned)
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::{places, reported};

    #[test]
    fn each_banned_thing_is_reported_in_every_form() {
        for line in [
            "use std::time::Instant;",
            "use std::{fmt, time};",
            "use core::time::Duration;",
            "fn a() { std::thread::spawn(b); }",
            "fn a() { vec![std::fs::read(b)]; }",
            "use ::std::net::TcpStream;",
            "fn a() { unsafe { b() } }",
            "unsafe impl Send for A {}",
            "use std::collections::{BTreeMap, HashMap};",
            "type A = rustc_hash::FxHashSet<u8>;",
            "use rayon::prelude::*;",
        ] {
            let text = format!("//! A.\n{line}\n");
            let found = reported(&CHECK, &[("crates/engine/src/a.rs", &text)]);
            assert_eq!(found.len(), 1, "{line}: {found:?}");
            assert_eq!(found[0].0, "crates/engine/src/a.rs:2");
        }
    }

    #[test]
    fn tests_may_read_and_hash_but_not_ask_the_time() {
        let text =
            "//! A.\nuse std::fs;\nuse std::collections::HashMap;\nuse std::time::Instant;\n";
        assert_eq!(
            places(&CHECK, &[("crates/drive/tests/golden.rs", text)]),
            ["crates/drive/tests/golden.rs:4"]
        );
    }

    #[test]
    fn server_cli_benchmarks_and_listed_files_may() {
        let text = "//! A.\nuse std::fs;\n";
        let clock = "//! A.\nuse std::time::Instant;\n";
        let files = [
            ("crates/server/src/a.rs", clock),
            ("crates/cli/src/a.rs", clock),
            ("crates/drive/benches/a.rs", clock),
            ("crates/simulator/src/trace/spc.rs", text),
        ];
        assert_eq!(places(&CHECK, &files), [""; 0]);
    }

    #[test]
    fn words_in_comments_strings_and_longer_names_are_fine() {
        let text = "//! A HashMap, unsafe, std::time.\n/// std::fs\nfn unsafely() { \"std::net\"; }\nuse block::time::Instant;\n";
        assert_eq!(places(&CHECK, &[("crates/drive/src/a.rs", text)]), [""; 0]);
    }
}
