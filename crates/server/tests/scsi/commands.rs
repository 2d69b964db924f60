//! Every command, and every error that a drive may answer it with.

use std::path::Path;
use std::sync::Arc;

use block::{Durability, Extent, Lba, Sectors, Switch};
use drive::{Imperfections, Profile, catalog};
use server::disk::back_end::scsi::cache_switch::CacheSwitch;
use server::disk::back_end::scsi::{
    Kind, Lasting, PositioningRange, Rotation, ScsiDrive, ScsiError,
};

use crate::machine::{Behind, ScsiMachine};

/// The drive of these tests: 200,000 blocks and more, as every one has.
pub fn truth() -> Arc<Profile> {
    let entry = catalog::find("quantum-atlas-10k").expect("a shipped drive");
    Arc::new(entry.profile().expect("a profile"))
}

pub fn machine(behind: Behind) -> ScsiMachine {
    ScsiMachine::new(truth(), Imperfections::default(), behind)
}

pub fn drive(machine: &ScsiMachine) -> ScsiDrive {
    let target = Box::new(machine.clone());
    ScsiDrive::over(target, Path::new("machine")).expect("a drive")
}

#[test]
fn a_drive_is_what_its_pages_say() {
    let machine = machine(Behind::Scsi);
    let blocks = truth().geometry.sectors().0;
    machine
        .state()
        .declare_ranges(&[(0, 100), (100, blocks - 100)]);
    let drive = drive(&machine);
    assert_eq!(drive.identity().kind, Kind::Blocks);
    assert_eq!(drive.full_name(), "HEADTIME ANSWERER SERIAL");
    assert_eq!(drive.capacity().blocks, blocks);
    assert_eq!(drive.capacity().physical_bytes, 512);
    let rotation = drive.rotation().expect("a rotation");
    assert!(
        matches!(rotation, Rotation::PerMinute(10_000..=10_050)),
        "{rotation:?}"
    );
    assert_eq!(drive.most_blocks().ok(), Some(Some(2048)));
    let range = |first, blocks| PositioningRange { first, blocks };
    let ranges = drive.positioning_ranges().expect("ranges");
    assert_eq!(ranges, [range(0, 100), range(100, blocks - 100)]);
    assert!(matches!(drive.ata_identity(), Err(ScsiError::NoAta)));
}

#[test]
fn blocks_are_written_read_verified_flushed_and_sought() {
    let machine = machine(Behind::Scsi);
    let drive = drive(&machine);
    let bytes = [7; 4 * 512];
    drive
        .write(1000, &bytes, Durability::Durable)
        .expect("written");
    drive.flush().expect("flushed");
    for durability in [Durability::Volatile, Durability::Durable] {
        let mut read = [0; 6 * 512];
        drive.read(999, &mut read, durability).expect("read");
        assert_eq!((read[0], read[512], read[5 * 512]), (0, 7, 0));
    }
    drive.verify(1000, 512).expect("verified");
    drive.seek(17_000_000).expect("sought");
    let codes = machine.state().codes.clone();
    assert_eq!(
        codes[codes.len() - 6..],
        [0x8a, 0x35, 0x88, 0x88, 0x8f, 0x2b]
    );
}

/// Reads with FUA, and verifications, take revolutions; others come from the buffer.
#[test]
fn fua_and_verify_reach_the_medium() {
    let machine = machine(Behind::Scsi);
    let drive = drive(&machine);
    let mut block = [0; 512];
    let took = |read: &mut dyn FnMut() -> Result<(), ScsiError>| {
        read().expect("read");
        let begun = machine.state().now;
        read().expect("read");
        machine.state().now.since(begun).as_nanos() as f64 / 1e6
    };
    let hit = took(&mut || drive.read(5000, &mut block, Durability::Volatile));
    let fua = took(&mut || drive.read_by_fua(5000, &mut block));
    let verify = took(&mut || drive.verify(5000, 512));
    assert!(hit < 1.0, "{hit} ms");
    for turn in [fua, verify] {
        assert!((5.9..6.1).contains(&turn), "{turn} ms");
    }
}

#[test]
fn errors_have_their_causes() {
    let extent = Extent::new(Lba(500), Sectors(1)).expect("an extent");
    let imperfections = Imperfections {
        unreadable: vec![extent],
        ..Imperfections::default()
    };
    let machine = ScsiMachine::new(truth(), imperfections, Behind::Scsi);
    let drive = drive(&machine);
    let mut bytes = [0; 8 * 512];
    let said = |result: Result<(), ScsiError>| result.expect_err("an error").to_string();
    let unreadable = said(drive.read(496, &mut bytes, Durability::Volatile));
    assert!(
        unreadable.starts_with("sense 3/11/00 at 500: "),
        "{unreadable}"
    );
    let unreadable = said(drive.verify(500, 512));
    assert!(
        unreadable.starts_with("sense 3/11/00 at 500: "),
        "{unreadable}"
    );
    let last = drive.capacity().blocks - 1;
    let past = said(drive.read(last, &mut bytes, Durability::Volatile));
    assert!(past.starts_with("sense 5/21/00: "), "{past}");
    machine.state().protection = Switch::On;
    let protected = said(drive.write(0, &bytes, Durability::Volatile));
    assert!(protected.starts_with("sense 7/27/00: "), "{protected}");
    assert!(drive.caching().is_ok_and(|page| page.is_read_only));
    machine.state().extras = Switch::Off;
    for missing in [said(drive.seek(0)), said(drive.verify(0, 512))] {
        assert!(missing.starts_with("sense 5/20/00: "), "{missing}");
    }
    machine.state().gone_after = Some(0);
    let gone = said(drive.flush());
    assert!(gone.starts_with("machine: "), "{gone}");
}

/// A write off a zone's pointer is refused by name.
#[test]
fn a_write_off_the_pointer_is_refused() {
    let imperfections = Imperfections {
        sequential_zone: Some(4096),
        ..Imperfections::default()
    };
    let machine = ScsiMachine::new(truth(), imperfections, Behind::Scsi);
    let drive = drive(&machine);
    let block = [1; 512];
    drive
        .write(4096, &block, Durability::Durable)
        .expect("the zone's first block");
    let refused = drive.write(4099, &block, Durability::Durable);
    let refused = refused.expect_err("off the pointer").to_string();
    assert!(refused.starts_with("sense 5/21/04: "), "{refused}");
    drive
        .write(4097, &block, Durability::Durable)
        .expect("the zone's second block");
}

#[test]
fn only_saved_modes_outlive_a_reset() {
    for (lasting, expected) in [
        (Lasting::UntilReset, Switch::On),
        (Lasting::Saved, Switch::Off),
    ] {
        let machine = machine(Behind::Scsi);
        let drive = drive(&machine);
        let page = drive.caching().expect("a page");
        let wanted = page.with_write_cache(Switch::Off);
        drive.set_caching(&wanted, lasting).expect("switched");
        machine.state().reset();
        let event = drive.caching().expect_err("an event");
        assert!(event.to_string().starts_with("sense 6/29/02: "), "{event}");
        let after = drive.caching().expect("a page").write_cache();
        assert_eq!(after, expected, "{lasting:?}");
    }
}

/// Behind the kernel's translation the mode page turns the write cache, and SET FEATURES the look-ahead.
#[test]
fn an_ata_drive_is_switched_by_its_page_or_by_features() {
    let machine = machine(Behind::Ata);
    let drive = drive(&machine);
    for switch in CacheSwitch::ALL {
        for to in [Switch::Off, Switch::On, Switch::Off] {
            drive.turn(switch, to).expect("turned");
            assert_eq!(drive.switch(switch).ok(), Some(to), "{switch}");
        }
    }
    let codes = machine.state().codes.clone();
    assert!(codes.contains(&0x55) && codes.contains(&0x85));
    let page = machine.state().page();
    assert_eq!((page[2] & 0x04, page[12] & 0x20), (0, 0x20));
    assert_eq!(machine.state().saved()[2] & 0x04, 0x04, "nothing is saved");
}
