//! Two writers of different bytes of one block, through every pair of doors of `headtime serve`: every
//! write that was acknowledged is read back.
//!
//! ```text
//!   512 bytes   | A | B | A | B | ... | A | B |     16 slots of 32 bytes
//!               each writer fills its slots, reads all of them, and counts its own that are not there
//! ```
//!
//! ublk is no door of this test: the kernel writes whole blocks to its devices, and their bytes have one
//! writer. Where there is no root or no `/dev/fuse`, only the pair of NBD clients is tested, which is
//! said; in CI (`CI=true`) that is an error.
//!
//! `TWO_WRITERS=1000000` for so many writes of each writer (200 otherwise); each pair prints how many
//! were lost.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use headtime_client::{Client, FilePiece, Places, Terms};
use tempfile::TempDir;

use crate::begun::{SERVES, begin};

/// Bytes of one writer in a row.
const SLOT: u64 = 32;

/// Bytes that two writers share: one block, or a part of a larger one.
const SHARED: u64 = 512;

/// A service that takes longer hangs. Nothing is measured by it.
const HANGS: Duration = Duration::from_secs(60);

/// How a writer gets to the volume, and by which of the exports that are all of it. Requests of `cold` are of the
/// background class.
#[derive(Clone, Copy, Debug)]
enum Door {
    Nbd(&'static str),
    Fuse(&'static str),
}

const PAIRS: [(&str, [Door; 2]); 6] = [
    ("NBD and NBD", [Door::Nbd("one"), Door::Nbd("one")]),
    ("NBD and FUSE", [Door::Nbd("one"), Door::Fuse("one")]),
    ("one FUSE file", [Door::Fuse("one"), Door::Fuse("one")]),
    ("two FUSE files", [Door::Fuse("one"), Door::Fuse("two")]),
    (
        "NBD and FUSE in gaps",
        [Door::Nbd("one"), Door::Fuse("cold")],
    ),
    (
        "FUSE and NBD in gaps",
        [Door::Fuse("one"), Door::Nbd("cold")],
    ),
];

/// Memory, in blocks of 512 bytes.
const MEMORY: &str = "back_end = { kind = \"memory\", size = \"16 MiB\" }\n";

/// A file past the page cache, in blocks of 4096 bytes.
const IMAGE: &str = "back_end = { kind = \"file\", path = \"image\", size = \"16 MiB\" }\n";

/// A drive that promises something to streams and has free blocks for scans.
const DRIVE: &str = "policy = \"sptf-sw60\"\nbelief = \"emulated\"\n\
                     back_end = { kind = \"emulated\", drive = \"dec-rz26\", image = \"image\", \
                     time_scale = 0.01, look_ahead = false, write_cache = false }\n\
                     [drive.streams]\nlatency_ms = 0.2\nlongest_round_s = 0.05\n";

/// The same without streams, for a volume with a cache.
const PLAIN_DRIVE: &str = "policy = \"sptf-sw60\"\nbelief = \"emulated\"\n\
                     back_end = { kind = \"emulated\", drive = \"dec-rz26\", image = \"image\", \
                     time_scale = 0.01 }\n";

fn writes() -> u64 {
    std::env::var("TWO_WRITERS").map_or(200, |count| count.parse().expect("a number of writes"))
}

/// A service that ends with its test.
struct Service {
    child: Child,
    folder: TempDir,
}

impl Service {
    /// One volume with this cache, as three exports.
    fn start(drive: &str, cache: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("volumes")).expect("a folder");
        let fuse = if has_fuse() {
            "[fuse]\nmount = \"volumes\"\n"
        } else {
            ""
        };
        let config = format!(
            "[[drive]]\nname = \"d\"\nbackground_grace_ms = 0\n{drive}\
             [[drive.volume]]\nname = \"v\"\nsize = \"16 MiB\"\n{cache}\
             [[drive.export]]\nname = \"one\"\nvolume = \"v\"\n\
             [[drive.export]]\nname = \"two\"\nvolume = \"v\"\n\
             [[drive.export]]\nname = \"cold\"\nvolume = \"v\"\nclass = \"background\"\n\
             [[nbd]]\nunix = \"nbd.sock\"\n{fuse}[control]\nsocket = \"control.sock\"\n"
        );
        std::fs::write(folder.path().join("c.toml"), config).expect("a configuration");
        let child = begin(folder.path(), &["serve", "c.toml"], Stdio::null(), SERVES);
        let child = child.expect("it serves");
        Service { child, folder }
    }

    fn end(mut self) {
        let drained = Command::new(cargo_bin("headtime"))
            .args(["ctl", "--socket"])
            .arg(self.folder.path().join("control.sock"))
            .arg("drain")
            .status();
        assert!(drained.expect("it runs").success());
        assert!(self.child.wait().expect("its end").success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mounted = self.folder.path().join("volumes");
        let _ = Command::new("umount").arg("--lazy").arg(mounted).output();
    }
}

/// Whether there can be FUSE files here. In CI there must be.
pub(crate) fn has_fuse() -> bool {
    let me = std::fs::metadata("/proc/self").expect("this process");
    let is_here = me.uid() == 0 && File::open("/dev/fuse").is_ok();
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(is_here || !is_ci, "CI needs root and /dev/fuse");
    is_here
}

/// A client of NBD that asks for no block sizes, and so may address single bytes: newstyle,
/// `NBD_OPT_EXPORT_NAME`, simple replies.
struct Nbd {
    socket: UnixStream,
}

impl Nbd {
    fn connect(path: &Path, export: &str) -> Self {
        let mut socket = UnixStream::connect(path).expect("it listens");
        socket.set_read_timeout(Some(HANGS)).expect("a time limit");
        let mut hello = b"\0\0\0\x03IHAVEOPT\0\0\0\x01".to_vec();
        hello.extend((export.len() as u32).to_be_bytes());
        hello.extend(export.as_bytes());
        socket.write_all(&hello).expect("it is taken");
        // The greeting, the size, the flags.
        socket.read_exact(&mut [0; 18 + 10]).expect("it agrees");
        Nbd { socket }
    }

    fn ask(&mut self, command: u16, offset: u64, length: u32, payload: &[u8]) {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend([0, 0]);
        request.extend(command.to_be_bytes());
        request.extend([0; 8]);
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(payload);
        self.socket.write_all(&request).expect("it is taken");
        let mut reply = [0; 16];
        self.socket.read_exact(&mut reply).expect("an answer");
        assert_eq!(reply[4..8], [0; 4], "it is done");
    }
}

/// A door that is open.
enum Writer {
    Nbd(Nbd),
    Fuse(File),
}

impl Writer {
    fn open(service: &Service, door: Door) -> Self {
        let folder = service.folder.path();
        match door {
            Door::Nbd(export) => Writer::Nbd(Nbd::connect(&folder.join("nbd.sock"), export)),
            Door::Fuse(export) => {
                let path = folder.join("volumes").join(export);
                let file = OpenOptions::new().read(true).write(true).open(path);
                Writer::Fuse(file.expect("the volume's file"))
            }
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        match self {
            Writer::Nbd(nbd) => nbd.ask(1, offset, bytes.len() as u32, bytes),
            Writer::Fuse(file) => file.write_all_at(bytes, offset).expect("written"),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) {
        match self {
            Writer::Nbd(nbd) => {
                nbd.ask(0, 0, bytes.len() as u32, &[]);
                nbd.socket.read_exact(bytes).expect("its bytes");
            }
            Writer::Fuse(file) => file.read_exact_at(bytes, 0).expect("read"),
        }
    }

    /// Writes every other slot from `first` on until there were so many writes. How many acknowledged
    /// writes were not read back.
    fn run(&mut self, first: u64, writes: u64) -> u64 {
        let slots: Vec<u64> = (first..SHARED / SLOT).step_by(2).collect();
        let mut found = [0; SHARED as usize];
        let mut lost = 0;
        for round in 0..writes.div_ceil(slots.len() as u64) {
            let stamp = |slot| [(round * 16 + slot + 1) as u8; SLOT as usize];
            for &slot in &slots {
                self.write(slot * SLOT, &stamp(slot));
            }
            self.read(&mut found);
            let is_there =
                |&&slot: &&u64| found[(slot * SLOT) as usize..].starts_with(&stamp(slot));
            lost += (slots.len() - slots.iter().filter(is_there).count()) as u64;
        }
        lost
    }
}

/// Two writers through each pair of doors, and `beside` again and again until both have ended.
#[allow(
    clippy::print_stderr,
    reason = "whoever runs many writes wants the counts"
)]
fn nothing_is_lost(what: &str, drive: &str, cache: &str, beside: Option<&dyn Fn(&Service)>) {
    let service = Service::start(drive, cache);
    let pairs = if has_fuse() { &PAIRS[..] } else { &PAIRS[..1] };
    let mut all_lost = 0;
    for (name, doors) in pairs {
        let begun = Instant::now();
        let mut writers = doors.map(|door| Writer::open(&service, door));
        let lost: u64 = thread::scope(|scope| {
            let threads = writers.each_mut();
            let mut first = 0;
            let threads = threads.map(|writer| {
                first += 1;
                scope.spawn(move || writer.run(first - 1, writes()))
            });
            while let Some(beside) = beside
                && !threads.iter().all(|thread| thread.is_finished())
            {
                beside(&service);
            }
            threads
                .map(|thread| thread.join().expect("it ends"))
                .iter()
                .sum()
        });
        let (all, took) = (2 * writes(), begun.elapsed().as_secs_f64());
        eprintln!("{what}, {name}: {lost} of {all} acknowledged writes lost ({took:.1} s)");
        all_lost += lost;
    }
    service.end();
    assert_eq!(all_lost, 0, "acknowledged writes were lost");
}

#[test]
fn without_a_cache() {
    nothing_is_lost("memory", MEMORY, "", None);
    nothing_is_lost("file", IMAGE, "", None);
}

#[test]
fn behind_a_cache() {
    let through = "cache = { size = \"1 MiB\" }\n";
    let back = "cache = { size = \"1 MiB\", write = \"back\" }\n";
    for (what, cache) in [("write-through cache", through), ("write-back cache", back)] {
        nothing_is_lost(what, MEMORY, cache, None);
        nothing_is_lost(&format!("{what} on 4096-byte blocks"), IMAGE, cache, None);
    }
}

/// Reads the volume in the background, for a program that takes all of it.
fn scan(service: &Service) {
    let scan = Command::new(cargo_bin("headtime"))
        .current_dir(service.folder.path())
        .args([
            "scan",
            "--socket",
            "control.sock",
            "v",
            "--command",
            "sh",
            "-c",
            "cat >/dev/null",
        ])
        .stdout(Stdio::null())
        .status();
    assert!(scan.expect("it runs").success());
}

#[test]
fn beside_a_scan() {
    nothing_is_lost("beside a scan", PLAIN_DRIVE, "", Some(&scan));
    let back = "cache = { size = \"1 MiB\", write = \"back\" }\n";
    nothing_is_lost(
        "beside a scan, write-back cache",
        PLAIN_DRIVE,
        back,
        Some(&scan),
    );
}

#[test]
fn beside_a_stream() {
    let play = |service: &Service| {
        let length = 1 << 20;
        let places = Places {
            length,
            pieces: vec![FilePiece(0, 0, length)],
        };
        let client = Client::connect(&service.folder.path().join("control.sock"));
        let client = client.expect("it listens");
        let terms = Terms::play(1_000_000, 64 << 10);
        let stream = client
            .attach_places("one", places, &terms)
            .expect("granted");
        for at in (0..length).step_by(64 << 10) {
            stream.position(at).expect("it serves");
            // The stream plays on meanwhile.
            let _ = stream.wait_event(Duration::from_millis(5));
        }
        stream.close().expect("it was there");
        while !client.streams().expect("a list").is_empty() {
            thread::yield_now();
        }
    };
    nothing_is_lost("beside a stream", DRIVE, "", Some(&play));
}
