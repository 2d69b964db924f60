//! The load of the demonstration: a constant number of outstanding requests, timed at the client.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use block::operation::Ask;
use block::{Direction, Durability};
use nbd::request::Asked;
use simulator::workload::{Generator, Workload};

use crate::Failure;
use crate::nbd_client::LoadClient;

/// A load over NBD.
pub struct NbdLoad {
    /// The socket of the service.
    pub socket: PathBuf,
    /// The load.
    pub workload: Workload,
    /// The drive's block size.
    pub block_bytes: u32,
    /// The drive's size.
    pub blocks: u64,
    /// Requests at once.
    pub pending: usize,
    /// The end of the load.
    pub until: Until,
    /// The slow-down of the drive.
    pub scale: f64,
    /// Set when the user interrupts.
    pub stop: Arc<AtomicBool>,
    /// The progress.
    pub counts: Arc<LoadCounts>,
}

/// The end of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// A number of requests.
    Requests(u64),
    /// A length of time.
    Passed(Duration),
    /// An interruption by the user.
    Stopped,
}

/// The progress of a load.
#[derive(Debug, Default)]
pub struct LoadCounts {
    /// Completed requests.
    pub requests: AtomicU64,
}

/// The measurements of a load. Times are the drive's.
#[derive(Debug, Default)]
pub struct LoadStretch {
    /// The completion time in seconds and the response time in milliseconds of each request, in the
    /// order of completion.
    pub ends: Vec<(f64, f64)>,
    /// Bytes of all requests.
    pub bytes: u64,
    /// The length of the stretch.
    pub seconds: f64,
}

/// A request in flight.
struct SentRequest {
    cookie: u64,
    at: Instant,
    bytes: u64,
}

/// Limit of stored completions of an endless load.
const MOST_KEPT: usize = 1_000_000;

impl NbdLoad {
    /// Sends requests until the end, and waits for those in flight.
    ///
    /// # Errors
    /// If the load does not fit the drive, or a request fails.
    pub fn run(self) -> Result<LoadStretch, Failure> {
        let generator = Generator::new(&self.workload, self.block_bytes, self.blocks);
        let generator = generator.map_err(Failure::failed)?;
        self.send(generator)
            .map_err(|error| Failure::failed(format!("the load: {error}")))
    }

    fn send(&self, mut generator: Generator) -> io::Result<LoadStretch> {
        let mut client = LoadClient::connect(&self.socket, self.pending)?;
        let mut stretch = LoadStretch::default();
        let mut sent: Vec<SentRequest> = Vec::with_capacity(self.pending);
        let mut payload = Vec::new();
        let began = Instant::now();
        let mut count = 0;
        loop {
            while sent.len() < self.pending && self.may_issue(began, count) {
                let (direction, extent) = generator.request();
                let block = u64::from(self.block_bytes);
                let (offset, bytes) = (extent.start().0 * block, extent.length().0 * block);
                let durability = Durability::Volatile;
                let ask = match direction {
                    Direction::Read => Ask::Read,
                    Direction::Write => Ask::Write { durability },
                };
                payload.resize(if ask == Ask::Read { 0 } else { bytes as usize }, 0x5a);
                let at = Instant::now();
                let cookie = client.submit(Asked::Of(ask), offset, bytes, &payload)?;
                sent.push(SentRequest { cookie, at, bytes });
                count += 1;
            }
            if sent.is_empty() {
                break;
            }
            let cookie = client.end()?;
            let now = Instant::now();
            let place = sent.iter().position(|one| one.cookie == cookie);
            let place = place.ok_or_else(|| io::Error::other("an end of what was not sent"))?;
            let one = sent.swap_remove(place);
            let drives = |time: Duration| time.as_secs_f64() / self.scale;
            if stretch.ends.len() < MOST_KEPT {
                let end = (drives(now - began), drives(now - one.at) * 1e3);
                stretch.ends.push(end);
            }
            stretch.bytes += one.bytes;
            stretch.seconds = drives(now - began);
            self.counts.requests.fetch_add(1, Ordering::Relaxed);
        }
        Ok(stretch)
    }

    /// Whether the load issues another request.
    fn may_issue(&self, began: Instant, count: u64) -> bool {
        let is_within = match self.until {
            Until::Requests(most) => count < most,
            Until::Passed(length) => began.elapsed() < length,
            Until::Stopped => true,
        };
        is_within && !self.stop.load(Ordering::Relaxed)
    }
}
