//! `headtime adopt` on exports of real services: what is no disk, and a disk that goes away.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::cargo_bin;

use crate::begun::{SERVES, begin};

/// Begins `headtime adopt` with these words in a folder.
fn adopt(folder: &Path, words: &[&str]) -> Child {
    Command::new(cargo_bin("headtime"))
        .arg("adopt")
        .args(words)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
}

/// Its exit code, and what it says on standard error.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let mut said = String::new();
    let mut errors = child.stderr.take().expect("it is piped");
    errors.read_to_string(&mut said).expect("text");
    (child.wait().expect("it ends").code(), said)
}

/// The answer to the order to follow what was found about a drive.
fn follow(socket: &Path, drive: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("it serves");
    let line = format!("{{\"version\":1,\"ask\":\"follow\",\"drive\":\"{drive}\"}}\n");
    stream.write_all(line.as_bytes()).expect("it listens");
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .expect("an answer");
    answer
}

/// Memory behind NBD answers in microseconds: flash, a RAM disk and a cache of the host look alike.
#[test]
fn memory_behind_a_server_is_no_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = "[[drive]]\nname = \"m\"\nback_end = { kind = \"memory\", size = \"64 MiB\" }\n\
                  [[drive.volume]]\nname = \"m\"\n[[drive.export]]\nname = \"m\"\nvolume = \"m\"\n\
                  [[nbd]]\nunix = \"m.sock\"\n[control]\nsocket = \"m.control\"\n";
    std::fs::write(folder.path().join("m.toml"), config).expect("room");
    let words = ["serve", "m.toml"];
    let mut service = begin(folder.path(), &words, Stdio::null(), SERVES).expect("it serves");
    let uri = format!("nbd+unix:///m?socket={}/m.sock", folder.path().display());
    let adopting = adopt(folder.path(), &[&uri, "-o", "new.toml"]);
    let (code, said) = ended(adopting);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("memory, flash, or a cache"), "{said}");
    for name in ["new.toml", "new-serve.toml", "new.adopting"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    service.kill().expect("it runs");
    service.wait().expect("it ends");
}

/// The server is killed as soon as the path is open: the command ends with what happened.
#[test]
fn a_disk_that_goes_away_is_told_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = [
        "emulate",
        "--drive",
        "quantum-atlas-10k",
        "--image",
        "a.img",
        "--socket",
        "a.sock",
    ];
    let mut drive = begin(folder.path(), &words, Stdio::null(), "nbd+unix").expect("it serves");
    let uri = format!("nbd+unix:///?socket={}/a.sock", folder.path().display());
    let mut adopting = adopt(folder.path(), &[&uri, "-o", "new.toml"]);
    let mut lines = BufReader::new(adopting.stdout.take().expect("it is piped")).lines();
    let first = lines.next().expect("a line").expect("text");
    assert!(first.contains("blocks of 512 bytes"), "{first}");
    drive.kill().expect("it runs");
    drive.wait().expect("it ends");
    let (code, said) = ended(adopting);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the path is gone"), "{said}");
    for name in ["new.toml", "new-serve.toml", "new.adopting"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
}

/// Orders to follow what was not found are refused, and nothing has changed by the status afterwards.
fn assert_nothing_is_followed(answers: &[(&str, String)], after: std::process::Output) {
    for ((drive, answer), why) in answers.iter().zip(["no period", "was not profiled"]) {
        assert!(
            answer.contains("\"error\"") && answer.contains(why),
            "{drive}: {answer}"
        );
    }
    let said_after = String::from_utf8(after.stdout).expect("text");
    let plain = "mode         plain: there is no belief of the drive";
    assert_eq!(
        said_after.matches(plain).count(),
        2,
        "nothing changed: {said_after}"
    );
}

/// A disk without a belief, one whose belief is the emulated drive's truth, and one that may not use it.
const THREE_DRIVES: &str = "[[drive]]\nname = \"unknown\"\n\
                  back_end = { kind = \"file\", path = \"disk.img\", direct = false }\n\
                  [[drive.volume]]\nname = \"u\"\n[[drive.export]]\nname = \"u\"\nvolume = \"u\"\n\
                  [[drive]]\nname = \"known\"\n\
                  back_end = { kind = \"emulated\", drive = \"hp-c2247a\", image = \"k.img\" }\n\
                  [[drive.volume]]\nname = \"k\"\n[[drive.export]]\nname = \"k\"\nvolume = \"k\"\n\
                  [[drive]]\nname = \"blind\"\nbelief = \"nothing\"\n\
                  back_end = { kind = \"emulated\", drive = \"hp-c2247a\", image = \"b.img\" }\n\
                  [[drive.volume]]\nname = \"b\"\n[[drive.export]]\nname = \"b\"\nvolume = \"b\"\n\
                  [control]\nsocket = \"s.control\"\n";

/// A disk without a belief is served plainly, and log and status name the command that learns it. A belief
/// is learned where the platter is, then followed.
#[test]
fn a_service_says_how_its_beliefs_are_used_and_offers_to_learn() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("disk.img"), vec![0; 1 << 20]).expect("room");
    std::fs::write(at("s.toml"), THREE_DRIVES).expect("room");
    let log = std::fs::File::create(at("log")).expect("a file");
    let words = ["serve", "s.toml"];
    let mut service = begin(folder.path(), &words, log, SERVES).expect("it serves");
    let ctl = |words: &str| {
        Command::new(cargo_bin("headtime"))
            .args(["ctl", "--socket", "s.control"])
            .args(words.split_whitespace())
            .current_dir(folder.path())
            .output()
            .expect("it runs")
    };
    let status = ctl("status");
    let refused = ctl("profile known");
    let begun = ctl("profile blind --minutes 1 --detach --json");
    let probed = ctl("status");
    let ended = ctl("profile blind --stop --json");
    let not_followed = [
        ("blind", follow(&at("s.control"), "blind")),
        ("unknown", follow(&at("s.control"), "unknown")),
    ];
    let after = ctl("status");
    service.kill().expect("it runs");
    service.wait().expect("it ends");
    let said = String::from_utf8(status.stdout).expect("text");
    let command = format!("`headtime adopt {}`", at("disk.img").display());
    let plain =
        format!("mode         plain: there is no belief of the drive: {command} learns one");
    assert!(said.contains(&plain), "{said}");
    assert!(
        said.contains("mode         plain: there is no belief of the drive\n"),
        "an emulated drive's truth is no belief if the configuration says so: {said}"
    );
    let problem = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{problem}");
    assert!(
        problem.contains("drive known has a belief that it follows"),
        "{problem}"
    );
    assert!(!at("known.toml").exists(), "it was refused");
    let report = |output: &std::process::Output| -> serde_json::Value {
        serde_json::from_slice(&output.stdout).expect("a report")
    };
    assert_eq!(report(&begun)["active"], true);
    let said_then = String::from_utf8(probed.stdout).expect("text");
    let learning = "mode         learning: profiling behind the load: now ";
    assert!(said_then.contains(learning), "{said_then}");
    assert_eq!(report(&ended)["drive"], "blind");
    assert_eq!(report(&ended)["profile"], serde_json::Value::Null);
    assert!(
        said.contains("mode         learning: ") && said.contains("until 48 of 64 agree with it"),
        "{said}"
    );
    assert_nothing_is_followed(&not_followed, after);
    let log = std::fs::read_to_string(at("log")).expect("a log");
    assert!(
        log.contains("served plainly") && log.contains(&command),
        "{log}"
    );
}
