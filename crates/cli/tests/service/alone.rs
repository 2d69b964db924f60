//! An image belongs to one service at a time.

use std::process::Stdio;

use crate::begun::{SERVES, begin};
use crate::behind::process::Folder;

/// The back ends that keep their contents in a file of this machine.
const BACK_ENDS: [(&str, &str); 4] = [
    (
        "direct",
        r#"{ kind = "file", path = "direct", size = "1 GiB" }"#,
    ),
    (
        "cached",
        r#"{ kind = "file", path = "cached", size = "1 GiB", direct = false }"#,
    ),
    ("existing", r#"{ kind = "file", path = "existing" }"#),
    (
        "emulated",
        r#"{ kind = "emulated", drive = "seagate-cheetah-9lp", image = "emulated" }"#,
    ),
];

/// What a program says that is to be refused. It fails if the program begins to serve instead.
fn refusal(folder: &Folder, words: &[&str], ready: &str) -> String {
    match begin(&folder.path(""), words, Stdio::piped(), ready) {
        Ok(mut child) => {
            child.kill().expect("it runs");
            child.wait().expect("it ran");
            panic!("{words:?} serves")
        }
        Err(child) => {
            let output = child.wait_with_output().expect("it ran");
            assert!(!output.status.success(), "{words:?}");
            String::from_utf8(output.stderr).expect("text")
        }
    }
}

fn is_in_use(name: &str, said: &str) {
    assert!(said.contains(name), "{said}");
    assert!(
        said.contains("another service or command uses it"),
        "{said}"
    );
}

/// Changes the configuration `name` of the folder.
fn edit(folder: &Folder, name: &str, change: impl FnOnce(String) -> String) {
    let path = folder.path(&format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).expect("a configuration");
    std::fs::write(path, change(text)).expect("a configuration");
}

#[test]
fn a_second_service_of_an_image_is_refused_until_the_first_has_ended() {
    let folder = &Folder::new();
    let existing = std::fs::File::create(folder.path("existing")).expect("a file");
    existing.set_len(1 << 30).expect("it is sparse");
    let first = BACK_ENDS.map(|(name, back_end)| folder.serve(name, back_end, ""));
    // Other sockets, and the same image. Each waits for the first to end.
    std::thread::scope(|threads| {
        for (name, back_end) in BACK_ENDS {
            threads.spawn(move || {
                let again = format!("{name}-again");
                folder.configure(&again, back_end, "");
                let words = ["serve", &format!("{again}.toml")];
                is_in_use(name, &refusal(folder, &words, SERVES));
            });
        }
        threads.spawn(|| {
            let words = "emulate --drive seagate-cheetah-9lp --image emulated --socket another";
            let words: Vec<&str> = words.split(' ').collect();
            is_in_use("emulated", &refusal(folder, &words, "nbd+unix:"));
        });
    });
    drop(first);
    for (name, back_end) in BACK_ENDS {
        drop(folder.serve(&format!("{name}-again"), back_end, ""));
    }
}

#[test]
fn two_drives_of_a_service_cannot_have_one_image() {
    let folder = Folder::new();
    let (name, back_end) = BACK_ENDS[0];
    folder.configure("twice", back_end, "");
    edit(&folder, "twice", |text| {
        let drive = &text[..text.find("[control]").expect("a socket")];
        drive.replace("\"d\"", "\"e\"").replace("\"v\"", "\"w\"") + &text
    });
    is_in_use(name, &refusal(&folder, &["serve", "twice.toml"], SERVES));
}

#[test]
fn a_service_whose_control_socket_is_taken_opens_no_drive() {
    let folder = Folder::new();
    let (_, back_end) = BACK_ENDS[0];
    let _first = folder.serve("first", back_end, "");
    folder.configure("second", &back_end.replace("\"direct\"", "\"other\""), "");
    edit(&folder, "second", |text| {
        text.replace("second.control", "first.control")
    });
    let said = refusal(&folder, &["serve", "second.toml"], SERVES);
    assert!(said.contains("first.control"), "{said}");
    assert!(!folder.path("other").exists(), "its image was made");
    assert!(folder.path("first.control").exists(), "it is the first's");
}

#[test]
fn a_start_that_fails_leaves_no_control_socket() {
    let folder = Folder::new();
    folder.configure("bad", r#"{ kind = "file", path = "nowhere" }"#, "");
    let said = refusal(&folder, &["serve", "bad.toml"], SERVES);
    assert!(said.contains("nowhere"), "{said}");
    assert!(!folder.path("bad.control").exists(), "the socket is left");
}
