//! What the Debian package and `make install` have: the same files, and examples that are configurations.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scene::Scene;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the package: the folder below `usr` in which it is installed, and its source below the repository.
type Placed = (String, String);

/// The assets of `[package.metadata.deb]`: each line is a list of source, destination and mode, as JSON.
fn assets() -> Vec<Placed> {
    let manifest = std::fs::read_to_string(repository().join("crates/cli/Cargo.toml"));
    let manifest = manifest.expect("the manifest");
    let (_, list) = manifest.split_once("assets = [\n").expect("assets");
    list.lines()
        .take_while(|line| *line != "]")
        .map(|line| {
            let asset: [String; 3] =
                serde_json::from_str(line.trim().trim_end_matches(',')).expect("an asset");
            let [source, destination, _] = asset;
            (destination, source.trim_start_matches("../../").to_owned())
        })
        .collect()
}

/// The sources that a pattern of an asset stands for: itself, or the files of its folder with its ending. What
/// `make package` makes is not there in a test, and stays a pattern.
fn matching(pattern: &str) -> Vec<String> {
    let Some((folder, ending)) = pattern.rsplit_once("/*") else {
        return vec![pattern.to_owned()];
    };
    if folder.starts_with("target/") {
        return vec![pattern.to_owned()];
    }
    let files = std::fs::read_dir(repository().join(folder)).expect("a folder");
    files
        .map(|file| file.expect("a file").file_name().into_string())
        .map(|name| name.expect("a name"))
        .filter(|name| name.ends_with(ending))
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

/// What `make install` and `make uninstall` would run, without running it.
fn make(target: &str) -> String {
    let output = Command::new("make")
        .current_dir(repository())
        .args(["--dry-run", "PREFIX=/usr", target])
        .output()
        .expect("make, as for building");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The folder of a file below `usr`, as both name it: Debian's folder of zsh is not that of zsh, a folder ends with a
/// stroke, and `lib` is `usr/lib`.
fn folder(destination: &str) -> String {
    let folder = match destination.ends_with('/') {
        true => destination.trim_end_matches('/'),
        false => destination
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder),
    };
    let folder = folder
        .trim_start_matches("/usr/")
        .trim_start_matches("usr/");
    folder.replace("vendor-completions", "site-functions")
}

/// What `make install` installs.
fn installed() -> BTreeSet<Placed> {
    let here = repository().canonicalize().expect("the repository");
    let here = format!("{}/", here.display());
    let mut placed = BTreeSet::new();
    for line in make("install").lines() {
        let line = line.replace('"', "").replace(&here, "");
        let Some(rest) = line.strip_prefix("install -D -m ") else {
            continue;
        };
        let words: Vec<&str> = rest.split_whitespace().skip(1).collect();
        match words.as_slice() {
            ["-t", to, sources @ ..] => {
                for source in sources.iter().flat_map(|source| matching(source)) {
                    placed.insert((folder(&format!("{to}/")), source));
                }
            }
            [source, to] => {
                placed.insert((folder(to), (*source).to_owned()));
            }
            other => panic!("install with {other:?}"),
        }
    }
    placed
}

#[test]
fn the_package_and_make_install_have_the_same_files() {
    let mut package = BTreeSet::new();
    for (to, pattern) in assets() {
        let sources = matching(&pattern);
        assert!(!sources.is_empty(), "{pattern}: no such file");
        for source in sources {
            let made = source.starts_with("target/");
            assert!(made || repository().join(&source).exists(), "{source}");
            package.insert((folder(&to), source));
        }
    }
    assert_eq!(package, installed());
    for (folder, file) in [
        ("bin", "target/release/headtime"),
        ("lib/udev/rules.d", "packaging/61-headtime.rules"),
        ("lib/systemd/system", "packaging/headtime@.socket"),
        ("share/doc/headtime/dashboard", "dashboard/grafana.json"),
        (
            "share/doc/headtime/dashboard",
            "dashboard/grafana-fleet.json",
        ),
        (
            "share/doc/headtime/dashboard/prometheus",
            "dashboard/prometheus/rules.yml",
        ),
        (
            "share/doc/headtime/examples",
            "packaging/examples/mirror.toml",
        ),
    ] {
        let placed = (folder.to_owned(), file.to_owned());
        assert!(package.contains(&placed), "{placed:?}");
    }
}

#[test]
fn make_uninstall_removes_what_make_install_installs() {
    let removed = make("uninstall").replace('"', "");
    for (folder, source) in installed() {
        let name = source.rsplit_once('/').map_or("", |(_, name)| name);
        // Completions of bash have the name of their command.
        let name = name.trim_end_matches(".bash");
        let named = removed.contains(&format!("/usr/{folder}/{name}"));
        let whole = folder.starts_with("share/doc/headtime") || folder == "share/man/man1";
        assert!(named || whole, "{folder}/{name}");
    }
    assert!(
        removed.contains("rm -rf /usr/share/doc/headtime"),
        "{removed}"
    );
    assert!(
        removed.contains("/usr/share/man/man1/headtime-*.1.gz"),
        "{removed}"
    );
}

#[test]
fn every_example_is_a_configuration() {
    let examples = matching("packaging/examples/*.toml");
    assert!(examples.len() >= 4, "{examples:?}");
    let profile = repository().join("drives/quantum-atlas-10k.toml");
    let profile = std::fs::read_to_string(profile).expect("a profile");
    for example in examples {
        let text = std::fs::read_to_string(repository().join(&example)).expect("an example");
        let scene = Scene::with(&[]);
        // The disks of the example are not here: emulated ones take their places, with their profiles.
        let mut lines = Vec::new();
        let mut images = 0;
        for line in text.lines() {
            if let Some((_, named)) = line.split_once("belief = \"") {
                let name = named.trim_end_matches('"');
                std::fs::write(scene.path(name), &profile).expect("written");
            }
            if line.contains("kind = \"device\"") {
                assert_eq!(
                    line.matches("/dev/headtime/by-serial/").count(),
                    2,
                    "{line}"
                );
                images += 1;
                lines.push(format!(
                    "back_end = {{ kind = \"emulated\", drive = \"quantum-atlas-10k\", image = \"{images}.img\" }}"
                ));
            } else {
                let here = scene.path("").display().to_string();
                lines.push(line.replace("{data}", &here).replace("{runtime}", &here));
            }
        }
        assert!(images > 0, "{example}: no disk");
        std::fs::write(scene.path("example.toml"), lines.join("\n")).expect("written");
        let said = scene.prints("serve --check example.toml");
        assert!(said.contains("uses    profile"), "{example}: {said}");
    }
}
