//! The names of the devices of a trace.

use super::error::{Fault, Reason};
use super::fields::Field;
use super::record::DeviceIndex;
use super::{MAX_DEVICE_NAME_BYTES, MAX_DEVICES};
use std::collections::BTreeMap;

/// The names of the devices of a trace, at most [`MAX_DEVICES`].
///
/// A name is text without blanks, commas and control characters, so that every format can hold it.
#[derive(Clone, Debug, Default)]
pub struct DeviceTable {
    names: Vec<Box<str>>,
    by_name: BTreeMap<Box<str>, DeviceIndex>,
    last: DeviceIndex,
}

impl DeviceTable {
    /// The name of a device of this table.
    ///
    /// # Panics
    /// If the index is of another table.
    pub fn name(&self, device: DeviceIndex) -> &str {
        &self.names[device.place()]
    }

    /// All names, in order of first appearance.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(AsRef::as_ref)
    }

    /// The device of that name, added if it is new.
    pub(super) fn index(&mut self, field: Field, name: &[u8]) -> Result<DeviceIndex, Fault> {
        if let Some(last) = self.names.get(self.last.place())
            && last.as_bytes() == name
        {
            return Ok(self.last);
        }
        let name = checked_name(field, name)?;
        self.last = match self.by_name.get(name) {
            Some(&known) => known,
            None => self.enter(field, name)?,
        };
        Ok(self.last)
    }

    /// The device whose name is this number.
    pub(super) fn number(&mut self, field: Field, number: u32) -> Result<DeviceIndex, Fault> {
        let mut digits = [0; 10];
        let mut rest = number;
        let mut first = digits.len();
        while first == digits.len() || rest > 0 {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.index(field, &digits[first..])
    }

    fn enter(&mut self, field: Field, name: &str) -> Result<DeviceIndex, Fault> {
        let place = self.names.len();
        if place == MAX_DEVICES {
            return Err(Fault {
                expected: format!("one of the {MAX_DEVICES} devices before: no trace has more"),
                ..field.fault(Reason::TooManyDevices, name.as_bytes())
            });
        }
        let index = DeviceIndex(u16::try_from(place).expect("MAX_DEVICES fits"));
        self.names.push(name.into());
        self.by_name.insert(name.into(), index);
        Ok(index)
    }
}

fn checked_name(field: Field, name: &[u8]) -> Result<&str, Fault> {
    let fault = || field.fault(Reason::Malformed, name);
    let text = std::str::from_utf8(name).map_err(|_| fault())?;
    let is_barred = |c: char| c.is_whitespace() || c.is_control() || c == ',';
    if text.is_empty() || text.len() > MAX_DEVICE_NAME_BYTES || text.contains(is_barred) {
        return Err(fault());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: Field = Field::new("device", "a name");

    #[test]
    fn a_device_keeps_its_index() {
        let mut devices = DeviceTable::default();
        let sda = devices.index(FIELD, b"sda").expect("a name");
        let seven = devices.number(FIELD, 7).expect("a number");
        assert_eq!(devices.index(FIELD, b"sda"), Ok(sda));
        assert_eq!(devices.index(FIELD, b"7"), Ok(seven));
        assert_eq!(devices.number(FIELD, u32::MAX).map(devices_place), Ok(2));
        assert_eq!(devices.number(FIELD, 0).map(devices_place), Ok(3));
        assert_eq!(
            devices.names().collect::<Vec<_>>(),
            ["sda", "7", "4294967295", "0"]
        );
    }

    fn devices_place(device: DeviceIndex) -> usize {
        device.place()
    }

    #[test]
    fn names_that_a_format_could_not_hold_are_refused() {
        let mut devices = DeviceTable::default();
        let long = [b'x'; MAX_DEVICE_NAME_BYTES + 1];
        for name in [&b""[..], b"a b", b"a,b", b"a\x07", b"\xff", &long] {
            let fault = devices.index(FIELD, name).expect_err("refused");
            assert_eq!(fault.reason, Reason::Malformed);
        }
        assert_eq!(devices.names().len(), 0);
    }

    #[test]
    fn the_number_of_devices_is_bounded() {
        let mut devices = DeviceTable::default();
        for number in 0..MAX_DEVICES as u32 {
            devices.number(FIELD, number).expect("within the bound");
        }
        let fault = devices
            .number(FIELD, MAX_DEVICES as u32)
            .expect_err("one too many");
        assert_eq!(fault.reason, Reason::TooManyDevices);
        assert!(devices.number(FIELD, 5).is_ok());
    }
}
