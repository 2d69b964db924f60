//! Certificates that are as old as the test, in folders as GnuTLS' programs expect them.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use server::config::{Tls, TlsNeed};
use tempfile::TempDir;

/// Who signs.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A folder with certificates: `ca-cert.pem`, `server-cert.pem`, `server-key.pem`,
/// `client-cert.pem`, `client-key.pem`.
pub struct Papers {
    folder: TempDir,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let issuer = Issuer::new(params, key);
        Authority { issuer, pem }
    }

    /// A certificate and its key.
    fn sign(&self, name: &str, names: &[&str], usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        (certificate.pem(), key.serialize_pem())
    }

    /// For a server and a client that it has signed.
    pub fn papers(&self) -> Papers {
        self.papers_for(&["localhost", "127.0.0.1"])
    }

    /// The same for a client of these names.
    pub fn papers_for(&self, names: &[&str]) -> Papers {
        let papers = Papers {
            folder: tempfile::tempdir().expect("a folder"),
        };
        papers.write("ca-cert.pem", &self.pem);
        let here = &["localhost", "127.0.0.1"][..];
        let sides = [
            ("server", here, ExtendedKeyUsagePurpose::ServerAuth),
            ("client", names, ExtendedKeyUsagePurpose::ClientAuth),
        ];
        for (side, names, usage) in sides {
            let (certificate, key) = self.sign(side, names, usage);
            papers.write(&format!("{side}-cert.pem"), &certificate);
            papers.write(&format!("{side}-key.pem"), &key);
        }
        papers
    }
}

impl Papers {
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).expect("written");
    }

    /// The configuration of a server that lets every client in.
    pub fn server(&self, need: TlsNeed) -> Tls {
        Tls {
            certificate: self.file("server-cert.pem"),
            key: self.file("server-key.pem"),
            client_ca: None,
            need,
            clients: Vec::new(),
        }
    }

    /// The configuration of a server whose clients have certificates.
    pub fn strict(&self) -> Tls {
        Tls {
            client_ca: Some(self.file("ca-cert.pem")),
            ..self.server(TlsNeed::Required)
        }
    }
}
