//! A drive whose cache switches are turned, and turned back at the end.
//!
//! ```text
//!   former: write cache on --recorded, set, verified--> off .... service or probing .... --> on again
//! ```

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::{error, info, warn};

use super::cache_switch::{CacheSwitch, word};
use super::record::{RecordError, SwitchRecord, TurnedSwitch};
use super::{REPEATS, ScsiDrive, ScsiError, Switch};

/// The configured switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedSwitches {
    /// The write cache: whether writes may end before they are on the medium.
    pub write_cache: Switch,
    /// The look-ahead: whether the drive reads on after a read.
    pub look_ahead: Switch,
}

/// A drive whose former switches are restored at the end, and at the latest when it is dropped.
#[derive(Debug)]
pub struct Switched {
    drive: ScsiDrive,
    state: Mutex<SwitchState>,
    /// Whether the drive has reported an event since its switches were last set again.
    had_event: AtomicBool,
}

#[derive(Debug)]
struct SwitchState {
    turned: Vec<TurnedSwitch>,
    record: Option<SwitchRecord>,
}

/// A drive without a record, and the reason.
#[derive(Debug)]
pub struct UnclaimedDrive {
    /// The drive.
    pub drive: ScsiDrive,
    /// The reason.
    pub error: RecordError,
}

/// The end of a turned switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchReport {
    /// The switch.
    pub switch: CacheSwitch,
    /// Its former state.
    pub before: Switch,
    /// The reason for which it is not back.
    pub failed: Option<String>,
}

impl fmt::Display for SwitchReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, before) = (self.switch.name(), word(self.before));
        match &self.failed {
            None => write!(formatter, "the {name} is {before} again, as before"),
            Some(why) => write!(
                formatter,
                "the {name} was {before} before, and is not switched back: {why}"
            ),
        }
    }
}

impl Switched {
    /// A drive without a record: a killed process leaves its switches turned.
    pub fn unrecorded(drive: ScsiDrive) -> Self {
        Switched::with(drive, Vec::new(), None)
    }

    /// A drive with a record in `folder`. Switches that a killed process has left are put back first, and
    /// reported.
    ///
    /// # Errors
    /// If another process has the record of this drive, or it cannot be written.
    pub fn claim(
        drive: ScsiDrive,
        folder: &Path,
        boot: &str,
    ) -> Result<(Self, Vec<SwitchReport>), Box<UnclaimedDrive>> {
        match SwitchRecord::open(folder, &drive.full_name(), boot) {
            Ok((record, left)) => {
                let this = Switched::with(drive, left, Some(record));
                let reports = this.restore();
                Ok((this, reports))
            }
            Err(error) => Err(Box::new(UnclaimedDrive { drive, error })),
        }
    }

    fn with(drive: ScsiDrive, turned: Vec<TurnedSwitch>, record: Option<SwitchRecord>) -> Self {
        Switched {
            drive,
            state: Mutex::new(SwitchState { turned, record }),
            had_event: AtomicBool::new(false),
        }
    }

    /// Sets the switches that differ, each with its own command. A switch that cannot be set is logged
    /// as a warning. Flushes and durable writes are correct in any case.
    pub fn begin(self, wanted: WantedSwitches) -> Arc<Self> {
        for switch in CacheSwitch::ALL {
            let drive = self.drive.path().display().to_string();
            let to = match switch {
                CacheSwitch::WriteCache => wanted.write_cache,
                CacheSwitch::LookAhead => wanted.look_ahead,
            };
            match self.set(switch, to) {
                Ok(SetSwitch::AsWanted) => (),
                Ok(SetSwitch::Turned) => {
                    let (switch, to) = (switch.name(), word(to));
                    info!(drive, switch, to, "switched");
                }
                Err(failed) => warn!(
                    drive,
                    switch = switch.name(),
                    wanted = word(to),
                    "the {switch} stays as it is: {failed}; flushes and durable writes reach the medium \
                     all the same, but the drive's times are not those of its profile",
                ),
            }
        }
        Arc::new(self)
    }

    /// The drive.
    pub fn drive(&self) -> &ScsiDrive {
        &self.drive
    }

    /// Turns a switch, unless it is already as wanted. Its former state is recorded before.
    ///
    /// # Errors
    /// If it cannot be turned, or not be recorded.
    pub fn set(&self, switch: CacheSwitch, to: Switch) -> Result<SetSwitch, ScsiError> {
        let mut state = self.state();
        let present = self.repeated(|| self.drive.switch(switch))?;
        let known = state
            .turned
            .iter()
            .position(|turned| turned.switch == switch);
        if present == to && known.is_none() {
            return Ok(SetSwitch::AsWanted);
        }
        let earlier = state.turned.clone();
        match known {
            Some(known) => state.turned[known].now = to,
            None => state.turned.push(TurnedSwitch {
                switch,
                before: present,
                now: to,
            }),
        }
        let done = state.write().and_then(|()| match present == to {
            true => Ok(SetSwitch::AsWanted),
            false => {
                let turned = self.repeated(|| self.turn(switch, to));
                turned.map(|()| SetSwitch::Turned)
            }
        });
        // A drive that has turned a switch may fail to say so. Only a switch that is as before is forgotten.
        if done.is_err() && self.repeated(|| self.drive.switch(switch)).ok() == Some(present) {
            state.turned = earlier;
            // The former text of the record stands for the former switches.
            let _ = state.write();
        }
        if self.had_event.swap(false, Ordering::Relaxed) {
            self.set_again(&state);
        }
        done
    }

    /// Executes a command, and repeats it if the drive asks for that. After an event of the drive the
    /// switches are set again first, because a reset may have restored them.
    ///
    /// # Errors
    /// Those of the command.
    pub fn attempt<T>(
        &self,
        name: &dyn Fn() -> String,
        mut work: impl FnMut() -> Result<T, ScsiError>,
    ) -> Result<T, ScsiError> {
        let mut repeats = 0;
        loop {
            match work() {
                Err(ScsiError::Sense(sense)) if sense.asks_to_repeat() && repeats < REPEATS => {
                    let drive = self.drive.path().display();
                    info!(%drive, "{}, which is repeated: {sense}", name());
                    if sense.is_unit_attention() {
                        self.set_again(&self.state());
                    }
                    repeats += 1;
                }
                other => return other,
            }
        }
    }

    /// Turns all switches back, the last one first. The record keeps those that cannot be.
    pub fn restore(&self) -> Vec<SwitchReport> {
        let mut state = self.state();
        let mut reports = Vec::new();
        let mut left = Vec::new();
        for turned in std::mem::take(&mut state.turned).into_iter().rev() {
            let TurnedSwitch { switch, before, .. } = turned;
            let failed = self.repeated(|| self.turn(switch, before)).err();
            if failed.is_some() {
                left.insert(0, turned);
            }
            reports.push(SwitchReport {
                switch,
                before,
                failed: failed.map(|failed| failed.to_string()),
            });
        }
        state.turned = left;
        if let Err(failed) = state.write() {
            warn!(drive = %self.drive.path().display(), "{failed}");
        }
        reports
    }

    /// Turns all switches back, and gives the drive's record up if they are. No switch may be set
    /// afterwards.
    pub fn finish(&self) -> Vec<SwitchReport> {
        let reports = self.restore();
        let mut state = self.state();
        if state.turned.is_empty()
            && let Some(record) = state.record.take()
        {
            record.remove();
        }
        reports
    }

    fn state(&self) -> MutexGuard<'_, SwitchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the switches again after an event of the drive.
    fn set_again(&self, state: &SwitchState) {
        for turned in &state.turned {
            let (switch, to) = (turned.switch, turned.now);
            let drive = self.drive.path().display();
            match self.repeated(|| self.drive.switch(switch)) {
                Ok(present) if present == to => (),
                Ok(_) => match self.repeated(|| self.turn(switch, to)) {
                    Ok(()) => {
                        warn!(%drive, switch = switch.name(), to = word(to), "switched again: the drive was reset");
                    }
                    Err(failed) => error!(%drive, switch = switch.name(), "{failed}"),
                },
                Err(failed) => error!(%drive, switch = switch.name(), "{failed}"),
            }
        }
    }

    /// Turns a switch that differs.
    fn turn(&self, switch: CacheSwitch, to: Switch) -> Result<(), ScsiError> {
        match self.drive.switch(switch)? == to {
            true => Ok(()),
            false => self.drive.turn(switch, to),
        }
    }

    /// Repeats a step that an event of the drive has kept from being executed.
    fn repeated<T>(&self, mut step: impl FnMut() -> Result<T, ScsiError>) -> Result<T, ScsiError> {
        let mut repeats = 0;
        loop {
            match step() {
                Err(ScsiError::Sense(sense)) if sense.asks_to_repeat() && repeats < REPEATS => {
                    info!(drive = %self.drive.path().display(), %sense, "the drive says");
                    self.had_event.store(true, Ordering::Relaxed);
                    repeats += 1;
                }
                other => return other,
            }
        }
    }
}

/// The end of setting a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetSwitch {
    /// It was as wanted.
    AsWanted,
    /// It was turned.
    Turned,
}

impl SwitchState {
    fn write(&self) -> Result<(), ScsiError> {
        match &self.record {
            Some(record) => record.write(&self.turned).map_err(ScsiError::Record),
            None => Ok(()),
        }
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        let drive = self.drive.path().display().to_string();
        for report in self.finish() {
            let (switch, to) = (report.switch.name(), word(report.before));
            match &report.failed {
                None => info!(%drive, switch, to, "switched back"),
                Some(_) => error!(%drive, switch, "{report}"),
            }
        }
    }
}
