//! How the drives were in the last ten minutes: what a page that has just been opened could not have seen.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::desk::Desk;
use crate::status::{DriveStatus, Status, TrafficClass};

/// How far samples are apart. A choice: latency in the status is that of the last ten seconds.
const EVERY: Duration = Duration::from_secs(5);

/// Samples that are kept: those of ten minutes, which is what the page draws.
const MOST: usize = 120;

/// The samples of a service, shared by its connections.
#[derive(Clone, Debug, Default)]
pub(super) struct History(Arc<Mutex<VecDeque<Sample>>>);

/// How all drives were at a time.
#[derive(Debug)]
struct Sample {
    at: Instant,
    drives: Vec<DriveSample>,
}

/// How a drive was at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct DriveSample {
    /// The drive's name.
    drive: String,
    /// The 99th percentile of the foreground's response times, if it had requests.
    p99_us: Option<f64>,
    /// The measured impact of background reads, if there is one.
    impact_percent: Option<f64>,
    /// The rate of all tasks.
    task_mb_per_s: f64,
}

/// A sample as it is told.
#[derive(Debug, Serialize)]
struct TimedSample {
    /// How long ago it was.
    ago_ms: u64,
    drives: Vec<DriveSample>,
}

impl History {
    /// Asks for the status now and then, until the plane ends.
    pub(super) async fn follow(self, mut desk: Desk) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = ticks.tick() => (),
                _ = desk.ended.changed() => return,
            }
            if let Some(status) = desk.status().await {
                self.add(Instant::now(), &status);
            }
        }
    }

    fn add(&self, at: Instant, status: &Status) {
        let mut samples = self.samples();
        if samples.len() == MOST {
            samples.pop_front();
        }
        let drives = status.drives.iter().map(DriveSample::of).collect();
        samples.push_back(Sample { at, drives });
    }

    /// The samples as JSON, the oldest first.
    ///
    /// # Errors
    /// Never for these types.
    pub(super) fn text(&self, now: Instant) -> serde_json::Result<String> {
        let told = |sample: &Sample| TimedSample {
            ago_ms: u64::try_from((now - sample.at).as_millis()).unwrap_or(u64::MAX),
            drives: sample.drives.clone(),
        };
        let samples: Vec<TimedSample> = self.samples().iter().map(told).collect();
        serde_json::to_string(&samples)
    }

    fn samples(&self) -> MutexGuard<'_, VecDeque<Sample>> {
        // A sample is pushed whole or not at all.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DriveSample {
    fn of(drive: &DriveStatus) -> DriveSample {
        let mut traffic = drive.traffic.iter();
        let foreground = traffic.find(|traffic| traffic.class == TrafficClass::Foreground);
        let latency = foreground.and_then(|traffic| traffic.latency.as_ref());
        DriveSample {
            drive: drive.name.clone(),
            p99_us: latency.map(|latency| latency.p99_us),
            impact_percent: drive.impact.measured_percent,
            // A sum of nothing would be -0.0.
            task_mb_per_s: drive
                .tasks
                .iter()
                .fold(0.0, |all, task| all + task.mb_per_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{Latency, Traffic};

    fn status(p99_us: f64) -> Status {
        let traffic = Traffic {
            class: TrafficClass::Foreground,
            latency: Some(Latency {
                p99_us,
                ..Latency::default()
            }),
            ..Traffic::default()
        };
        let drive = DriveStatus {
            name: "disk".to_owned(),
            traffic: vec![traffic],
            ..DriveStatus::default()
        };
        Status {
            drives: vec![drive],
            ..Status::default()
        }
    }

    #[test]
    fn ten_minutes_are_kept_and_the_oldest_go_first() {
        let history = History::default();
        let begin = Instant::now();
        let mut now = begin;
        for number in 0..MOST + 2 {
            now = begin + EVERY * u32::try_from(number).unwrap();
            history.add(now, &status(number as f64));
        }
        let text = history.text(now).unwrap();
        let told: serde_json::Value = serde_json::from_str(&text).unwrap();
        let told = told.as_array().unwrap();
        assert_eq!(told.len(), MOST);
        let ago = |index: usize| told[index]["ago_ms"].as_u64().unwrap();
        let p99 = |index: usize| told[index]["drives"][0]["p99_us"].as_f64().unwrap();
        assert_eq!((ago(0), p99(0)), (595_000, 2.0));
        assert_eq!((ago(MOST - 1), p99(MOST - 1)), (0, (MOST + 1) as f64));
    }

    #[test]
    fn what_is_not_measured_is_null() {
        let history = History::default();
        let now = Instant::now();
        let mut quiet = status(1.0);
        quiet.drives[0].traffic.clear();
        history.add(now, &quiet);
        assert_eq!(
            history.text(now).unwrap(),
            "[{\"ago_ms\":0,\"drives\":[{\"drive\":\"disk\",\"p99_us\":null,\"impact_percent\":null,\
             \"task_mb_per_s\":0.0}]}]"
        );
    }
}
