//! Listening sockets for NBD clients. A client negotiates here, then its connection goes to a drive's loop.
//!
//! ```text
//!   socket --accept--> a thread each, for as long as they negotiate --agreed--> event loop
//! ```
//!
//! Negotiation is rare and short, so each has a thread. The number of negotiating connections and the time
//! of each are bounded. At the bound a new connection replaces the oldest one, so silent clients keep no
//! other client out.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use tracing::{debug, info, warn};

use crate::clients::{Accepted, Seat, Seats};
use crate::config::SocketRights;
use crate::event_loop::mailbox::{Letter, Mailbox};
use crate::listener::negotiating::{Handshake, Negotiating};
use crate::peer::{Peer, Stream};
use crate::tls::{Papers, Security, Session};
use crate::unix_socket;
use nbd::negotiation::{ServerError, ServerNegotiation, ServerPhase};
use nbd::offer::Offer;

mod negotiating;

/// The exports that clients can ask for, and their loops.
#[derive(Clone)]
pub struct Directory {
    /// The exports in the order of the listing.
    pub offers: Arc<[Offer]>,
    /// The loop of each export, and the index of the export in the loop.
    pub places: Arc<[(Mailbox, usize)]>,
}

impl Directory {
    /// Those of these names.
    fn among(&self, names: &[&str]) -> Directory {
        let all = self.offers.iter().zip(self.places.iter());
        let (offers, places): (Vec<_>, Vec<_>) = all
            .filter(|(offer, _)| names.contains(&offer.name.as_str()))
            .map(|(offer, place)| (offer.clone(), place.clone()))
            .unzip();
        Directory {
            offers: offers.into(),
            places: places.into(),
        }
    }
}

/// A directory that a reload replaces while it is in use.
pub type Shown = Arc<RwLock<Directory>>;

/// A listening socket and its thread.
pub struct Listener {
    stop: Arc<OwnedFd>,
    thread: Option<thread::JoinHandle<()>>,
    /// The file of a unix socket, removed at the end.
    file: Option<PathBuf>,
    address: Option<SocketAddr>,
    security: Security,
}

/// A listening socket of either kind.
enum Door {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// The conditions for clients.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The use of TLS.
    pub security: Security,
    /// The users who may connect to a unix socket.
    pub rights: SocketRights,
    /// The longest time of a negotiation.
    pub longest: Duration,
    /// The limit of connections, over all listeners.
    pub seats: Seats,
    /// The counter of clients that were refused during their handshake.
    pub refused: Arc<AtomicU64>,
}

/// The longest time of a negotiation. A choice: no client needs it.
const LONGEST: Duration = Duration::from_secs(30);

impl From<Security> for Terms {
    fn from(security: Security) -> Self {
        Terms {
            security,
            rights: SocketRights::default(),
            longest: LONGEST,
            seats: Seats::default(),
            refused: Arc::default(),
        }
    }
}

impl Listener {
    /// Listens on a unix socket. A stale socket file is replaced. Whoever may connect may read and write the
    /// volumes.
    ///
    /// # Errors
    /// If another process listens there, the file is no socket, or the socket cannot be made.
    pub fn unix(path: &Path, shown: Shown, terms: impl Into<Terms>) -> io::Result<Self> {
        let terms = terms.into();
        let listener = unix_socket::listen(path, terms.rights)?;
        info!(socket = %path.display(), "listening");
        let mut listening = Self::run(Door::Unix(listener), shown, terms)?;
        listening.file = Some(path.to_owned());
        Ok(listening)
    }

    /// Listens on a TCP port.
    ///
    /// # Errors
    /// If the port cannot be bound.
    pub fn tcp(address: SocketAddr, shown: Shown, terms: impl Into<Terms>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        info!(%address, "listening");
        let mut listening = Self::run(Door::Tcp(listener), shown, terms.into())?;
        listening.address = Some(address);
        Ok(listening)
    }

    /// Listens on a socket of another process (socket activation).
    ///
    /// # Errors
    /// If it is not a listening socket.
    pub fn inherited(socket: OwnedFd, shown: Shown, terms: impl Into<Terms>) -> io::Result<Self> {
        let family = rustix::net::getsockname(&socket)?.address_family();
        let (door, address) = match family {
            rustix::net::AddressFamily::UNIX => (Door::Unix(UnixListener::from(socket)), None),
            _ => {
                let listener = TcpListener::from(socket);
                let address = listener.local_addr()?;
                (Door::Tcp(listener), Some(address))
            }
        };
        let mut listening = Self::run(door, shown, terms.into())?;
        listening.address = address;
        Ok(listening)
    }

    /// Clients that come from now on are served with these. The answer is whether they differ from those before.
    pub fn renew(&self, papers: Papers) -> bool {
        match &self.security {
            Security::Plain => false,
            Security::Tls { certificates, .. } => certificates.replace(papers),
        }
    }

    /// The address of a TCP listener.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn run(door: Door, shown: Shown, terms: Terms) -> io::Result<Self> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        door.set_nonblocking()?;
        let told = Arc::clone(&stop);
        let security = terms.security.clone();
        let thread = thread::Builder::new()
            .name("listener".into())
            .spawn(move || accept_all(&door, &told, &shown, &Arc::new(terms)))?;
        Ok(Listener {
            stop,
            thread: Some(thread),
            file: None,
            address: None,
            security,
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(file) = &self.file {
            let _ = std::fs::remove_file(file);
        }
    }
}

fn accept_all(door: &Door, stop: &OwnedFd, shown: &Shown, terms: &Arc<Terms>) {
    let negotiating = Negotiating::default();
    loop {
        let mut waiting = [
            PollFd::from_borrowed_fd(door.as_fd(), PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        if poll(&mut waiting, None).is_err() {
            continue;
        }
        if !waiting[1].revents().is_empty() {
            return;
        }
        let stream = match door.accept() {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                // Out of file descriptors, most likely: those that are there go on.
                warn!(%error, "a client could not be accepted");
                thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        let handshake = match negotiating.enter(&stream) {
            Ok(handshake) => handshake,
            Err(error) => {
                warn!(%error, "a client is refused");
                continue;
            }
        };
        let (shown, terms) = (Arc::clone(shown), Arc::clone(terms));
        let spawned = thread::Builder::new()
            .name("negotiation".into())
            .spawn(move || {
                if let Err(error) = negotiate(stream, &shown, &terms, handshake) {
                    terms.refused.fetch_add(1, Ordering::Relaxed);
                    debug!(%error, "a negotiation ended early");
                }
            });
        if let Err(error) = spawned {
            warn!(%error, "a client is refused: no thread for it");
        }
    }
}

/// The number of the next connection, over all listeners. A status names connections by it.
static ARRIVED: AtomicU64 = AtomicU64::new(1);

/// Negotiates with a client, and hands the connection over.
fn negotiate(stream: Stream, shown: &Shown, terms: &Terms, handshake: Handshake) -> io::Result<()> {
    let mut directory = match shown.read() {
        Ok(directory) => directory.clone(),
        Err(poisoned) => poisoned.into_inner().clone(),
    };
    let peer = stream.peer();
    let mut client = Peer::new(stream, terms.longest)?;
    let offers = Arc::clone(&directory.offers);
    let mut negotiation = ServerNegotiation::new(offers, terms.security.negotiated());
    let mut received = Vec::new();
    let mut handshake = Some(handshake);
    loop {
        loop {
            let taken = negotiation.receive(&received);
            received.drain(..taken);
            if taken == 0 || received.is_empty() {
                break;
            }
        }
        let step = negotiation.step();
        let seat = match step {
            // Before it is told: who is told is served.
            ServerPhase::Agreed(_) => Some(seated(handshake.take(), &terms.seats)?),
            _ => None,
        };
        client.send(negotiation.output())?;
        negotiation.output().clear();
        match step {
            ServerPhase::More => (),
            ServerPhase::Agreed(agreed) => {
                let seat = seat.ok_or(io::ErrorKind::ConnectionRefused)?;
                let (mailbox, place) = directory.places[agreed.export].clone();
                let offer = directory.offers[agreed.export].clone();
                let (socket, session) = client.hand_over()?;
                let newcomer = Accepted {
                    number: ARRIVED.fetch_add(1, Ordering::Relaxed),
                    peer,
                    socket,
                    session,
                    agreed,
                    export: place,
                    offer,
                    received,
                    seat,
                };
                let gone = mailbox.post(Letter::Connection(Box::new(newcomer)));
                return gone.map_err(io::Error::other);
            }
            ServerPhase::StartTls => {
                let Security::Tls { certificates, .. } = &terms.security else {
                    return Err(io::Error::other("TLS is not configured"));
                };
                let papers = certificates.current();
                client.secure(Session::new(papers.config(), &received)?)?;
                received.clear();
                if let Some(rules) = papers.clients() {
                    directory = directory.among(&rules.exports_of(client.certificate()));
                    negotiation.offer_only(Arc::clone(&directory.offers));
                }
                negotiation.secured();
            }
            ServerPhase::Closed(ServerError::Aborted) => return Ok(()),
            ServerPhase::Closed(reason) => return Err(io::Error::other(reason.to_string())),
        }
        if client.receive(&mut received)? == 0 {
            return Ok(());
        }
    }
}

/// Ends the handshake, and takes a seat for the connection.
fn seated(handshake: Option<Handshake>, seats: &Seats) -> io::Result<Seat> {
    if let Some(handshake) = handshake {
        handshake.end()?;
    }
    seats.take().ok_or_else(|| {
        let most = seats.most();
        warn!(
            most,
            "a client is refused: as many are served as connections in [limits] allows"
        );
        io::ErrorKind::ConnectionRefused.into()
    })
}

impl Door {
    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Door::Unix(listener) => listener.set_nonblocking(true),
            Door::Tcp(listener) => listener.set_nonblocking(true),
        }
    }

    fn accept(&self) -> io::Result<Stream> {
        match self {
            Door::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
            Door::Tcp(listener) => Ok(Stream::Tcp(listener.accept()?.0)),
        }
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self {
            Door::Unix(listener) => listener.as_fd(),
            Door::Tcp(listener) => listener.as_fd(),
        }
    }
}
