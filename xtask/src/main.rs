//! The repository's own tools: `cargo xtask import-drives [--check]`.

use std::process::ExitCode;

mod import_drives;

#[allow(clippy::print_stdout, clippy::print_stderr)] // A command line tool talks to its user.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("import-drives") => import_drives::run(&arguments[1..]),
        _ => Err("usage: cargo xtask import-drives [--check]".to_owned()),
    };
    match result {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
