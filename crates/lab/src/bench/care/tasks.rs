//! Declared tasks: shared reads, any `k` of `n` pieces, and tasks that are hastened.

use block::{Class, Direction, Duration, Extent, Instant, Lba};
use scheduler::background::DeclaredSet;
use serde::Serialize;

use super::{CareBench, CareFigures, CareLength};
use crate::bench::busy::{BegunTask, BusyClient, BusyDrive, BusyFigures, ServedBeside};
use crate::dice::SplitMix;
use crate::{Failure, Progress, named};

/// What tasks gain by declaring sets without order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SharingFigures {
    /// Head time of three overlapping tasks, in parts of that of one task over their union.
    pub union_head_time_ratio: f64,
    /// Blocks of all reads, likewise.
    pub union_read_ratio: f64,
    /// The time until the last of the three has ended, likewise.
    pub union_time_ratio: f64,
    /// The same head time if the three have different priorities.
    pub by_priority_head_time_ratio: f64,
    /// Any half of as many pieces of several sizes.
    pub any_half: Vec<AnyHalfFigures>,
    /// How much longer the foreground's responses are over a run in which the task is hastened, in per cent.
    pub hastened_loss_percent: f64,
    /// A hastened task against clients that read the same blocks.
    pub hastened: Vec<HastenedFigures>,
    /// Writes of the background class, which go in gaps.
    pub free_writes: Vec<FreeWriteFigures>,
}

/// A client that writes beside the load, in the background class and in that of the load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FreeWriteFigures {
    /// KiB of a write.
    pub piece_kib: u64,
    /// Writes that the client has in flight.
    pub depth: usize,
    /// Megabytes a second that are written.
    pub mb_s: f64,
    /// Megabytes a second of that in gaps, in whole writes and in parts of them.
    pub in_gaps_mb_s: f64,
    /// KiB of a command in a gap, in the mean.
    pub in_gaps_kib: f64,
    /// How much longer the foreground's responses are, in per cent.
    pub foreground_loss_percent: f64,
    /// The engine's estimate of that loss.
    pub estimated_loss_percent: f64,
    /// Megabytes a second of the same client in the class of the load.
    pub urgent_mb_s: f64,
    /// How much longer the foreground's responses are beside that one, in per cent.
    pub urgent_loss_percent: f64,
}

/// A task that needs any half of its pieces.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AnyHalfFigures {
    /// KiB of a piece.
    pub piece_kib: u64,
    /// The time for all pieces, in parts of the time for any half of them.
    pub speedup: f64,
}

/// A hastened task against a client.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HastenedFigures {
    /// Requests that the client has in flight.
    pub depth: usize,
    /// The time of the task from then on, in parts of the client's time.
    pub time_ratio: f64,
    /// How much longer the foreground's responses are beside the client, over its time, in per cent.
    pub client_loss_percent: f64,
}

/// The sizes of the sets.
struct Sizes {
    /// Pieces of which the tasks choose.
    pieces: u64,
    /// How long the scan of the whole drive lasts, and each run with writes.
    scan: Duration,
    /// Writes of a run at most.
    writes: u64,
}

/// Bytes of a piece. A choice: a checksum's or an object's block.
const PIECE_BYTES: u64 = 64 << 10;

/// KiB of the pieces of which any half is read: a page, and up to a piece of the other tasks. A choice.
const ANY_KIB: [u64; 3] = [4, 16, 64];

/// Requests in flight of the clients: a program that reads a block at a time, and two that read ahead.
const DEPTHS: [usize; 3] = [1, 4, 16];

/// Writes in flight of the client that writes: as many as the kernel's write-back keeps at a block device. A choice.
const WRITE_DEPTH: usize = 256;

/// How many pieces of a hundred each of the three tasks wants. A choice: each two have 36 in common.
const WANTED_OF_100: u64 = 60;

/// The thousandths of a set after which it is hastened. A choice: a client waits for half of it.
const HASTENED_AT: u64 = 500;

/// The foreground's mean response times over runs, alone and beside tasks.
struct Means {
    alone: f64,
}

impl Means {
    fn loss_percent(&self, run: &BusyFigures) -> f64 {
        (run.mean_ms / self.alone - 1.0) * 100.0
    }
}

/// Measures the case.
pub(super) fn measure(bench: &CareBench, progress: &dyn Progress) -> Result<CareFigures, Failure> {
    let sizes = match bench.length {
        CareLength::Short => Sizes {
            pieces: 400,
            scan: Duration::from_secs(60),
            writes: 20_000,
        },
        CareLength::Long => Sizes {
            pieces: 8_000,
            scan: Duration::from_secs(900),
            writes: 60_000,
        },
    };
    let drive = named::drive(&bench.drive)?;
    let policy = named::policy(&bench.policy)?;
    let dice = (bench.seed, bench.impact_ppm);
    let drive = BusyDrive::new(&drive, bench.belief, policy, dice, progress)?;
    let trial = Trial {
        dice: SplitMix::new(bench.seed),
        pieces: drive.scattered(bench.seed, sizes.pieces, PIECE_BYTES)?,
        drive,
    };
    trial.measure(bench, &sizes, progress)
}

/// A busy drive, and pieces on it.
struct Trial {
    drive: BusyDrive,
    pieces: Vec<Extent>,
    dice: SplitMix,
}

impl Trial {
    fn measure(
        mut self,
        bench: &CareBench,
        sizes: &Sizes,
        progress: &dyn Progress,
    ) -> Result<CareFigures, Failure> {
        let scan = sizes.scan;
        progress.begin("tasks: a scan of the whole drive");
        let all = Extent::new(Lba(0), self.drive.truth().geometry.sectors());
        let all = declared(vec![all.map_err(Failure::failed)?])?;
        let scanned = self.serve(vec![BegunTask::of(all)], scan)?;
        progress.begin("tasks: overlapping sets");
        let sets = self.overlapping()?;
        let mut union: Vec<Extent> = sets.iter().flat_map(|set| set.pieces()).copied().collect();
        union.sort_by_key(|piece| piece.start());
        union.dedup();
        let union = declared(union)?;
        let one = self.serve(vec![BegunTask::of(union.clone())], UNBOUNDED)?;
        let begun = |priority: fn(u8) -> u8| {
            let each = sets.iter().zip(0..);
            let each = each.map(|(set, number)| BegunTask {
                priority: priority(number),
                ..BegunTask::of(set.clone())
            });
            each.collect::<Vec<_>>()
        };
        let three = self.serve(begun(|_| 0), UNBOUNDED)?;
        let by_priority = self.serve(begun(|number| number), UNBOUNDED)?;
        let alone = self.serve(Vec::new(), three.end.since(Instant::ZERO))?;
        let means = Means {
            alone: alone.mean_ms,
        };
        let mut sharing = SharingFigures {
            union_head_time_ratio: ratio(three.gaps.head_time, one.gaps.head_time),
            union_read_ratio: three.read as f64 / one.read.max(1) as f64,
            union_time_ratio: ratio(last_end(&three)?, last_end(&one)?),
            by_priority_head_time_ratio: ratio(by_priority.gaps.head_time, one.gaps.head_time),
            any_half: self.any_half(bench.seed)?,
            ..SharingFigures::default()
        };
        progress.begin("tasks: hastened");
        self.hasten(union.clone(), &means, &mut sharing)?;
        progress.begin("tasks: writes in gaps");
        sharing.free_writes = self.write(bench.seed, sizes)?;
        let rate = |blocks: u64, time: Duration| self.drive.megabytes(blocks) / time.as_secs_f64();
        Ok(CareFigures {
            free_mb_s: rate(union.blocks().0, last_end(&three)?),
            free_mb_s_scan: rate(scanned.tasks[0].delivered, scan),
            foreground_loss_percent: means.loss_percent(&three),
            budget_percent: f64::from(bench.impact_ppm) / 1e4,
            sharing: Some(sharing),
            ..CareFigures::of("tasks", self.drive.mode())
        })
    }

    /// Three sets of the pieces, which overlap.
    fn overlapping(&mut self) -> Result<Vec<DeclaredSet>, Failure> {
        let mut sets = Vec::new();
        for _ in 0..3 {
            let dice = &mut self.dice;
            let mut chosen = self.pieces.clone();
            chosen.retain(|_| dice.below(100) < WANTED_OF_100);
            sets.push(declared(chosen)?);
        }
        Ok(sets)
    }

    /// Tasks for all pieces, and for any half of them.
    fn any_half(&self, seed: u64) -> Result<Vec<AnyHalfFigures>, Failure> {
        let count = self.pieces.len() as u64;
        let each = ANY_KIB.into_iter().map(|piece_kib| {
            let all = declared(self.drive.scattered(seed, count, piece_kib << 10)?)?;
            let half = all.clone().any(all.pieces().len().div_ceil(2));
            let half = half.map_err(Failure::failed)?;
            let time = |set| last_end(&self.serve(vec![BegunTask::of(set)], UNBOUNDED)?);
            Ok(AnyHalfFigures {
                piece_kib,
                speedup: ratio(time(all)?, time(half)?),
            })
        });
        each.collect()
    }

    /// A task that is hastened when half of it was read, against clients that read the other half.
    fn hasten(
        &self,
        set: DeclaredSet,
        means: &Means,
        sharing: &mut SharingFigures,
    ) -> Result<(), Failure> {
        let begun = BegunTask {
            hastened_at: Some(HASTENED_AT),
            ..BegunTask::of(set)
        };
        let run = self.serve(vec![begun], UNBOUNDED)?;
        let (at, rest) = run.tasks[0].hastened.clone().ok_or_else(unfinished)?;
        let took = (Instant::ZERO + last_end(&run)?).since(at);
        sharing.hastened_loss_percent = means.loss_percent(&run);
        for depth in DEPTHS {
            let client = BusyClient {
                extents: rest.clone(),
                direction: Direction::Read,
                class: Class::default(),
                depth,
            };
            let read = self.drive.serve(&ServedBeside {
                client: Some(client),
                ..ServedBeside::default()
            })?;
            let ended = read.client_ended.ok_or_else(unfinished)?;
            sharing.hastened.push(HastenedFigures {
                depth,
                time_ratio: ratio(took, ended.since(Instant::ZERO)),
                client_loss_percent: means.loss_percent(&read),
            });
        }
        Ok(())
    }

    /// A client that writes pieces of several sizes at random places.
    fn write(&self, seed: u64, sizes: &Sizes) -> Result<Vec<FreeWriteFigures>, Failure> {
        let most = sizes.scan;
        let means = Means {
            alone: self.serve(Vec::new(), most)?.mean_ms,
        };
        let each = ANY_KIB.into_iter().map(|piece_kib| {
            let bytes = piece_kib << 10;
            let drive = self.drive.truth();
            let capacity = drive.geometry.sectors().0 * u64::from(drive.block_bytes);
            let count = sizes.writes.min(capacity / bytes / 2);
            let mut extents = self.drive.scattered(seed, count, bytes)?;
            let mut dice = SplitMix::new(seed);
            // A client that writes in the order of the blocks would gain by it.
            for place in (1..extents.len()).rev() {
                extents.swap(place, dice.below(place as u64 + 1) as usize);
            }
            let run = |class| {
                let client = BusyClient {
                    extents: extents.clone(),
                    direction: Direction::Write,
                    class,
                    depth: WRITE_DEPTH,
                };
                self.drive.serve(&ServedBeside {
                    client: Some(client),
                    most,
                    ..ServedBeside::default()
                })
            };
            let (free, urgent) = (run(Class::Background)?, run(Class::default())?);
            let in_gaps = (free.gaps.requests, free.gaps.request_blocks.iter().sum());
            let mb_s = |run: &BusyFigures| {
                let ended = run.client_ended.unwrap_or(run.end).since(Instant::ZERO);
                (run.client_requests * bytes) as f64 / 1e6 / ended.as_secs_f64()
            };
            Ok(FreeWriteFigures {
                piece_kib,
                depth: WRITE_DEPTH,
                mb_s: mb_s(&free),
                in_gaps_mb_s: self.drive.megabytes(in_gaps.1)
                    / free.end.since(Instant::ZERO).as_secs_f64(),
                in_gaps_kib: self.drive.megabytes(in_gaps.1) * 1e6
                    / 1024.0
                    / in_gaps.0.max(1) as f64,
                foreground_loss_percent: means.loss_percent(&free),
                estimated_loss_percent: free.losses.share() * 100.0,
                urgent_mb_s: mb_s(&urgent),
                urgent_loss_percent: means.loss_percent(&urgent),
            })
        });
        each.collect()
    }

    fn serve(&self, tasks: Vec<BegunTask>, most: Duration) -> Result<BusyFigures, Failure> {
        self.drive.serve(&ServedBeside {
            tasks,
            client: None,
            most,
        })
    }
}

/// A run lasts until its tasks have ended.
const UNBOUNDED: Duration = Duration::ZERO;

fn unfinished() -> Failure {
    Failure::failed("a task did not end")
}

fn declared(pieces: Vec<Extent>) -> Result<DeclaredSet, Failure> {
    DeclaredSet::all(pieces).map_err(Failure::failed)
}

/// When the last task had ended.
fn last_end(run: &BusyFigures) -> Result<Duration, Failure> {
    let ends: Option<Vec<Instant>> = run.tasks.iter().map(|task| task.ended).collect();
    let last = ends.and_then(|ends| ends.into_iter().max());
    Ok(last.ok_or_else(unfinished)?.since(Instant::ZERO))
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::busy::BeliefSource;

    #[test]
    fn overlapping_tasks_share_reads_and_any_half_is_sooner() {
        let bench = CareBench {
            cases: vec!["tasks".to_owned()],
            drive: "quantum-atlas-10k".to_owned(),
            policy: "sptf-sw60".to_owned(),
            belief: BeliefSource::Truth,
            seed: 1,
            impact_ppm: 10_000,
            length: CareLength::Short,
        };
        let measured = bench.run(&()).expect("all runs end");
        let [figures] = &measured[..] else {
            panic!("one case: {measured:?}");
        };
        let sharing = figures.sharing.as_ref().expect("figures of tasks");
        // Reads of one union may be cut elsewhere.
        assert!(sharing.union_head_time_ratio < 1.02, "{figures:?}");
        assert!(sharing.union_read_ratio < 1.02, "{figures:?}");
        assert!(sharing.any_half[0].speedup >= 2.0, "{figures:?}");
        for client in &sharing.hastened {
            assert!(client.time_ratio <= 2.0, "{figures:?}");
        }
        // Random writes of the background cost the foreground no more than the budget, and as its own they do.
        for writes in &sharing.free_writes {
            assert!(writes.in_gaps_mb_s > 0.1, "{figures:?}");
            let most = figures.budget_percent;
            assert!(writes.estimated_loss_percent <= most, "{figures:?}");
            assert!(writes.foreground_loss_percent <= most + 0.5, "{figures:?}");
            assert!(writes.urgent_loss_percent > 100.0, "{figures:?}");
        }
    }
}
