//! A status of the service in the form that Prometheus' library encodes.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::{ALL, Growth, Samples};
use crate::status::Status;

#[derive(Debug)]
pub(super) struct Snapshot(pub(super) Status);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in ALL {
            let mut samples = Samples::default();
            (metric.read)(&self.0, &mut samples);
            let family = Family(metric.growth, samples);
            let kind = family.metric_type();
            let described =
                encoder.encode_descriptor(metric.name, metric.help, metric.unit.as_ref(), kind)?;
            family.encode(described)?;
        }
        Ok(())
    }
}

struct Family(Growth, Samples);

impl EncodeMetric for Family {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Family(growth, Samples(samples)) = self;
        for (labels, value) in samples {
            match (labels.is_empty(), growth) {
                (true, Growth::OnlyGrows) => {
                    encoder.encode_counter::<NoLabelSet, _, f64>(value, None)?
                }
                (true, Growth::UpAndDown) => encoder.encode_gauge(value)?,
                (false, Growth::OnlyGrows) => {
                    let mut one = encoder.encode_family(labels)?;
                    one.encode_counter::<NoLabelSet, _, f64>(value, None)?;
                }
                (false, Growth::UpAndDown) => encoder.encode_family(labels)?.encode_gauge(value)?,
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        match self.0 {
            Growth::OnlyGrows => MetricType::Counter,
            Growth::UpAndDown => MetricType::Gauge,
        }
    }
}
