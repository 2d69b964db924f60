//! Frames in flight: the frames of each fetch, and the requests that wait for each frame.
//!
//! ```text
//!   fetch:  frame -> frame -> frame          in the order of their blocks
//!             |                 |
//!          request           request         later requests for blocks in flight
//!             |
//!          request
//! ```

use crate::residency::FrameId;

/// No node follows.
const NONE: u32 = u32::MAX;

/// The frames of one fetch, in the order of their blocks; none if both are [`FrameId::HEAD`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    first: FrameId,
    last: FrameId,
}

/// The lists of a frame in flight.
#[derive(Clone, Copy, Debug)]
struct FrameInFlight {
    /// The first waiting request.
    head: u32,
    /// The next frame of the same fetch.
    next: FrameId,
}

/// Lists of requests and of frames, by frame.
#[derive(Debug)]
pub(super) struct Waiters {
    frames: Box<[FrameInFlight]>,
    nodes: Vec<WaiterNode>,
    empty: u32,
}

#[derive(Clone, Copy, Debug)]
struct WaiterNode {
    request: u32,
    next: u32,
}

impl Waiters {
    /// Empty lists for frames with numbers below `frame_ids`.
    pub(super) fn new(frame_ids: usize) -> Self {
        Self {
            frames: vec![
                FrameInFlight {
                    head: NONE,
                    next: FrameId::HEAD,
                };
                frame_ids
            ]
            .into_boxed_slice(),
            nodes: Vec::new(),
            empty: NONE,
        }
    }

    /// Whether a request waits for the frame.
    pub(super) fn is_awaited(&self, frame: FrameId) -> bool {
        self.frames[frame.index()].head != NONE
    }

    /// Appends frames to a chain.
    pub(super) fn join(&mut self, chain: &mut Chain, frames: &[FrameId]) {
        for &frame in frames {
            match chain.first == FrameId::HEAD {
                true => chain.first = frame,
                false => self.frames[chain.last.index()].next = frame,
            }
            self.frames[frame.index()].next = FrameId::HEAD;
            chain.last = frame;
        }
    }

    /// The frame of the chain after this one; the first one after `None`.
    pub(super) fn after(&self, chain: Chain, frame: Option<FrameId>) -> Option<FrameId> {
        let next = match frame {
            Some(frame) => self.frames[frame.index()].next,
            None => chain.first,
        };
        (next != FrameId::HEAD).then_some(next)
    }

    /// Adds a request that waits for the frame.
    pub(super) fn push(&mut self, frame: FrameId, request: u32) {
        let head = &mut self.frames[frame.index()].head;
        let node = WaiterNode {
            request,
            next: *head,
        };
        if let Some(free) = self.nodes.get_mut(self.empty as usize) {
            *head = self.empty;
            self.empty = free.next;
            *free = node;
        } else {
            *head = self.nodes.len() as u32;
            self.nodes.push(node);
        }
    }

    /// Removes a request that waits for the frame, the last one first.
    pub(super) fn pop(&mut self, frame: FrameId) -> Option<u32> {
        let head = &mut self.frames[frame.index()].head;
        let place = *head;
        let node = self.nodes.get_mut(place as usize)?;
        *head = node.next;
        node.next = self.empty;
        self.empty = place;
        Some(node.request)
    }
}
