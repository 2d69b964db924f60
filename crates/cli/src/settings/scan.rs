//! The flags of a background scan.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lab::comparison::scan::{ALL, ScanSettings};
use scheduler::freeblock::Goal;
use scheduler::freeblock::plan::MOST_STOPS;
use simulator::run::AfterLoad;

/// A scan in the background.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A scan in the background")]
pub struct ScanArguments {
    /// Read all blocks in the background, or those given, such as 0..1000,5000..6000
    #[arg(long, value_name = "BLOCKS", num_args = 0..=1, default_missing_value = ALL)]
    pub scan: Option<String>,
    /// Go on with the blocks that a file says are left
    #[arg(long, value_name = "FILE", conflicts_with = "scan")]
    pub scan_from: Option<PathBuf>,
    /// Write which blocks are left into a file, to go on with later
    #[arg(long, value_name = "FILE")]
    pub scan_left: Option<PathBuf>,
    /// The load ends when so much of the scan is done
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub scan_until: Option<u32>,
    /// What happens when the load ends first
    #[arg(long, value_enum, value_name = "stop|finish")]
    pub after_load: Option<AfterLoadWord>,
    /// Added to predicted seeks, in ms; or `learned`, from errors and the impact budget
    #[arg(long, value_name = "MS|learned")]
    pub guard: Option<String>,
    /// Gaps so near to a whole revolution are left alone (fixed guard only)
    #[arg(long, value_name = "US")]
    pub near_miss_us: Option<f64>,
    /// How much longer requests may take on average for the scan's sake; otherwise 1
    #[arg(long, value_name = "PERCENT")]
    pub impact_percent: Option<f64>,
    /// Free reads on the tracks of the foreground's commands, and two a track
    #[arg(long)]
    pub same_track: bool,
    /// What makes one plan better than another; otherwise blocks
    #[arg(long, value_enum, value_name = "blocks|even")]
    pub goal: Option<GoalWord>,
    /// Free reads on one way; otherwise 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=MOST_STOPS as i64))]
    pub stops: Option<u8>,
    /// The share of head time that may be spent on the scan; otherwise 0
    #[arg(long, value_name = "PERCENT")]
    pub paid_percent: Option<f64>,
    /// Read by itself when no request has been there for so long, or `never`; otherwise 10
    #[arg(long, value_name = "MS|never")]
    pub idle_ms: Option<String>,
    /// When the scan should be done: head time is paid only if it would otherwise be late
    #[arg(long, value_name = "S")]
    pub deadline: Option<f64>,
}

/// What makes one plan better than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GoalWord {
    /// The most blocks now
    Blocks,
    /// The greatest part of a revolution, what clears its track first: the end comes sooner
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

/// What happens when the load ends and the scan has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AfterLoadWord {
    /// The run is over
    Stop,
    /// It goes on in idle time
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
    /// The settings that the flags mean.
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
            same_track: self.same_track,
            goal: self.goal.map(Into::into),
            stops: self.stops,
            paid_percent: self.paid_percent,
            idle_ms: self.idle_ms.clone(),
            deadline: self.deadline,
        }
    }
}
