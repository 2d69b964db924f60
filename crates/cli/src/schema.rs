//! `headtime schema`: JSON Schemas of what `--json` prints.
//!
//! The files of the reference are part of the program. A test judges the output of the commands by them.

use clap::Args;
use serde::Deserialize;

use crate::output::{Exit, print};

/// The arguments of `headtime schema`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SchemaArgs {
    /// The schema to print [default: a list of all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  headtime schema
      all schemas with their versions and commands
  headtime schema ctl-status > ctl-status.schema.json
  headtime ctl status --json > status.json; python3 -m jsonschema -i status.json ctl-status.schema.json

The version of a schema grows when a key is removed, renamed or gets another meaning. New keys may come
without a new version.";

/// The name and the text of a schema.
type Schema = (&'static str, &'static str);

/// Embeds schemas of the reference by their names.
macro_rules! schemas {
    ($($name:literal),* $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../../docs/reference/schemas/", $name, ".json")),
        )),*]
    };
}

/// All schemas, by name.
pub const ALL: &[Schema] = schemas![
    "adopt",
    "backup",
    "bench-adopt",
    "bench-caches",
    "bench-care",
    "bench-classify",
    "bench-densities",
    "bench-fail-slow",
    "bench-impact",
    "bench-jitter",
    "bench-partial",
    "bench-peers",
    "bench-players",
    "bench-preemption",
    "bench-priorities",
    "bench-schedulers",
    "bench-serve",
    "bench-sets",
    "bench-simulate",
    "bench-soak",
    "bench-streams",
    "cache",
    "ctl-bitmap-list",
    "ctl-checkpoint-create",
    "ctl-checkpoint-list",
    "ctl-drain",
    "ctl-profile",
    "ctl-reload",
    "ctl-status",
    "ctl-tasks",
    "demo",
    "doctor",
    "drives",
    "experiment",
    "paper",
    "play-record",
    "profile",
    "profile-behind",
    "profile-check",
    "restore",
    "scan",
    "scrub",
    "serve-check",
    "simulate",
    "simulate-cache",
    "streams",
    "streams-plan",
    "trace-stat",
    "validate",
    "why",
];

/// What the list has of a schema.
#[derive(Deserialize)]
struct SchemaHead {
    #[serde(rename = "$id")]
    id: String,
    title: String,
}

/// Prints a schema, or the list.
///
/// # Errors
/// If there is no such schema, or the output is closed.
pub fn run(arguments: &SchemaArgs) -> Result<(), Exit> {
    let Some(name) = &arguments.name else {
        return print(&list()?);
    };
    match ALL.iter().find(|(known, _)| known == name) {
        Some((_, text)) => print(text),
        None => Err(Exit::input(format!(
            "{name}: expected a name of the list: `headtime schema` prints it"
        ))),
    }
}

/// The names with versions and commands.
fn list() -> Result<String, Exit> {
    let mut text = format!("{:<20} {:>7}  {}\n", "schema", "version", "output of");
    for (name, schema) in ALL {
        let head: SchemaHead = serde_json::from_str(schema).map_err(Exit::failed)?;
        let version = head.id.rsplit(':').next().unwrap_or_default();
        text += &format!("{name:<20} {version:>7}  {}\n", head.title);
    }
    Ok(text)
}
