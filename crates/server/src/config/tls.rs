//! Certificates of a listener: `[nbd.tls]`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use document::{DocumentError, Section};
use rustls::pki_types::ServerName;

use super::exports::some_of;
use super::fields::path;
use super::{DriveConfig, Places};
use crate::checkpoint::moment::export_of;

/// The certificates of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate and its chain, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
    /// The authority for clients' certificates, PEM. Without it clients need none.
    pub client_ca: Option<PathBuf>,
    /// Whether plain clients are refused.
    pub need: TlsNeed,
    /// The exports of clients by the names in their certificates. Without any, each client may open all.
    pub clients: Vec<TlsClient>,
}

/// Whether plain clients are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsNeed {
    /// They are.
    Required,
    /// They are not.
    Optional,
}

/// A client by a name in its certificate: `[[nbd.tls.client]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsClient {
    /// A DNS name or an IP address, one of the certificate's subject alternative names.
    pub name: String,
    /// The exports that it may see and open, among them checkpoints.
    pub exports: Vec<String>,
}

pub(super) fn tls(
    table: &Section<'_>,
    places: &Places,
    drives: &[DriveConfig],
) -> Result<Option<Tls>, DocumentError> {
    let known = ["certificate", "key", "client_ca", "required", "client"];
    let Some(table) = table.section("tls", &known)? else {
        return Ok(None);
    };
    let file = "the path of a PEM file";
    let client_ca = table.get("client_ca").map(|value| path(&value, places));
    let required = table.get("required").map(|value| value.boolean());
    let need = match required.transpose()? {
        Some(false) => TlsNeed::Optional,
        _ => TlsNeed::Required,
    };
    let client_ca = client_ca.transpose()?;
    if need == TlsNeed::Optional && client_ca.is_some() {
        let problem = "false with client_ca: expected true, or clients go around the certificates";
        return Err(table.missing("required", problem));
    }
    let clients = clients(&table, drives)?;
    if client_ca.is_none() && !clients.is_empty() {
        let problem =
            "missing key: expected the authority of the certificates that [[nbd.tls.client]] names";
        return Err(table.missing("client_ca", problem));
    }
    Ok(Some(Tls {
        certificate: path(&table.need("certificate", file)?, places)?,
        key: path(&table.need("key", file)?, places)?,
        client_ca,
        need,
        clients,
    }))
}

fn clients(table: &Section<'_>, drives: &[DriveConfig]) -> Result<Vec<TlsClient>, DocumentError> {
    let exports = drives.iter().flat_map(|drive| &drive.exports);
    let exports = exports.map(|export| export.name.clone());
    let volumes = drives.iter().flat_map(|drive| &drive.volumes);
    // Drives may have volumes of the same name.
    let checkpoints: BTreeSet<String> = volumes.map(|volume| export_of(&volume.name)).collect();
    let all: Vec<String> = exports.chain(checkpoints).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut clients: Vec<TlsClient> = Vec::new();
    for client in table.sections("client")? {
        client.only(&["name", "exports"])?;
        let expected =
            "a DNS name or an IP address in the client's certificate, such as \"backup.example\"";
        let field = client.need("name", expected)?;
        let name = field.text(expected)?;
        if ServerName::try_from(name).is_err() {
            return Err(field.mismatch(expected));
        }
        if clients
            .iter()
            .any(|other| other.name.eq_ignore_ascii_case(name))
        {
            return Err(field.mismatch("each name once"));
        }
        let expected = "a list of exports, such as [\"db\", \"db@checkpoint\"]";
        let list = client.need("exports", expected)?.list(expected)?;
        clients.push(TlsClient {
            name: name.to_owned(),
            exports: some_of(list, &all)?,
        });
    }
    Ok(clients)
}
