//! Sequential throughput over the command size (Figures 3 and 5 to 7): the smallest size that keeps
//! the full rate.

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
struct Sized {
    blocks: u64,
    /// The rate in MB/s.
    rate: f64,
    /// The mean length of a command, in milliseconds.
    length: f64,
}

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    bench.expect(SIZES.len() * 2);
    let scene = PaperScene::in_firmware(Model::St318437lw)?;
    let of = |direction| {
        let sized = SIZES.into_par_iter().map(|blocks| {
            let sized = sequential(scene.drive(), direction, blocks);
            bench.done();
            sized
        });
        sized.collect::<Result<Vec<_>, Failure>>()
    };
    let (reads, writes) = (of(Direction::Read)?, of(Direction::Write)?);
    let holds = [&reads, &writes].map(|all| keeps_full_rate_from_the_chunk_on(all));
    let listed = |all: &[Sized]| {
        let all = all
            .iter()
            .map(|one| format!("{} {:.1}", one.blocks, one.rate));
        all.collect::<Vec<_>>().join(", ")
    };
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
        drawings: drawn(&[("reads", &reads), ("writes", &writes)]),
        ..MeasurementOutcome::default()
    })
}

/// Reads or writes blocks from 0 on in commands of `blocks`, one after the other.
fn sequential(
    mut drive: VirtualDrive,
    direction: Direction,
    blocks: u64,
) -> Result<Sized, Failure> {
    let bytes = u64::from(drive.truth().block_bytes);
    let commands = BYTES / (blocks * bytes);
    let durability = Durability::Volatile;
    let mut now = Instant::ZERO;
    for number in 0..commands {
        let extent = Extent::new(Lba(number * blocks), Sectors(blocks));
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
    let best = all.iter().map(|one| one.rate).fold(0.0, f64::max);
    let at = |blocks| {
        let found = all.iter().find(|one| one.blocks == blocks);
        found.map_or(f64::NAN, |one| one.rate)
    };
    at(CHUNK) >= FULL * best && at(SMALL) <= SLOW * best
}

fn drawn(all: &[(&str, &[Sized])]) -> Vec<Drawing> {
    let panel = |title: &str, y_label: &str, value: fn(&Sized) -> f64| {
        let curve = |(name, all): &(&str, &[Sized])| Curve {
            name: (*name).to_owned(),
            points: all
                .iter()
                .map(|one| (one.blocks as f64, value(one)))
                .collect(),
        };
        Panel::Lines {
            title: format!("{title}, ST318437LW, sequential"),
            x_label: "blocks of 512 B in a command".to_owned(),
            y_label: y_label.to_owned(),
            curves: all.iter().map(curve).collect(),
        }
    };
    vec![Drawing {
        name: "figures-3-and-5-to-7",
        panels: vec![
            panel("Throughput over the size of a command", "MB/s", |one| {
                one.rate
            }),
            panel("How long a command takes", "ms", |one| one.length),
        ],
    }]
}

/// The paper's chunk, in blocks.
const CHUNK: u64 = 50;

/// A chunk that is too small.
const SMALL: u64 = 12;

/// Smallest full rate, and largest reduced rate. Choices.
const FULL: f64 = 0.98;
const SLOW: f64 = 0.9;

/// Sizes in blocks; the last are those of the paper's requests.
const SIZES: [u64; 12] = [2, 6, 12, 25, 37, 50, 75, 100, 500, 1000, 2000, 4000];

/// Bytes that are moved in each size.
const BYTES: u64 = 40_000_000;
