//! Terms of a guaranteed stream: one struct from the client's call over the wire to admission.

use crate::request::Direction;

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum StreamMode {
    /// The client reads the file.
    #[default]
    Play,
    /// The client writes the file. A write ends when the buffer has it.
    Record,
    /// The client writes the file. A write ends when it is on the medium.
    RecordSync,
}

impl StreamMode {
    /// The mode's name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            StreamMode::Play => "play",
            StreamMode::Record => "record",
            StreamMode::RecordSync => "record-sync",
        }
    }

    /// The direction of its transfers.
    pub const fn direction(self) -> Direction {
        match self {
            StreamMode::Play => Direction::Read,
            StreamMode::Record | StreamMode::RecordSync => Direction::Write,
        }
    }
}

/// Terms that a client asks for, and that hold while the stream lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Terms {
    /// Name in lists and for rules about names.
    #[cfg_attr(feature = "serde", serde(default))]
    pub name: String,
    /// Purpose.
    #[cfg_attr(feature = "serde", serde(default))]
    pub mode: StreamMode,
    /// Bytes a second. 0 with a priority asks for no guarantee: the file gets the priority only.
    pub rate: u64,
    /// Bytes that the application reads or writes beyond its playout point at most.
    pub buffer: u64,
    /// Memory of the service that the stream may take, in bytes. `None`: as much as it needs, which
    /// the service finds before admission.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub memory: Option<u64>,
    /// Best-effort priority of the file, from 0 (highest) to 6. It holds for every client's reads and
    /// writes of the file, and for filling the buffer; the highest priority that any client asked for
    /// counts. `None`: the export's priority, and the service's for buffers.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub priority: Option<u8>,
    /// First byte of the file that the application wants.
    #[cfg_attr(feature = "serde", serde(default))]
    pub start: u64,
    /// Export whose volume has the file. A client leaves it out where the kernel knows it; on the wire
    /// it is always there.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub export: Option<String>,
}

impl Terms {
    /// Terms to play at `rate` bytes a second, reading at most `buffer` bytes beyond the playout point.
    pub fn play(rate: u64, buffer: u64) -> Self {
        Terms {
            rate,
            buffer,
            ..Terms::default()
        }
    }

    /// Terms to record at `rate` bytes a second, at most `buffer` bytes at once.
    pub fn record(rate: u64, buffer: u64) -> Self {
        Terms {
            mode: StreamMode::Record,
            ..Terms::play(rate, buffer)
        }
    }

    /// A priority from 0 (highest) to 6 for the file, and no guarantee.
    pub fn prefer(priority: u8) -> Self {
        Terms {
            priority: Some(priority),
            ..Terms::default()
        }
    }

    /// The priority, if these terms ask for it alone.
    pub fn preference(&self) -> Option<u8> {
        self.priority.filter(|_| self.rate == 0)
    }
}
