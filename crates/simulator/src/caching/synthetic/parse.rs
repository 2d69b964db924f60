//! From the text of a file of `workloads/levels` to a load.

use document::{Document, DocumentError, Section};

use super::{Ends, FileKind, Gap, Length, PaperFigures, RunKind, Size, SyntheticCacheLoad};

const KEYS: [&str; 19] = [
    "name",
    "summary",
    "target",
    "requests",
    "gaps",
    "first_pass",
    "files",
    "ends",
    "align",
    "near",
    "readers",
    "same_reader",
    "skew",
    "runs",
    "first",
    "following",
    "looping",
    "recency",
    "overlap",
];

impl SyntheticCacheLoad {
    /// The load that `text` describes; `file` is its name in errors.
    ///
    /// # Errors
    /// If it is not TOML, a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(file: &str, text: &str) -> Result<SyntheticCacheLoad, DocumentError> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        root.only(&KEYS)?;
        let target = target(&root)?;
        let footprint = target.footprint_mb * target.scale * 1e6 / 4096.0;
        let load = SyntheticCacheLoad {
            name: root.text("name", "the name of the load")?.to_owned(),
            summary: root.text("summary", "one sentence")?.to_owned(),
            requests: positive(&root, "requests")?,
            footprint: footprint as u64,
            gaps: gaps(&root)?,
            first_pass: share(&root, "first_pass")?,
            files: files(&root)?,
            ends: root
                .need("ends", "\"known\", \"above\" or \"unknown\"")?
                .choice(&[
                    ("known", Ends::Known),
                    ("above", Ends::Above),
                    ("unknown", Ends::Unknown),
                ])?,
            align: positive(&root, "align")?,
            near: share(&root, "near")?,
            readers: u32::try_from(positive(&root, "readers")?).unwrap_or(u32::MAX),
            same_reader: share(&root, "same_reader")?,
            skew: root.number("skew", "a number from 1")?,
            runs: runs(&root)?,
            first: sizes(&root, "first")?,
            following: sizes(&root, "following")?,
            looping: share(&root, "looping")?,
            recency: root.number("recency", "a number from 1")?,
            overlap: share(&root, "overlap")?,
            target,
        };
        load.check(&root)?;
        Ok(load)
    }

    fn check(&self, root: &Section<'_>) -> Result<(), DocumentError> {
        let lines = root.lines();
        if self.footprint == 0 {
            let problem = "less than a block: expected 0.004096 at least";
            return Err(lines.error("target.footprint_mb", problem));
        }
        for (key, power) in [("skew", self.skew), ("recency", self.recency)] {
            if power < 1.0 {
                return Err(lines.error(key, &format!("{power}: expected a number from 1")));
            }
        }
        if self.first_pass == 0.0 {
            return Err(lines.error("first_pass", "0: expected a share above 0"));
        }
        if self.readers > MOST_READERS {
            let problem = format!("{}: expected at most {MOST_READERS}", self.readers);
            return Err(lines.error("readers", &problem));
        }
        Ok(())
    }
}

fn target(root: &Section<'_>) -> Result<PaperFigures, DocumentError> {
    let known = ["files", "random_percent", "footprint_mb", "scale"];
    let from = root.need_section("target", &known)?;
    let target = PaperFigures {
        random_percent: from.number("random_percent", "percent of the requests")?,
        footprint_mb: from.number("footprint_mb", "millions of bytes")?,
        scale: match from.has("scale") {
            true => from.number("scale", "the part of it that is read")?,
            false => 1.0,
        },
        files: match from.has("files") {
            true => Some(positive(&from, "files")?),
            false => None,
        },
    };
    let is_some = |number: f64| number > 0.0 && number <= 1e9;
    match is_some(target.footprint_mb) && is_some(target.scale) {
        true => Ok(target),
        false => Err(from.error("expected a footprint and a scale above 0, and at most 10^9")),
    }
}

fn gaps(root: &Section<'_>) -> Result<Vec<Gap>, DocumentError> {
    let expected = "a list such as [{ weight = 3, mean_ms = 6.5 }], empty for a closed loop";
    let gaps = root.need("gaps", expected)?.sections(expected)?;
    let gap = |from: &Section<'_>| {
        from.only(&["weight", "mean_ms"])?;
        let mean = from.need("mean_ms", "milliseconds, 0 or more")?;
        Ok(Gap {
            weight: positive(from, "weight")?,
            mean_ms: mean.number(0.0..=1e9, "0 to 10^9")?,
        })
    };
    gaps.iter().map(gap).collect()
}

fn files(root: &Section<'_>) -> Result<Vec<FileKind>, DocumentError> {
    let expected = "a list such as [{ count = 22, from = 8, to = 64 }], in blocks";
    list(root, "files", expected, |from| {
        from.only(&["count", "from", "to"])?;
        let files = FileKind {
            count: positive(from, "count")?,
            from: positive(from, "from")?,
            to: positive(from, "to")?,
        };
        if files.to < files.from || files.to > LONGEST_FILE || files.count > MOST_FILES {
            return Err(from.error(format!(
                "{} files of {} to {} blocks: expected at most {MOST_FILES} of at most \
                 {LONGEST_FILE}, and the larger size behind the smaller",
                files.count, files.from, files.to
            )));
        }
        Ok(files)
    })
}

fn runs(root: &Section<'_>) -> Result<Vec<RunKind>, DocumentError> {
    let expected =
        "a list such as [{ weight = 9, from = 1, to = 8 }, { weight = 1, file = \"whole\" }]";
    list(root, "runs", expected, |from| {
        let weight = positive(from, "weight")?;
        let length = match from.get("file") {
            Some(file) => {
                from.only(&["weight", "file"])?;
                file.choice(&[("whole", Length::File)])?
            }
            None => {
                from.only(&["weight", "from", "to"])?;
                let (first, last) = (positive(from, "from")?, positive(from, "to")?);
                if last < first || last > LONGEST_RUN {
                    let problem =
                        format!("{first} to {last}: expected at most {LONGEST_RUN}, upwards");
                    return Err(from.error(problem));
                }
                Length::Requests {
                    from: first,
                    to: last,
                }
            }
        };
        Ok(RunKind { weight, length })
    })
}

fn sizes(root: &Section<'_>, key: &str) -> Result<Vec<Size>, DocumentError> {
    let expected = "a list such as [{ weight = 3, blocks = 2 }]";
    list(root, key, expected, |from| {
        from.only(&["weight", "blocks"])?;
        let size = Size {
            weight: positive(from, "weight")?,
            blocks: positive(from, "blocks")?,
        };
        if size.blocks > cache::coordinator::LONGEST_REQUEST {
            let most = cache::coordinator::LONGEST_REQUEST;
            let problem = format!("{} blocks: expected at most {most}", size.blocks);
            return Err(from.error(problem));
        }
        Ok(size)
    })
}

/// The tables of a list that is not empty.
fn list<T>(
    root: &Section<'_>,
    key: &str,
    expected: &str,
    read: impl FnMut(&Section<'_>) -> Result<T, DocumentError>,
) -> Result<Vec<T>, DocumentError> {
    let field = root.need(key, expected)?;
    let sections = field.sections(expected)?;
    match sections.is_empty() {
        true => Err(field.error(format!("empty: expected {expected}"))),
        false => sections.iter().map(read).collect(),
    }
}

fn positive(from: &Section<'_>, key: &str) -> Result<u64, DocumentError> {
    let number = from.need(key, "a whole number from 1")?;
    number.whole(1..=MOST, format_args!("1 to {MOST}"))
}

fn share(from: &Section<'_>, key: &str) -> Result<f64, DocumentError> {
    let expected = "a share from 0 to 1";
    from.need(key, expected)?.number(0.0..=1.0, expected)
}

/// Bounds of what a file may ask for: choices, each far above what the loads have, so that memory and
/// sums stay bounded.
const MOST: u64 = 1 << 32;
const MOST_READERS: u32 = 1 << 12;
const MOST_FILES: u64 = 1 << 20;
const LONGEST_FILE: u64 = 1 << 32;
const LONGEST_RUN: u64 = 1 << 16;
