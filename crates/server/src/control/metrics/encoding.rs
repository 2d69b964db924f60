//! A status of the service in the form that Prometheus' library encodes.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::samples::{Sample, Samples};
use super::{ALL, Kind};
use crate::status::Status;

/// All metrics of a service as text. `None` if the encoder fails, which it never does for text.
pub fn text(status: &Status) -> Option<String> {
    let mut registry = Registry::with_prefix("headtime");
    registry.register_collector(Box::new(Snapshot(status.clone())));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).ok()?;
    Some(text)
}

#[derive(Debug)]
struct Snapshot(Status);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in ALL {
            let mut samples = Samples::default();
            (metric.read)(&self.0, &mut samples);
            let family = Family(metric.kind, samples);
            let kind = family.metric_type();
            let described =
                encoder.encode_descriptor(metric.name, metric.help, metric.unit.as_ref(), kind)?;
            family.encode(described)?;
        }
        Ok(())
    }
}

struct Family(Kind, Samples);

impl Family {
    fn encode_one(&self, sample: &Sample, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match (self.0, sample) {
            (Kind::Counter, Sample::Number(value)) => {
                encoder.encode_counter::<NoLabelSet, _, f64>(value, None)
            }
            (_, Sample::Number(value)) => encoder.encode_gauge(value),
            (_, Sample::Histogram { sum, buckets }) => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
        }
    }
}

impl EncodeMetric for Family {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, sample) in &self.1.0 {
            match labels.is_empty() {
                true => self.encode_one(sample, &mut encoder)?,
                false => self.encode_one(sample, &mut encoder.encode_family(labels)?)?,
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        match self.0 {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        }
    }
}
