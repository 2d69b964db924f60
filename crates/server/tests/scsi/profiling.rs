//! The profiler over SCSI commands, in virtual time: what it finds with cache control.

use std::collections::VecDeque;
use std::sync::Arc;

use block::{Command, Duration, Instant, Outcome, Refused, Status};
use drive::{Imperfections, VirtualDrive};
use profiler::rehearsal::{RehearsalDrive, Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, procedure};
use server::disk::back_end::scsi::cache_switch::CacheSwitch;
use server::disk::back_end::scsi::probed::{MediumRead, ProbedDrive};

use crate::commands::{drive, truth};
use crate::machine::{Behind, ScsiMachine};

/// A drive of virtual time that gets every command as SCSI bytes.
struct ScsiPath {
    machine: ScsiMachine,
    probed: ProbedDrive,
    outcomes: VecDeque<Outcome>,
}

impl RehearsalDrive for ScsiPath {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        {
            let mut state = self.machine.state();
            state.now = state.now.max(now);
        }
        let blocks = command
            .action
            .extent()
            .map_or(0, |extent| extent.length().0);
        let mut bytes = vec![0; blocks as usize * 512];
        let done = self.probed.carry_out(command.action, &mut bytes);
        self.outcomes.push_back(Outcome {
            id: command.id,
            at: self.machine.state().now,
            status: match (done, command.action.extent()) {
                (Err(_), Some(extent)) => Status::MediumError { at: extent.start() },
                _ => Status::Good,
            },
            account: None,
        });
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        let at = self.outcomes.front()?.at;
        (at <= now).then(|| self.outcomes.pop_front())?
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.outcomes.front().map(|outcome| outcome.at)
    }
}

/// The drive's time for all of it: half of what a disk is allowed.
const BUDGET: Duration = Duration::from_secs(300);

/// The whole procedure over SCSI commands of one at a time, without writes: seeks to 50 us in the mean, and
/// the switches as before at the end.
#[test]
fn seek_tables_are_found_over_scsi_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let truth = truth();
    let noise = Imperfections {
        seek_noise: Duration::from_micros(60),
        overhead_noise: Duration::from_micros(20),
        ..Imperfections::default()
    };
    let machine = ScsiMachine::new(Arc::clone(&truth), noise, Behind::Scsi);
    let (probed, _) =
        ProbedDrive::claim(drive(&machine), folder.path(), "boot", 1 << 20).expect("a drive");
    for switch in CacheSwitch::ALL {
        probed.turn_off(switch).expect("a switch");
    }
    let clock = || machine.state().now;
    assert_eq!(probed.find_medium_read(&clock), Some(MediumRead::Fua));
    let twin = VirtualDrive::new(Arc::clone(&truth));
    let device = DriveIdentity {
        depth: 1,
        ..DriveIdentity::of(&twin, Offers::CacheControl, WritePermission::Forbidden)
    };
    let mut path = ScsiPath {
        machine: machine.clone(),
        probed,
        outcomes: VecDeque::new(),
    };
    let mut profiler = Profiler::new(device, Findings::default(), |prober| {
        procedure::complete(prober, BUDGET)
    });
    let begun = machine.state().now;
    let ended = rehearse(&mut profiler, &mut path, begun, BUDGET);
    assert!(matches!(ended, Rehearsed::Finished(_)), "{ended:?}");
    let findings = profiler.findings();
    let arm = findings.arm.expect("an arm");
    let cylinders = truth.geometry.cylinders();
    let table = arm.read_table(cylinders).expect("a table");
    let off = |distance: u32| {
        let is = truth.seek.read().time(distance).as_nanos() as f64;
        (table.time(distance).as_nanos() as f64 - is).abs() / 1e3
    };
    let mean = (1..cylinders).map(off).sum::<f64>() / f64::from(cylinders - 1);
    assert!(mean < 50.0, "seeks are {mean} us off");
    assert!(path.probed.restore().iter().all(|it| it.failed.is_none()));
    let state = machine.state();
    assert!(state.is_on(2, 0x04) && !state.is_on(12, 0x20));
    assert!(state.contents.is_empty(), "nothing was written");
    assert!(!state.codes.contains(&0x8a), "no write was sent");
}
