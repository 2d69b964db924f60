//! What tests run inside of the guest: front ends with a small volume of their own, and back ends
//! that say what they see. A program, because the guest has nothing of cargo's.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use block::Durability;
use block::operation::{Ask, OperationError};
use server::disk::back_end::scsi::{Lasting, ScsiDrive, Switch};
use server::front_end::ublk::{
    Access, Device, DeviceSetting, DeviceShape, Medium, Pending, Trims, Volume,
};

const USAGE: &str = "usage: inside ublk add NUMBER BLOCK IMAGE STOP HOLD | ublk recover NUMBER IMAGE STOP HOLD | scsi DEVICE";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = match words[..] {
        ["ublk", "add", number, block, image, stop, hold] => add(number, block, image, stop, hold),
        ["ublk", "recover", number, image, stop, hold] => recover(number, image, stop, hold),
        ["scsi", device] => scsi(device),
        _ => Err(USAGE.into()),
    };
    match ended {
        Ok(text) => {
            let _ = writeln!(io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "inside: {error}");
            ExitCode::FAILURE
        }
    }
}

type Ended = Result<String, Box<dyn std::error::Error>>;

/// Adds a device over the image (which lies in the guest's memory), and serves it until somebody
/// writes to the pipe `stop`. Answers with what was asked of it. After `hold` requests none ends any
/// more, which the file [`HELD`] says: the server waits to be killed, with as many under way as its
/// client has.
fn add(number: &str, block: &str, image: &str, stop: &str, hold: &str) -> Ended {
    let file = open(image)?;
    let shape = DeviceShape {
        bytes: file.metadata()?.len(),
        logical_block: block.parse()?,
        physical_block: 4096,
        medium: Medium::Rotational,
        access: Access::ReadWrite,
        space: Trims::Passed,
    };
    let (volume, counts) = ImageVolume::new(file, hold.parse()?);
    let service = DeviceSetting {
        depth: 32,
        longest: 128 << 10,
        ..DeviceSetting::default()
    };
    let device = Device::start(Some(number.parse()?), &shape, service, volume)?;
    until_stopped(device, stop, &counts)
}

/// Says that requests are held.
const HELD: &str = "/tmp/held";

/// Goes on with the device of a server that was killed.
fn recover(number: &str, image: &str, stop: &str, hold: &str) -> Ended {
    let (volume, counts) = ImageVolume::new(open(image)?, hold.parse()?);
    let device = Device::recover(number.parse()?, volume)?;
    until_stopped(device, stop, &counts)
}

fn open(image: impl AsRef<Path>) -> io::Result<File> {
    File::options().read(true).write(true).open(image)
}

fn until_stopped(device: Device, stop: &str, counts: &Counts) -> Ended {
    // A pipe opens when somebody has opened it to write, and ends when they have.
    io::copy(&mut File::open(stop)?, &mut io::sink())?;
    device.stop()?;
    Ok(counts.to_string())
}

/// Says what a drive is, switches its caches, writes and reads, and does what must fail.
fn scsi(device: &str) -> Ended {
    let drive = ScsiDrive::open(Path::new(device))?;
    let (identity, capacity) = (drive.identity(), drive.capacity());
    let block = capacity.block_bytes as usize;
    let mut text = format!(
        "{} {}, serial {}, {:?}\n{} blocks of {block}, {} on the medium\n",
        identity.vendor,
        identity.product,
        drive.serial()?,
        drive.rotation()?,
        capacity.blocks,
        capacity.physical_bytes,
    );
    let before = drive.caching()?;
    text += &format!(
        "write cache {:?}, FUA {}\n",
        before.write_cache(),
        before.knows_fua
    );
    for to in [Switch::Off, Switch::On] {
        let wanted = drive.caching()?.with_write_cache(to);
        drive.set_caching(&wanted, Lasting::UntilReset)?;
        text += &format!("write cache {:?}\n", drive.caching()?.write_cache());
    }
    let wanted = drive.caching()?.with_look_ahead(Switch::Off);
    text += &match drive.set_caching(&wanted, Lasting::UntilReset) {
        Ok(()) => format!("look-ahead {:?}\n", drive.caching()?.look_ahead()),
        Err(failed) => format!("look-ahead: {failed}\n"),
    };
    let written: Vec<u8> = (0..8 * block).map(|at| (at / 7) as u8).collect();
    drive.write(1000, &written, Durability::Durable)?;
    drive.flush()?;
    for durability in [Durability::Durable, Durability::Volatile] {
        let mut read = vec![0; written.len()];
        drive.read(1000, &mut read, durability)?;
        text += if read == written { "same\n" } else { "other\n" };
    }
    text += &match drive.seek(capacity.blocks / 2) {
        Ok(()) => String::from("seek done\n"),
        Err(failed) => format!("seek: {failed}\n"),
    };
    let mut read = vec![0; block];
    for at in [0x1234, capacity.blocks] {
        if let Err(failed) = drive.read(at, &mut read, Durability::Volatile) {
            text += &format!("block {at}: {failed}\n");
        }
    }
    Ok(text.trim_end().to_string())
}

/// A volume whose requests end on threads of its own, two at a time, so that they end in another
/// order than they come.
struct ImageVolume {
    work: mpsc::Sender<Pending>,
}

/// What was asked.
#[derive(Default)]
struct Counts {
    all: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    durable: AtomicU64,
    flushes: AtomicU64,
    trims: AtomicU64,
    zeroes: AtomicU64,
}

impl ImageVolume {
    fn new(file: File, hold: u64) -> (Self, Arc<Counts>) {
        let (work, waiting) = mpsc::channel::<Pending>();
        let waiting = Arc::new(Mutex::new(waiting));
        let file = Arc::new(file);
        let counts = Arc::new(Counts::default());
        for _ in 0..2 {
            let (waiting, file) = (Arc::clone(&waiting), Arc::clone(&file));
            let counts = Arc::clone(&counts);
            thread::spawn(move || serve(&waiting, &file, &counts, hold));
        }
        (ImageVolume { work }, counts)
    }
}

/// Carries requests out until there are no more. Of those that are held every other one is carried
/// out all the same: the next server does it again.
fn serve(waiting: &Mutex<mpsc::Receiver<Pending>>, file: &File, counts: &Counts, hold: u64) {
    let mut held = Vec::new();
    loop {
        let next = waiting.lock().expect("nobody panics").recv();
        let Ok(mut request) = next else {
            return;
        };
        let before = counts.count(request.ask());
        if before < hold {
            let result = carry_out(file, &mut request);
            request.end(result);
            continue;
        }
        if before == hold {
            File::create(HELD).expect("a file in memory");
        }
        if before.is_multiple_of(2) {
            let _ = carry_out(file, &mut request);
        }
        held.push(request);
    }
}

impl Volume for ImageVolume {
    fn submit(&self, request: Pending) {
        // If the workers are gone, the request ends by being dropped.
        let _ = self.work.send(request);
    }
}

fn carry_out(file: &File, request: &mut Pending) -> Result<(), OperationError> {
    let offset = request.offset();
    let done = match request.ask() {
        Ask::Read => file.read_exact_at(request.bytes_mut(), offset),
        Ask::Write { .. } => file.write_all_at(request.bytes(), offset),
        Ask::Zero { .. } => {
            let zeroes = vec![0; request.length() as usize];
            file.write_all_at(&zeroes, offset)
        }
        Ask::Trim { .. } | Ask::Flush | Ask::Cache => Ok(()),
    };
    done.map_err(|_| OperationError::Io)
}

impl Counts {
    /// Counts it, and answers with how many there were before.
    fn count(&self, ask: Ask) -> u64 {
        let durable = Durability::Durable;
        let counter = match ask {
            Ask::Read | Ask::Cache => &self.reads,
            Ask::Write { durability } if durability == durable => &self.durable,
            Ask::Write { .. } => &self.writes,
            Ask::Zero { .. } => &self.zeroes,
            Ask::Trim { .. } => &self.trims,
            Ask::Flush => &self.flushes,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.all.fetch_add(1, Ordering::Relaxed)
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counters = [
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("durable", &self.durable),
            ("flushes", &self.flushes),
            ("trims", &self.trims),
            ("zeroes", &self.zeroes),
        ];
        for (name, counter) in counters {
            write!(formatter, "{name} {} ", counter.load(Ordering::Relaxed))?;
        }
        Ok(())
    }
}
