//! How a drive's cache switches are turned: by its caching mode page, and where that is fixed, by ATA
//! commands.

use block::Switch;

use super::ata::{AtaIdentity, IDENTIFY_BYTES};
use super::cache_switch::CacheSwitch;
use super::target::CommandBytes;
use super::{Lasting, PATIENCE, ScsiCommand, ScsiDrive, ScsiError};

impl ScsiDrive {
    /// The present state of a switch. An ATA drive is asked itself: the kernel's translation answers from
    /// what it knew before.
    ///
    /// # Errors
    /// If the drive has no such switch.
    pub fn switch(&self, switch: CacheSwitch) -> Result<Switch, ScsiError> {
        match self.ata_switch(switch)? {
            Some(state) => Ok(state),
            None => Ok(switch.of(&self.caching()?)),
        }
    }

    /// Turns a switch until power off or reset, and checks it.
    ///
    /// # Errors
    /// [`ScsiError::Fixed`] if it cannot be turned.
    pub fn turn(&self, switch: CacheSwitch, to: Switch) -> Result<(), ScsiError> {
        let by_page = self
            .caching()
            .and_then(|page| self.set_caching(&switch.with(page, to), Lasting::UntilReset));
        match by_page {
            Err(ScsiError::Sense(sense)) if sense.asks_to_repeat() => Err(ScsiError::Sense(sense)),
            Err(_) if self.ata_switch(switch)?.is_some() => self.turn_ata(switch, to),
            other => other,
        }
    }

    fn turn_ata(&self, switch: CacheSwitch, to: Switch) -> Result<(), ScsiError> {
        let command = ScsiCommand::ata_set(switch, to);
        self.carry_out(command, CommandBytes::None, PATIENCE)?;
        match self.ata_switch(switch)? == Some(to) {
            true => Ok(()),
            false => Err(ScsiError::NotSwitched),
        }
    }

    /// The state of an ATA drive's switch, if this is one and it has the switch.
    ///
    /// # Errors
    /// If the drive reports an event instead of answering.
    fn ata_switch(&self, switch: CacheSwitch) -> Result<Option<Switch>, ScsiError> {
        match self.ata_identity() {
            Ok(identity) => Ok(identity.switch(switch)),
            Err(ScsiError::Sense(sense)) if sense.is_unit_attention() => {
                Err(ScsiError::Sense(sense))
            }
            Err(_) => Ok(None),
        }
    }

    /// The properties of the ATA drive behind a SCSI translation.
    ///
    /// # Errors
    /// [`ScsiError::NoAta`] if none is behind it, which is asked no ATA command then.
    pub fn ata_identity(&self) -> Result<AtaIdentity, ScsiError> {
        if !self.is_ata {
            return Err(ScsiError::NoAta);
        }
        let mut bytes = [0; IDENTIFY_BYTES];
        let command = ScsiCommand::ata_identify();
        self.carry_out(command, CommandBytes::From(&mut bytes), PATIENCE)?;
        AtaIdentity::parse(&bytes)
    }
}
