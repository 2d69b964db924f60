//! Programs of others, with GnuTLS.

use std::path::Path;
use std::process::{Command, Output};

use server::config::{Tls, TlsClient, TlsNeed};

use crate::authority::{Authority, Papers};
use crate::scene::{BYTES, Scene};

/// Whether the programs are here. In CI it is an error if they are not.
fn are_here(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let found = Command::new("which").arg(program).output();
        !found.is_ok_and(|found| found.status.success())
    });
    let Some(missing) = missing else {
        return true;
    };
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!is_ci, "CI needs what is missing here: {missing}");
    let line = format!("skipped: no {missing}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("standard error");
    false
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn succeeds(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn uri(scene: &Scene, papers: &Papers) -> String {
    let port = scene.listener.address().expect("TCP").port();
    let folder = papers.path().display();
    format!("nbds://localhost:{port}/volume?tls-certificates={folder}")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn libnbd_reads_and_writes_with_certificates() {
    if !are_here(&["nbdinfo", "nbdcopy"]) {
        return;
    }
    let papers = Authority::new("ours").papers();
    let scene = Scene::tcp(&papers.strict());
    let uri = uri(&scene, &papers);
    let size = succeeds("nbdinfo", &["--size", &uri]);
    assert_eq!(size.trim(), BYTES.to_string());
    let told = succeeds("nbdinfo", &[&uri]);
    assert!(told.contains("with TLS"), "{told}");
    let bytes: Vec<u8> = (0..BYTES as u32 / 4)
        .flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let (from, to) = (papers.file("from"), papers.file("to"));
    std::fs::write(&from, &bytes).expect("written");
    succeeds("nbdcopy", &[text(&from), &uri]);
    succeeds("nbdcopy", &[&uri, text(&to)]);
    assert!(std::fs::read(&to).expect("a file") == bytes);
}

/// A listing has what the certificate may open, and nothing else.
#[test]
fn libnbd_lists_the_exports_of_a_certificate() {
    if !are_here(&["nbdinfo"]) {
        return;
    }
    let authority = Authority::new("ours");
    let client = TlsClient {
        name: "b.example".to_owned(),
        exports: vec!["other".to_owned()],
    };
    let scene = Scene::tcp(&Tls {
        clients: vec![client],
        ..authority.papers().strict()
    });
    let listed = |names: &[&str]| {
        let own = authority.papers_for(names);
        let listed = succeeds("nbdinfo", &["--list", "--json", &uri(&scene, &own)]);
        ["volume", "other"].map(|name| listed.contains(&format!("\"export-name\": \"{name}\"")))
    };
    assert_eq!(listed(&["b.example"]), [false, true]);
    assert_eq!(listed(&["a.example"]), [false, false]);
}

#[test]
fn libnbd_is_refused_without_a_certificate_that_is_known() {
    if !are_here(&["nbdinfo"]) {
        return;
    }
    let papers = Authority::new("ours").papers();
    let scene = Scene::tcp(&papers.strict());
    let theirs = Authority::new("theirs").papers();
    // It trusts our server, and shows a certificate of others.
    let ours = std::fs::read_to_string(papers.file("ca-cert.pem")).expect("a file");
    theirs.write("ca-cert.pem", &ours);
    assert!(!run("nbdinfo", &[&uri(&scene, &theirs)]).status.success());
    let port = scene.listener.address().expect("TCP").port();
    let plain = format!("nbd://localhost:{port}/volume");
    assert!(!run("nbdinfo", &[&plain]).status.success());
    succeeds("nbdinfo", &[&uri(&scene, &papers)]);
}

#[test]
fn qemu_converts_and_compares_over_tls() {
    if !are_here(&["qemu-img"]) {
        return;
    }
    let papers = Authority::new("ours").papers();
    for strict in [papers.strict(), papers.server(TlsNeed::Optional)] {
        let scene = Scene::tcp(&strict);
        let port = scene.listener.address().expect("TCP").port();
        let folder = papers.path().display();
        let object = format!("tls-creds-x509,id=tls,dir={folder},endpoint=client");
        let volume = format!(
            "driver=nbd,host=127.0.0.1,port={port},export=volume,tls-creds=tls,\
             tls-hostname=localhost"
        );
        let from = papers.file("image");
        let bytes: Vec<u8> = (0..BYTES as u32 / 4)
            .flat_map(|at| at.wrapping_mul(2_246_822_519).to_le_bytes())
            .collect();
        std::fs::write(&from, &bytes).expect("written");
        let file = format!("driver=raw,file.driver=file,file.filename={}", text(&from));
        let secure = ["--object", &object];
        let mut convert = vec!["convert", "-n", "--image-opts", "--target-image-opts"];
        convert.extend(secure);
        convert.extend([&file[..], &volume[..]]);
        succeeds("qemu-img", &convert);
        let mut compare = vec!["compare", "--image-opts"];
        compare.extend(secure);
        compare.extend([&file[..], &volume[..]]);
        assert!(succeeds("qemu-img", &compare).contains("identical"));
    }
}
