//! A service that promises something to streams, and its volume as a file.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use headtime_client::{Client, Stream, StreamUpdate, Terms};
use tempfile::TempDir;

use crate::begun::{SERVES, begin};

/// Bytes of the volume: what `mkfs.ext4` makes a journal on.
pub const BYTES: u64 = 256 << 20;

/// A rate that the drive keeps easily. It is a hundred times as fast as it was, and does 200 MB/s.
pub const RATE: u64 = 10_000_000;

/// A service that takes longer hangs. Nothing is measured by it.
pub const HANGS: Duration = Duration::from_secs(120);

/// What a drive needs to promise something, besides the table.
pub const PROMISING: &str = "policy = \"sptf-sw60\"\nbelief = \"emulated\"";

/// A service that ends with its test.
pub struct Service {
    child: Child,
    folder: TempDir,
}

impl Service {
    /// One with a drive that promises; `None` if there is no FUSE here.
    pub fn start() -> Option<Service> {
        Service::start_with(
            PROMISING,
            "[drive.streams]\nlatency_ms = 0.2\nlongest_round_s = 0.05\n",
        )
    }

    /// The same with these lines of its drive and its tables.
    pub fn start_with(drive: &str, tables: &str) -> Option<Service> {
        Service::start_on("dec-rz26", drive, tables)
    }

    /// The same on another model.
    pub fn start_on(model: &str, drive: &str, tables: &str) -> Option<Service> {
        let me = std::fs::metadata("/proc/self").expect("this process");
        if me.uid() != 0 || File::open("/dev/fuse").is_err() {
            return skip("no root or no /dev/fuse");
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("volumes")).expect("a folder");
        let config = config(model, drive, tables);
        std::fs::write(folder.path().join("c.toml"), config).expect("a configuration");
        let child = begin(
            folder.path(),
            &["serve", "c.toml"],
            Stdio::inherit(),
            SERVES,
        );
        let child = child.expect("it serves");
        Some(Service { child, folder })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.path("control.sock")).expect("it listens")
    }

    /// The volume.
    pub fn volume(&self) -> File {
        let mut options = OpenOptions::new();
        let opened = options
            .read(true)
            .write(true)
            .open(self.path("volumes/disk"));
        opened.expect("the volume's file")
    }

    /// What the program prints, and whether it ended well.
    pub fn headtime(&self, words: &[&str]) -> (bool, String) {
        let output = self.command(words).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), text + &problem)
    }

    /// The program with these words, and the socket.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("headtime"));
        command
            .current_dir(self.folder.path())
            .args(words)
            .arg("--socket")
            .arg(self.path("control.sock"));
        command
    }

    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        let (is_good, text) = self.headtime(words);
        assert!(is_good, "{words:?}: {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The report of a stream, whose guarantee a busy machine may not keep. The exit code agrees with the report.
    pub fn streamed(&self, words: &[&str]) -> serde_json::Value {
        let output = self.command(words).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let said: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let lost = ["late_batches", "failed_writes", "lapsed"].map(|key| said[key].as_u64());
        let is_kept = lost == [Some(0); 3];
        assert_eq!(said["kept"], is_kept, "{said}");
        let code = if is_kept { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        said
    }

    /// Waits until so many streams are left.
    pub fn wait_for_streams(&self, left: usize) {
        let client = self.client();
        while client.streams().expect("a list").len() != left {
            std::thread::yield_now();
        }
    }

    /// A loop device over the volume with ext4 on it; `None` if there can be none here.
    pub fn mounted(&self) -> Option<Mounted> {
        if !Path::new("/dev/loop-control").exists() {
            return skip("no loop devices");
        }
        let volume = self.path("volumes/disk");
        let volume = volume.to_str().expect("UTF-8");
        let device = run("losetup", &["--find", "--show", "--direct-io=on", volume]);
        let device = device.trim().to_owned();
        let at = self.path("mounted");
        std::fs::create_dir(&at).expect("a folder");
        let mounted = Mounted { device, at };
        // Nothing is written later: what tests find is what they did.
        let now = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-E", now, &mounted.device]);
        run(
            "mount",
            &[&mounted.device, mounted.at.to_str().expect("UTF-8")],
        );
        Some(mounted)
    }

    /// Tells it to end; it has to end well.
    pub fn end(mut self) {
        let (is_good, text) = self.headtime(&["ctl", "drain"]);
        assert!(is_good, "{text}");
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path("volumes"))
            .output();
    }
}

/// A mounted file system on a loop device.
pub struct Mounted {
    device: String,
    pub at: PathBuf,
}

impl Mounted {
    /// Takes it off, and checks it.
    pub fn end(self) {
        run("umount", &[self.at.to_str().expect("UTF-8")]);
        run("fsck.ext4", &["-f", "-n", &self.device]);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).output();
        let _ = Command::new("losetup")
            .args(["--detach", &self.device])
            .output();
    }
}

fn config(model: &str, drive: &str, tables: &str) -> String {
    format!(
        r#"
[[drive]]
name = "d"
{drive}
[drive.back_end]
kind = "emulated"
drive = "{model}"
image = "disk.img"
time_scale = 0.01
[[drive.volume]]
name = "disk"
offset = "1 MiB"
size = {BYTES}
[[drive.export]]
name = "disk"
volume = "disk"
class = "foreground"
{tables}
[fuse]
mount = "volumes"
[control]
socket = "control.sock"
"#
    )
}

/// Waits until a stream is told that, and answers what it was told before.
pub fn wait_for(stream: &Stream, wanted: impl Fn(&StreamUpdate) -> bool) -> Vec<StreamUpdate> {
    let mut before = Vec::new();
    loop {
        let event = stream.wait_event(HANGS);
        let event = event.unwrap_or_else(|| panic!("nothing more than {before:?}"));
        if wanted(&event) {
            return before;
        }
        before.push(event);
    }
}

pub fn wait_until_served(stream: &Stream) {
    wait_for(stream, |event| *event == StreamUpdate::Serving);
}

/// Terms that the drive keeps easily.
pub fn terms() -> Terms {
    Terms {
        name: "test".to_owned(),
        ..Terms::play(RATE, 128 << 10)
    }
}

/// Bytes that tell where they belong and which version they are.
pub fn contents(offset: u64, length: usize, version: u64) -> Vec<u8> {
    let words = (offset / 8..).take(length / 8);
    let mixed = words.map(|word| (word << 8 | version).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed.flat_map(u64::to_le_bytes).collect()
}

/// Whether these bytes of a file are of that version.
pub fn is_at(file: &File, offset: u64, length: usize, version: u64) -> bool {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset).expect("bytes");
    bytes == contents(offset, length, version)
}

/// What a program prints.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    printed
}

/// Says that a test is skipped, and which one in number; in CI that is an error.
pub fn skip<T>(why: &str) -> Option<T> {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!is_ci, "CI needs what is missing here: {why}");
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let line = format!("skipped, number {count}: {why}\n");
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("standard error");
    None
}
