//! `cargo xtask swarm`: whole services in virtual time, drawn from seeds, with faults.
//!
//! It runs the test binary `swarm` of the crate `server`, which says what it checks. A failure is printed with
//! its seed, its setting and the shortest steps that still fail.

use std::process::Command;

use crate::Failure;
use crate::repository;

const USAGE: &str =
    "usage: cargo xtask swarm --seeds N [--from S] | --minutes M [--from S] | --seed S

  --seeds N     the seeds from S on, so many (S is 0 by default)
  --minutes M   the seeds from S on, for so long
  --seed S      this one, with its setting

example: cargo xtask swarm --minutes 10 --from 100000";

/// `cargo xtask swarm --seeds N | --minutes M | --seed S`.
///
/// # Errors
/// If a seed fails.
pub fn run(words: &[String]) -> Result<(), Failure> {
    let (wanted, from) = parse(words).ok_or_else(|| Failure::Usage(USAGE.to_string()))?;
    let status = Command::new(repository::cargo())
        .args(["test", "--locked", "--profile", "swarm"])
        .args(["-p", "server", "--test", "swarm", "--"])
        .args(["--exact", "--nocapture", "all_seeds_pass"])
        .env("HEADTIME_SWARM", &wanted)
        .env("HEADTIME_SWARM_FROM", from.to_string())
        .current_dir(repository::root())
        .status()
        .map_err(|error| Failure::Usage(format!("cargo test: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Found(format!(
            "swarm: {wanted} from {from}: a seed failed"
        ))),
    }
}

/// What the test binary is told, and the first seed.
fn parse(words: &[String]) -> Option<(String, u64)> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (kind, number, from) = match words[..] {
        [kind, number] => (kind, number, 0),
        [kind, number, "--from", from] if kind != "--seed" => (kind, number, from.parse().ok()?),
        _ => return None,
    };
    let is_number = match kind {
        "--seeds" | "--seed" => number.parse::<u64>().is_ok(),
        "--minutes" => number.parse().is_ok_and(|minutes: f64| minutes > 0.0),
        _ => false,
    };
    is_number.then(|| (format!("{} {number}", kind.trim_start_matches('-')), from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_how_much_are_taken_and_others_are_not() {
        let parsed = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            parse(&words)
        };
        let seeds = |text: &str, from| Some((text.to_owned(), from));
        assert_eq!(parsed("--seeds 100"), seeds("seeds 100", 0));
        assert_eq!(parsed("--minutes 0.5 --from 7"), seeds("minutes 0.5", 7));
        assert_eq!(
            parsed("--seed 18446744073709551615"),
            seeds("seed 18446744073709551615", 0)
        );
        for bad in [
            "",
            "--seeds",
            "--seeds x",
            "--minutes 0",
            "--minutes nan",
            "--seed 1 --from 2",
            "--hours 1",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
