//! A drive with configured cache switches. The former switches are restored when it is dropped.
//!
//! ```text
//!   former: write cache on --set, verified--> off .... service .... --dropped--> on again
//! ```

use std::sync::Arc;

use tracing::{error, info, warn};

use super::{Caching, Lasting, ScsiDrive, ScsiError, Switch};

/// The configured switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedSwitches {
    /// The write cache: whether writes may end before they are on the medium.
    pub write_cache: Switch,
    /// The look-ahead: whether the drive reads on after a read.
    pub look_ahead: Switch,
}

/// A drive whose former switches are restored when it is dropped.
#[derive(Debug)]
pub struct Switched {
    drive: ScsiDrive,
    /// The changed switches and their former states.
    former: Vec<(Knob, Switch)>,
    wanted: WantedSwitches,
}

/// One of the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knob {
    WriteCache,
    LookAhead,
}

impl Switched {
    /// Sets the switches that differ, each with its own command. A switch that cannot be set is logged
    /// as a warning. Flushes and durable writes are correct in any case.
    pub fn begin(drive: ScsiDrive, wanted: WantedSwitches) -> Arc<Self> {
        let mut this = Switched {
            drive,
            former: Vec::new(),
            wanted,
        };
        for knob in Knob::ALL {
            let drive = this.drive.path().display().to_string();
            match this.turn(knob, knob.in_wanted(wanted)) {
                Ok(None) => (),
                Ok(Some(before)) => {
                    let (from, to) = (word(before), word(knob.in_wanted(wanted)));
                    info!(drive, switch = knob.name(), from, to, "switched");
                    this.former.push((knob, before));
                }
                Err(failed) => warn!(
                    drive,
                    switch = knob.name(),
                    wanted = word(knob.in_wanted(wanted)),
                    "the {} stays as it is: {failed}; flushes and durable writes reach the medium \
                     all the same, but the drive's times are not those of its profile",
                    knob.name()
                ),
            }
        }
        Arc::new(this)
    }

    /// The drive.
    pub fn drive(&self) -> &ScsiDrive {
        &self.drive
    }

    /// Sets the switches again after an event of the drive: a reset may have restored them.
    pub fn again(&self) {
        for (knob, _) in &self.former {
            let to = knob.in_wanted(self.wanted);
            let drive = self.drive.path().display();
            match self.turn(*knob, to) {
                Ok(None) => (),
                Ok(Some(_)) => {
                    warn!(%drive, switch = knob.name(), to = word(to), "switched again: the drive was reset");
                }
                Err(failed) => error!(%drive, switch = knob.name(), "{failed}"),
            }
        }
    }

    /// Sets a switch. The answer is its former state, if that was different.
    fn turn(&self, knob: Knob, to: Switch) -> Result<Option<Switch>, ScsiError> {
        let page = self.drive.caching()?;
        let before = knob.of(&page);
        if before == to {
            return Ok(None);
        }
        let page = match knob {
            Knob::WriteCache => page.with_write_cache(to),
            Knob::LookAhead => page.with_look_ahead(to),
        };
        self.drive.set_caching(&page, Lasting::UntilReset)?;
        Ok(Some(before))
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        for (knob, before) in std::mem::take(&mut self.former) {
            let drive = self.drive.path().display();
            match self.turn(knob, before) {
                Ok(_) => info!(%drive, switch = knob.name(), to = word(before), "switched back"),
                Err(failed) => error!(
                    %drive, switch = knob.name(), "it was {} before, and is not switched back: \
                     {failed}", word(before)
                ),
            }
        }
    }
}

impl Knob {
    const ALL: [Knob; 2] = [Knob::WriteCache, Knob::LookAhead];

    fn name(self) -> &'static str {
        match self {
            Knob::WriteCache => "write cache",
            Knob::LookAhead => "look-ahead",
        }
    }

    fn of(self, page: &Caching) -> Switch {
        match self {
            Knob::WriteCache => page.write_cache(),
            Knob::LookAhead => page.look_ahead(),
        }
    }

    fn in_wanted(self, wanted: WantedSwitches) -> Switch {
        match self {
            Knob::WriteCache => wanted.write_cache,
            Knob::LookAhead => wanted.look_ahead,
        }
    }
}

fn word(switch: Switch) -> &'static str {
    match switch {
        Switch::On => "on",
        Switch::Off => "off",
    }
}
