//! Several loads at once, each on a range of the drive's blocks and with a class of its own: the clients of a
//! service's exports.

use block::{Class, Extent, Finished, Instant, Lba, Request};
use simulator::run::{Arrival, Load, LoadError, LoadPart};
use simulator::workload::{LARGEST_COUNT, Synthetic};

use super::{LoadSource, RunningLoad};
use crate::Failure;

/// A load with its place.
#[derive(Clone, Debug)]
pub struct PlacedLoad {
    /// The name, which no other load has.
    pub name: String,
    /// The load on a drive of so many blocks as the range has.
    pub source: LoadSource,
    /// The class of its requests.
    pub class: Class,
    /// The first block of the range.
    pub first: u64,
    /// The number of its blocks.
    pub blocks: u64,
}

/// These loads on a drive.
pub struct PlacedLoads(Vec<PlacedPart>);

struct PlacedPart {
    name: String,
    class: Class,
    first: u64,
    load: RunningLoad,
    /// The number of its parts, 1 if it is not a mixture.
    parts: u16,
    ahead: Option<Arrival>,
    is_over: bool,
}

impl PlacedLoads {
    /// Starts the loads.
    ///
    /// # Errors
    /// If a load does not fit its range, or cannot be read.
    pub fn begin(loads: &[PlacedLoad], block_bytes: u32) -> Result<Self, Failure> {
        let part = |(place, placed): (u32, &PlacedLoad)| {
            let load = match &placed.source {
                // Tasks of different loads are different programs.
                LoadSource::Synthetic(workload) => {
                    let load = Synthetic::new(workload, block_bytes, placed.blocks);
                    let load = load.map_err(Failure::input)?;
                    RunningLoad::Synthetic(Box::new(load.after_tasks(place * LARGEST_COUNT)))
                }
                other => other.begin(block_bytes, placed.blocks)?,
            };
            Ok(PlacedPart {
                name: placed.name.clone(),
                class: placed.class,
                first: placed.first,
                parts: load.parts().len().clamp(1, usize::from(u16::MAX)) as u16,
                load,
                ahead: None,
                is_over: false,
            })
        };
        let parts = (0..).zip(loads).map(part);
        Ok(PlacedLoads(parts.collect::<Result<_, Failure>>()?))
    }

    /// The load with this part, and the number of parts before it.
    fn of(&mut self, part: LoadPart) -> (&mut PlacedPart, u16) {
        let (mut before, mut place) = (0, 0);
        while part.0 >= before + self.0[place].parts {
            before += self.0[place].parts;
            place += 1;
        }
        (&mut self.0[place], before)
    }
}

impl PlacedPart {
    /// An arrival of the load as one of the drive.
    fn placed(&self, before: u16, arrival: Option<Arrival>) -> Option<Arrival> {
        let mut arrival = arrival?;
        let demand = &mut arrival.demand;
        demand.extent = moved(demand.extent, |start| start + self.first);
        demand.class = self.class;
        demand.part = LoadPart(before + demand.part.0);
        Some(arrival)
    }

    /// Blocks of the drive as those of the load.
    fn own(&self, extent: Extent) -> Extent {
        moved(extent, |start| start - self.first)
    }
}

fn moved(extent: Extent, start: impl Fn(u64) -> u64) -> Extent {
    let start = Lba(start(extent.start().0));
    Extent::new(start, extent.length()).expect("as long as before, on a drive")
}

impl Load for PlacedLoads {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        for part in &mut self.0 {
            if part.ahead.is_none() && !part.is_over {
                part.ahead = part.load.next_arrival()?;
                part.is_over = part.ahead.is_none();
            }
        }
        // Of those at the same time, the one of the load that stands first in the file.
        let (mut before, mut next) = (0, None::<(Instant, u16, usize)>);
        for (place, part) in self.0.iter().enumerate() {
            if let Some(arrival) = &part.ahead
                && next.is_none_or(|(at, ..)| arrival.at < at)
            {
                next = Some((arrival.at, before, place));
            }
            before += part.parts;
        }
        Ok(next.and_then(|(_, before, place)| {
            let arrival = self.0[place].ahead.take();
            self.0[place].placed(before, arrival)
        }))
    }

    fn on_finished(
        &mut self,
        now: Instant,
        part: LoadPart,
        finished: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        let (placed, before) = self.of(part);
        let request = finished.request;
        let own = Finished {
            request: Request {
                extent: placed.own(request.extent),
                ..request
            },
            ..*finished
        };
        let next = placed
            .load
            .on_finished(now, LoadPart(part.0 - before), &own)?;
        Ok(placed.placed(before, next))
    }

    fn on_skipped(
        &mut self,
        now: Instant,
        arrival: &Arrival,
    ) -> Result<Option<Arrival>, LoadError> {
        let (placed, before) = self.of(arrival.demand.part);
        let mut own = *arrival;
        own.demand.extent = placed.own(own.demand.extent);
        own.demand.part = LoadPart(own.demand.part.0 - before);
        let next = placed.load.on_skipped(now, &own)?;
        Ok(placed.placed(before, next))
    }

    fn place(&self) -> Option<String> {
        let mut traces = self.0.iter().filter_map(|part| part.load.place());
        traces.next()
    }

    fn parts(&self) -> Vec<String> {
        let names = self.0.iter().flat_map(|part| {
            let parts = part.load.parts();
            match parts.is_empty() {
                true => vec![part.name.clone()],
                false => parts
                    .iter()
                    .map(|name| format!("{}: {name}", part.name))
                    .collect(),
            }
        });
        names.collect()
    }
}
