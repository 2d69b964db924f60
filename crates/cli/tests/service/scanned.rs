//! A service that a test begins, asks, kills and begins again.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use tempfile::TempDir;

use crate::begun::{SERVES, begin};

/// Bytes of the volume that is scanned. A choice: some hundred tracks.
pub const BYTES: usize = 16 << 20;

/// A service that ends with its test.
pub struct Service {
    child: Child,
    folder: Option<TempDir>,
}

impl Service {
    /// Serves an emulated drive a hundred times as fast as it was, with these blocks on it.
    pub fn start(bytes: &[u8], more: &str) -> Self {
        Service::start_with(bytes, &config(more))
    }

    pub fn start_with(bytes: &[u8], config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("disk.img");
        std::fs::write(&image, bytes).expect("an image");
        let drive = std::fs::File::options().write(true).open(&image);
        let drive = drive.expect("the image");
        drive.set_len(1_052_098_560).expect("as long as the drive");
        Service::start_in(folder, config)
    }

    /// Serves what an earlier one left in the folder.
    pub fn start_in(folder: TempDir, config: &str) -> Self {
        std::fs::write(folder.path().join("c.toml"), config).expect("a configuration");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let child = begin(folder.path(), &["serve", "c.toml"], log, SERVES);
        let child = child.expect("it serves");
        let folder = Some(folder);
        Service { child, folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().expect("a folder").path().join(name)
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).expect("a log")
    }

    pub fn run(&self, words: &[&str]) -> (bool, String) {
        let socket = self.path("control.sock");
        let (first, rest) = words.split_first().expect("a command");
        let output = Command::new(cargo_bin("headtime"))
            .current_dir(self.path(""))
            .arg(first)
            .arg("--socket")
            .arg(socket)
            .args(rest)
            .output()
            .expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), text + &problem)
    }

    pub fn json(&self, words: &[&str]) -> Value {
        let (is_good, text) = self.run(words);
        assert!(is_good, "{words:?}: {text}");
        crate::judged::judge_command(words.iter().copied(), &text);
        serde_json::from_str(&text).expect("JSON")
    }

    pub fn refuses(&self, words: &[&str]) -> String {
        let (is_good, text) = self.run(words);
        assert!(!is_good, "{words:?}: {text}");
        text
    }

    /// Tells it to end, and waits until it has.
    pub fn end(mut self) -> TempDir {
        let (is_good, text) = self.run(&["ctl", "drain"]);
        assert!(is_good, "{text}");
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}");
        assert!(!self.path("nbd.sock").exists(), "its socket is gone");
        assert!(!self.path("control.sock").exists(), "and this one");
        self.folder.take().expect("a folder")
    }

    /// Waits until it has ended, because another client told it to.
    pub fn has_ended(mut self) {
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}");
    }

    /// SIGKILL.
    pub fn kill(mut self) -> TempDir {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ran");
        self.folder.take().expect("a folder")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn config(more: &str) -> String {
    format!(
        r#"
[[drive]]
name = "rz26"
policy = "sptf-sw60"
belief = "emulated"
[drive.back_end]
kind = "emulated"
drive = "dec-rz26"
image = "disk.img"
time_scale = 0.01
look_ahead = false
write_cache = false
[[drive.volume]]
name = "small"
offset = 0
size = {BYTES}
[[drive.volume]]
name = "all"
offset = {BYTES}
[[drive.export]]
name = "small"
volume = "small"
class = "foreground"
{more}
[[nbd]]
unix = "nbd.sock"
[control]
socket = "control.sock"
"#
    )
}

/// Blocks that are all different.
pub fn contents() -> Vec<u8> {
    let words = (0..BYTES as u64 / 8).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).collect()
}

/// What a scan's program was given, put together again.
pub fn assembled(path: &Path) -> Vec<u8> {
    let mut all = vec![0; BYTES];
    let mut had = 0;
    let file = std::fs::File::open(path).expect("what the program wrote");
    let mut given = BufReader::new(file);
    let mut line = String::new();
    while given.read_line(&mut line).expect("a line") > 0 {
        let (offset, length) = line.trim_end().split_once(' ').expect("two numbers");
        let offset: usize = offset.parse().expect("an offset");
        let length: usize = length.parse().expect("a length");
        let place = &mut all[offset..offset + length];
        given.read_exact(place).expect("the bytes");
        had += length;
        line.clear();
    }
    assert_eq!(had, BYTES, "each byte once");
    all
}
