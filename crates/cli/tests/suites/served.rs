//! A running `headtime emulate`, and programs of others.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

/// The drive: one of 64 MiB, so that copies of all of it take a moment.
pub const DRIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suites/small.toml");

/// Its bytes.
pub const SIZE: usize = 64 << 20;

/// The server and the folder where its socket and its image are.
pub struct Served {
    process: Child,
    folder: TempDir,
    /// Its address on a TCP port of this machine.
    pub tcp: String,
}

impl Served {
    /// Waits until it listens.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let mut process = Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
            .current_dir(folder.path())
            .args(["emulate", "--drive", DRIVE, "--image", "image"])
            .args(["--socket", "socket", "--tcp", "127.0.0.1:0"])
            .args(["--time-scale", "0.01"])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("it runs");
        let said = process.stdout.as_mut().expect("it is piped");
        let mut lines = BufReader::new(said).lines();
        let mut line = || lines.next().and_then(Result::ok).unwrap_or_default();
        let (unix, tcp) = (line(), line());
        let served = Served {
            process,
            folder,
            tcp,
        };
        assert_eq!(unix, "nbd+unix:///?socket=socket", "{}", served.log());
        assert!(served.tcp.starts_with("nbd://127.0.0.1:"), "{}", served.tcp);
        served
    }

    pub fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket().display())
    }

    /// A file beside the socket.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).expect("a log")
    }

    /// A program in the folder, with the address of the server where `URI` or `TCP` stands.
    pub fn command(&self, words: &str) -> Command {
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().expect("a program"));
        command.current_dir(self.folder.path());
        for word in words {
            let word = word.replace("URI", &self.uri());
            command.arg(word.replace("TCP", &self.tcp));
        }
        command
    }

    pub fn output(&self, words: &str) -> Output {
        self.command(words).output().expect("it runs")
    }

    /// What a program prints that has to succeed.
    pub fn prints(&self, words: &str) -> String {
        succeeds(words, &self.output(words))
    }

    /// What `qemu-io` prints for its commands, which have to succeed.
    pub fn io(&self, commands: &[&str]) -> String {
        let mut program = self.command("qemu-io -f raw -t none");
        for command in commands {
            program.args(["-c", command]);
        }
        let output = program.arg(self.uri()).output().expect("it runs");
        let printed = succeeds(&commands.join("; "), &output);
        assert!(!printed.contains("ailed"), "{commands:?}: {printed}");
        printed
    }

    /// Ends the server as its user does: it says how late it was, and nothing went wrong.
    pub fn stop(mut self) {
        let id = self.process.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status();
        assert!(told.expect("kill runs").success());
        let status = self.process.wait().expect("it ends");
        let log = self.log();
        assert!(status.success(), "{status}: {log}");
        assert!(!log.contains("panicked"), "{log}");
        assert!(!self.socket().exists(), "the socket's file is gone");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended already if all went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a program printed, if it succeeded.
pub fn succeeds(words: &str, output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words}: {printed}{errors}");
    printed
}

/// Whether a program is here; if not, that is said and counted, and is an error in CI.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        return true;
    }
    skipped(&format!("no {program}"))
}

/// Says and counts that something is missing, which is an error in CI; always false.
pub fn skipped(why: &str) -> bool {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!is_ci, "CI needs what is missing here: {why}");
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let line = format!("skipped, number {count}: {why}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("standard error");
    false
}

/// Bytes that look like chance, the same for the same seed: pieces of them, holes between them.
pub fn write_pieces(path: &Path, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    let mut state = seed;
    let mut next = || {
        // Knuth's linear congruential generator (MMIX).
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    for _ in 0..40 {
        let from = next() as usize % (SIZE / 512) * 512;
        let length = (1 + next() as usize % 400) * 512;
        for byte in bytes.iter_mut().skip(from).take(length) {
            *byte = next() as u8;
        }
    }
    std::fs::write(path, &bytes).expect("written");
    bytes
}
