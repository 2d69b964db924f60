//! The order of writes in host-managed zones: one write of a zone is at work at a time.
//!
//! ```text
//!   zone 7:  write at work | waiting: write, read of its blocks, write
//!   zone 9:  write at work |
//!   reads of other blocks pass freely
//! ```
//!
//! A drive refuses a write that does not begin at its zone's pointer. Policies, patience and the drive's own
//! queue therefore see one write of a zone, in the order of arrival. A read waits only behind a waiting
//! write of its own blocks.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use block::{Direction, Finished, Instant, Refused, Request, RequestId, Status};

use super::Engine;
use crate::intake::level_of;

/// The requests that wait for a write of their zone.
pub(super) struct ZoneGate {
    /// The blocks of a zone.
    blocks: u64,
    /// By number, the zones with a write at work or with waiting requests.
    zones: BTreeMap<u64, BusyZone>,
    waiting: BTreeMap<RequestId, WaitingRequest>,
    /// When requests came that have waited, until they end.
    came: BTreeMap<RequestId, Instant>,
    /// Ends that were not reported.
    ended: VecDeque<Finished>,
}

#[derive(Default)]
struct BusyZone {
    /// The write that the arms have.
    at_work: Option<RequestId>,
    /// In the order of arrival. A read waits in all of its zones, so that no later write passes it.
    waiting: VecDeque<RequestId>,
}

struct WaitingRequest {
    request: Request,
    zones: RangeInclusive<u64>,
}

impl Engine {
    /// Checks that the arms will accept a request.
    pub(super) fn admit(&self, request: &Request) -> Result<(), Refused> {
        let (extent, capacity) = (request.extent, self.profile().geometry.sectors().0);
        if extent.end().0 > capacity {
            return Err(Refused::PastEnd { extent, capacity });
        }
        level_of(request.class).map_err(|priority| Refused::Priority { priority })?;
        let limit = self.limits().open_to(request.class);
        match self.held() < limit {
            true => Ok(()),
            false => Err(Refused::Full { limit }),
        }
    }

    /// Takes the ends of the arms, if there are zones, and lets go on what waited for them.
    #[inline]
    pub(super) fn collect(&mut self, now: Instant) {
        while self.zones.is_some()
            && let Some(finished) = self.poll_arms()
        {
            let next = self.zones.as_mut().map(|zones| zones.end(finished));
            self.go_on(now, next.unwrap_or_default());
        }
    }

    /// Gives waiting requests to the arms.
    pub(super) fn go_on(&mut self, now: Instant, next: Vec<Request>) {
        for request in next {
            let taken = match &mut self.joint {
                // It was counted when it was accepted.
                None => self.first.enter(now, request, 0),
                Some(joint) => joint.submit(&mut self.first, now, request, 0),
            };
            taken.expect("an accepted request is not refused later");
        }
    }
}

impl ZoneGate {
    /// The gate of zones of so many blocks.
    pub(super) fn new(blocks: u64) -> Self {
        assert!(blocks > 0, "zones of no blocks: expected at least one");
        ZoneGate {
            blocks,
            zones: BTreeMap::new(),
            waiting: BTreeMap::new(),
            came: BTreeMap::new(),
            ended: VecDeque::new(),
        }
    }

    /// Requests that wait here, and ends that were not reported.
    pub(super) fn held(&self) -> usize {
        self.waiting.len() + self.ended.len()
    }

    /// Whether a request may go on at once; if not, it waits here.
    pub(super) fn passes(&mut self, now: Instant, request: &Request) -> bool {
        let first = request.extent.start().0 / self.blocks;
        let zones = match request.direction {
            // The drive refuses a write that ends in another zone.
            Direction::Write => first..=first,
            Direction::Read => first..=request.extent.last().0 / self.blocks,
        };
        let is_free = match request.direction {
            Direction::Write => !self.zones.contains_key(&first),
            Direction::Read => !self.is_awaited(request, zones.clone()),
        };
        if is_free {
            if request.direction == Direction::Write {
                self.zones.entry(first).or_default().at_work = Some(request.id);
            }
            return true;
        }
        for number in zones.clone() {
            let zone = self.zones.entry(number).or_default();
            zone.waiting.push_back(request.id);
        }
        let request = *request;
        let before = self
            .waiting
            .insert(request.id, WaitingRequest { request, zones });
        assert!(before.is_none(), "{:?} is held already", request.id);
        self.came.insert(request.id, now);
        false
    }

    /// Whether a write of some of the blocks waits.
    fn is_awaited(&self, read: &Request, zones: RangeInclusive<u64>) -> bool {
        let mut before = self.zones.range(zones).flat_map(|(_, zone)| &zone.waiting);
        before.any(|id| {
            let write = &self.waiting[id].request;
            write.direction == Direction::Write && write.extent.overlaps(read.extent)
        })
    }

    /// Keeps an end until it is reported. The answer is the requests that may go on, in their order.
    pub(super) fn end(&mut self, mut finished: Finished) -> Vec<Request> {
        let id = finished.request.id;
        if let Some(came) = self.came.remove(&id) {
            let before = finished.submitted.since(came);
            finished.submitted = came;
            finished.waited += before;
            finished.waited_order += before;
        }
        let number = finished.request.extent.start().0 / self.blocks;
        self.ended.push_back(finished);
        match self.zones.get_mut(&number) {
            Some(zone) if zone.at_work == Some(id) => {
                zone.at_work = None;
                self.advance(number..=number)
            }
            _ => Vec::new(),
        }
    }

    /// Aborts a request, if it waits here. The answer is the requests that may go on then.
    pub(super) fn abort(&mut self, now: Instant, id: RequestId) -> Option<Vec<Request>> {
        let WaitingRequest { request, zones } = self.waiting.remove(&id)?;
        for number in zones.clone() {
            let zone = self.zones.entry(number).or_default();
            zone.waiting.retain(|&other| other != id);
        }
        let submitted = self.came.remove(&id).unwrap_or(now);
        let waited = now.since(submitted);
        self.ended.push_back(Finished {
            request,
            submitted,
            at: now,
            status: Status::Aborted,
            waited,
            waited_order: waited,
            account: None,
        });
        Some(self.advance(zones))
    }

    /// Whether a request is a write that waits or is at work.
    pub(super) fn has_write(&self, id: RequestId) -> bool {
        self.waiting.contains_key(&id) || self.zones.values().any(|zone| zone.at_work == Some(id))
    }

    /// The next end to report.
    pub(super) fn poll(&mut self) -> Option<Finished> {
        self.ended.pop_front()
    }

    /// Lets requests go on that wait for nothing in these zones any more.
    fn advance(&mut self, zones: RangeInclusive<u64>) -> Vec<Request> {
        let mut next = Vec::new();
        let mut look: Vec<u64> = zones.collect();
        while let Some(number) = look.pop() {
            let Some(zone) = self.zones.get(&number) else {
                continue;
            };
            let Some(&front) = zone.waiting.front() else {
                if zone.at_work.is_none() {
                    self.zones.remove(&number);
                }
                continue;
            };
            if !self.may_go(front) {
                continue;
            }
            let WaitingRequest { request, zones } = self.waiting.remove(&front).expect("it waits");
            for number in zones.clone() {
                let zone = self.zones.get_mut(&number).expect("it waits there");
                zone.waiting.pop_front();
                if request.direction == Direction::Write {
                    zone.at_work = Some(front);
                }
            }
            look.extend(zones);
            next.push(request);
        }
        next
    }

    /// Whether a request is the first in all of its zones. A write waits for the one at work, too; the arms
    /// keep a read behind that.
    fn may_go(&self, id: RequestId) -> bool {
        let WaitingRequest { request, zones } = &self.waiting[&id];
        self.zones.range(zones.clone()).all(|(_, zone)| {
            let is_free = request.direction == Direction::Read || zone.at_work.is_none();
            is_free && zone.waiting.front() == Some(&id)
        })
    }
}
