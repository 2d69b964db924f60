//! Runs a load on the system model, from event to event.

use super::load::{ArrivalTiming, CacheLoad};
use super::report::CachingReport;
use super::setup::BadSetup;
use super::system::System;

/// Runs a load to its end.
///
/// # Errors
/// If a request cannot be served.
pub fn run(
    system: &mut System,
    load: &mut dyn CacheLoad,
    pace: ArrivalTiming,
) -> Result<CachingReport, BadSetup> {
    match pace {
        ArrivalTiming::Open => open(system, load)?,
        ArrivalTiming::Closed => closed(system, load, 1)?,
        ArrivalTiming::Outstanding(each) => closed(system, load, each)?,
    }
    Ok(system.report())
}

fn open(system: &mut System, load: &mut dyn CacheLoad) -> Result<(), BadSetup> {
    while let Some(arrival) = load.arrival(0)? {
        while system.next_event().is_some_and(|at| at <= arrival.at) {
            system.step();
        }
        system.request(arrival.at, &arrival)?;
        while system.answered().is_some() {}
    }
    while !system.is_over() {
        system.step();
    }
    Ok(())
}

/// Each client has `each` requests outstanding.
fn closed(system: &mut System, load: &mut dyn CacheLoad, each: u32) -> Result<(), BadSetup> {
    let clients = system.clients() as u32;
    for client in (0..each.max(1)).flat_map(|_| 0..clients) {
        if let Some(arrival) = load.arrival(client)? {
            system.request(system.now(), &arrival)?;
        }
    }
    loop {
        while let Some(client) = system.answered() {
            if let Some(arrival) = load.arrival(client)? {
                system.request(system.now(), &arrival)?;
            }
        }
        if system.is_over() {
            return Ok(());
        }
        system.step();
    }
}
