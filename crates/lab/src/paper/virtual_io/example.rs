//! The paper's example, recomputed.

use block::{Duration, Instant};
use simulator::ledger::{Ledger, RunTotals};

use crate::Failure;
use crate::paper::finding::{Finding, MeasuredFigure};
use crate::paper::grounds::Grounds;
use crate::paper::{Measurement, MeasurementOutcome, PaperBench};

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "an example",
    claims: &[ID, CHUNKING],
    run,
};

const ID: &str = "vio.example";
const CHUNKING: &str = "vio.example.chunking";

fn run(_: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    // Seek, rotation and transfer are one command.
    let before = expected_wait(Duration::ZERO, &[millis(14 + 8 + 100)])?;
    // The seek is two, somebody else may have the rotation, and each chunk is one.
    let mut commands = vec![millis(9); 2];
    commands.extend([millis(1); 100]);
    let after = expected_wait(millis(8), &commands)?;
    // 500 kB at 20 MB/s are 25 ms, and 25 chunks of 20 kB.
    let whole = expected_wait(Duration::ZERO, &[millis(25)])?;
    let chunked = expected_wait(Duration::ZERO, &[millis(1); 25])?;
    let figure = |name: &str, value| MeasuredFigure {
        name: Some(name.to_owned()),
        value,
    };
    let finding = |id, (before, after): (f64, f64), note| Finding {
        grounds: Grounds::default(),
        id,
        mode: None,
        ours: vec![figure("before_ms", before), figure("after_ms", after)],
        shape: None,
        note,
    };
    let note = format!(
        "half the sum of the squares of the commands' times, over all of the time: the rotation is \
         free for others, and counts; over the commands' own: {:.2} and {:.2} ms",
        before.1, after.1,
    );
    let chunks = String::from("the same sum, of a transfer alone, as one command and as 25");
    Ok(MeasurementOutcome::figures(vec![
        finding(ID, (before.0, after.0), note),
        finding(CHUNKING, (whole.0, chunked.0), chunks),
    ]))
}

/// The expected wait over all time, and over the commands' own time. The pause precedes the first
/// of consecutive commands, or is zero.
fn expected_wait(pause: Duration, commands: &[Duration]) -> Result<(f64, f64), Failure> {
    let mut ledger = Ledger::new(512, 1);
    let mut now = Instant::ZERO;
    for (place, &length) in commands.iter().enumerate() {
        if place == 1 {
            now += pause;
        }
        ledger.record_command(now, now + length);
        now += length;
    }
    let report = ledger.report(&RunTotals::default());
    let figures = report.commands;
    let figures = figures.ok_or_else(|| Failure::failed("an example without commands"))?;
    Ok((figures.expected_wait_ms, figures.expected_wait_if_busy_ms))
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
