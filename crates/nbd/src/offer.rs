//! What a server offers: an export with its name, its size, and what it can do.

use super::wire::{self, transmission};
use super::{Context, Style};

/// An export, as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// By which clients ask for it.
    pub name: Text,
    /// For people.
    pub description: Text,
    /// In bytes.
    pub size: u64,
    /// What its requests have to keep to.
    pub block: BlockSizes,
    /// What it can do.
    pub features: Features,
    /// What can be asked about its blocks.
    pub contexts: Vec<Context>,
}

/// A text of at most 4096 bytes without NUL: the longest that the protocol has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// Checks `text`.
    ///
    /// # Errors
    /// If it is too long, or has a NUL.
    pub fn new(text: impl Into<String>) -> Result<Self, Unfit> {
        let text = text.into();
        if text.len() > wire::STRING {
            return Err(Unfit::TextTooLong(text.len()));
        }
        if text.contains('\0') {
            return Err(Unfit::TextWithNul);
        }
        Ok(Self(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What requests have to keep to, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    min: u32,
    preferred: u32,
    max: u32,
}

impl BlockSizes {
    /// Offsets and lengths are multiples of `min`, best of `preferred`; reads and writes have at
    /// most `max` bytes.
    ///
    /// # Errors
    /// If the protocol does not allow these (its section "Size constraints"), or `max` is above
    /// [`PAYLOAD`].
    pub const fn new(min: u32, preferred: u32, max: u32) -> Result<Self, Unfit> {
        if !min.is_power_of_two() || min > MIN_AT_MOST {
            return Err(Unfit::Min(min));
        }
        if !preferred.is_power_of_two() || preferred < 512 || preferred < min {
            return Err(Unfit::Preferred(preferred));
        }
        if max < preferred || max < MAX_AT_LEAST || max > PAYLOAD || !max.is_multiple_of(min) {
            return Err(Unfit::Max(max));
        }
        Ok(Self {
            min,
            preferred,
            max,
        })
    }

    /// What another server tells of itself. It may tell of more than we ever ask at once, and of
    /// less than the protocol recommends.
    ///
    /// # Errors
    /// If no request keeps to these.
    pub(super) const fn told(min: u32, preferred: u32, max: u32) -> Result<Self, Unfit> {
        if !min.is_power_of_two() || min > MIN_AT_MOST {
            return Err(Unfit::Min(min));
        }
        if !preferred.is_power_of_two() || preferred < min {
            return Err(Unfit::Preferred(preferred));
        }
        if max < min {
            return Err(Unfit::Max(max));
        }
        let most = PAYLOAD;
        let max = if max < most { max } else { most };
        Ok(Self {
            min,
            preferred,
            max: max - max % min,
        })
    }

    /// What suits servers that tell nothing of themselves.
    pub(super) const UNTOLD: Self = Self {
        min: 512,
        preferred: 4096,
        max: 1 << 25,
    };

    /// The smallest length and alignment.
    #[must_use]
    pub const fn min(self) -> u32 {
        self.min
    }

    /// The length and alignment that cost least.
    #[must_use]
    pub const fn preferred(self) -> u32 {
        self.preferred
    }

    /// The longest read or write.
    #[must_use]
    pub const fn max(self) -> u32 {
        self.max
    }
}

impl Default for BlockSizes {
    /// What the protocol assumes where nothing else is said.
    fn default() -> Self {
        Self {
            min: 1,
            preferred: 4096,
            max: 1 << 25,
        }
    }
}

/// What an export can do: the protocol's transmission flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// It cannot be written.
    pub read_only: bool,
    /// It has flushes.
    pub flush: bool,
    /// It has writes that are done when they are on the medium.
    pub fua: bool,
    /// It has trims.
    pub trim: bool,
    /// It has writes of zeroes without a payload.
    pub write_zeroes: bool,
    /// It refuses those that would take as long as a write, if the client wants that.
    pub fast_zero: bool,
    /// A flush on one connection is good for all.
    pub multi_conn: bool,
    /// It takes hints of what will be read.
    pub cache: bool,
    /// It has heads that move.
    pub rotational: bool,
    /// It answers a read in one piece, if the client wants that.
    pub df: bool,
}

impl Features {
    /// The flags as the protocol writes them for a client of this style. What makes no sense is
    /// left out: trims of what cannot be written, undivided replies where none are divided.
    #[must_use]
    pub const fn flags(self, style: Style) -> u16 {
        let writable = !self.read_only;
        transmission::HAS_FLAGS
            | when(self.read_only, transmission::READ_ONLY)
            | when(self.flush, transmission::FLUSH)
            | when(self.fua, transmission::FUA)
            | when(self.rotational, transmission::ROTATIONAL)
            | when(self.trim && writable, transmission::TRIM)
            | when(self.write_zeroes && writable, transmission::WRITE_ZEROES)
            | when(self.df && style.structured(), transmission::DF)
            | when(self.multi_conn, transmission::MULTI_CONN)
            | when(self.cache, transmission::CACHE)
            | when(
                self.fast_zero && self.write_zeroes && writable,
                transmission::FAST_ZERO,
            )
    }

    /// What a server's flags mean. Unknown ones are ignored, as the protocol wants it.
    #[must_use]
    pub const fn of_flags(flags: u16) -> Self {
        Self {
            read_only: flags & transmission::READ_ONLY != 0,
            flush: flags & transmission::FLUSH != 0,
            fua: flags & transmission::FUA != 0,
            trim: flags & transmission::TRIM != 0,
            write_zeroes: flags & transmission::WRITE_ZEROES != 0,
            fast_zero: flags & transmission::FAST_ZERO != 0,
            multi_conn: flags & transmission::MULTI_CONN != 0,
            cache: flags & transmission::CACHE != 0,
            rotational: flags & transmission::ROTATIONAL != 0,
            df: flags & transmission::DF != 0,
        }
    }
}

/// Why something cannot be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A text is too long.
    #[error("a text of {0} bytes, expected at most 4096")]
    TextTooLong(usize),
    /// A text has a NUL.
    #[error("a text with a NUL, expected none")]
    TextWithNul,
    /// The smallest block.
    #[error("a smallest block of {0} bytes, expected a power of two of at most 65536")]
    Min(u32),
    /// The preferred block.
    #[error(
        "a preferred block of {0} bytes, expected a power of two, at least 512 and the smallest block"
    )]
    Preferred(u32),
    /// The longest read or write.
    #[error(
        "a longest request of {0} bytes, expected a multiple of the smallest block from 1 MiB and the preferred block to 64 MiB"
    )]
    Max(u32),
}

const fn when(condition: bool, flag: u16) -> u16 {
    if condition { flag } else { 0 }
}

/// The largest smallest block ("MUST NOT be larger than 2^16").
const MIN_AT_MOST: u32 = 1 << 16;
/// What the longest request is at least ("SHOULD be at least 2^20").
const MAX_AT_LEAST: u32 = 1 << 20;
/// The longest payload that is passed over in order to answer: what clients never exceed (nbdkit
/// and libnbd have the same limit; the protocol wants at least 32 MiB). A longer one ends the
/// session.
pub const PAYLOAD: u32 = 64 << 20;
