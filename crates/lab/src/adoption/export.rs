//! A connection to an NBD export for timed reads: one thread receives, so that each end has its own time.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time;

use block::operation::Ask;
use block::{Action, Command, CommandId, Lba, Status};
use nbd::client::{Event, Requests, Session};
use nbd::offer::{Offer, Text};
use nbd::request::Asked;
use server::config::{Address, Remote};

use super::event::{DEPTH, LinkEvent, outcome, since};
use super::facts::PathFacts;
use crate::Failure;
use crate::nbd_client::negotiate;

/// A connection to an export.
pub struct ExportConnection {
    begun: time::Instant,
    stream: ExportStream,
    shared: Arc<Mutex<SentReads>>,
    offer: Offer,
    block_bytes: u64,
    out: Vec<u8>,
}

enum ExportStream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// The protocol's state, and the reads in flight.
struct SentReads {
    requests: Requests,
    commands: BTreeMap<u64, (CommandId, Lba)>,
}

/// The longest time to connect, and of the handshake. A choice: that of `headtime serve`.
const DIAL: time::Duration = time::Duration::from_secs(10);

/// Connects to an export; the events of its reads come from the receiver.
///
/// # Errors
/// If there is no such server or export.
pub(super) fn connect(remote: &Remote) -> Result<(ExportConnection, Receiver<LinkEvent>), Failure> {
    let wrong = |error: io::Error| Failure::input(format!("{}: {error}", remote.uri));
    let mut stream = ExportStream::dial(&remote.address).map_err(wrong)?;
    let name = Text::new(remote.export.as_str())
        .map_err(|unfit| Failure::input(format!("{}: {unfit}", remote.uri)))?;
    let (session, received) = negotiate(&mut stream, name, Vec::new()).map_err(wrong)?;
    stream.wait_for_ever().map_err(wrong)?;
    ExportConnection::begin(stream, session, received).map_err(wrong)
}

impl ExportConnection {
    fn begin(
        stream: ExportStream,
        session: Session,
        received: Vec<u8>,
    ) -> io::Result<(Self, Receiver<LinkEvent>)> {
        let begun = time::Instant::now();
        let offer = session.offer.clone();
        let shared = Arc::new(Mutex::new(SentReads {
            requests: Requests::new(session, DEPTH as usize),
            commands: BTreeMap::new(),
        }));
        let (tell, events) = channel();
        let (theirs, reading) = (Arc::clone(&shared), stream.again()?);
        thread::spawn(move || receive(reading, received, &theirs, &tell, begun));
        let connection = ExportConnection {
            begun,
            stream,
            shared,
            block_bytes: u64::from(PathFacts::of_offer(&offer).logical_block),
            offer,
            out: Vec::new(),
        };
        Ok((connection, events))
    }

    /// The beginning of the connection's time.
    pub(super) fn begun(&self) -> time::Instant {
        self.begun
    }

    /// The server's offer.
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Sends a read.
    ///
    /// # Errors
    /// If the server is gone, or would refuse it.
    pub(super) fn submit(&mut self, command: Command) -> io::Result<()> {
        let Action::Read { extent, .. } = command.action else {
            return Ok(());
        };
        let offset = extent.start().0 * self.block_bytes;
        let length = extent.length().0 * self.block_bytes;
        self.out.clear();
        let mut shared = lock(&self.shared);
        let ask = Asked::Of(Ask::Read);
        let sent = shared.requests.submit(&mut self.out, ask, offset, length);
        let cookie = sent.map_err(io::Error::other)?;
        let ended = (command.id, extent.start());
        shared.commands.insert(cookie, ended);
        drop(shared);
        self.stream.write_all(&self.out)
    }
}

/// Tells the server goodbye, which also ends the receiving thread.
impl Drop for ExportConnection {
    fn drop(&mut self) {
        self.out.clear();
        lock(&self.shared).requests.disconnect(&mut self.out);
        let _ = self.stream.write_all(&self.out);
        self.stream.close();
    }
}

fn lock(shared: &Mutex<SentReads>) -> MutexGuard<'_, SentReads> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Receives replies until the connection ends.
fn receive(
    mut stream: ExportStream,
    mut received: Vec<u8>,
    shared: &Mutex<SentReads>,
    tell: &Sender<LinkEvent>,
    begun: time::Instant,
) {
    let mut chunk = vec![0; 256 << 10];
    let mut skip = 0;
    loop {
        if let Err(problem) = parse(&mut received, &mut skip, shared, tell, begun) {
            let _ = tell.send(LinkEvent::Gone(problem));
            return;
        }
        let gone = match stream.read(&mut chunk) {
            Ok(0) => "the server hangs up".to_owned(),
            Ok(count) => {
                received.extend_from_slice(&chunk[..count]);
                continue;
            }
            Err(error) => error.to_string(),
        };
        // Nobody listens after the end of the measurement.
        let _ = tell.send(LinkEvent::Gone(gone));
        return;
    }
}

/// Parses what was received. `skip` is the number of bytes of contents that are to be dropped.
fn parse(
    received: &mut Vec<u8>,
    skip: &mut u64,
    shared: &Mutex<SentReads>,
    tell: &Sender<LinkEvent>,
    begun: time::Instant,
) -> Result<(), String> {
    let at = since(begun);
    let mut from = 0;
    loop {
        let here = (*skip).min((received.len() - from) as u64);
        from += here as usize;
        *skip -= here;
        if *skip > 0 {
            break;
        }
        let mut shared = lock(shared);
        let parsed = shared.requests.receive(&received[from..]);
        let (used, event) =
            parsed.map_err(|error| format!("the server cannot be trusted: {error}"))?;
        from += used;
        match event {
            None if used == 0 => break,
            Some(Event::Contents { length, .. }) => *skip = length,
            Some(Event::Finished { cookie, result }) => {
                if let Some((id, first)) = shared.commands.remove(&cookie) {
                    let status = match result {
                        Ok(()) => Status::Good,
                        Err(_) => Status::MediumError { at: first },
                    };
                    let failed = result.err().map(io::Error::other);
                    let _ = tell.send(LinkEvent::Ended(outcome(id, at, status), failed));
                }
            }
            None | Some(Event::Hole { .. } | Event::State { .. } | Event::Complaint { .. }) => {}
        }
    }
    received.drain(..from);
    Ok(())
}

impl ExportStream {
    fn dial(address: &Address) -> io::Result<Self> {
        let stream = match address {
            Address::Unix(path) => ExportStream::Unix(UnixStream::connect(path)?),
            Address::Tcp { host, port } => {
                let mut last = io::Error::from(io::ErrorKind::NotFound);
                let mut found = None;
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, DIAL) {
                        Ok(stream) => {
                            found = Some(stream);
                            break;
                        }
                        Err(error) => last = error,
                    }
                }
                let stream = found.ok_or(last)?;
                stream.set_nodelay(true)?;
                ExportStream::Tcp(stream)
            }
        };
        stream.wait_for(Some(DIAL))?;
        Ok(stream)
    }

    fn wait_for(&self, time: Option<time::Duration>) -> io::Result<()> {
        match self {
            ExportStream::Unix(stream) => stream.set_read_timeout(time),
            ExportStream::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    /// After the handshake the link's owner decides how long it waits.
    fn wait_for_ever(&self) -> io::Result<()> {
        self.wait_for(None)
    }

    fn again(&self) -> io::Result<Self> {
        Ok(match self {
            ExportStream::Unix(stream) => ExportStream::Unix(stream.try_clone()?),
            ExportStream::Tcp(stream) => ExportStream::Tcp(stream.try_clone()?),
        })
    }

    fn close(&self) {
        let _ = match self {
            ExportStream::Unix(stream) => stream.shutdown(Shutdown::Both),
            ExportStream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for ExportStream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            ExportStream::Unix(stream) => stream.read(to),
            ExportStream::Tcp(stream) => stream.read(to),
        }
    }
}

impl Write for ExportStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ExportStream::Unix(stream) => stream.write(bytes),
            ExportStream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
