//! Sequential throughput of the SCSI drive over the command size (Figures 3, 5 and 6): the smallest size
//! that keeps the full rate.

use crate::plot::{Curve, Panel};
use block::{
    Action, Command, CommandId, Direction, Durability, Duration, Extent, Instant, Lba, Sectors,
    Status,
};
use drive::VirtualDrive;
use rayon::prelude::*;
use simulator::driver::serve_alone;

use crate::Failure;
use crate::paper::finding::{Finding, MeasuredFigure, ShapeVerdict};
use crate::paper::grounds::Grounds;
use crate::paper::scene::{Model, PaperScene};
use crate::paper::{Drawing, Measurement, MeasurementOutcome, PaperBench};

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "sizes of commands",
    claims: &[ID],
    run,
};

const ID: &str = "vio.chunk-size";

/// The results of commands of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sized {
    /// The size.
    pub blocks: u64,
    /// The rate in MB/s.
    pub rate: f64,
    /// The mean length of a command, in milliseconds.
    pub length: f64,
}

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    bench.expect(SIZES.len() * 2);
    let scene = PaperScene::in_firmware(Model::St318437lw)?;
    let reads = over_sizes(bench, &scene, Direction::Read, Lba(0))?;
    let writes = over_sizes(bench, &scene, Direction::Write, Lba(0))?;
    let holds = [&reads, &writes].map(|all| keeps_full_rate_from_the_chunk_on(all));
    let finding = Finding {
        grounds: Grounds::default(),
        id: ID,
        mode: None,
        ours: Vec::<MeasuredFigure>::new(),
        shape: Some(ShapeVerdict::of(&holds)),
        note: format!(
            "{}, no scheduler: one command after the other from block 0 on, {} MB each; blocks and MB/s: \
             reads {}; writes {}",
            Model::St318437lw.name(),
            BYTES / 1_000_000,
            listed(&reads),
            listed(&writes),
        ),
    };
    Ok(MeasurementOutcome {
        findings: vec![finding],
        drawings: vec![Drawing {
            name: "figures-3-5-and-6",
            panels: drawn("ST318437LW", &reads, &writes),
        }],
        ..MeasurementOutcome::default()
    })
}

/// All sizes from a block on, each on a fresh drive.
///
/// # Errors
/// If a command ends with an error.
pub(super) fn over_sizes(
    bench: &PaperBench,
    scene: &PaperScene,
    direction: Direction,
    from: Lba,
) -> Result<Vec<Sized>, Failure> {
    let sized = SIZES.into_par_iter().map(|blocks| {
        let sized = sequential(scene.drive(), direction, from, blocks);
        bench.done();
        sized
    });
    sized.collect()
}

/// The sizes and rates as a list.
pub(super) fn listed(all: &[Sized]) -> String {
    let all = all
        .iter()
        .map(|one| format!("{} {:.1}", one.blocks, one.rate));
    all.collect::<Vec<_>>().join(", ")
}

/// Reads or writes from a block on in commands of `blocks`, one after the other.
///
/// # Errors
/// If a command ends with an error.
pub(super) fn sequential(
    mut drive: VirtualDrive,
    direction: Direction,
    from: Lba,
    blocks: u64,
) -> Result<Sized, Failure> {
    let bytes = u64::from(drive.truth().block_bytes);
    let commands = BYTES / (blocks * bytes);
    let durability = Durability::Volatile;
    let mut now = Instant::ZERO;
    for number in 0..commands {
        let extent = Extent::new(Lba(from.0 + number * blocks), Sectors(blocks));
        let extent = extent.map_err(Failure::failed)?;
        let action = match direction {
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        let command = Command::new(CommandId(number), action);
        let outcome = serve_alone(&mut drive, now, command).map_err(Failure::failed)?;
        if outcome.status != Status::Good {
            return Err(Failure::failed(format!("{command:?}: {outcome:?}")));
        }
        now = outcome.at;
    }
    let took = now.since(Instant::ZERO).max(Duration::from_nanos(1));
    Ok(Sized {
        blocks,
        rate: (commands * blocks * bytes) as f64 / 1e6 / took.as_secs_f64(),
        length: took.as_millis_f64() / commands.max(1) as f64,
    })
}

fn keeps_full_rate_from_the_chunk_on(all: &[Sized]) -> bool {
    let at = |blocks| {
        let found = all.iter().find(|one| one.blocks == blocks);
        found.map_or(f64::NAN, |one| one.rate)
    };
    at(CHUNK) >= FULL * best(all) && at(SMALL) <= SLOW * best(all)
}

/// The best rate of any size.
pub(super) fn best(all: &[Sized]) -> f64 {
    all.iter().map(|one| one.rate).fold(0.0, f64::max)
}

/// Throughput, and the length of a command, over its size.
pub(super) fn drawn(drive: &str, reads: &[Sized], writes: &[Sized]) -> Vec<Panel> {
    let panel = |title: &str, y_label: &str, value: fn(&Sized) -> f64| {
        let curve = |name: &str, all: &[Sized]| {
            let points = all.iter().map(|one| (one.blocks as f64, value(one)));
            Curve {
                name: name.to_owned(),
                points: points.collect(),
            }
        };
        Panel::Lines {
            title: format!("{title}, {drive}, sequential"),
            x_label: "blocks of 512 B in a command".to_owned(),
            y_label: y_label.to_owned(),
            curves: vec![curve("reads", reads), curve("writes", writes)],
        }
    };
    vec![
        panel("Throughput over the size of a command", "MB/s", |one| {
            one.rate
        }),
        panel("How long a command takes", "ms", |one| one.length),
    ]
}

/// The paper's chunk, in blocks.
const CHUNK: u64 = 50;

/// A chunk that is too small.
const SMALL: u64 = 12;

/// Smallest full rate, and largest reduced rate. Choices.
pub(super) const FULL: f64 = 0.98;
pub(super) const SLOW: f64 = 0.9;

/// Sizes in blocks; the last are those of the paper's requests.
pub(super) const SIZES: [u64; 12] = [2, 6, 12, 25, 37, 50, 75, 100, 500, 1000, 2000, 4000];

/// Bytes that are moved in each size.
pub(super) const BYTES: u64 = 40_000_000;
