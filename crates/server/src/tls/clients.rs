//! What a client may open, by the names in its certificate.
//!
//! A name is one of the subject alternative names. The common name is none: it has no syntax, and RFC 9525 (section 2)
//! excludes it.

use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

use crate::config::TlsClient;

/// The exports of clients by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRules(Vec<ClientRule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ClientRule {
    name: ServerName<'static>,
    exports: Vec<String>,
}

impl ClientRules {
    /// The rules of a configuration, which has checked the names; `None` if each client may open all exports.
    pub(super) fn of(clients: &[TlsClient]) -> Option<ClientRules> {
        let rules = clients.iter().filter_map(|client| {
            Some(ClientRule {
                name: ServerName::try_from(client.name.clone()).ok()?,
                exports: client.exports.clone(),
            })
        });
        (!clients.is_empty()).then(|| ClientRules(rules.collect()))
    }

    /// The exports of whoever has shown this certificate: those of all its names. Without a certificate, and without a
    /// name that is known, there are none.
    pub(crate) fn exports_of(&self, certificate: Option<&CertificateDer<'_>>) -> Vec<&str> {
        let parsed = certificate.and_then(|der| ParsedCertificate::try_from(der).ok());
        let Some(parsed) = parsed else {
            return Vec::new();
        };
        let rules = self.0.iter();
        let own = rules.filter(|rule| verify_server_name(&parsed, &rule.name).is_ok());
        own.flat_map(|rule| rule.exports.iter().map(String::as_str))
            .collect()
    }
}
