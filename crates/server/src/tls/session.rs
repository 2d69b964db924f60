//! The TLS session of one connection, without a socket.
//!
//! ```text
//!   [ opened | received, not yet opened | free ]
//!            from                       to
//! ```

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

/// The TLS session of one side of a connection.
pub struct Session {
    tls: Connection,
    received: Box<[u8]>,
    from: usize,
    to: usize,
}

/// The result of decryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The number of decrypted bytes, at least one.
    Bytes(usize),
    /// No whole record: more bytes have to be received.
    Nothing,
    /// The other side has closed the session.
    Closed,
}

/// Bytes of the receive buffer: seven of the longest records. A choice: a larger one needs fewer system
/// calls, a smaller one less of the processor's cache.
const RECEIVED: usize = 128 << 10;

impl Session {
    /// A server's session, whose client has sent `received` so far.
    ///
    /// # Errors
    /// If the configuration cannot be used, which is a bug.
    pub fn new(config: Arc<ServerConfig>, received: &[u8]) -> io::Result<Self> {
        let tls = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(Session::of(tls.into(), received))
    }

    /// A client's session. The server needs a certificate for `name`, and has sent `received` so far.
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

    /// Whether the handshake is not complete.
    #[must_use]
    pub fn is_shaking_hands(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// The certificate of the other side, once hands are shaken, if it has shown one.
    #[must_use]
    pub fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.peer_certificates()?.first()
    }

    /// Continues the handshake with the received bytes, and appends the bytes to send to `out`, also after
    /// a failure.
    ///
    /// # Errors
    /// If the client is refused, or the bytes are no TLS.
    pub fn advance(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut result = Ok(());
        while result.is_ok() && self.from < self.to && self.tls.is_handshaking() {
            result = self.take();
        }
        self.take_out(out)?;
        result
    }

    /// The free space for received bytes. It has at least one byte if everything was decrypted.
    pub fn space(&mut self) -> &mut [u8] {
        self.received.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        &mut self.received[self.to..]
    }

    /// Notes `count` bytes received into [`Session::space`].
    pub fn received(&mut self, count: usize) {
        self.to += count;
    }

    /// Decrypts received bytes into `to`, which is not empty.
    ///
    /// # Errors
    /// If the bytes are not authentic or invalid.
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

    /// Encrypts all of `pieces` in as few records as possible, and appends them to `out`.
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

    /// Appends the end of the session to `out`, once.
    ///
    /// # Errors
    /// None that is known; rustls could have one.
    pub fn close(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.tls.send_close_notify();
        self.take_out(out)
    }

    /// Gives received bytes to rustls.
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
