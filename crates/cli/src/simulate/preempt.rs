//! The flags of preemption, and the rules that they mean.

use std::fmt;

use block::{Duration, Sectors, Switch};
use clap::{Args, ValueEnum};
use drive::Profile;
use engine::Preempted;
use scheduler::Preemption;
use scheduler::preemption::{Aside, Landing, LastChunk, Split, When};
use serde::Serialize;

use super::figures::PolicyRun;
use super::truth::OnOff;
use crate::output::Failure;

/// Large requests that step aside.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Large requests that step aside for more urgent ones")]
pub struct PreemptArguments {
    /// Serve large requests in parts, under the rules that suit the drive, or those of Virtual IO (2002); the
    /// flags below change single ones
    #[arg(long, value_enum, value_name = "suited|paper", num_args = 0..=1, default_missing_value = "suited")]
    pub preempt: Option<RulesName>,
    /// The size of a part
    #[arg(long, value_name = "KIB|off", requires = "preempt")]
    pub chunk_kib: Option<String>,
    /// Begin a seek so that it lands just before its sector: as long before as seeks are found to need, or so long
    #[arg(long, value_name = "learned|MS|off", requires = "preempt")]
    pub just_in_time: Option<String>,
    /// The most cylinders that one seek crosses
    #[arg(long, value_name = "CYLINDERS|off", requires = "preempt")]
    pub split: Option<String>,
    /// Read on behind a request while the next one has time
    #[arg(long, value_enum, value_name = "on|off", requires = "preempt")]
    pub free_prefetch: Option<OnOff>,
    /// Which parts of a write go to the medium at once: none, the last, or every so many
    #[arg(long, value_name = "off|last|N", requires = "preempt")]
    pub last_chunk: Option<String>,
    /// The most head time that stepping aside may cost
    #[arg(long, value_name = "PERCENT|off", requires = "preempt")]
    pub step_aside: Option<String>,
    /// Do what is switched on always, not where it is worth it
    #[arg(long, requires = "preempt")]
    pub always: bool,
}

/// Where rules come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RulesName {
    /// What suits the drive
    Suited,
    /// Dimitrijevic, Rangaswami, Chang: Virtual IO (2002)
    Paper,
}

/// What stepping aside came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stepped {
    /// Commands that were parts of requests.
    pub parts: u64,
    /// How often a request stepped aside.
    pub aside: u64,
    /// What the ways back are believed to have taken, in milliseconds.
    pub ways_back_ms: f64,
    /// Parts that went on while something urgent waited for its sector.
    pub filled: u64,
    /// Commands that were held back for a just-in-time seek.
    pub held_back: u64,
    /// Of those, the ones that missed their sector.
    pub missed: u64,
    /// Seeks that were stops on the way of a longer one.
    pub stops: u64,
    /// What was read ahead in slack, in megabytes (10^6 bytes).
    pub read_ahead_mb: f64,
}

impl Stepped {
    /// As the engine counted, on a drive.
    pub fn new(told: &Preempted, drive: &Profile) -> Self {
        let bytes = told.read_ahead.0 as f64 * f64::from(drive.block_bytes);
        Stepped {
            parts: told.parts,
            aside: told.aside,
            ways_back_ms: told.back.as_secs_f64() * 1e3,
            filled: told.filled,
            held_back: told.held,
            missed: told.missed,
            stops: told.hops,
            read_ahead_mb: bytes / 1e6,
        }
    }
}

impl fmt::Display for Stepped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stepped {
            parts,
            aside,
            ways_back_ms,
            filled,
            held_back,
            missed,
            stops,
            read_ahead_mb,
        } = self;
        write!(
            f,
            "{parts} parts, {filled} of them in others' slack; {aside} times aside, ways back {ways_back_ms:.0} ms; \
             {held_back} held back, {missed} missed; {stops} stops; {read_ahead_mb:.1} MB read ahead"
        )
    }
}

impl PreemptArguments {
    /// The rules for a drive; `None` if requests are served whole.
    ///
    /// # Errors
    /// If a value makes no sense.
    pub fn rules(&self, belief: &Profile) -> Result<Option<Preemption>, Failure> {
        let Some(name) = self.preempt else {
            return Ok(None);
        };
        let mut rules = match name {
            RulesName::Suited => Preemption::suited_to(belief),
            RulesName::Paper => Preemption::as_in_paper(belief),
        };
        if let Some(text) = &self.chunk_kib {
            rules.chunk = or_off(text, "chunk-kib", "KiB, at least one block,", |text| {
                let bytes = text.parse::<u64>().ok()?.checked_mul(1024)?;
                let blocks = bytes / u64::from(belief.block_bytes);
                (blocks > 0).then_some(Sectors(blocks))
            })?;
        }
        if let Some(text) = &self.just_in_time {
            let expected = "`learned`, or milliseconds up to 1000,";
            rules.just_in_time = or_off(text, "just-in-time", expected, |text| match text {
                "learned" => Some(Landing::Learned),
                millis => {
                    let millis = millis.parse::<f64>().ok()?;
                    let nanos = (0.0..=1e3).contains(&millis).then_some(millis * 1e6)?;
                    Some(Landing::Fixed(Duration::from_nanos(nanos as u64)))
                }
            })?;
        }
        if let Some(text) = &self.split {
            let cost = rules.split.map(|split| split.cost);
            let cylinders = or_off(text, "split", "a number of cylinders", |text| {
                text.parse::<u32>().ok().filter(|&longest| longest > 0)
            })?;
            rules.split = cylinders
                .zip(cost)
                .map(|(longest, cost)| Split { longest, cost });
        }
        if let Some(switch) = self.free_prefetch {
            rules.free_prefetch = match switch {
                OnOff::On => Switch::On,
                OnOff::Off => Switch::Off,
            };
        }
        if let Some(text) = &self.last_chunk {
            let expected = "`last`, or a number of parts,";
            let forced = or_off(text, "last-chunk", expected, |text| match text {
                "last" => Some(LastChunk::Forced),
                every => every.parse().ok().filter(|&n| n > 0).map(LastChunk::Every),
            })?;
            rules.last_chunk = forced.unwrap_or_default();
        }
        if let Some(text) = &self.step_aside {
            let fill = rules.aside.map_or(Switch::On, |aside| aside.fill);
            rules.aside = or_off(text, "step-aside", "per cent of head time", |text| {
                let percent = text.parse::<f64>().ok()?;
                let most = (0.0..=100.0).contains(&percent).then_some(percent * 10.0)?;
                Some(Aside {
                    fill,
                    most_permille: most as u16,
                })
            })?;
        }
        if self.always {
            rules.when = When::Always;
        }
        Ok(Some(rules))
    }
}

/// What stepping aside came to under each policy, where requests may.
pub fn text(runs: &[PolicyRun]) -> String {
    let mut text = String::new();
    for run in runs {
        if let Some(stepped) = &run.preempted {
            text.push_str(&format!("  {}  {stepped}\n", run.policy.name()));
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("  requests in parts\n{text}"),
    }
}

/// A value, or none if the text is `off`.
fn or_off<T>(
    text: &str,
    flag: &str,
    expected: &str,
    value: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    if text == "off" {
        return Ok(None);
    }
    match value(text) {
        Some(value) => Ok(Some(value)),
        None => Err(Failure::input(format!(
            "--{flag} {text}: expected {expected} or `off`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use drive::catalog;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        preempt: PreemptArguments,
    }

    fn rules(flags: &str) -> Result<Option<Preemption>, String> {
        let flags = std::iter::once("simulate").chain(flags.split_whitespace());
        let command = Command::try_parse_from(flags).map_err(|error| error.to_string())?;
        let drive = catalog::find("modern-20tb").expect("a shipped drive");
        let drive = drive.profile().expect("a good profile");
        let rules = command.preempt.rules(&drive);
        rules.map_err(|failure| failure.to_string())
    }

    #[test]
    fn each_rule_can_be_switched_alone() {
        assert_eq!(rules(""), Ok(None));
        let suited = rules("--preempt").expect("good").expect("rules");
        let with = |flags: &str| {
            rules(&format!("--preempt {flags}"))
                .expect("good")
                .expect("rules")
        };
        let cases = [
            (
                "--chunk-kib off",
                Preemption {
                    chunk: None,
                    ..suited
                },
            ),
            (
                "--chunk-kib 64",
                Preemption {
                    chunk: Some(Sectors(16)),
                    ..suited
                },
            ),
            (
                "--just-in-time off",
                Preemption {
                    just_in_time: None,
                    ..suited
                },
            ),
            (
                "--split off",
                Preemption {
                    split: None,
                    ..suited
                },
            ),
            (
                "--free-prefetch on",
                Preemption {
                    free_prefetch: Switch::On,
                    ..suited
                },
            ),
            (
                "--last-chunk last",
                Preemption {
                    last_chunk: LastChunk::Forced,
                    ..suited
                },
            ),
            (
                "--last-chunk 4",
                Preemption {
                    last_chunk: LastChunk::Every(4),
                    ..suited
                },
            ),
            (
                "--step-aside off",
                Preemption {
                    aside: None,
                    ..suited
                },
            ),
            (
                "--always",
                Preemption {
                    when: When::Always,
                    ..suited
                },
            ),
        ];
        for (flags, expected) in cases {
            assert_eq!(with(flags), expected, "{flags}");
        }
        let fixed = Landing::Fixed(Duration::from_micros(1_500));
        assert_eq!(with("--just-in-time 1.5").just_in_time, Some(fixed));
        assert_eq!(
            with("--step-aside 5").aside.map(|it| it.most_permille),
            Some(50)
        );
        assert_eq!(with("--split 1000").split.map(|it| it.longest), Some(1000));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for flags in [
            "--chunk-kib 0",
            "--chunk-kib -3",
            "--just-in-time soon",
            "--just-in-time 2000",
            "--split 0",
            "--last-chunk 0",
            "--step-aside 101",
        ] {
            let refused = rules(&format!("--preempt {flags}")).expect_err(flags);
            assert!(
                refused.contains("expected") || refused.contains("unexpected"),
                "{refused}"
            );
        }
        assert!(rules("--split 10").is_err(), "without --preempt");
    }
}
