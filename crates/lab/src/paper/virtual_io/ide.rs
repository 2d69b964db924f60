//! The IDE drive of Figures 5 to 7: sequential throughput and CPU utilisation over the command size.
//!
//! ```text
//!   rate   |      .--------.          a: the smallest size at the full rate, which the profiler finds
//!          |    .'  a      b'.        b: the size beyond which the buffer is too small
//!   CPU    |\\__________________      falls with the number of commands
//!          +---------------------- size of a command
//! ```

use block::{Direction, Lba, Sectors};
use drive::profile::Chunks;
use simulator::workload::{Overrides, Placement, Workload};

use super::chunks::{BYTES, FULL, SIZES, SLOW, Sized, best, drawn, listed, over_sizes, sequential};
use crate::Failure;
use crate::paper::cpu::{Background, cost};
use crate::paper::finding::{Finding, MeasuredFigure, ShapeVerdict};
use crate::paper::grounds::{Grounds, OtherSetup};
use crate::paper::scene::{Model, PaperScene, load};
use crate::paper::serving::NOISE;
use crate::paper::{Drawing, Measurement, MeasurementOutcome, PaperBench};
use crate::plot::{Curve, Panel};

/// The measurement of throughput.
pub const THROUGHPUT: Measurement = Measurement {
    what: "sizes of commands on an IDE drive",
    claims: &[RATE],
    run: throughput,
};

/// The measurement of CPU utilisation.
pub const UTILISATION: Measurement = Measurement {
    what: "CPU time of sizes of commands",
    claims: &[CPU],
    run: utilisation,
};

const RATE: &str = "vio.chunk-size.ide";
const CPU: &str = "vio.cpu.chunk-size";

fn throughput(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    bench.expect(SIZES.len() * 3 + 1);
    let scene = PaperScene::in_firmware(MODEL)?;
    let reads = over_sizes(bench, &scene, Direction::Read, Lba(0))?;
    let writes = over_sizes(bench, &scene, Direction::Write, Lba(0))?;
    let middle = Lba(scene.truth().geometry.sectors().0 / 2);
    let inner = over_sizes(bench, &scene, Direction::Read, middle)?;
    let chunks = PaperScene::external(MODEL, NOISE)?.belief().chunks;
    bench.done();
    let Chunks { least, most } =
        chunks.ok_or_else(|| Failure::failed("the profiler found no sizes of commands"))?;
    let at_least = |from| sequential(scene.drive(), Direction::Read, from, least.0);
    let (outside, inside) = (at_least(Lba(0))?, at_least(middle)?);
    let shape = |found: &Sized, reads: &[Sized], full: f64| {
        ShapeVerdict::of(&[
            found.rate >= full * best(reads),
            is_slower_if_small(reads),
            is_slower_if_small(&writes),
        ])
    };
    let setups = [
        (
            String::from("reads from the middle of the drive on"),
            shape(&inside, &inner, FULL),
        ),
        (
            format!(
                "within {:.0} %, the profiler's own bound",
                (1.0 - profiler::firmware::FULL) * 100.0
            ),
            shape(&outside, &reads, profiler::firmware::FULL),
        ),
    ];
    let note = format!(
        "{}, no scheduler: one command after the other from block 0 on, {} MB each; blocks and MB/s: reads {}; \
         writes {}; reads from the middle on {}; the profiler finds with a seek noise of {NOISE} that the smallest \
         chunk is {} blocks ({:.1} MB/s, in the middle {:.1}) and {}",
        MODEL.name(),
        BYTES / 1_000_000,
        listed(&reads),
        listed(&writes),
        listed(&inner),
        least.0,
        outside.rate,
        inside.rate,
        largest(most),
    );
    let nothing: [(&str, f64); 0] = [];
    let beside = setups.map(|(name, verdict)| OtherSetup::several(name, &nothing).shaped(verdict));
    let finding = Finding {
        grounds: Grounds::default(),
        id: RATE,
        mode: None,
        ours: Vec::new(),
        shape: Some(shape(&outside, &reads, FULL)),
        note,
    };
    let finding = finding.beside(beside).read_as(
        "an approximate WD400BB: the text that could be read names no IDE drive and no rates",
    );
    Ok(MeasurementOutcome {
        findings: vec![finding],
        drawings: vec![Drawing {
            name: "figures-5-and-6-ide",
            panels: drawn("WD400BB", &reads, &writes),
        }],
        ..MeasurementOutcome::default()
    })
}

fn largest(most: Option<Sectors>) -> String {
    most.map_or(String::from("no largest one"), |most| {
        format!("the largest {} blocks", most.0)
    })
}

fn is_slower_if_small(all: &[Sized]) -> bool {
    all.first()
        .is_some_and(|smallest| smallest.rate <= SLOW * best(all))
}

fn utilisation(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    bench.expect(SIZES.len());
    let scene = PaperScene::in_firmware(MODEL)?;
    let mut shares = Vec::new();
    let mut listed = Vec::new();
    // One after the other: CPU time is counted for the whole process.
    for blocks in SIZES {
        let kb = blocks as f64 * 0.512;
        let requests = bench.requests(COMMANDS);
        let cost = cost(&scene, &reader(blocks)?, "fcfs", Background::None, requests)?;
        bench.done();
        shares.push((kb, cost.percent()));
        let each = cost.each * 1e6;
        listed.push(format!("{blocks} {each:.2} us, {:.3} %", cost.percent()));
    }
    let shape = ShapeVerdict::of(&[
        shares.windows(2).all(|pair| pair[0].1 > pair[1].1),
        falls_mostly_before(&shares, PUBLISHED_KB),
    ]);
    let note = format!(
        "CPU time of the engine's decisions alone, of this machine, without kernel or copying, while {} reads from \
         block 0 on in requests of the size of a command; blocks, CPU time of a command, utilisation: {}",
        MODEL.name(),
        listed.join("; ")
    );
    let finding = Finding {
        grounds: Grounds {
            reading: String::from(
                "constant: from this size on at most a tenth of the whole fall is left",
            ),
            incomparable: Some(
                "theirs is the share of a whole machine of about 2002 with kernel, interrupts and copying, on an \
                 IDE drive that the text does not name; ours is the engine's decisions alone on this machine today",
            ),
            ..Grounds::default()
        },
        id: CPU,
        mode: None,
        ours: vec![MeasuredFigure {
            name: Some(String::from("constant_from_kb")),
            value: constant_from(&shares),
        }],
        shape: Some(shape),
        note,
    };
    Ok(MeasurementOutcome {
        findings: vec![finding],
        drawings: vec![Drawing {
            name: "figure-7",
            panels: vec![Panel::Lines {
                title: String::from(
                    "CPU utilisation by the engine while a WD400BB is read sequentially, this machine",
                ),
                x_label: String::from("kB in a command"),
                y_label: String::from("% of a CPU"),
                curves: vec![Curve {
                    name: String::from("ours"),
                    points: shares,
                }],
            }],
        }],
        ..MeasurementOutcome::default()
    })
}

/// One sequential reader of the whole drive, whose requests are commands of this size.
fn reader(blocks: u64) -> Result<Workload, Failure> {
    let flags = Overrides {
        tasks: Some(1),
        size_kib: Some(blocks as f64 / 2.0),
        ..Overrides::default()
    };
    let mut load = load("streams", &flags)?;
    load.placement = Placement::Streams { streams: 1 };
    load.align_bytes = None;
    Ok(load)
}

/// Whether more of the fall is before this size than after it.
fn falls_mostly_before(shares: &[(f64, f64)], kb: f64) -> bool {
    let (Some(first), Some(last)) = (shares.first(), shares.last()) else {
        return false;
    };
    let at = shares.iter().find(|(size, _)| *size >= kb);
    at.is_some_and(|at| first.1 - at.1 > at.1 - last.1)
}

/// The first size from which on at most a tenth of the whole fall is left.
fn constant_from(shares: &[(f64, f64)]) -> f64 {
    let (Some(first), Some(last)) = (shares.first(), shares.last()) else {
        return f64::NAN;
    };
    let left = (first.1 - last.1) * REST;
    let from = shares.iter().find(|(_, share)| share - last.1 <= left);
    from.map_or(f64::NAN, |(kb, _)| *kb)
}

/// The drive. An assumption: see its profile.
const MODEL: Model = Model::CaviarWd400bb;

/// The size from which on the paper's CPU utilisation is constant (`vio.cpu.chunk-size`).
const PUBLISHED_KB: f64 = 50.0;

/// The rest of the fall that counts as constant. A choice.
const REST: f64 = 0.1;

/// Recorded commands of each size.
const COMMANDS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::{constant_from, falls_mostly_before};

    #[test]
    fn the_fall_of_a_curve_is_split_at_a_size() {
        let steep = [(1.0, 100.0), (10.0, 40.0), (50.0, 12.0), (500.0, 2.0)];
        assert!(falls_mostly_before(&steep, 50.0) && !falls_mostly_before(&steep, 0.5));
        assert!(
            (constant_from(&steep) - 500.0).abs() < 1e-9,
            "12 is 10 % above 2 of 98"
        );
        let flat = [(1.0, 100.0), (10.0, 11.0), (50.0, 3.0), (500.0, 2.0)];
        assert!((constant_from(&flat) - 10.0).abs() < 1e-9);
        let late = [(1.0, 100.0), (50.0, 90.0), (500.0, 2.0)];
        assert!(!falls_mostly_before(&late, 50.0));
        assert!(constant_from(&[]).is_nan() && !falls_mostly_before(&[], 1.0));
    }
}
