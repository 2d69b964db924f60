//! The flags of a background scan.

use std::path::PathBuf;

use super::units::{in_unit, whole_in};
use clap::{Args, ValueEnum};
use document::quantity::Unit;
use lab::comparison::scan::{ALL, ScanSettings};
use scheduler::freeblock::plan::MOST_STOPS;
use scheduler::freeblock::{Goal, SameTrack, SameTrackRule};
use simulator::run::AfterLoad;

/// A scan in the background.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A scan in the background")]
pub struct ScanArguments {
    /// Read all blocks in the background, or these: 0..1000,5000..6000
    #[arg(long, value_name = "BLOCKS", num_args = 0..=1, default_missing_value = ALL)]
    pub scan: Option<String>,
    /// Continue with the remaining blocks in this file
    #[arg(long, value_name = "FILE", conflicts_with = "scan")]
    pub scan_from: Option<PathBuf>,
    /// Write the remaining blocks to this file
    #[arg(long, value_name = "FILE")]
    pub scan_left: Option<PathBuf>,
    /// End the load at this progress of the scan
    #[arg(long, value_name = "PERCENT", value_parser = whole_in::<u32>(Unit::Percent, 1..=100))]
    pub scan_until: Option<u32>,
    /// What the scan does if the load ends first
    #[arg(long, value_enum, value_name = "stop|finish")]
    pub after_load: Option<AfterLoadWord>,
    /// Time added to predicted seeks, in ms; or `learned` from errors and the impact budget
    #[arg(long, value_name = "MS|learned")]
    pub guard: Option<String>,
    /// Leave gaps alone that are this close to a whole revolution (fixed guard only)
    #[arg(long, value_name = "US", value_parser = in_unit(Unit::Microseconds))]
    pub near_miss_us: Option<f64>,
    /// Permitted increase of the mean response time [default: 2, as in a service]
    #[arg(long, value_name = "PERCENT", value_parser = in_unit(Unit::Percent))]
    pub impact_percent: Option<f64>,
    /// Free reads on the tracks of foreground commands, and two on a track. `auto`: if the believed drive
    /// has no look-ahead, which they start [default: auto; without a value: allowed]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "auto|never|allowed",
        num_args = 0..=1,
        default_missing_value = "allowed"
    )]
    pub same_track: Option<SameTrackWord>,
    /// How plans are ranked [default: blocks]
    #[arg(long, value_enum, value_name = "blocks|even")]
    pub goal: Option<GoalWord>,
    /// Largest number of stops in one gap [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=MOST_STOPS as i64))]
    pub stops: Option<u8>,
    /// Share of head time that the scan may spend [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = in_unit(Unit::Percent))]
    pub paid_percent: Option<f64>,
    /// Idle time before the scan reads by itself, or `never` [default: 10]
    #[arg(long, value_name = "MS|never")]
    pub idle_ms: Option<String>,
    /// Seconds until the scan should be done. Head time is spent only if the scan would be late
    #[arg(long, value_name = "S", value_parser = in_unit(Unit::Seconds))]
    pub deadline: Option<f64>,
}

/// The words of [`SameTrackRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SameTrackWord {
    /// If the believed drive has no look-ahead
    Auto,
    /// No such reads
    Never,
    /// Always
    Allowed,
}

impl From<SameTrackWord> for SameTrackRule {
    fn from(word: SameTrackWord) -> Self {
        match word {
            SameTrackWord::Auto => SameTrackRule::Derived,
            SameTrackWord::Never => SameTrackRule::Stated(SameTrack::Never),
            SameTrackWord::Allowed => SameTrackRule::Stated(SameTrack::Allowed),
        }
    }
}

/// How plans are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GoalWord {
    /// The most blocks of this gap
    Blocks,
    /// The largest part of a revolution, for tracks that it completes first: the scan ends sooner
    Even,
}

impl From<GoalWord> for Goal {
    fn from(word: GoalWord) -> Self {
        match word {
            GoalWord::Blocks => Goal::Blocks,
            GoalWord::Even => Goal::Even,
        }
    }
}

/// The scan's behaviour when the load ends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AfterLoadWord {
    /// The run ends
    Stop,
    /// The scan continues in idle time
    Finish,
}

impl From<AfterLoadWord> for AfterLoad {
    fn from(word: AfterLoadWord) -> Self {
        match word {
            AfterLoadWord::Stop => AfterLoad::Stop,
            AfterLoadWord::Finish => AfterLoad::Finish,
        }
    }
}

impl ScanArguments {
    /// The settings of the flags.
    pub fn settings(&self) -> ScanSettings {
        ScanSettings {
            scan: self.scan.clone(),
            scan_from: self.scan_from.clone(),
            scan_left: self.scan_left.clone(),
            scan_until: self.scan_until,
            after_load: self.after_load.map(Into::into),
            guard: self.guard.clone(),
            near_miss_us: self.near_miss_us,
            impact_percent: self.impact_percent,
            same_track: self.same_track.map(Into::into),
            goal: self.goal.map(Into::into),
            stops: self.stops,
            paid_percent: self.paid_percent,
            idle_ms: self.idle_ms.clone(),
            deadline: self.deadline,
        }
    }
}
