//! Power cuts of an emulated drive with checksums, under a load that knows what it wrote: no cut raises an alarm,
//! and flipped bits are found.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use block::Durability;
use block::operation::{Ask, OperationError};
use drive::catalog::find;
use drive::{Imperfections, VirtualDrive};
use nbd::Style;
use nbd::request::Asked;
use server::checksums::CHUNK;
use server::checksums::keeper::Trimmed;
use server::checksums::pass::{Damage, DamageKind};
use server::checksums::region::{Identity, Region};
use server::disk::back_end::BackEnd;
use server::disk::back_end::checked::{Checked, CheckedVolume};
use server::disk::back_end::emulated::Emulated;
use server::disk::back_end::file::{Caching, Image};
use server::event_loop::EventLoop;

use crate::client::Client;
use crate::fickle::{Fails, Fickle, Mood};
use crate::ledger::{Ledger, SPREAD, UNITS};
use crate::station::{FASTEST, Served};
use server::clock::TimeScale;

/// Bytes of the volume: the units of a ledger.
const BYTES: u64 = UNITS * SPREAD;

/// A drive with a write cache, whose checksums are beside its image.
fn served(folder: tempfile::TempDir) -> Served {
    served_in(folder, Mood::default(), Arc::default())
}

/// The same, in a mood. It counts the commands that it fails.
fn served_in(folder: tempfile::TempDir, mood: Mood, failed: Arc<AtomicUsize>) -> Served {
    let entry = find("seagate-cheetah-9lp").expect("it is shipped");
    let truth = Arc::new(entry.profile().expect("a profile"));
    let path = folder.path().to_owned();
    let (belief, scale) = (
        Arc::clone(&truth),
        TimeScale::new(FASTEST * 10.0).expect("a scale"),
    );
    Served::start_behind(None, folder, "sptf", belief, scale, BYTES, move || {
        let blocks = truth.geometry.sectors().0;
        let image = Image::open_or_make(
            &path.join("image"),
            truth.block_bytes,
            blocks,
            Caching::Cached,
        );
        let drive = VirtualDrive::imperfect(truth, Imperfections::default(), 5);
        let inner = Emulated::new(drive, image.expect("an image")).with_dice(5);
        let inner = Fickle::new(Box::new(inner), mood, failed);
        let checked = Checked::new(Box::new(inner), vec![volume(&path)]);
        Box::new(checked.expect("a thread")) as Box<dyn BackEnd>
    })
}

fn volume(folder: &Path) -> CheckedVolume {
    let identity = Identity {
        drive: "test".to_owned(),
        volume: "all".to_owned(),
        block_bytes: 512,
        offset: 0,
        capacity: BYTES,
    };
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(folder.join("sums"))
        .expect("a file");
    let (region, intents) = match file.metadata().expect("it is there").len() {
        0 => (
            Region::create(file, identity, BYTES, 3).expect("a region"),
            Vec::new(),
        ),
        _ => Region::open(file, &identity, BYTES).expect("its own"),
    };
    CheckedVolume {
        name: "all".to_owned(),
        offset: 0,
        region,
        intents,
        trimmed: Trimmed::Fixed,
    }
}

fn keeper<T>(
    event_loop: &mut EventLoop,
    what: impl FnOnce(&mut server::checksums::keeper::Keeper) -> T,
) -> T {
    let (keeper, _) = event_loop
        .checks()
        .and_then(|checks| checks.volume("all"))
        .expect("it has checksums");
    what(keeper)
}

/// Reads the chunks of all units until each was compared, or its read has failed each time.
fn pass(served: &Served, client: &mut Client) -> Vec<Damage> {
    served.ask(|event_loop| keeper(event_loop, |keeper| keeper.begin_pass()));
    for _ in 0..3 {
        served.ask(|event_loop| keeper(event_loop, |keeper| keeper.hasten()));
        while served.ask(|event_loop| {
            keeper(event_loop, |keeper| {
                keeper.active() > 0 || keeper.waits_for_flush()
            })
        }) {
            std::thread::yield_now();
        }
        for unit in 0..UNITS {
            let read = client.ask(Asked::Of(Ask::Read), unit * SPREAD, CHUNK, &[]);
            assert!(matches!(read.result, Ok(()) | Err(OperationError::Io)));
        }
        while served.ask(|event_loop| {
            keeper(event_loop, |keeper| {
                keeper.pass().expect("begun").is_comparing()
            })
        }) {
            std::thread::yield_now();
        }
    }
    served.ask(|event_loop| {
        keeper(event_loop, |keeper| {
            let pass = keeper.pass_mut().expect("begun");
            pass.end();
            pass.damaged().to_vec()
        })
    })
}

/// Goes on with the load, and cuts the drive's power within it. The answer is whether anything was lost.
fn cut(served: &Served, ledger: &mut Ledger, round: u64) -> bool {
    let mut client = Client::connect(&served.socket(), Style::Structured);
    for _ in 0..5 + round * 3 % 60 {
        while client.under_way() < 8 {
            let (rule, unit) = ledger.next();
            ledger.submit(&mut client, rule, unit);
        }
        let end = client.end().expect("the server answers");
        assert_eq!(end.result, Ok(()));
        ledger.ended(&end);
    }
    let lost = served.ask(|event_loop| event_loop.power_cut().expect("a drive with power"));
    while let Some(end) = client.end() {
        match end.result {
            Ok(()) => ledger.ended(&end),
            Err(_) => ledger.failed(&end),
        }
    }
    ledger.nobody_answers();
    !lost.written.is_empty() || !lost.undecided.is_empty()
}

/// A drive tells of what it has dropped once. The client that wrote it has to know.
#[test]
fn what_a_flush_of_the_checksums_has_lost_fails_the_next_flush_of_a_client() {
    let (mood, failed) = (Mood::default(), Arc::new(AtomicUsize::new(0)));
    let folder = tempfile::tempdir().expect("a folder");
    let served = served_in(folder, Arc::clone(&mood), Arc::clone(&failed));
    let mut client = Client::connect(&served.socket(), Style::Structured);
    let write = Asked::Of(Ask::Write {
        durability: Durability::Volatile,
    });
    let written = client.ask(write, 0, CHUNK, &[7; CHUNK as usize]);
    assert_eq!(written.result, Ok(()));
    *mood.lock().expect("a mood") = Fails::Flushes;
    while failed.load(Ordering::Relaxed) == 0 {
        served.ask(|event_loop| keeper(event_loop, |keeper| keeper.hasten()));
        std::thread::yield_now();
    }
    *mood.lock().expect("a mood") = Fails::Nothing;
    let mut flush = || client.ask(Asked::Of(Ask::Flush), 0, 0, &[]).result;
    assert_eq!(flush(), Err(OperationError::Io));
    assert_eq!(flush(), Ok(()));
    drop(client);
    served.stop();
}

#[test]
fn power_cuts_raise_no_alarm_and_flips_are_found() {
    let mut served = served(tempfile::tempdir().expect("a folder"));
    let mut ledger = Ledger::new(21);
    let mut losses = 0;
    let mut rounds = 0..400;
    // How many cuts lose something depends on the machine's pace.
    while rounds.start < 40 || losses <= 10 {
        let round = rounds.next();
        let round = round.unwrap_or_else(|| panic!("{losses}: this tests nothing"));
        losses += usize::from(cut(&served, &mut ledger, round));
        let mut client = Client::connect(&served.socket(), Style::Structured);
        assert_eq!(ledger.verify(&mut client).0, [""; 0]);
        if round % 4 == 3 {
            let damaged = pass(&served, &mut client);
            let alarms = damaged
                .iter()
                .filter(|damage| damage.kind == DamageKind::Changed);
            assert_eq!(alarms.count(), 0, "{damaged:?}");
        }
        if round % 10 == 9 {
            drop(client);
            // A clean end, and the next service.
            served = self::served(served.stop());
        }
    }
    let mut client = Client::connect(&served.socket(), Style::Structured);
    pass(&served, &mut client);
    drop(client);
    let folder = served.stop();
    let image = File::options()
        .read(true)
        .write(true)
        .open(folder.path().join("image"))
        .expect("an image");
    for unit in 0..UNITS {
        let byte = unit * SPREAD + (unit * 997) % CHUNK;
        let mut one = [0];
        image.read_exact_at(&mut one, byte).expect("a byte");
        image
            .write_all_at(&[one[0] ^ 1 << (unit % 8)], byte)
            .expect("a byte");
    }
    let served = self::served(folder);
    let mut client = Client::connect(&served.socket(), Style::Structured);
    let damaged = pass(&served, &mut client);
    let places: Vec<u64> = damaged.iter().map(|damage| damage.offset).collect();
    let expected: Vec<u64> = (0..UNITS)
        .map(|unit| unit * SPREAD + (unit * 997) % CHUNK / 4096 * 4096)
        .collect();
    assert_eq!(places, expected);
    drop(client);
    served.stop();
}
