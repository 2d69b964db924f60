//! The accuracy of external predictions of single requests' head times (section 5.2, Figure 7).
//!
//! Two commands are at the drive. A command's head time is its end less the previous command's end.
//! It is predicted at dispatch, from the head's position as it is then known.
//!
//! ```text
//!   drive      ... -- n-2 --|---- n-1 ----|------ n ------|
//!                           |             '-- measured ---'
//!   scheduler          n is given; its end and that of n-1 are predicted
//! ```
//!
//! The wait for the sector absorbs small errors of the seek time, unless the sector has just
//! passed. So errors are whole revolutions or nearly zero.

use crate::plot::{Bar, BarPart, Curve, Ink, Panel, Series};
use block::{BufferHit, Duration};
use drive::imperfection::Chance;
use rayon::prelude::*;
use simulator::workload::{Overrides, Workload};

use super::finding::Finding;
use super::head_times::{CommandHeadTime, measure_head_times};
use super::scene::{HeadSwitch, Model, Noise, PaperScene, load};
use super::{Drawing, Measurement, MeasurementOutcome, PaperBench};
use crate::{Failure, Label};

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "predictions",
    claims: &[ATLAS_4K, CHEETAH_4K, ATLAS_40K, FILES],
    run,
};

const ATLAS_4K: &str = "fb.prediction.atlas.4k";
const CHEETAH_4K: &str = "fb.prediction.cheetah.4k";
const ATLAS_40K: &str = "fb.prediction.atlas.40k";
const FILES: &str = "fb.prediction.files";

/// A run for a claim, with a noise of seeks.
struct PredictionCase {
    id: &'static str,
    noise: Noise,
    scene: PaperScene,
    load: Workload,
}

/// The head times of a run, and the length of a revolution.
struct PredictionRun {
    times: Vec<CommandHeadTime>,
    revolution: Duration,
}

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let mut cases = Vec::new();
    for id in MEASUREMENT.claims {
        for noise in noises_of(id) {
            cases.push(PredictionCase::new(id, noise)?);
        }
    }
    bench.expect(cases.len());
    let runs = cases
        .par_iter()
        .map(|case| {
            let requests = bench.requests(REQUESTS);
            let times = measure_head_times(&case.scene, &case.load, requests)?;
            bench.done();
            let revolution = case.scene.belief().spindle.period();
            Ok(PredictionRun { times, revolution })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let all: Vec<(PredictionCase, PredictionRun)> = cases.into_iter().zip(runs).collect();
    let findings = MEASUREMENT.claims.iter().map(|id| {
        let runs: Vec<&(PredictionCase, PredictionRun)> =
            all.iter().filter(|(case, _)| case.id == *id).collect();
        finding(id, &runs)
    });
    Ok(MeasurementOutcome {
        findings: findings.collect(),
        drawings: vec![drawing(&all)],
        ..MeasurementOutcome::default()
    })
}

impl PredictionCase {
    fn new(id: &'static str, noise: Noise) -> Result<PredictionCase, Failure> {
        let model = match id {
            CHEETAH_4K => Model::Cheetah18lp,
            _ => Model::Atlas10k(HeadSwitch::Paper),
        };
        let (name, size_kib) = match id {
            FILES => ("small-files", None),
            ATLAS_40K => ("uniform-4k", Some(40.0)),
            _ => ("uniform-4k", Some(4.0)),
        };
        let flags = Overrides {
            tasks: Some(2),
            size_kib,
            ..Overrides::default()
        };
        Ok(PredictionCase {
            id,
            noise,
            scene: PaperScene::external(model, noise)?,
            load: load(name, &flags)?,
        })
    }
}

impl PredictionRun {
    /// The percentage of commands with a property.
    fn share(&self, is_so: impl Fn(&CommandHeadTime) -> bool) -> f64 {
        let count = self.times.iter().filter(|time| is_so(time)).count();
        count as f64 * 100.0 / self.times.len().max(1) as f64
    }

    fn within(&self, micros: u64) -> f64 {
        self.share(|time| is_near(time.error(), 0, micros))
    }

    /// The percentage of commands that took this many revolutions longer than predicted.
    fn turns(&self, turns: i64) -> f64 {
        let way = turns * self.revolution.as_nanos() as i64;
        self.share(|time| is_near(time.error(), way, TURN_MICROS))
    }

    fn hits(&self) -> f64 {
        self.share(|time| time.hit != BufferHit::Miss)
    }

    /// The percentage of mispredicted commands that follow another one.
    fn after_surprise(&self, micros: u64) -> f64 {
        let is_off = |time: &CommandHeadTime| !is_near(time.error(), 0, micros);
        let pairs = self.times.windows(2);
        let count = pairs
            .filter(|two| is_off(&two[0]) && is_off(&two[1]))
            .count();
        count as f64 * 100.0 / self.times.len().max(1) as f64
    }
}

fn is_near(error: i64, to: i64, micros: u64) -> bool {
    error.abs_diff(to) <= micros * 1_000
}

fn finding(id: &'static str, runs: &[&(PredictionCase, PredictionRun)]) -> Finding {
    let mut judged = None;
    let mut others = Vec::new();
    for (case, run) in runs {
        let figures = figures(id, run);
        if case.noise == noise_of(id) {
            judged = Some((figures, case.scene.to_string()));
        } else {
            let values: Vec<String> = figures.iter().map(|f| format!("{:.2}", f.1)).collect();
            others.push(format!("{}: {}", case.noise, values.join(" / ")));
        }
    }
    let (figures, scene) = judged.unwrap_or_default();
    let note = format!(
        "2 commands at the drive; {scene} ({}); {}; the same with {}",
        why(id),
        reads(id),
        others.join(", ")
    );
    Finding::several(id, Label::External, &figures, note)
}

/// The reason for a claim's noise.
fn why(id: &str) -> &'static str {
    match id {
        ATLAS_4K => {
            "fitted to the two figures of rotations, so that only the first one is a test: sigma alone \
             loses as many as it wins"
        }
        CHEETAH_4K => "fitted to the figure of rotations, so that only the first one is a test",
        _ => "that of the 4 KB requests, nothing is fitted to these",
    }
}

/// Further remarks on the figures.
fn reads(id: &str) -> &'static str {
    match id {
        ATLAS_40K => {
            "a zero-latency read that begins in its middle leaves over the bus in order, so that it \
             ends up to 0.5 ms later than the belief has it, and the next one is shorter by that"
        }
        FILES => {
            "single blocks of 4 KiB leave little to mispredict in the overlap with the bus, and few \
             of them are still in the drive's buffer: their layout of files is not published, ours \
             surprises less"
        }
        _ => "a rotation means one to 0.3 ms, because of what is read from the middle",
    }
}

fn figures(id: &str, run: &PredictionRun) -> Vec<(&'static str, f64)> {
    match id {
        ATLAS_4K => vec![
            ("within_50us_percent", run.within(50)),
            ("one_rotation_long_percent", run.turns(1)),
            ("one_rotation_short_percent", run.turns(-1)),
        ],
        CHEETAH_4K => vec![
            ("within_50us_percent", run.within(50)),
            ("one_rotation_either_percent", run.turns(1) + run.turns(-1)),
        ],
        ATLAS_40K => vec![("within_150us_percent", run.within(150))],
        _ => vec![
            ("within_150us_percent", run.within(150)),
            ("overlap_800us_percent", run.within(800) - run.within(150)),
            ("one_rotation_long_percent", run.turns(1)),
            ("cache_hit_percent", run.hits()),
            ("after_surprise_percent", run.after_surprise(150)),
        ],
    }
}

/// The noise of a claim's judged run.
fn noise_of(id: &str) -> Noise {
    match id {
        CHEETAH_4K => CHEETAH,
        _ => ATLAS,
    }
}

/// The noises of a claim's runs.
fn noises_of(id: &str) -> Vec<Noise> {
    let mut noises: Vec<Noise> = SIGMAS.map(Noise::sigma).to_vec();
    if !noises.contains(&noise_of(id)) {
        noises.push(noise_of(id));
    }
    noises
}

/// The distributions of errors and of head times, as in the paper's figure.
fn drawing(all: &[(PredictionCase, PredictionRun)]) -> Drawing {
    let judged: Vec<&(PredictionCase, PredictionRun)> = all
        .iter()
        .filter(|(case, _)| case.noise == noise_of(case.id))
        .collect();
    let mut panels = vec![Panel::Bars {
        title: "Measured head time less predicted".to_owned(),
        x_label: "% of the requests".to_owned(),
        bars: judged.iter().map(|(case, run)| bar(case, run)).collect(),
    }];
    panels.extend(judged.iter().map(|(case, run)| Panel::Cdf {
        title: format!("{}, {}", case.id, case.noise),
        x_label: "head time, ms".to_owned(),
        curves: vec![
            curve("predicted", run, |time| time.predicted),
            curve("measured", run, |time| time.measured),
        ],
    }));
    Drawing {
        name: "figure-7",
        panels,
    }
}

fn bar(case: &PredictionCase, run: &PredictionRun) -> Bar {
    let near = [run.within(50), run.within(150), run.within(800)];
    let turns = [run.turns(1), run.turns(-1)];
    let shares = [
        ("to 50 us", near[0]),
        ("to 150 us", near[1] - near[0]),
        ("to 800 us", near[2] - near[1]),
        ("a rotation long", turns[0]),
        ("a rotation short", turns[1]),
        ("other", 100.0 - near[2] - turns[0] - turns[1]),
    ];
    let parts = shares
        .into_iter()
        .enumerate()
        .map(|(number, (name, value))| BarPart {
            name,
            value: value.max(0.0),
            ink: match name {
                "other" => Ink::Pale,
                _ => Ink::Colour(number),
            },
        });
    Bar {
        name: case.id.trim_start_matches("fb.prediction.").to_owned(),
        parts: parts.collect(),
    }
}

fn curve(name: &str, run: &PredictionRun, time: fn(&CommandHeadTime) -> Duration) -> Curve {
    let values = run.times.iter().map(|times| time(times).as_millis_f64());
    let series = Series {
        name: name.to_owned(),
        values: values.collect(),
    };
    series.distribution()
}

/// Noise of the paper's Atlas 10K: our model then loses and wins as many rotations as the paper's
/// drive (1.8 and 0.7 %). Sigma follows from the won ones, the number of late seeks from the
/// difference. Their delay of 1.5 ms is a choice.
pub const ATLAS: Noise = Noise {
    sigma: Duration::from_micros(105),
    late: Chance {
        per_million: 41_000,
        costs: Duration::from_micros(1_500),
    },
};

/// Noise of the paper's Cheetah 18LP, by its rotations: 0.7 % lost and won in total.
pub const CHEETAH: Noise = Noise::sigma(Duration::from_micros(55));

/// Other noises, for comparison. With 0.15 ms alone the sum of rotations matches.
const SIGMAS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_micros(50),
    Duration::from_micros(150),
    Duration::from_micros(250),
];

/// Largest distance of an error from a whole rotation, in us. A choice, as the paper has no figure:
/// a twentieth of a rotation, longer than 4 KB take on the medium. A zero-latency read that just
/// misses its beginning has transferred the rest before.
const TURN_MICROS: u64 = 300;

/// Requests in a run. The paper had 10,000, with which the 0.7 % of won rotations vary by an eighth
/// between seeds. With ours they vary by a twenty-fifth.
const REQUESTS: u64 = 100_000;
