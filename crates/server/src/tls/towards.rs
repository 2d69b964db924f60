//! The client side of TLS connections to another server.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::{ClientConfig, InconsistentKeys};

use super::{AUTHORITY, CERTIFICATE, KEY, Unusable, certificates, key, roots, unusable};
use crate::config::RemoteTls;

/// Reads the files.
///
/// # Errors
/// If a file cannot be read, has the wrong content, or the key is not that of the certificate.
pub fn towards(files: &RemoteTls) -> Result<Arc<ClientConfig>, Unusable> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.ca, error, AUTHORITY))?
        .with_root_certificates(roots(&files.ca, &certificates(&files.ca)?)?);
    let mut config = match &files.own {
        None => builder.with_no_client_auth(),
        Some((certificate, own_key)) => builder
            .with_client_auth_cert(certificates(certificate)?, key(own_key)?)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    let problem = format!("not the key of {}", certificate.display());
                    unusable(own_key, problem, "the key of that certificate")
                }
                rustls::Error::InvalidCertificate(_) => unusable(certificate, error, CERTIFICATE),
                _ => unusable(own_key, error, KEY),
            })?,
    };
    // As for our own clients: connections last, and few begin.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}
