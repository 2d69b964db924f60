//! From the text of a file of `workloads/levels` to a load.

use super::{Ends, Files, Gap, Length, Runs, Size, Synthetic, Target};
use crate::workload::SpecError;
use crate::workload::section::{Origin, Section, parse};

impl Synthetic {
    /// The load that `text` describes; `file` is its name in complaints.
    ///
    /// # Errors
    /// If it is not TOML, a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(file: &str, text: &str) -> Result<Synthetic, SpecError> {
        let mut origin = Origin::new(file);
        let document = parse(&origin, text)?;
        let mut root = Section::root(text, document.as_table());
        let origin = &mut origin;
        let target = target(&mut root, origin)?;
        let footprint = target.footprint_mb * target.scale * 1e6 / 4096.0;
        let load = Synthetic {
            name: root.text(origin, "name", None, "the name of the load")?,
            summary: root.text(origin, "summary", None, "one sentence")?,
            requests: positive(&mut root, origin, "requests")?,
            footprint: footprint as u64,
            gaps: gaps(&mut root, origin)?,
            first_pass: share(&mut root, origin, "first_pass")?,
            files: files(&mut root, origin)?,
            ends: ends(&mut root, origin)?,
            align: positive(&mut root, origin, "align")?,
            near: share(&mut root, origin, "near")?,
            readers: u32::try_from(positive(&mut root, origin, "readers")?).unwrap_or(u32::MAX),
            same_reader: share(&mut root, origin, "same_reader")?,
            skew: root.number(origin, "skew", None, "a number from 1")?,
            runs: runs(&mut root, origin)?,
            first: sizes(&mut root, origin, "first")?,
            following: sizes(&mut root, origin, "following")?,
            looping: share(&mut root, origin, "looping")?,
            recency: root.number(origin, "recency", None, "a number from 1")?,
            overlap: share(&mut root, origin, "overlap")?,
            target,
        };
        root.finish(origin)?;
        load.check(origin)?;
        Ok(load)
    }

    fn check(&self, origin: &Origin) -> Result<(), SpecError> {
        if self.footprint == 0 {
            let problem = "less than a block: expected 0.004096 at least";
            return Err(origin.complain("target.footprint_mb", problem));
        }
        for (key, power) in [("skew", self.skew), ("recency", self.recency)] {
            if !(power >= 1.0 && power.is_finite()) {
                let problem = format!("{power}: expected a number from 1");
                return Err(origin.complain(key, problem));
            }
        }
        if self.first_pass == 0.0 {
            return Err(origin.complain("first_pass", "0: expected a share above 0"));
        }
        if self.readers > MOST_READERS {
            let problem = format!("{}: expected at most {MOST_READERS}", self.readers);
            return Err(origin.complain("readers", problem));
        }
        Ok(())
    }
}

fn target(root: &mut Section<'_>, origin: &mut Origin) -> Result<Target, SpecError> {
    let mut from = root.section(origin, "target")?;
    let files = match from.has("files") {
        true => Some(positive(&mut from, origin, "files")?),
        false => None,
    };
    let target = Target {
        random_percent: from.number(origin, "random_percent", None, "percent of the requests")?,
        footprint_mb: from.number(origin, "footprint_mb", None, "millions of bytes")?,
        scale: from.number(origin, "scale", Some(1.0), "the part of it that is read")?,
        files,
    };
    from.finish(origin)?;
    let is_some = |number: f64| number > 0.0 && number <= 1e9;
    if !is_some(target.footprint_mb) || !is_some(target.scale) {
        let problem = "expected a footprint and a scale above 0, and at most 10^9";
        return Err(origin.complain("target", problem));
    }
    Ok(target)
}

fn ends(root: &mut Section<'_>, origin: &mut Origin) -> Result<Ends, SpecError> {
    let expected = "\"known\" or \"unknown\"";
    match root.text(origin, "ends", None, expected)?.as_str() {
        "known" => Ok(Ends::Known),
        "unknown" => Ok(Ends::Unknown),
        other => Err(origin.complain("ends", format!("\"{other}\": expected {expected}"))),
    }
}

fn gaps(root: &mut Section<'_>, origin: &mut Origin) -> Result<Vec<Gap>, SpecError> {
    let expected = "a list such as [{ weight = 3, mean_ms = 6.5 }], empty for a closed loop";
    let mut gaps = Vec::new();
    for mut from in root.list(origin, "gaps", expected)? {
        let gap = Gap {
            weight: positive(&mut from, origin, "weight")?,
            mean_ms: from.number(origin, "mean_ms", None, "milliseconds, 0 or more")?,
        };
        from.finish(origin)?;
        if !(0.0..=1e9).contains(&gap.mean_ms) {
            let problem = format!("{}: expected 0 to 10^9", gap.mean_ms);
            return Err(origin.complain("gaps.mean_ms", problem));
        }
        gaps.push(gap);
    }
    Ok(gaps)
}

fn files(root: &mut Section<'_>, origin: &mut Origin) -> Result<Vec<Files>, SpecError> {
    let expected = "a list such as [{ count = 22, from = 8, to = 64 }], in blocks";
    let mut files = Vec::new();
    for mut from in root.list(origin, "files", expected)? {
        let kind = Files {
            count: positive(&mut from, origin, "count")?,
            from: positive(&mut from, origin, "from")?,
            to: positive(&mut from, origin, "to")?,
        };
        from.finish(origin)?;
        if kind.to < kind.from || kind.to > LONGEST_FILE || kind.count > MOST_FILES {
            let problem = format!(
                "{} files of {} to {} blocks: expected at most {MOST_FILES} of at most \
                 {LONGEST_FILE}, and the larger size behind the smaller",
                kind.count, kind.from, kind.to
            );
            return Err(origin.complain("files", problem));
        }
        files.push(kind);
    }
    non_empty(files, origin, "files", expected)
}

fn runs(root: &mut Section<'_>, origin: &mut Origin) -> Result<Vec<Runs>, SpecError> {
    let expected =
        "a list such as [{ weight = 9, from = 1, to = 8 }, { weight = 1, file = \"whole\" }]";
    let mut runs = Vec::new();
    for mut from in root.list(origin, "runs", expected)? {
        let weight = positive(&mut from, origin, "weight")?;
        let length = match from.has("file") {
            true => match from.text(origin, "file", None, "\"whole\"")?.as_str() {
                "whole" => Length::File,
                other => {
                    let problem = format!("\"{other}\": expected \"whole\"");
                    return Err(origin.complain("runs.file", problem));
                }
            },
            false => Length::Requests {
                from: positive(&mut from, origin, "from")?,
                to: positive(&mut from, origin, "to")?,
            },
        };
        from.finish(origin)?;
        if let Length::Requests { from, to } = length
            && (to < from || to > LONGEST_RUN)
        {
            let problem = format!("{from} to {to}: expected at most {LONGEST_RUN}, upwards");
            return Err(origin.complain("runs", problem));
        }
        runs.push(Runs { weight, length });
    }
    non_empty(runs, origin, "runs", expected)
}

fn sizes(
    root: &mut Section<'_>,
    origin: &mut Origin,
    key: &'static str,
) -> Result<Vec<Size>, SpecError> {
    let expected = "a list such as [{ weight = 3, blocks = 2 }]";
    let mut sizes = Vec::new();
    for mut from in root.list(origin, key, expected)? {
        let size = Size {
            weight: positive(&mut from, origin, "weight")?,
            blocks: positive(&mut from, origin, "blocks")?,
        };
        from.finish(origin)?;
        if size.blocks > cache::coordinator::LONGEST_REQUEST {
            let most = cache::coordinator::LONGEST_REQUEST;
            let problem = format!("{} blocks: expected at most {most}", size.blocks);
            return Err(origin.complain(key, problem));
        }
        sizes.push(size);
    }
    non_empty(sizes, origin, key, expected)
}

fn non_empty<T>(
    list: Vec<T>,
    origin: &Origin,
    key: &str,
    expected: &str,
) -> Result<Vec<T>, SpecError> {
    match list.is_empty() {
        true => Err(origin.complain(key, format!("empty: expected {expected}"))),
        false => Ok(list),
    }
}

fn positive(
    from: &mut Section<'_>,
    origin: &mut Origin,
    key: &'static str,
) -> Result<u64, SpecError> {
    let number = from.whole(origin, key, None, "a whole number from 1")?;
    match (1..=MOST).contains(&number) {
        true => Ok(number),
        false => Err(origin.complain(key, format!("{number}: expected 1 to {MOST}"))),
    }
}

fn share(from: &mut Section<'_>, origin: &mut Origin, key: &'static str) -> Result<f64, SpecError> {
    let share = from.number(origin, key, None, "a share from 0 to 1")?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err(origin.complain(key, format!("{share}: expected a share from 0 to 1"))),
    }
}

/// Bounds of what a file may ask for: choices, each far above what the loads have, so that memory and
/// sums stay bounded.
const MOST: u64 = 1 << 32;
const MOST_READERS: u32 = 1 << 12;
const MOST_FILES: u64 = 1 << 20;
const LONGEST_FILE: u64 = 1 << 32;
const LONGEST_RUN: u64 = 1 << 16;
