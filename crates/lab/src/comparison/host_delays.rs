//! The delays of a simulated host, as settings have them.

use block::Duration;
use document::quantity::Unit;
use drive::HostJitter;
use drive::host::MeasuredPath;
use serde::{Serialize, Serializer};

/// How long a host delays commands and outcomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostDelays {
    /// Exponentially distributed delays with this mean each way, in microseconds, and stalls.
    Exponential(f64),
    /// Those that were measured on a path.
    Measured(MeasuredPath),
}

/// No delays.
impl Default for HostDelays {
    fn default() -> Self {
        HostDelays::Exponential(0.0)
    }
}

/// Longest mean delay, a tenth of a second: the longest accesses of known drives.
const MOST_US: f64 = 100_000.0;

impl HostDelays {
    /// Parses `30` or the word of a measured path, such as `measured-nbd`.
    ///
    /// # Errors
    /// The expected values.
    pub fn parse(text: &str) -> Result<HostDelays, String> {
        if let Some((_, path)) = MeasuredPath::ALL.iter().find(|(word, _)| *word == text) {
            return Ok(HostDelays::Measured(*path));
        }
        Unit::Microseconds
            .read(text)
            .map(HostDelays::Exponential)
            .ok_or_else(|| {
                let words = MeasuredPath::ALL.map(|(word, _)| word).join(", or ");
                format!("expected microseconds, such as 30, or {words}")
            })
    }

    /// The host.
    ///
    /// # Errors
    /// If the delay is negative or too long.
    pub fn jitter(self) -> Result<HostJitter, String> {
        match self {
            HostDelays::Exponential(us) if (0.0..=MOST_US).contains(&us) => {
                let mean = Duration::from_nanos((us * 1e3).round() as u64);
                Ok(HostJitter::exponential(mean))
            }
            HostDelays::Exponential(us) => {
                Err(format!("{us}: expected a number from 0 to {MOST_US}"))
            }
            HostDelays::Measured(path) => Ok(HostJitter::measured(path)),
        }
    }

    /// The value that gives this host; none of a host without delays.
    pub fn of(jitter: &HostJitter) -> Option<HostDelays> {
        match jitter.measured {
            Some(path) => Some(HostDelays::Measured(path)),
            None if *jitter == HostJitter::default() => None,
            None => Some(HostDelays::Exponential(jitter.mean.as_nanos() as f64 / 1e3)),
        }
    }

    /// The value, for people.
    pub fn text(self) -> String {
        match self {
            HostDelays::Exponential(us) => format!("{us} us on average each way"),
            HostDelays::Measured(path) => path.name().to_owned(),
        }
    }
}

/// The value of the flag.
impl Serialize for HostDelays {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            HostDelays::Exponential(us) => serializer.serialize_f64(*us),
            HostDelays::Measured(path) => serializer.serialize_str(path.name()),
        }
    }
}
