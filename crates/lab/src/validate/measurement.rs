//! Measured samples of a real drive, and DiskSim's results for the same requests.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroU64;
use std::path::Path;

use block::{Direction, Duration, Extent};
use drive::Profile;
use simulator::trace::{Format, OnBad, SkippedLines, TraceError, TraceReader};

use super::Sample;
use crate::{Failure, lent};

/// An error of measured times. Each names the file and the line.
#[derive(Debug, thiserror::Error)]
pub enum MeasurementError {
    /// The trace is invalid.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A request has no measured time.
    #[error(
        "{file}:{line}: no measured time: expected the `validate` format, six columns with the measured service time and the think time"
    )]
    Unmeasured {
        /// The trace.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// A request is not on the drive.
    #[error(
        "{file}:{line}: {extent} is past the end of {drive}: expected below {capacity} blocks; is this a trace of another drive?"
    )]
    PastEnd {
        /// The trace.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The requested blocks.
        extent: Extent,
        /// The drive's name.
        drive: String,
        /// The drive's size in blocks.
        capacity: u64,
    },
    /// No request is left.
    #[error("{file}: no request on {drive}: expected at least one ({left_out} left out)")]
    Empty {
        /// The trace.
        file: String,
        /// The drive's name.
        drive: String,
        /// The number of skipped lines and requests.
        left_out: u64,
    },
    /// DiskSim's results do not match the trace.
    #[error("{file}:{line}: {problem}")]
    Reference {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The problem, and the expected content.
        problem: String,
    },
}

/// The comparable requests of a trace.
#[derive(Clone, Debug)]
pub struct Measurements {
    /// The samples in the order of the trace.
    pub samples: Vec<Sample>,
    /// The skipped bad lines.
    pub bad_lines: SkippedLines,
    /// The number of skipped requests past the end of the drive.
    pub past_end: u64,
}

impl Measurements {
    /// The number of skipped lines and requests.
    pub fn left_out(&self) -> u64 {
        self.bad_lines.total() + self.past_end
    }
}

/// DiskSim's results for a drive's trace; `None` if they do not exist.
///
/// # Errors
/// If the results do not match `samples`.
pub fn disksim_of(profile: &Profile, samples: &[Sample]) -> Result<Option<Vec<Duration>>, Failure> {
    let Some(directory) = lent::directory_of(profile) else {
        return Ok(None);
    };
    let path = directory.join("disksim_per_request.csv");
    let name = path.display().to_string();
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::input(format!("{name}: {error}"))),
        Ok(file) => disksim(&name, BufReader::new(file), samples)
            .map(Some)
            .map_err(Failure::input),
    }
}

/// Opens a trace in the `validate` format, and reads it for a drive.
///
/// # Errors
/// If the trace is invalid, or of another drive.
pub fn read_trace(file: &Path, profile: &Profile, on_bad: OnBad) -> Result<Measurements, Failure> {
    let format = Format::named("validate");
    let reader = TraceReader::open(file, format, on_bad).map_err(Failure::input)?;
    samples(reader, profile, on_bad).map_err(Failure::input)
}

/// Reads a trace in the `validate` format for a drive. The reader treats bad lines as it was
/// configured; `on_bad` is the treatment of requests past the end of the drive.
///
/// # Errors
/// If the trace has another format, a request past the end of the drive, or no request.
pub fn samples(
    mut reader: TraceReader,
    profile: &Profile,
    on_bad: OnBad,
) -> Result<Measurements, MeasurementError> {
    let block_bytes = NonZeroU64::new(u64::from(profile.block_bytes)).unwrap_or(NonZeroU64::MIN);
    let capacity = profile.geometry.sectors().0;
    let mut samples = Vec::new();
    let mut past_end = 0;
    while let Some(record) = reader.next() {
        let record = record?;
        let (file, line) = (reader.file(), reader.line());
        let extent = record.bytes.blocks(block_bytes);
        let Some(measured) = record.measured else {
            let file = file.to_owned();
            return Err(MeasurementError::Unmeasured { file, line });
        };
        if extent.end().0 > capacity {
            if on_bad == OnBad::Skip {
                past_end += 1;
                continue;
            }
            return Err(MeasurementError::PastEnd {
                file: file.to_owned(),
                line,
                extent,
                drive: profile.name.clone(),
                capacity,
            });
        }
        samples.push(Sample {
            direction: record.direction,
            extent,
            issued: record.at,
            service: measured.service,
            think: measured.think,
        });
    }
    let measurements = Measurements {
        samples,
        bad_lines: reader.skipped().clone(),
        past_end,
    };
    match measurements.samples.is_empty() {
        false => Ok(measurements),
        true => Err(MeasurementError::Empty {
            file: reader.file().to_owned(),
            drive: profile.name.clone(),
            left_out: measurements.left_out(),
        }),
    }
}

/// DiskSim's results from a table with the columns
/// `idx,rw,lbn,blocks,measured_ms,think_after_ms,disksim_ms`. Messages call it `file`.
///
/// # Errors
/// If the table is invalid, or does not match the samples in direction, first block and length.
pub fn disksim(
    file: &str,
    table: impl BufRead,
    samples: &[Sample],
) -> Result<Vec<Duration>, MeasurementError> {
    let refuse = |line, problem| MeasurementError::Reference {
        file: file.to_owned(),
        line,
        problem,
    };
    let mut times = Vec::with_capacity(samples.len());
    // The first line has the headings.
    for (number, line) in (1..).zip(table.lines()).skip(1) {
        let line = line.map_err(|error| refuse(number, error.to_string()))?;
        let sample = samples.get(times.len()).ok_or_else(|| {
            let expected = samples.len();
            refuse(
                number,
                format!("more results than the {expected} requests of the trace"),
            )
        })?;
        times.push(disksim_time(&line, sample).map_err(|problem| refuse(number, problem))?);
    }
    match times.len() == samples.len() {
        true => Ok(times),
        false => Err(refuse(
            times.len() + 1,
            format!("{} results: expected {}", times.len(), samples.len()),
        )),
    }
}

/// The last column of the line of `sample`.
fn disksim_time(line: &str, sample: &Sample) -> Result<Duration, String> {
    let fields: Vec<&str> = line.trim_end().split(',').collect();
    let [_, way, lbn, blocks, _, _, disksim] = fields[..] else {
        return Err(format!("{} fields: expected 7", fields.len()));
    };
    let expected_way = match sample.direction {
        Direction::Read => "R",
        Direction::Write => "W",
    };
    let (start, length) = (sample.extent.start().0, sample.extent.length().0);
    let expected = [
        expected_way.to_owned(),
        start.to_string(),
        length.to_string(),
    ];
    if [way, lbn, blocks] != expected.each_ref().map(String::as_str) {
        return Err(format!(
            "{way} {lbn} {blocks}: expected {}, as in the trace",
            expected.join(" ")
        ));
    }
    disksim
        .parse()
        .ok()
        .and_then(Duration::from_millis_f64)
        .ok_or_else(|| format!("disksim_ms {disksim:?}: expected a time in milliseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::trace::Format;

    const TRACE: &str = "R Hit 100 8 18228.5 20935.44\nW Miss 2050852 8 9000 0\nR Hit 7 1 1 1\n";

    fn read(text: &'static str, on_bad: OnBad) -> Result<Measurements, MeasurementError> {
        let profile = drive::catalog::find("dec-rz26")
            .expect("a shipped drive")
            .profile()
            .expect("a profile");
        let format = Format::named("validate");
        let reader = TraceReader::new("a.trace", text.as_bytes(), format, on_bad)?;
        samples(reader, &profile, on_bad)
    }

    fn refusal(text: &'static str) -> String {
        read(text, OnBad::Refuse).expect_err(text).to_string()
    }

    #[test]
    fn a_request_is_issued_when_the_one_before_and_the_thinking_are_over() {
        let found = read(TRACE, OnBad::Refuse).expect("a trace").samples;
        let nanos: Vec<u64> = found.iter().map(|s| s.issued.as_nanos()).collect();
        assert_eq!(nanos, [0, 39_163_940, 48_163_940]);
        assert_eq!(found[1].direction, Direction::Write);
        assert_eq!(found[1].extent.end().0, 2_050_860, "the very last block");
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_line() {
        for (text, line, words) in [
            (
                "R Hit 1 1 1 1\nR Hit 2050853 8 1 1\n",
                2,
                "past the end of dec-rz26",
            ),
            ("\n\nR Hit 1 1 1 1\nR Hit 9999999 1 1 1\n", 1, "found"),
            (
                "R Hit 1 1 1 1\nR Hit 1 1 1 1 1\n",
                2,
                "wrong number of fields",
            ),
            ("R Hit 1 1 1 1\nR Hit one 1 1 1\n", 2, "lbn"),
            ("R Hit 1 1 1 1\nR Hit 1 0 1 1\n", 2, "zero length"),
            ("R Hit 1 1 1 1\nR Hit 1 1 -1 1\n", 2, "service_us"),
            ("R Hit 1 1 1 1\nR Hit 1 1 nan 1\n", 2, "service_us"),
            ("R Hit 1 1 1 1\nR Hit 1 1", 2, "truncated"),
        ] {
            let said = refusal(text);
            assert!(said.starts_with(&format!("a.trace:{line}: ")), "{said}");
            assert!(said.contains(words), "{said}: expected {words}");
        }
        let said = refusal("");
        assert!(said.starts_with("a.trace: empty trace"), "{said}");
    }

    #[test]
    fn what_is_skipped_is_counted_by_kind() {
        let text = "R Hit 1 1 1 1\nR Hit one 1 1 1\nR Hit 9999999 1 1 1\nW Hit 5 1 1 1\n";
        let found = read(text, OnBad::Skip).expect("two good requests");
        assert_eq!(found.samples.len(), 2);
        assert_eq!((found.bad_lines.total(), found.past_end), (1, 1));
        let nothing = read("R Hit 9999999 1 1 1\n", OnBad::Skip).expect_err("nothing is left");
        assert!(nothing.to_string().contains("1 left out"), "{nothing}");
    }

    #[test]
    fn results_belong_to_the_requests_of_the_trace() {
        let samples = read(TRACE, OnBad::Refuse).expect("a trace").samples;
        let heading = "idx,rw,lbn,blocks,measured_ms,think_after_ms,disksim_ms\n";
        let good = "0,R,100,8,18.2285,20.93544,17\n1,W,2050852,8,9,0,9.25\n2,R,7,1,0.001,0.001,3\n";
        let parse = |lines: &str| {
            let text = format!("{heading}{lines}");
            disksim("d.csv", text.as_bytes(), &samples).map_err(|error| error.to_string())
        };
        let times = [17_000, 9_250, 3_000].map(Duration::from_micros).to_vec();
        assert_eq!(parse(good), Ok(times));
        for (part, by, message) in [
            (
                "1,W",
                "1,R",
                "d.csv:3: R 2050852 8: expected W 2050852 8, as in the trace",
            ),
            (
                "2,R,7",
                "2,R,8",
                "d.csv:4: R 8 1: expected R 7 1, as in the trace",
            ),
            (
                "9.25",
                "-1",
                "d.csv:3: disksim_ms \"-1\": expected a time in milliseconds",
            ),
            (",9.25", "", "d.csv:3: 6 fields: expected 7"),
            (
                "2,R,7,1,0.001,0.001,3\n",
                "",
                "d.csv:3: 2 results: expected 3",
            ),
        ] {
            assert_eq!(parse(&good.replacen(part, by, 1)), Err(message.to_owned()));
        }
        let more = parse(&format!("{good}3,R,7,1,1,1,1\n")).expect_err("one too many");
        assert_eq!(
            more,
            "d.csv:5: more results than the 3 requests of the trace"
        );
    }
}
