//! Exports of a drive in the configuration file, and the classification of their requests.

use std::path::PathBuf;

use document::{DocumentError, Field, Section, most_similar};

use super::fields::{NAME, PATH, access, class_of, name};
use super::{Access, Classify, Config, Export, ExportClass, Volume};
use crate::classify::priority::{IoClass, ProcessName, Rule};

/// The exports of a drive. `taken` are the names of those of earlier drives.
pub(super) fn exports(
    drive: &Section<'_>,
    volumes: &[Volume],
    taken: &[&str],
) -> Result<Vec<Export>, DocumentError> {
    let tables = drive.sections("export")?;
    if tables.is_empty() {
        let problem = "missing: expected at least one table [[drive.export]]";
        return Err(drive.missing("export", problem));
    }
    let mut exports: Vec<Export> = Vec::new();
    for table in &tables {
        table.only(&[
            "name",
            "volume",
            "class",
            "read_only",
            "connections",
            "description",
            "classify",
            "device",
            "rule",
        ])?;
        let names = exports.iter().map(|export| export.name.as_str());
        let name = name(
            &table.need("name", NAME)?,
            names.chain(taken.iter().copied()),
        )?;
        let volume = volume_of(table, volumes)?;
        let connections = table
            .get("connections")
            .map(|value| value.whole(1..=MOST_CONNECTIONS, "a whole number from 1 to 1024"));
        let description = table.get("description").map(|value| {
            let text = value.text(DESCRIPTION)?;
            match text.len() <= MOST_DESCRIPTION {
                true => Ok(text.to_owned()),
                false => Err(value.mismatch(DESCRIPTION)),
            }
        });
        exports.push(Export {
            name,
            volume: volume.name.clone(),
            class: class(table)?,
            access: match volume.access {
                Access::ReadOnly => Access::ReadOnly,
                Access::ReadWrite => access(table)?,
            },
            connections: connections.transpose()?.unwrap_or(DEFAULT_CONNECTIONS) as u32,
            description: description.transpose()?.unwrap_or_default(),
            classify: classify(table)?,
        });
    }
    Ok(exports)
}

/// Some of the exports, each once.
pub(super) fn some_of<'d>(
    list: impl IntoIterator<Item = Field<'d>>,
    known: &[&str],
) -> Result<Vec<String>, DocumentError> {
    let mut exports: Vec<String> = Vec::new();
    for value in list {
        let name = value.text("the name of an export")?;
        if exports.iter().any(|other| other == name) {
            return Err(value.mismatch("each export once"));
        }
        if !known.contains(&name) {
            let near = most_similar(name, known.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
            let all = known.join(", ");
            return Err(value.mismatch(format!("one of the exports {all}{near}")));
        }
        exports.push(name.to_owned());
    }
    Ok(exports)
}

/// A choice: as many as `nbdcopy` opens on a machine of 16 cores.
const DEFAULT_CONNECTIONS: u64 = 16;
/// A choice: the limit of all connections.
const MOST_CONNECTIONS: u64 = 1024;
/// A choice. The protocol has 4096 bytes.
const MOST_DESCRIPTION: usize = 1024;
const DESCRIPTION: &str = "a text of at most 1024 bytes";

fn volume_of<'v>(table: &Section<'_>, volumes: &'v [Volume]) -> Result<&'v Volume, DocumentError> {
    let field = table.need("volume", "the name of a volume of this drive")?;
    let name = field.text("the name of a volume of this drive")?;
    if let Some(volume) = volumes.iter().find(|volume| volume.name == name) {
        return Ok(volume);
    }
    let names: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    let near = most_similar(name, names.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
    let all = names.join(", ");
    Err(field.error(format!(
        "this drive has no volume \"{name}\": expected one of {all}{near}"
    )))
}

fn class(table: &Section<'_>) -> Result<ExportClass, DocumentError> {
    match table.get("class") {
        Some(field) => class_of(&field),
        None => Ok(ExportClass::Foreground),
    }
}

/// The classification of an export's requests.
fn classify(table: &Section<'_>) -> Result<Option<Classify>, DocumentError> {
    let Some(field) = table.get("classify") else {
        for key in ["device", "rule"] {
            if let Some(field) = table.get(key) {
                return Err(field.mismatch("classify = \"ioprio\" beside it"));
            }
        }
        return Ok(None);
    };
    field.choice(&[("ioprio", ())])?;
    let rules = table.sections("rule")?;
    let device = table.get("device").map(|value| device(&value));
    Ok(Some(Classify {
        device: device.transpose()?,
        rules: rules.iter().map(rule).collect::<Result<_, _>>()?,
    }))
}

/// The path of a block device, which need not be there yet.
fn device(value: &Field<'_>) -> Result<PathBuf, DocumentError> {
    let path = PathBuf::from(value.text(PATH)?);
    match path.is_absolute() {
        true => Ok(path),
        false => Err(value.mismatch("the absolute path of a block device, such as \"/dev/nbd0\"")),
    }
}

fn rule(table: &Section<'_>) -> Result<Rule, DocumentError> {
    table.only(&["ioprio", "process", "class"])?;
    let priority = table.get("ioprio").map(|value| priority(&value));
    let (priority, level) = priority.transpose()?.unzip();
    let process = table.get("process").map(|value| process(&value));
    let class = table.need("class", "the class of the requests")?;
    Ok(Rule {
        priority,
        level: level.flatten(),
        process: process.transpose()?,
        class: class_of(&class)?.of_requests(),
    })
}

/// A class of I/O priorities, and a level if the text has one.
fn priority(value: &Field<'_>) -> Result<(IoClass, Option<u8>), DocumentError> {
    let text = value.text(PRIORITIES)?;
    let (class, level) = match text.split_once('-') {
        Some((class, level)) => (class, Some(level)),
        None => (text, None),
    };
    let level = match level {
        None => Some(None),
        Some(level) => (0..=7).find(|number| level == number.to_string()).map(Some),
    };
    match (class, level) {
        ("none", Some(None)) => Ok((IoClass::None, None)),
        ("idle", Some(None)) => Ok((IoClass::Idle, None)),
        ("rt", Some(level)) => Ok((IoClass::RealTime, level)),
        ("be", Some(level)) => Ok((IoClass::BestEffort, level)),
        _ => Err(value.mismatch(PRIORITIES)),
    }
}

const PRIORITIES: &str = "\"none\", \"rt\", \"be\", \"idle\", or a level from \"be-0\" to \"be-7\" or \"rt-0\" to \"rt-7\"";

fn process(value: &Field<'_>) -> Result<ProcessName, DocumentError> {
    let text = value.text(PROCESS)?;
    let mut name = ProcessName::default();
    // The last byte is a zero.
    if text.is_empty() || text.len() >= name.len() || text.contains('\0') {
        return Err(value.mismatch(PROCESS));
    }
    name[..text.len()].copy_from_slice(text.as_bytes());
    Ok(name)
}

const PROCESS: &str = "the name of a process as `ps -o comm` has it: 1 to 15 bytes";

/// Checks that classified exports may have a block device over them.
pub(super) fn have_devices(root: &Section<'_>, config: &Config) -> Result<(), DocumentError> {
    let is_ublk = |name: &str| {
        let mut ublk = config.ublk.iter().flat_map(|ublk| &ublk.exports);
        ublk.any(|export| export == name)
    };
    for (table, drive) in root.sections("drive")?.iter().zip(&config.drives) {
        for (table, export) in table.sections("export")?.iter().zip(&drive.exports) {
            let (Some(classify), Some(field)) = (&export.classify, table.get("classify")) else {
                continue;
            };
            if classify.device.is_none() && config.fuse.is_none() && !is_ublk(&export.name) {
                return Err(field.mismatch(
                    "a block device over the export: [fuse] for a loop device, the export in [ublk], or device = \
                     \"/dev/nbd0\" for one of nbd-client",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use block::Class;

    use super::super::Places;
    use super::*;

    fn read(export: &str, rest: &str) -> Result<Option<Classify>, String> {
        let text = format!(
            "[[drive]]\nname = \"d\"\nback_end = {{ kind = \"memory\", size = \"1 GiB\" }}\n\
             [[drive.volume]]\nname = \"v\"\n[[drive.export]]\nname = \"e\"\nvolume = \"v\"\n{export}\n{rest}"
        );
        let places = Places {
            data: "/data".into(),
            runtime: "/run".into(),
            base: "/etc".into(),
        };
        let config = Config::parse("c.toml", &text, &places).map_err(|error| error.to_string())?;
        Ok(config.drives[0].exports[0].classify.clone())
    }

    const FUSE: &str = "[fuse]\nmount = \"m\"";

    #[test]
    fn an_export_is_classified_by_its_rules() {
        assert_eq!(read("", ""), Ok(None));
        let classify = |device: Option<&str>, rules| {
            Ok(Some(Classify {
                device: device.map(PathBuf::from),
                rules,
            }))
        };
        let key = "classify = \"ioprio\"";
        assert_eq!(read(key, FUSE), classify(None, Vec::new()));
        assert_eq!(
            read(key, "[ublk]\nexports = [\"e\"]"),
            classify(None, Vec::new())
        );
        let nbd = format!("{key}\ndevice = \"/dev/nbd0\"");
        assert_eq!(read(&nbd, ""), classify(Some("/dev/nbd0"), Vec::new()));
        let rules = "\n[[drive.export.rule]]\nioprio = \"be-7\"\nclass = \"best-effort-5\"\n\
                     [[drive.export.rule]]\nioprio = \"idle\"\nprocess = \"rsync\"\nclass = \"background\"\n\
                     [[drive.export.rule]]\nprocess = \"fifteen-letters\"\nclass = \"foreground\"";
        let rule = |priority, level, process, class| Rule {
            priority,
            level,
            process,
            class,
        };
        let expected = vec![
            rule(
                Some(IoClass::BestEffort),
                Some(7),
                None,
                Class::BestEffort(5),
            ),
            rule(
                Some(IoClass::Idle),
                None,
                Some(*b"rsync\0\0\0\0\0\0\0\0\0\0\0"),
                Class::Background,
            ),
            rule(
                None,
                None,
                Some(*b"fifteen-letters\0"),
                Class::BestEffort(0),
            ),
        ];
        assert_eq!(
            read(&format!("{key}{rules}"), FUSE),
            classify(None, expected)
        );
    }

    #[test]
    fn what_is_wrong_says_where_and_what_was_expected() {
        let rule = |text: &str| format!("classify = \"ioprio\"\n[[drive.export.rule]]\n{text}");
        for (export, rest, part) in [
            ("classify = \"nice\"".to_owned(), FUSE, "\"ioprio\""),
            ("classify = true".to_owned(), FUSE, "\"ioprio\""),
            (
                "classify = \"ioprio\"".to_owned(),
                "",
                "a block device over the export",
            ),
            (
                "device = \"/dev/nbd0\"".to_owned(),
                FUSE,
                "classify = \"ioprio\" beside it",
            ),
            (
                "[[drive.export.rule]]\nclass = \"background\"".to_owned(),
                FUSE,
                "classify = \"ioprio\" beside it",
            ),
            (
                "classify = \"ioprio\"\ndevice = \"nbd0\"".to_owned(),
                FUSE,
                "the absolute path of a block device",
            ),
            (rule("class = \"urgent\""), FUSE, "\"foreground\""),
            (rule("ioprio = \"idle\""), FUSE, "the class of the requests"),
            (
                rule("ioprio = \"idle-1\"\nclass = \"background\""),
                FUSE,
                PRIORITIES,
            ),
            (
                rule("ioprio = \"be-8\"\nclass = \"background\""),
                FUSE,
                PRIORITIES,
            ),
            (
                rule("ioprio = \"be-07\"\nclass = \"background\""),
                FUSE,
                PRIORITIES,
            ),
            (rule("ioprio = 3\nclass = \"background\""), FUSE, PRIORITIES),
            (
                rule("process = \"\"\nclass = \"background\""),
                FUSE,
                PROCESS,
            ),
            (
                rule("process = \"sixteen-letters.\"\nclass = \"background\""),
                FUSE,
                PROCESS,
            ),
            (
                rule("prozess = \"a\"\nclass = \"background\""),
                FUSE,
                "did you mean `process`?",
            ),
        ] {
            let problem = read(&export, rest).expect_err(&export);
            assert!(problem.contains(part), "{problem}");
            assert!(problem.starts_with("c.toml:"), "{problem}");
        }
    }
}
