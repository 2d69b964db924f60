//! An image belongs to one service at a time.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::begun::{SERVES, begin};

const SERVED: &str = r#"
[[drive]]
name = "one"
policy = "c-look"
belief = "nothing"
[drive.back_end]
BACK_END
[[drive.volume]]
name = "all"
offset = 0
[[drive.export]]
name = "all"
volume = "all"
class = "foreground"
[[nbd]]
unix = "NAME-socket"
[control]
socket = "NAME-control"
"#;

/// The back ends that keep their contents in a file of this machine.
const BACK_ENDS: [(&str, &str); 4] = [
    (
        "direct",
        "kind = \"file\"\npath = \"direct\"\nsize = \"1 GiB\"",
    ),
    (
        "cached",
        "kind = \"file\"\npath = \"cached\"\nsize = \"1 GiB\"\ndirect = false",
    ),
    ("existing", "kind = \"file\"\npath = \"existing\""),
    (
        "emulated",
        "kind = \"emulated\"\ndrive = \"seagate-cheetah-9lp\"\nimage = \"emulated\"",
    ),
];

/// A running program. Killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The configuration of a service named `name` with the back end of this text.
fn configure(folder: &Path, name: &str, back_end: &str) -> String {
    let text = SERVED.replace("BACK_END", back_end).replace("NAME", name);
    let path = format!("{name}.toml");
    std::fs::write(folder.join(&path), text).expect("a configuration");
    path
}

fn begun(folder: &Path, config: &str) -> Result<Running, Child> {
    begin(folder, &["serve", config], Stdio::null(), SERVES).map(Running)
}

/// Begins a program whose standard error is kept.
fn asked(folder: &Path, words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_headtime"))
        .args(words)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
}

/// What a program says that ends without success.
fn refusal(program: Child) -> String {
    let output = program.wait_with_output().expect("it ran");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{said}");
    said
}

#[test]
fn a_second_service_of_an_image_is_refused_until_the_first_has_ended() {
    let folder: TempDir = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let existing = std::fs::File::create(folder.join("existing")).expect("a file");
    existing.set_len(1 << 30).expect("it is sparse");
    let mut first = Vec::new();
    let mut second = Vec::new();
    for (name, back_end) in BACK_ENDS {
        let config = configure(folder, name, back_end);
        first.push(begun(folder, &config).expect("nobody uses the image"));
        // Other sockets, and the same image.
        let config = configure(folder, &format!("{name}-again"), back_end);
        second.push((name, asked(folder, &["serve", &config])));
    }
    let emulated = asked(
        folder,
        &[
            "emulate",
            "--drive",
            "seagate-cheetah-9lp",
            "--image",
            "emulated",
            "--socket",
            "another",
        ],
    );
    second.push(("emulated", emulated));
    for (name, service) in second {
        let said = refusal(service);
        assert!(said.contains(name), "{said}");
        assert!(
            said.contains("another service or command uses it"),
            "{said}"
        );
    }
    drop(first);
    for (name, _) in BACK_ENDS {
        let again = begun(folder, &format!("{name}-again.toml"));
        assert!(
            again.is_ok(),
            "{name} is refused after the first was killed"
        );
    }
}

#[test]
fn two_drives_of_a_service_cannot_have_one_image() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (_, back_end) = BACK_ENDS[0];
    let config = configure(folder, "twice", back_end);
    let text = std::fs::read_to_string(folder.join(&config)).expect("a configuration");
    let drive = &text[..text.find("[[nbd]]").expect("a door")];
    let other = drive
        .replace("\"one\"", "\"two\"")
        .replace("\"all\"", "\"other\"");
    std::fs::write(folder.join(&config), other + &text).expect("a configuration");
    let said = refusal(asked(folder, &["serve", &config]));
    assert!(said.contains("uses it"), "{said}");
}
