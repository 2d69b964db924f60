//! The flags of the truth: noise, switches and bus of a drive.

use super::units::in_unit;
use clap::{Args, ValueEnum};
use document::quantity::Unit;
use lab::comparison::host_delays::HostDelays;
use lab::comparison::truth::{
    HeldAhead, LateSeeks, OnOff, OwnScan, TruthSettings, held_ahead, late_seeks, own_scan,
};

/// The truth of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Args)]
pub struct TruthArguments {
    /// Standard deviation of seek times, which the belief does not contain
    #[arg(long, help_heading = HEADING, value_name = "US", value_parser = in_unit(Unit::Microseconds))]
    pub seek_noise_us: Option<f64>,
    /// Seeks in 1,000 that settle late, and their delay in milliseconds, such as 10:1.5
    #[arg(long, help_heading = HEADING, value_name = "PERMILLE:MS", value_parser = late_seeks)]
    pub late_seeks: Option<LateSeeks>,
    /// Blocks of look-ahead that delay the next command after a second read of a track (64), or
    /// after every read (64:every)
    #[arg(long, help_heading = HEADING, value_name = "BLOCKS", value_parser = held_ahead)]
    pub held_ahead: Option<HeldAhead>,
    /// A scan of the drive's own at irregular moments: mean distance and length of its slices in
    /// milliseconds, such as 400:20
    #[arg(long, help_heading = HEADING, value_name = "EVERY:MS", value_parser = own_scan)]
    pub own_scan: Option<OwnScan>,
    /// Whether writes of parts of the medium's sectors (512e) read them first [default: off]
    #[arg(long, help_heading = HEADING, value_enum, hide_possible_values = true, value_name = "on|off")]
    pub read_first: Option<SwitchWord>,
    /// Mean delay in microseconds that the host adds to each command and to each outcome, exponentially
    /// distributed, with stalls of up to 4 ms; or delays as `headtime bench jitter` measured them:
    /// measured-nbd, measured-fuse-loop, measured-fuse-loop-busy [default: 0]
    #[arg(long, help_heading = HEADING, value_name = "US|PATH", value_parser = HostDelays::parse)]
    pub host_jitter: Option<HostDelays>,
    /// The drive's look-ahead [default: on, if the drive has it]
    #[arg(long, help_heading = HEADING, value_enum, hide_possible_values = true, value_name = "on|off")]
    pub look_ahead: Option<SwitchWord>,
    /// The drive's write cache [default: on, if the drive has it; off with --scan]
    #[arg(long, help_heading = HEADING, value_enum, hide_possible_values = true, value_name = "on|off")]
    pub write_cache: Option<SwitchWord>,
    /// Bandwidth of the host's bus [default: that of the system on which the drive was measured]
    #[arg(long, help_heading = HEADING, value_name = "N", value_parser = in_unit(Unit::MegabytesPerSecond))]
    pub bus_mb_s: Option<f64>,
}

/// A switch on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SwitchWord {
    /// As the drive has it
    On,
    /// Not at all
    Off,
}

impl From<SwitchWord> for OnOff {
    fn from(word: SwitchWord) -> Self {
        match word {
            SwitchWord::On => OnOff::On,
            SwitchWord::Off => OnOff::Off,
        }
    }
}

impl TruthArguments {
    /// The settings of the flags.
    pub fn settings(&self) -> TruthSettings {
        TruthSettings {
            seek_noise_us: self.seek_noise_us,
            late_seeks: self.late_seeks,
            held_ahead: self.held_ahead,
            own_scan: self.own_scan,
            read_first: self.read_first.map(Into::into),
            host_jitter: self.host_jitter,
            look_ahead: self.look_ahead.map(Into::into),
            write_cache: self.write_cache.map(Into::into),
            bus_mb_s: self.bus_mb_s,
        }
    }
}

/// The heading of these flags in the help.
const HEADING: &str = "The drive as it is";
