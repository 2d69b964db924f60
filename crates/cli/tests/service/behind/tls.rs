//! A server behind with TLS: its certificate is looked at, and ours is shown.

use assert_cmd::cargo::cargo_bin;
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

/// What a client may open is changed by a reload, and so are the certificates, for clients that come after it.
#[test]
fn a_reload_changes_certificates_and_what_clients_may_open() {
    let folder = Folder::new();
    authority(&folder, "ours");
    authority(&folder, "other");
    let memory = "{ kind = \"memory\", size = \"64 MiB\" }";
    let doors = |whose: &str, rules: &str| {
        format!(
            "[[nbd]]\nunix = \"behind\"\n[nbd.tls]\ncertificate = \"{whose}-server.pem\"\n\
             key = \"{whose}-server-key.pem\"\nclient_ca = \"{whose}-ca.pem\"\nclient = [{rules}]\n"
        )
    };
    let own = "{ name = \"localhost\", exports = [\"v\"] }";
    let behind = folder.serve("behind", memory, &doors("ours", own));
    let reload = |whose: &str, rules: &str| {
        folder.configure("behind", memory, &doors(whose, rules));
        let output = folder.output(&format!(
            "{} ctl --socket behind.control reload",
            cargo_bin("headtime").display()
        ));
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), said)
    };
    let uri = folder.uri("behind").replace("nbd+", "nbds+");
    let uses = |whose: &str| {
        let files = format!(
            ", ca = \"{whose}-ca.pem\", certificate = \"{whose}-client.pem\", key = \"{whose}-client-key.pem\""
        );
        (
            files.clone(),
            format!("{{ kind = \"nbd\", uri = \"{uri}\"{files} }}"),
        )
    };
    let front = folder.over("front", &uri, &uses("ours").0);
    let renewed = "the certificates of [[nbd]] number 1, for clients that come from now on";

    let (is_taken, said) = reload("ours", "{ name = \"vm.example\", exports = [\"v\"] }");
    assert!(is_taken && said.contains(renewed), "{said}");
    let said = folder.refused(&uses("ours").1);
    assert!(
        said.contains("there is no export of this name"),
        "the name has no export: {said}"
    );
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    assert_eq!(
        client.ask(Asked::Of(Ask::Read), 0, 4096, &[]).result,
        Ok(())
    );
    drop(client);

    let (is_taken, said) = reload("other", own);
    assert!(is_taken && said.contains(renewed), "{said}");
    folder.refused(&uses("ours").1);
    folder.over("other-front", &uri, &uses("other").0).stop();

    std::fs::write(folder.path("missing-ca.pem"), "no PEM").expect("written");
    let (is_taken, said) = reload("missing", own);
    assert!(!is_taken && said.contains("missing-server.pem"), "{said}");
    folder.over("last-front", &uri, &uses("other").0).stop();

    let (is_taken, said) = reload("other", own);
    assert!(
        is_taken && !said.contains(renewed),
        "nothing differs: {said}"
    );
    front.stop();
    behind.stop();
}
