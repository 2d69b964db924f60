//! The system model of caches in levels: a golden table of exact sums and counters, so that whoever
//! makes it faster sees that it does the same.

use std::fmt::Write;
use std::sync::Arc;

use block::{Direction, Instant, Interval};
use cache::{coordinator, prefetch, replacement};
use drive::Profile;
use simulator::caching::{
    ArrivalTiming, BadSetup, CacheArrival, CacheLoad, CacheSpec, CachingReport, CachingSetup,
    FileEnds, Link, LowerLevel, Scheduler, System, Writes, run,
};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/caching.csv");

/// Blocks that the load touches.
const FOOTPRINT: u64 = 20_000;

/// Requests of each client.
const REQUESTS: u64 = 3_000;

/// Each client continues one of four streams three times in four, or jumps; half of the jumps go to a
/// tenth of the blocks. Files are streams.
struct Dice {
    state: u64,
    streams: [u64; 4],
    left: u64,
    at: u64,
}

impl Dice {
    fn new(client: u64) -> Self {
        Self {
            state: client + 1,
            streams: [0, 5_000, 10_000, 15_000],
            left: REQUESTS,
            at: 0,
        }
    }

    fn roll(&mut self, bound: u64) -> u64 {
        // Knuth's MMIX generator: any would do.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    fn request(&mut self, client: u32) -> Option<CacheArrival> {
        self.left = self.left.checked_sub(1)?;
        let stream = self.roll(4) as usize;
        let count = 1 + self.roll(6);
        let first = match self.roll(8) {
            0 => self.roll(FOOTPRINT / 10),
            1 => self.roll(FOOTPRINT),
            _ => self.streams[stream] % FOOTPRINT,
        };
        self.streams[stream] = first + count;
        self.at += self.roll(20_000_000);
        Some(CacheArrival {
            at: Instant::from_nanos(self.at),
            client,
            file: stream as u64,
            blocks: Interval::of(first, count),
            within: Interval::new(0, FOOTPRINT + 10),
            direction: Direction::Read,
        })
    }
}

struct Clients(Vec<Dice>);

impl CacheLoad for Clients {
    fn arrival(&mut self, client: u32) -> Result<Option<CacheArrival>, BadSetup> {
        Ok(self.0[client as usize].request(client))
    }
}

/// What stands at both levels and between them, how many levels and clients, and the pace.
#[derive(Clone, Copy)]
struct Composition {
    frames: (u64, u64),
    replacement: &'static str,
    prefetch: &'static str,
    coordinator: &'static str,
    levels: usize,
    clients: usize,
    pace: ArrivalTiming,
}

const PLAIN: Composition = Composition {
    frames: (1_000, 1_000),
    replacement: "lru",
    prefetch: "ra",
    coordinator: "pfc",
    levels: 2,
    clients: 1,
    pace: ArrivalTiming::Closed,
};

impl Composition {
    fn run(&self, profile: &Arc<Profile>) -> CachingReport {
        let lower = LowerLevel {
            level: CacheSpec::new(self.frames.1, self.replacement, self.prefetch),
            coordinator: self.coordinator.to_owned(),
            link: Link::LAN,
        };
        let setup = CachingSetup {
            clients: vec![
                CacheSpec::new(self.frames.0, self.replacement, self.prefetch);
                self.clients
            ],
            lower: vec![lower; self.levels - 1],
            drive: Arc::clone(profile),
            scheduler: Scheduler::Elevator,
            file_ends: FileEnds::AllLevels,
            writes: Writes::AsReads,
        };
        let mut system = System::new(&setup).expect("a system");
        let mut load = Clients((0..self.clients as u64).map(Dice::new).collect());
        run(&mut system, &mut load, self.pace).expect("a run")
    }

    fn row(&self, profile: &Arc<Profile>) -> String {
        let report = self.run(profile);
        let pace = match self.pace {
            ArrivalTiming::Open => "open",
            ArrivalTiming::Closed | ArrivalTiming::Outstanding(_) => "closed",
        };
        let mut row = format!(
            "{},{},{},{},{},{},{},{pace},{},{},{},{},{},{}",
            self.frames.0,
            self.frames.1,
            self.replacement,
            self.prefetch,
            self.coordinator,
            self.levels,
            self.clients,
            report.response.total_nanos(),
            report.ended.as_nanos(),
            report.disk.commands,
            report.disk.blocks,
            report.disk.busy.as_nanos(),
            report.duplicated,
        );
        for level in &report.levels {
            let _ = write!(
                row,
                ",{} {} {} {} {} {} {} {} {} {}",
                level.requests,
                level.asked,
                level.valid,
                level.in_flight,
                level.silent,
                level.bypassed,
                level.prefetched,
                level.readmore,
                level.unused,
                level.refused,
            );
        }
        row
    }
}

/// Every prefetcher with every coordinator, every replacement, the ambiguities of PFC that change what
/// a level does, more levels and clients, requests at their times, and caches so small that every frame is in
/// flight at times.
fn compositions() -> Vec<Composition> {
    let mut all = Vec::new();
    for prefetch in prefetch::ALL {
        for coordinator in coordinator::ALL {
            let replacement = match coordinator.name {
                "du" => "du",
                _ => "lru",
            };
            let two = Composition {
                replacement,
                prefetch: prefetch.name,
                coordinator: coordinator.name,
                ..PLAIN
            };
            all.push(two);
            all.push(Composition {
                frames: (400, 40),
                levels: 3,
                clients: 3,
                ..two
            });
            all.push(Composition {
                frames: (9, 6),
                clients: 3,
                ..two
            });
            all.push(Composition {
                pace: ArrivalTiming::Open,
                ..two
            });
        }
    }
    all.extend(replacement::ALL.iter().map(|entry| Composition {
        replacement: entry.name,
        prefetch: "sarc",
        clients: 2,
        ..PLAIN
    }));
    let readings = [
        "pfc(a11=otherwise)",
        "pfc(a12=otherwise)",
        "pfc(a15=otherwise)",
        "pfc(a16=otherwise)",
        "pfc(a17=otherwise)",
    ];
    all.extend(readings.into_iter().map(|coordinator| Composition {
        coordinator,
        prefetch: "amp",
        clients: 2,
        ..PLAIN
    }));
    all
}

#[test]
fn golden_sums_and_counters_of_every_composition() {
    let entry = drive::catalog::find("seagate-cheetah-9lp").expect("a shipped drive");
    let profile = Arc::new(entry.profile().expect("a valid profile"));
    let mut rows = String::from(
        "l1,l2,replacement,prefetch,coordinator,levels,clients,pace,response_ns,ended_ns,commands,\
         disk_blocks,busy_ns,duplicated,requests asked valid in_flight silent bypassed prefetched \
         readmore unused refused of each level\n",
    );
    for composition in compositions() {
        let _ = writeln!(rows, "{}", composition.row(&profile));
    }
    if std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::write(GOLDEN, &rows).expect("the golden table can be written");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("the golden table");
    for (golden, ours) in golden.lines().zip(rows.lines()) {
        assert_eq!(golden, ours, "`cargo xtask bless` if this is right");
    }
    assert_eq!(golden, rows);
}
