//! `[drive.streams]`: the guarantees of a drive, and the quotas of users.

use std::time::Duration;

use document::quantity::Unit;
use document::{DocumentError, Section};
use scheduler::policy::NamedPolicy;

use super::Belief;
use super::foreseen::is_foreseen;
use super::size::{bytes, bytes_per_second};

/// The guarantees of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsConfig {
    /// The share of head time reserved for the foreground, in thousandths.
    pub foreground_permille: u32,
    /// The longest round.
    pub longest_round: Duration,
    /// The latency of the host.
    pub latency: Duration,
    /// The largest number of streams.
    pub streams: u32,
    /// Bytes of all buffers together.
    pub memory: u64,
    /// The error of the believed seek time at worst.
    pub seek_margin: Duration,
    /// The additional time of electronics, or of an emulator's timers, for a command.
    pub overhead_margin: Duration,
    /// The time that a round may lose besides: a recalibration, retries.
    pub stall: Duration,
    /// The quotas. The first rule that matches decides. Without rules there is no quota.
    pub rules: Vec<StreamRule>,
}

/// A quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRule {
    /// The user, or all users.
    pub user: Option<u32>,
    /// The begin of the streams' names, or all names.
    pub name: Option<String>,
    /// The largest number of streams.
    pub streams: u32,
    /// The sum of rates, in bytes a second.
    pub rate: u64,
    /// The sum of shares of the head, each as of a single stream, in thousandths.
    pub head_permille: u64,
}

impl Default for StreamsConfig {
    fn default() -> Self {
        StreamsConfig {
            // Choices: what issue 7 grants its cameras beside; a stream that begins waits as long
            // for its first batch; Linux on a busy machine; more than any drive serves; 64 of 4 MB.
            foreground_permille: 300,
            longest_round: Duration::from_secs(2),
            latency: Duration::from_millis(10),
            streams: 256,
            memory: 256 << 20,
            // Choices: the 99.9th percentile of what drives' seeks scatter (specs/drive.md), and
            // of what timers are late.
            seek_margin: Duration::from_micros(100),
            overhead_margin: Duration::from_micros(200),
            stall: Duration::ZERO,
            rules: Vec::new(),
        }
    }
}

impl StreamsConfig {
    /// The keys of the table.
    pub const KEYS: [&str; 9] = [
        "foreground_percent",
        "longest_round_s",
        "latency_ms",
        "streams",
        "memory",
        "seek_margin_us",
        "overhead_margin_us",
        "stall_ms",
        "rule",
    ];

    /// Reads the table, whose keys were checked.
    ///
    /// # Errors
    /// If a value is invalid.
    pub fn read(table: &Section<'_>) -> Result<StreamsConfig, DocumentError> {
        let default = StreamsConfig::default();
        let percent = table.get("foreground_percent").map(|value| {
            let percent = value.quantity(
                Unit::Percent,
                0.0..=99.0,
                "a number of percent from 0 to 99",
            )?;
            Ok((percent * 10.0).round() as u32)
        });
        let streams = table
            .get("streams")
            .map(|value| value.whole(1..=MOST, STREAMS));
        let memory = table.get("memory").map(|value| match bytes(&value, 1)? {
            0 => Err(value.mismatch("more than 0 bytes: without memory no stream is granted")),
            bytes => Ok(bytes),
        });
        Ok(StreamsConfig {
            foreground_permille: percent.transpose()?.unwrap_or(default.foreground_permille),
            longest_round: time(table, "longest_round_s", SECONDS, default.longest_round)?,
            latency: time(table, "latency_ms", MILLIS, default.latency)?,
            streams: streams
                .transpose()?
                .map_or(default.streams, |count| count as u32),
            memory: memory.transpose()?.unwrap_or(default.memory),
            seek_margin: time(table, "seek_margin_us", MICROS, default.seek_margin)?,
            overhead_margin: time(table, "overhead_margin_us", MICROS, default.overhead_margin)?,
            stall: time(table, "stall_ms", MILLIS, default.stall)?,
            rules: rules(table)?,
        })
    }
}

/// The table of a drive, if it has one.
pub(super) fn streams(
    drive: &Section<'_>,
    belief: &Belief,
    policy: NamedPolicy,
) -> Result<Option<StreamsConfig>, DocumentError> {
    let Some(table) = drive.section("streams", &StreamsConfig::KEYS)? else {
        return Ok(None);
    };
    is_foreseen(&table, belief, policy, "what it can promise")?;
    if drive.get("capture").is_some() {
        let problem = "streams are not captured: expected no key capture beside them";
        return Err(table.error(problem));
    }
    StreamsConfig::read(&table).map(Some)
}

/// The largest number of streams in the file. A choice: buffers of 4 KiB each are 4 GiB then.
const MOST: u64 = 1 << 20;
const STREAMS: &str = "a whole number of streams, from 1 to 1048576";

/// Units of times, with their seconds.
const SECONDS: (Unit, f64) = (Unit::Seconds, 1.0);
const MILLIS: (Unit, f64) = (Unit::Milliseconds, 1e-3);
const MICROS: (Unit, f64) = (Unit::Microseconds, 1e-6);

/// A duration as a number of a unit.
fn time(
    table: &Section<'_>,
    key: &str,
    (unit, seconds): (Unit, f64),
    default: Duration,
) -> Result<Duration, DocumentError> {
    let Some(value) = table.get(key) else {
        return Ok(default);
    };
    // An hour: longer is no round, and no delay of a host.
    let most = 3600.0 / seconds;
    let number = value.quantity(unit, 0.0..=most, "a number, an hour at most")?;
    Ok(Duration::from_secs_f64(number * seconds))
}

fn rules(table: &Section<'_>) -> Result<Vec<StreamRule>, DocumentError> {
    let tables = table.sections("rule")?;
    tables.iter().map(rule).collect()
}

fn rule(table: &Section<'_>) -> Result<StreamRule, DocumentError> {
    table.only(&["user", "name", "streams", "rate", "head_percent"])?;
    let user = table.get("user").map(|value| {
        let user = value.whole(0..=u64::from(u32::MAX), "a user's number")?;
        Ok(user as u32)
    });
    let name = table.get("name").map(|value| {
        let name = value.text("how names of streams begin")?;
        Ok(name.to_owned())
    });
    let streams = table
        .get("streams")
        .map(|value| value.whole(0..=MOST, STREAMS));
    let rate = table.get("rate").map(|value| bytes_per_second(&value));
    let head = table.get("head_percent").map(|value| {
        let percent = value.quantity(
            Unit::Percent,
            0.0..=100.0,
            "a number of percent from 0 to 100",
        )?;
        Ok((percent * 10.0).round() as u64)
    });
    Ok(StreamRule {
        user: user.transpose()?,
        name: name.transpose()?,
        streams: streams.transpose()?.map_or(u32::MAX, |count| count as u32),
        rate: rate.transpose()?.unwrap_or(u64::MAX),
        head_permille: head.transpose()?.unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Places};
    use super::*;

    fn parse(belief: &str, policy: &str, lines: &str) -> Result<Config, DocumentError> {
        let text = format!(
            "[[drive]]\nname = \"d\"\nbelief = \"{belief}\"\npolicy = \"{policy}\"\n\
             back_end = {{ kind = \"memory\", size = \"1 GiB\" }}\n\
             volume = [{{ name = \"v\" }}]\nexport = [{{ name = \"e\", volume = \"v\" }}]\n{lines}"
        );
        let places = Places {
            data: "/data".into(),
            runtime: "/run".into(),
            base: "/etc".into(),
        };
        Config::parse("c.toml", &text, &places)
    }

    fn read(lines: &str) -> Result<Option<StreamsConfig>, String> {
        let config = parse("dec-rz26", "sptf-sw60", lines).map_err(|error| error.to_string())?;
        Ok(config.drives[0].streams.clone())
    }

    #[test]
    fn nothing_is_promised_without_the_table_and_the_defaults_with_it() {
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("[drive.streams]"), Ok(Some(StreamsConfig::default())));
    }

    #[test]
    fn every_key_is_read() {
        let lines = "[drive.streams]\nforeground_percent = 12.5\nlongest_round_s = 3\n\
                     latency_ms = 5\nstreams = 7\nmemory = \"16 MiB\"\nseek_margin_us = 19\n\
                     overhead_margin_us = 50\nstall_ms = 40\n\
                     [[drive.streams.rule]]\nuser = 1000\nname = \"camera-\"\nstreams = 3\n\
                     rate = \"10 MB\"\nhead_percent = 25\n[[drive.streams.rule]]\nstreams = 0";
        let expected = StreamsConfig {
            foreground_permille: 125,
            longest_round: Duration::from_secs(3),
            latency: Duration::from_millis(5),
            streams: 7,
            memory: 16 << 20,
            seek_margin: Duration::from_micros(19),
            overhead_margin: Duration::from_micros(50),
            stall: Duration::from_millis(40),
            rules: vec![
                StreamRule {
                    user: Some(1000),
                    name: Some("camera-".to_owned()),
                    streams: 3,
                    rate: 10_000_000,
                    head_permille: 250,
                },
                StreamRule {
                    user: None,
                    name: None,
                    streams: 0,
                    rate: u64::MAX,
                    head_permille: u64::MAX,
                },
            ],
        };
        assert_eq!(read(lines), Ok(Some(expected)));
    }

    #[test]
    fn what_is_wrong_says_where_and_what_was_expected() {
        for (lines, part) in [
            ("[drive.streams]\nforeground_percent = 100", "0 to 99"),
            ("[drive.streams]\nmemori = 1", "did you mean `memory`?"),
            ("[drive.streams]\nmemory = 0", "more than 0 bytes"),
            ("[drive.streams]\nlongest_round_s = -1", "an hour at most"),
            (
                "[drive.streams]\n[[drive.streams.rule]]\nuser = \"me\"",
                "a user's number",
            ),
            ("[drive.streams]\nlongest_round_s = 3601", "an hour at most"),
            ("[drive.streams]\nlatency_ms = \"10 kB\"", "an hour at most"),
            ("[drive.streams]\nseek_margin_us = -5", "an hour at most"),
            (
                "[drive.streams]\noverhead_margin_us = true",
                "an hour at most",
            ),
            ("[drive.streams]\nstall_ms = [1]", "an hour at most"),
            ("[drive.streams]\nstreams = 0", STREAMS),
            ("capture = \"c\"\n[drive.streams]", "not captured"),
        ] {
            let problem = read(lines).expect_err(lines);
            assert!(problem.contains(part), "{problem}");
        }
        let table = "[drive.streams]";
        for (belief, policy, part) in [
            ("nothing", "c-look", "nothing is believed"),
            ("dec-rz26", "drive", "leaves the order to the drive"),
        ] {
            let problem = parse(belief, policy, table).expect_err(part).to_string();
            assert!(problem.contains(part), "{problem}");
        }
    }
}
