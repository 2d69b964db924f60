//! A profile of two actuators that were described separately: `[[range]]`, twice.
//!
//! ```text
//!   name = "sdb"          actuators = 2
//!   [[range]]             a whole profile: the blocks of the first actuator, numbered from 0
//!   [range.spindle] ...
//!   [[range]]             the blocks after them
//! ```

use std::sync::Arc;

use document::{DocumentError, Section};

use super::{Profile, Provenance, TEXT, TableOrigin, read_name, read_profile};
use crate::geometry::Geometry;

/// The keys at the top of such a file.
const KEYS: [&str; 6] = [
    "name",
    "model",
    "provenance",
    "origin",
    "actuators",
    "range",
];

/// What a file of this kind has.
const TWO: &str = "two tables [[range]] of one actuator each";

/// Reads a file with `[[range]]`.
pub(super) fn read(root: &Section) -> Result<Profile, DocumentError> {
    root.only(&KEYS)?;
    let actuators = root.need("actuators", "2")?;
    actuators.integer(2..=2)?;
    let sections = root.sections("range")?;
    let [first, second] = &sections[..] else {
        return Err(root.error(format!(
            "{} tables [[range]]: expected {TWO}",
            sections.len()
        )));
    };
    let arm = |section: &Section| {
        let arm = read_profile(section)?;
        match arm.actuators {
            1 => Ok(arm),
            more => Err(section.error(format!("{more} actuators: expected {TWO}"))),
        }
    };
    let arms = [arm(first)?, arm(second)?];
    let bytes = arms
        .each_ref()
        .map(|arm| (arm.block_bytes, arm.physical_block_bytes));
    if bytes[0] != bytes[1] {
        return Err(second.error("other block sizes than the first range: expected the same"));
    }
    let text = |key: &str, expected: &str| root.need(key, expected)?.text(TEXT).map(str::to_owned);
    let mut origins = vec![TableOrigin {
        table: String::new(),
        text: text("origin", "the source of the numbers")?,
    }];
    for (number, arm) in arms.iter().enumerate() {
        origins.extend(arm.origins.iter().map(|origin| TableOrigin {
            table: format!("range {number} {}", origin.table),
            text: origin.text.clone(),
        }));
    }
    let provenance = root.need("provenance", "how the numbers came about")?;
    Ok(Profile {
        name: read_name(&root.need("name", "the name of the drive")?)?,
        model: text("model", "vendor and model")?,
        provenance: provenance.choice(&Provenance::NAMES)?,
        origins,
        ..Profile::of_arms(arms)
    })
}

impl Profile {
    /// The drive of two arms that have the blocks one after the other. What is not of an arm is that of the
    /// first.
    pub(super) fn of_arms(arms: [Profile; 2]) -> Profile {
        let [first, second] = &arms;
        let geometry = Geometry::joined(&first.geometry, &second.geometry);
        let blocks = arms.each_ref().map(|arm| arm.geometry.sectors());
        let confidence = match (&first.confidence, &second.confidence) {
            (Some(one), Some(other)) => Some(one.joined(other, blocks)),
            _ => None,
        };
        let is_fitted = arms.iter().any(Profile::is_fitted);
        let unfitted = is_fitted.then(|| Profile::of_arms(arms.each_ref().map(Profile::published)));
        Profile {
            actuators: 2,
            unfitted: unfitted.map(Arc::new),
            geometry: Arc::new(geometry),
            confidence,
            arms: Some(Arc::new(arms.clone())),
            ..first.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use block::{Lba, Switch};

    use super::*;

    /// The text of a shipped drive as a range.
    fn range(text: &str) -> String {
        let lines = text.lines().map(|line| match line.strip_prefix('[') {
            Some(rest) => match rest.strip_prefix('[') {
                Some(rest) => format!("[[range.{rest}\n"),
                None => format!("[range.{rest}\n"),
            },
            None => format!("{line}\n"),
        });
        lines.fold(String::from("[[range]]\n"), |text, line| text + &line)
    }

    fn drive(name: &str) -> &'static str {
        crate::catalog::find(name).expect("a shipped drive").text()
    }

    fn parsed(ranges: &[String]) -> Result<Profile, DocumentError> {
        let top = "name = \"two\"\nmodel = \"Two\"\nprovenance = \"invented\"\norigin = \"a test\"\n\
                   actuators = 2\n";
        Profile::parse(&(top.to_owned() + &ranges.concat()), "two.toml")
    }

    #[test]
    fn each_arm_is_as_its_range_says() {
        let alone = ["hp-c2247a", "hp-c2249a"].map(|name| {
            let text = drive(name);
            (range(text), Profile::parse(text, name).expect("a profile"))
        });
        let two = parsed(&alone.clone().map(|(text, _)| text)).expect("two arms");
        assert_eq!((two.actuators, two.name.as_str()), (2, "two"));
        let border = alone[0].1.geometry.sectors().0;
        let cylinders = alone[0].1.geometry.cylinders();
        for (number, (_, expected)) in alone.iter().enumerate() {
            let share = two.share_of(number);
            assert_eq!(share.start().0, number as u64 * border);
            assert_eq!(share.length(), expected.geometry.sectors());
            let arm = two.of_actuator(number);
            let far = expected.geometry.cylinders() - 1;
            assert_eq!(arm.seek.read().time(far), expected.seek.read().time(far));
            assert_eq!(arm.spindle, expected.spindle);
            let switched = two.switched(Switch::Off, Switch::Off).of_actuator(number);
            assert_eq!(
                switched.buffer,
                expected.switched(Switch::Off, Switch::Off).buffer
            );
            for at in (0..share.length().0)
                .step_by(99_991)
                .chain([share.length().0 - 1])
            {
                let lba = Lba(share.start().0 + at);
                assert_eq!(two.actuator_of(lba), number);
                let (whole, own) = (two.geometry.locate(lba), expected.geometry.locate(Lba(at)));
                let (whole, own) = (whole.expect("a block"), own.expect("a block"));
                assert_eq!(
                    (whole.angle, whole.head, whole.sector),
                    (own.angle, own.head, own.sector)
                );
                assert_eq!(whole.cylinder, own.cylinder + number as u32 * cylinders);
                let again = two
                    .geometry
                    .lba_at(whole.cylinder, whole.head, whole.sector);
                assert_eq!(again, Some(lba));
                let track = two.geometry.track_of(lba).expect("a track");
                assert!((track.first..=track.last).contains(&lba));
                assert_eq!(
                    two.geometry.track_at(whole.cylinder, whole.head),
                    Some(track)
                );
            }
        }
        let crossing = block::Extent::new(Lba(border - 1), block::Sectors(2)).expect("blocks");
        assert_eq!(two.geometry.runs(crossing).count(), 2);
    }

    #[test]
    fn what_is_not_two_arms_is_refused() {
        let one = range(drive("hp-c2247a"));
        let large =
            range(&drive("toshiba-x300-5tb").replace("block_bytes = 512", "block_bytes = 4096"));
        for (ranges, words) in [
            (vec![one.clone()], "1 tables [[range]]: expected two"),
            (vec![one.clone(), one.clone(), one.clone()], "3 tables"),
            (
                vec![one.clone(), one.replace("actuators = 1", "actuators = 2")],
                "2 actuators: expected two",
            ),
            (vec![one.clone(), large], "block sizes"),
            (
                vec![one.clone(), one + "\n[range.nonsense]\n"],
                "unknown key",
            ),
        ] {
            let refused = parsed(&ranges).expect_err(words).to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
