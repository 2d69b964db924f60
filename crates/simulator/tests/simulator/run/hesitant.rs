//! A drive that goes on with something at an instant at which it has answered nothing.

use block::{Command, Instant, Outcome, Refused};
use drive::invented;
use simulator::driver::{Driver, SimulatedDrive};
use simulator::run::{Options, run};

use super::{Listed, Record, SimpleDrive, arrival, engine, ledger, limits};

/// A drive that has to be polled twice at a moment, as one that is profiled beside the load.
struct Hesitant {
    drive: SimpleDrive,
    asked: Option<Instant>,
}

impl SimulatedDrive for Hesitant {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.drive.submit(now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        match self.asked.replace(now) == Some(now) {
            true => self.drive.poll(now),
            false => None,
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.drive.next_wakeup()
    }
}

#[test]
fn a_drive_that_goes_on_at_an_instant_is_polled_again() {
    let arrivals = vec![
        arrival(0, 0, 8),
        arrival(1_000, 80, 8),
        arrival(90_000_000, 8, 8),
    ];
    let served = |is_hesitant: bool| {
        let mut record = Record::default();
        let mut load = Listed::new(arrivals.clone());
        let engine = engine("fcfs", limits(9, 2));
        let drive = SimpleDrive::new(invented::profile());
        let options = Options::default();
        let ran = match is_hesitant {
            true => {
                let drive = Hesitant { drive, asked: None };
                let mut driver = Driver::new(engine, drive);
                run(&mut driver, &mut load, &options, &mut ledger(), &mut record)
            }
            false => {
                let mut driver = Driver::new(engine, drive);
                run(&mut driver, &mut load, &options, &mut ledger(), &mut record)
            }
        };
        assert_eq!(ran.expect("a good load").requests, 3);
        record.finished
    };
    assert_eq!(served(true), served(false));
}
