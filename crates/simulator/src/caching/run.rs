//! Serves a load on the system model, from event to event.

use super::load::{Load, Pace};
use super::report::Report;
use super::setup::BadSetup;
use super::system::System;

/// Runs all of a load.
///
/// # Errors
/// If a request cannot be served.
pub fn run(system: &mut System, load: &mut dyn Load, pace: Pace) -> Result<Report, BadSetup> {
    match pace {
        Pace::Open => open(system, load)?,
        Pace::Closed => closed(system, load)?,
    }
    Ok(system.report())
}

fn open(system: &mut System, load: &mut dyn Load) -> Result<(), BadSetup> {
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

fn closed(system: &mut System, load: &mut dyn Load) -> Result<(), BadSetup> {
    for client in 0..system.clients() as u32 {
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
