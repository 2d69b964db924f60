//! The cases of Zhang et al., ICDCS 2008, and further ones: cache sizes relative to the load's
//! footprint, and algorithms.

use std::collections::VecDeque;
use std::sync::Arc;

use drive::Profile;

use super::load::{ArrivalTiming, CacheArrival, CacheLoad};
use super::report::CachingReport;
use super::run::run;
use super::setup::{
    BadSetup, CacheSpec, CachingSetup, FileEnds, Link, LowerLevel, Scheduler, Writes,
};
use super::system::System;

/// A prefetching algorithm of the paper with its replacement policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// The name in the paper's tables.
    pub name: &'static str,
    /// The name of the prefetcher here.
    pub prefetcher: &'static str,
    /// The replacement policy of both levels.
    pub replacement: &'static str,
}

/// The four algorithms of the paper: RA with P = 4; LRU at both levels, except for SARC.
pub const ALGORITHMS: [Algorithm; 4] = [
    algorithm("ra", "ra(p=4)", "lru"),
    algorithm("linux", "linux-2.4", "lru"),
    algorithm("sarc", "sarc", "sarc"),
    algorithm("amp", "amp", "lru"),
];

const fn algorithm(
    name: &'static str,
    prefetcher: &'static str,
    replacement: &'static str,
) -> Algorithm {
    Algorithm {
        name,
        prefetcher,
        replacement,
    }
}

/// The size of L1 relative to the footprint: the paper's H and L.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Upper {
    /// 5 %.
    High,
    /// 1 %.
    Low,
}

impl Upper {
    /// Both sizes.
    pub const ALL: [Upper; 2] = [Upper::High, Upper::Low];

    /// The name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Upper::High => "H",
            Upper::Low => "L",
        }
    }

    /// The number of blocks of L1, over all clients.
    fn of(self, footprint: u64) -> u64 {
        match self {
            Upper::High => footprint / 20,
            Upper::Low => footprint / 100,
        }
    }
}

/// The size of L2 in percent of L1: the paper's four values.
pub const L2_PERCENT: [u64; 4] = [200, 100, 10, 5];

/// A combination of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachingCase {
    /// The algorithm at the clients.
    pub above: Algorithm,
    /// The algorithm at all lower levels.
    pub below: Algorithm,
    /// The size of L1.
    pub upper: Upper,
    /// The size of L2 in percent of L1; a third level has the size of the second.
    pub percent: u64,
    /// Number of clients, which share L1's blocks evenly.
    pub clients: u32,
    /// Number of levels, two or more.
    pub levels: u32,
    /// Least number of frames of L2.
    pub least: u64,
}

impl CachingCase {
    /// A case of the paper: one algorithm at both levels, one client.
    pub const fn homogeneous(of: Algorithm, upper: Upper, percent: u64) -> CachingCase {
        CachingCase {
            above: of,
            below: of,
            upper,
            percent,
            clients: 1,
            levels: 2,
            least: 1,
        }
    }

    /// The system for a load with a footprint of this many blocks.
    pub fn setup(&self, footprint: u64, coordinator: &str, drive: &Arc<Profile>) -> CachingSetup {
        let upper = self.upper.of(footprint);
        let each = (upper / u64::from(self.clients.max(1))).max(1);
        let lower = (upper * self.percent / 100).max(self.least.max(1));
        let replacement = match coordinator {
            // What was sent goes first: the coordinator is a replacement.
            "du" => "du",
            _ => self.below.replacement,
        };
        let client = CacheSpec::new(each, self.above.replacement, self.above.prefetcher);
        let level = LowerLevel {
            level: CacheSpec::new(lower, replacement, self.below.prefetcher),
            coordinator: coordinator.to_owned(),
            link: Link::LAN,
        };
        CachingSetup {
            clients: vec![client; self.clients as usize],
            lower: vec![level; self.levels.saturating_sub(1) as usize],
            drive: Arc::clone(drive),
            scheduler: Scheduler::Elevator,
            file_ends: FileEnds::AllLevels,
            writes: Writes::AsReads,
        }
    }
}

/// One queue of requests per client; each request is sent when the one before has ended.
#[derive(Clone, Debug)]
struct PerClientQueues(Vec<VecDeque<CacheArrival>>);

impl CacheLoad for PerClientQueues {
    fn arrival(&mut self, client: u32) -> Result<Option<CacheArrival>, BadSetup> {
        Ok(self.0[client as usize].pop_front())
    }
}

/// Runs a load on a system.
///
/// # Errors
/// If the system cannot be built, or cannot serve a request.
pub fn serve(
    setup: &CachingSetup,
    arrivals: &[CacheArrival],
    pace: ArrivalTiming,
) -> Result<CachingReport, BadSetup> {
    let mut system = System::new(setup)?;
    match pace {
        ArrivalTiming::Open => run(&mut system, &mut arrivals.iter().copied(), pace),
        ArrivalTiming::Closed | ArrivalTiming::Outstanding(_) => {
            let mut dealt = vec![VecDeque::new(); setup.clients.len()];
            for arrival in arrivals {
                let clients = setup.clients.len();
                let own = dealt.get_mut(arrival.client as usize);
                let none = BadSetup::NoSuchClient(arrival.client, clients);
                own.ok_or(none)?.push_back(*arrival);
            }
            run(&mut system, &mut PerClientQueues(dealt), pace)
        }
    }
}

/// The least integer factor for recorded times at which the disk is busy at most [`BUSY`] percent
/// of the time, measured without prefetching. Traces of several volumes have the rate of several
/// disks; the system has one.
///
/// # Errors
/// If a request cannot be served.
pub fn stretch(
    arrivals: &[CacheArrival],
    footprint: u64,
    drive: &Arc<Profile>,
    writes: Writes,
) -> Result<u64, BadSetup> {
    let none = algorithm("none", "none", "lru");
    let case = CachingCase::homogeneous(none, Upper::High, 100);
    let setup = CachingSetup {
        writes,
        ..case.setup(footprint, "none", drive)
    };
    let busy = serve(&setup, arrivals, ArrivalTiming::Closed)?
        .disk
        .busy
        .as_nanos();
    let span = arrivals.last().map_or(0, |last| last.at.as_nanos()).max(1);
    Ok((busy * 100).div_ceil(span * BUSY).max(1))
}

/// Percent. A choice: a busier disk has no time for prefetching.
pub const BUSY: u64 = 70;
