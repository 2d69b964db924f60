//! Servers that run for as long as a test needs them.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Output};

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use crate::begun::{SERVES, begin};

/// The drive: one of 64 MiB, so that copies of all of it take a moment.
const DRIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suites/small.toml");

/// Its bytes.
pub const SIZE: u64 = 64 << 20;

/// A folder for sockets, images and logs.
pub struct Folder(TempDir);

/// A server. Killed when it is dropped.
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The URI of a socket in it.
    pub fn uri(&self, socket: &str) -> String {
        format!("nbd+unix:///?socket={}", self.path(socket).display())
    }

    /// An emulated drive behind `socket`.
    pub fn emulate(&self, socket: &str) -> Server {
        let words = ["emulate", "--drive", DRIVE, "--image", "image"];
        let more = ["--time-scale", "0.01", "--socket", socket];
        self.headtime(socket, &[&words[..], &more].concat(), "nbd+unix:")
    }

    /// A service of one drive with one export; `more` is the rest of the configuration.
    pub fn serve(&self, name: &str, back_end: &str, more: &str) -> Server {
        self.configure(name, back_end, more);
        let file = format!("{name}.toml");
        self.headtime(name, &["serve", &file], SERVES)
    }

    /// The same over the server at `uri`, listening on the socket `name`.
    pub fn over(&self, name: &str, uri: &str, more: &str) -> Server {
        let back_end = format!("{{ kind = \"nbd\", uri = \"{uri}\"{more} }}");
        self.serve(name, &back_end, &format!("[[nbd]]\nunix = \"{name}\"\n"))
    }

    /// A service of one drive whose volume has this cache, listening on the socket `name`.
    pub fn cached(&self, name: &str, back_end: &str, cache: &str) -> Server {
        let doors = format!("[[nbd]]\nunix = \"{name}\"\n");
        self.configure_volume(name, back_end, &format!("cache = {cache}\n"), &doors);
        let file = format!("{name}.toml");
        self.headtime(name, &["serve", &file], SERVES)
    }

    pub fn configure(&self, name: &str, back_end: &str, more: &str) {
        self.configure_volume(name, back_end, "", more);
    }

    fn configure_volume(&self, name: &str, back_end: &str, volume: &str, more: &str) {
        let text = format!(
            "[[drive]]\nname = \"d\"\nback_end = {back_end}\n\
             [[drive.volume]]\nname = \"v\"\n{volume}\
             [[drive.export]]\nname = \"v\"\nvolume = \"v\"\n\
             {more}\n[control]\nsocket = \"{name}.control\"\n"
        );
        std::fs::write(self.path(&format!("{name}.toml")), text).expect("a configuration");
    }

    /// Our program, once it has said `ready`.
    pub fn headtime(&self, name: &str, words: &[&str], ready: &str) -> Server {
        let log = self.path(&format!("{name}.log"));
        let problems = File::create(&log).expect("a log");
        match begin(self.0.path(), words, problems, ready) {
            Ok(child) => Server { child, log },
            Err(child) => panic!("{}", Server { child, log }.log()),
        }
    }

    /// A server of others, once its socket can be connected to.
    pub fn other(&self, socket: &str, words: &str) -> Server {
        let log = self.path(&format!("{socket}.log"));
        let mut words = words.split_whitespace();
        let child = Command::new(words.next().expect("a program"))
            .args(words)
            .current_dir(self.0.path())
            .stderr(File::create(&log).expect("a log"))
            .spawn()
            .expect("it runs");
        let mut server = Server { child, log };
        while std::os::unix::net::UnixStream::connect(self.path(socket)).is_err() {
            let ended = server.child.try_wait().expect("it runs");
            assert!(ended.is_none(), "{}", server.log());
            std::thread::yield_now();
        }
        server
    }

    /// A program that has to end well; `words` may name sockets of the folder as `@name`.
    pub fn runs(&self, words: &str) -> String {
        let output = self.output(words);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}: {text}{problem}");
        text
    }

    pub fn output(&self, words: &str) -> Output {
        let mut words = words.split_whitespace();
        let mut program = Command::new(words.next().expect("a program"));
        program.current_dir(self.0.path());
        for word in words {
            match word.strip_prefix('@') {
                Some(socket) => program.arg(self.uri(socket)),
                None => program.arg(word),
            };
        }
        program.output().expect("it runs")
    }

    /// What our program says when it cannot serve this.
    pub fn refused(&self, back_end: &str) -> String {
        self.refuses_volume(back_end, "")
    }

    /// What it says when it cannot have this cache before it.
    pub fn refuses(&self, back_end: &str, cache: &str) -> String {
        self.refuses_volume(back_end, &format!("cache = {cache}\n"))
    }

    fn refuses_volume(&self, back_end: &str, volume: &str) -> String {
        let doors = "[[nbd]]\nunix = \"refused\"\n";
        self.configure_volume("refused", back_end, volume, doors);
        let output = Command::new(cargo_bin("headtime"))
            .args(["serve", "refused.toml"])
            .current_dir(self.0.path())
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

impl Server {
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// At once, as with kill -9.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("it ends");
    }

    /// Tells it to end.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    pub fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args([signal, &id]).status();
        assert!(told.expect("kill runs").success());
    }

    /// Its exit code.
    pub fn code(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    /// As its user ends it; nothing went wrong.
    pub fn stop(mut self) {
        self.terminate();
        let status = self.child.wait().expect("it ends");
        let log = self.log();
        assert!(status.success(), "{status}: {log}");
        assert!(!log.contains("panicked"), "{log}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a program is here; if not, that is said, and is an error in CI.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        return true;
    }
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!is_ci, "CI needs what is missing here: {program}");
    let line = format!("skipped: no {program}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("standard error");
    false
}
