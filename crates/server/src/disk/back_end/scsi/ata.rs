//! ATA commands to a drive behind a SCSI translation: ATA PASS-THROUGH (16) of SAT-3 12.2.2, and what
//! IDENTIFY DEVICE answers (ACS-3 7.12.7).
//!
//! The kernel's translation has a switch for the write cache in its mode page, and none for the look-ahead.
//! SET FEATURES has both.

use block::Switch;

use super::cache_switch::CacheSwitch;
use super::{ScsiCommand, ScsiError};

/// The properties of an ATA drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtaIdentity {
    /// The write cache; `None` if it cannot be switched.
    pub write_cache: Option<Switch>,
    /// The look-ahead; `None` if it cannot be switched.
    pub look_ahead: Option<Switch>,
    /// Revolutions per minute; 1 if the medium does not rotate, `None` if unknown.
    pub rotation: Option<u16>,
}

/// Bytes of the answer of IDENTIFY DEVICE.
pub const IDENTIFY_BYTES: usize = 512;

/// Operation code of ATA PASS-THROUGH (16).
pub const PASS_THROUGH: u8 = 0x85;

/// IDENTIFY DEVICE and SET FEATURES (ACS-3 7.12, 7.45).
pub const IDENTIFY: u8 = 0xec;
/// The ATA command that turns a switch.
pub const SET_FEATURES: u8 = 0xef;

/// Protocols (SAT-3 table 164), in their place in byte 1.
const NON_DATA: u8 = 3 << 1;
const PIO_IN: u8 = 4 << 1;

/// The length is the sector count, in blocks, from the drive (T_LENGTH 2, BYT_BLOK, T_DIR).
const SECTORS_FROM_DRIVE: u8 = 0x02 | 0x04 | 0x08;

impl ScsiCommand {
    /// Inquires the properties of an ATA drive: [`IDENTIFY_BYTES`] follow.
    pub fn ata_identify() -> Self {
        ScsiCommand::of(PASS_THROUGH, 16)
            .with(1, &[PIO_IN, SECTORS_FROM_DRIVE])
            .with(6, &[1])
            .with(14, &[IDENTIFY])
    }

    /// Turns a switch of an ATA drive until its power goes.
    pub fn ata_set(switch: CacheSwitch, to: Switch) -> Self {
        ScsiCommand::of(PASS_THROUGH, 16)
            .with(1, &[NON_DATA])
            .with(4, &[feature(switch, to)])
            .with(14, &[SET_FEATURES])
    }
}

/// The subcommand of SET FEATURES (ACS-3 table 127).
pub fn feature(switch: CacheSwitch, to: Switch) -> u8 {
    match (switch, to) {
        (CacheSwitch::WriteCache, Switch::On) => 0x02,
        (CacheSwitch::WriteCache, Switch::Off) => 0x82,
        (CacheSwitch::LookAhead, Switch::On) => 0xaa,
        (CacheSwitch::LookAhead, Switch::Off) => 0x55,
    }
}

impl AtaIdentity {
    /// Parses the answer of IDENTIFY DEVICE.
    ///
    /// # Errors
    /// If it is too short.
    pub fn parse(bytes: &[u8]) -> Result<Self, ScsiError> {
        if bytes.len() < IDENTIFY_BYTES {
            return Err(ScsiError::Answer {
                what: "ATA identity",
                reason: format!("it has {} bytes, not {IDENTIFY_BYTES}", bytes.len()),
            });
        }
        let word = |at: usize| u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        // Word 82 says what can be switched, and word 85 what is on: bit 5 the write cache, 6 the look-ahead.
        let switch = |bit: u16| match (word(82) >> bit & 1, word(85) >> bit & 1) {
            (0, _) => None,
            (_, 0) => Some(Switch::Off),
            _ => Some(Switch::On),
        };
        Ok(AtaIdentity {
            write_cache: switch(5),
            look_ahead: switch(6),
            rotation: match word(217) {
                rate @ (1 | 0x0401..=0xfffe) => Some(rate),
                _ => None,
            },
        })
    }

    /// The state of a switch; `None` if it cannot be switched.
    pub fn switch(&self, switch: CacheSwitch) -> Option<Switch> {
        match switch {
            CacheSwitch::WriteCache => self.write_cache,
            CacheSwitch::LookAhead => self.look_ahead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::back_end::scsi::command::tests::hex;
    use proptest::prelude::*;

    /// `hdparm -I`, `-A0` and `-W1` send these (its sgio.c).
    #[test]
    fn golden_commands() {
        let identify = hex(ScsiCommand::ata_identify());
        assert_eq!(
            identify,
            "85080e00000001000000000000 00ec00".replace(' ', "")
        );
        let ahead = hex(ScsiCommand::ata_set(CacheSwitch::LookAhead, Switch::Off));
        assert_eq!(ahead, "850600005500000000000000 0000ef00".replace(' ', ""));
        let cache = hex(ScsiCommand::ata_set(CacheSwitch::WriteCache, Switch::On));
        assert_eq!(cache, "850600000200000000000000 0000ef00".replace(' ', ""));
    }

    #[test]
    fn switches_and_rotation_are_where_the_standard_has_them() {
        let mut bytes = [0; IDENTIFY_BYTES];
        bytes[2 * 82] = 0x60;
        bytes[2 * 85] = 0x40;
        bytes[2 * 217..2 * 217 + 2].copy_from_slice(&7200u16.to_le_bytes());
        let expected = AtaIdentity {
            write_cache: Some(Switch::Off),
            look_ahead: Some(Switch::On),
            rotation: Some(7200),
        };
        assert_eq!(AtaIdentity::parse(&bytes).ok(), Some(expected));
        bytes[2 * 82] = 0;
        let fixed = AtaIdentity::parse(&bytes).expect("an identity");
        assert_eq!((fixed.write_cache, fixed.look_ahead), (None, None));
        assert!(AtaIdentity::parse(&bytes[1..]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = AtaIdentity::parse(&bytes);
        }
    }
}
