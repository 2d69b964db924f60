//! A drive, a folder with its volume, and what was made of it; all goes away, also when a test
//! fails.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use block::Class;
use engine::{Engine, Limits};
use rustix::mount::{UnmountFlags, unmount};
use server::clients::Bounds;
use server::clock::{Clock, TimeScale};
use server::disk::back_end::BackEnd;
use server::disk::back_end::file::{Caching, Image};
use server::disk::back_end::memory::Ram;
use server::event_loop::EventLoop;
use server::featureless;
use server::front_end::fuse::{self, Mount};
use server::station::Station;
use server::volume::Export;
use tempfile::TempDir;

/// What keeps the bytes.
#[derive(Clone, Copy, Debug)]
pub enum Medium {
    /// Memory, in blocks of 512 bytes; commands end at once.
    Ram,
    /// A file, in blocks of 4096 bytes; commands end when the kernel says so.
    Image,
}

/// Where a volume begins on its drive: places of the volume and of the drive are told apart.
const BEFORE: u64 = 1 << 20;

/// The name of the volume's file.
pub const NAME: &str = "volume";

/// A mounted volume.
pub struct Scene {
    // In this order they go away.
    pub mount: Option<Mount>,
    pub station: Option<Station>,
    pub home: TempDir,
}

impl Scene {
    /// A volume of so many bytes; `None` if there can be none here.
    pub fn new(medium: Medium, bytes: u64) -> Option<Self> {
        Scene::on(medium, bytes, |back_end| back_end)
    }

    /// The same with something around the back end.
    pub fn on(
        medium: Medium,
        bytes: u64,
        around: impl FnOnce(Box<dyn BackEnd>) -> Box<dyn BackEnd> + Send + 'static,
    ) -> Option<Self> {
        let is_here = rustix::process::geteuid().is_root() && File::open("/dev/fuse").is_ok();
        if !is_here {
            return skip("no root or no /dev/fuse");
        }
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join("volumes")).expect("a folder");
        let image = home.path().join("image");
        let station = Station::start("drive", move |mailbox| {
            let whole = BEFORE + bytes;
            let back_end: Box<dyn BackEnd> = match medium {
                Medium::Ram => Box::new(Ram::new(whole)?),
                Medium::Image => Box::new(Image::open_or_make(
                    &image,
                    4096,
                    whole / 4096,
                    Caching::Cached,
                )?),
            };
            let back_end = around(back_end);
            let shape = back_end.shape();
            let belief = featureless::profile("test", shape.blocks, shape.block_bytes);
            let belief = Arc::new(belief.expect("a profile"));
            let policy = scheduler::policy::find("fcfs").expect("a policy");
            let limits = Limits::suited_to(policy, &belief);
            let engine = Engine::new(belief, &|| policy.make(), limits);
            let export = Export {
                name: NAME.to_owned(),
                offset: BEFORE,
                length: bytes,
                class: Class::default(),
            };
            let (clock, bounds) = (Clock::start(TimeScale::REAL), Bounds::default());
            EventLoop::new(clock, engine, back_end, vec![export], mailbox, bounds)
        });
        let mut this = Scene {
            mount: None,
            station: Some(station.expect("a drive")),
            home,
        };
        let file = this.file(medium, bytes);
        this.mount = Some(Mount::begin(&this.folder(), vec![file]).expect("mounted"));
        Some(this)
    }

    /// The volume as it is to be mounted.
    pub fn file(&self, medium: Medium, bytes: u64) -> fuse::ExportedFile {
        let station = self.station.as_ref().expect("a drive");
        fuse::ExportedFile {
            name: NAME.to_owned(),
            bytes,
            read_only: false,
            mailbox: station.mailbox().clone(),
            export: 0,
            block_bytes: match medium {
                Medium::Ram => 512,
                Medium::Image => 4096,
            },
        }
    }

    pub fn folder(&self) -> PathBuf {
        self.home.path().join("volumes")
    }

    pub fn path(&self) -> PathBuf {
        self.folder().join(NAME)
    }

    pub fn open(&self) -> File {
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).open(self.path());
        opened.expect("the volume's file")
    }

    /// The file as a kernel block device; `None` if there can be none here.
    pub fn loop_device(&self) -> Option<LoopDevice> {
        if !Path::new("/dev/loop-control").exists() {
            return skip("no loop devices");
        }
        let path = self.path();
        let path = path.to_str().expect("UTF-8");
        let arguments = ["--find", "--show", "--direct-io=on", path];
        let device = run("losetup", &arguments).trim().to_owned();
        let direct = run("losetup", &["--noheadings", "--output", "DIO", &device]);
        let device = LoopDevice { device };
        assert_eq!(direct.trim(), "1", "through the page cache");
        Some(device)
    }
}

/// A loop device.
pub struct LoopDevice {
    pub device: String,
}

impl LoopDevice {
    /// Mounts what is on it.
    pub fn mount(&self, at: &Path) -> Mounted {
        std::fs::create_dir_all(at).expect("a folder");
        run("mount", &[&self.device, at.to_str().expect("UTF-8")]);
        Mounted { at: at.to_owned() }
    }

    /// Takes it away, and says whether that was possible.
    pub fn detach(self) {
        run("losetup", &["--detach", &self.device]);
        std::mem::forget(self);
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .args(["--detach", &self.device])
            .output();
    }
}

/// A mounted file system.
pub struct Mounted {
    pub at: PathBuf,
}

impl Mounted {
    pub fn unmount(self) {
        unmount(&self.at, UnmountFlags::empty()).expect("not in use");
        std::mem::forget(self);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
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

/// Whether a program is here.
pub fn has(program: &str) -> bool {
    let found = Command::new("which").arg(program).output();
    let is_here = found.is_ok_and(|found| found.status.success());
    is_here || skip::<()>(&format!("no {program}")).is_some()
}

/// Says that a test is skipped, and which one in number; in CI that is an error.
pub fn skip<T>(why: &str) -> Option<T> {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!is_ci, "CI needs what is missing here: {why}");
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let line = format!("skipped, number {count}: {why}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("standard error");
    None
}
