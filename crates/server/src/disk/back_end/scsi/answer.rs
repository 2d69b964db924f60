//! Parsers of SCSI answers, for any bytes.

use block::Switch;

use super::ScsiError;
use super::command::CACHING_PAGE;

/// The identity of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The kind of the device.
    pub kind: Kind,
    /// The vendor, without trailing blanks.
    pub vendor: String,
    /// The model.
    pub product: String,
    /// The revision of the firmware.
    pub revision: String,
}

/// The kind of a device (SPC-4 6.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Random access to blocks.
    Blocks,
    /// A host-managed zoned disk.
    Zoned,
    /// Another kind, by its number.
    Other(u8),
    /// No device.
    Nothing,
}

/// The rotation of a disk (SBC-3 6.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// Unknown.
    Unknown,
    /// The disk does not rotate.
    Solid,
    /// Revolutions per minute.
    PerMinute(u16),
}

/// The zone model of a disk with random writes (SBC-4 6.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zones {
    /// No zones.
    None,
    /// The disk prefers writes in the order of its zones.
    HostAware,
    /// The disk hides its zones, and moves writes later at any time.
    DriveManaged,
}

/// The capacity of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The number of blocks.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes of a physical block, a multiple of the former.
    pub physical_bytes: u64,
}

/// The caching mode page, as the drive sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caching {
    page: Vec<u8>,
    /// Whether the drive has FUA (the bit DPOFUA).
    pub knows_fua: bool,
    /// Whether the drive is write-protected.
    pub is_read_only: bool,
}

/// A cache switch: its byte in the page, its bit, and the meaning of a one.
struct Bit {
    byte: usize,
    mask: u8,
    set: Switch,
}

/// Write cache (WCE), look-ahead (off by DRA), read cache (off by RCD).
const WRITE_CACHE: Bit = bit(2, 0x04, Switch::On);
const LOOK_AHEAD: Bit = bit(12, 0x20, Switch::Off);
const READ_CACHE: Bit = bit(2, 0x01, Switch::Off);

const fn bit(byte: usize, mask: u8, set: Switch) -> Bit {
    Bit { byte, mask, set }
}

/// Bytes before the pages in the answer of MODE SENSE (10).
const MODE_HEADER: usize = 8;

impl Identity {
    /// Parses the standard inquiry.
    ///
    /// # Errors
    /// If it is too short.
    pub fn parse(bytes: &[u8]) -> Result<Self, ScsiError> {
        if bytes.len() < 36 {
            return Err(short("inquiry", 36, bytes.len()));
        }
        // The upper three bits say whether there is a device.
        let kind = match (bytes[0] >> 5, bytes[0] & 0x1f) {
            (0, 0x00) => Kind::Blocks,
            (0, 0x14) => Kind::Zoned,
            (0, other) => Kind::Other(other),
            _ => Kind::Nothing,
        };
        Ok(Identity {
            kind,
            vendor: text(&bytes[8..16]),
            product: text(&bytes[16..32]),
            revision: text(&bytes[32..36]),
        })
    }
}

/// The serial number of its inquiry page.
///
/// # Errors
/// If it is another page, or too short.
pub fn serial(bytes: &[u8]) -> Result<String, ScsiError> {
    Ok(text(vital(bytes, "serial number", 0x80)?))
}

impl Rotation {
    /// Parses the inquiry page of characteristics.
    ///
    /// # Errors
    /// If it is another page, or too short.
    pub fn parse(bytes: &[u8]) -> Result<Self, ScsiError> {
        let page = vital(bytes, "characteristics", 0xb1)?;
        let [high, low, ..] = *page else {
            return Err(short("characteristics", 6, bytes.len()));
        };
        Ok(match u16::from_be_bytes([high, low]) {
            1 => Rotation::Solid,
            // Below 0x0401 and 0xffff are reserved.
            rate @ 0x0401..=0xfffe => Rotation::PerMinute(rate),
            _ => Rotation::Unknown,
        })
    }
}

impl Zones {
    /// Parses the inquiry page of characteristics. Older drives have a shorter page, and no zones.
    ///
    /// # Errors
    /// If it is another page.
    pub fn parse(bytes: &[u8]) -> Result<Self, ScsiError> {
        let page = vital(bytes, "characteristics", 0xb1)?;
        Ok(match page.get(4).map_or(0, |byte| byte >> 4 & 0b11) {
            0b01 => Zones::HostAware,
            0b10 => Zones::DriveManaged,
            _ => Zones::None,
        })
    }
}

impl Capacity {
    /// Parses READ CAPACITY (16).
    ///
    /// # Errors
    /// If it is too short, or impossible for a drive.
    pub fn parse(bytes: &[u8]) -> Result<Self, ScsiError> {
        const WHAT: &str = "capacity";
        if bytes.len() < 14 {
            return Err(short(WHAT, 14, bytes.len()));
        }
        let mut last = [0; 8];
        last.copy_from_slice(&bytes[..8]);
        let mut block = [0; 4];
        block.copy_from_slice(&bytes[8..12]);
        let block_bytes = u32::from_be_bytes(block);
        let blocks = u64::from_be_bytes(last).checked_add(1);
        let whole = blocks.and_then(|blocks| blocks.checked_mul(u64::from(block_bytes)));
        if whole.is_none_or(|whole| whole == 0) {
            let reason = format!("it has {block_bytes} bytes in a block, and too many or none");
            return Err(ScsiError::Answer { what: WHAT, reason });
        }
        Ok(Capacity {
            blocks: blocks.unwrap_or_default(),
            block_bytes,
            physical_bytes: u64::from(block_bytes) << (bytes[13] & 0x0f),
        })
    }
}

impl Caching {
    /// Parses MODE SENSE (10).
    ///
    /// # Errors
    /// If it lacks the page, or the page is too short for its switches.
    pub fn parse(bytes: &[u8]) -> Result<Self, ScsiError> {
        const WHAT: &str = "caching page";
        if bytes.len() < MODE_HEADER {
            return Err(short(WHAT, MODE_HEADER, bytes.len()));
        }
        let descriptors = usize::from(u16::from_be_bytes([bytes[6], bytes[7]]));
        let start = MODE_HEADER + descriptors;
        let (Some(&code), Some(&length)) = (bytes.get(start), bytes.get(start + 1)) else {
            return Err(short(WHAT, start + 2, bytes.len()));
        };
        if code & 0x3f != CACHING_PAGE {
            let reason = format!("it is page {:#04x}", code & 0x3f);
            return Err(ScsiError::Answer { what: WHAT, reason });
        }
        let end = start + 2 + usize::from(length);
        let page = bytes.get(start..end);
        let mut page = page.ok_or_else(|| short(WHAT, end, bytes.len()))?.to_vec();
        if page.len() <= LOOK_AHEAD.byte {
            return Err(short(WHAT, LOOK_AHEAD.byte + 1, page.len()));
        }
        // "Can be saved" is an answer; in a request the bit is reserved.
        page[0] &= 0x7f;
        Ok(Caching {
            page,
            knows_fua: bytes[3] & 0x10 != 0,
            is_read_only: bytes[3] & 0x80 != 0,
        })
    }

    /// Whether writes end before they are on the medium.
    pub fn write_cache(&self) -> Switch {
        self.get(&WRITE_CACHE)
    }

    /// Whether the drive reads ahead.
    pub fn look_ahead(&self) -> Switch {
        self.get(&LOOK_AHEAD)
    }

    /// Whether reads may be answered from the cache.
    pub fn read_cache(&self) -> Switch {
        self.get(&READ_CACHE)
    }

    /// The page with another write cache switch.
    #[must_use]
    pub fn with_write_cache(self, to: Switch) -> Self {
        self.with(&WRITE_CACHE, to)
    }

    /// The page with another look-ahead switch.
    #[must_use]
    pub fn with_look_ahead(self, to: Switch) -> Self {
        self.with(&LOOK_AHEAD, to)
    }

    /// The page with another read cache switch.
    #[must_use]
    pub fn with_read_cache(self, to: Switch) -> Self {
        self.with(&READ_CACHE, to)
    }

    /// The first switch that differs in `wanted` and cannot be changed. `changeable` is the page of
    /// changeable values.
    pub fn refuses(&self, wanted: &Caching, changeable: &Caching) -> Option<&'static str> {
        let switches = [
            ("write cache", &WRITE_CACHE),
            ("look-ahead", &LOOK_AHEAD),
            ("read cache", &READ_CACHE),
        ];
        let mut refused = switches.into_iter().filter(|(_, bit)| {
            self.get(bit) != wanted.get(bit) && changeable.page[bit.byte] & bit.mask == 0
        });
        refused.next().map(|(name, _)| name)
    }

    /// The data of MODE SELECT (10): a header of zeroes, and the page.
    pub fn to_select(&self) -> Vec<u8> {
        let mut bytes = vec![0; MODE_HEADER];
        bytes.extend_from_slice(&self.page);
        bytes
    }

    fn get(&self, bit: &Bit) -> Switch {
        let is_set = self.page[bit.byte] & bit.mask != 0;
        match (is_set, bit.set) {
            (true, set) => set,
            (false, Switch::On) => Switch::Off,
            (false, Switch::Off) => Switch::On,
        }
    }

    fn with(mut self, bit: &Bit, to: Switch) -> Self {
        if to == bit.set {
            self.page[bit.byte] |= bit.mask;
        } else {
            self.page[bit.byte] &= !bit.mask;
        }
        self
    }
}

/// The payload of an inquiry page of product data.
pub(super) fn vital<'a>(
    bytes: &'a [u8],
    what: &'static str,
    code: u8,
) -> Result<&'a [u8], ScsiError> {
    if bytes.len() < 4 {
        return Err(short(what, 4, bytes.len()));
    }
    if bytes[1] != code {
        let reason = format!("it is page {:#04x}", bytes[1]);
        return Err(ScsiError::Answer { what, reason });
    }
    let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    // A page may be longer than what was asked for.
    Ok(&bytes[4..bytes.len().min(4 + length)])
}

/// Text of a drive, without blanks at its ends. Other bytes become replacement characters.
fn text(bytes: &[u8]) -> String {
    let letters = bytes.iter().map(|&byte| match byte {
        0x20..=0x7e => char::from(byte),
        0 => ' ',
        _ => char::REPLACEMENT_CHARACTER,
    });
    letters.collect::<String>().trim().to_string()
}

pub(super) fn short(what: &'static str, needed: usize, length: usize) -> ScsiError {
    let reason = format!("it has {length} bytes, not {needed}");
    ScsiError::Answer { what, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inquiry(first: u8) -> Vec<u8> {
        let mut bytes = vec![first, 0, 6, 2, 31, 0, 0, 0];
        bytes.extend_from_slice(b"SEAGATE ST3300657SS     0008");
        bytes
    }

    #[test]
    fn a_golden_identity() {
        let identity = Identity::parse(&inquiry(0)).expect("an identity");
        let expected = Identity {
            kind: Kind::Blocks,
            vendor: "SEAGATE".to_string(),
            product: "ST3300657SS".to_string(),
            revision: "0008".to_string(),
        };
        assert_eq!(identity, expected);
        let kind = |first| Identity::parse(&inquiry(first)).map(|identity| identity.kind);
        assert_eq!(kind(0x14).ok(), Some(Kind::Zoned));
        assert_eq!(kind(0x05).ok(), Some(Kind::Other(5)));
        assert_eq!(kind(0x7f).ok(), Some(Kind::Nothing));
    }

    #[test]
    fn golden_product_pages() {
        let page = [0, 0x80, 0, 8, b' ', b'Z', b'1', b'2', b'3', b'4', b'5', 0];
        assert_eq!(serial(&page).ok().as_deref(), Some("Z12345"));
        let rotation = |rate: u16| {
            let [high, low] = rate.to_be_bytes();
            Rotation::parse(&[0, 0xb1, 0, 2, high, low]).ok()
        };
        assert_eq!(rotation(15000), Some(Rotation::PerMinute(15000)));
        assert_eq!(rotation(1), Some(Rotation::Solid));
        assert_eq!(rotation(0), Some(Rotation::Unknown));
        assert_eq!(rotation(0xffff), Some(Rotation::Unknown));
        assert!(Rotation::parse(&page).is_err());
        let zones = |byte: u8| Zones::parse(&[0, 0xb1, 0, 5, 0, 0, 0, 0, byte]).ok();
        assert_eq!(zones(0x0f), Some(Zones::None));
        assert_eq!(zones(0x12), Some(Zones::HostAware));
        assert_eq!(zones(0x20), Some(Zones::DriveManaged));
        assert_eq!(Zones::parse(&[0, 0xb1, 0, 2, 0, 0]).ok(), Some(Zones::None));
        assert!(Zones::parse(&page).is_err());
    }

    #[test]
    fn golden_capacities() {
        let mut bytes = [0; 32];
        bytes[4..8].copy_from_slice(&0x22ec_b25b_u32.to_be_bytes());
        bytes[8..12].copy_from_slice(&512u32.to_be_bytes());
        bytes[13] = 0x03;
        let expected = Capacity {
            blocks: 0x22ec_b25c,
            block_bytes: 512,
            physical_bytes: 4096,
        };
        assert_eq!(Capacity::parse(&bytes).ok(), Some(expected));
        bytes[..8].fill(0xff);
        assert!(Capacity::parse(&bytes).is_err());
    }

    /// Header, block descriptor and page: write cache and look-ahead on.
    fn modes() -> Vec<u8> {
        let mut bytes = vec![0, 34, 0, 0x10, 0, 0, 0, 8];
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&[0x88, 18, 0x14]);
        bytes.extend_from_slice(&[0; 17]);
        bytes
    }

    #[test]
    fn the_switches_are_where_the_standard_has_them() {
        let page = Caching::parse(&modes()).expect("a page");
        assert!(page.knows_fua && !page.is_read_only);
        assert_eq!(page.write_cache(), Switch::On);
        assert_eq!(page.look_ahead(), Switch::On);
        assert_eq!(page.read_cache(), Switch::On);
        let off = page.with_write_cache(Switch::Off);
        let off = off.with_look_ahead(Switch::Off);
        let off = off.with_read_cache(Switch::Off);
        let mut expected = vec![0; 8];
        expected.extend_from_slice(&[8, 18, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20]);
        expected.extend_from_slice(&[0; 7]);
        assert_eq!(off.to_select(), expected);
    }

    #[test]
    fn a_switch_that_cannot_be_changed_is_named() {
        let page = Caching::parse(&modes()).expect("a page");
        let mut bits = modes();
        bits[18] = 0x04;
        let changeable = Caching::parse(&bits).expect("a page");
        let off = page.clone().with_write_cache(Switch::Off);
        assert_eq!(page.refuses(&off, &changeable), None);
        let both = off.with_look_ahead(Switch::Off);
        assert_eq!(page.refuses(&both, &changeable), Some("look-ahead"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (Identity::parse(&bytes), serial(&bytes), Rotation::parse(&bytes));
            let _ = Zones::parse(&bytes);
            if let Ok(capacity) = Capacity::parse(&bytes) {
                let whole = capacity.blocks.checked_mul(u64::from(capacity.block_bytes));
                prop_assert!(whole.is_some_and(|bytes| bytes > 0));
            }
        }

        #[test]
        fn a_page_that_is_set_twice_is_as_it_was(
            mut bytes in prop::collection::vec(any::<u8>(), 16..64),
        ) {
            bytes[6..8].fill(0);
            bytes[8] = 0x88;
            bytes[9] %= 32;
            if let Ok(page) = Caching::parse(&bytes) {
                let before = page.write_cache();
                let other = page.clone().with_write_cache(Switch::On).with_write_cache(before);
                prop_assert_eq!(page, other);
            }
        }
    }
}
