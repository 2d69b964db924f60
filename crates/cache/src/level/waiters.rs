//! Which requests wait for which frame.

use crate::residency::FrameId;

/// No node follows.
const NONE: u32 = u32::MAX;

/// A list of requests for each frame.
#[derive(Debug)]
pub(super) struct Waiters {
    /// By frame, the first node.
    heads: Box<[u32]>,
    nodes: Vec<Node>,
    empty: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    request: u32,
    next: u32,
}

impl Waiters {
    /// For frames whose numbers are less than this.
    pub(super) fn new(frame_ids: usize) -> Self {
        Self {
            heads: vec![NONE; frame_ids].into_boxed_slice(),
            nodes: Vec::new(),
            empty: NONE,
        }
    }

    /// Whether a request waits for the frame.
    pub(super) fn is_awaited(&self, frame: FrameId) -> bool {
        self.heads[frame.index()] != NONE
    }

    /// The request waits for the frame.
    pub(super) fn push(&mut self, frame: FrameId, request: u32) {
        let head = &mut self.heads[frame.index()];
        let node = Node {
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
        let head = &mut self.heads[frame.index()];
        let place = *head;
        let node = self.nodes.get_mut(place as usize)?;
        *head = node.next;
        node.next = self.empty;
        self.empty = place;
        Some(node.request)
    }
}
