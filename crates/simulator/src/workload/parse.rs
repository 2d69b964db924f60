//! From the text of a load file to a load.

use block::Class;

use super::section::{Origin, Section, SpecError, parse};
use super::{
    Arrivals, LARGEST_BYTES, LARGEST_COUNT, Placement, SizeOption, Sizes, SmallFiles, Spread,
    Workload, class,
};

/// What stands above all tables.
pub(super) struct Heading {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) seed: u64,
}

impl Heading {
    pub(super) fn read(root: &mut Section<'_>, origin: &mut Origin) -> Result<Self, SpecError> {
        Ok(Heading {
            name: root.text(origin, "name", None, "the name of the load")?,
            summary: root.text(origin, "summary", Some(String::new()), "one sentence")?,
            seed: root.whole(origin, "seed", Some(1), "a whole number from 0")?,
        })
    }
}

impl Workload {
    /// The load that `text` describes; `file` is its name in complaints.
    ///
    /// # Errors
    /// If it is not TOML, a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(file: &str, text: &str) -> Result<Workload, SpecError> {
        let mut origin = Origin::new(file);
        let document = parse(&origin, text)?;
        let mut root = Section::root(text, document.as_table());
        let heading = Heading::read(&mut root, &mut origin)?;
        Workload::read(origin, root, heading)
    }

    /// The load that `root` describes below its heading.
    pub(super) fn read(
        mut origin: Origin,
        mut root: Section<'_>,
        heading: Heading,
    ) -> Result<Workload, SpecError> {
        let class = read_class(&mut origin, &mut root)?;
        let read_fraction = root.number(&mut origin, "read_fraction", Some(1.0), FRACTION)?;
        let arrivals = root.section(&mut origin, "arrivals")?;
        let arrivals = read_arrivals(&mut origin, arrivals)?;
        let size = root.section(&mut origin, "size")?;
        let sizes = read_sizes(&mut origin, size)?;
        let place = root.section(&mut origin, "placement")?;
        let (placement, align_bytes) = read_placement(&mut origin, place)?;
        root.finish(&origin)?;
        let workload = Workload {
            name: heading.name,
            summary: heading.summary,
            seed: heading.seed,
            class,
            read_fraction,
            arrivals,
            sizes,
            placement,
            align_bytes,
            origin,
        };
        workload.check()?;
        Ok(workload)
    }
}

fn read_class(origin: &mut Origin, from: &mut Section<'_>) -> Result<Class, SpecError> {
    let default = class::name(Class::default()).to_owned();
    let name = from.text(origin, "class", Some(default), class::EXPECTED)?;
    class::named(&name).ok_or_else(|| {
        let problem = format!("\"{name}\": expected {}", class::EXPECTED);
        origin.complain("class", problem)
    })
}

fn read_arrivals(origin: &mut Origin, mut from: Section<'_>) -> Result<Arrivals, SpecError> {
    let models = "\"closed\" or \"open\"";
    let model = from.text(origin, "model", None, models)?;
    let arrivals = match model.as_str() {
        "closed" => Arrivals::Closed {
            tasks: count(origin, &mut from, "tasks", "arrivals.tasks")?,
            think_ms: from.number(origin, "think_ms", Some(0.0), "milliseconds")?,
            think: spread(origin, &mut from, "think", "arrivals.think")?,
        },
        "open" => Arrivals::Open {
            per_second: from.number(origin, "per_second", None, "requests per second")?,
            gaps: spread(origin, &mut from, "gaps", "arrivals.gaps")?,
        },
        other => {
            let problem = format!("\"{other}\": expected {models}");
            return Err(origin.complain("arrivals.model", problem));
        }
    };
    from.finish(origin)?;
    Ok(arrivals)
}

fn read_sizes(origin: &mut Origin, mut from: Section<'_>) -> Result<Sizes, SpecError> {
    let kinds = "\"fixed\", \"choice\", \"exponential\" or \"uniform\"";
    let kind = from.text(origin, "kind", None, kinds)?;
    let sizes = match kind.as_str() {
        "fixed" => Sizes::Fixed {
            bytes: kib(origin, &mut from, "kib", "size.kib")?,
        },
        "choice" => {
            let expected = "a list such as [{ kib = 4, weight = 3 }, { kib = 64, weight = 1 }]";
            let mut options = Vec::new();
            for mut option in from.list(origin, "choices", expected)? {
                let bytes = kib(origin, &mut option, "kib", "size.choices.kib")?;
                let weight = count(origin, &mut option, "weight", "size.choices.weight")?;
                option.finish(origin)?;
                options.push(SizeOption { bytes, weight });
            }
            if options.is_empty() {
                let problem = format!("empty: expected {expected}");
                return Err(origin.complain("size.choices", problem));
            }
            Sizes::Choice { options }
        }
        "exponential" => Sizes::Exponential {
            mean_bytes: kib(origin, &mut from, "mean_kib", "size.mean_kib")?,
            multiple_bytes: kib(origin, &mut from, "multiple_kib", "size.multiple_kib")?,
        },
        "uniform" => Sizes::Uniform {
            from_bytes: kib(origin, &mut from, "from_kib", "size.from_kib")?,
            to_bytes: kib(origin, &mut from, "to_kib", "size.to_kib")?,
            multiple_bytes: kib(origin, &mut from, "multiple_kib", "size.multiple_kib")?,
        },
        other => {
            let problem = format!("\"{other}\": expected {kinds}");
            return Err(origin.complain("size.kind", problem));
        }
    };
    from.finish(origin)?;
    Ok(sizes)
}

fn read_placement(
    origin: &mut Origin,
    mut from: Section<'_>,
) -> Result<(Placement, Option<u64>), SpecError> {
    let kinds = "\"uniform\", \"zipf\", \"sequential\", \"streams\", \"local\" or \"small-files\"";
    let kind = from.text(origin, "kind", None, kinds)?;
    let align = from.number(origin, "align_kib", Some(0.0), "KiB")?;
    let align_bytes = match align {
        0.0 => None,
        _ => Some(kib_to_bytes(origin, "placement.align_kib", align)?),
    };
    let placement = match kind.as_str() {
        "uniform" => Placement::Uniform,
        "zipf" => Placement::Zipf {
            theta: from.number(origin, "theta", None, "a number from 0 to 10")?,
            regions: count(origin, &mut from, "regions", "placement.regions")?,
        },
        "sequential" => Placement::Sequential {
            mean_run: from.number(origin, "mean_run", None, "requests, at least 1")?,
        },
        "streams" => Placement::Streams {
            streams: count(origin, &mut from, "streams", "placement.streams")?,
        },
        "local" => Placement::Local {
            share: from.number(origin, "share", None, FRACTION)?,
            group_bytes: kib(origin, &mut from, "group_kib", "placement.group_kib")?,
        },
        "small-files" => Placement::SmallFiles(read_files(origin, &mut from)?),
        other => {
            let problem = format!("\"{other}\": expected {kinds}");
            return Err(origin.complain("placement.kind", problem));
        }
    };
    from.finish(origin)?;
    Ok((placement, align_bytes))
}

fn read_files(origin: &mut Origin, from: &mut Section<'_>) -> Result<SmallFiles, SpecError> {
    let files_per_directory = "placement.files_per_directory";
    Ok(SmallFiles {
        directories: count(origin, from, "directories", "placement.directories")?,
        files_per_directory: count(origin, from, "files_per_directory", files_per_directory)?,
        fs_block_bytes: kib(origin, from, "fs_block_kib", "placement.fs_block_kib")?,
        group_bytes: kib(origin, from, "group_kib", "placement.group_kib")?,
        inode_bytes: count(origin, from, "inode_bytes", "placement.inode_bytes")?.into(),
        inode_every_bytes: kib(origin, from, "inode_every_kib", "placement.inode_every_kib")?,
        cached_blocks: count(origin, from, "cached_blocks", "placement.cached_blocks")?,
    })
}

fn spread(
    origin: &mut Origin,
    from: &mut Section<'_>,
    key: &'static str,
    path: &str,
) -> Result<Spread, SpecError> {
    let expected = "\"constant\" or \"exponential\"";
    let text = from.text(origin, key, Some("constant".to_owned()), expected)?;
    match text.as_str() {
        "constant" => Ok(Spread::Constant),
        "exponential" | "poisson" => Ok(Spread::Exponential),
        other => Err(origin.complain(path, format!("\"{other}\": expected {expected}"))),
    }
}

fn count(
    origin: &mut Origin,
    from: &mut Section<'_>,
    key: &'static str,
    path: &str,
) -> Result<u32, SpecError> {
    let expected = format!("a whole number from 1 to {LARGEST_COUNT}");
    let whole = from.whole(origin, key, None, &expected)?;
    match u32::try_from(whole) {
        Ok(count @ 1..=LARGEST_COUNT) => Ok(count),
        _ => Err(origin.complain(path, format!("{whole}: expected {expected}"))),
    }
}

fn kib(
    origin: &mut Origin,
    from: &mut Section<'_>,
    key: &'static str,
    path: &str,
) -> Result<u64, SpecError> {
    let kib = from.number(origin, key, None, "KiB")?;
    kib_to_bytes(origin, path, kib)
}

/// Bytes in `kib` KiB, which may have a fraction as long as the bytes do not.
pub(super) fn kib_to_bytes(origin: &Origin, path: &str, kib: f64) -> Result<u64, SpecError> {
    let bytes = kib * 1024.0;
    if bytes >= 1.0 && bytes <= LARGEST_BYTES as f64 && bytes.fract() == 0.0 {
        return Ok(bytes as u64);
    }
    let most = LARGEST_BYTES >> 10;
    let problem =
        format!("{kib} KiB: expected a whole number of bytes, at least 1, at most {most} KiB");
    Err(origin.complain(path, problem))
}

/// What a share has to be.
pub(super) const FRACTION: &str = "a number from 0 to 1";
