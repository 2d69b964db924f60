//! The other side of a connection during negotiation, plain or inside TLS, with a time limit. It is a
//! client, or the server behind a back end.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustls::pki_types::CertificateDer;

use crate::tls::{Opened, Session};

/// A connection of either kind.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// The other side of a connection.
pub(crate) struct Peer {
    stream: Stream,
    session: Option<Box<Session>>,
    /// The end of the time limit.
    until: Instant,
}

/// The largest receive, in bytes. A choice: options are short.
const CHUNK: usize = 4096;

impl Peer {
    /// A peer that may negotiate for `longest`.
    pub(crate) fn new(stream: Stream, longest: Duration) -> io::Result<Self> {
        stream.prepare()?;
        Ok(Peer {
            stream,
            session: None,
            until: Instant::now() + longest,
        })
    }

    /// Sends all bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(session) = self.session.as_mut().filter(|_| !bytes.is_empty()) else {
            return self.write(bytes);
        };
        let mut sealed = Vec::new();
        session.seal(&[IoSlice::new(bytes)], &mut sealed)?;
        self.write(&sealed)
    }

    /// Appends received bytes to `into`. The answer is their number, zero at the end.
    pub(crate) fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let mut chunk = [0; CHUNK];
        let count = loop {
            self.hurry()?;
            let Some(session) = &mut self.session else {
                break self.stream.read(&mut chunk)?;
            };
            match session.open(&mut chunk)? {
                Opened::Bytes(count) => break count,
                Opened::Closed => break 0,
                Opened::Nothing => match self.stream.read(session.space())? {
                    0 => break 0,
                    count => session.received(count),
                },
            }
        };
        into.extend_from_slice(&chunk[..count]);
        Ok(count)
    }

    /// Does the TLS handshake.
    pub(crate) fn secure(&mut self, mut session: Session) -> io::Result<()> {
        let mut out = Vec::new();
        loop {
            let result = session.advance(&mut out);
            // Of a refusal the client is told, too.
            let told = self.write(&out);
            result?;
            told?;
            out.clear();
            if !session.is_shaking_hands() {
                break;
            }
            self.hurry()?;
            match self.stream.read(session.space())? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => session.received(count),
            }
        }
        self.session = Some(Box::new(session));
        Ok(())
    }

    /// The certificate that it has shown.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.session.as_ref()?.certificate()
    }

    /// The socket without time limits, for a ring.
    pub(crate) fn hand_over(self) -> io::Result<(OwnedFd, Option<Box<Session>>)> {
        self.stream.set_patience(None)?;
        Ok((self.stream.into(), self.session))
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.hurry()?;
            let count = self.stream.write(bytes)?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Limits socket calls to the remaining time.
    fn hurry(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => self.stream.set_patience(Some(left)),
        }
    }
}

impl Stream {
    /// The address for people: an IP address, or the process at the other end of a unix socket.
    pub(crate) fn peer(&self) -> String {
        match self {
            Stream::Unix(stream) => match socket_peercred(stream) {
                Ok(who) => format!("process {}", who.pid.as_raw_nonzero()),
                Err(_) => "a unix socket".to_owned(),
            },
            Stream::Tcp(stream) => match stream.peer_addr() {
                Ok(address) => address.to_string(),
                Err(_) => "TCP".to_owned(),
            },
        }
    }

    fn prepare(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(false),
            Stream::Tcp(stream) => {
                stream.set_nonblocking(false)?;
                // Replies are sent in as few pieces as there can be: none waits for another.
                stream.set_nodelay(true)
            }
        }
    }

    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => {
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)
            }
            Stream::Tcp(stream) => {
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)
            }
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Unix(stream) => stream.into(),
            Stream::Tcp(stream) => stream.into(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Stream::Unix(stream) => stream.read(into),
            Stream::Tcp(stream) => stream.read(into),
        })
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.flush(),
            Stream::Tcp(stream) => stream.flush(),
        }
    }
}

/// Repeats a call that a signal interrupts, which the kernel does not do by itself for a socket with a time limit.
fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            ended => return ended,
        }
    }
}
