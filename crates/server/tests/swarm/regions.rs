//! The checksums of a volume. The orders of its region take a time of the host, as those of its files do.
//!
//! ```text
//!   keeper --order--> due at a time --carried out--> answer, and the bell
//!                       killed: some are carried out, the rest never
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use server::checksums::CHUNK;
use server::checksums::cover::{Cover, pieces};
use server::checksums::keeper::Trimmed;
use server::checksums::orders::Order;
use server::checksums::region::{Identity, Region, Verified};
use server::disk::back_end::BackEnd;
use server::disk::back_end::checked::{Answer, Checked, CheckedVolume, RegionWorker, carry_out};

use crate::plan::{Dice, Setting};
use crate::run::BLOCK;

/// The name of the volume with checksums.
pub const VOLUME: &str = "v";

/// The region of a run, which its services have one after another.
#[derive(Clone)]
pub struct Regions(Arc<Mutex<Orders>>);

struct Orders {
    /// The open region of a service.
    region: Option<(Region<File>, Arc<OwnedFd>)>,
    /// Orders by the time at which they are carried out.
    due: VecDeque<(u64, Order)>,
    answers: Vec<Answer>,
    dice: Dice,
    host_us: u64,
    nanos: &'static AtomicU64,
}

/// What a service has of it.
struct Worker(Regions);

impl Regions {
    pub fn new(seed: u64, host_us: u64, nanos: &'static AtomicU64) -> Regions {
        Regions(Arc::new(Mutex::new(Orders {
            region: None,
            due: VecDeque::new(),
            answers: Vec::new(),
            dice: Dice::new(seed),
            host_us,
            nanos,
        })))
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.0.lock().expect("one thread")
    }

    /// A drive whose volume of so many blocks has checksums in a file.
    pub fn over(
        &self,
        drive: Box<dyn BackEnd>,
        file: &Path,
        (setting, blocks): (&Setting, u64),
    ) -> Box<dyn BackEnd> {
        let identity = Identity {
            drive: "d".to_owned(),
            volume: VOLUME.to_owned(),
            block_bytes: setting.sector,
            offset: setting.origin(),
            capacity: drive.shape().bytes(),
        };
        let length = blocks * BLOCK;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(file).expect("a file");
        let (region, intents) = match Region::is_unfinished(&file).expect("a file") {
            true => {
                let region = Region::create(file, identity, length, 3);
                (of_zeroes(region.expect("a region")), Vec::new())
            }
            false => Region::open(file, &identity, length).expect("its own"),
        };
        let volume = CheckedVolume {
            name: VOLUME.to_owned(),
            offset: setting.origin(),
            region,
            intents,
            trimmed: Trimmed::Fixed,
        };
        let checked = Checked::with_workers(drive, vec![volume], &|region, _, bell| {
            self.orders().region = Some((region, Arc::clone(bell)));
            Ok(Box::new(Worker(self.clone())))
        });
        Box::new(checked.expect("a bell"))
    }

    /// When the next order is carried out.
    pub fn next_time(&self) -> Option<u64> {
        self.orders().due.front().map(|&(due, _)| due)
    }

    /// Carries out what is due. The answer is whether anything was.
    pub fn progress(&self, now: u64) -> bool {
        let mut orders = self.orders();
        let mut is_any = false;
        while orders.due.front().is_some_and(|&(due, _)| due <= now) {
            orders.carry_out_next();
            is_any = true;
        }
        is_any
    }

    /// The process is killed: only some of the orders are carried out.
    pub fn kill(&self) {
        let mut orders = self.orders();
        let count = orders.due.len() as u64;
        for _ in 0..orders.dice.below(count + 1) {
            orders.carry_out_next();
        }
        orders.end();
    }
}

/// The region of a volume of zeroes that was scrubbed.
fn of_zeroes(mut region: Region<File>) -> Region<File> {
    let zeroes = [0; CHUNK as usize];
    for chunk in 0..region.length() / CHUNK {
        let mut cover = Cover::default();
        pieces(chunk * CHUNK, &zeroes).for_each(|(_, piece)| cover.put(piece, CHUNK));
        let sums = cover.changes(CHUNK).sums;
        let adopted = region.verify(chunk, &sums, 0).expect("a file");
        assert_eq!(adopted, Verified::Adopted);
    }
    region
}

impl Orders {
    fn carry_out_next(&mut self) {
        let Some((_, order)) = self.due.pop_front() else {
            return;
        };
        let Some((region, bell)) = &mut self.region else {
            return;
        };
        if let Some(answer) = carry_out(region, VOLUME, order) {
            self.answers.push(answer);
            rustix::io::write(bell, &1_u64.to_ne_bytes()).expect("a bell");
        }
    }

    /// No service has the region any more.
    fn end(&mut self) {
        self.region = None;
        self.due.clear();
        self.answers.clear();
    }
}

impl RegionWorker for Worker {
    fn send(&self, order: Order) {
        let mut orders = self.0.orders();
        // The last orders of a process that was killed are not carried out.
        if orders.region.is_some() {
            let takes = 1 + orders.host_us * 1000;
            let takes = orders.dice.below(takes);
            let now = orders.nanos.load(Ordering::Relaxed);
            let before = orders.due.back().map_or(0, |&(due, _)| due);
            orders.due.push_back((before.max(now) + takes, order));
        }
    }

    fn take_answers(&self) -> Vec<Answer> {
        std::mem::take(&mut self.0.orders().answers)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut orders = self.0.orders();
        while !orders.due.is_empty() {
            orders.carry_out_next();
        }
        orders.end();
    }
}
