//! The operations that a client sends to a volume over any protocol, and their errors.

/// The kind of an operation. Offset and length stand beside it, in bytes of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Returns the bytes.
    Read,
    /// Replaces the bytes.
    Write {
        /// When the write counts as done.
        durability: crate::Durability,
    },
    /// Replaces the bytes by zeroes.
    Zero {
        /// When the operation counts as done.
        durability: crate::Durability,
        /// Whether the volume may deallocate the space.
        space: Space,
        /// Whether the operation may take as long as a write.
        pace: ZeroingPace,
    },
    /// Declares the bytes unused.
    Trim {
        /// When the operation counts as done.
        durability: crate::Durability,
    },
    /// Puts all completed writes onto the medium.
    Flush,
    /// Announces that the bytes will be read soon.
    Cache,
}

/// The allocation of zeroed space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The volume may deallocate it.
    MayBeFreed,
    /// The space stays allocated.
    Kept,
}

/// The time that zeroing may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroingPace {
    /// As long as a write of the bytes.
    Any,
    /// Less than a write of the bytes; else the operation is refused.
    Fast,
}

/// The reason of a failure, as clients see it. NBD, FUSE and ublk have these errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// The volume is read-only.
    #[error("the volume is read-only")]
    NotPermitted,
    /// The medium or the path to it failed.
    #[error("input or output failed")]
    Io,
    /// The operation is invalid: misaligned, past the end, or of an unknown kind.
    #[error("a request that makes no sense")]
    Invalid,
    /// The device, or the file system under the image, is full.
    #[error("no space left")]
    NoSpace,
    /// The operation is longer than the limit.
    #[error("a request that is too long")]
    TooLong,
    /// The volume does not support the operation.
    #[error("not supported")]
    Unsupported,
    /// The service is shutting down.
    #[error("the service is going down")]
    ShuttingDown,
}
