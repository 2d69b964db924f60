//! The differences of a drive from its belief, and its switches and bus.
//!
//! | flag | the drive | the belief |
//! |---|---|---|
//! | `--seek-noise-us`, `--late-seeks`, `--held-ahead`, `--own-scan`, `--read-first`, `--host-jitter` | as set | as in the profile: results are *noisy* |
//! | `--look-ahead`, `--write-cache`, `--bus-mb-s` | as set | the same: the host sets it |

use std::path::Path;
use std::sync::Arc;

use block::{Duration, Switch};
use document::quantity::Unit;
use drive::firmware::Bus;
use drive::imperfection::{AheadTrigger, Chance, HeldLookAhead, Periodic, UnalignedWrites};
use drive::{HostJitter, Imperfections, Profile, Provenance};
use serde::Serialize;
use server::config::{BackEnd, DriveConfig};
use server::service::VirtualParts;

use super::belief;
use super::host_delays::HostDelays;
use crate::{Failure, Label};

/// The settings of the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TruthSettings {
    /// The standard deviation of seek times, which the belief does not contain.
    pub seek_noise_us: Option<f64>,
    /// Seeks in 1,000 that settle late, and their delay in milliseconds, such as 10:1.5.
    pub late_seeks: Option<LateSeeks>,
    /// Look-ahead that the drive finishes before it takes up the next command.
    pub held_ahead: Option<HeldAhead>,
    /// A scan of the drive's own at irregular moments.
    pub own_scan: Option<OwnScan>,
    /// Whether writes of parts of the medium's sectors (512e) read them first.
    pub read_first: Option<OnOff>,
    /// How long the host delays commands and outcomes.
    pub host_jitter: Option<HostDelays>,
    /// The drive's look-ahead. Default: on, if the drive has it.
    pub look_ahead: Option<OnOff>,
    /// The drive's write cache. Default: on, if the drive has it; off with --scan.
    pub write_cache: Option<OnOff>,
    /// The bandwidth of the host's bus. Default: that of the system on which the drive was
    /// measured.
    pub bus_mb_s: Option<f64>,
}

/// Seeks that settle late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LateSeeks {
    /// The number of late seeks in a thousand.
    pub permille: f64,
    /// Their delay.
    pub ms: f64,
}

/// A look-ahead that delays the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeldAhead {
    /// The blocks that the drive still reads; at most to the end of the track.
    pub blocks: u32,
    /// The reads after which it does.
    pub after: AheadReads,
}

/// The reads after which a drive holds on to its look-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AheadReads {
    /// Those on the track where the arm was.
    SameTrack,
    /// All.
    Every,
}

/// A scan of the drive's own: mean distance and mean length of its slices, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OwnScan {
    /// The mean time between two slices.
    pub every_ms: f64,
    /// The mean length of a slice.
    pub ms: f64,
}

/// A switch in settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnOff {
    /// As the drive has it
    #[default]
    On,
    /// Not at all.
    Off,
}

/// The truth of a drive, with valid values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    given: TruthSettings,
    imperfections: Imperfections,
    seed: u64,
    /// The file of the belief, if it is not the profile, and its provenance.
    believed: Option<(String, Provenance)>,
}

/// The JSON of the truth's settings.
#[derive(Debug, Serialize)]
pub struct Stated {
    seek_noise_us: f64,
    late_seeks: Option<LateSeeks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_ahead: Option<HeldAhead>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own_scan: Option<OwnScan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_first: Option<OnOff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_jitter: Option<HostDelays>,
    look_ahead: OnOff,
    write_cache: OnOff,
    bus_mb_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    belief: Option<String>,
}

impl TruthSettings {
    /// Resolves the truth. `seed` determines random events.
    ///
    /// # Errors
    /// The flag with an invalid value, and the problem.
    pub fn truth(&self, seed: u64) -> Result<Truth, (&'static str, String)> {
        let noise_us = within("seek-noise-us", self.seek_noise_us, 0.0, MOST_NOISE_US)?;
        let late = self.late_seeks.unwrap_or_default();
        let permille = within("late-seeks", Some(late.permille), 0.0, 1000.0)?;
        let late_ms = within("late-seeks", Some(late.ms), 0.0, LATEST_MS)?;
        if self.bus_mb_s.is_some() {
            within("bus-mb-s", self.bus_mb_s, SLOWEST_BUS, FASTEST_BUS)?;
        }
        let nanos = |value: f64, unit: f64| Duration::from_nanos((value * unit).round() as u64);
        let settle_retry = match (permille * 1e3).round() as u32 {
            per_million @ 1.. if late_ms > 0.0 => Chance {
                per_million,
                costs: nanos(late_ms, 1e6),
            },
            _ => Chance::default(),
        };
        let irregular_scan = match self.own_scan {
            Some(scan) => Periodic {
                every: nanos(
                    within("own-scan", Some(scan.every_ms), 1.0, LATEST_MS * 60.0)?,
                    1e6,
                ),
                costs: nanos(within("own-scan", Some(scan.ms), 0.0, LATEST_MS)?, 1e6),
            },
            None => Periodic::default(),
        };
        let held_look_ahead = self.held_ahead.map(|held| HeldLookAhead {
            blocks: held.blocks,
            after: match held.after {
                AheadReads::SameTrack => AheadTrigger::SameTrack,
                AheadReads::Every => AheadTrigger::EveryRead,
            },
        });
        let host_delays = self.host_jitter.unwrap_or_default();
        Ok(Truth {
            given: *self,
            imperfections: Imperfections {
                seek_noise: nanos(noise_us, 1e3),
                settle_retry,
                irregular_scan,
                held_look_ahead: held_look_ahead.unwrap_or_default(),
                unaligned_writes: match self.read_first {
                    Some(OnOff::On) => UnalignedWrites::ReadFirst,
                    Some(OnOff::Off) | None => UnalignedWrites::Free,
                },
                host: host_delays.jitter().map_err(|why| ("host-jitter", why))?,
                ..Imperfections::default()
            },
            seed,
            believed: None,
        })
    }

    /// Whether random events occur.
    pub fn is_chance(&self) -> bool {
        self.seek_noise_us.is_some()
            || self.late_seeks.is_some()
            || self.own_scan.is_some()
            || self.host_jitter.is_some()
    }
}

impl Truth {
    /// The truth of an emulated drive of a service's configuration.
    pub fn of_emulation(config: &DriveConfig, parts: &VirtualParts) -> Truth {
        let emulated = match &config.back_end {
            BackEnd::Emulated(emulated) => Some(emulated),
            BackEnd::Mirror(mirror) => match &mirror.legs[0].back_end {
                BackEnd::Emulated(emulated) => Some(emulated),
                _ => None,
            },
            _ => None,
        };
        let off = |switch: Switch| (switch == Switch::Off).then_some(OnOff::Off);
        let imperfections = parts.imperfections.clone();
        let millis = |length: Duration| length.as_millis_f64();
        let given = TruthSettings {
            seek_noise_us: (!imperfections.seek_noise.is_zero())
                .then(|| imperfections.seek_noise.as_nanos() as f64 / 1e3),
            late_seeks: (imperfections.settle_retry.per_million > 0).then(|| LateSeeks {
                permille: f64::from(imperfections.settle_retry.per_million) / 1e3,
                ms: millis(imperfections.settle_retry.costs),
            }),
            held_ahead: (imperfections.held_look_ahead.blocks > 0).then_some(HeldAhead {
                blocks: imperfections.held_look_ahead.blocks,
                after: match imperfections.held_look_ahead.after {
                    AheadTrigger::SameTrack => AheadReads::SameTrack,
                    AheadTrigger::EveryRead => AheadReads::Every,
                },
            }),
            own_scan: (!imperfections.irregular_scan.costs.is_zero()).then(|| OwnScan {
                every_ms: millis(imperfections.irregular_scan.every),
                ms: millis(imperfections.irregular_scan.costs),
            }),
            read_first: (imperfections.unaligned_writes == UnalignedWrites::ReadFirst)
                .then_some(OnOff::On),
            host_jitter: HostDelays::of(&imperfections.host),
            look_ahead: emulated.and_then(|emulated| off(emulated.look_ahead)),
            write_cache: emulated.and_then(|emulated| off(emulated.write_cache)),
            bus_mb_s: emulated.and_then(|emulated| emulated.bus_mb_s),
        };
        Truth {
            given,
            imperfections,
            seed: parts.seed,
            believed: None,
        }
    }

    /// The profile with the host's switches and bus: the default belief.
    pub fn belief(&self, profile: &Profile) -> Profile {
        let given = &self.given;
        let mut belief = profile.switched(
            given.look_ahead.unwrap_or_default().switch(),
            given.write_cache.unwrap_or_default().switch(),
        );
        if let Some(mb_s) = given.bus_mb_s {
            belief.bus = Bus::at(mb_s, belief.block_bytes);
        }
        if given.read_first == Some(OnOff::On) {
            // A drive that reads first has larger sectors than blocks, and says so.
            belief.physical_block_bytes = SECTOR_BYTES;
        }
        belief
    }

    /// Replaces the belief by that of a file. Returns it with the host's switches.
    ///
    /// # Errors
    /// If the file has no belief about the drive.
    pub fn believing(
        &mut self,
        path: &Path,
        drive: &Arc<Profile>,
    ) -> Result<Arc<Profile>, Failure> {
        let found = belief::read(path, drive, &self.imperfections, self.seed)?;
        self.believed = Some((path.display().to_string(), found.provenance));
        let given = self.given;
        let look_ahead = given.look_ahead.unwrap_or_default().switch();
        let write_cache = given.write_cache.unwrap_or_default().switch();
        Ok(Arc::new(found.switched(look_ahead, write_cache)))
    }

    /// The same with another seed of random events.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Truth { seed, ..self }
    }

    /// The imperfections, which the belief does not contain.
    pub fn imperfections(&self) -> &Imperfections {
        &self.imperfections
    }

    /// The seed of random events.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The label of results.
    pub fn mode(&self) -> Label {
        let believed = self.believed.as_ref();
        let label = Label::of(believed.map(|(_, provenance)| *provenance));
        match self.imperfections == Imperfections::default() {
            true => label,
            false => label.with_noise(),
        }
    }

    /// The label with its reasons.
    pub fn label(&self) -> String {
        let mut differs = Vec::new();
        let noise = self.imperfections.seek_noise;
        if !noise.is_zero() {
            differs.push(format!(
                "seek noise of {} us",
                noise.as_nanos() as f64 / 1e3
            ));
        }
        let late = self.imperfections.settle_retry;
        if late.per_million > 0 {
            let permille = f64::from(late.per_million) / 1e3;
            let ms = late.costs.as_millis_f64();
            differs.push(format!("{permille} in 1,000 seeks {ms} ms late"));
        }
        if let Some(held) = self.given.held_ahead {
            let after = match held.after {
                AheadReads::SameTrack => "a second read of a track",
                AheadReads::Every => "a read",
            };
            differs.push(format!(
                "look-ahead over {} blocks after {after} delays the next command",
                held.blocks
            ));
        }
        if let Some(scan) = self.given.own_scan {
            differs.push(format!(
                "a scan of its own for {} ms in {} ms",
                scan.ms, scan.every_ms
            ));
        }
        if self.given.read_first == Some(OnOff::On) {
            differs.push("sectors that are read before parts of them are written".to_owned());
        }
        if let Some(slow) = self.imperfections.slow_head {
            let percent = f64::from(slow.slower_ppm) / 1e4;
            differs.push(format!(
                "reads by head {} that take {percent} % longer",
                slow.head
            ));
        }
        if !self.imperfections.unreadable.is_empty() {
            differs.push("blocks that cannot be read".to_owned());
        }
        if self.imperfections.host != HostJitter::default()
            && let Some(delays) = self.given.host_jitter
        {
            differs.push(format!("a host that delays ({})", delays.text()));
        }
        let differs = match differs.is_empty() {
            true => None,
            false => Some(format!("does not know: {}", differs.join(", "))),
        };
        match (&self.believed, differs) {
            (None, None) => "belief = truth (in-firmware)".to_owned(),
            (None, Some(differs)) => format!("the belief {differs} (noisy)"),
            (Some((file, _)), differs) => {
                let differs = differs.map_or(String::new(), |differs| format!(", which {differs}"));
                let mode = self.mode().name();
                format!("the belief is that of {file}{differs} ({mode})")
            }
        }
    }

    /// The bus, if the host sets one, in MB/s.
    pub fn bus_mb_s(&self) -> Option<f64> {
        self.given.bus_mb_s
    }

    /// The host's switches and bus, if set.
    pub fn switches(&self) -> Option<String> {
        let given = &self.given;
        let mut said = Vec::new();
        if given.look_ahead == Some(OnOff::Off) {
            said.push("look-ahead off".to_owned());
        }
        if given.write_cache == Some(OnOff::Off) {
            said.push("write cache off".to_owned());
        }
        if let Some(mb_s) = given.bus_mb_s {
            said.push(format!("a bus of {mb_s} MB/s"));
        }
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// The settings for `--json`.
    pub fn stated(&self) -> Stated {
        let given = &self.given;
        Stated {
            seek_noise_us: given.seek_noise_us.unwrap_or(0.0),
            late_seeks: given.late_seeks,
            held_ahead: given.held_ahead,
            own_scan: given.own_scan,
            read_first: given.read_first,
            host_jitter: given.host_jitter,
            look_ahead: given.look_ahead.unwrap_or_default(),
            write_cache: given.write_cache.unwrap_or_default(),
            bus_mb_s: given.bus_mb_s,
            seed: (self.mode() != Label::InFirmware).then_some(self.seed),
            belief: self.believed.as_ref().map(|(file, _)| file.clone()),
        }
    }
}

impl OnOff {
    /// The drive's switch.
    pub fn switch(self) -> Switch {
        match self {
            OnOff::On => Switch::On,
            OnOff::Off => Switch::Off,
        }
    }
}

/// The error of an invalid flag.
pub fn refused((flag, problem): (&'static str, String)) -> Failure {
    Failure::input(format!("--{flag} {problem}"))
}

/// The value, or zero without one.
fn within(
    flag: &'static str,
    value: Option<f64>,
    low: f64,
    high: f64,
) -> Result<f64, (&'static str, String)> {
    let value = value.unwrap_or(low.min(0.0));
    match value >= low && value <= high {
        true => Ok(value),
        false => Err((
            flag,
            format!("{value}: expected a number from {low} to {high}"),
        )),
    }
}

/// Parses `10:1.5`.
pub fn late_seeks(text: &str) -> Result<LateSeeks, String> {
    let parsed = text
        .split_once(':')
        .and_then(|(permille, ms)| Some((permille.parse().ok()?, Unit::Milliseconds.read(ms)?)));
    match parsed {
        Some((permille, ms)) => Ok(LateSeeks { permille, ms }),
        None => Err("expected PERMILLE:MS, such as 10:1.5".to_owned()),
    }
}

/// Parses `64`, `64:same-track` or `64:every`.
pub fn held_ahead(text: &str) -> Result<HeldAhead, String> {
    let (blocks, after) = text.split_once(':').unwrap_or((text, "same-track"));
    let after = match after {
        "same-track" => Some(AheadReads::SameTrack),
        "every" => Some(AheadReads::Every),
        _ => None,
    };
    match (blocks.parse(), after) {
        (Ok(blocks), Some(after)) => Ok(HeldAhead { blocks, after }),
        _ => Err("expected BLOCKS, BLOCKS:same-track or BLOCKS:every, such as 64".to_owned()),
    }
}

/// Parses `400:20`.
pub fn own_scan(text: &str) -> Result<OwnScan, String> {
    let parsed = text.split_once(':').and_then(|(every, ms)| {
        Some((
            Unit::Milliseconds.read(every)?,
            Unit::Milliseconds.read(ms)?,
        ))
    });
    match parsed {
        Some((every_ms, ms)) => Ok(OwnScan { every_ms, ms }),
        None => Err("expected EVERY_MS:MS, such as 400:20".to_owned()),
    }
}

/// The sectors of 512e drives.
const SECTOR_BYTES: u32 = 4096;

/// Largest seek noise, 10 ms: the longest seeks of known drives.
const MOST_NOISE_US: f64 = 10_000.0;

/// Longest delay of a late seek, a second: below the time-outs of hosts.
const LATEST_MS: f64 = 1_000.0;

/// The slowest bus, in MB/s: a tenth of the first SCSI bus's 1.5, rounded. A choice.
const SLOWEST_BUS: f64 = 0.1;

/// Fastest bus, in MB/s: above 32 lanes of today. A choice.
const FASTEST_BUS: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named;

    #[test]
    fn what_the_host_commands_is_in_the_belief_and_what_happens_to_it_is_not() {
        let plain = named::drive("quantum-atlas-10k").expect("a built-in drive");
        let given = TruthSettings {
            look_ahead: Some(OnOff::Off),
            write_cache: Some(OnOff::Off),
            bus_mb_s: Some(80.0),
            ..TruthSettings::default()
        };
        let truth = given.truth(1).expect("sensible");
        let belief = truth.belief(&plain);
        assert_eq!(belief.buffer.look_ahead, drive::firmware::LookAhead::None);
        assert_eq!(belief.buffer.write_back, drive::firmware::WriteBack::None);
        assert_eq!(belief.bus.read_block, Duration::from_nanos(6_400));
        assert_eq!(truth.mode(), Label::InFirmware);
        let noisy = TruthSettings {
            seek_noise_us: Some(60.0),
            late_seeks: Some(LateSeeks {
                permille: 10.0,
                ms: 1.5,
            }),
            ..TruthSettings::default()
        };
        let truth = noisy.truth(1).expect("sensible");
        let belief = truth.belief(&plain);
        assert_eq!(belief.buffer, plain.buffer);
        assert_eq!(belief.bus, plain.bus);
        assert_eq!(truth.mode(), Label::Noisy);
        assert_eq!(
            truth.label(),
            "the belief does not know: seek noise of 60 us, 10 in 1,000 seeks 1.5 ms late (noisy)"
        );
    }

    #[test]
    fn nothing_given_and_zeros_are_in_firmware() {
        let zeros = TruthSettings {
            seek_noise_us: Some(0.0),
            late_seeks: Some(LateSeeks {
                permille: 0.0,
                ms: 3.0,
            }),
            ..TruthSettings::default()
        };
        for given in [TruthSettings::default(), zeros] {
            let truth = given.truth(1).expect("sensible");
            assert_eq!(truth.mode(), Label::InFirmware);
            assert_eq!(truth.label(), "belief = truth (in-firmware)");
            assert_eq!(truth.switches(), None);
        }
    }
}
