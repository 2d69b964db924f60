//! Figures 9 and 10: the cost of a guard, and the distance from the firmware; and the progress of a scan.

use crate::plot::{Curve, Panel};

use super::{GUARD, GUARDS, JUDGED, POLICIES, SW60, WHOLE, effort, guarded, no_track, outside};
use crate::Failure;
use crate::paper::Drawing;
use crate::paper::trial::{ScanTrial, TrialOutcome, Trials};

/// All drawings.
pub(super) fn all(trials: &Trials) -> Result<Vec<Drawing>, Failure> {
    Ok(vec![
        figure_9(trials)?,
        figure_10(trials)?,
        progress(trials)?,
        effort::drawing(trials)?,
    ])
}

/// Free bandwidth and the load's throughput over the guard.
fn figure_9(trials: &Trials) -> Result<Drawing, Failure> {
    let panel = |title: &str, y_label: &str, value: fn(&TrialOutcome) -> f64| {
        let curve = |policy| {
            over_guards(
                trials,
                policy,
                |guard| outside(JUDGED, policy, guard),
                value,
            )
        };
        let curves: Result<_, Failure> = POLICIES.into_iter().map(curve).collect();
        Ok::<_, Failure>(Panel::Lines {
            title: format!("{title}, Atlas 10K, external, {}", JUDGED.noise),
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
    let curves = vec![
        over_guards(trials, "in firmware", guarded, whole)?,
        over_guards(
            trials,
            "one command a track",
            |guard| no_track(JUDGED, guard),
            whole,
        )?,
        over_guards(
            trials,
            "external",
            |guard| outside(JUDGED, SW60, guard),
            whole,
        )?,
    ];
    Ok(Drawing {
        name: "figure-10",
        panels: vec![Panel::Lines {
            title: format!(
                "Free bandwidth, whole scan, Atlas 10K, {SW60}; external: {}",
                JUDGED.noise
            ),
            x_label: GUARD_MS.to_owned(),
            y_label: "MB/s".to_owned(),
            curves,
        }],
    })
}

/// Free bandwidth over the progress of the scan. This figure is ours.
fn progress(trials: &Trials) -> Result<Drawing, Failure> {
    let curve = |policy: &'static str| {
        let outcome = trials.get(&outside(JUDGED, policy, GUARD))?;
        let points = outcome.curve.iter();
        Ok(Curve {
            name: policy.to_owned(),
            points: points.map(|&(at, rate)| (f64::from(at), rate)).collect(),
        })
    };
    let curves: Result<_, Failure> = POLICIES.into_iter().map(curve).collect();
    Ok(Drawing {
        name: "scan-progress",
        panels: vec![Panel::Lines {
            title: format!(
                "Free bandwidth over the scan so far, external, 0.3 ms, {}",
                JUDGED.noise
            ),
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
