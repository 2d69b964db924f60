//! One connection's TLS, without a socket.
//!
//! ```text
//!   [ opened | received, not yet opened | free ]
//!            from                       to
//! ```

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

/// One side of a connection: a server's, or a client's of another server.
pub struct Session {
    tls: Connection,
    received: Box<[u8]>,
    from: usize,
    to: usize,
}

/// What was there to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing whole: more has to be received.
    Nothing,
    /// The client has said that nothing more comes.
    Closed,
}

/// Received bytes that are not opened yet: seven of the longest records. A choice: more in one call
/// to the kernel, less in the processor's cache.
const RECEIVED: usize = 128 << 10;

impl Session {
    /// A session whose client has sent `received` so far.
    ///
    /// # Errors
    /// If the configuration cannot be used, which is a bug.
    pub fn new(config: Arc<ServerConfig>, received: &[u8]) -> io::Result<Self> {
        let tls = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(Session::of(tls.into(), received))
    }

    /// A session with a server that has to show a certificate for `name`, and has sent `received`
    /// so far.
    ///
    /// # Errors
    /// If the configuration cannot be used, which is a bug.
    pub fn towards(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        received: &[u8],
    ) -> io::Result<Self> {
        let tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Ok(Session::of(tls.into(), received))
    }

    fn of(mut tls: Connection, received: &[u8]) -> Self {
        // What is sealed is taken out at once, and the caller bounds it.
        tls.set_buffer_limit(None);
        let mut bytes: Box<[u8]> = vec![0; RECEIVED.max(received.len())].into();
        bytes[..received.len()].copy_from_slice(received);
        Session {
            tls,
            received: bytes,
            from: 0,
            to: received.len(),
        }
    }

    /// Whether hands are not shaken yet.
    #[must_use]
    pub fn is_shaking_hands(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Shakes hands as far as what was received allows, and appends what is to be sent to `out`: of
    /// a failure, too.
    ///
    /// # Errors
    /// If the client is refused, or what it sends is no TLS.
    pub fn advance(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut result = Ok(());
        while result.is_ok() && self.from < self.to && self.tls.is_handshaking() {
            result = self.take();
        }
        self.take_out(out)?;
        result
    }

    /// Where more can be received: at least one byte, if all was opened that could be.
    pub fn space(&mut self) -> &mut [u8] {
        self.received.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        &mut self.received[self.to..]
    }

    /// So many bytes were put where [`Session::space`] said.
    pub fn received(&mut self, count: usize) {
        self.to += count;
    }

    /// Opens what was received, as much as is there and fits into `to`, which is not empty.
    ///
    /// # Errors
    /// If it was not sealed by the client, or makes no sense.
    pub fn open(&mut self, to: &mut [u8]) -> io::Result<Opened> {
        loop {
            match self.tls.reader().read(to) {
                Ok(0) => return Ok(Opened::Closed),
                Ok(count) => return Ok(Opened::Bytes(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                Err(error) => return Err(error),
            }
            if self.from == self.to {
                return Ok(Opened::Nothing);
            }
            self.take()?;
        }
    }

    /// Seals all of `pieces`, in as few records as there can be, and appends them to `out`.
    ///
    /// # Errors
    /// If the session has failed before.
    pub fn seal(&mut self, pieces: &[IoSlice<'_>], out: &mut Vec<u8>) -> io::Result<()> {
        let all: usize = pieces.iter().map(|piece| piece.len()).sum();
        let sealed = self.tls.writer().write_vectored(pieces)?;
        if sealed < all {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.take_out(out)
    }

    /// Appends to `out`, the first time, that nothing more comes.
    ///
    /// # Errors
    /// None that is known; rustls could have one.
    pub fn close(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.tls.send_close_notify();
        self.take_out(out)
    }

    /// Hands some of what was received to rustls.
    fn take(&mut self) -> io::Result<()> {
        let mut rest = &self.received[self.from..self.to];
        self.from += self.tls.read_tls(&mut rest)?;
        let state = self.tls.process_new_packets();
        state.map(drop).map_err(io::Error::other)
    }

    fn take_out(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(out)?;
        }
        Ok(())
    }
}
