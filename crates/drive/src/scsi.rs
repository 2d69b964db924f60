//! What the drives of the 1990s did on a SCSI bus beyond the overheads that every drive has.
//!
//! The numbers are those of DiskSim's validated models, carried over so that the model can use
//! them where an experiment shows that they matter.

use block::Duration;

/// Phases of the bus, and rules for using it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScsiRules {
    /// The bus is held during the whole transfer of a read.
    pub hold_bus_read: bool,
    /// The bus is held during the whole transfer of a write.
    pub hold_bus_write: bool,
    /// The bus is never given up during a command.
    pub never_disconnect: bool,
    /// Writes always use the same segment of the buffer.
    pub separate_write_segment: bool,
    /// A read that the buffer answers wholly starts look-ahead again if the drive is idle.
    pub look_ahead_on_idle_hit: bool,
    /// Blocks before the requested ones are kept if they pass under the head first.
    pub read_passing_blocks: bool,
    /// Look-ahead may be stopped in the middle of a sector.
    pub stop_look_ahead_in_sector: bool,
    /// The share of a write, in 1/1000, below which written data have to fall before the drive
    /// asks for more of an interrupted transfer.
    pub write_watermark: u16,
    /// Preparing data, in parallel with the medium.
    pub data_preparation: Duration,
    /// The first reselection of a command.
    pub first_reselect: Duration,
    /// Each further reselection.
    pub other_reselect: Duration,
    /// Giving up the bus in a read that follows a read.
    pub read_disconnect_after_read: Duration,
    /// Giving up the bus in a read that follows a write.
    pub read_disconnect_after_write: Duration,
    /// Giving up the bus in a write.
    pub write_disconnect: Duration,
    /// The times of drives that give up the bus before any data of a write are transferred.
    pub early_disconnect: Option<EarlyDisconnect>,
    /// From the command to the seek, at least.
    pub minimum_seek_delay: Duration,
}

/// The times of a write that gives up the bus before any data are transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlyDisconnect {
    /// Instead of the write overhead: before giving up the bus and before any positioning.
    pub command: Duration,
    /// Giving up the bus, in parallel with positioning.
    pub first: Duration,
    /// From giving up the bus to coming back, in parallel with positioning.
    pub between: Duration,
    /// Giving up the bus after the data, in parallel with the medium.
    pub second: Duration,
    /// From the end of the command overhead to the seek.
    pub seek_delay: Duration,
}
