//! An export of a drive as the volume of a device.
//!
//! ```text
//!   queue's thread --operation with the request's memory--> event loop
//!         ^                                                     |
//!         '-- Pending::end, in the reply on the loop's thread --'
//! ```
//!
//! The loop's commands access the request's memory directly. Only the driver copies, between the
//! client's pages and that memory. A drive of memory copies once more when it reads or writes.
//!
//! The queue's depth bounds the memory that the loop holds for a device.

#![allow(
    unsafe_code,
    reason = "a request's memory is lent to the loop by address"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Access, Pending, Volume};
use crate::event_loop::mailbox::{Letter, Mailbox};
use crate::volume::posted::{Contents, Lent, Posted};
use block::operation::{Ask, OperationError};

/// An export as a device's volume.
#[derive(Clone)]
pub struct Exported {
    /// The drive's event loop.
    pub mailbox: Mailbox,
    /// The export's index among the loop's exports.
    pub export: usize,
    /// The access of clients.
    pub access: Access,
    /// The counts of the device's requests.
    pub counters: Arc<DeviceCounters>,
}

/// The counts of a device's requests.
#[derive(Debug, Default)]
pub struct DeviceCounters {
    in_flight: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl DeviceCounters {
    /// The number of requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// The number of successful requests.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The bytes that successful requests read and wrote.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Volume for Exported {
    fn submit(&self, request: Pending) {
        let (ask, memory) = (request.ask(), request.memory());
        if self.access == Access::ReadOnly && changes(ask) {
            return request.end(Err(OperationError::NotPermitted));
        }
        // SAFETY: the request is with the reply, and its memory is not used until it ends: there,
        // when the reply is called or dropped.
        let lent = unsafe { Lent::new(memory) };
        let (offset, length) = (request.offset(), request.length());
        let owner = request.owner();
        let in_flight = RequestInFlight::begin(request, &self.counters);
        let posted = Posted {
            export: self.export,
            ask,
            offset,
            length,
            contents: Contents::Lent(lent),
            owner,
            reply: Box::new(move |result| in_flight.end(result.map(|_| memory.length as u64))),
        };
        // If the loop has ended, the request does with its letter.
        let _ = self.mailbox.post(Letter::Operation(posted));
    }
}

/// Whether the operation changes the volume.
fn changes(ask: Ask) -> bool {
    match ask {
        Ask::Write { .. } | Ask::Zero { .. } | Ask::Trim { .. } => true,
        Ask::Read | Ask::Flush | Ask::Cache => false,
    }
}

/// A request that counts as in flight. The count is dropped before the request, so that a client that
/// sees the end never finds the request in flight.
struct RequestInFlight {
    count: InFlightCount,
    request: Pending,
}

struct InFlightCount(Arc<DeviceCounters>);

impl RequestInFlight {
    fn begin(request: Pending, counters: &Arc<DeviceCounters>) -> Self {
        counters.in_flight.fetch_add(1, Ordering::Relaxed);
        let count = InFlightCount(Arc::clone(counters));
        RequestInFlight { count, request }
    }

    /// RequestResults the request. A successful one has transferred the given number of bytes.
    fn end(self, result: Result<u64, OperationError>) {
        let RequestInFlight { count, request } = self;
        if let Ok(bytes) = result {
            count.0.requests.fetch_add(1, Ordering::Relaxed);
            count.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        drop(count);
        request.end(result.map(|_| ()));
    }
}

impl Drop for InFlightCount {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use block::{Class, Durability};
    use engine::{Engine, Limits};
    use proptest::prelude::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use scheduler::policy::find;

    use super::super::pending::{Request, RequestResults};
    use super::super::{RequestBuffer, Volume as _};
    use super::*;
    use crate::clients::Bounds;
    use crate::clock::{Clock, TimeScale};
    use crate::disk::back_end::BackEnd;
    use crate::disk::back_end::file::{Caching, Image};
    use crate::disk::back_end::memory::Ram;
    use crate::event_loop::EventLoop;
    use crate::station::Station;
    use crate::volume::Export;
    use block::operation::{Space, ZeroingPace};

    const BLOCK: u64 = 512;
    const BYTES: u64 = 64 * BLOCK;

    /// The export begins here, so that it is not the whole drive.
    const OFFSET: u64 = 8 * BLOCK;

    fn back_end(image: Option<&Path>) -> io::Result<Box<dyn BackEnd>> {
        let bytes = OFFSET + BYTES;
        Ok(match image {
            None => Box::new(Ram::new(bytes)?),
            Some(image) => {
                std::fs::File::create(image)?.set_len(bytes)?;
                Box::new(Image::open(image, BLOCK as u32, Caching::Cached)?)
            }
        })
    }

    /// A drive of memory or of a file.
    fn station(image: Option<&Path>) -> Station {
        let image = image.map(Path::to_owned);
        let belief = crate::featureless::profile("a-test", 72, BLOCK as u32);
        let belief = Arc::new(belief.expect("a profile"));
        let begun = Station::start("a test", move |mailbox| {
            let policy = find("c-look").expect("a policy");
            let limits = Limits::suited_to(policy, &belief);
            let export = Export {
                name: "a".to_owned(),
                offset: OFFSET,
                length: BYTES,
                class: Class::BestEffort(0),
            };
            EventLoop::new(
                Clock::start(TimeScale::REAL),
                Engine::new(belief, &|| policy.make(), limits),
                back_end(image.as_deref())?,
                vec![export],
                mailbox,
                Bounds {
                    memory: 1 << 20,
                    ..Bounds::default()
                },
            )
        });
        begun.expect("a station")
    }

    /// What a queue's thread is, without a driver.
    struct Queue {
        exported: Exported,
        ends: Arc<RequestResults>,
        next: u16,
    }

    impl Queue {
        fn new(mailbox: &Mailbox, access: Access) -> Self {
            Queue {
                exported: Exported {
                    mailbox: mailbox.clone(),
                    export: 0,
                    access,
                    counters: Arc::default(),
                },
                ends: Arc::new(RequestResults::new().expect("an eventfd")),
                next: 0,
            }
        }

        /// Submits it with these bytes, those of a read to be overwritten.
        fn submit(&mut self, ask: Ask, offset: u64, length: u64, fill: u8) {
            let mut buffer = RequestBuffer::new(length as usize).expect("memory");
            buffer.bytes_mut(length as usize).fill(fill);
            let tag = self.next;
            self.next += 1;
            let request = Request {
                tag,
                ask,
                offset,
                length,
                owner: block::Owner::queue(0),
            };
            let pending = Pending::new(request, buffer, &self.ends);
            self.exported.submit(pending);
        }

        /// All ends until so many requests have ended, in the order of submission.
        fn ended(&mut self, count: usize) -> Vec<(Result<(), OperationError>, RequestBuffer)> {
            let mut all = Vec::new();
            while all.len() < count {
                let mut doorbell = [PollFd::new(self.ends.doorbell(), PollFlags::IN)];
                poll(&mut doorbell, None).expect("the doorbell rings");
                all.extend(self.ends.take());
            }
            all.sort_by_key(|end| end.tag);
            all.into_iter()
                .map(|end| (end.result, end.buffer))
                .collect()
        }

        fn execute(
            &mut self,
            ask: Ask,
            offset: u64,
            length: u64,
            fill: u8,
        ) -> (Result<(), OperationError>, RequestBuffer) {
            self.submit(ask, offset, length, fill);
            self.ended(1).remove(0)
        }
    }

    const WRITE: Ask = Ask::Write {
        durability: Durability::Durable,
    };
    const TRIM: Ask = Ask::Trim {
        durability: Durability::Volatile,
    };

    fn zero(space: Space) -> Ask {
        Ask::Zero {
            durability: Durability::Durable,
            space,
            pace: ZeroingPace::Any,
        }
    }

    /// Batches of requests: what, the first block, how many, with which bytes.
    fn batches() -> impl Strategy<Value = Vec<Vec<(u8, u64, u64, u8)>>> {
        let one = (0..6u8, 0..64u64, 1..17u64, 1..255u8);
        prop::collection::vec(prop::collection::vec(one, 1..9), 1..12)
    }

    /// Runs batches whose requests do not overlap, and compares reads with a plain model.
    fn compare(batches: &[Vec<(u8, u64, u64, u8)>], image: Option<&Path>) {
        let station = station(image);
        let mut queue = Queue::new(station.mailbox(), Access::ReadWrite);
        let mut model = vec![0u8; BYTES as usize];
        for batch in batches {
            let mut used = [false; 64];
            let mut expected = Vec::new();
            for &(what, first, blocks, fill) in batch {
                let blocks = blocks.min(64 - first);
                let range = first as usize..(first + blocks) as usize;
                if used[range.clone()].contains(&true) {
                    continue;
                }
                used[range].fill(true);
                let (offset, length) = (first * BLOCK, blocks * BLOCK);
                let here = &mut model[offset as usize..(offset + length) as usize];
                let (ask, read) = match what {
                    0 | 1 => (Ask::Read, Some(here.to_vec())),
                    2 => (zero(Space::Kept), None),
                    3 => (zero(Space::MayBeFreed), None),
                    4 => (Ask::Flush, None),
                    _ => (WRITE, None),
                };
                match ask {
                    Ask::Zero { .. } => here.fill(0),
                    Ask::Write { .. } => here.fill(fill),
                    _ => (),
                }
                match ask {
                    Ask::Flush => queue.submit(ask, 0, 0, 0),
                    _ => queue.submit(ask, offset, length, fill),
                }
                expected.push(read);
            }
            let ended = queue.ended(expected.len());
            for ((result, buffer), read) in ended.iter().zip(&expected) {
                assert_eq!(*result, Ok(()));
                if let Some(read) = read {
                    assert!(buffer.bytes(read.len()) == read, "other bytes");
                }
            }
        }
        let (result, buffer) = queue.execute(Ask::Read, 0, BYTES, 0xEE);
        assert_eq!(result, Ok(()));
        assert!(
            buffer.bytes(BYTES as usize) == model,
            "other bytes at the end"
        );
        assert_eq!(queue.exported.counters.in_flight(), 0);
        assert_eq!(queue.exported.counters.requests(), u64::from(queue.next));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn what_is_read_is_what_was_written(batches in batches()) {
            let folder = tempfile::tempdir().expect("a folder");
            compare(&batches, Some(&folder.path().join("image")));
            compare(&batches, None);
        }
    }

    #[test]
    fn requests_that_make_no_sense_end_with_an_error() {
        let station = station(None);
        let mut queue = Queue::new(station.mailbox(), Access::ReadWrite);
        for (ask, offset, length, expected) in [
            (Ask::Read, BYTES, BLOCK, Err(OperationError::Invalid)),
            (Ask::Read, 1, BLOCK, Err(OperationError::Invalid)),
            (
                WRITE,
                BYTES - BLOCK,
                2 * BLOCK,
                Err(OperationError::Invalid),
            ),
            (TRIM, u64::MAX - 511, BLOCK, Err(OperationError::Invalid)),
            (TRIM, 0, BYTES, Ok(())),
        ] {
            assert_eq!(queue.execute(ask, offset, length, 1).0, expected);
        }
    }

    #[test]
    fn a_volume_that_is_read_only_does_not_change() {
        let station = station(None);
        let mut writer = Queue::new(station.mailbox(), Access::ReadWrite);
        assert_eq!(writer.execute(WRITE, 0, BLOCK, 7).0, Ok(()));
        let mut queue = Queue::new(station.mailbox(), Access::ReadOnly);
        for ask in [WRITE, TRIM, zero(Space::Kept)] {
            let ended = queue.execute(ask, 0, BLOCK, 8).0;
            assert_eq!(ended, Err(OperationError::NotPermitted));
        }
        assert_eq!(queue.execute(Ask::Flush, 0, 0, 0).0, Ok(()));
        let (result, buffer) = queue.execute(Ask::Read, 0, BLOCK, 0);
        assert_eq!(result, Ok(()));
        assert!(buffer.bytes(BLOCK as usize).iter().all(|&byte| byte == 7));
    }

    #[test]
    fn a_loop_that_stops_ends_every_request() {
        let station = station(None);
        let mut queue = Queue::new(station.mailbox(), Access::ReadWrite);
        // What comes before the loop has heard of its end is carried out, the rest is not.
        for _ in 0..8 {
            queue.submit(WRITE, 0, BLOCK, 1);
        }
        let _ = station.mailbox().call(EventLoop::stop);
        for _ in 0..8 {
            queue.submit(WRITE, 0, BLOCK, 1);
        }
        drop(station);
        for _ in 0..8 {
            queue.submit(Ask::Read, 0, BLOCK, 1);
        }
        let ended: Vec<_> = queue
            .ended(24)
            .into_iter()
            .map(|(result, _)| result)
            .collect();
        assert!(
            ended[16..]
                .iter()
                .all(|end| *end == Err(OperationError::ShuttingDown))
        );
        let is_known = |end: &Result<(), OperationError>| {
            matches!(end, Ok(()) | Err(OperationError::ShuttingDown))
        };
        assert!(ended.iter().all(is_known), "{ended:?}");
        assert_eq!(queue.exported.counters.in_flight(), 0);
    }
}
