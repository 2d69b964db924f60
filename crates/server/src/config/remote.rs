//! An export of another NBD server, as a back end.
//!
//! ```text
//!   nbd://HOST[:PORT]/NAME          nbds://...        over TCP, inside of TLS
//!   nbd+unix:///NAME?socket=PATH    nbds+unix://...   over a unix socket
//! ```
//!
//! These are the URIs of `doc/uri.md` of NetworkBlockDevice/nbd, without users.

use std::path::PathBuf;

use document::quantity::Unit;
use document::{DocumentError, Section};

use super::Places;
use super::fields::path;
use super::front::{NBD_PORT, SOCKET_PATH_BYTES};

/// An export of another NBD server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The URI as it was written, for the log.
    pub uri: String,
    /// The address of the server.
    pub address: Address,
    /// The export. An empty name is the default export.
    pub export: String,
    /// The certificates, if the connection uses TLS.
    pub tls: Option<RemoteTls>,
    /// The time in seconds for which requests wait for a lost server. Then they fail.
    pub patience_s: u32,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
}

/// Certificates for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTls {
    /// The certificate authority of the server, PEM.
    pub ca: PathBuf,
    /// The client's certificate and its private key, PEM.
    pub own: Option<(PathBuf, PathBuf)>,
}

impl Remote {
    /// The export that a URI names, without TLS; `None` if it is no such URI.
    pub fn of_uri(uri: &str) -> Option<Remote> {
        let (address, export, secure) = parts(uri)?;
        (secure == Secure::No).then(|| Remote {
            uri: uri.to_owned(),
            address,
            export,
            tls: None,
            patience_s: DEFAULT_PATIENCE_S as u32,
        })
    }
}

/// The keys of this kind of back end.
pub(super) const KEYS: [&str; 6] = ["kind", "uri", "ca", "certificate", "key", "patience_s"];

/// A choice: the time that Linux gives a disk for one command.
const DEFAULT_PATIENCE_S: u64 = 30;

const EXPECTED: &str = "\"nbd://HOST[:PORT]/NAME\" or \"nbd+unix:///NAME?socket=PATH\"";

/// Reads the back end of `table`.
pub(super) fn remote(table: &Section<'_>, places: &Places) -> Result<Remote, DocumentError> {
    let field = table.need("uri", EXPECTED)?;
    let uri = field.text(EXPECTED)?;
    let Some((address, export, is_secure)) = parts(uri) else {
        return Err(field.mismatch(EXPECTED));
    };
    if let Address::Unix(path) = &address
        && path.as_os_str().len() > SOCKET_PATH_BYTES
    {
        return Err(field.error(format!(
            "a socket's path of {} bytes: expected at most {SOCKET_PATH_BYTES}",
            path.as_os_str().len()
        )));
    }
    let patience = table.get("patience_s").map(|value| {
        let expected = "a whole number of seconds from 1 to 3600";
        value.whole_quantity(Unit::Seconds, 1..=3600, expected)
    });
    Ok(Remote {
        uri: uri.to_owned(),
        address,
        export,
        tls: tls(table, is_secure, places)?,
        patience_s: patience.transpose()?.unwrap_or(DEFAULT_PATIENCE_S) as u32,
    })
}

fn tls(
    table: &Section<'_>,
    is_secure: Secure,
    places: &Places,
) -> Result<Option<RemoteTls>, DocumentError> {
    if is_secure == Secure::No {
        let key = ["ca", "certificate", "key"]
            .into_iter()
            .find_map(|key| table.get(key));
        return match key {
            Some(value) => Err(value.mismatch("it only with a URI that begins with nbds")),
            None => Ok(None),
        };
    }
    let file = "the path of a PEM file";
    let authority = "the path of a PEM file: who signs the server's certificate";
    let ca = path(&table.need("ca", authority)?, places)?;
    let own = match (table.get("certificate"), table.get("key")) {
        (None, None) => None,
        _ => Some((
            path(&table.need("certificate", file)?, places)?,
            path(&table.need("key", file)?, places)?,
        )),
    };
    Ok(Some(RemoteTls { ca, own }))
}

/// Whether a URI asks for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secure {
    No,
    Yes,
}

fn parts(uri: &str) -> Option<(Address, String, Secure)> {
    let schemes = [
        ("nbd://", Secure::No),
        ("nbds://", Secure::Yes),
        ("nbd+unix://", Secure::No),
        ("nbds+unix://", Secure::Yes),
    ];
    let (scheme, secure) = schemes
        .into_iter()
        .find(|(scheme, _)| uri.starts_with(scheme))?;
    let rest = &uri[scheme.len()..];
    let (address, name) = match scheme.contains("+unix") {
        true => unix(rest)?,
        false => tcp(rest)?,
    };
    Some((address, decoded(name)?, secure))
}

/// Parses `/NAME?socket=PATH`.
fn unix(rest: &str) -> Option<(Address, &str)> {
    let (name, query) = rest.split_once('?')?;
    let socket = decoded(query.strip_prefix("socket=")?)?;
    let name = name.strip_prefix('/').unwrap_or(name);
    let is_one = !query.contains(['&', '#']) && socket.starts_with('/');
    is_one.then(|| (Address::Unix(PathBuf::from(socket)), name))
}

/// Parses `HOST[:PORT]/NAME` and `[ADDRESS]:PORT`.
fn tcp(rest: &str) -> Option<(Address, &str)> {
    let (place, name) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match place.strip_prefix('[') {
        Some(inside) => {
            let (host, after) = inside.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, after)
        }
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
        Some(_) => return None,
        None if port.is_empty() => NBD_PORT,
        None => return None,
    };
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    let is_host = !host.is_empty() && host.bytes().all(known);
    let host = host.to_owned();
    (is_host && port != 0 && !name.contains(['?', '#']))
        .then_some((Address::Tcp { host, port }, name))
}

/// Decodes percent signs. `None` if the result has a NUL or is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                (high << 4 | low) as u8
            }
            byte => byte,
        });
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}
