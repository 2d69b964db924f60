//! An image belongs to one service at a time.

use std::path::Path;
use std::process::{Child, Stdio};

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

/// What a service says that is to be refused. It fails if the service begins instead.
fn refusal(folder: &Path, words: &[&str], ready: &str) -> String {
    match begin(folder, words, Stdio::piped(), ready).map(Running) {
        Ok(_served) => panic!("{words:?} begins beside the first service"),
        Err(child) => {
            let output = child.wait_with_output().expect("it ran");
            assert!(!output.status.success(), "{words:?}");
            String::from_utf8(output.stderr).expect("text")
        }
    }
}

#[test]
fn a_second_service_of_an_image_is_refused_until_the_first_has_ended() {
    let folder: TempDir = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let existing = std::fs::File::create(folder.join("existing")).expect("a file");
    existing.set_len(1 << 30).expect("it is sparse");
    let first = BACK_ENDS.map(|(name, back_end)| {
        let config = configure(folder, name, back_end);
        begun(folder, &config).expect("nobody uses the image")
    });
    // Other sockets, and the same image. Each waits for the first to end.
    std::thread::scope(|threads| {
        for (name, back_end) in BACK_ENDS {
            threads.spawn(move || {
                let config = configure(folder, &format!("{name}-again"), back_end);
                is_in_use(name, &refusal(folder, &["serve", &config], SERVES));
            });
        }
        threads.spawn(|| {
            let words = "emulate --drive seagate-cheetah-9lp --image emulated --socket another";
            let words: Vec<&str> = words.split(' ').collect();
            is_in_use("emulated", &refusal(folder, &words, "nbd+unix:"));
        });
    });
    drop(first);
    for (name, _) in BACK_ENDS {
        let again = begun(folder, &format!("{name}-again.toml"));
        assert!(
            again.is_ok(),
            "{name} is refused after the first was killed"
        );
    }
}

fn is_in_use(name: &str, said: &str) {
    assert!(said.contains(name), "{said}");
    assert!(
        said.contains("another service or command uses it"),
        "{said}"
    );
}

#[test]
fn two_drives_of_a_service_cannot_have_one_image() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (name, back_end) = BACK_ENDS[0];
    let config = configure(folder, "twice", back_end);
    let text = std::fs::read_to_string(folder.join(&config)).expect("a configuration");
    let drive = &text[..text.find("[[nbd]]").expect("a door")];
    let other = drive
        .replace("\"one\"", "\"two\"")
        .replace("\"all\"", "\"other\"");
    std::fs::write(folder.join(&config), other + &text).expect("a configuration");
    is_in_use(name, &refusal(folder, &["serve", &config], SERVES));
}

#[test]
fn a_service_whose_control_socket_is_taken_touches_no_drive_and_takes_no_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (_, back_end) = BACK_ENDS[0];
    let config = configure(folder, "first", back_end);
    let _first = begun(folder, &config).expect("nobody uses the image");
    let other = back_end.replace("\"direct\"", "\"other\"");
    let config = configure(folder, "second", &other);
    let text = std::fs::read_to_string(folder.join(&config)).expect("a configuration");
    let text = text.replace("second-control", "first-control");
    std::fs::write(folder.join(&config), text).expect("a configuration");
    let said = refusal(folder, &["serve", &config], SERVES);
    assert!(said.contains("first-control"), "{said}");
    assert!(!folder.join("other").exists(), "its image was made");
    assert!(folder.join("first-control").exists(), "it is the first's");
}

#[test]
fn a_start_that_fails_leaves_no_control_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let config = configure(folder, "bad", "kind = \"file\"\npath = \"nowhere\"");
    let said = refusal(folder, &["serve", &config], SERVES);
    assert!(said.contains("nowhere"), "{said}");
    assert!(!folder.join("bad-control").exists(), "the socket is left");
}
