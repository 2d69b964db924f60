//! What an engine answers about commands at the drive, in the numbers of the drive.

use block::{CommandId, Extent, Request};

use super::Engine;
use super::division::Side;
use crate::guarantees::streams::StreamTransfer;

impl Engine {
    /// Whether a command is at the drive.
    pub fn is_at_drive(&self, id: CommandId) -> bool {
        let (side, id) = self.side_of(id);
        self.arm(side).dispatch().is_at_drive(id)
    }

    /// Whether a command at the drive belongs to no request.
    pub fn is_background(&self, id: CommandId) -> bool {
        let (side, id) = self.side_of(id);
        self.arm(side).dispatch().is_background(id)
    }

    /// Whether a command at the drive reads ahead of a request, in slack that nothing else wanted.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn is_read_ahead(&self, id: CommandId) -> bool {
        let (side, id) = self.side_of(id);
        self.arm(side).dispatch().is_read_ahead(id)
    }

    /// The blocks that a command at the drive reads in the background, by itself or merged with those
    /// of a request; `None` if it reads none. The owner of its bytes has them when it ends.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn background_of(&self, id: CommandId) -> Option<Extent> {
        let (side, id) = self.side_of(id);
        let extent = self.arm(side).dispatch().background_of(id)?;
        Some(
            self.division()
                .map_or(extent, |division| division.of_drive(side, extent)),
        )
    }

    /// The request of a command at the drive; `None` for a background or calibration read, a flush, and
    /// a stream's transfer ([`Engine::stream_of`]).
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn request_of(&self, id: CommandId) -> Option<Request> {
        let (side, id) = self.side_of(id);
        let request = self.arm(side).request_of(id)?;
        match &self.joint {
            None => Some(request),
            Some(joint) => Some(joint.as_submitted(side, request)),
        }
    }

    /// The bytes of a stream that a command at the drive transfers; `None` for other commands.
    ///
    /// # Panics
    /// If the command is not at the drive.
    #[inline]
    pub fn stream_of(&self, id: CommandId) -> Option<StreamTransfer> {
        match self.side_of(id) {
            (Side::First, id) => self.first.stream_of(id),
            (Side::Second, _) => None,
        }
    }
}
