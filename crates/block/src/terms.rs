//! The terms of a guaranteed stream, from the client's call over the wire to admission.

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
    /// The client writes the file. A write ends when the stream's buffer has the data.
    Record,
    /// The client writes the file. A write ends when the data is on the medium.
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

    /// The direction of the stream's transfers.
    pub const fn direction(self) -> Direction {
        match self {
            StreamMode::Play => Direction::Read,
            StreamMode::Record | StreamMode::RecordSync => Direction::Write,
        }
    }
}

/// The terms of a stream. They hold as long as the stream is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Terms {
    /// The stream's name in lists and in rules about names.
    #[cfg_attr(feature = "serde", serde(default))]
    pub name: String,
    /// The purpose.
    #[cfg_attr(feature = "serde", serde(default))]
    pub mode: StreamMode,
    /// The rate in bytes a second. 0 with a priority requests no guarantee, only the priority.
    pub rate: u64,
    /// The largest distance of the application's reads or writes from the playout point, in bytes.
    pub buffer: u64,
    /// The largest memory of the service for this stream, in bytes. `None`: the service finds the
    /// need before admission.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub memory: Option<u64>,
    /// The best-effort priority of the file, from 0 (highest) to 6. `None`: the priority of the
    /// export, and the service's for buffers. The priority holds for all clients' reads and writes
    /// of the file, and for filling the buffer. The highest requested priority counts.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub priority: Option<u8>,
    /// The first byte of the file that the application needs.
    #[cfg_attr(feature = "serde", serde(default))]
    pub start: u64,
    /// The export whose volume has the file. A client omits it if the kernel knows the export; on
    /// the wire it is always present.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub export: Option<String>,
}

impl Terms {
    /// Terms to play at `rate` bytes a second, with reads at most `buffer` bytes beyond the playout
    /// point.
    pub fn play(rate: u64, buffer: u64) -> Self {
        Terms {
            rate,
            buffer,
            ..Terms::default()
        }
    }

    /// Terms to record at `rate` bytes a second, with at most `buffer` bytes at once.
    pub fn record(rate: u64, buffer: u64) -> Self {
        Terms {
            mode: StreamMode::Record,
            ..Terms::play(rate, buffer)
        }
    }

    /// Terms of a file with a priority from 0 (highest) to 6 and no guarantee.
    pub fn prefer(priority: u8) -> Self {
        Terms {
            priority: Some(priority),
            ..Terms::default()
        }
    }

    /// The priority, if the terms request nothing else.
    pub fn preference(&self) -> Option<u8> {
        self.priority.filter(|_| self.rate == 0)
    }
}
