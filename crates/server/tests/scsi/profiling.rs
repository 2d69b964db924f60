//! The profiler over SCSI commands, in virtual time: what it finds with cache control.

use std::collections::VecDeque;
use std::sync::Arc;

use block::{Command, Duration, Extent, Instant, Lba, Outcome, Refused, Sectors, Status};
use drive::{Imperfections, VirtualDrive};
use drive::{Profile, catalog};
use profiler::rehearsal::{RangeDrive, RehearsalDrive, Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, belief, procedure};
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

/// The ranges of page B9h are profiled one after the other, each as a drive of its own. Both are one belief,
/// whose seeks are right to 60 us in the mean.
#[test]
fn the_ranges_of_two_actuators_lead_to_one_belief() {
    let one = catalog::find("dec-rz26")
        .expect("a shipped drive")
        .text()
        .to_owned();
    let text = belief::of_ranges("two", &[one.clone(), one]);
    let truth = Arc::new(Profile::parse(&text, "two.toml").expect("a profile"));
    let noise = Imperfections {
        seek_noise: Duration::from_micros(60),
        overhead_noise: Duration::from_micros(20),
        ..Imperfections::default()
    };
    let machine = ScsiMachine::new(Arc::clone(&truth), noise, Behind::Scsi);
    let stated = [0, 1].map(|arm| truth.share_of(arm));
    let pairs = stated.map(|range| (range.start().0, range.length().0));
    machine.state().declare_ranges(&pairs);
    let ranges = drive(&machine).positioning_ranges().expect("page B9h");
    let texts: Vec<String> = ranges
        .iter()
        .map(|range| {
            let folder = tempfile::tempdir().expect("a folder");
            let (probed, _) = ProbedDrive::claim(drive(&machine), folder.path(), "boot", 1 << 20)
                .expect("a drive");
            let clock = || machine.state().now;
            assert_eq!(probed.find_medium_read(&clock), Some(MediumRead::Fua));
            for switch in CacheSwitch::ALL {
                probed.turn_off(switch).expect("a switch");
            }
            let device = DriveIdentity {
                blocks: range.blocks,
                block_bytes: 512,
                physical_block_bytes: 512,
                depth: 1,
                offers: Offers::CacheControl,
                writes: WritePermission::Forbidden,
            };
            let path = ScsiPath {
                machine: machine.clone(),
                probed,
                outcomes: VecDeque::new(),
            };
            let extent = Extent::new(Lba(range.first), Sectors(range.blocks)).expect("blocks");
            let mut path = RangeDrive::new(path, extent);
            let whole = |prober| procedure::complete(prober, BUDGET);
            let mut profiler = Profiler::new(device, Findings::default(), whole);
            let begun = machine.state().now;
            let ended = rehearse(&mut profiler, &mut path, begun, BUDGET);
            assert!(matches!(ended, Rehearsed::Finished(_)), "{ended:?}");
            belief::text(&profiler.findings(), &device, "range")
        })
        .collect();
    let texts: [String; 2] = texts.try_into().expect("two ranges");
    let found = belief::of_ranges("found", &texts);
    let found = Profile::parse(&found, "found.toml").expect("a belief of two actuators");
    let confidence = found.confidence.as_ref().expect("it states it");
    assert_eq!(confidence.doubt(), None);
    for arm in [0, 1] {
        assert_eq!(found.share_of(arm), truth.share_of(arm));
        let (found, truth) = (found.of_actuator(arm), truth.of_actuator(arm));
        let cylinders = truth.geometry.cylinders();
        let off = |distance: u32| {
            let [is, found] = [&truth, &found].map(|it| it.seek.read().time(distance).as_nanos());
            (found as f64 - is as f64).abs() / 1e3
        };
        let mean = (1..cylinders).map(off).sum::<f64>() / f64::from(cylinders - 1);
        assert!(mean < 60.0, "seeks of arm {arm} are {mean} us off");
    }
}
