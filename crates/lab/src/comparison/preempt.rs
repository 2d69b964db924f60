//! The settings of preemption, and their rules.

use std::fmt;

use block::{Duration, Sectors, Switch};
use document::quantity::Unit;
use drive::Profile;
use engine::Preempted;
use scheduler::Preemption;
use scheduler::preemption::{Aside, Landing, LastChunk, Split, When};
use serde::Serialize;

use super::truth::OnOff;
use crate::Failure;

/// The settings of preemption.
#[derive(Clone, Debug, Default)]
pub struct PreemptSettings {
    /// The base of the rules: those for this drive, or those of Virtual IO (2002). Requests are
    /// served whole without it. The other settings change single rules.
    pub preempt: Option<RulesName>,
    /// The size of a part.
    pub chunk_kib: Option<String>,
    /// The margin of a just-in-time seek before its sector, in ms, or `learned`.
    pub just_in_time: Option<String>,
    /// The longest seek of one command, in cylinders.
    pub split: Option<String>,
    /// Whether a request reads on behind its end until the next one is due.
    pub free_prefetch: Option<OnOff>,
    /// The parts of a write that bypass the write cache: none, the last, or every Nth.
    pub last_chunk: Option<String>,
    /// The largest share of head time for preemption.
    pub step_aside: Option<String>,
    /// Whether the rules apply always, not only where they pay.
    pub always: bool,
}

/// The origin of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesName {
    /// The rules for this drive.
    Suited,
    /// Dimitrijevic, Rangaswami, Chang: Virtual IO (2002).
    Paper,
}

/// The counts of preemption.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stepped {
    /// Commands that were parts of requests.
    pub parts: u64,
    /// The number of preempted requests.
    pub aside: u64,
    /// The believed head time of the seeks back, in milliseconds.
    pub ways_back_ms: f64,
    /// Parts that were dispatched while an urgent request waited for its sector.
    pub filled: u64,
    /// Commands that were delayed for a just-in-time seek.
    pub held_back: u64,
    /// Delayed commands that missed their sector.
    pub missed: u64,
    /// Stops of split seeks.
    pub stops: u64,
    /// Megabytes (10^6 bytes) that were read ahead in slack.
    pub read_ahead_mb: f64,
}

impl Stepped {
    /// Converts an engine's counts on a drive.
    pub fn new(counts: &Preempted, drive: &Profile) -> Self {
        let bytes = counts.read_ahead.0 as f64 * f64::from(drive.block_bytes);
        Stepped {
            parts: counts.parts,
            aside: counts.aside,
            ways_back_ms: counts.back.as_secs_f64() * 1e3,
            filled: counts.filled,
            held_back: counts.held,
            missed: counts.missed,
            stops: counts.hops,
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

impl PreemptSettings {
    /// The rules for a drive; `None` if requests are served whole.
    ///
    /// # Errors
    /// If a value is invalid.
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
                let kib = Unit::Kibibytes.read(text).filter(|kib| *kib < MOST_KIB)?;
                let blocks = (kib * 1024.0) as u64 / u64::from(belief.block_bytes);
                (blocks > 0).then_some(Sectors(blocks))
            })?;
        }
        if let Some(text) = &self.just_in_time {
            let expected = "`learned`, or milliseconds up to 1000,";
            rules.just_in_time = or_off(text, "just-in-time", expected, |text| match text {
                "learned" => Some(Landing::Learned),
                millis => {
                    let millis = Unit::Milliseconds.read(millis)?;
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
                let percent = Unit::Percent.read(text)?;
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

/// Above all parts: a TiB. A choice.
const MOST_KIB: f64 = (1_u64 << 30) as f64;

/// A value; `None` if the text is `off`.
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
