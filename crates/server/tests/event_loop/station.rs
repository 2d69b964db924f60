//! Stations of tests: a loop over some back end, and a socket in a folder that goes away.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, RwLock, mpsc};

use ::drive::{Profile, VirtualDrive};
use block::Class;
use engine::explanation::Known;
use engine::{Engine, Limits};
use scheduler::policy::find;
use server::cache_setting::CacheSetting;
use server::capture::{EngineSetting, Recorder};
use server::clients::Bounds;
use server::clock::{Clock, TimeScale};
use server::config::{Address, Remote};
use server::disk::back_end::BackEnd;
use server::disk::back_end::emulated::Emulated;
use server::disk::back_end::file::{Caching, Image};
use server::disk::back_end::memory::Ram;
use server::disk::back_end::nbd::Found;
use server::event_loop::mailbox::Mailbox;
use server::event_loop::{EventLoop, Holds};
use server::listener::{Directory, Listener};
use server::station::Station;
use server::volume::Export;
use tempfile::TempDir;

use crate::drives;
use crate::fickle::{Fickle, Mood};
use crate::gate::{COARSE, Closed, Gate};
use crate::offered::offer;
use crate::promised;
use crate::shuffled::Shuffled;
use crate::streams;

mod drive;

use self::drive::drive_in;

pub const BLOCK: u64 = 512;

/// A station, its listener, its folder.
pub struct Served {
    listener: Option<Listener>,
    pub station: Option<Station>,
    pub folder: TempDir,
}

/// What holds the bytes.
#[derive(Clone, Copy, Debug)]
pub enum Medium {
    Memory,
    File,
    /// A file on a file system that makes holes and no zeroes.
    Tmpfs,
    /// A drive of 2.1 million blocks of which the first ones are offered, a thousand times as fast.
    Emulated,
    /// As `Emulated`, and nothing is believed of it at first.
    Unknown,
    /// A drive of two actuators, which has the offered blocks alone: the border is in their middle.
    TwoActuators,
    /// A file with blocks of eight of the model's.
    CoarseFile,
    /// The same of a drive.
    CoarseDrive,
    /// As `Emulated`, with guarantees for streams.
    Promising,
    /// Another station, which has a file.
    Behind,
}

impl Medium {
    /// Whether zeroes take as long as other bytes.
    pub fn is_drive(self) -> bool {
        matches!(
            self,
            Medium::Emulated
                | Medium::Unknown
                | Medium::TwoActuators
                | Medium::CoarseDrive
                | Medium::Promising
        )
    }

    /// Whether clients are not to know its blocks.
    pub fn is_coarse(self) -> bool {
        matches!(self, Medium::CoarseFile | Medium::CoarseDrive)
    }

    /// What was read is what is there in the end, unless it went with the loop.
    pub fn assert_holds(self, folder: &TempDir, expected: &[u8]) {
        if !matches!(self, Medium::Memory | Medium::Behind) {
            let image = std::fs::File::open(folder.path().join("image")).expect("an image");
            let mut there = vec![0; expected.len()];
            image.read_exact_at(&mut there, 0).expect("as long as that");
            assert!(there == expected, "what was read is not what is there");
        }
    }
}

/// The smallest time scale.
pub const FASTEST: f64 = 0.001;

/// Memory of the loops.
pub const MEMORY: usize = 16 << 20;

pub use crate::offered::LONGEST;

impl Served {
    /// So many bytes of memory, or of a file.
    pub fn plain(medium: Medium, bytes: u64) -> Served {
        Served::behind(None, medium, bytes)
    }

    /// The same behind a cache.
    pub fn behind(cache: Option<CacheSetting>, medium: Medium, bytes: u64) -> Served {
        let folder = match medium {
            Medium::Tmpfs => tempfile::tempdir_in("/dev/shm"),
            _ => tempfile::tempdir(),
        };
        let folder = folder.expect("a folder");
        let image = folder.path().join("image");
        if let Medium::Promising = medium {
            return Served::promising(folder, streams::drive(), bytes, cache);
        }
        if medium.is_drive() {
            let truth = match medium {
                Medium::TwoActuators => drives::two_actuators(bytes / BLOCK),
                medium if medium.is_coarse() => drives::coarse(),
                _ => drives::shipped(),
            };
            let truth = Arc::new(truth);
            let scale = TimeScale::new(FASTEST).expect("a scale");
            let belief = Arc::clone(&truth);
            let blocks = truth.geometry.sectors().0;
            let drive = drive_in(&folder, truth, 0);
            if let Medium::Unknown = medium {
                let belief = server::featureless::profile("a-test", blocks, BLOCK as u32);
                let belief = Arc::new(belief.expect("a profile"));
                return Served::start_behind(cache, folder, "c-look", belief, scale, bytes, drive);
            }
            return Served::start_behind(cache, folder, "sptf", belief, scale, bytes, drive);
        }
        let block = match medium.is_coarse() {
            true => 8 * BLOCK,
            false => BLOCK,
        };
        let belief = server::featureless::profile("a-test", bytes / block, block as u32);
        let belief = Arc::new(belief.expect("a profile"));
        Served::start_behind(
            cache,
            folder,
            "c-look",
            belief,
            TimeScale::REAL,
            bytes,
            move || match medium {
                Medium::Memory => Box::new(Ram::new(bytes).expect("memory")),
                _ => {
                    std::fs::File::create(&image)
                        .and_then(|file| file.set_len(bytes))
                        .expect("an image");
                    let image = Image::open(&image, block as u32, Caching::Cached);
                    Box::new(image.expect("an image"))
                }
            },
        )
    }

    /// Memory that tells the ends of commands late and in any order.
    pub fn shuffled(seed: u64, cache: Option<CacheSetting>, bytes: u64) -> Served {
        let folder = tempfile::tempdir().expect("a folder");
        let belief = server::featureless::profile("a-test", bytes / BLOCK, BLOCK as u32);
        let belief = Arc::new(belief.expect("a profile"));
        let make = move || Box::new(Shuffled::new(bytes, seed)) as Box<dyn BackEnd>;
        Served::start_behind(
            cache,
            folder,
            "c-look",
            belief,
            TimeScale::REAL,
            bytes,
            make,
        )
    }

    /// Another station as its back end, behind a cache of its own.
    pub fn over(lower: &Served, cache: CacheSetting, bytes: u64) -> Served {
        let remote = Remote {
            uri: "a station".to_owned(),
            address: Address::Unix(lower.socket()),
            export: String::new(),
            tls: None,
            patience_s: 30,
        };
        let found = Found::connect(&remote, None).expect("it is served");
        let belief = server::featureless::profile("a-test", bytes / BLOCK, BLOCK as u32);
        let belief = Arc::new(belief.expect("a profile"));
        let folder = tempfile::tempdir().expect("a folder");
        let real = TimeScale::REAL;
        let take_up = move || Box::new(found.take_up().expect("a thread")) as Box<dyn BackEnd>;
        Served::start_behind(Some(cache), folder, "c-look", belief, real, bytes, take_up)
    }

    /// A drive that behaves as `truth`, with its image in the folder.
    pub fn emulated(
        folder: TempDir,
        truth: Arc<Profile>,
        policy: &str,
        scale: f64,
        bytes: u64,
        seed: u64,
    ) -> Served {
        let scale = TimeScale::new(scale).expect("a scale");
        let belief = Arc::clone(&truth);
        let drive = drive_in(&folder, truth, seed);
        Served::start_behind(None, folder, policy, belief, scale, bytes, drive)
    }

    /// An emulated drive that promises something to streams; with a cache, that is before a second
    /// volume as long as the first.
    fn promising(
        folder: TempDir,
        truth: Arc<Profile>,
        bytes: u64,
        cache: Option<CacheSetting>,
    ) -> Served {
        let image = folder.path().join("image");
        let scale = TimeScale::new(streams::SCALE).expect("a scale");
        let block = truth.block_bytes;
        let lengths = vec![bytes; 1 + usize::from(cache.is_some())];
        Served::build(folder, &lengths.clone(), block, move |mailbox| {
            let image =
                Image::open_or_make(&image, block, truth.geometry.sectors().0, Caching::Cached)?;
            let drive = Emulated::new(VirtualDrive::new(Arc::clone(&truth)), image);
            let policy = find("sptf-sw60").expect("a policy");
            let limits = Limits::suited_to(policy, &truth);
            let engine = Engine::new(truth, &|| policy.make(), limits);
            let engine = promised::promising(engine.with_explanations(Known::Profile));
            let event_loop = event_loop(engine, Box::new(drive), scale, &lengths, mailbox)?;
            let caches: Vec<_> = cache.into_iter().map(|c| (c, bytes, bytes)).collect();
            event_loop
                .with_streams(promised::settings())
                .with_caches(&caches)
        })
    }

    /// Memory of coarse blocks that promises something to streams, and keeps back what it has done while
    /// it is closed.
    pub fn gated(closed: Closed) -> Served {
        let folder = tempfile::tempdir().expect("a folder");
        let belief = Arc::new(drives::coarse());
        let blocks = belief.geometry.sectors().0;
        let lengths = [blocks * COARSE * BLOCK];
        let scale = TimeScale::new(streams::SCALE).expect("a scale");
        Served::build(folder, &lengths, belief.block_bytes, move |mailbox| {
            let policy = find("sptf-sw60").expect("a policy");
            let limits = Limits::suited_to(policy, &belief);
            let engine = Engine::new(belief, &|| policy.make(), limits);
            let drive = Box::new(Gate::new(blocks, closed));
            let engine = promised::promising(engine);
            let event_loop = event_loop(engine, drive, scale, &lengths, mailbox)?;
            Ok(event_loop.with_streams(promised::settings()))
        })
    }

    /// Memory that fails what a test wants, as volumes of so many bytes each, and all have such a cache.
    pub fn fickle(mood: Mood, cache: &CacheSetting, lengths: &[u64]) -> Served {
        let folder = tempfile::tempdir().expect("a folder");
        let all: u64 = lengths.iter().sum();
        let belief = server::featureless::profile("a-test", all / BLOCK, BLOCK as u32);
        let belief = Arc::new(belief.expect("a profile"));
        let starts = lengths.iter().scan(0, |end, length| {
            let start = *end;
            *end += length;
            Some(start)
        });
        let caches: Vec<_> = starts
            .zip(lengths)
            .map(|(start, &length)| (cache.clone(), start, length))
            .collect();
        let own = lengths.to_vec();
        Served::build(folder, lengths, BLOCK as u32, move |mailbox| {
            let policy = find("c-look").expect("a policy");
            let limits = Limits::suited_to(policy, &belief);
            let engine = Engine::new(belief, &|| policy.make(), limits);
            let ram = Box::new(Ram::new(all).expect("memory"));
            let drive = Box::new(Fickle::new(ram, mood, Arc::default()));
            event_loop(engine, drive, TimeScale::REAL, &own, mailbox)?.with_caches(&caches)
        })
    }

    /// Why memory has no such cache before it.
    pub fn refuses(cache: CacheSetting, bytes: u64) -> String {
        let build = move |mailbox| {
            let belief = server::featureless::profile("a-test", bytes / BLOCK, BLOCK as u32);
            let policy = find("c-look").expect("a policy");
            let belief = Arc::new(belief.expect("a profile"));
            let limits = Limits::suited_to(policy, &belief);
            let engine = Engine::new(belief, &|| policy.make(), limits);
            let drive = Box::new(Ram::new(bytes).expect("memory"));
            event_loop(engine, drive, TimeScale::REAL, &[bytes], mailbox)?
                .with_caches(&[(cache, 0, bytes)])
        };
        match Station::start("test", build) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    /// What `back_end` makes, on the loop's thread.
    pub fn start_behind(
        cache: Option<CacheSetting>,
        folder: TempDir,
        policy: &str,
        belief: Arc<Profile>,
        scale: TimeScale,
        bytes: u64,
        back_end: impl FnOnce() -> Box<dyn BackEnd> + Send + 'static,
    ) -> Served {
        let policy = find(policy).expect("a policy");
        let block = belief.block_bytes;
        let build = move |mailbox| {
            let limits = Limits::suited_to(policy, &belief);
            let engine = Engine::new(belief, &|| policy.make(), limits);
            let engine = engine.with_explanations(Known::Profile);
            let event_loop = event_loop(engine, back_end(), scale, &[bytes], mailbox)?;
            let caches: Vec<_> = cache.into_iter().map(|cache| (cache, 0, bytes)).collect();
            event_loop.with_caches(&caches)
        };
        Served::build(folder, &[bytes], block, build)
    }

    /// A drive that behaves as it is believed to, under an engine that is captured to the file
    /// `capture` in the folder.
    pub fn captured(folder: TempDir, setting: EngineSetting, scale: f64, bytes: u64) -> Served {
        let truth = Arc::new(setting.belief.profile().expect("a profile"));
        let (image, capture) = (folder.path().join("image"), folder.path().join("capture"));
        let scale = TimeScale::new(scale).expect("a scale");
        let block = truth.block_bytes;
        Served::build(folder, &[bytes], block, move |mailbox| {
            let image =
                Image::open_or_make(&image, block, truth.geometry.sectors().0, Caching::Cached)?;
            let drive = Emulated::new(VirtualDrive::new(truth), image);
            let engine = setting.engine().expect("an engine");
            let recorder = Recorder::begin(std::fs::File::create(capture)?, &setting)?;
            let event_loop = event_loop(engine, Box::new(drive), scale, &[bytes], mailbox)?;
            Ok(event_loop.with_capture(recorder))
        })
    }

    fn build(
        folder: TempDir,
        lengths: &[u64],
        block: u32,
        build: impl FnOnce(Mailbox) -> std::io::Result<EventLoop> + Send + 'static,
    ) -> Served {
        let station = Station::start("test", build).expect("a station");
        let shown = Arc::new(RwLock::new(Directory {
            offers: volumes(lengths)
                .map(|volume| offer(&volume.name, volume.length, block))
                .collect(),
            places: (0..lengths.len())
                .map(|place| (station.mailbox().clone(), place))
                .collect(),
        }));
        let socket = folder.path().join("socket");
        Served {
            listener: Some(
                Listener::unix(&socket, shown, server::tls::Security::Plain).expect("a socket"),
            ),
            station: Some(station),
            folder,
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Asks the loop.
    pub fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut EventLoop) -> T + Send + 'static,
    ) -> T {
        let (tell, told) = mpsc::channel();
        let station = self.station.as_ref().expect("it runs");
        let posted = station.mailbox().call(move |event_loop| {
            let _ = tell.send(what(event_loop));
        });
        posted.expect("it runs");
        told.recv().expect("it answers")
    }

    /// Waits until so many connections are left.
    pub fn wait_for_connections(&self, left: usize) {
        while self.ask(|event_loop| event_loop.holds().connections) > left {
            std::thread::yield_now();
        }
    }

    /// Everything has left: nothing may be held.
    pub fn assert_nothing_is_held(&self) {
        self.wait_for_connections(0);
        let holds = self.ask(|event_loop| event_loop.holds());
        assert_eq!(holds, Holds::default());
    }

    /// Ends it, and waits for that.
    pub fn stop(self) -> TempDir {
        self.end().0
    }

    /// Ends it. The result is that of the loop.
    pub fn end(mut self) -> (TempDir, std::io::Result<()>) {
        self.listener.take();
        let ended = self.station.take().expect("it runs").stop();
        (self.folder, ended)
    }
}

fn event_loop(
    engine: Engine,
    back_end: Box<dyn BackEnd>,
    scale: TimeScale,
    lengths: &[u64],
    mailbox: Mailbox,
) -> std::io::Result<EventLoop> {
    let bounds = Bounds {
        memory: MEMORY,
        ..Bounds::default()
    };
    let clock = Clock::start(scale);
    let exports = volumes(lengths).collect();
    EventLoop::new(clock, engine, back_end, exports, mailbox, bounds)
}

/// One volume after the other: the first has no name, the others have numbers.
fn volumes(lengths: &[u64]) -> impl Iterator<Item = Export> {
    let mut end = 0;
    lengths.iter().enumerate().map(move |(number, &length)| {
        let offset = end;
        end += length;
        Export {
            name: match number {
                0 => String::new(),
                _ => number.to_string(),
            },
            offset,
            length,
            class: Class::default(),
        }
    })
}
