//! The service as a whole: what it serves, tells and reads in free time.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

/// Bytes of the volume that is scanned. A choice: some hundred tracks.
const BYTES: usize = 16 << 20;

/// A service that ends with its test.
struct Service {
    child: Child,
    folder: tempfile::TempDir,
}

impl Service {
    /// Serves an emulated drive a hundred times as fast as it was, with these blocks on it.
    fn start(bytes: &[u8], more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("disk.img");
        std::fs::write(&image, bytes).expect("an image");
        let drive = std::fs::File::options().write(true).open(&image);
        let drive = drive.expect("the image");
        drive.set_len(1_052_098_560).expect("as long as the drive");
        std::fs::write(folder.path().join("c.toml"), config(more)).expect("a configuration");
        let mut child = Command::new(cargo_bin("headtime"))
            .arg("serve")
            .arg(folder.path().join("c.toml"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a service");
        let mut said = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        while !line.contains("control socket") {
            line.clear();
            let count = said.read_line(&mut line).expect("what it says");
            assert!(count > 0, "it ended before it served");
        }
        Service { child, folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, words: &[&str]) -> (bool, String) {
        let socket = self.path("control.sock");
        let (first, rest) = words.split_first().expect("a command");
        let output = Command::new(cargo_bin("headtime"))
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

    fn json(&self, words: &[&str]) -> Value {
        let (is_good, text) = self.run(words);
        assert!(is_good, "{words:?}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Tells it to end, and waits until it has.
    fn end(mut self) {
        let (is_good, text) = self.run(&["ctl", "drain"]);
        assert!(is_good, "{text}");
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}");
        assert!(!self.path("nbd.sock").exists(), "its socket is gone");
        assert!(!self.path("control.sock").exists(), "and this one");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config(more: &str) -> String {
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
fn contents() -> Vec<u8> {
    let words = (0..BYTES as u64 / 8).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).collect()
}

/// What a scan's program was given, put together again.
fn assembled(path: &Path) -> Vec<u8> {
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

#[test]
fn a_scan_hands_over_every_block_once_and_its_checksum_tells_them_apart() {
    let bytes = contents();
    let service = Service::start(&bytes, "");
    let copy = service.path("copy");
    let script = format!("cat > {}", copy.display());
    let told = service.json(&["scan", "--json", "small", "--command", "sh", "-c", &script]);
    assert_eq!(told["state"], "finished");
    assert_eq!(told["outcome"], "the program ended with exit status: 0");
    assert!(assembled(&copy) == bytes, "what was read is what is there");
    let first = service.json(&["scan", "--json", "small"]);
    assert_eq!(first["done_bytes"], BYTES);
    let again = service.json(&["scan", "--json", "small"]);
    assert_eq!(first["outcome"], again["outcome"]);
    service.end();

    let mut other = bytes;
    other[BYTES / 2] ^= 1;
    let service = Service::start(&other, "");
    let changed = service.json(&["scan", "--json", "small"]);
    assert_ne!(first["outcome"], changed["outcome"], "one bit");
    service.end();
}

#[test]
fn a_service_comes_to_rest_while_it_is_scanned() {
    let service = Service::start(&[], "");
    // A gigabyte: it takes seconds even a hundred times as fast as the drive was.
    let words = [
        "scan",
        "--detach",
        "all",
        "--command",
        "sh",
        "-c",
        "cat >/dev/null",
    ];
    let (is_good, text) = service.run(&words);
    assert!(is_good, "{text}");
    let status = service.json(&["ctl", "--json", "tasks"]);
    assert_eq!(status[0]["tasks"][0]["state"], "active", "{status}");
    service.end();
}

#[test]
fn what_cannot_be_scanned_or_served_is_refused_with_what_was_expected() {
    let service = Service::start(&[], "");
    let (is_good, text) = service.run(&["scan", "large"]);
    assert!(!is_good);
    assert!(
        text.contains("no volume large: expected one of small, all"),
        "{text}"
    );
    let (is_good, text) = service.run(&["ctl", "suspend", "7"]);
    assert!(!is_good);
    assert!(text.contains("no task 7 is under way"), "{text}");
    service.end();
}

#[test]
fn a_reload_shows_new_exports_and_says_what_needs_a_restart() {
    let service = Service::start(&[], "");
    let export = "[[drive.export]]\nname = \"idle\"\nvolume = \"small\"\nclass = \"background\"\n";
    std::fs::write(service.path("c.toml"), config(export)).expect("a configuration");
    let changes = service.json(&["ctl", "--json", "reload"]);
    assert_eq!(
        changes["applied"].as_array().map(Vec::len),
        Some(1),
        "{changes}"
    );
    assert_eq!(changes["after_restart"].as_array().map(Vec::len), Some(0));
    let slower = config(export).replace("time_scale = 0.01", "time_scale = 0.02");
    std::fs::write(service.path("c.toml"), slower).expect("a configuration");
    let changes = service.json(&["ctl", "--json", "reload"]);
    assert_eq!(
        changes["after_restart"].as_array().map(Vec::len),
        Some(1),
        "{changes}"
    );
    std::fs::write(service.path("c.toml"), "nonsense").expect("a configuration");
    let (is_good, text) = service.run(&["ctl", "reload"]);
    assert!(!is_good, "{text}");
    let status = service.json(&["ctl", "--json", "status"]);
    assert_eq!(status["reloads_total"], 2);
    assert_eq!(status["drives"][0]["back_end"], "emulated");
    service.end();
}
