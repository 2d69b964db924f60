//! Connections to another server: TCP or unix socket, TLS, negotiation. A thread repeats this after a loss.
//!
//! ```text
//!   back end --want--> [ thread: dial, pause, dial, a longer pause, ... ] --line, bell--> back end
//! ```

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tracing::{info, warn};

use crate::config::{Address, Remote};
use crate::peer::{Peer, Stream};
use crate::tls::{Session, towards};
use nbd::client::{self, ClientNegotiation, ClientOptions, ClientPhase};
use nbd::offer::{Offer, Text};
use nbd::{Context, Style};

/// The address of the server, and the export.
pub(super) struct Target {
    pub(super) uri: String,
    address: Address,
    export: Text,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// A connection after its handshake.
pub(super) struct Agreement {
    pub(super) socket: OwnedFd,
    pub(super) tls: Option<Box<Session>>,
    pub(super) session: client::Session,
    /// Bytes that were received after the handshake.
    pub(super) received: Vec<u8>,
}

/// The longest time to connect, and of the handshake. A choice: the default limit for our own clients.
const DIAL: Duration = Duration::from_secs(10);

/// The pauses between tries: the first, doubled up to the last. Choices: a restarted server is found soon,
/// and a server that is gone for hours costs nothing.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Target {
    /// The target in the configuration.
    ///
    /// # Errors
    /// If a file cannot be used, or no certificate can have the name.
    pub(super) fn of(config: &Remote) -> Result<Self, String> {
        let tls = match &config.tls {
            None => None,
            Some(files) => {
                let ours = towards(files).map_err(|unusable| unusable.to_string())?;
                let host = match &config.address {
                    // As libnbd has it for sockets of this machine.
                    Address::Unix(_) => "localhost",
                    Address::Tcp { host, .. } => host,
                };
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|error| format!("{host}: {error}"))?;
                Some((ours, name))
            }
        };
        Ok(Target {
            uri: config.uri.clone(),
            address: config.address.clone(),
            export: Text::new(config.export.as_str()).map_err(|unfit| unfit.to_string())?,
            tls,
        })
    }

    /// Connects and does the handshake.
    ///
    /// # Errors
    /// The cause.
    pub(super) fn dial(&self) -> io::Result<Agreement> {
        let mut peer = Peer::new(self.connect()?, DIAL)?;
        let mut negotiation = ClientNegotiation::new(ClientOptions {
            export: self.export.clone(),
            style: Style::Extended,
            contexts: vec![Context::Allocation],
            security: match self.tls {
                Some(_) => client::ClientSecurity::Required,
                None => client::ClientSecurity::Plain,
            },
        });
        let mut received = Vec::new();
        let mut is_secure = false;
        // A server says only after the handshake that it does not take a client's certificate.
        let refused = |error: io::Error, is_secure: bool| match is_secure {
            false => error,
            true => io::Error::other(format!(
                "{error}: expected a server that takes our certificate, or wants none \
                 (certificate, key)"
            )),
        };
        loop {
            while !received.is_empty() {
                match negotiation.receive(&received) {
                    0 => break,
                    taken => drop(received.drain(..taken)),
                }
            }
            let sent = peer.send(negotiation.output());
            sent.map_err(|error| refused(error, is_secure))?;
            negotiation.output().clear();
            match (negotiation.step(), &self.tls) {
                (ClientPhase::More, _) => {
                    let count = peer.receive(&mut received);
                    if count.map_err(|error| refused(error, is_secure))? == 0 {
                        let gone = io::Error::other("the server hangs up");
                        return Err(refused(gone, is_secure));
                    }
                }
                (ClientPhase::StartTls, Some((ours, name))) => {
                    let session = Session::towards(Arc::clone(ours), name.clone(), &received)?;
                    received.clear();
                    peer.secure(session)?;
                    is_secure = true;
                    negotiation.secured();
                }
                (ClientPhase::StartTls, None) => {
                    return Err(io::Error::other("TLS was not asked for"));
                }
                (ClientPhase::Agreed(session), _) => {
                    let (socket, tls) = peer.hand_over()?;
                    return Ok(Agreement {
                        socket,
                        tls,
                        session,
                        received,
                    });
                }
                (ClientPhase::Closed(reason), _) => return Err(io::Error::other(reason)),
            }
        }
    }

    fn connect(&self) -> io::Result<Stream> {
        let (host, port) = match &self.address {
            Address::Unix(path) => return UnixStream::connect(path).map(Stream::Unix),
            Address::Tcp { host, port } => (host, *port),
        };
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in (host.as_str(), port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, DIAL) {
                Ok(stream) => return Ok(Stream::Tcp(stream)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// The thread that reconnects.
pub(super) struct Dialer {
    shared: Arc<DialerState>,
}

struct DialerState {
    target: Target,
    /// The first offer of the server, which later offers have to equal.
    first: Offer,
    state: Mutex<DialState>,
    changed: Condvar,
    bell: OwnedFd,
}

#[derive(Default)]
struct DialState {
    is_wanted: bool,
    is_over: bool,
    answer: Option<Agreement>,
}

impl Dialer {
    /// Starts a thread that waits until it is needed.
    ///
    /// # Errors
    /// If there is no thread, or no file descriptor.
    pub(super) fn begin(target: Target, first: Offer) -> io::Result<Self> {
        let shared = Arc::new(DialerState {
            target,
            first,
            state: Mutex::default(),
            changed: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC)?,
        });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("nbd".into());
        thread.spawn(move || theirs.serve())?;
        Ok(Dialer { shared })
    }

    pub(super) fn uri(&self) -> &str {
        &self.shared.target.uri
    }

    /// Connects until the server answers. Then the bell rings.
    pub(super) fn want(&self) {
        self.shared.lock().is_wanted = true;
        self.shared.changed.notify_all();
    }

    /// The new connection, once.
    pub(super) fn answer(&self) -> Option<Agreement> {
        self.shared.lock().answer.take()
    }

    /// The eventfd of the bell.
    pub(super) fn bell(&self) -> RawFd {
        self.shared.bell.as_fd().as_raw_fd()
    }
}

impl Drop for Dialer {
    fn drop(&mut self) {
        // A call of the thread's that has not returned ends by its deadline; nobody waits for it.
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl DialerState {
    fn serve(&self) {
        loop {
            let mut state = self.lock();
            while !state.is_wanted && !state.is_over {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
            }
            if state.is_over {
                return;
            }
            state.is_wanted = false;
            drop(state);
            let Some(agreement) = self.dial() else { return };
            self.lock().answer = Some(agreement);
            // It can only fail if it was rung 2^64 times, and then it is ringing.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    /// Tries to connect until the server answers, or the back end ends.
    fn dial(&self) -> Option<Agreement> {
        let uri = &self.target.uri;
        let mut pause = PAUSE;
        let mut told = String::new();
        loop {
            let dialled = self.target.dial().map_err(|error| error.to_string());
            let problem = match dialled.and_then(|agreement| self.same(agreement)) {
                Ok(agreement) => {
                    info!(uri, "the server behind is back");
                    return Some(agreement);
                }
                Err(problem) => problem,
            };
            if problem != told {
                warn!(
                    uri,
                    "{problem}: begin that server again; it is tried until it answers"
                );
                told = problem;
            }
            let state = self.lock();
            let waited = self
                .changed
                .wait_timeout_while(state, pause, |state| !state.is_over);
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.is_over {
                return None;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Checks that the server offers the same export: a mounted file system must not find other bytes.
    fn same(&self, agreement: Agreement) -> Result<Agreement, String> {
        let (first, now) = (&self.first, &agreement.session.offer);
        if now.size < first.size {
            return Err(format!(
                "the export has {} bytes, and had {}: expected as many",
                now.size, first.size
            ));
        }
        let (was, is) = (first.features, now.features);
        let lost = [
            ("a writable export", !was.read_only, !is.read_only),
            ("flushes", was.flush, is.flush),
            ("FUA", was.fua, is.fua),
            ("trims", was.trim, is.trim),
            ("writes of zeroes", was.write_zeroes, is.write_zeroes),
            ("fast zeroes", was.fast_zero, is.fast_zero),
        ];
        if let Some((what, ..)) = lost.iter().find(|(_, was, is)| *was && !is) {
            return Err(format!("the server had {what} and has them no more"));
        }
        if now.block.min() > first.block.min() {
            return Err(format!(
                "the smallest block has {} bytes, and had {}: expected no larger one",
                now.block.min(),
                first.block.min()
            ));
        }
        Ok(agreement)
    }

    fn lock(&self) -> MutexGuard<'_, DialState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
