//! The reference page of the configuration has every key that the parser knows.

use std::path::PathBuf;

use server::config::{Config, DEFAULT, Places};

/// The tables of a configuration: the heading of its keys on the reference page, the table, and the one
/// in the default before which it can stand.
const TABLES: [[&str; 3]; 16] = [
    ["Configuration", "", "[[drive]]"],
    ["`[[drive]]`", "[[drive]]", "[[drive]]"],
    ["`[drive.back_end]`", "[drive.back_end]", "[drive.back_end]"],
    ["`[[drive.volume]]`", "[[drive.volume]]", "[[drive.volume]]"],
    [
        "`[drive.volume.cache]`",
        "[drive.volume.cache]",
        "[[drive.export]]",
    ],
    ["`[[drive.export]]`", "[[drive.export]]", "[[drive.export]]"],
    [
        "`[drive.preemption]`",
        "[drive.preemption]",
        "[drive.back_end]",
    ],
    ["`[drive.streams]`", "[drive.streams]", "[drive.back_end]"],
    [
        "`[drive.streams]`",
        "[[drive.streams.rule]]",
        "[drive.back_end]",
    ],
    ["`[[nbd]]`", "[[nbd]]", "[[nbd]]"],
    ["`[[nbd]]`", "[nbd.tls]", "[control]"],
    ["Other tables", "[fuse]", "[control]"],
    ["Other tables", "[ublk]", "[control]"],
    ["Other tables", "[control]", "[control]"],
    ["Other tables", "[log]", "[log]"],
    ["Other tables", "[limits]", "[limits]"],
];

/// An unknown key of a table is refused with all keys that it may have: each is on the page.
#[test]
fn the_documentation_has_every_key_of_the_configuration() {
    let page = include_str!("../../../../docs/reference/configuration.md");
    for [heading, table, before] in TABLES {
        let next = match table == before {
            true => "",
            false => before,
        };
        let with_unknown = format!("\n{table}\nzzzz = 1\n{next}\n");
        let text = DEFAULT.replacen(&format!("\n{before}\n"), &with_unknown, 1);
        let places = Places {
            data: PathBuf::from("/data"),
            runtime: PathBuf::from("/run/h"),
            base: PathBuf::from("/etc/h"),
        };
        let error = Config::parse("c.toml", &text, &places).expect_err(table);
        let (_, known) = error.problem.split_once("expected one of ").expect(table);
        let (_, section) = page.split_once(&format!("# {heading}\n")).expect(heading);
        let section = match table {
            "" => section,
            _ => section.split("\n## ").next().unwrap_or_default(),
        };
        for key in known.split(", ") {
            let is_there =
                section.contains(&format!("`{key}`")) || section.contains(&format!("[{key}]"));
            assert!(is_there, "{heading}: no row of the key {key} of {table}");
        }
    }
}
