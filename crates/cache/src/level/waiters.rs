//! Frames in flight: which come together, and which requests wait for which of them.
//!
//! ```text
//!   fetch:  frame -> frame -> frame          one after the other, as their blocks
//!             |                 |
//!          request           request         who asked later for what is under way
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

/// What is known of a frame in flight.
#[derive(Clone, Copy, Debug)]
struct Coming {
    /// The first of those that wait.
    head: u32,
    /// The next frame of the same fetch.
    next: FrameId,
}

/// Lists of requests and of frames, by frame.
#[derive(Debug)]
pub(super) struct Waiters {
    frames: Box<[Coming]>,
    nodes: Vec<WaiterNode>,
    empty: u32,
}

#[derive(Clone, Copy, Debug)]
struct WaiterNode {
    request: u32,
    next: u32,
}

impl Waiters {
    /// For frames whose numbers are less than this.
    pub(super) fn new(frame_ids: usize) -> Self {
        Self {
            frames: vec![
                Coming {
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

    /// The frames come with those of the chain, behind them.
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

    /// The frame of the chain after this one; after none comes the first.
    pub(super) fn after(&self, chain: Chain, frame: Option<FrameId>) -> Option<FrameId> {
        let next = match frame {
            Some(frame) => self.frames[frame.index()].next,
            None => chain.first,
        };
        (next != FrameId::HEAD).then_some(next)
    }

    /// The request waits for the frame.
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

    /// A request that waits for the frame no longer does; the last one first.
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
