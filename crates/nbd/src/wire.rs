//! The numbers of the protocol, by the names that its document gives them, and how to read them
//! from bytes.

use block::operation::OperationError;

/// `INIT_PASSWD`: "NBDMAGIC", the first bytes of a server.
pub const INIT_PASSWD: u64 = 0x4e42_444d_4147_4943;
/// `cliserv_magic`: the negotiation before newstyle.
pub const OLDSTYLE: u64 = 0x0000_4202_8186_1253;
/// "IHAVEOPT": newstyle negotiation, and each option.
pub const IHAVEOPT: u64 = 0x4948_4156_454F_5054;
/// Begins each reply to an option.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// `NBD_REQUEST_MAGIC`.
pub const REQUEST: u32 = 0x2560_9513;
/// `NBD_SIMPLE_REPLY_MAGIC`.
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
/// `NBD_STRUCTURED_REPLY_MAGIC`.
pub const STRUCTURED_REPLY: u32 = 0x668e_33ef;
/// `NBD_EXTENDED_REQUEST_MAGIC`.
pub const EXTENDED_REQUEST: u32 = 0x21e4_1c71;
/// `NBD_EXTENDED_REPLY_MAGIC`.
pub const EXTENDED_REPLY: u32 = 0x6e8a_278c;

/// `NBD_FLAG_FIXED_NEWSTYLE` and `NBD_FLAG_C_FIXED_NEWSTYLE`.
pub const FIXED_NEWSTYLE: u16 = 1 << 0;
/// `NBD_FLAG_NO_ZEROES` and `NBD_FLAG_C_NO_ZEROES`.
pub const NO_ZEROES: u16 = 1 << 1;

/// What a client asks for before transmission.
pub mod option {
    /// `NBD_OPT_EXPORT_NAME`.
    pub const EXPORT_NAME: u32 = 1;
    /// `NBD_OPT_ABORT`.
    pub const ABORT: u32 = 2;
    /// `NBD_OPT_LIST`.
    pub const LIST: u32 = 3;
    /// `NBD_OPT_STARTTLS`.
    pub const STARTTLS: u32 = 5;
    /// `NBD_OPT_INFO`.
    pub const INFO: u32 = 6;
    /// `NBD_OPT_GO`.
    pub const GO: u32 = 7;
    /// `NBD_OPT_STRUCTURED_REPLY`.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// `NBD_OPT_LIST_META_CONTEXT`.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// `NBD_OPT_SET_META_CONTEXT`.
    pub const SET_META_CONTEXT: u32 = 10;
    /// `NBD_OPT_EXTENDED_HEADERS`.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// How options are answered.
pub mod answer {
    /// `NBD_REP_ACK`.
    pub const ACK: u32 = 1;
    /// `NBD_REP_SERVER`.
    pub const SERVER: u32 = 2;
    /// `NBD_REP_INFO`.
    pub const INFO: u32 = 3;
    /// `NBD_REP_META_CONTEXT`.
    pub const META_CONTEXT: u32 = 4;
    /// The bit that all errors have.
    pub const ERROR: u32 = 1 << 31;
    /// `NBD_REP_ERR_UNSUP`.
    pub const UNSUP: u32 = ERROR + 1;
    /// `NBD_REP_ERR_POLICY`.
    pub const POLICY: u32 = ERROR + 2;
    /// `NBD_REP_ERR_INVALID`.
    pub const INVALID: u32 = ERROR + 3;
    /// `NBD_REP_ERR_TLS_REQD`.
    pub const TLS_REQD: u32 = ERROR + 5;
    /// `NBD_REP_ERR_UNKNOWN`.
    pub const UNKNOWN: u32 = ERROR + 6;
    /// `NBD_REP_ERR_SHUTDOWN`.
    pub const SHUTDOWN: u32 = ERROR + 7;
    /// `NBD_REP_ERR_TOO_BIG`.
    pub const TOO_BIG: u32 = ERROR + 9;
    /// `NBD_REP_ERR_EXT_HEADER_REQD`.
    pub const EXT_HEADER_REQD: u32 = ERROR + 10;
}

/// What is told of an export.
pub mod about {
    /// `NBD_INFO_EXPORT`.
    pub const EXPORT: u16 = 0;
    /// `NBD_INFO_NAME`.
    pub const NAME: u16 = 1;
    /// `NBD_INFO_DESCRIPTION`.
    pub const DESCRIPTION: u16 = 2;
    /// `NBD_INFO_BLOCK_SIZE`.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: what an export can do.
pub mod transmission {
    /// `NBD_FLAG_HAS_FLAGS`.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// `NBD_FLAG_READ_ONLY`.
    pub const READ_ONLY: u16 = 1 << 1;
    /// `NBD_FLAG_SEND_FLUSH`.
    pub const FLUSH: u16 = 1 << 2;
    /// `NBD_FLAG_SEND_FUA`.
    pub const FUA: u16 = 1 << 3;
    /// `NBD_FLAG_ROTATIONAL`.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// `NBD_FLAG_SEND_TRIM`.
    pub const TRIM: u16 = 1 << 5;
    /// `NBD_FLAG_SEND_WRITE_ZEROES`.
    pub const WRITE_ZEROES: u16 = 1 << 6;
    /// `NBD_FLAG_SEND_DF`.
    pub const DF: u16 = 1 << 7;
    /// `NBD_FLAG_CAN_MULTI_CONN`.
    pub const MULTI_CONN: u16 = 1 << 8;
    /// `NBD_FLAG_SEND_CACHE`.
    pub const CACHE: u16 = 1 << 10;
    /// `NBD_FLAG_SEND_FAST_ZERO`.
    pub const FAST_ZERO: u16 = 1 << 11;
}

/// Types of requests.
pub mod command {
    /// `NBD_CMD_READ`.
    pub const READ: u16 = 0;
    /// `NBD_CMD_WRITE`.
    pub const WRITE: u16 = 1;
    /// `NBD_CMD_DISC`.
    pub const DISC: u16 = 2;
    /// `NBD_CMD_FLUSH`.
    pub const FLUSH: u16 = 3;
    /// `NBD_CMD_TRIM`.
    pub const TRIM: u16 = 4;
    /// `NBD_CMD_CACHE`.
    pub const CACHE: u16 = 5;
    /// `NBD_CMD_WRITE_ZEROES`.
    pub const WRITE_ZEROES: u16 = 6;
    /// `NBD_CMD_BLOCK_STATUS`.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests.
pub mod flag {
    /// `NBD_CMD_FLAG_FUA`.
    pub const FUA: u16 = 1 << 0;
    /// `NBD_CMD_FLAG_NO_HOLE`.
    pub const NO_HOLE: u16 = 1 << 1;
    /// `NBD_CMD_FLAG_DF`.
    pub const DF: u16 = 1 << 2;
    /// `NBD_CMD_FLAG_REQ_ONE`.
    pub const REQ_ONE: u16 = 1 << 3;
    /// `NBD_CMD_FLAG_FAST_ZERO`.
    pub const FAST_ZERO: u16 = 1 << 4;
    /// `NBD_CMD_FLAG_PAYLOAD_LEN`.
    pub const PAYLOAD_LEN: u16 = 1 << 5;
}

/// Chunks of replies.
pub mod chunk {
    /// `NBD_REPLY_FLAG_DONE`: the last one of its reply.
    pub const DONE: u16 = 1 << 0;
    /// `NBD_REPLY_TYPE_NONE`.
    pub const NONE: u16 = 0;
    /// `NBD_REPLY_TYPE_OFFSET_DATA`.
    pub const OFFSET_DATA: u16 = 1;
    /// `NBD_REPLY_TYPE_OFFSET_HOLE`.
    pub const OFFSET_HOLE: u16 = 2;
    /// `NBD_REPLY_TYPE_BLOCK_STATUS`.
    pub const BLOCK_STATUS: u16 = 5;
    /// `NBD_REPLY_TYPE_BLOCK_STATUS_EXT`.
    pub const BLOCK_STATUS_EXT: u16 = 6;
    /// The bit that all errors have.
    pub const IS_ERROR: u16 = 1 << 15;
    /// `NBD_REPLY_TYPE_ERROR`.
    pub const ERROR: u16 = IS_ERROR + 1;
    /// `NBD_REPLY_TYPE_ERROR_OFFSET`.
    pub const ERROR_OFFSET: u16 = IS_ERROR + 2;
}

/// No string of the protocol is longer than this many bytes.
pub const STRING: usize = 4096;

/// The header of an option: magic, option, length.
pub const OPTION_HEADER: usize = 16;
/// The header of a reply to an option: magic, option, answer, length.
pub const ANSWER_HEADER: usize = 20;
/// The header of a compact request.
pub const COMPACT_REQUEST: usize = 28;
/// The header of an extended request, and of an extended chunk.
pub const EXTENDED_HEADER: usize = 32;
/// A simple reply.
pub const SIMPLE: usize = 16;
/// The header of a structured chunk.
pub const STRUCTURED: usize = 20;

/// The protocol's number for a failure (the section "Error values").
#[must_use]
pub const fn number(failed: OperationError) -> u32 {
    match failed {
        OperationError::NotPermitted => 1,
        OperationError::Io => 5,
        OperationError::Invalid => 22,
        OperationError::NoSpace => 28,
        OperationError::TooLong => 75,
        OperationError::Unsupported => 95,
        OperationError::ShuttingDown => 108,
    }
}

/// What a number means; unexpected ones count as `NBD_EINVAL`, as the protocol wants it.
#[must_use]
pub const fn failure(number: u32) -> OperationError {
    match number {
        1 => OperationError::NotPermitted,
        // NBD_EIO, and NBD_ENOMEM: the other side could not, whoever asks.
        5 | 12 => OperationError::Io,
        28 => OperationError::NoSpace,
        75 => OperationError::TooLong,
        95 => OperationError::Unsupported,
        108 => OperationError::ShuttingDown,
        _ => OperationError::Invalid,
    }
}

/// Bytes that are taken from the front, field by field. A missing field is `None`.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    /// The next 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string behind its length of 32 bits.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        self.take(length)
    }
}

/// The length of what is short by construction, as the protocol writes lengths.
#[must_use]
pub fn length32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The length of a string, as the protocol writes it where it has 16 bits for that.
#[must_use]
pub fn length16(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}
