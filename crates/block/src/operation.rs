//! What a client asks of a volume, whatever protocol it speaks, and how that ends.

/// What is asked for. Offsets and lengths are beside it, in bytes of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The bytes.
    Read,
    /// New bytes.
    Write {
        /// When the write counts as done.
        durability: crate::Durability,
    },
    /// Zeroes in place of the bytes.
    Zero {
        /// When that counts as done.
        durability: crate::Durability,
        /// Whether the space may be given back, too.
        space: Space,
        /// Whether it must not take longer than giving space back does.
        pace: ZeroingPace,
    },
    /// The bytes are of no use any more.
    Trim {
        /// When that counts as done.
        durability: crate::Durability,
    },
    /// What was written and answered is on the medium afterwards.
    Flush,
    /// The bytes will be read soon.
    Cache,
}

/// What becomes of the space of zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// It may be given back.
    MayBeFreed,
    /// It stays reserved.
    Kept,
}

/// How long writing zeroes may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroingPace {
    /// As long as writing the bytes.
    Any,
    /// Refused, if it takes as long as writing the bytes.
    Fast,
}

/// Why an operation failed, as clients are told (the errors that NBD has, and FUSE and ublk, too).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// The volume may only be read.
    #[error("the volume is read-only")]
    NotPermitted,
    /// The medium or the way to it failed.
    #[error("input or output failed")]
    Io,
    /// What was asked makes no sense: not aligned, past the end, unknown.
    #[error("a request that makes no sense")]
    Invalid,
    /// The device or the file system under the image is full.
    #[error("no space left")]
    NoSpace,
    /// Longer than any request may be.
    #[error("a request that is too long")]
    TooLong,
    /// This volume does not do that.
    #[error("not supported")]
    Unsupported,
    /// The service is going down.
    #[error("the service is going down")]
    ShuttingDown,
}
