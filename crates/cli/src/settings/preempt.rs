//! The flags of preemption.

use clap::{Args, ValueEnum};
use lab::comparison::preempt::{PreemptSettings, RulesName};

use super::truth::SwitchWord;

/// Preemption of large requests.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Large requests that step aside for more urgent ones")]
pub struct PreemptArguments {
    /// Serve large requests in parts, under the rules for this drive (`suited`) or those of Virtual
    /// IO (`paper`). The flags below change single rules
    #[arg(long, value_enum, value_name = "suited|paper", num_args = 0..=1, default_missing_value = "suited")]
    pub preempt: Option<RulesWord>,
    /// Size of a part
    #[arg(long, value_name = "KIB|off", requires = "preempt")]
    pub chunk_kib: Option<String>,
    /// Delay a seek so that it lands just before its sector: by the learned margin, or by this many
    /// milliseconds
    #[arg(long, value_name = "learned|MS|off", requires = "preempt")]
    pub just_in_time: Option<String>,
    /// Longest seek of one command, in cylinders
    #[arg(long, value_name = "CYLINDERS|off", requires = "preempt")]
    pub split: Option<String>,
    /// Read on behind a request until the next one is due
    #[arg(long, value_enum, value_name = "on|off", requires = "preempt")]
    pub free_prefetch: Option<SwitchWord>,
    /// Parts of a write that bypass the write cache: none, the last, or every Nth
    #[arg(long, value_name = "off|last|N", requires = "preempt")]
    pub last_chunk: Option<String>,
    /// Largest share of head time for preemption
    #[arg(long, value_name = "PERCENT|off", requires = "preempt")]
    pub step_aside: Option<String>,
    /// Apply the rules always, not only where they pay
    #[arg(long, requires = "preempt")]
    pub always: bool,
}

/// The origin of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RulesWord {
    /// The rules for this drive
    Suited,
    /// Dimitrijevic, Rangaswami, Chang: Virtual IO (2002)
    Paper,
}

impl From<RulesWord> for RulesName {
    fn from(word: RulesWord) -> Self {
        match word {
            RulesWord::Suited => RulesName::Suited,
            RulesWord::Paper => RulesName::Paper,
        }
    }
}

impl PreemptArguments {
    /// The settings of the flags.
    pub fn settings(&self) -> PreemptSettings {
        PreemptSettings {
            preempt: self.preempt.map(Into::into),
            chunk_kib: self.chunk_kib.clone(),
            just_in_time: self.just_in_time.clone(),
            split: self.split.clone(),
            free_prefetch: self.free_prefetch.map(Into::into),
            last_chunk: self.last_chunk.clone(),
            step_aside: self.step_aside.clone(),
            always: self.always,
        }
    }
}

#[cfg(test)]
mod tests {
    use block::{Duration, Sectors, Switch};
    use clap::Parser;
    use drive::catalog;
    use lab::Failure;
    use scheduler::Preemption;
    use scheduler::preemption::{Landing, LastChunk, When};

    use super::*;

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
        let rules = command.preempt.settings().rules(&drive);
        rules.map_err(|failure| match failure {
            Failure::Input(problem) => problem,
            other => panic!("{other:?}"),
        })
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
        ];
        for (flags, expected) in cases {
            assert_eq!(with(flags), expected, "{flags}");
        }
    }

    #[test]
    fn values_are_what_they_say() {
        let with = |flags: &str| {
            let rules = rules(&format!("--preempt {flags}")).expect("good");
            rules.expect("rules")
        };
        assert_eq!(with("--step-aside off").aside, None);
        assert_eq!(with("--always").when, When::Always);
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
