//! The results of an adoption: figures, what is missing and what that costs, and an anonymous report.

use drive::ProfilePart;
use profiler::belief;
use serde::Serialize;
use serde_json::{Value, json};

use super::Adoption;
use super::facts::PathFacts;
use crate::Failure;
use crate::profiling::report::figures;

/// The figures of an adoption, as `headtime adopt --json` prints them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdoptFigures {
    /// The path.
    pub path: String,
    /// Whether the path says that it rotates, if it says anything.
    pub rotational: Option<bool>,
    /// Bytes of a logical block.
    pub logical_block: u32,
    /// The size.
    pub capacity_bytes: u64,
    /// The confidence of the parts that predict.
    pub confidence: AdoptConfidence,
    /// The period of a revolution.
    pub period_ms: Option<f64>,
    /// By how much the path delays 99 % of the buffer's answers at most.
    pub jitter_us: Option<f64>,
    /// Background reads in the gaps of a load, as simulated with the found profile.
    pub free_mb_s_predicted: Option<f64>,
    /// The time of the adoption.
    pub seconds: f64,
    /// Whether a service uses the profile.
    pub usable: bool,
}

/// The confidence of the parts of a profile, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AdoptConfidence {
    /// The spindle.
    pub spindle: f64,
    /// The tracks.
    pub map: f64,
    /// The arm.
    pub seek: f64,
    /// Overheads of the electronics.
    pub electronics: f64,
}

impl Adoption {
    /// Whether a service uses the profile.
    pub fn is_usable(&self) -> bool {
        self.found.is_some() && self.unusable.is_none()
    }

    /// The figures.
    pub fn figures(&self, path: &str) -> AdoptFigures {
        let spindle = self.found.as_ref().and_then(|found| {
            let period = found.findings.clock.as_ref()?.spindle().period_ps();
            Some(period as f64 / 1e9)
        });
        AdoptFigures {
            path: path.to_owned(),
            rotational: self.facts.rotational,
            logical_block: self.facts.logical_block,
            capacity_bytes: self.facts.capacity_bytes,
            confidence: self.confidence(),
            period_ms: spindle.or(self.verdict.comb_ms),
            jitter_us: self.verdict.jitter_us,
            free_mb_s_predicted: self.forecast.as_ref().and_then(|found| found.free_mb_s),
            seconds: self.seconds,
            usable: self.is_usable(),
        }
    }

    fn confidence(&self) -> AdoptConfidence {
        let Some(found) = &self.found else {
            return AdoptConfidence::default();
        };
        let shares = belief::shares(&found.findings, &found.device);
        let of = |wanted| {
            let mut parts = shares.iter().filter(|(part, _)| *part == wanted);
            parts.next().map_or(0.0, |(_, share)| *share)
        };
        AdoptConfidence {
            spindle: of(ProfilePart::Spindle),
            map: of(ProfilePart::Map),
            seek: of(ProfilePart::Seek),
            electronics: of(ProfilePart::Overhead),
        }
    }

    /// What was not found, each with its cost.
    pub fn missing(&self) -> Vec<String> {
        let Some(found) = &self.found else {
            return Vec::new();
        };
        let findings = &found.findings;
        let mut missing: Vec<String> = findings
            .progress
            .failed
            .iter()
            .map(|(stage, why)| format!("{}: {why}", stage.name()))
            .collect();
        let known = belief::known_share(findings, &found.device);
        if known < 0.995 {
            missing.push(format!(
                "the tracks of {:.1} % of the blocks: requests there go in block order, and gaps beside them \
                 bring nothing (about {:.0} % of gaps remain); a longer run finds more",
                (1.0 - known) * 100.0,
                known * known * 100.0
            ));
        }
        if findings.arm.is_none() {
            missing.push(
                "seek times: no gap can be used, and requests cannot go in the order of the head"
                    .to_owned(),
            );
        }
        if findings.firmware.is_none() {
            missing.push(
                "overheads of the electronics: no gap can be used, and requests cannot go in the order of the head"
                    .to_owned(),
            );
        }
        missing.push(
            "writes, which adopting does not send: a settling time is assumed, and gaps beside writes get a \
             wider guard"
                .to_owned(),
        );
        if self.verdict.comb_ms.is_none() && self.verdict.no_disk.is_none() {
            missing.push(
                "how many reads empty the buffer: the search for the period takes longer"
                    .to_owned(),
            );
        }
        let forecast = self.forecast.iter().flat_map(|forecast| &forecast.missing);
        missing.extend(forecast.map(|why| format!("a forecast of {why}")));
        missing
    }

    /// An anonymous report: identification without serial number, path or mounts; findings; timings.
    ///
    /// # Errors
    /// If the findings contradict each other.
    pub fn report(&self) -> Result<Value, Failure> {
        let profile = match &self.found {
            None => Value::Null,
            Some(found) => {
                let mut profile = serde_json::to_value(figures(found)?).map_err(Failure::failed)?;
                // The name is made of the path.
                profile["drive"] = Value::from("drive");
                profile
            }
        };
        Ok(json!({
            "headtime": env!("CARGO_PKG_VERSION"),
            "path": identification(&self.facts),
            "verdict": self.verdict,
            "samples": {
                "far_us": micros(&self.samples.far),
                "near_us": micros(&self.samples.near),
                "again_us": micros(&self.samples.again),
                "evicting_reads": self.samples.evicting,
                "ends_ns": self.samples.ends,
            },
            "reads": { "ended": self.failed.reads, "failed": self.failed.failed },
            "profile": profile,
            "fresh_pairs": self.check,
            "forecast": self.forecast,
            "unusable": self.unusable.as_ref().map(|_| self.missing()),
            "wake_ups": self.wake_ups,
            "seconds": self.seconds,
        }))
    }
}

/// The properties of the path that identify a model and no drive.
fn identification(facts: &PathFacts) -> Value {
    json!({
        "kind": facts.kind,
        "model": facts.model,
        "rotational": facts.rotational,
        "logical_block": facts.logical_block,
        "physical_block": facts.physical_block,
        "format": facts.sector_format(),
        "capacity_bytes": facts.capacity_bytes,
        "transport": facts.transport,
        "queue_depth": facts.queue_depth,
        "scheduler": facts.scheduler,
        "write_cache": facts.write_cache,
        "in_use": !facts.users.is_empty(),
    })
}

fn micros(nanos: &[u64]) -> Vec<u64> {
    nanos.iter().map(|nanos| nanos / 1000).collect()
}
