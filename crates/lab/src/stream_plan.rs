//! Whether players and recorders may share a disk, by the admission of the service, without a service.
//!
//! ```text
//!   set of streams --attach, one after the other--> stream::Streams --> granted, with memory and batches
//!                                                          '--> refused --> nearest sets that are granted
//! ```
//!
//! A file lies in one piece anywhere among the blocks of its group. A service knows the places of files, and may
//! grant more. On a drive of two actuators the service has streams on the first one only, and so has the plan.

use std::ops::Range;
use std::sync::Arc;

use block::{Duration, Extent, Instant, Lba, Sectors, StreamMode, Terms};
use drive::Profile;
use engine::guarantees::{BelievedTracks, head_times, zone_over};
use engine::streams::Promise;
use serde::Serialize;
use server::clock::TimeScale;
use server::config::StreamsConfig;
use server::service::promise_to_streams;
use stream::admission::{Plan, Refusal};
use stream::location::Piece;
use stream::memory::{MemoryRule, NoMemory};
use stream::streams::{Attach, Attached};
use stream::{HeadTimes, LocationMap, Streams};

use crate::{Failure, Label, named};

mod nearest;
mod of_service;
mod parse;
mod table;

pub use nearest::{FewerStreams, LargerBuffers, NearestSets, SlowerStreams};
pub use parse::{GROUP_KEYS, group, read_group};
pub use table::planned;

/// A set of streams on a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSet {
    /// The drive: a name from `headtime drives`, or a profile file.
    pub drive: String,
    /// Seconds of the clients in a second of the drive: 1, or that of an emulated drive of a service.
    pub time_scale: TimeScale,
    /// The promise of the service to streams, as in `[drive.streams]`.
    pub promise: StreamsConfig,
    /// The streams, in the order in which they come.
    pub groups: Vec<StreamGroup>,
}

/// Equal streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamGroup {
    /// The name.
    pub name: String,
    /// The purpose.
    pub mode: StreamMode,
    /// The number of streams.
    pub count: u32,
    /// Bytes a second of each.
    pub rate: u64,
    /// Bytes that the application reads or writes beyond its playout point at most.
    pub buffer: u64,
    /// The largest memory of the service for each; `None`: as much as it needs.
    pub memory: Option<u64>,
    /// The blocks of the drive among which the files lie; `None`: all.
    pub blocks: Option<Range<u64>>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamPlan {
    /// The drive.
    pub drive: String,
    /// The relation between belief and truth: the profile counts as the truth.
    pub mode: Label,
    /// Whether all streams are granted.
    pub fits: bool,
    /// The groups, in order.
    pub groups: Vec<PlannedGroup>,
    /// The share of head time that the granted streams take at worst, in percent.
    pub head_percent: f64,
    /// The share that is promised to all other requests, in percent.
    pub promised_percent: f64,
    /// The share that streams leave, the promised one included, in percent.
    pub left_percent: f64,
    /// The round, in milliseconds; 0 without streams.
    pub round_ms: f64,
    /// Bytes of the granted streams' buffers.
    pub memory: u64,
    /// Bytes that are left for buffers of more streams.
    pub memory_left: u64,
    /// The first refusal, if there is one.
    pub refusal: Option<PlanRefusal>,
    /// Similar sets that are granted, if this one is refused.
    pub nearest: Option<NearestSets>,
}

/// A group in the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedGroup {
    /// The name.
    pub name: String,
    /// The purpose.
    pub mode: &'static str,
    /// The number of streams.
    pub count: u32,
    /// The number that is granted, before the first refusal.
    pub granted: u32,
    /// Bytes a second of each.
    pub rate: u64,
    /// Bytes beyond the playout point of each.
    pub buffer: u64,
    /// Bytes of memory of each, the largest one.
    pub memory: u64,
    /// Bytes of a batch of each, once all are granted.
    pub batch: u64,
    /// The number of such streams that would be granted besides, if the set is.
    pub more: Option<u32>,
}

/// The refusal of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanRefusal {
    /// Its group.
    pub name: String,
    /// Its number in the group, from 1.
    pub number: u32,
    /// The reason, as the service says it.
    pub reason: String,
    /// The largest rate in bytes a second that would be granted in its place.
    pub largest_rate: Option<u64>,
    /// The least memory in bytes with which it would be granted.
    pub least_memory: Option<u64>,
}

impl StreamSet {
    /// Asks the admission of the service.
    ///
    /// # Errors
    /// If the drive is unknown, or blocks are not on it.
    pub fn plan(&self) -> Result<StreamPlan, Failure> {
        let disk = PlannedDisk::new(self)?;
        let granting = disk.grant(&self.groups)?;
        let share = granting.plan.map_or(0, |plan| plan.share);
        let head_percent = share as f64 / 1e7;
        let fits = granting.refusal.is_none();
        let mut groups = Vec::new();
        for (group, granted) in self.groups.iter().zip(&granting.groups) {
            groups.push(PlannedGroup {
                name: group.name.clone(),
                mode: group.mode.name(),
                count: group.count,
                granted: granted.count,
                rate: group.rate,
                buffer: group.buffer,
                memory: granted.memory,
                batch: granting
                    .plan
                    .map_or(0, |plan| batch(disk.rate(group), plan.round)),
                more: match fits {
                    true => Some(disk.more(&self.groups, group)?),
                    false => None,
                },
            });
        }
        Ok(StreamPlan {
            drive: self.drive.clone(),
            mode: Label::InFirmware,
            fits,
            groups,
            head_percent,
            promised_percent: f64::from(self.promise.foreground_permille) / 10.0,
            left_percent: 100.0 - head_percent,
            round_ms: granting.plan.map_or(0.0, |plan| {
                plan.round.as_millis_f64() * self.time_scale.times()
            }),
            memory: granting.memory,
            memory_left: self.promise.memory - granting.memory,
            nearest: match fits {
                true => None,
                false => Some(nearest::nearest(&disk, &self.groups)?),
            },
            refusal: granting.refusal,
        })
    }
}

/// Bytes of a batch: what a stream is due in a round, rounded up.
fn batch(rate: u64, round: Duration) -> u64 {
    let bytes = u128::from(rate) * u128::from(round.as_nanos());
    u64::try_from(bytes.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}

/// A disk before its first stream.
struct PlannedDisk {
    belief: Arc<Profile>,
    times: HeadTimes,
    promise: Promise,
    memory: MemoryRule,
    time_scale: TimeScale,
}

/// The granted streams of a set.
struct Granting {
    groups: Vec<GrantedGroup>,
    plan: Option<Plan>,
    memory: u64,
    refusal: Option<PlanRefusal>,
}

/// The granted streams of a group.
#[derive(Clone, Copy, Debug, Default)]
struct GrantedGroup {
    count: u32,
    /// The largest memory of one.
    memory: u64,
}

/// What happens after a refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterRefusal {
    /// No other stream comes.
    Stop,
    /// The next group comes.
    NextGroup,
}

impl PlannedDisk {
    fn new(set: &StreamSet) -> Result<Self, Failure> {
        let whole = named::drive(&set.drive)?;
        // The service's streams are on the first of two actuators.
        let belief = match whole.actuators {
            0 | 1 => whole,
            _ => whole.of_actuator(0),
        };
        let belief = Arc::new(belief);
        let (promise, memory) =
            promise_to_streams(&set.promise, set.time_scale, belief.block_bytes);
        let times = head_times(&belief, promise.beyond);
        Ok(PlannedDisk {
            times: times.map_err(Failure::input)?,
            belief,
            promise,
            memory,
            time_scale: set.time_scale,
        })
    }

    /// The same disk with so much memory for streams.
    fn with_memory(&self, total: u64) -> PlannedDisk {
        PlannedDisk {
            belief: Arc::clone(&self.belief),
            times: self.times.clone(),
            promise: self.promise.clone(),
            time_scale: self.time_scale,
            memory: MemoryRule {
                total,
                ..self.memory
            },
        }
    }

    /// Attaches the streams in order, until one is refused.
    fn grant(&self, groups: &[StreamGroup]) -> Result<Granting, Failure> {
        self.grant_by(groups, AfterRefusal::Stop)
    }

    fn grant_by(&self, groups: &[StreamGroup], after: AfterRefusal) -> Result<Granting, Failure> {
        let tracks = BelievedTracks(Arc::clone(&self.belief));
        let Promise {
            rules,
            quotas,
            settings,
            ..
        } = self.promise.clone();
        let mut streams = Streams::new(self.times.clone(), rules, quotas, settings, tracks);
        let mut granting = Granting {
            groups: vec![GrantedGroup::default(); groups.len()],
            plan: None,
            memory: 0,
            refusal: None,
        };
        for (place, group) in groups.iter().enumerate() {
            let map = self.map(group)?;
            for number in 1..=group.count {
                let left = self.memory.total - granting.memory;
                let attached = self.attach(&mut streams, group, &map, left);
                match attached {
                    Ok((memory, _)) => {
                        let granted = &mut granting.groups[place];
                        granted.count = number;
                        granted.memory = granted.memory.max(memory);
                        granting.memory += memory;
                    }
                    Err(refused) => {
                        let refusal = self.refusal(group, number, &refused);
                        granting.refusal.get_or_insert(refusal);
                        break;
                    }
                }
            }
            if granting.refusal.is_some() && after == AfterRefusal::Stop {
                break;
            }
        }
        granting.plan = streams.admission().plan();
        Ok(granting)
    }

    fn attach(
        &self,
        streams: &mut Streams<BelievedTracks>,
        group: &StreamGroup,
        map: &LocationMap,
        left: u64,
    ) -> Result<(u64, Attached), NoMemory<Refusal>> {
        let direction = group.mode.direction();
        let zone = zone_over(&self.belief, map, self.promise.beyond, direction);
        let terms = group.terms();
        let least = |refusal: &Refusal| refusal.least_memory;
        self.memory.attach(&terms, left, least, |memory| {
            let attach = Attach {
                user: 0,
                terms: Terms {
                    rate: self.rate(group),
                    memory: Some(memory),
                    ..terms.clone()
                },
                map: map.clone(),
            };
            streams.attach(Instant::ZERO, attach, zone)
        })
    }

    /// The rate of a stream in the drive's time. A stretched second has more of the client's bytes. Rounded up, as the
    /// service does.
    fn rate(&self, group: &StreamGroup) -> u64 {
        (group.rate as f64 * self.time_scale.times()).ceil() as u64
    }

    /// The refusal of a stream, in the time of clients.
    fn refusal(
        &self,
        group: &StreamGroup,
        number: u32,
        refused: &NoMemory<Refusal>,
    ) -> PlanRefusal {
        let refusal = match refused {
            NoMemory::Refused(refusal) | NoMemory::Exhausted { refusal, .. } => Some(refusal),
            NoMemory::Used { .. } => None,
        };
        PlanRefusal {
            name: group.name.clone(),
            number,
            reason: match refused {
                NoMemory::Refused(refusal) => refusal.reason.to_string(),
                NoMemory::Exhausted { .. } | NoMemory::Used { .. } => refused.to_string(),
            },
            largest_rate: refusal.and_then(|refusal| {
                Some((refusal.largest_rate?.bytes() as f64 / self.time_scale.times()) as u64)
            }),
            least_memory: refusal.and_then(|refusal| refusal.least_memory),
        }
    }

    /// The number of streams like `group` that are granted after `groups`.
    fn more(&self, groups: &[StreamGroup], group: &StreamGroup) -> Result<u32, Failure> {
        let further = StreamGroup {
            count: MOST_STREAMS,
            ..group.clone()
        };
        let all = [groups, &[further]].concat();
        let granting = self.grant(&all)?;
        Ok(granting.groups.last().map_or(0, |granted| granted.count))
    }

    /// A file anywhere among the blocks of the group.
    fn map(&self, group: &StreamGroup) -> Result<LocationMap, Failure> {
        let all = self.belief.geometry.sectors().0;
        let blocks = group.blocks.clone().unwrap_or(0..all);
        let name = &group.name;
        if blocks.is_empty() || blocks.end > all {
            let Range { start, end } = blocks;
            return Err(Failure::input(format!(
                "stream {name}: blocks {start}..{end}: expected some of 0..{all}, those of the first actuator"
            )));
        }
        let bytes = u64::from(self.belief.block_bytes);
        let length = blocks.end - blocks.start;
        let extent = Extent::new(Lba(blocks.start), Sectors(length)).map_err(Failure::input)?;
        let piece = Piece { offset: 0, extent };
        LocationMap::new(vec![piece], bytes, length * bytes).map_err(Failure::input)
    }
}

impl StreamGroup {
    /// The terms of one of them.
    pub fn terms(&self) -> Terms {
        Terms {
            name: self.name.clone(),
            mode: self.mode,
            memory: self.memory,
            ..Terms::play(self.rate, self.buffer)
        }
    }
}

/// Streams of a group at most. A choice, far above what a disk serves.
pub const MOST_STREAMS: u32 = 10_000;

#[cfg(test)]
mod tests;
