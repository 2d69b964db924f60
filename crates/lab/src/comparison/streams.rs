//! Players and recorders beside the load.

use block::{Extent, Instant, Lba, Sectors, Terms};
use engine::Engine;
use engine::streams::{NotGranted, Promise};
use serde::Serialize;
use server::clock::TimeScale;
use server::config::StreamsConfig;
use server::service::promise_to_streams;
use simulator::streaming::{Applications, AttachedStream, StreamingFigures};
use stream::memory::{MemoryRule, NoMemory};
use stream::rate::Rate;
use stream::streams::Attach;
use stream::{LocationMap, location::Piece};

use crate::Failure;
use crate::stream_plan::StreamGroup;

/// The streams of a run.
#[derive(Clone, Debug)]
pub struct StreamsBeside {
    promise: Promise,
    memory: MemoryRule,
    block_bytes: u64,
    groups: Vec<StreamGroup>,
    until: Instant,
}

/// What became of the streams of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamsFigures {
    /// The number of streams.
    pub asked: u32,
    /// The number of granted streams.
    pub granted: u32,
    /// The first refusal in words, if there is one.
    pub refused: Option<String>,
    /// The round when all streams were attached, in milliseconds; 0 without streams.
    pub round_ms: f64,
    /// Reads and writes of the players and recorders since all of them were served.
    pub accesses: u64,
    /// Accesses that waited for the disk.
    pub waited: u64,
    /// The longest wait of an access, in milliseconds.
    pub longest_wait_ms: f64,
    /// Batches that ended after their deadline.
    pub late: u64,
    /// Guarantees that lapsed.
    pub lapsed: u64,
    /// The share of head time that commands of streams took, in percent.
    pub head_percent: f64,
}

impl StreamsBeside {
    /// These groups, whose blocks are known, on a drive with this promise, until they leave.
    pub fn new(
        promise: &StreamsConfig,
        block_bytes: u32,
        groups: Vec<StreamGroup>,
        until: Instant,
    ) -> Self {
        let (promise, memory) = promise_to_streams(promise, TimeScale::REAL, block_bytes);
        StreamsBeside {
            promise,
            memory,
            block_bytes: u64::from(block_bytes),
            groups,
            until,
        }
    }

    /// The engine with the promise.
    ///
    /// # Errors
    /// If the belief has no seek curve.
    pub fn promise(&self, engine: Engine) -> Result<Engine, Failure> {
        let engine = engine.with_guarantees(self.promise.clone());
        engine.map_err(Failure::input)
    }

    /// Attaches the streams in order, as a service does. Those that are refused do not play.
    ///
    /// # Errors
    /// If a file does not fit its volume.
    pub fn attach(&self, engine: &mut Engine) -> Result<(Applications, StreamsFigures), Failure> {
        let mut attached = Vec::new();
        let mut figures = StreamsFigures {
            asked: self.groups.iter().map(|group| group.count).sum(),
            granted: 0,
            refused: None,
            round_ms: 0.0,
            accesses: 0,
            waited: 0,
            longest_wait_ms: 0.0,
            late: 0,
            lapsed: 0,
            head_percent: 0.0,
        };
        let mut used = 0;
        for group in &self.groups {
            let terms = group.terms();
            for number in 0..group.count {
                let map = self.file(group, number)?;
                let left = self.memory.total - used;
                match self.attach_one(engine, &terms, &map, left) {
                    Ok((memory, stream)) => {
                        used += memory;
                        attached.push(AttachedStream {
                            stream: stream.stream,
                            direction: group.mode.direction(),
                            rate: Rate::new(group.rate).ok_or_else(|| {
                                Failure::input(format!("stream {}: a rate of 0", group.name))
                            })?,
                            at_once: group.buffer,
                        });
                    }
                    Err(refusal) => {
                        let words = format!("{} {}: {refusal}", group.name, number + 1);
                        figures.refused.get_or_insert(words);
                    }
                }
            }
        }
        figures.granted = attached.len() as u32;
        let plan = engine.guarantees().plan();
        figures.round_ms = plan.map_or(0.0, |plan| plan.round.as_millis_f64());
        let applications = Applications::of(attached, plan, self.promise.rules.latency, self.until);
        Ok((applications, figures))
    }

    fn attach_one(
        &self,
        engine: &mut Engine,
        terms: &Terms,
        map: &LocationMap,
        left: u64,
    ) -> Result<(u64, stream::streams::Attached), NoMemory<NotGranted>> {
        let least = |refused: &NotGranted| match refused {
            NotGranted::Refused(refusal) => refusal.least_memory,
            _ => None,
        };
        self.memory.attach(terms, left, least, |memory| {
            let attach = Attach {
                user: 0,
                terms: Terms {
                    memory: Some(memory),
                    ..terms.clone()
                },
                map: map.clone(),
            };
            engine.attach(Instant::ZERO, attach)
        })
    }

    /// The file of a stream: an equal share of the volume's blocks, in the order of the streams.
    fn file(&self, group: &StreamGroup, number: u32) -> Result<LocationMap, Failure> {
        let blocks = group.blocks.clone().unwrap_or_default();
        let sharing = self
            .groups
            .iter()
            .filter(|other| other.blocks == group.blocks);
        let before = sharing
            .clone()
            .take_while(|other| !std::ptr::eq(*other, group));
        let place = before.map(|other| u64::from(other.count)).sum::<u64>() + u64::from(number);
        let all: u64 = sharing.map(|other| u64::from(other.count)).sum();
        let page = (PAGE / self.block_bytes).max(1);
        let share = (blocks.end - blocks.start) / all.max(1) / page * page;
        let extent = Extent::new(Lba(blocks.start + place * share), Sectors(share));
        let extent = extent.map_err(|_| {
            Failure::input(format!(
                "stream {}: {all} files do not fit the volume: expected fewer",
                group.name
            ))
        })?;
        let pieces = vec![Piece { offset: 0, extent }];
        LocationMap::new(pieces, self.block_bytes, share * self.block_bytes).map_err(Failure::input)
    }
}

impl StreamsFigures {
    /// With what the applications have kept.
    #[must_use]
    pub fn with(self, kept: &StreamingFigures) -> Self {
        StreamsFigures {
            accesses: kept.accesses,
            waited: kept.waited,
            longest_wait_ms: kept.longest_wait.as_millis_f64(),
            late: kept.late,
            lapsed: kept.lapsed,
            head_percent: 100.0 * kept.head_share(),
            ..self
        }
    }
}

/// Bytes of a page, with which files begin.
const PAGE: u64 = 4096;
