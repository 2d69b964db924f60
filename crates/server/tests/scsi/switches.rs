//! Switches are turned for the time of probing, and as before afterwards, whatever happens in between.

use std::path::Path;

use block::{Action, Durability, Extent, Lba, Switch};
use server::disk::back_end::scsi::ScsiDrive;
use server::disk::back_end::scsi::cache_switch::CacheSwitch;
use server::disk::back_end::scsi::probed::{MediumRead, ProbedDrive};
use server::disk::back_end::scsi::record::RecordError;
use server::disk::back_end::scsi::switched::SwitchReport;

use crate::commands::{drive, machine};
use crate::machine::{Behind, ScsiMachine};

const BOOT: &str = "this boot";
const MOST_BYTES: usize = 64 << 10;

fn claim(
    machine: &ScsiMachine,
    folder: &Path,
) -> Result<(ProbedDrive, Vec<SwitchReport>), RecordError> {
    ProbedDrive::claim(drive(machine), folder, BOOT, MOST_BYTES)
}

/// Both switches, as the drive has them: on or off.
fn switches(machine: &ScsiMachine) -> (bool, bool) {
    let state = machine.state();
    (state.is_on(2, 0x04), !state.is_on(12, 0x20))
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("the folder").count()
}

/// Turns both switches off, one on and off again, and reads.
fn probe(probed: &ProbedDrive) {
    let _ = probed.turn_off(CacheSwitch::WriteCache);
    let _ = probed.turn_off(CacheSwitch::LookAhead);
    let mut block = [0; 512];
    for action in [
        Action::SetLookAhead(Switch::On),
        Action::Read {
            extent: Extent::block(Lba(77)),
            durability: Durability::Volatile,
        },
        Action::SetLookAhead(Switch::Off),
    ] {
        let _ = probed.carry_out(action, &mut block);
    }
}

#[test]
fn switches_are_off_while_probing_and_as_before_afterwards() {
    for behind in [Behind::Scsi, Behind::Ata] {
        let folder = tempfile::tempdir().expect("a folder");
        let machine = machine(behind);
        let (probed, reports) = claim(&machine, folder.path()).expect("a drive");
        assert_eq!(reports, [], "nothing was left");
        probe(&probed);
        assert_eq!(switches(&machine), (false, false), "{behind:?}");
        let again = claim(&machine, folder.path()).expect_err("one owner");
        assert!(matches!(again, RecordError::Locked(_)), "{again}");
        let said: Vec<String> = probed.restore().iter().map(ToString::to_string).collect();
        let expected = [
            "the look-ahead is on again, as before",
            "the write cache is on again, as before",
        ];
        assert_eq!(said, expected, "{behind:?}");
        assert_eq!(switches(&machine), (true, true), "{behind:?}");
        // Threads may have the drive for as long as the process lives.
        assert_eq!(names(folder.path()), 0, "no record stays");
        assert_eq!(probed.restore(), []);
    }
}

/// A switch that was off before stays off, and is no business of the end.
#[test]
fn what_was_off_before_stays_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let machine = machine(Behind::Scsi);
    drive(&machine)
        .turn(CacheSwitch::WriteCache, Switch::Off)
        .expect("turned");
    let (probed, _) = claim(&machine, folder.path()).expect("a drive");
    probe(&probed);
    drop(probed);
    assert_eq!(switches(&machine), (false, true));
}

/// A drive that nobody restores explicitly is restored when it is dropped, as by an error or a panic.
#[test]
fn an_error_in_the_middle_restores_the_switches() {
    let folder = tempfile::tempdir().expect("a folder");
    let machine = machine(Behind::Scsi);
    let failing = || -> Result<(), RecordError> {
        let (probed, _) = claim(&machine, folder.path())?;
        probe(&probed);
        claim(&machine, folder.path()).map(|_| ())
    };
    assert!(failing().is_err());
    assert_eq!(switches(&machine), (true, true));
    assert_eq!(names(folder.path()), 0);
}

/// The path is gone after any number of commands, as if the process were killed there: the next start puts
/// back what was left.
#[test]
fn the_next_start_puts_back_what_was_left_at_any_command() {
    for behind in [Behind::Scsi, Behind::Ata] {
        let mut left_over = 0;
        for commands in 0..80 {
            let folder = tempfile::tempdir().expect("a folder");
            let machine = machine(behind);
            let (probed, _) = claim(&machine, folder.path()).expect("a drive");
            machine.state().gone_after = Some(commands);
            probe(&probed);
            drop(probed);
            let was_cut = machine.state().gone_after == Some(0);
            machine.state().gone_after = None;
            let before = switches(&machine);
            let (probed, reports) = claim(&machine, folder.path()).expect("a drive");
            assert_eq!(switches(&machine), (true, true), "after {commands}");
            assert!(was_cut || reports.is_empty(), "after {commands}");
            assert!(before == (true, true) || !reports.is_empty());
            left_over += usize::from(before != (true, true));
            drop(probed);
            assert_eq!(names(folder.path()), 0, "after {commands}");
        }
        assert!(
            left_over > 5,
            "{behind:?}: {left_over} of 80 left something"
        );
    }
}

/// A reset at any command restores the saved switches. The drive goes on without look-ahead all the same.
#[test]
fn switches_are_set_again_after_a_reset_at_any_command() {
    for behind in [Behind::Scsi, Behind::Ata] {
        for commands in 0..60 {
            let folder = tempfile::tempdir().expect("a folder");
            let machine = machine(behind);
            let (probed, _) = claim(&machine, folder.path()).expect("a drive");
            machine.state().reset_after = Some(commands);
            probe(&probed);
            let mut block = [0; 512];
            let read = Action::Read {
                extent: Extent::block(Lba(99)),
                durability: Durability::Volatile,
            };
            for _ in 0..60 {
                probed.carry_out(read, &mut block).expect("a read");
            }
            assert_eq!(switches(&machine), (false, false), "after {commands}");
            for report in probed.restore() {
                assert_eq!(report.failed, None, "after {commands}");
            }
            assert_eq!(switches(&machine), (true, true), "after {commands}");
        }
    }
}

/// FUA where the drive obeys it, verification where it does not, and nothing without either.
#[test]
fn reads_of_the_medium_are_found_by_their_times() {
    let found = |behind, fua, extras, is_fast: bool| {
        let folder = tempfile::tempdir().expect("a folder");
        let machine = machine(behind);
        let (probed, _) = claim(&machine, folder.path()).expect("a drive");
        machine.state().fua = fua;
        machine.state().extras = extras;
        let clock = || match is_fast {
            false => machine.state().now,
            true => block::Instant::ZERO,
        };
        probed.find_medium_read(&clock)
    };
    let (on, off) = (Switch::On, Switch::Off);
    for behind in [Behind::Scsi, Behind::Ata] {
        assert_eq!(found(behind, on, on, false), Some(MediumRead::Fua));
        assert_eq!(found(behind, off, on, false), Some(MediumRead::Verify));
        assert_eq!(found(behind, off, off, false), None);
        // Memory answers at once, whatever it says of FUA.
        assert_eq!(found(behind, on, on, true), None);
    }
}

#[test]
fn a_record_that_cannot_be_written_leaves_the_switches_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let machine = machine(Behind::Scsi);
    let failed = claim(&machine, &file).expect_err("no folder");
    assert!(matches!(failed, RecordError::File { .. }), "{failed}");
    assert_eq!(switches(&machine), (true, true));
    let kept: &ScsiDrive = &drive(&machine);
    assert_eq!(kept.switch(CacheSwitch::LookAhead).ok(), Some(Switch::On));
}
