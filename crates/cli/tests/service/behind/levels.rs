//! Caches in two levels: one service is the back end of another, over a drive that is emulated.

use block::Durability;
use block::operation::{Ask, OperationError};
use nbd::Style;
use nbd::request::Asked;
use server::cache_setting::PAGE;
use server::control::{self, protocol::Ask as Question};
use server::status::{Cache, Status};

use super::process::{Folder, Server, has};
use crate::client::Client;
use crate::ledger::{self, Ledger};

/// A drive that takes no time and has a volatile write cache.
const DRIVE: &str = "{ kind = \"emulated\", drive = \"seagate-cheetah-9lp\", image = \"disk\", \
                     time_scale = 0.01 }";

/// Both levels on one folder, the upper one listening on `upper`.
struct Levels<'f> {
    folder: &'f Folder,
    /// Of the upper and the lower one.
    caches: [&'f str; 2],
}

impl Levels<'_> {
    fn lower(&self) -> Server {
        self.folder.cached("lower", DRIVE, self.caches[1])
    }

    fn upper(&self) -> Server {
        let uri = self.folder.uri("lower");
        let back_end = format!("{{ kind = \"nbd\", uri = \"{uri}\" }}");
        self.folder.cached("upper", &back_end, self.caches[0])
    }

    /// What the cache of one of them says of itself.
    fn told(&self, name: &str) -> Cache {
        let socket = self.folder.path(&format!("{name}.control"));
        let told = control::ask(&socket, &Question::Status).expect("it answers");
        let status: Status = serde_json::from_value(told).expect("a status");
        status.drives[0].caches[0].clone()
    }
}

/// Random reads and writes of random lengths on four connections, each with its own 8 MiB; what they
/// wrote is read and compared.
const VERIFY: &str = "fio --name=verify --ioengine=nbd --uri=@upper --rw=randrw --bsrange=512-64k \
     --iodepth=16 --numjobs=4 --size=8M --offset_increment=8M --verify=crc32c --verify_fatal=1 \
     --do_verify=1 --randseed=7 --fsync=64 --group_reporting";

#[test]
fn fio_reads_what_it_wrote_through_two_levels() {
    if !has("fio") {
        return;
    }
    for caches in [
        [
            "{ size = \"2 MiB\", replacement = \"lru\" }",
            "{ size = \"4 MiB\", coordinator = \"adaptive\" }",
        ],
        [
            "{ size = \"4 MiB\", prefetch = \"amp\", write = \"back\" }",
            "{ size = \"2 MiB\", prefetch = \"ra\", coordinator = \"pfc\", write = \"back\" }",
        ],
        [
            "{ size = \"1 MiB\", prefetch = \"ra\" }",
            "{ size = \"2 MiB\", prefetch = \"none\", coordinator = \"pfc\", readmore = \"free\" }",
        ],
    ] {
        let folder = Folder::new();
        let levels = Levels {
            folder: &folder,
            caches,
        };
        let (lower, upper) = (levels.lower(), levels.upper());
        folder.runs(&VERIFY.replace("--uri=@upper", &format!("--uri={}", folder.uri("upper"))));
        for name in ["upper", "lower"] {
            let told = levels.told(name);
            assert!(
                told.asked_bytes_total > 0 && told.hit_bytes_total > 0,
                "{told:?}"
            );
            assert_eq!(told.lost_bytes_total, 0);
        }
        upper.stop();
        lower.stop();
    }
}

/// One client goes through the beginning of a volume, the other one jumps about behind it.
#[test]
fn what_a_coordinator_reads_more_comes_from_free_blocks() {
    let folder = Folder::new();
    let cache =
        "{ size = \"1 MiB\", prefetch = \"none\", coordinator = \"pfc\", readmore = \"free\" }";
    let served = folder.cached("lower", DRIVE, cache);
    let socket = folder.path("lower");
    let [mut along, mut about] = [(); 2].map(|()| Client::connect(&socket, Style::Structured));
    let half = 1024;
    let fill = |page: u64| (page % 251) as u8 + 1;
    let durability = Durability::Volatile;
    for page in 0..half {
        let contents = [fill(page); PAGE as usize];
        let write = Asked::Of(Ask::Write { durability });
        let end = along.ask(write, page * PAGE, PAGE, &contents);
        assert_eq!(end.result, Ok(()));
    }
    let told = || {
        let control = folder.path("lower.control");
        let told = control::ask(&control, &Question::Status).expect("it answers");
        let status: Status = serde_json::from_value(told).expect("a status");
        status.drives[0].caches[0].clone()
    };
    for step in 0.. {
        if step % 64 == 0 && told().granted_bytes_total > 0 {
            break;
        }
        assert!(step < 20_000, "nothing is granted: {:?}", told());
        let read = Asked::Of(Ask::Read);
        let far = half + step * 977 % half;
        about.submit(read, far * PAGE, PAGE, &[]);
        let first = 2 * step % half;
        let end = along.ask(read, first * PAGE, 2 * PAGE, &[]);
        assert_eq!(end.result, Ok(()));
        let expected = (first..first + 2).flat_map(|page| [fill(page); PAGE as usize]);
        assert!(end.bytes.into_iter().eq(expected), "page {first}");
        assert_eq!(about.end().expect("it answers").result, Ok(()));
    }
    served.stop();
}

/// Which of the levels is killed.
#[derive(Clone, Copy, PartialEq)]
enum Killed {
    Upper,
    Lower,
}

fn load(client: &mut Client, ledger: &mut Ledger, ends: u64) {
    for _ in 0..ends {
        while client.under_way() < 8 {
            let (rule, unit) = ledger.next();
            ledger.submit(client, rule, unit);
        }
        let end = client.end().expect("it answers");
        assert_eq!(end.result, Ok(()));
        ledger.ended(&end);
    }
}

/// Reads what lies before some of the load's units, two pages at a time, so that the coordinator of the lower
/// level would have the units' pages, too.
fn read_towards_units(socket: &std::path::Path, round: u64) {
    let mut along = Client::connect(socket, Style::Structured);
    for unit in 1..12 {
        let unit = 1 + (unit + 11 * round) % (ledger::UNITS - 1);
        for before in [6, 4, 2] {
            let start = unit * ledger::SPREAD - before * PAGE;
            let end = along.ask(Asked::Of(Ask::Read), start, 2 * PAGE, &[]);
            assert_eq!(end.result, Ok(()));
        }
    }
}

/// Kills one of two levels so often in the middle of a load, and looks after what was flushed.
fn survives_kills(which: Killed, caches: [&str; 2], seed: u64) {
    let rounds = std::env::var("KILLS").map_or(12, |n| n.parse().expect("a number of kills"));
    let folder = Folder::new();
    let levels = Levels {
        folder: &folder,
        caches,
    };
    let (mut lower, mut upper) = (levels.lower(), levels.upper());
    let mut ledger = Ledger::new(seed);
    let (mut written, mut granted) = (0, 0);
    for round in 0..rounds {
        let mut client = Client::connect(&folder.path("upper"), Style::Structured);
        load(&mut client, &mut ledger, 20 + round % 60);
        if caches[1].contains("free") {
            read_towards_units(&folder.path("upper"), round);
            load(&mut client, &mut ledger, 8);
            granted += levels.told("lower").granted_bytes_total;
        }
        written += levels.told("upper").written_bytes_total;
        if which == Killed::Upper {
            upper.kill();
            while let Some(end) = client.end() {
                match end.result {
                    Ok(()) => ledger.ended(&end),
                    Err(_) => ledger.failed(&end),
                }
            }
            ledger.nobody_answers();
            upper = levels.upper();
            client = Client::connect(&folder.path("upper"), Style::Structured);
        } else {
            lower.kill();
            lower = levels.lower();
            while client.under_way() > 0 {
                let end = client.end().expect("it answers");
                match end.result {
                    Ok(()) => ledger.ended(&end),
                    Err(_) => ledger.failed(&end),
                }
            }
            // What was answered and not flushed may be lost, which a flush says.
            let flush = Asked::Of(Ask::Flush);
            let mut tries = 0;
            while client.ask(flush, 0, 0, &[]).result == Err(OperationError::Io) {
                tries += 1;
                assert!(tries < 3, "it is said once or twice: by each level");
            }
        }
        assert_eq!(ledger.verify(&mut client).0, [""; 0], "round {round}");
    }
    if caches[0].contains("back") {
        assert!(
            written > 0,
            "something was written back, or this tests nothing"
        );
    }
    if caches[1].contains("free") {
        assert!(granted > 0, "free blocks were taken, or this tests nothing");
    }
    upper.stop();
    lower.stop();
}

/// They hold all that the load writes, so that parts of pages can be kept.
const THROUGH: &str = "{ size = \"8 MiB\", coordinator = \"none\" }";
const BACK: &str = "{ size = \"8 MiB\", write = \"back\" }";

/// The lower level, which goes on with what the upper one reads.
const FREE: &str =
    "{ size = \"8 MiB\", prefetch = \"none\", coordinator = \"pfc\", readmore = \"free\" }";
const FREE_AND_BACK: &str = "{ size = \"8 MiB\", prefetch = \"none\", coordinator = \"pfc\", \
     readmore = \"free\", write = \"back\" }";

#[test]
fn an_upper_level_that_is_killed_above_free_blocks_loses_nothing_flushed() {
    survives_kills(Killed::Upper, [THROUGH, FREE], 37);
    survives_kills(Killed::Upper, [BACK, FREE_AND_BACK], 38);
}

#[test]
fn a_lower_level_that_is_killed_with_free_blocks_loses_nothing_flushed() {
    survives_kills(Killed::Lower, [THROUGH, FREE], 39);
    survives_kills(Killed::Lower, [BACK, FREE_AND_BACK], 40);
}

#[test]
fn an_upper_level_that_is_killed_loses_nothing_flushed() {
    survives_kills(Killed::Upper, [THROUGH, THROUGH], 31);
}

#[test]
fn a_lower_level_that_is_killed_loses_nothing_flushed() {
    survives_kills(Killed::Lower, [THROUGH, THROUGH], 32);
}

#[test]
fn an_upper_level_that_writes_back_loses_nothing_flushed() {
    survives_kills(Killed::Upper, [BACK, THROUGH], 33);
    survives_kills(Killed::Upper, [BACK, BACK], 34);
}

#[test]
fn a_lower_level_that_writes_back_loses_nothing_flushed() {
    survives_kills(Killed::Lower, [THROUGH, BACK], 35);
    survives_kills(Killed::Lower, [BACK, BACK], 36);
}

#[test]
fn a_cache_that_cannot_be_is_refused_with_its_line() {
    let folder = Folder::new();
    let memory = "{ kind = \"memory\", size = \"64 MiB\" }";
    for (cache, key, expected) in [
        ("{ size = 0 }", "size", "at least 4096 bytes"),
        (
            "{ size = \"1 MiB\", replacement = \"xyz\" }",
            "replacement",
            "expected one of lru",
        ),
        (
            "{ size = \"1 MiB\", prefetch = \"xyz\" }",
            "prefetch",
            "expected one of none",
        ),
        (
            "{ size = \"1 MiB\", coordinator = \"pfc(queue=200)\" }",
            "coordinator",
            "queue = \"200\": expected",
        ),
        (
            "{ size = \"1 MiB\", readmore = \"free\" }",
            "readmore",
            "with coordinator none: expected one that reads more",
        ),
    ] {
        let said = folder.refuses(memory, cache);
        let place = format!("refused.toml:6: drive[0].volume[0].cache.{key}: ");
        assert!(
            said.contains(&place) && said.contains(expected),
            "{cache}: {said}"
        );
    }
}
