//! The values of metrics, from the parts of a status.

use crate::status::{
    Cache, Classified, DriveStatus, Flow, RESPONSE_BOUNDS_US, ScrubStatus, Standing, Status,
    StreamTotals, Task, Traffic,
};

/// The values of a metric with their labels.
#[derive(Debug, Default)]
pub(super) struct Samples(pub(super) Vec<(Vec<(&'static str, String)>, Sample)>);

/// A value of a metric.
#[derive(Debug)]
pub(super) enum Sample {
    Number(f64),
    Histogram {
        sum: f64,
        /// Upper bounds and counts; the bound of the last is [`f64::MAX`].
        buckets: Vec<(f64, u64)>,
    },
}

impl Samples {
    pub(super) fn add(&mut self, labels: &[(&'static str, &str)], value: f64) {
        self.push(labels, Sample::Number(value));
    }

    fn push(&mut self, labels: &[(&'static str, &str)], sample: Sample) {
        let labels = labels
            .iter()
            .map(|(name, text)| (*name, (*text).to_owned()));
        self.0.push((labels.collect(), sample));
    }
}

pub(super) fn each(status: &Status, to: &mut Samples, value: impl Fn(&DriveStatus) -> Option<f64>) {
    for drive in &status.drives {
        if let Some(value) = value(drive) {
            to.add(&[("drive", &drive.name)], value);
        }
    }
}

pub(super) fn gap_requests(status: &Status, to: &mut Samples) {
    for drive in &status.drives {
        for (direction, bytes) in drive.gap_requests.bytes() {
            let labels = [("drive", &*drive.name), ("direction", direction)];
            to.add(&labels, bytes as f64);
        }
    }
}

pub(super) fn flows(status: &Status, to: &mut Samples, value: impl Fn(&Flow) -> f64) {
    for drive in &status.drives {
        for Traffic {
            class, read, write, ..
        } in &drive.traffic
        {
            for (direction, flow) in [("read", read), ("write", write)] {
                let class = class.name();
                let labels = [
                    ("drive", &*drive.name),
                    ("class", class),
                    ("direction", direction),
                ];
                to.add(&labels, value(flow));
            }
        }
    }
}

pub(super) fn responses(status: &Status, to: &mut Samples) {
    for drive in &status.drives {
        for Traffic {
            class, responses, ..
        } in &drive.traffic
        {
            let bounds = RESPONSE_BOUNDS_US.iter().map(|&us| us as f64 / 1e6);
            let bounds = bounds.chain(std::iter::once(f64::MAX));
            let counts = responses.counts.iter().copied();
            let sample = Sample::Histogram {
                sum: responses.sum_us / 1e6,
                buckets: bounds.zip(counts).collect(),
            };
            to.push(&[("drive", &drive.name), ("class", class.name())], sample);
        }
    }
}

pub(super) fn classified(status: &Status, to: &mut Samples, value: impl Fn(&Classified) -> u64) {
    for drive in &status.drives {
        for export in &drive.classified {
            let labels = [("drive", &*drive.name), ("export", &*export.export)];
            to.add(&labels, value(export) as f64);
        }
    }
}

pub(super) fn slow_heads(status: &Status, to: &mut Samples) {
    for drive in &status.drives {
        for slow in drive.heads.iter().flat_map(|heads| &heads.slow) {
            let (arm, head) = (slow.arm.to_string(), slow.head.to_string());
            let labels = [("drive", &*drive.name), ("arm", &*arm), ("head", &*head)];
            to.add(&labels, slow.slower_percent / 100.0);
        }
    }
}

pub(super) fn lateness(status: &Status, to: &mut Samples) {
    for drive in &status.drives {
        let Some(late) = drive.lateness else {
            continue;
        };
        for (quantile, us) in [
            ("0.5", late.p50_us),
            ("0.99", late.p99_us),
            ("1", late.max_us),
        ] {
            to.add(&[("drive", &drive.name), ("quantile", quantile)], us / 1e6);
        }
    }
}

pub(super) fn streams(status: &Status, to: &mut Samples, value: impl Fn(&StreamTotals) -> u64) {
    for drive in &status.drives {
        to.add(&[("drive", &drive.name)], value(&drive.streams) as f64);
    }
}

pub(super) fn caches(
    status: &Status,
    to: &mut Samples,
    kinds: &dyn Fn(&Cache) -> Vec<(&'static str, u64)>,
) {
    for drive in &status.drives {
        for cache in &drive.caches {
            for (kind, bytes) in kinds(cache) {
                let labels = [
                    ("drive", &*drive.name),
                    ("volume", &*cache.volume),
                    ("kind", kind),
                ];
                to.add(&labels, bytes as f64);
            }
        }
    }
}

pub(super) fn standing(
    status: &Status,
    to: &mut Samples,
    kinds: &dyn Fn(&Standing) -> Vec<(&'static str, u64)>,
) {
    for drive in &status.drives {
        for task in &drive.standing {
            for (kind, bytes) in kinds(task) {
                let labels = [
                    ("drive", &*drive.name),
                    ("name", &*task.name),
                    ("kind", kind),
                ];
                to.add(&labels, bytes as f64);
            }
        }
    }
}

pub(super) fn scrubs(
    status: &Status,
    to: &mut Samples,
    value: impl Fn(&ScrubStatus) -> Option<f64>,
) {
    for scrub in &status.scrubs {
        if let Some(value) = value(scrub) {
            to.add(&[("volume", &*scrub.volume)], value);
        }
    }
}

pub(super) fn tasks(status: &Status, to: &mut Samples, value: impl Fn(&Task) -> f64) {
    for drive in &status.drives {
        for task in &drive.tasks {
            let id = task.id.to_string();
            let labels = [("drive", &*drive.name), ("task", &id), ("name", &task.name)];
            to.add(&labels, value(task));
        }
    }
}
