//! Figures 9 to 11: the cost of a guard, the distance from the firmware, and the progress of a
//! scan.

use crate::plot::{Curve, Panel};

use super::{ATLAS, GUARD, GUARDS, NOISE, POLICIES, SW60, WHOLE, micros, no_track, outside};
use crate::Failure;
use crate::paper::Drawing;
use crate::paper::trial::{ScanTrial, TrialOutcome, Trials, fixed};

/// All drawings.
pub(super) fn all(trials: &Trials) -> Result<Vec<Drawing>, Failure> {
    Ok(vec![
        figure_9(trials)?,
        figure_10(trials)?,
        figure_11(trials)?,
    ])
}

/// Free bandwidth and the load's throughput over the guard.
fn figure_9(trials: &Trials) -> Result<Drawing, Failure> {
    let panel = |title: &str, y_label: &str, value: fn(&TrialOutcome) -> f64| {
        let curve = |policy| over_guards(trials, policy, |guard| outside(policy, guard), value);
        let curves: Result<_, Failure> = POLICIES.into_iter().map(curve).collect();
        Ok::<_, Failure>(Panel::Lines {
            title: format!("{title}, Atlas 10K, external, {NOISE}"),
            x_label: GUARD_MS.to_owned(),
            y_label: y_label.to_owned(),
            curves: curves?,
        })
    };
    Ok(Drawing {
        name: "figure-9",
        panels: vec![
            panel("Free bandwidth, whole scan", "MB/s", |o| o.until(WHOLE))?,
            panel("Foreground throughput", "requests/s", |o| o.rate)?,
        ],
    })
}

/// Free bandwidth: external, in the firmware, and in the firmware with the external rule.
fn figure_10(trials: &Trials) -> Result<Drawing, Failure> {
    let whole = |outcome: &TrialOutcome| outcome.until(WHOLE);
    let inside = |guard| ScanTrial {
        caution: fixed(micros(guard)),
        ..ScanTrial::in_firmware(ATLAS, SW60)
    };
    let curves = vec![
        over_guards(trials, "in firmware", inside, whole)?,
        over_guards(trials, "one command a track", no_track, whole)?,
        over_guards(trials, "external", |guard| outside(SW60, guard), whole)?,
    ];
    Ok(Drawing {
        name: "figure-10",
        panels: vec![Panel::Lines {
            title: format!("Free bandwidth, whole scan, Atlas 10K, {SW60}; external: {NOISE}"),
            x_label: GUARD_MS.to_owned(),
            y_label: "MB/s".to_owned(),
            curves,
        }],
    })
}

/// Free bandwidth over the progress of the scan. The data of the paper's own Figure 11 is not
/// available; this figure is ours.
fn figure_11(trials: &Trials) -> Result<Drawing, Failure> {
    let curve = |policy: &'static str| {
        let outcome = trials.get(&outside(policy, GUARD))?;
        let points = outcome.curve.iter();
        Ok(Curve {
            name: policy.to_owned(),
            points: points.map(|&(at, rate)| (f64::from(at), rate)).collect(),
        })
    };
    let curves: Result<_, Failure> = POLICIES.into_iter().map(curve).collect();
    Ok(Drawing {
        name: "figure-11",
        panels: vec![Panel::Lines {
            title: format!("Free bandwidth over the scan so far, external, 0.3 ms, {NOISE} (ours)"),
            x_label: "read of the drive, %".to_owned(),
            y_label: "MB/s".to_owned(),
            curves: curves?,
        }],
    })
}

fn over_guards(
    trials: &Trials,
    name: &str,
    trial: impl Fn(u64) -> ScanTrial,
    value: impl Fn(&TrialOutcome) -> f64,
) -> Result<Curve, Failure> {
    let point = |guard: u64| Ok((guard as f64 / 1e3, value(trials.get(&trial(guard))?)));
    let points: Result<_, Failure> = GUARDS.into_iter().map(point).collect();
    Ok(Curve {
        name: name.to_owned(),
        points: points?,
    })
}

const GUARD_MS: &str = "guard, ms";
