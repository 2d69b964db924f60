//! Our NBD client, over rustls' client.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use block::Durability;
use block::operation::Ask;
use nbd::Style;
use nbd::client::{ClientNegotiation, ClientOptions, ClientPhase, ClientSecurity, Event, Requests};
use nbd::offer::Text;
use nbd::request::Asked;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

use crate::authority::Papers;

/// A socket and what went over it.
pub struct Tapped {
    pub stream: UnixStream,
    pub seen: Arc<Mutex<Vec<u8>>>,
}

/// In the clear, or not.
pub enum Line {
    Plain(Tapped),
    Secure(Box<StreamOwned<ClientConnection, Tapped>>),
    /// Between the two.
    Gone,
}

/// A client that has agreed.
pub struct Client {
    pub line: Line,
    pub seen: Arc<Mutex<Vec<u8>>>,
    requests: Requests,
    received: Vec<u8>,
}

/// Which certificate a client shows.
pub enum Shown<'a> {
    Nothing,
    Of(&'a Papers),
}

/// Both versions that are served.
pub const VERSIONS: [&SupportedProtocolVersion; 2] =
    [&rustls::version::TLS12, &rustls::version::TLS13];

/// A client that trusts the authority of `trusted`.
pub fn config(
    version: &'static SupportedProtocolVersion,
    trusted: &Papers,
    shown: Shown<'_>,
) -> Arc<ClientConfig> {
    let certificates = |papers: &Papers, name: &str| -> Vec<CertificateDer<'static>> {
        let found = CertificateDer::pem_file_iter(papers.file(name)).expect("a file");
        found.map(|found| found.expect("a certificate")).collect()
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(trusted, "ca-cert.pem"));
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_root_certificates(roots);
    Arc::new(match shown {
        Shown::Nothing => builder.with_no_client_auth(),
        Shown::Of(papers) => {
            let key = PrivateKeyDer::from_pem_file(papers.file("client-key.pem")).expect("a key");
            let chain = certificates(papers, "client-cert.pem");
            builder
                .with_client_auth_cert(chain, key)
                .expect("they belong together")
        }
    })
}

impl Client {
    /// Agrees with the server; with TLS if there is a configuration for it.
    pub fn connect(stream: UnixStream, tls: Option<Arc<ClientConfig>>) -> io::Result<Self> {
        Client::open("volume", stream, tls)
    }

    /// The same for an export of this name.
    pub fn open(
        export: &str,
        stream: UnixStream,
        tls: Option<Arc<ClientConfig>>,
    ) -> io::Result<Self> {
        let wish = ClientOptions {
            export: Text::new(export).expect("short"),
            style: Style::Extended,
            contexts: Vec::new(),
            security: match tls {
                Some(_) => ClientSecurity::Required,
                None => ClientSecurity::Plain,
            },
        };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut line = Line::Plain(Tapped {
            stream,
            seen: Arc::clone(&seen),
        });
        let mut negotiation = ClientNegotiation::new(wish);
        let mut received = Vec::new();
        loop {
            let taken = negotiation.receive(&received);
            received.drain(..taken);
            line.write_all(negotiation.output())?;
            negotiation.output().clear();
            match negotiation.step() {
                ClientPhase::More => line.receive(&mut received)?,
                ClientPhase::StartTls => {
                    let config = tls.clone().expect("it was asked for");
                    line = line.secure(config);
                    negotiation.secured();
                }
                ClientPhase::Agreed(session) => {
                    return Ok(Client {
                        line,
                        seen,
                        requests: Requests::new(session, 1024),
                        received,
                    });
                }
                ClientPhase::Closed(reason) => return Err(io::Error::other(reason.to_string())),
            }
        }
    }

    /// Asks for something without waiting.
    pub fn ask(&mut self, ask: Ask, offset: u64, length: u64, payload: &[u8]) -> u64 {
        let mut out = Vec::new();
        let asked = self
            .requests
            .submit(&mut out, Asked::Of(ask), offset, length);
        let cookie = asked.expect("it makes sense");
        out.extend_from_slice(payload);
        self.line.write_all(&out).expect("sent");
        cookie
    }

    /// The next request that ends, and what it read.
    pub fn answer(&mut self) -> io::Result<(u64, Vec<u8>)> {
        let mut contents = Vec::new();
        loop {
            let told = self.requests.receive(&self.received);
            let (used, event) = told.map_err(io::Error::other)?;
            self.received.drain(..used);
            match event {
                Some(Event::Contents { length, .. }) => {
                    while (self.received.len() as u64) < length {
                        self.line.receive(&mut self.received)?;
                    }
                    contents.extend(self.received.drain(..length as usize));
                }
                Some(Event::Finished { cookie, result }) => {
                    result.map_err(io::Error::other)?;
                    return Ok((cookie, contents));
                }
                Some(event) => panic!("unexpected: {event:?}"),
                None if used == 0 => self.line.receive(&mut self.received)?,
                None => (),
            }
        }
    }

    pub fn read(&mut self, offset: u64, length: u64) -> Vec<u8> {
        let cookie = self.ask(Ask::Read, offset, length, &[]);
        let (of, contents) = self.answer().expect("read");
        assert_eq!(of, cookie);
        contents
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let durability = Durability::Volatile;
        let cookie = self.ask(Ask::Write { durability }, offset, bytes.len() as u64, bytes);
        assert_eq!(self.answer().expect("written").0, cookie);
    }

    /// Says that it goes, and waits until the server has, too: how that ended.
    pub fn leave(mut self) -> io::Result<usize> {
        let mut out = Vec::new();
        self.requests.disconnect(&mut out);
        self.line.write_all(&out)?;
        self.line.read(&mut [0])
    }
}

impl Line {
    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        match self.read(&mut chunk)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                into.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    }

    fn secure(&mut self, config: Arc<ClientConfig>) -> Line {
        let Line::Plain(tapped) = std::mem::replace(self, Line::Gone) else {
            panic!("TLS inside of TLS");
        };
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = ClientConnection::new(config, name).expect("a client");
        Line::Secure(Box::new(StreamOwned::new(tls, tapped)))
    }

    /// The socket itself.
    pub fn socket(&mut self) -> &mut UnixStream {
        match self {
            Line::Plain(tapped) => &mut tapped.stream,
            Line::Secure(secure) => &mut secure.sock.stream,
            Line::Gone => panic!("no socket"),
        }
    }
}

impl Read for Line {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Line::Plain(tapped) => tapped.read(into),
            Line::Secure(secure) => secure.read(into),
            Line::Gone => panic!("no socket"),
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Line::Plain(tapped) => tapped.write(bytes),
            Line::Secure(secure) => secure.write(bytes),
            Line::Gone => panic!("no socket"),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Line::Plain(tapped) => tapped.flush(),
            Line::Secure(secure) => secure.flush(),
            Line::Gone => panic!("no socket"),
        }
    }
}

impl Tapped {
    fn note(&self, bytes: &[u8]) {
        let mut seen = self.seen.lock().expect("one thread");
        seen.extend_from_slice(bytes);
    }
}

impl Read for Tapped {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(into)?;
        self.note(&into[..count]);
        Ok(count)
    }
}

impl Write for Tapped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.write(bytes)?;
        self.note(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
