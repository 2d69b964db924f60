//! The status of a loop. Rates and times are the drive's: with a time scale of 4 a second takes four real
//! seconds.

use block::Class;
use profiler::tracker;

use crate::accounts::tally::{ClassTally, Tally};
use crate::disk::Disk;
use crate::status::{
    self, DriveStatus, Errors, Flow, GapRequests, Head, HeadComparison, HeadTime, Impact, Latency,
    Lateness, Mode, Queue, Traffic,
};
use crate::tasks::Tasks;
use crate::volume::Volumes;

/// The owners of a loop.
pub(crate) struct Picture<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) volumes: &'a Volumes,
    pub(crate) tasks: &'a Tasks,
    pub(crate) tally: &'a Tally,
}

impl Picture<'_> {
    /// The loop's part of a drive's status. The service adds the configuration's part.
    pub(crate) fn drive(&self) -> DriveStatus {
        let second = self.tally.last_second(self.disk.now);
        let slice_us = second.slice.as_nanos() / 1000;
        let (mode, mode_reason) = self.mode();
        let gap_requests = self.gap_requests();
        DriveStatus {
            capacity_bytes: self.disk.shape.bytes(),
            queue: Queue {
                waiting: self.disk.engine.waiting() as u64,
                at_drive: self.disk.engine.at_drive() as u64,
            },
            traffic: self.traffic(),
            head: self.head(),
            head_time: HeadTime {
                timeline: second.timeline,
                slice_us,
                second_us: second.second,
                total_us: second.total,
            },
            mode,
            mode_reason,
            confidence: self
                .disk
                .engine
                .confidence()
                .map(|confidence| confidence.share()),
            heads: HeadComparison::of(self.disk.engine.slow_heads(), self.disk.now),
            impact: Impact {
                measured_percent: (self.tasks.is_any_active(self.disk)
                    || gap_requests.commands_total > 0)
                    .then(|| self.disk.engine.impact() * 100.0),
                budget_percent: 0.0,
            },
            gap_requests,
            standing: self.volumes.caches.standing(self.disk),
            streams: self.volumes.streams.summary(self.disk),
            caches: self.volumes.caches.status(),
            classified: self.volumes.classifiers.status(),
            mirror: self.disk.condition(),
            lateness: self.late(),
            errors: Errors {
                reads_total: self.tally.failed[0] + self.disk.failed_probes(),
                writes_total: self.tally.failed[1],
                flushes_total: self.tally.failed[2],
            },
            ..DriveStatus::default()
        }
    }

    fn gap_requests(&self) -> GapRequests {
        let gaps = self.disk.engine.gaps();
        let [read, written] = gaps.request_blocks.map(|blocks| blocks * self.disk.block());
        GapRequests {
            commands_total: gaps.requests,
            read_bytes_total: read,
            written_bytes_total: written,
        }
    }

    /// The use of the belief, and the reason.
    fn mode(&self) -> (Mode, String) {
        let learning = self.disk.learning();
        if let Some(learning) = learning.filter(|one| one.is_active(self.disk.now)) {
            return (Mode::Learning, learning.described());
        }
        let engine = &self.disk.engine;
        let Some(tallies) = engine.tallies() else {
            let reason = match self.disk.shape.rotational {
                true => "the policy leaves the order to the drive: its belief is not followed",
                false => NO_BELIEF,
            };
            return (Mode::Plain, reason.to_owned());
        };
        let share = engine.confidence().map_or(0.0, |found| found.share()) * 100.0;
        let compared = tallies.as_believed + tallies.late + tallies.elsewhere;
        match engine.mode() {
            tracker::BeliefMode::Safe => (
                Mode::Safe,
                format!(
                    "{share:.0} % of recent commands ended as the belief predicts: requests go in block \
                     order, and gaps stay unused until it is {:.0} %",
                    tracker::POSITIONING_ABOVE * 100.0
                ),
            ),
            tracker::BeliefMode::Unconfirmed => (
                Mode::Learning,
                format!(
                    "{compared} commands were compared with the belief: gaps stay unused until \
                     {} of {} agree with it",
                    tracker::CONFIRMED_BY,
                    tracker::CONFIRMING
                ),
            ),
            tracker::BeliefMode::Positioning => (
                Mode::Following,
                format!(
                    "{share:.0} % of recent commands ended as the belief predicts; below {:.0} % it is safe mode",
                    tracker::SAFE_BELOW * 100.0
                ),
            ),
        }
    }

    fn traffic(&self) -> Vec<Traffic> {
        let best_effort = (1..=6).map(Class::BestEffort);
        let groups = [
            (status::TrafficClass::Foreground, vec![Class::BestEffort(0)]),
            (status::TrafficClass::BestEffort, best_effort.collect()),
            (status::TrafficClass::Background, vec![Class::Background]),
        ];
        let mut traffic = Vec::new();
        for (class, members) in groups {
            let served = members.iter().map(|&class| self.tally.served(class));
            let used: Vec<&ClassTally> = served.filter(|served| served.is_used()).collect();
            if used.is_empty() {
                continue;
            }
            let flow = |way: usize| self.flow(&used, way);
            let mut responses = status::Responses::default();
            for served in &used {
                served.add_all(&mut responses);
            }
            traffic.push(Traffic {
                class,
                read: flow(0),
                write: flow(1),
                latency: latency(&used),
                responses,
            });
        }
        traffic
    }

    fn flow(&self, served: &[&ClassTally], way: usize) -> Flow {
        let block = u64::from(self.disk.shape.block_bytes);
        let sum = |of: &dyn Fn(&ClassTally) -> u64| served.iter().map(|&s| of(s)).sum::<u64>();
        Flow {
            mb_per_s: (sum(&|s| s.last_second[way].blocks) * block) as f64 / 1e6,
            requests_per_s: sum(&|s| s.last_second[way].requests) as f64,
            requests_total: sum(&|s| s.requests[way]),
            bytes_total: sum(&|s| s.blocks[way]) * block,
        }
    }

    fn head(&self) -> Option<Head> {
        if !self.disk.shape.rotational {
            return None;
        }
        let geometry = &self.disk.engine.profile().geometry;
        let last = self.tally.last?;
        let cylinder = geometry.locate(last.last())?.cylinder;
        Some(Head {
            cylinder,
            cylinders: geometry.cylinders(),
        })
    }

    fn late(&self) -> Option<Lateness> {
        let late = self.disk.lateness();
        let late = late.filter(|late| late.len() >= LEAST_JUDGED)?;
        let scale = self.disk.clock.scale();
        let at = |quantile: f64| {
            let nanos = block::Duration::from_nanos(late.value_at_quantile(quantile));
            scale.real(nanos).as_nanos() as f64 / 1e3
        };
        Some(Lateness {
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: at(1.0),
        })
    }
}

/// The least commands of which one in a hundred is told.
const LEAST_JUDGED: u64 = 100;

/// The reason of [`Mode::Plain`] without a belief.
pub(crate) const NO_BELIEF: &str = "there is no belief of the drive";

impl From<Class> for status::TrafficClass {
    fn from(class: Class) -> Self {
        match class {
            Class::RealTime { .. } => status::TrafficClass::RealTime,
            Class::BestEffort(0) => status::TrafficClass::Foreground,
            Class::BestEffort(_) => status::TrafficClass::BestEffort,
            Class::Background => status::TrafficClass::Background,
        }
    }
}

fn latency(served: &[&ClassTally]) -> Option<Latency> {
    let mut all = served.first()?.responses();
    for more in &served[1..] {
        // The bounds are the same.
        let _ = all.add(more.responses());
    }
    if all.is_empty() {
        return None;
    }
    let at = |quantile: f64| all.value_at_quantile(quantile) as f64 / 1e3;
    Some(Latency {
        requests: all.len(),
        p50_us: at(0.5),
        p95_us: at(0.95),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: at(1.0),
    })
}
