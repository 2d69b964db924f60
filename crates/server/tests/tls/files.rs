//! Certificates in files.

use server::config::{Tls, TlsNeed};
use server::tls::{Certificates, Papers, Security};

use crate::authority::Authority;
use crate::client::{Client, Shown, VERSIONS, config};
use crate::scene::Scene;

/// What is said of files that cannot be used.
fn said(files: &Tls) -> String {
    Certificates::load(files)
        .expect_err("not usable")
        .to_string()
}

#[test]
fn each_file_that_cannot_be_used_is_named_with_what_was_expected() {
    let papers = Authority::new("ours").papers();
    let other = Authority::new("theirs").papers();
    papers.write("empty", "");
    papers.write("text", "no PEM at all\n");
    papers.write(
        "broken",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    papers.write("cut", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    papers.write(
        "broken-key",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    );
    let good = papers.strict();
    assert!(Certificates::load(&good).is_ok());
    let certificate = "expected certificates in PEM, its own first";
    let key = "expected a private key in PEM";
    let authority = "expected certificates in PEM of those who sign";
    for name in [
        "missing",
        "empty",
        "text",
        "broken",
        "cut",
        "server-key.pem",
    ] {
        let file = papers.file(name);
        let mut wrong = good.clone();
        wrong.certificate = file.clone();
        let message = said(&wrong);
        assert!(
            message.starts_with(&file.display().to_string()),
            "{message}"
        );
        assert!(message.contains(certificate), "{message}");
        let mut wrong = good.clone();
        wrong.client_ca = Some(file.clone());
        let message = said(&wrong);
        assert!(
            message.starts_with(&file.display().to_string()),
            "{message}"
        );
        assert!(
            message.contains("expected certificates in PEM"),
            "{message}"
        );
    }
    let mut wrong = good.clone();
    wrong.client_ca = Some(papers.file("broken"));
    assert!(said(&wrong).contains(authority));
    for name in ["missing", "empty", "text", "broken-key", "server-cert.pem"] {
        let mut wrong = good.clone();
        wrong.key = papers.file(name);
        let message = said(&wrong);
        let file = wrong.key.display().to_string();
        assert!(message.starts_with(&file), "{message}");
        assert!(message.contains(key), "{message}");
    }
    let mut wrong = good;
    wrong.key = other.file("server-key.pem");
    let message = said(&wrong);
    assert!(message.contains("not the key of"), "{message}");
    assert!(
        message.contains("expected the key of that certificate"),
        "{message}"
    );
}

#[test]
fn certificates_are_exchanged_without_dropping_a_client() {
    let (old, new) = (
        Authority::new("old").papers(),
        Authority::new("new").papers(),
    );
    let security = Security::load(Some(&old.strict())).expect("certificates");
    let Security::Tls { certificates, need } = &security else {
        panic!("no TLS");
    };
    assert_eq!(*need, TlsNeed::Required);
    let certificates = std::sync::Arc::clone(certificates);
    let scene = Scene::new(security);
    let of_old = || config(VERSIONS[1], &old, Shown::Of(&old));
    let of_new = || config(VERSIONS[1], &new, Shown::Of(&new));
    let mut client = Client::connect(scene.knock(), Some(of_old())).expect("a session");
    assert!(Client::connect(scene.knock(), Some(of_new())).is_err());
    let read = |files: &Tls| Papers::read(files);
    assert!(certificates.replace(read(&new.strict()).expect("usable")));
    assert!(Client::connect(scene.knock(), Some(of_old())).is_err());
    assert!(Client::connect(scene.knock(), Some(of_new())).is_ok());
    let mut wrong = old.strict();
    wrong.key = new.file("server-key.pem");
    assert!(read(&wrong).is_err());
    assert!(!certificates.replace(read(&new.strict()).expect("the same")));
    assert!(Client::connect(scene.knock(), Some(of_new())).is_ok());
    client.write(0, &[1; 512]);
    assert_eq!(client.read(0, 512), [1; 512]);
}
