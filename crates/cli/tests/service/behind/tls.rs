//! A server behind with TLS: its certificate is looked at, and ours is shown.

use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::process::Folder;
use crate::client::Client;

/// Writes `NAME-ca.pem`, and certificates with keys of a server and a client that it has signed.
fn authority(folder: &Folder, name: &str) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().expect("a key");
    let write = |what: &str, text: String| {
        let path = folder.path(&format!("{name}-{what}.pem"));
        std::fs::write(path, text).expect("written");
    };
    let own = params.self_signed(&key).expect("a certificate");
    write("ca", own.pem());
    let issuer = Issuer::new(params, key);
    let sides = [
        ("server", ExtendedKeyUsagePurpose::ServerAuth),
        ("client", ExtendedKeyUsagePurpose::ClientAuth),
    ];
    for (side, usage) in sides {
        let names = vec!["localhost".to_owned()];
        let mut params = CertificateParams::new(names).expect("a name");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &issuer).expect("signed");
        write(side, signed.pem());
        write(&format!("{side}-key"), key.serialize_pem());
    }
}

#[test]
fn a_server_behind_tls_is_known_by_its_certificate_and_knows_ours() {
    let folder = Folder::new();
    authority(&folder, "ours");
    authority(&folder, "other");
    let memory = "{ kind = \"memory\", size = \"64 MiB\" }";
    let doors = "[[nbd]]\nunix = \"behind\"\n[nbd.tls]\ncertificate = \"ours-server.pem\"\n\
                 key = \"ours-server-key.pem\"\nclient_ca = \"ours-ca.pem\"\n";
    let behind = folder.serve("behind", memory, doors);
    let uri = folder.uri("behind").replace("nbd+", "nbds+");
    let own = ", certificate = \"ours-client.pem\", key = \"ours-client-key.pem\"";
    let front = folder.over("front", &uri, &format!(", ca = \"ours-ca.pem\"{own}"));
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    let words = (0_u64..(5 << 20) / 8).map(|word| word.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let payload: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let write = Asked::Of(Ask::Write {
        durability: block::Durability::Durable,
    });
    let end = client.ask(write, 4096, payload.len() as u64, &payload);
    assert_eq!(end.result, Ok(()));
    for _ in 0..32 {
        client.submit(Asked::Of(Ask::Read), 4096, payload.len() as u64, &[]);
    }
    while client.under_way() > 0 {
        let end = client.end().expect("the service answers");
        assert!(end.result == Ok(()) && end.bytes == payload);
    }
    drop(client);
    front.stop();
    let with = |more: &str| format!("{{ kind = \"nbd\", uri = \"{uri}\"{more} }}");
    let said = folder.refused(&with(&format!(", ca = \"other-ca.pem\"{own}")));
    assert!(
        said.contains("certificate"),
        "another authority's server: {said}"
    );
    let said = folder.refused(&with(", ca = \"ours-ca.pem\""));
    assert!(
        said.contains("takes our certificate"),
        "a client without one: {said}"
    );
    let theirs = own.replace("ours", "other");
    let said = folder.refused(&with(&format!(", ca = \"ours-ca.pem\"{theirs}")));
    assert!(
        said.contains("takes our certificate"),
        "an unknown client: {said}"
    );
    let plain = with("").replace("nbds+", "nbd+");
    let said = folder.refused(&plain);
    assert!(said.contains("the server refused"), "without TLS: {said}");
    behind.stop();
}
