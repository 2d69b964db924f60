//! `[drive.preemption]`: the preemption of larger requests by more urgent ones.

use block::{Duration, Sectors, Switch};
use document::quantity::Unit;
use document::{DocumentError, Field, Section};
use drive::Profile;
use scheduler::policy::NamedPolicy;
use scheduler::preemption::{self, Aside, Landing, LastChunk, Split, SplitCost, When};

use super::fields::switch;
use super::foreseen::is_foreseen;
use super::size::bytes;
use super::{ALIGN_BYTES, Belief};

/// The rules, without those that depend on the belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemption {
    /// The size of a command of a larger request.
    pub chunk: Chunk,
    /// The time before its sector at which a just-in-time seek lands. `None`: commands are dispatched at
    /// once.
    pub just_in_time: Option<Landing>,
    /// Whether long seeks are split, and whether that may cost head time.
    pub split: Option<SplitCost>,
    /// The largest number of cylinders of one seek, unless a quarter of all.
    pub split_cylinders: Option<u32>,
    /// Whether unused slack prefetches behind the previous request.
    pub free_prefetch: Switch,
    /// The chunks of a write that are forced to the medium, unless those that suit the drive.
    pub last_chunk: Option<LastChunk>,
    /// The condition for the preemption of a transfer in flight. `None`: never.
    pub aside: Option<Aside>,
    /// Whether each of these is always used, or where it is worth its cost.
    pub when: When,
}

/// The size of a command of a larger request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// The smallest size at which the believed drive keeps its full rate.
    Believed,
    /// A number of bytes, a multiple of [`ALIGN_BYTES`].
    Bytes(u64),
    /// Requests are single commands.
    Whole,
}

impl Default for Preemption {
    /// The settings that suit a drive, see [`preemption::Preemption::suited_to`].
    fn default() -> Self {
        Preemption {
            chunk: Chunk::Believed,
            just_in_time: Some(Landing::Learned),
            split: Some(SplitCost::Hidden),
            split_cylinders: None,
            free_prefetch: Switch::Off,
            last_chunk: None,
            aside: Some(Aside {
                fill: Switch::On,
                most_permille: 250,
            }),
            when: When::Worth,
        }
    }
}

impl Preemption {
    /// The rules for a drive with this belief.
    pub fn rules(&self, belief: &Profile) -> preemption::Preemption {
        let suited = preemption::Preemption::suited_to(belief);
        let bytes = u64::from(belief.block_bytes);
        let quarter = suited.split.map(|split| split.longest);
        preemption::Preemption {
            chunk: match self.chunk {
                Chunk::Believed => suited.chunk,
                Chunk::Bytes(chunk) => Some(Sectors((chunk / bytes).max(1))),
                Chunk::Whole => None,
            },
            just_in_time: self.just_in_time,
            split: self.split.map(|cost| Split {
                longest: self.split_cylinders.or(quarter).unwrap_or(u32::MAX),
                cost,
            }),
            free_prefetch: self.free_prefetch,
            last_chunk: self.last_chunk.unwrap_or(suited.last_chunk),
            aside: self.aside,
            when: self.when,
        }
    }
}

const KEYS: [&str; 10] = [
    "chunk",
    "just_in_time",
    "landing_us",
    "split",
    "split_cylinders",
    "free_prefetch",
    "last_chunk",
    "aside",
    "fill",
    "most_back_percent",
];

const WHEN: &str = "when";

/// The table of a drive, if it has one.
pub(super) fn preemption(
    drive: &Section<'_>,
    belief: &Belief,
    policy: NamedPolicy,
) -> Result<Option<Preemption>, DocumentError> {
    let known: Vec<&str> = KEYS.into_iter().chain([WHEN]).collect();
    let Some(table) = drive.section("preemption", &known)? else {
        return Ok(None);
    };
    is_foreseen(&table, belief, policy, "where the head is")?;
    let default = Preemption::default();
    let chunk = table.get("chunk").map(|value| chunk(&value));
    let when = table.get(WHEN).map(|value| {
        let choices = [("worth", When::Worth), ("always", When::Always)];
        value.choice(&choices)
    });
    let last = table.get("last_chunk").map(|value| last_chunk(&value));
    Ok(Some(Preemption {
        chunk: chunk.transpose()?.unwrap_or(default.chunk),
        just_in_time: just_in_time(&table)?,
        split: split(&table)?,
        split_cylinders: split_cylinders(&table)?,
        free_prefetch: switch(&table, "free_prefetch", default.free_prefetch)?,
        last_chunk: last.transpose()?,
        aside: aside(&table)?,
        when: when.transpose()?.unwrap_or(default.when),
    }))
}

fn chunk(value: &Field<'_>) -> Result<Chunk, DocumentError> {
    match value.text(CHUNK) {
        Ok("auto") => return Ok(Chunk::Believed),
        Ok("whole") => return Ok(Chunk::Whole),
        _ => (),
    }
    match bytes(value, ALIGN_BYTES) {
        Ok(bytes @ 1..) => Ok(Chunk::Bytes(bytes)),
        _ => Err(value.mismatch(CHUNK)),
    }
}

const CHUNK: &str = "\"auto\", \"whole\", or a size such as \"64 KiB\", a multiple of 4096 bytes";

/// Refuses a key of a feature that is off. Otherwise the key would be ignored.
fn off(table: &Section<'_>, key: &str, switch: &str) -> Result<(), DocumentError> {
    match table.get(key) {
        None => Ok(()),
        Some(value) => Err(value.error(format!("{switch} is off: expected no such key"))),
    }
}

fn just_in_time(table: &Section<'_>) -> Result<Option<Landing>, DocumentError> {
    if switch(table, "just_in_time", Switch::On)? == Switch::Off {
        off(table, "landing_us", "just_in_time")?;
        return Ok(None);
    }
    let landing = table.get("landing_us").map(|value| {
        // Choice: longer than a revolution of any drive is no landing.
        let us = value.quantity(
            Unit::Microseconds,
            0.0..=20_000.0,
            "microseconds, from 0 to 20000",
        )?;
        Ok(Landing::Fixed(Duration::from_nanos(
            (us * 1e3).round() as u64
        )))
    });
    Ok(Some(landing.transpose()?.unwrap_or(Landing::Learned)))
}

fn split(table: &Section<'_>) -> Result<Option<SplitCost>, DocumentError> {
    let choices = [
        ("off", None),
        ("hidden", Some(SplitCost::Hidden)),
        ("revolution", Some(SplitCost::Revolution)),
    ];
    let chosen = table.get("split").map(|value| value.choice(&choices));
    Ok(chosen.transpose()?.unwrap_or(Some(SplitCost::Hidden)))
}

fn split_cylinders(table: &Section<'_>) -> Result<Option<u32>, DocumentError> {
    if split(table)?.is_none() {
        off(table, "split_cylinders", "split")?;
    }
    let cylinders = table.get("split_cylinders").map(|value| {
        let expected = "a whole number of cylinders, from 1 to 4294967295";
        value.whole(1..=u64::from(u32::MAX), expected)
    });
    Ok(cylinders.transpose()?.map(|cylinders| cylinders as u32))
}

fn last_chunk(value: &Field<'_>) -> Result<LastChunk, DocumentError> {
    match value.text(LAST_CHUNK) {
        Ok("buffered") => Ok(LastChunk::Buffered),
        Ok("forced") => Ok(LastChunk::Forced),
        Ok(_) => Err(value.mismatch(LAST_CHUNK)),
        Err(_) => {
            let every = value.whole(1..=u64::from(u32::MAX), LAST_CHUNK)?;
            Ok(LastChunk::Every(every as u32))
        }
    }
}

const LAST_CHUNK: &str = "\"buffered\", \"forced\", or a whole number from 1: every so many chunks";

fn aside(table: &Section<'_>) -> Result<Option<Aside>, DocumentError> {
    if switch(table, "aside", Switch::On)? == Switch::Off {
        off(table, "fill", "aside")?;
        off(table, "most_back_percent", "aside")?;
        return Ok(None);
    }
    let default = Preemption::default().aside;
    let percent = table.get("most_back_percent").map(|value| {
        let percent = value.quantity(
            Unit::Percent,
            0.0..=100.0,
            "a number of percent from 0 to 100",
        )?;
        Ok((percent * 10.0).round() as u16)
    });
    let percent = percent.transpose()?;
    let fill = switch(table, "fill", Switch::On)?;
    Ok(default.map(|aside| Aside {
        fill,
        most_permille: percent.unwrap_or(aside.most_permille),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Places};
    use super::*;

    /// A drive with these lines in its table, or without a table.
    fn parse(belief: &str, policy: &str, lines: Option<&str>) -> Result<Config, DocumentError> {
        let table = lines.map_or_else(String::new, |lines| format!("[drive.preemption]\n{lines}"));
        let text = format!(
            "[[drive]]\nname = \"d\"\nbelief = \"{belief}\"\npolicy = \"{policy}\"\n\
             back_end = {{ kind = \"memory\", size = \"1 GiB\" }}\n\
             volume = [{{ name = \"v\" }}]\nexport = [{{ name = \"e\", volume = \"v\" }}]\n{table}"
        );
        let places = Places {
            data: "/data".into(),
            runtime: "/run".into(),
            base: "/etc".into(),
        };
        Config::parse("c.toml", &text, &places)
    }

    fn read(lines: &str) -> Result<Preemption, String> {
        let config = parse("quantum-atlas-10k", "sptf", Some(lines));
        let config = config.map_err(|error| error.to_string())?;
        Ok(config.drives[0].preemption.expect("it has the table"))
    }

    #[test]
    fn without_a_key_everything_is_as_suits_the_drive() {
        assert_eq!(read(""), Ok(Preemption::default()));
        let without = parse("quantum-atlas-10k", "sptf", None).unwrap();
        assert_eq!(without.drives[0].preemption, None);
        for entry in drive::catalog::ALL {
            let belief = entry.profile().expect("a shipped drive");
            let suited = preemption::Preemption::suited_to(&belief);
            let default = Preemption::default().rules(&belief);
            assert_eq!(default, suited, "{}", entry.name);
        }
    }

    #[test]
    fn everything_that_can_be_said_is_understood() {
        let all = "chunk = \"64 KiB\"\nlanding_us = 1500\nsplit = \"revolution\"\n\
                   split_cylinders = 700\nfree_prefetch = true\nlast_chunk = 8\nfill = false\n\
                   most_back_percent = 12.5\nwhen = \"always\"";
        let expected = Preemption {
            chunk: Chunk::Bytes(64 << 10),
            just_in_time: Some(Landing::Fixed(Duration::from_micros(1500))),
            split: Some(SplitCost::Revolution),
            split_cylinders: Some(700),
            free_prefetch: Switch::On,
            last_chunk: Some(LastChunk::Every(8)),
            aside: Some(Aside {
                fill: Switch::Off,
                most_permille: 125,
            }),
            when: When::Always,
        };
        assert_eq!(read(all), Ok(expected));
        let belief = drive::catalog::find("quantum-atlas-10k").unwrap();
        let belief = belief.profile().unwrap();
        let rules = expected.rules(&belief);
        assert_eq!(rules.chunk, Some(Sectors(128)));
        assert_eq!(rules.split.map(|split| split.longest), Some(700));
        let none = "chunk = \"whole\"\njust_in_time = false\nsplit = \"off\"\naside = false\n\
                    last_chunk = \"buffered\"";
        let rules = read(none).unwrap().rules(&belief);
        assert_eq!((rules.chunk, rules.just_in_time), (None, None));
        assert_eq!((rules.split, rules.aside), (None, None));
        assert_eq!(rules.last_chunk, LastChunk::Buffered);
    }

    /// Lines, and the error of each.
    const WRONG: [(&str, &str); 16] = [
        (
            "chunk = 0",
            "chunk: 0: expected \"auto\", \"whole\", or a size",
        ),
        ("chunk = \"5 kB\"", "chunk: \"5 kB\": expected \"auto\""),
        ("chunks = 1", "chunks: unknown key: did you mean `chunk`?"),
        (
            "just_in_time = 1",
            "just_in_time: 1: expected true or false",
        ),
        (
            "landing_us = 20001",
            "landing_us: 20001: expected microseconds, from 0 to 20000",
        ),
        (
            "just_in_time = false\nlanding_us = 5",
            "landing_us: just_in_time is off: expected no such key",
        ),
        (
            "split = \"hiden\"",
            "split: \"hiden\": expected one of \"off\", \"hidden\"",
        ),
        (
            "split_cylinders = 0",
            "split_cylinders: 0: expected a whole number of cylinders",
        ),
        (
            "split = \"off\"\nsplit_cylinders = 9",
            "split_cylinders: split is off: expected no such key",
        ),
        (
            "free_prefetch = \"on\"",
            "free_prefetch: \"on\": expected true or false",
        ),
        (
            "last_chunk = 0",
            "last_chunk: 0: expected \"buffered\", \"forced\", or a whole",
        ),
        (
            "last_chunk = \"last\"",
            "last_chunk: \"last\": expected \"buffered\"",
        ),
        (
            "aside = false\nfill = true",
            "fill: aside is off: expected no such key",
        ),
        (
            "aside = false\nmost_back_percent = 1",
            "most_back_percent: aside is off: expected no such key",
        ),
        (
            "most_back_percent = 101",
            "most_back_percent: 101: expected a number of percent",
        ),
        (
            "when = \"never\"",
            "when: \"never\": expected one of \"worth\", \"always\"",
        ),
    ];

    #[test]
    fn each_key_wrong_once_is_named_with_what_was_expected() {
        for (line, complaint) in WRONG {
            let error = read(line).expect_err(line);
            assert!(error.starts_with("c.toml:"), "{error}");
            assert!(
                error.contains(&format!("preemption.{complaint}")),
                "{line}: {error}"
            );
        }
        for (belief, policy, complaint) in [
            (
                "nothing",
                "c-look",
                "nothing is believed of the drive: expected a belief",
            ),
            (
                "quantum-atlas-10k",
                "drive",
                "policy drive leaves the order to the drive: expected",
            ),
        ] {
            let error = parse(belief, policy, Some(""))
                .expect_err(policy)
                .to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
