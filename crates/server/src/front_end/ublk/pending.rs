//! A request in flight, and the queue of results for the driver.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::buffer::RequestBuffer;
use crate::arena::Memory;
use block::Owner;
use block::operation::{Ask, OperationError};

/// A request that a volume executes. It ends exactly once. A request that is dropped without
/// [`Pending::end`] fails with a shutdown of the service.
#[derive(Debug)]
pub struct Pending {
    request: Request,
    /// Taken when it ends.
    buffer: Option<RequestBuffer>,
    results: Arc<RequestResults>,
}

/// The request as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The tag: the index in the queue.
    pub tag: u16,
    pub ask: Ask,
    pub offset: u64,
    pub length: u64,
    pub owner: Owner,
}

/// The result of a request.
#[derive(Debug)]
pub(super) struct RequestResult {
    pub tag: u16,
    pub buffer: RequestBuffer,
    pub result: Result<(), OperationError>,
}

/// The results that wait for the queue's thread.
#[derive(Debug)]
pub(super) struct RequestResults {
    waiting: Mutex<Vec<RequestResult>>,
    doorbell: OwnedFd,
}

impl Pending {
    pub(super) fn new(
        request: Request,
        buffer: RequestBuffer,
        results: &Arc<RequestResults>,
    ) -> Self {
        Pending {
            request,
            buffer: Some(buffer),
            results: Arc::clone(results),
        }
    }

    /// The operation.
    pub fn ask(&self) -> Ask {
        self.request.ask
    }

    /// The first byte of the volume.
    pub fn offset(&self) -> u64 {
        self.request.offset
    }

    /// The length in bytes, 0 for a flush.
    pub fn length(&self) -> u64 {
        self.request.length
    }

    /// The queue. The driver does not tell which process waits.
    pub fn owner(&self) -> Owner {
        self.request.owner
    }

    /// The payload of a write.
    pub fn bytes(&self) -> &[u8] {
        let buffer = self.buffer.as_ref();
        buffer.expect("it has not ended").bytes(self.buffered())
    }

    /// The buffer of a read, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let length = self.buffered();
        let buffer = self.buffer.as_mut();
        buffer.expect("it has not ended").bytes_mut(length)
    }

    /// The buffer of a read or a write by address. The address is valid until the request ends.
    pub(super) fn memory(&self) -> Memory {
        let buffer = self.buffer.as_ref().expect("it has not ended");
        buffer.whole().part(0, self.buffered())
    }

    /// RequestResults the request. A successful read has filled its whole buffer.
    pub fn end(mut self, result: Result<(), OperationError>) {
        self.send_result(result);
    }

    /// The length of the buffer in use. Only reads and writes have one.
    fn buffered(&self) -> usize {
        match self.request.ask {
            Ask::Read | Ask::Write { .. } => self.request.length as usize,
            Ask::Zero { .. } | Ask::Trim { .. } | Ask::Flush | Ask::Cache => 0,
        }
    }

    fn send_result(&mut self, result: Result<(), OperationError>) {
        if let Some(buffer) = self.buffer.take() {
            let tag = self.request.tag;
            self.results.put(RequestResult {
                tag,
                buffer,
                result,
            });
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.send_result(Err(OperationError::ShuttingDown));
    }
}

impl RequestResults {
    /// An empty queue of results.
    pub fn new() -> io::Result<Self> {
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(RequestResults {
            waiting: Mutex::default(),
            doorbell,
        })
    }

    /// Removes all results and resets the doorbell.
    pub fn take(&self) -> Vec<RequestResult> {
        // The eventfd is reset first, so that a later result signals it again. The read fails if there was no
        // signal.
        let _ = rustix::io::read(&self.doorbell, &mut [0; 8]);
        std::mem::take(&mut *self.lock())
    }

    /// The eventfd that is readable while results wait.
    pub fn doorbell(&self) -> &OwnedFd {
        &self.doorbell
    }

    fn put(&self, result: RequestResult) {
        let is_first = {
            let mut waiting = self.lock();
            waiting.push(result);
            waiting.len() == 1
        };
        if is_first {
            // The write fails only at the largest count, and then the eventfd is readable.
            let _ = rustix::io::write(&self.doorbell, &1u64.to_ne_bytes());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<RequestResult>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(ends: &Arc<RequestResults>, tag: u16, ask: Ask) -> Pending {
        let request = Request {
            tag,
            ask,
            offset: 0,
            length: 512,
            owner: Owner::NOBODY,
        };
        Pending::new(request, RequestBuffer::new(4096).expect("memory"), ends)
    }

    #[test]
    fn every_request_ends_once_however_it_is_left() {
        let ends = Arc::new(RequestResults::new().expect("an eventfd"));
        pending(&ends, 1, Ask::Read).end(Ok(()));
        drop(pending(&ends, 2, Ask::Read));
        pending(&ends, 3, Ask::Flush).end(Err(OperationError::Io));
        let found: Vec<_> = ends
            .take()
            .into_iter()
            .map(|end| (end.tag, end.result))
            .collect();
        let expected = [
            (1, Ok(())),
            (2, Err(OperationError::ShuttingDown)),
            (3, Err(OperationError::Io)),
        ];
        assert_eq!(found, expected);
        assert!(ends.take().is_empty());
    }

    #[test]
    fn the_bell_rings_for_the_first_end_after_the_last_were_taken() {
        let ends = Arc::new(RequestResults::new().expect("an eventfd"));
        let rung = |ends: &RequestResults| {
            let mut count = [0; 8];
            rustix::io::read(ends.doorbell(), &mut count).map(|_| u64::from_ne_bytes(count))
        };
        assert!(rung(&ends).is_err());
        pending(&ends, 1, Ask::Read).end(Ok(()));
        pending(&ends, 2, Ask::Read).end(Ok(()));
        assert_eq!(rung(&ends), Ok(1));
        assert_eq!(ends.take().len(), 2);
        pending(&ends, 3, Ask::Read).end(Ok(()));
        assert_eq!(rung(&ends), Ok(1));
    }

    #[test]
    fn only_reads_and_writes_have_bytes() {
        let ends = Arc::new(RequestResults::new().expect("an eventfd"));
        assert_eq!(pending(&ends, 0, Ask::Read).bytes_mut().len(), 512);
        assert_eq!(pending(&ends, 0, Ask::Flush).bytes().len(), 0);
    }
}
