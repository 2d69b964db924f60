//! Clients that may open some of the exports, by the names in their certificates.

use server::config::{Tls, TlsClient};
use server::tls::{Papers as Current, Security};

use crate::authority::{Authority, Papers};
use crate::client::{Client, Shown, VERSIONS, config};
use crate::scene::Scene;

/// A server with these rules: names and their exports.
fn ruled(papers: &Papers, rules: &[(&str, &[&str])]) -> Tls {
    let clients = rules.iter().map(|(name, exports)| TlsClient {
        name: (*name).to_owned(),
        exports: exports.iter().map(|&export| export.to_owned()).collect(),
    });
    Tls {
        clients: clients.collect(),
        ..papers.strict()
    }
}

/// Which of the two exports a client with a certificate for these names may open.
fn opens(scene: &Scene, authority: &Authority, names: &[&str]) -> Vec<&'static str> {
    let own = authority.papers_for(names);
    let may_open = |export: &&str| {
        let each = VERSIONS.map(|version| {
            let config = config(version, &own, Shown::Of(&own));
            Client::open(export, scene.knock(), Some(config)).is_ok()
        });
        assert_eq!(each[0], each[1], "both versions");
        each[0]
    };
    ["volume", "other"].into_iter().filter(may_open).collect()
}

#[test]
fn a_client_opens_the_exports_of_the_names_in_its_certificate() {
    let authority = Authority::new("ours");
    let rules: [(&str, &[&str]); 4] = [
        ("a.example", &["volume"]),
        ("b.example", &["other"]),
        ("c.example", &[]),
        ("10.0.0.7", &["other", "volume"]),
    ];
    let scene = Scene::with(&ruled(&authority.papers(), &rules));
    let opens = |names: &[&str]| opens(&scene, &authority, names);
    assert_eq!(opens(&["a.example"]), ["volume"]);
    assert_eq!(opens(&["B.Example"]), ["other"], "names have no case");
    assert_eq!(opens(&["10.0.0.7"]), ["volume", "other"]);
    assert_eq!(opens(&["b.example", "a.example"]), ["volume", "other"]);
    assert_eq!(opens(&["c.example"]), [""; 0]);
    assert_eq!(opens(&["d.example"]), [""; 0]);
    assert_eq!(opens(&["a.example.org"]), [""; 0]);
    assert_eq!(opens(&["sub.a.example"]), [""; 0]);
    // The common name of all these certificates is `client`.
    assert_eq!(opens(&[]), [""; 0]);
}

#[test]
fn without_rules_every_client_opens_every_export() {
    let authority = Authority::new("ours");
    let scene = Scene::with(&authority.papers().strict());
    assert_eq!(opens(&scene, &authority, &[]), ["volume", "other"]);
}

/// An export that is left over has another number in what is offered than in the service.
#[test]
fn what_is_opened_is_the_export_of_that_name() {
    let authority = Authority::new("ours");
    let rules: [(&str, &[&str]); 2] = [("a.example", &["volume"]), ("b.example", &["other"])];
    let scene = Scene::with(&ruled(&authority.papers(), &rules));
    let open = |name: &str, export: &str| {
        let own = authority.papers_for(&[name]);
        let config = config(VERSIONS[1], &own, Shown::Of(&own));
        Client::open(export, scene.knock(), Some(config)).expect("its own")
    };
    open("a.example", "volume").write(0, &[1; 512]);
    open("b.example", "other").write(0, &[2; 512]);
    assert_eq!(open("a.example", "volume").read(0, 512), [1; 512]);
    assert_eq!(open("b.example", "other").read(0, 512), [2; 512]);
}

#[test]
fn rules_are_exchanged_without_dropping_a_client() {
    let authority = Authority::new("ours");
    let papers = authority.papers();
    let security = Security::load(Some(&ruled(&papers, &[("a.example", &["volume"])])));
    let security = security.expect("certificates");
    let Security::Tls { certificates, .. } = &security else {
        panic!("no TLS");
    };
    let certificates = std::sync::Arc::clone(certificates);
    let scene = Scene::new(security);
    let own = authority.papers_for(&["a.example"]);
    let of_own = config(VERSIONS[1], &own, Shown::Of(&own));
    let mut client = Client::open("volume", scene.knock(), Some(of_own)).expect("its own");
    let next = ruled(&papers, &[("a.example", &["other"])]);
    assert!(certificates.replace(Current::read(&next).expect("usable")));
    assert_eq!(opens(&scene, &authority, &["a.example"]), ["other"]);
    client.write(0, &[3; 512]);
    assert_eq!(client.read(0, 512), [3; 512]);
}
