//! Sense data: the drive's reason for a failed command, and the advice for the user.

use std::fmt;

use block::operation;

/// Sense data (SPC-4 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The sense key: the kind of the event.
    pub key: u8,
    /// The additional sense code and its qualifier.
    pub code: (u8, u8),
    /// The information field: mostly the block of the event.
    pub information: Option<u64>,
}

/// The sense keys in use (SPC-4 table 43).
const RECOVERED: u8 = 0x1;
const NOT_READY: u8 = 0x2;
const MEDIUM_ERROR: u8 = 0x3;
const HARDWARE_ERROR: u8 = 0x4;
const ILLEGAL_REQUEST: u8 = 0x5;
const UNIT_ATTENTION: u8 = 0x6;
const PROTECTED: u8 = 0x7;
const ABORTED: u8 = 0xb;

impl Sense {
    /// Parses either format. `None` if the format is unknown, or the data are too short.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? & 0x7f {
            0x70 | 0x71 => Some(Sense::fixed(bytes)),
            0x72 | 0x73 => Some(Sense {
                key: bytes.get(1)? & 0x0f,
                code: (*bytes.get(2)?, *bytes.get(3)?),
                information: described(bytes.get(8..).unwrap_or_default()),
            }),
            _ => None,
        }
    }

    /// Parses the fixed format, whose end may be missing.
    fn fixed(bytes: &[u8]) -> Self {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let is_valid = byte(0) & 0x80 != 0;
        let information = u32::from_be_bytes([byte(3), byte(4), byte(5), byte(6)]);
        Sense {
            key: byte(2) & 0x0f,
            code: (byte(12), byte(13)),
            information: is_valid.then_some(u64::from(information)),
        }
    }

    /// Whether the drive reports an event, such as a reset, instead of executing the command. Earlier
    /// settings may be lost. The command may be repeated.
    pub fn is_unit_attention(&self) -> bool {
        self.key == UNIT_ATTENTION
    }

    /// Whether the drive reports that its modes were changed (SPC-4 annex E, 2Ah/01h).
    pub fn is_change_of_modes(&self) -> bool {
        self.is_unit_attention() && self.code == (0x2a, 0x01)
    }

    /// Whether an immediate repetition may succeed: the drive reported an event, or aborted the command.
    pub fn asks_to_repeat(&self) -> bool {
        matches!(self.key, UNIT_ATTENTION | ABORTED)
    }

    /// Whether the command succeeded after the drive's own error recovery.
    pub fn is_recovered(&self) -> bool {
        self.key == RECOVERED
    }

    /// The error for clients.
    pub fn failed(&self) -> operation::OperationError {
        use operation::OperationError;
        match (self.key, self.code) {
            (PROTECTED, (0x27, 0x07)) => OperationError::NoSpace,
            (PROTECTED, _) => OperationError::NotPermitted,
            (ILLEGAL_REQUEST, (0x20, _)) => OperationError::Unsupported,
            (ILLEGAL_REQUEST, _) => OperationError::Invalid,
            _ => OperationError::Io,
        }
    }

    /// The advice for the user.
    pub fn advice(&self) -> &'static str {
        let (code, qualifier) = self.code;
        let known = ADVICE.iter().find(|advice| {
            advice.key == self.key
                && advice.code.is_none_or(|other| other == code)
                && advice.qualifier.is_none_or(|other| other == qualifier)
        });
        known.map_or("the drive has a reason that we do not know", |advice| {
            advice.text
        })
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, qualifier) = self.code;
        let key = self.key;
        write!(formatter, "sense {key:x}/{code:02x}/{qualifier:02x}")?;
        if let Some(block) = self.information {
            write!(formatter, " at {block}")?;
        }
        write!(formatter, ": {}", self.advice())
    }
}

/// The information descriptor of the newer format: type 0, ten bytes.
fn described(mut bytes: &[u8]) -> Option<u64> {
    while let [kind, length, ..] = *bytes {
        let end = 2 + usize::from(length);
        let descriptor = bytes.get(..end)?;
        if kind == 0 && length == 10 {
            let is_valid = descriptor[2] & 0x80 != 0;
            let mut information = [0; 8];
            information.copy_from_slice(&descriptor[4..12]);
            return is_valid.then_some(u64::from_be_bytes(information));
        }
        bytes = &bytes[end..];
    }
    None
}

/// One entry of the table of advice. `None` matches any value.
struct Advice {
    key: u8,
    code: Option<u8>,
    qualifier: Option<u8>,
    text: &'static str,
}

const fn advice(key: u8, code: Option<u8>, qualifier: Option<u8>, text: &'static str) -> Advice {
    Advice {
        key,
        code,
        qualifier,
        text,
    }
}

/// The table of advice, exact entries first (SPC-4 annex E).
#[rustfmt::skip]
const ADVICE: &[Advice] = &[
    advice(RECOVERED, None, None, "the drive has helped itself; if it comes often, replace the drive"),
    advice(NOT_READY, Some(0x04), Some(0x01), "the drive is starting: wait"),
    advice(NOT_READY, Some(0x04), Some(0x02), "the drive does not turn: start it (sg_start)"),
    advice(NOT_READY, Some(0x04), Some(0x04), "the drive is being formatted: wait for the end"),
    advice(NOT_READY, Some(0x3a), None, "there is no medium"),
    advice(NOT_READY, None, None, "the drive is not ready: look at its power and its cable"),
    advice(MEDIUM_ERROR, Some(0x11), None, "the block cannot be read: write it anew from a copy, so that the drive can put it elsewhere"),
    advice(MEDIUM_ERROR, Some(0x0c), None, "the block cannot be written, and there is no spare one: replace the drive"),
    advice(MEDIUM_ERROR, Some(0x31), None, "the medium is not formatted as the drive wants it: format it"),
    advice(MEDIUM_ERROR, None, None, "the medium is bad there: save what is on the drive"),
    advice(HARDWARE_ERROR, None, None, "the drive is defective: save what is on it and replace it"),
    advice(ILLEGAL_REQUEST, Some(0x20), None, "the drive does not know the command"),
    advice(ILLEGAL_REQUEST, Some(0x21), None, "the block is past the end of the drive: is its capacity still the same?"),
    advice(ILLEGAL_REQUEST, Some(0x24), None, "the drive does not know a field of the command"),
    advice(ILLEGAL_REQUEST, Some(0x26), None, "the drive does not take a value that was set"),
    advice(ILLEGAL_REQUEST, Some(0x25), None, "there is no such unit at that number"),
    advice(ILLEGAL_REQUEST, None, None, "the drive refuses the command"),
    advice(UNIT_ATTENTION, Some(0x29), None, "the drive was reset: set its caches again, then repeat the command"),
    advice(UNIT_ATTENTION, Some(0x2a), Some(0x01), "somebody has changed the drive's modes: read them again, then repeat the command"),
    advice(UNIT_ATTENTION, Some(0x2a), Some(0x09), "the drive's capacity has changed: open it again"),
    advice(UNIT_ATTENTION, Some(0x28), None, "the medium may be another one: open the drive again"),
    advice(UNIT_ATTENTION, Some(0x3f), Some(0x0e), "the drive's units have changed: open it again"),
    advice(UNIT_ATTENTION, None, None, "something happened to the drive: repeat the command"),
    advice(PROTECTED, Some(0x27), Some(0x07), "the thin drive has no space left: give it more, or trim"),
    advice(PROTECTED, Some(0x27), None, "the drive is protected against writing: look at its switch, or serve it read-only"),
    advice(PROTECTED, None, None, "the drive does not allow it: it may be locked"),
    advice(ABORTED, Some(0x47), None, "bytes were wrong on the way: look at the cable"),
    advice(ABORTED, None, None, "the drive gave the command up: repeat it"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_sense_of_both_formats() {
        let expected = Sense {
            key: 3,
            code: (0x11, 0x00),
            information: Some(0x1234),
        };
        let mut fixed = [0; 18];
        fixed[0] = 0xf0;
        fixed[2] = 0x03;
        fixed[3..7].copy_from_slice(&0x1234u32.to_be_bytes());
        fixed[12] = 0x11;
        assert_eq!(Sense::parse(&fixed), Some(expected));
        let mut described = vec![0x72, 0x03, 0x11, 0x00, 0, 0, 0, 18];
        // Another descriptor first, then the information.
        described.extend_from_slice(&[0x02, 4, 0, 0, 0, 0]);
        described.extend_from_slice(&[0x00, 10, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34]);
        assert_eq!(Sense::parse(&described), Some(expected));
        assert_eq!(
            expected.to_string(),
            "sense 3/11/00 at 4660: the block cannot be read: write it anew from a copy, so that \
             the drive can put it elsewhere"
        );
    }

    #[test]
    fn information_that_is_not_valid_is_none() {
        let mut fixed = [0; 18];
        fixed[0] = 0x70;
        fixed[3..7].fill(1);
        let sense = Sense::parse(&fixed).expect("sense");
        assert_eq!(sense.information, None);
    }

    #[test]
    fn the_more_exact_advice_comes_first() {
        for (at, advice) in ADVICE.iter().enumerate() {
            let general = ADVICE[..at].iter().find(|earlier| {
                earlier.key == advice.key
                    && earlier.code.is_none_or(|code| Some(code) == advice.code)
                    && earlier
                        .qualifier
                        .is_none_or(|code| Some(code) == advice.qualifier)
            });
            let hidden = general.map(|earlier| earlier.text);
            assert_eq!(hidden, None, "{} is never told", advice.text);
        }
    }

    #[test]
    fn clients_are_told_what_the_drive_says() {
        use operation::OperationError;
        for (key, code, expected) in [
            (MEDIUM_ERROR, (0x11, 0), OperationError::Io),
            (PROTECTED, (0x27, 0), OperationError::NotPermitted),
            (PROTECTED, (0x27, 7), OperationError::NoSpace),
            (ILLEGAL_REQUEST, (0x20, 0), OperationError::Unsupported),
            (ILLEGAL_REQUEST, (0x21, 0), OperationError::Invalid),
        ] {
            let sense = Sense {
                key,
                code,
                information: None,
            };
            assert_eq!(sense.failed(), expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_sense_or_not(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(sense) = Sense::parse(&bytes) {
                prop_assert!(sense.key < 16);
                prop_assert!(!sense.to_string().is_empty());
            }
        }
    }
}
