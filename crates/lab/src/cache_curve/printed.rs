//! Curves as JSON and as a plot.

use serde::{Serialize, Serializer};

use super::{BLOCK_BYTES, MissCurves, MissRatio, PrefetchFigures};
use crate::plot::{self, Curve};

/// A line of the JSON array.
#[derive(Serialize)]
#[serde(untagged)]
enum CacheLine<'a> {
    Alone(&'a MissRatio),
    Prefetched(&'a PrefetchFigures),
}

/// An array: miss ratios, then those of prefetchers.
impl Serialize for MissCurves {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ratios = self.ratios.iter().map(CacheLine::Alone);
        let prefetched = self.prefetched.iter().map(CacheLine::Prefetched);
        serializer.collect_seq(ratios.chain(prefetched))
    }
}

impl MissCurves {
    /// A plot with a curve for each policy.
    pub fn svg(&self) -> String {
        let points = self.sizes.len();
        let lines = self
            .replacements
            .iter()
            .zip(self.ratios.chunks(points.max(1)));
        let lines = lines.map(|(name, ratios)| Curve {
            name: name.clone(),
            points: ratios
                .iter()
                .map(|point| ((point.blocks * BLOCK_BYTES) as f64 / MIB, point.miss_ratio))
                .collect(),
        });
        let lines: Vec<Curve> = lines.collect();
        plot::lines("Miss ratio", "size of the cache, MiB", "miss ratio", &lines)
    }
}

const MIB: f64 = 1_048_576.0;
