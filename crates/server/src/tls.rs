//! TLS for NBD connections: certificates from files, and sessions without sockets.
//!
//! ```text
//!   negotiation's thread   NBD_OPT_STARTTLS -> Session::advance, until hands are shaken
//!   event loop             socket -> Session::open -> inbox, or where a payload belongs
//!                          outbox -> Session::seal -> one buffer -> socket
//! ```
//!
//! A reload reads the files again, and clients that come from then on are served by them. [`ClientRules`] say which
//! exports a client may open. TLS 1.2 and 1.3. There is no check for revoked certificates: a client is locked out by another authority
//! in `client_ca`.

mod clients;
mod session;
mod towards;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{InconsistentKeys, RootCertStore, ServerConfig};

pub use clients::ClientRules;
pub use session::{Opened, Session};
pub use towards::towards;

use crate::config::{Tls, TlsNeed};
use nbd::negotiation;

/// The use of TLS by a listener.
#[derive(Clone, Debug)]
pub enum Security {
    /// Connections are plain.
    Plain,
    /// Connections may or must use TLS.
    Tls {
        /// Whether plain clients are refused.
        need: TlsNeed,
        /// The certificate of the server, and the authority for clients.
        certificates: Arc<Certificates>,
    },
}

/// Certificates in use. They can be replaced; open connections keep theirs.
#[derive(Debug)]
pub struct Certificates {
    current: RwLock<Arc<Papers>>,
}

/// What a server shows to its clients, and asks of them.
#[derive(Debug)]
pub struct Papers {
    config: Arc<ServerConfig>,
    clients: Option<ClientRules>,
    /// The certificates of the server and of the clients' authority. A key is another one only with another certificate.
    files: [Vec<CertificateDer<'static>>; 2],
}

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}: expected {expected}", file.display())]
pub struct Unusable {
    /// The path of the file.
    pub file: PathBuf,
    /// The problem.
    pub problem: String,
    /// The expected content.
    pub expected: &'static str,
}

impl Security {
    /// The setting of a listener in the configuration.
    ///
    /// # Errors
    /// As [`Certificates::load`].
    pub fn load(tls: Option<&Tls>) -> Result<Self, Unusable> {
        let Some(tls) = tls else {
            return Ok(Security::Plain);
        };
        Ok(Security::Tls {
            need: tls.need,
            certificates: Arc::new(Certificates::load(tls)?),
        })
    }

    /// The setting for the negotiation.
    pub(crate) fn negotiated(&self) -> negotiation::ServerSecurity {
        match self {
            Security::Plain => negotiation::ServerSecurity::Plain,
            Security::Tls { need, .. } => match need {
                TlsNeed::Optional => negotiation::ServerSecurity::Optional,
                TlsNeed::Required => negotiation::ServerSecurity::Required,
            },
        }
    }
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// As [`Papers::read`].
    pub fn load(files: &Tls) -> Result<Self, Unusable> {
        Ok(Certificates {
            current: RwLock::new(Arc::new(Papers::read(files)?)),
        })
    }

    /// Later connections have these. The answer is whether they differ from those before.
    pub fn replace(&self, papers: Papers) -> bool {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let differs = current.files != papers.files || current.clients != papers.clients;
        *current = Arc::new(papers);
        differs
    }

    /// The certificates for a new connection.
    #[must_use]
    pub fn current(&self) -> Arc<Papers> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Papers {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read, has the wrong content, or the key is not that of the certificate.
    pub fn read(files: &Tls) -> Result<Papers, Unusable> {
        let chain = certificates(&files.certificate)?;
        let authority = files.client_ca.as_deref().map(certificates).transpose()?;
        let config = server(files, chain.clone(), authority.as_deref())?;
        Ok(Papers {
            config: Arc::new(config),
            clients: ClientRules::of(&files.clients),
            files: [chain, authority.unwrap_or_default()],
        })
    }

    /// How to serve a client.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// What a client may open; `None` if that does not depend on who it is.
    #[must_use]
    pub fn clients(&self) -> Option<&ClientRules> {
        self.clients.as_ref()
    }
}

fn server(
    files: &Tls,
    chain: Vec<CertificateDer<'static>>,
    authority: Option<&[CertificateDer<'static>]>,
) -> Result<ServerConfig, Unusable> {
    let provider = Arc::new(ring::default_provider());
    let key = key(&files.key)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.certificate, error, CERTIFICATE))?;
    let builder = match files.client_ca.as_deref().zip(authority) {
        None => builder.with_no_client_auth(),
        Some((file, authority)) => {
            let roots = roots(file, authority)?.into();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = verifier
                .build()
                .map_err(|error| unusable(file, error, AUTHORITY))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                let problem = format!("not the key of {}", files.certificate.display());
                unusable(&files.key, problem, "the key of that certificate")
            }
            rustls::Error::InvalidCertificate(_) => {
                unusable(&files.certificate, error, CERTIFICATE)
            }
            _ => unusable(&files.key, error, KEY),
        })?;
    // Connections last, and few begin: none is resumed, and nobody keeps secrets for that.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// All certificates of a file, at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let bytes = std::fs::read(file).map_err(|error| unusable(file, error, CERTIFICATE))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| unusable(file, error, CERTIFICATE))?;
    match found.is_empty() {
        true => Err(unusable(file, "no certificate in it", CERTIFICATE)),
        false => Ok(found),
    }
}

fn key(file: &Path) -> Result<PrivateKeyDer<'static>, Unusable> {
    let bytes = std::fs::read(file).map_err(|error| unusable(file, error, KEY))?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| unusable(file, error, KEY))
}

fn roots(file: &Path, authority: &[CertificateDer<'static>]) -> Result<RootCertStore, Unusable> {
    let mut roots = RootCertStore::empty();
    for certificate in authority {
        let added = roots.add(certificate.clone());
        added.map_err(|error| unusable(file, error, AUTHORITY))?;
    }
    Ok(roots)
}

fn unusable(file: &Path, problem: impl ToString, expected: &'static str) -> Unusable {
    Unusable {
        file: file.to_owned(),
        problem: problem.to_string(),
        expected,
    }
}

const CERTIFICATE: &str = "certificates in PEM, its own first";
const KEY: &str = "a private key in PEM (RSA, ECDSA or Ed25519) without a passphrase";
const AUTHORITY: &str = "certificates in PEM of those who sign the other side's certificates";
