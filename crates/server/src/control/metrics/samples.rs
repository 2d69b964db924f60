//! The values of metrics, from the parts of a status.

use super::Samples;
use crate::status::{
    Cache, Classified, DriveStatus, Flow, Latency, ScrubStatus, Standing, Status, StreamTotals,
    Task, Traffic,
};

pub(super) fn each(status: &Status, to: &mut Samples, value: impl Fn(&DriveStatus) -> Option<f64>) {
    for drive in &status.drives {
        if let Some(value) = value(drive) {
            to.add(&[("drive", &drive.name)], value);
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

pub(super) fn latencies(status: &Status, to: &mut Samples) {
    for drive in &status.drives {
        for Traffic { class, latency, .. } in &drive.traffic {
            let Some(Latency {
                p50_us,
                p95_us,
                p99_us,
                p999_us,
                ..
            }) = *latency
            else {
                continue;
            };
            for (quantile, us) in [
                ("0.5", p50_us),
                ("0.95", p95_us),
                ("0.99", p99_us),
                ("0.999", p999_us),
            ] {
                let class = class.name();
                let labels = [
                    ("drive", &*drive.name),
                    ("class", class),
                    ("quantile", quantile),
                ];
                to.add(&labels, us / 1e6);
            }
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
