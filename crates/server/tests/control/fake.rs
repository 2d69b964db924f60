//! A service with known values, which writes down what it is told.

use std::sync::{Arc, Mutex, mpsc};

use headtime_client::wire;
use server::checkpoint::marks::BitmapStatus;
use server::checkpoint::moment::CheckpointStatus;
use server::checksums::report::ScrubState;
use server::control::{
    BeginCheckpoint, BegunCheckpoint, BitmapChange, Changes, Learn, LearningReport, ListedExport,
    Scan, ScrubOrder, ScrubReport, Service,
};
use server::status::{
    ByKind, Cache, Connection, DriveStatus, Errors, Foreground, GapRequests, Head, HeadKind,
    HeadTime, Impact, Lateness, Mode, Queue, ScrubStatus, ServiceState, Standing, Status,
    StreamTotals, Task, TaskImpact, TaskState, TrafficClass,
};
use server::tasks::Steer;
use server::volume::Release;
use server::volume::streams::StreamEvents;
use server::why::{Query, Slow};

#[path = "drive_parts.rs"]
mod drive_parts;
#[path = "slow_request.rs"]
mod slow_request;

pub use slow_request::slow;

/// What it was told, in words.
#[derive(Clone, Debug)]
pub struct Fake {
    /// How it is. It may become another one.
    pub status: Arc<Mutex<Status>>,
    told: Arc<Mutex<Vec<String>>>,
    /// Holds the next `drain` back: it sends that it has begun, and waits for leave to return.
    pub gate: Arc<Mutex<Option<Gate>>>,
}

/// Where a held call says that it has begun, and where it waits.
pub type Gate = (mpsc::Sender<()>, mpsc::Receiver<()>);

impl Fake {
    /// One that is like this.
    pub fn new(status: Status) -> Self {
        Fake {
            status: Arc::new(Mutex::new(status)),
            told: Arc::default(),
            gate: Arc::default(),
        }
    }

    /// What it was told so far.
    pub fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    fn hear(&self, words: impl Into<String>) {
        self.told.lock().unwrap().push(words.into());
    }
}

impl Service for Fake {
    fn status(&self) -> Status {
        self.status.lock().unwrap().clone()
    }

    fn scan(&self, order: Scan) -> Result<u64, String> {
        self.hear(format!("scan {order:?}"));
        match order.volume.as_str() {
            "db" => Ok(9),
            other => Err(format!(
                "no volume is called \"{other}\": expected one of db"
            )),
        }
    }

    fn scrub(&self, order: &ScrubOrder) -> Result<(), String> {
        self.hear(format!("scrub {order:?}"));
        match order.volume.as_str() {
            "db" => Ok(()),
            other => Err(format!(
                "no volume is called \"{other}\": expected one of db"
            )),
        }
    }

    fn scrubs(&self) -> Vec<ScrubReport> {
        self.hear("scrubs".to_owned());
        Vec::new()
    }

    fn exports(&self) -> Vec<ListedExport> {
        self.hear("exports");
        Vec::new()
    }

    fn begin_checkpoint(&self, order: &BeginCheckpoint) -> Result<BegunCheckpoint, String> {
        self.hear(format!("begin checkpoint {order:?}"));
        Err(format!("no volume {}", order.volume))
    }

    fn release_checkpoint(&self, volume: &str, release: Release) -> Result<(), String> {
        self.hear(format!("release checkpoint {volume} {release:?}"));
        Ok(())
    }

    fn checkpoints(&self) -> Vec<CheckpointStatus> {
        self.hear("checkpoints");
        Vec::new()
    }

    fn bitmaps(&self) -> Vec<BitmapStatus> {
        self.hear("bitmaps");
        Vec::new()
    }

    fn change_bitmap(&self, volume: &str, name: &str, change: BitmapChange) -> Result<(), String> {
        self.hear(format!("bitmap {volume} {name} {change:?}"));
        Ok(())
    }

    fn steer(&self, task: u64, action: Steer) -> Result<(), String> {
        self.hear(format!("steer {task} {action:?}"));
        match task {
            3 => Ok(()),
            _ => Err(format!("no task {task} is under way")),
        }
    }

    fn set_impact(&self, drive: &str, impact_ppm: u32) -> Result<(), String> {
        self.hear(format!("impact {drive} {impact_ppm}"));
        match drive {
            "disk" => Ok(()),
            _ => Err(format!("no drive {drive}: expected one of disk")),
        }
    }

    fn learn(&self, order: &Learn) -> Result<(), String> {
        self.hear(format!("learn {order:?}"));
        match order.drive.as_str() {
            "disk" => Ok(()),
            other => Err(format!("no drive {other}: expected one of disk")),
        }
    }

    fn learned(&self, drive: &str) -> Result<LearningReport, String> {
        let is_begun = self.told().iter().any(|told| told.starts_with("learn "));
        match is_begun {
            true => Ok(learned()),
            false => Err(format!(
                "drive {drive} was not profiled since the start of the service"
            )),
        }
    }

    fn stop_learning(&self, drive: &str) -> Result<(), String> {
        self.hear(format!("stop learning {drive}"));
        Ok(())
    }

    fn follow(&self, drive: &str) -> Result<(), String> {
        self.hear(format!("follow {drive}"));
        match drive {
            "disk" => Ok(()),
            _ => Err(format!("drive {drive} has a belief that it follows")),
        }
    }

    fn why(&self, query: &Query) -> Result<Vec<Slow>, String> {
        self.hear(format!("why {query:?}"));
        match query.request {
            None | Some(1841) => Ok(vec![slow()]),
            Some(other) => Err(format!("request {other} is not kept")),
        }
    }

    fn attach(
        &self,
        user: u32,
        attach: wire::Attach,
        events: StreamEvents,
    ) -> Result<wire::Granted, wire::StreamRefused> {
        self.hear(format!("attach {} of {user}", attach.terms.name));
        if attach.terms.rate == 0 {
            return Err(wire::StreamRefused {
                reason: String::from("a rate of 0"),
                largest_rate: Some(1_000),
                least_memory: None,
            });
        }
        events.send(7, wire::StreamUpdate::Serving);
        Ok(wire::Granted {
            stream: 7,
            ..wire::Granted::default()
        })
    }

    fn position(&self, position: wire::Position) -> Result<(), String> {
        self.hear(format!("position {} {}", position.stream, position.offset));
        Ok(())
    }

    fn refresh(&self, refresh: wire::Refresh) -> Result<wire::FileChange, wire::StreamRefused> {
        self.hear(format!("refresh {}", refresh.stream));
        Ok(wire::FileChange::Moved(4096))
    }

    fn close(&self, stream: u64) -> Result<(), String> {
        self.hear(format!("close {stream}"));
        Ok(())
    }

    fn streams(&self) -> Vec<wire::Listed> {
        vec![drive_parts::stream()]
    }

    fn reload(&self) -> Result<Changes, String> {
        self.hear("reload");
        Ok(Changes {
            applied: vec![String::from("export db-idle is new")],
            after_restart: vec![String::from("drive disk has another back end")],
        })
    }

    fn drain(&self) -> Vec<String> {
        self.hear("drain");
        if let Some((begun, open)) = self.gate.lock().unwrap().take() {
            begun.send(()).unwrap();
            open.recv().unwrap();
        }
        Vec::new()
    }

    fn stop(&self) {
        self.hear("stop");
    }
}

/// Every number is another one, so that none can stand in for another.
pub fn status() -> Status {
    Status {
        version: String::from("0.1.0"),
        uptime_s: 93_784.5,
        state: ServiceState::Serving,
        drives: vec![drive()],
        connections: vec![Connection {
            id: 41,
            front: String::from("nbd"),
            peer: String::from("127.0.0.1:50123"),
            export: String::from("db"),
            class: TrafficClass::Foreground,
            tls: true,
            connected_s: 754.0,
            in_flight: 27,
            requests_total: 1_234_567,
            bytes_total: 5_056_786_432,
        }],
        connections_total: 57,
        connections_refused_total: 6,
        reloads_total: 2,
        scrubs: vec![ScrubStatus {
            volume: String::from("data"),
            state: ScrubState::Running,
            asked_bytes: 1_250_000_000,
            verified_bytes: 437_500_000,
            verified_chunks_total: 91_234,
            changed: 3,
            unreadable: 13,
            adopted_bytes: 196_608,
            skipped_bytes: 262_144,
            oldest_age_s: Some(2_700_000),
            every_s: Some(2_592_000),
            late_by_s: 108_000,
            problem: None,
        }],
    }
}

/// A drive that was profiled.
pub fn learned() -> LearningReport {
    LearningReport {
        drive: String::from("disk"),
        active: false,
        seconds: 244.0,
        stage: String::from("done"),
        known: 0.995,
        period_ms: Some(5.985),
        probes: 32_000,
        probing: 0.91,
        failed: Vec::new(),
        doubt: None,
        profile: Some(String::from("name = \"disk\"\n")),
    }
}

fn streams() -> StreamTotals {
    StreamTotals {
        now: 2,
        memory_bytes: 5 << 20,
        granted_total: 7,
        refused_total: 3,
        late_total: 1,
        lapsed_total: 4,
        overruns_total: 6,
        longest_overrun_us: 1_250,
        strained: false,
        head_ppm: 45_000,
        left_ppm: 655_000,
    }
}

fn drive() -> DriveStatus {
    DriveStatus {
        name: String::from("disk"),
        back_end: String::from("emulated"),
        model: Some(String::from("quantum-atlas-10k")),
        time_scale: Some(4.0),
        capacity_bytes: 9_184_760_832,
        policy: String::from("sptf-sw60"),
        queue: Queue {
            waiting: 14,
            at_drive: 1,
        },
        traffic: vec![
            drive_parts::traffic(TrafficClass::Foreground, 1.0),
            drive_parts::traffic(TrafficClass::BestEffort, 0.25),
        ],
        head: Some(Head {
            cylinder: 4321,
            cylinders: 10_042,
        }),
        head_time: head_time(),
        mode: Mode::Following,
        mode_reason: "97 % of recent commands ended as the belief predicts".to_owned(),
        confidence: Some(0.973),
        gap_requests: GapRequests {
            commands_total: 70,
            read_bytes_total: 12_288,
            written_bytes_total: 4_128_768,
        },
        impact: Impact {
            measured_percent: Some(1.37),
            budget_percent: 2.0,
        },
        tasks: tasks(),
        standing: vec![standing()],
        streams: streams(),
        lateness: Some(Lateness {
            p50_us: 12.0,
            p99_us: 74.0,
            max_us: 312.0,
        }),
        errors: Errors {
            reads_total: 5,
            writes_total: 8,
            flushes_total: 11,
        },
        mirror: Some(mirror()),
        classified: drive_parts::classified(),
        heads: Some(drive_parts::heads()),
        caches: vec![Cache {
            volume: String::from("db"),
            size_bytes: 64 << 20,
            used_bytes: 48 << 20,
            replacement: String::from("arc"),
            prefetch: String::from("linux-6"),
            coordinator: String::from("adaptive"),
            asked_bytes_total: 1_000_000,
            hit_bytes_total: 700_000,
            late_bytes_total: 50_000,
            missed_bytes_total: 250_000,
            readmore: String::from("free"),
            wished_bytes: 40_960,
            ..Cache::default()
        }],
    }
}

fn standing() -> Standing {
    Standing {
        name: String::from("readmore"),
        priority: 0,
        wanted_bytes: 32_768,
        free_bytes_total: 5_000_192,
        idle_bytes_total: 1_000_448,
        failed_bytes_total: 512,
        satisfied_bytes_total: 4_001_792,
        dropped_bytes_total: 802_816,
    }
}

fn tasks() -> Vec<Task> {
    vec![
        Task {
            id: 3,
            name: String::from("scan db"),
            state: TaskState::Active,
            priority: 1,
            asked_bytes: 8_000_000_000,
            done_bytes: 3_408_000_000,
            free_bytes: 2_900_000_000,
            idle_bytes: 408_000_000,
            paid_bytes: 100_000_000,
            failed_bytes: 4096,
            outcome: None,
            problem: None,
            resumed_bytes: 1_200_000_000,
            elapsed_s: 956.0,
            impact: TaskImpact {
                measured_percent: Some(1.21),
                alone: Some(Foreground {
                    requests: 60_123,
                    mean_us: 35_100.0,
                    p50_us: 31_200.0,
                    p99_us: 139_000.0,
                }),
                beside: Some(Foreground {
                    requests: 198_765,
                    mean_us: 35_500.0,
                    p50_us: 31_400.0,
                    p99_us: 141_700.0,
                }),
            },
            mb_per_s: 2.31,
            eta_s: Some(1988.0),
            hastened: false,
            pieces: 1,
            pieces_needed: 1,
            pieces_done: 0,
        },
        Task {
            id: 4,
            name: String::from("scan <b>log</b>"),
            state: TaskState::Suspended,
            asked_bytes: 1_000_000_000,
            done_bytes: 120_000_000,
            free_bytes: 120_000_000,
            problem: Some(String::from("the program ended with exit status: 3")),
            ..Task::default()
        },
    ]
}

/// 200 slices of 5 ms; the sums are the seconds'.
fn head_time() -> HeadTime {
    use HeadKind::{Calibration, Foreground, Free, Idle, Lost, RealTime, Unused};
    let pattern = [
        Foreground, Foreground, Foreground, Free, Foreground, Foreground, RealTime, Foreground,
        Free, Foreground, Foreground, Foreground, Free, Free, Foreground, Foreground, Lost,
        Foreground, Foreground, Idle,
    ];
    let mut timeline: Vec<HeadKind> = pattern.iter().copied().cycle().take(200).collect();
    timeline[120..130].fill(Unused);
    timeline[60] = Calibration;
    let mut second_us = ByKind::default();
    for kind in &timeline {
        second_us.add(*kind, 5000);
    }
    let mut total_us = ByKind::default();
    for (index, kind) in HeadKind::ALL.into_iter().enumerate() {
        total_us.add(kind, 1_500_000 * (index as u64 + 1));
    }
    HeadTime {
        timeline,
        slice_us: 5000,
        second_us,
        total_us,
    }
}

fn mirror() -> server::status::Mirror {
    let leg = |path: &str, state: &str| server::status::Leg {
        path: String::from(path),
        state: String::from(state),
    };
    server::status::Mirror {
        legs: vec![leg("/dev/sdb", "in sync"), leg("/dev/sdc", "being filled")],
        data_bytes: 9 << 30,
        to_copy_bytes: 3 << 30,
        unreadable_bytes: 0,
        marked_bytes: 3 << 30,
        rebuild: Some(server::status::Rebuild {
            means: server::status::RebuildMeans::Gaps,
            gap_bytes: 5 << 30,
            paid_bytes: 1 << 30,
            paid_percent: 2.5,
            mb_per_s: 3.0,
            eta_s: Some(1_074.0),
            deadline_s: Some(3_600.0),
        }),
    }
}
