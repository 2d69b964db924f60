//! Metrics for Prometheus, from one status of the service.
//!
//! Units are those of Prometheus: seconds, bytes, shares from 0 to 1. Counters only grow while the service
//! runs. [`ALL`] is the reference: it has every metric.

use prometheus_client::registry::Unit;

use crate::status::{HeadKind, Mode, Status};

mod encoding;
mod samples;

pub use encoding::text;
use samples::{
    Samples, caches, classified, each, flows, gap_requests, lateness, responses, scrubs,
    slow_heads, standing, streams, tasks,
};

/// The content type of the format.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric.
#[derive(Clone, Debug)]
pub struct Metric {
    /// The name, without `headtime_`, the unit, and `_total` of counters.
    pub name: &'static str,
    /// The description, a sentence without its full stop.
    pub help: &'static str,
    /// The unit, which ends the name, unless the value is a plain number.
    pub unit: Option<Unit>,
    /// What its values are.
    pub kind: Kind,
    read: fn(&Status, &mut Samples),
}

/// What the values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// Counts of values by their size, and the values' sum, all of which only grow.
    Histogram,
}

impl Kind {
    /// The name in Prometheus.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

impl Metric {
    /// The name in Prometheus.
    pub fn full_name(&self) -> String {
        let unit = match &self.unit {
            Some(unit) => format!("_{}", unit.as_str()),
            None => String::new(),
        };
        let total = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("headtime_{}{unit}{total}", self.name)
    }
}

/// All metrics.
pub const ALL: &[Metric] = &[
    gauge(
        "uptime",
        "How long the service has served",
        Some(Unit::Seconds),
        |s, to| {
            to.add(&[], s.uptime_s);
        },
    ),
    gauge(
        "connections",
        "Clients that are connected",
        None,
        |s, to| {
            to.add(&[], s.connections.len() as f64);
        },
    ),
    counter(
        "connections_accepted",
        "Clients that were ever connected",
        None,
        |s, to| {
            to.add(&[], s.connections_total as f64);
        },
    ),
    counter(
        "connections_refused",
        "Clients that were sent away because they broke the protocol or a limit",
        None,
        |s, to| to.add(&[], s.connections_refused_total as f64),
    ),
    counter(
        "reloads",
        "Configurations that were taken over while serving",
        None,
        |s, to| {
            to.add(&[], s.reloads_total as f64);
        },
    ),
    counter("requests", "Requests that ended well", None, |s, to| {
        flows(s, to, |flow| flow.requests_total as f64);
    }),
    counter(
        "request",
        "Bytes of requests that ended well",
        Some(Unit::Bytes),
        |s, to| {
            flows(s, to, |flow| flow.bytes_total as f64);
        },
    ),
    Metric {
        name: "response_time",
        help: "From a request's acceptance to its end",
        unit: Some(Unit::Seconds),
        kind: Kind::Histogram,
        read: responses,
    },
    gauge(
        "queue_waiting",
        "Requests that wait outside the drive",
        None,
        |s, to| {
            each(s, to, |drive| Some(drive.queue.waiting as f64));
        },
    ),
    gauge("queue_at_drive", "Commands at the drive", None, |s, to| {
        each(s, to, |drive| Some(drive.queue.at_drive as f64));
    }),
    counter(
        "head_time",
        "What the time of the head went to, by kind",
        Some(Unit::Seconds),
        |s, to| {
            for drive in &s.drives {
                for kind in HeadKind::ALL {
                    let labels = [("drive", &*drive.name), ("kind", kind.name())];
                    to.add(&labels, drive.head_time.total_us.of(kind) as f64 / 1e6);
                }
            }
        },
    ),
    gauge(
        "head_cylinder",
        "Where the head is believed to be",
        None,
        |s, to| {
            each(s, to, |drive| {
                drive.head.map(|head| f64::from(head.cylinder))
            });
        },
    ),
    gauge(
        "positioning",
        "1 if positions are used, 0 in safe mode and without a belief",
        None,
        |s, to| {
            each(s, to, |drive| {
                let uses = matches!(drive.mode, Mode::Learning | Mode::Following);
                Some(f64::from(u8::from(uses)))
            });
        },
    ),
    gauge(
        "belief_mode",
        "1 for the mode of the belief, 0 for the others",
        None,
        |s, to| {
            for drive in &s.drives {
                for mode in Mode::ALL {
                    let labels = [("drive", &*drive.name), ("mode", mode.name())];
                    to.add(&labels, f64::from(u8::from(drive.mode == mode)));
                }
            }
        },
    ),
    gauge(
        "confidence_ratio",
        "The share of commands that went as believed",
        None,
        |s, to| {
            each(s, to, |drive| drive.confidence);
        },
    ),
    gauge("slow_heads", "Heads that read slowly", None, |s, to| {
        each(s, to, |drive| Some(drive.heads.as_ref()?.slow.len() as f64));
    }),
    gauge(
        "slow_head_ratio",
        "By how much the reads of a slow head take longer than those of the other heads",
        None,
        slow_heads,
    ),
    counter(
        "compared_reads",
        "Reads whose ends were compared with the belief, for slow heads",
        None,
        |s, to| {
            each(s, to, |drive| {
                Some(drive.heads.as_ref()?.compared_total as f64)
            });
        },
    ),
    counter(
        "late_reads",
        "Those of them that were late by a revolution or more",
        None,
        |s, to| {
            each(s, to, |drive| Some(drive.heads.as_ref()?.late_total as f64));
        },
    ),
    gauge(
        "impact_ratio",
        "By how much background tasks lengthen foreground requests",
        None,
        |s, to| {
            each(s, to, |drive| {
                drive.impact.measured_percent.map(|percent| percent / 100.0)
            });
        },
    ),
    gauge(
        "impact_budget_ratio",
        "By how much they may",
        None,
        |s, to| {
            each(s, to, |drive| Some(drive.impact.budget_percent / 100.0));
        },
    ),
    counter(
        "gap_requests",
        "What requests of the background class transferred in gaps of more urgent ones",
        Some(Unit::Bytes),
        gap_requests,
    ),
    gauge(
        "task_asked",
        "What a background task is to read",
        Some(Unit::Bytes),
        |s, to| {
            tasks(s, to, |task| task.asked_bytes as f64);
        },
    ),
    gauge(
        "task_done",
        "What a background task has read",
        Some(Unit::Bytes),
        |s, to| {
            tasks(s, to, |task| task.done_bytes as f64);
        },
    ),
    gauge(
        "task_free",
        "What a background task has read in free time",
        Some(Unit::Bytes),
        |s, to| {
            tasks(s, to, |task| task.free_bytes as f64);
        },
    ),
    gauge(
        "task_failed",
        "What a background task could not read",
        Some(Unit::Bytes),
        |s, to| {
            tasks(s, to, |task| task.failed_bytes as f64);
        },
    ),
    counter(
        "scrub_verified_chunks",
        "Chunks of 64 KiB that scrubs have compared with their checksums",
        None,
        |s, to| scrubs(s, to, |scrub| Some(scrub.verified_chunks_total as f64)),
    ),
    gauge(
        "scrub_changed_places",
        "Places whose bytes differ from those that were written",
        None,
        |s, to| scrubs(s, to, |scrub| Some(scrub.changed as f64)),
    ),
    gauge(
        "scrub_unreadable_places",
        "Places that the drive cannot read",
        None,
        |s, to| scrubs(s, to, |scrub| Some(scrub.unreadable as f64)),
    ),
    gauge(
        "scrub_progress_ratio",
        "The part of the present or last scrub that is verified",
        None,
        |s, to| {
            scrubs(s, to, |scrub| {
                Some(scrub.verified_bytes as f64 / scrub.asked_bytes.max(1) as f64)
            });
        },
    ),
    gauge(
        "scrub_oldest_verification_age",
        "The time since the oldest verification of any block, once each was verified",
        Some(Unit::Seconds),
        |s, to| scrubs(s, to, |scrub| scrub.oldest_age_s.map(|age| age as f64)),
    ),
    gauge(
        "scrub_late",
        "By how much scrubs are behind their schedule",
        Some(Unit::Seconds),
        |s, to| scrubs(s, to, |scrub| scrub.every_s.map(|_| scrub.late_by_s as f64)),
    ),
    gauge(
        "streams",
        "Guaranteed streams that are there",
        None,
        |s, to| streams(s, to, |streams| streams.now),
    ),
    gauge(
        "stream_memory",
        "Memory of streams' buffers",
        Some(Unit::Bytes),
        |s, to| streams(s, to, |streams| streams.memory_bytes),
    ),
    counter(
        "streams_granted",
        "Streams that were granted",
        None,
        |s, to| streams(s, to, |streams| streams.granted_total),
    ),
    counter(
        "streams_refused",
        "Streams that were refused",
        None,
        |s, to| streams(s, to, |streams| streams.refused_total),
    ),
    counter(
        "stream_batches_late",
        "Batches of streams that came too late",
        None,
        |s, to| streams(s, to, |streams| streams.late_total),
    ),
    counter(
        "stream_overruns",
        "Commands that took longer than their worst case, while there were streams",
        None,
        |s, to| streams(s, to, |streams| streams.overruns_total),
    ),
    counter(
        "stream_guarantees_lapsed",
        "Guarantees that lapsed because a client left its buffer or its file moved",
        None,
        |s, to| streams(s, to, |streams| streams.lapsed_total),
    ),
    counter(
        "classified_requests",
        "Requests of classified exports that had a class by their I/O priority",
        None,
        |s, to| classified(s, to, |export| export.requests_total),
    ),
    counter(
        "classified_unmatched_requests",
        "Requests of classified exports that had the class of the export, for want of an event",
        None,
        |s, to| classified(s, to, |export| export.unmatched_total),
    ),
    counter(
        "classified_lost_events",
        "Events of classified exports that the kernel dropped, or whose requests did not arrive",
        None,
        |s, to| classified(s, to, |export| export.lost_events_total),
    ),
    gauge(
        "emulator_lateness",
        "How late an emulated drive's completions were against the model, by quantile",
        Some(Unit::Seconds),
        lateness,
    ),
    counter(
        "cache",
        "What caches did, by kind",
        Some(Unit::Bytes),
        |s, to| caches(s, to, &|cache| cache.totals().to_vec()),
    ),
    gauge(
        "cache_held",
        "What caches hold: their size, what of it is used, what is not yet written, and what is wished of free blocks",
        Some(Unit::Bytes),
        |s, to| caches(s, to, &|cache| cache.held().to_vec()),
    ),
    counter(
        "standing",
        "What tasks without an end have read, and what became of what was wished of them, by kind",
        Some(Unit::Bytes),
        |s, to| standing(s, to, &|task| task.totals().to_vec()),
    ),
    gauge(
        "standing_wanted",
        "What tasks without an end want to have read now",
        Some(Unit::Bytes),
        |s, to| standing(s, to, &|task| vec![("wanted", task.wanted_bytes)]),
    ),
    gauge(
        "mirror_leg_in_sync",
        "Whether a leg of a mirror serves reads: 1 if it does",
        None,
        |s, to| {
            for drive in &s.drives {
                let legs = drive.mirror.iter().flat_map(|mirror| &mirror.legs);
                for (leg, number) in legs.zip(["0", "1"]) {
                    let labels = [("drive", &*drive.name), ("leg", number)];
                    to.add(&labels, f64::from(u8::from(leg.is_in_sync())));
                }
            }
        },
    ),
    gauge(
        "mirror_to_copy",
        "What is still to be copied to a leg of a mirror",
        Some(Unit::Bytes),
        |s, to| {
            each(s, to, |drive| {
                Some(drive.mirror.as_ref()?.to_copy_bytes as f64)
            });
        },
    ),
    gauge(
        "mirror_copied",
        "What was copied to a leg of a mirror since that began, from gaps or in a share of the time",
        Some(Unit::Bytes),
        |s, to| {
            for drive in &s.drives {
                let rebuild = drive
                    .mirror
                    .as_ref()
                    .and_then(|mirror| mirror.rebuild.as_ref());
                let Some(rebuild) = rebuild else { continue };
                for (by, bytes) in [("gaps", rebuild.gap_bytes), ("paid", rebuild.paid_bytes)] {
                    to.add(&[("drive", &*drive.name), ("by", by)], bytes as f64);
                }
            }
        },
    ),
    counter("errors", "Commands that failed", None, |s, to| {
        for drive in &s.drives {
            let errors = drive.errors;
            for (operation, count) in [
                ("read", errors.reads_total),
                ("write", errors.writes_total),
                ("flush", errors.flushes_total),
            ] {
                let labels = [("drive", &*drive.name), ("operation", operation)];
                to.add(&labels, count as f64);
            }
        }
    }),
];

const fn gauge(
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    read: fn(&Status, &mut Samples),
) -> Metric {
    Metric {
        name,
        help,
        unit,
        kind: Kind::Gauge,
        read,
    }
}

const fn counter(
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    read: fn(&Status, &mut Samples),
) -> Metric {
    Metric {
        name,
        help,
        unit,
        kind: Kind::Counter,
        read,
    }
}
