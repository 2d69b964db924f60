//! `headtime --help`: the commands under headings.

use clap::{Command, CommandFactory};

/// The headings of the help, and the commands under each, the most used first.
pub const GROUPS: &[(&str, &[&str])] = &[
    (
        "Serve and operate",
        &[
            "adopt", "serve", "doctor", "top", "ctl", "why", "streams", "play", "record", "scan",
            "scrub", "backup", "restore", "mirror", "emulate", "replay", "demo",
        ],
    ),
    (
        "Simulate",
        &["simulate", "experiment", "cache", "drives", "trace"],
    ),
    ("Measure", &["profile", "validate", "fit", "paper", "bench"]),
    ("Install", &["completions", "man-pages", "schema"]),
];

/// Returns the command line of a program, with its commands under headings.
pub fn grouped<Program: CommandFactory>() -> Command {
    let program = Program::command();
    let mut template = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, commands) in GROUPS {
        template.push_str(&format!("\n{heading}:\n"));
        for name in *commands {
            if let Some(command) = program.find_subcommand(name) {
                let about = command.get_about().map(ToString::to_string);
                template.push_str(&entry(name, &about.unwrap_or_default()));
            }
        }
    }
    template.push_str("\nOptions:\n{options}\n\n`headtime help COMMAND` says more of a command.");
    program.help_template(template)
}

/// A command and its description, in lines of at most [`WIDTH`] characters.
fn entry(name: &str, about: &str) -> String {
    let mut text = String::new();
    let mut line = format!("  {name:INDENT$}");
    for word in about.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(INDENT + 2);
        }
        line.push_str(word);
        line.push(' ');
    }
    text + line.trim_end() + "\n"
}

/// The width of the names' column: the longest name and two blanks.
const INDENT: usize = 13;

/// The width of all help texts.
const WIDTH: usize = 100;
