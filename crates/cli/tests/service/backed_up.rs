//! Images of a volume under writes, across kills: each is the volume at one moment, byte for byte.
//!
//! ```text
//!   a writer    |--1--| |--2--| |--3--| |--4--| |--5--| ...      one write at a time
//!   an image                 all of 1 to k, and nothing of k + 1
//! ```
//!
//! What an image has to be follows from `k` of each writer. At the begin of the backup `k` writes had ended or
//! more; at its end no more than `k` had begun.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use assert_cmd::cargo::cargo_bin;
use block::Durability;
use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;
use serde_json::Value;

use crate::client::Client;
use crate::scanned::{BYTES, Service, config};

/// Writers, which have each their own units.
const WRITERS: usize = 4;
/// Units of a writer, each in a chunk of its own.
const UNITS: u64 = 16;
/// Bytes from one unit to the next.
const SPREAD: u64 = (BYTES / WRITERS) as u64 / UNITS;
/// Bytes of a unit, and the bytes before it in its chunk: neither are whole pages.
const UNIT: usize = 3072;
const LEAD: u64 = 1536;
const CHUNK: u64 = 65_536;

/// One writer's writes, in its order. They go on after a restart with the last one that had no answer.
#[derive(Default)]
struct Diary {
    /// The unit of each write, from the first one on.
    units: Mutex<Vec<u64>>,
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Diary {
    /// The volume's bytes of a writer after `count` writes.
    fn expected(&self, writer: usize, count: u64, image: &mut [u8]) {
        let units = self.units.lock().expect("a lock");
        let mut written = BTreeSet::new();
        // Later writes of a unit hide earlier ones.
        for number in (1..=count).rev() {
            let unit = &units[number as usize - 1];
            if written.insert(*unit) {
                let at = place(writer, *unit) as usize;
                image[at..at + UNIT].copy_from_slice(&contents(number));
            }
            if written.len() as u64 == UNITS {
                return;
            }
        }
    }

    /// The chunks of writes after the first `from` ones, up to `to`.
    fn chunks(&self, writer: usize, from: u64, to: u64) -> Vec<u64> {
        let units = self.units.lock().expect("a lock");
        let units = &units[from as usize..to as usize];
        units
            .iter()
            .map(|unit| place(writer, *unit) / CHUNK)
            .collect()
    }
}

fn place(writer: usize, unit: u64) -> u64 {
    (writer as u64 * UNITS + unit) * SPREAD + LEAD
}

fn contents(number: u64) -> Vec<u8> {
    let words = (0..UNIT as u64 / 8).map(|word| number << 16 | word);
    words.flat_map(u64::to_le_bytes).collect()
}

/// Writers at work. They end when the service does, or when they are told to.
struct Load {
    diaries: Arc<[Diary; WRITERS]>,
    threads: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Load {
    fn begin(service: &Service, diaries: &Arc<[Diary; WRITERS]>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let before = ended(diaries);
        let threads = (0..WRITERS).map(|writer| {
            let client = connect(service);
            let (diaries, is_over) = (Arc::clone(diaries), Arc::clone(&is_over));
            std::thread::spawn(move || write(writer, client, &diaries[writer], &is_over))
        });
        let load = Load {
            threads: threads.collect(),
            diaries: Arc::clone(diaries),
            is_over,
        };
        // Each has made sure of what had no answer.
        load.wait(|now| now.iter().zip(before).all(|(now, before)| *now > before));
        load
    }

    fn wait(&self, mut is_enough: impl FnMut([u64; WRITERS]) -> bool) {
        while !is_enough(ended(&self.diaries)) {
            assert!(
                !self.threads.iter().any(JoinHandle::is_finished),
                "a writer has failed"
            );
            std::thread::yield_now();
        }
    }

    fn end(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a writer");
        }
    }
}

fn ended(diaries: &[Diary; WRITERS]) -> [u64; WRITERS] {
    std::array::from_fn(|writer| diaries[writer].ended.load(Ordering::SeqCst))
}

fn begun(diaries: &[Diary; WRITERS]) -> [u64; WRITERS] {
    std::array::from_fn(|writer| diaries[writer].begun.load(Ordering::SeqCst))
}

fn connect(service: &Service) -> Client {
    Client::connect_to(&service.path("nbd.sock"), "small", Style::Structured)
}

fn write(writer: usize, mut client: Client, diary: &Diary, is_over: &AtomicBool) {
    let mut dice = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(writer as u64 + 1);
    while !is_over.load(Ordering::Relaxed) {
        let number = diary.ended.load(Ordering::SeqCst) + 1;
        let unit = {
            let mut units = diary.units.lock().expect("a lock");
            if units.len() as u64 == number - 1 {
                dice = dice
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(number);
                units.push((dice >> 40) % UNITS);
            }
            units[number as usize - 1]
        };
        diary.begun.store(number, Ordering::SeqCst);
        let ask = Asked::Of(Ask::Write {
            durability: Durability::Volatile,
        });
        let payload = contents(number);
        if !client.tries(ask, place(writer, unit), &payload) {
            return;
        }
        diary.ended.store(number, Ordering::SeqCst);
    }
}

/// The counts of the writers in an image, which is that of one moment.
fn moment(
    diaries: &[Diary; WRITERS],
    image: &[u8],
    from: [u64; WRITERS],
    to: [u64; WRITERS],
) -> [u64; WRITERS] {
    let counts: [u64; WRITERS] = std::array::from_fn(|writer| {
        let units = (0..UNITS).map(|unit| {
            let at = place(writer, unit) as usize;
            u64::from_le_bytes(image[at..at + 8].try_into().expect("eight bytes")) >> 16
        });
        units.max().unwrap_or_default()
    });
    let mut expected = vec![0; BYTES];
    for (writer, diary) in diaries.iter().enumerate() {
        let range = from[writer]..=to[writer];
        assert!(
            range.contains(&counts[writer]),
            "{} not in {range:?}",
            counts[writer]
        );
        diary.expected(writer, counts[writer], &mut expected);
    }
    let mut differing = image.iter().zip(&expected).enumerate();
    let differs = differing.find(|(_, (found, expected))| found != expected);
    assert!(differs.is_none(), "byte {differs:?} of {counts:?}");
    assert_eq!(image.len(), BYTES);
    counts
}

/// The configuration with a folder of bitmaps for the small volume.
fn marked() -> String {
    let size = format!("size = {BYTES}");
    config("").replace(&size, &format!("{size}\nbitmaps = \"bitmaps\""))
}

/// The report of a backup, if it was made.
fn backup(service: &Service, more: &[&str]) -> Result<Value, String> {
    let words = [&["backup", "small", "--to", "image.raw", "--json"], more].concat();
    let (is_good, text) = service.run(&words);
    match is_good {
        true => Ok(serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))),
        false => Err(text),
    }
}

fn begin_backup(service: &Service, more: &[&str]) -> Child {
    Command::new(cargo_bin("headtime"))
        .current_dir(service.path(""))
        .args(["backup", "small", "--to", "image.raw", "--socket"])
        .arg(service.path("control.sock"))
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs")
}

fn read(image: &Path) -> Vec<u8> {
    std::fs::read(image).expect("an image")
}

fn bytes(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("{report}"))
}

/// More rounds by `HEADTIME_BACKUP_ROUNDS`. Every other one ends with a kill within a backup.
fn rounds() -> u64 {
    let asked = std::env::var("HEADTIME_BACKUP_ROUNDS").ok();
    asked.and_then(|rounds| rounds.parse().ok()).unwrap_or(4)
}

#[test]
fn images_under_a_load_are_one_moment_across_kills() {
    let diaries: Arc<[Diary; WRITERS]> = Arc::default();
    let mut service = Service::start_with(&[], &marked());
    assert!(service.run(&["ctl", "bitmap", "add", "small", "daily"]).0);
    let image: PathBuf = service.path("image.raw");
    let mut load = Load::begin(&service, &diaries);
    let (mut based, mut killed, mut made) = (None, 0, 0);
    let mut kills_within = 0;
    for round in 0..rounds() {
        let from = ended(&diaries);
        let kind: &[&str] = match based {
            None => &["--bitmap", "daily"],
            Some(_) => &["--incremental"],
        };
        let report = backup(&service, kind).unwrap_or_else(|problem| panic!("{problem}"));
        let image = read(&image);
        let counts = moment(&diaries, &image, from, begun(&diaries));
        made += 1;
        if let Some(based) = based {
            let each = diaries.iter().enumerate();
            let changed = each.flat_map(|(writer, diary): (usize, &Diary)| {
                let based: [u64; WRITERS] = based;
                diary.chunks(writer, based[writer], counts[writer])
            });
            let changed: BTreeSet<u64> = changed.collect();
            // A kill leaves marks of writes that it came before.
            let most = changed.len() as u64 * CHUNK * 105 / 100 + killed * WRITERS as u64 * CHUNK;
            let read = bytes(&report, "read_bytes");
            assert!(read <= most, "{read} of {most}: {report}");
            assert_eq!(read, bytes(&report, "verified_bytes"));
        }
        (based, killed) = (Some(counts), 0);
        if round % 2 == 1 {
            continue;
        }
        // The service is killed within a backup, or before it, or after it.
        let until = ended(&diaries)[0] + round * 7 % 60;
        let mut child = begin_backup(&service, &["--incremental"]);
        load.wait(|now| now[0] >= until || child_has_ended(&mut child));
        let folder = service.kill();
        let is_made = child.wait().expect("it ran").success();
        kills_within += u64::from(!is_made);
        load.end();
        service = Service::start_in(folder, &marked());
        load = Load::begin(&service, &diaries);
        killed = 1;
    }
    // A few kills may all come too late.
    assert!(kills_within > 0 || rounds() < 20, "this tests no kills");
    eprintln!("{made} images were one moment, {kills_within} backups were killed");
    load.end();
    drop(service);
}

fn child_has_ended(child: &mut Child) -> bool {
    child.try_wait().expect("its state").is_some()
}

#[test]
fn a_backup_that_cannot_be_made_says_why_and_leaves_no_checkpoint() {
    let service = Service::start_with(&[], &marked());
    let refused = |words: &[&str], expected: &str| {
        let problem = service.refuses(words);
        assert!(problem.contains(expected), "{problem}");
        let left = service.json(&["ctl", "checkpoint", "list", "--json"]);
        assert_eq!(left, Value::Array(Vec::new()), "{problem}");
    };
    let to = |more: &[&'static str]| [&["backup", "small", "--to", "image.raw"], more].concat();
    refused(
        &to(&["--incremental"]),
        "expected a full one with --bitmap first",
    );
    refused(&to(&["--bitmap", "daily"]), "it has none");
    refused(
        &["backup", "large", "--to", "image.raw"],
        "expected one of small, all",
    );
    refused(
        &["backup", "small", "--to", "/dev/full/image"],
        "Not a directory",
    );
    refused(&to(&["--store-bytes", "9"]), "expected 65536 or more");
    std::fs::write(service.path("image.raw"), "mine").expect("a file");
    refused(&to(&[]), "no backup of ours");
    std::fs::remove_file(service.path("image.raw")).expect("a file");
    assert!(backup(&service, &[]).is_ok());
    refused(&to(&["--incremental"]), "made without a dirty bitmap");
    assert!(service.run(&["ctl", "bitmap", "add", "small", "daily"]).0);
    assert!(backup(&service, &["--bitmap", "daily"]).is_ok());
    assert!(backup(&service, &["--incremental"]).is_ok());
    // Another image takes the changes: the first one has no base any more.
    let other = ["backup", "small", "--to", "other.raw", "--bitmap", "daily"];
    assert!(service.run(&other).0);
    refused(&to(&["--incremental"]), "does not begin with this image");
    refused(
        &["ctl", "bitmap", "add", "all", "daily"],
        "expected the key `bitmaps`",
    );
    refused(
        &["ctl", "bitmap", "add", "small", "../x"],
        "expected 1 to 64 letters",
    );
    refused(
        &["ctl", "bitmap", "remove", "small", "weekly"],
        "expected one of daily",
    );
    assert!(
        service
            .run(&["ctl", "bitmap", "remove", "small", "daily"])
            .0
    );
    let folder = service.end();
    assert!(!folder.path().join("bitmaps/daily.bitmap").exists());
}
