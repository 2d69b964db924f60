//! Parses load files.

use block::Class;
use document::quantity::Unit;
use document::{Document, DocumentError, Section};

use super::{
    Arrivals, LARGEST_BYTES, LARGEST_COUNT, Placement, SizeOption, Sizes, SmallFiles, Spread,
    Workload, class,
};

/// The keys above all tables.
pub(super) struct Heading {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) seed: u64,
}

impl Heading {
    pub(super) fn read(root: &Section<'_>) -> Result<Self, DocumentError> {
        Ok(Heading {
            name: root.text("name", "the name of the load")?.to_owned(),
            summary: match root.has("summary") {
                true => root.text("summary", "one sentence")?.to_owned(),
                false => String::new(),
            },
            seed: match root.has("seed") {
                true => root.whole("seed", "a whole number from 0")?,
                false => 1,
            },
        })
    }
}

impl Workload {
    /// Parses a load; `file` is the name for errors.
    ///
    /// # Errors
    /// If it is not TOML, a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(file: &str, text: &str) -> Result<Workload, DocumentError> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        root.only(&[
            "name",
            "summary",
            "seed",
            "class",
            "read_fraction",
            "arrivals",
            "size",
            "placement",
        ])?;
        Workload::read(&root, Heading::read(&root)?)
    }

    /// The load that `root` describes below its heading.
    pub(super) fn read(root: &Section<'_>, heading: Heading) -> Result<Workload, DocumentError> {
        let arrivals = read_arrivals(root)?;
        let (placement, align_bytes) = read_placement(root)?;
        let workload = Workload {
            name: heading.name,
            summary: heading.summary,
            seed: heading.seed,
            class: read_class(root)?,
            read_fraction: match root.has("read_fraction") {
                true => fraction(root, "read_fraction")?,
                false => 1.0,
            },
            arrivals,
            sizes: read_sizes(root)?,
            placement,
            align_bytes,
            origins: root.lines().into(),
        };
        workload.check()?;
        Ok(workload)
    }
}

fn read_class(from: &Section<'_>) -> Result<Class, DocumentError> {
    let Some(field) = from.get("class") else {
        return Ok(Class::default());
    };
    let named = field.as_text().and_then(class::named);
    named.ok_or_else(|| field.mismatch(class::EXPECTED))
}

fn read_arrivals(root: &Section<'_>) -> Result<Arrivals, DocumentError> {
    let known = ["model", "tasks", "think_ms", "think", "per_second", "gaps"];
    let from = root.need_section("arrivals", &known)?;
    let models = "\"closed\" or \"open\"";
    let model = from.need("model", models)?;
    match model.as_text() {
        Some("closed") => {
            from.only(&["model", "tasks", "think_ms", "think"])?;
            Ok(Arrivals::Closed {
                tasks: count(&from, "tasks")?,
                think_ms: quantity_or(&from, "think_ms", 0.0, Unit::Milliseconds)?,
                think: spread(&from, "think")?,
            })
        }
        Some("open") => {
            from.only(&["model", "per_second", "gaps"])?;
            Ok(Arrivals::Open {
                per_second: from.number("per_second", "requests per second")?,
                gaps: spread(&from, "gaps")?,
            })
        }
        _ => Err(model.mismatch(models)),
    }
}

fn read_sizes(root: &Section<'_>) -> Result<Sizes, DocumentError> {
    let known = [
        "kind",
        "kib",
        "choices",
        "mean_kib",
        "multiple_kib",
        "from_kib",
        "to_kib",
    ];
    let from = root.need_section("size", &known)?;
    let kinds = "\"fixed\", \"choice\", \"exponential\" or \"uniform\"";
    let kind = from.need("kind", kinds)?;
    match kind.as_text() {
        Some("fixed") => {
            from.only(&["kind", "kib"])?;
            Ok(Sizes::Fixed {
                bytes: kib(&from, "kib")?,
            })
        }
        Some("choice") => {
            from.only(&["kind", "choices"])?;
            let expected = "a list such as [{ kib = 4, weight = 3 }, { kib = 64, weight = 1 }]";
            let choices = from.need("choices", expected)?;
            let mut options = Vec::new();
            for option in choices.sections(expected)? {
                option.only(&["kib", "weight"])?;
                options.push(SizeOption {
                    bytes: kib(&option, "kib")?,
                    weight: count(&option, "weight")?,
                });
            }
            match options.is_empty() {
                true => Err(choices.error(format!("empty: expected {expected}"))),
                false => Ok(Sizes::Choice { options }),
            }
        }
        Some("exponential") => {
            from.only(&["kind", "mean_kib", "multiple_kib"])?;
            Ok(Sizes::Exponential {
                mean_bytes: kib(&from, "mean_kib")?,
                multiple_bytes: kib(&from, "multiple_kib")?,
            })
        }
        Some("uniform") => {
            from.only(&["kind", "from_kib", "to_kib", "multiple_kib"])?;
            Ok(Sizes::Uniform {
                from_bytes: kib(&from, "from_kib")?,
                to_bytes: kib(&from, "to_kib")?,
                multiple_bytes: kib(&from, "multiple_kib")?,
            })
        }
        _ => Err(kind.mismatch(kinds)),
    }
}

/// The keys of each kind of placement, besides `kind` and `align_kib`.
const PLACEMENTS: [(&str, &[&str]); 6] = [
    ("uniform", &[]),
    ("zipf", &["theta", "regions"]),
    ("sequential", &["mean_run"]),
    ("streams", &["streams"]),
    ("local", &["share", "group_kib"]),
    (
        "small-files",
        &[
            "directories",
            "files_per_directory",
            "fs_block_kib",
            "group_kib",
            "inode_bytes",
            "inode_every_kib",
            "cached_blocks",
            "fragment_kib",
            "delayed_inode_blocks",
        ],
    ),
];

fn read_placement(root: &Section<'_>) -> Result<(Placement, Option<u64>), DocumentError> {
    let of_all = ["kind", "align_kib"];
    let of_kinds = PLACEMENTS.iter().flat_map(|(_, keys)| *keys).copied();
    let known: Vec<&str> = of_all.into_iter().chain(of_kinds).collect();
    let from = root.need_section("placement", &known)?;
    let kinds = "\"uniform\", \"zipf\", \"sequential\", \"streams\", \"local\" or \"small-files\"";
    let field = from.need("kind", kinds)?;
    let kind = field.as_text().unwrap_or_default();
    if let Some((_, keys)) = PLACEMENTS.iter().find(|(name, _)| *name == kind) {
        from.only(&[&of_all[..], keys].concat())?;
    }
    let align_bytes = match quantity_or(&from, "align_kib", 0.0, Unit::Kibibytes)? != 0.0 {
        true => Some(kib(&from, "align_kib")?),
        false => None,
    };
    let placement = match kind {
        "uniform" => Placement::Uniform,
        "zipf" => Placement::Zipf {
            theta: from.number("theta", "a number from 0 to 10")?,
            regions: count(&from, "regions")?,
        },
        "sequential" => Placement::Sequential {
            mean_run: from.number("mean_run", "requests, at least 1")?,
        },
        "streams" => Placement::Streams {
            streams: count(&from, "streams")?,
        },
        "local" => Placement::Local {
            share: fraction(&from, "share")?,
            group_bytes: kib(&from, "group_kib")?,
        },
        "small-files" => Placement::SmallFiles(SmallFiles {
            directories: count(&from, "directories")?,
            files_per_directory: count(&from, "files_per_directory")?,
            fs_block_bytes: kib(&from, "fs_block_kib")?,
            group_bytes: kib(&from, "group_kib")?,
            inode_bytes: count(&from, "inode_bytes")?.into(),
            inode_every_bytes: kib(&from, "inode_every_kib")?,
            cached_blocks: count(&from, "cached_blocks")?,
            fragment_bytes: match from.has("fragment_kib") {
                true => kib(&from, "fragment_kib")?,
                false => kib(&from, "fs_block_kib")?,
            },
            delayed_inode_blocks: match from.has("delayed_inode_blocks") {
                true => Some(count(&from, "delayed_inode_blocks")?),
                false => None,
            },
        }),
        _ => return Err(field.mismatch(kinds)),
    };
    Ok((placement, align_bytes))
}

/// A number of this unit, or a text with a unit of its own. What makes sense is checked later.
fn quantity(from: &Section<'_>, key: &str, unit: Unit) -> Result<f64, DocumentError> {
    let field = from.need(key, &unit.to_string())?;
    field.quantity(unit, f64::MIN..=f64::MAX, unit)
}

fn quantity_or(
    from: &Section<'_>,
    key: &str,
    default: f64,
    unit: Unit,
) -> Result<f64, DocumentError> {
    match from.has(key) {
        true => quantity(from, key, unit),
        false => Ok(default),
    }
}

/// A part of one, or a text in per cent.
fn fraction(from: &Section<'_>, key: &str) -> Result<f64, DocumentError> {
    let field = from.need(key, FRACTION)?;
    match field.as_text().and_then(|text| Unit::Percent.read(text)) {
        Some(percent) => Ok(percent / 100.0),
        None => from.number(key, FRACTION),
    }
}

fn spread(from: &Section<'_>, key: &str) -> Result<Spread, DocumentError> {
    let Some(field) = from.get(key) else {
        return Ok(Spread::Constant);
    };
    match field.as_text() {
        Some("constant") => Ok(Spread::Constant),
        Some("exponential" | "poisson") => Ok(Spread::Exponential),
        _ => Err(field.mismatch("\"constant\" or \"exponential\"")),
    }
}

fn count(from: &Section<'_>, key: &str) -> Result<u32, DocumentError> {
    let expected = format!("a whole number from 1 to {LARGEST_COUNT}");
    let count = from.need(key, &expected)?;
    Ok(count.whole(1..=LARGEST_COUNT.into(), expected)? as u32)
}

fn kib(from: &Section<'_>, key: &str) -> Result<u64, DocumentError> {
    let kib = quantity(from, key, Unit::Kibibytes)?;
    kib_to_bytes(kib).map_err(|problem| match from.get(key) {
        Some(field) => field.error(problem),
        None => from.error(problem),
    })
}

/// Bytes in `kib` KiB, which may be a fraction if the bytes are whole.
pub(super) fn kib_to_bytes(kib: f64) -> Result<u64, String> {
    let bytes = kib * 1024.0;
    if bytes >= 1.0 && bytes <= LARGEST_BYTES as f64 && bytes.fract() == 0.0 {
        return Ok(bytes as u64);
    }
    let most = LARGEST_BYTES >> 10;
    Err(format!(
        "{kib} KiB: expected a whole number of bytes, at least 1, at most {most} KiB"
    ))
}

/// The permitted values of a fraction.
pub(super) const FRACTION: &str = "a number from 0 to 1";
