//! A profile with its switches off is the drive that was told so.

use std::sync::Arc;

use block::{Action, Durability, Duration, Extent, Instant, Lba, Sectors, Switch};
use drive::{VirtualDrive, catalog};

use crate::play::Play;

#[test]
fn a_switched_profile_is_the_drive_that_was_told_to_switch() {
    let mut different = 0;
    for entry in catalog::ALL {
        let profile = entry.profile().expect("a shipped drive");
        let switched = profile.switched(Switch::Off, Switch::Off);
        let plain = VirtualDrive::new(Arc::new(profile));
        let mut told = Play::new(plain.clone());
        told.serve(Instant::ZERO, Action::SetLookAhead(Switch::Off));
        told.serve(told.now, Action::SetWriteCache(Switch::Off));
        let mut is = Play::new(VirtualDrive::new(Arc::new(switched)));
        let mut untold = Play::new(plain);
        for step in 0..60u64 {
            // Runs of six, alternately read and written, with a pause in which to look ahead.
            let start = Lba(step / 6 * 40_000 + step % 6 * 8);
            let extent = Extent::new(start, Sectors(8)).expect("blocks");
            let durability = Durability::Volatile;
            let action = match step / 6 % 2 {
                0 => Action::Read { extent, durability },
                _ => Action::Write { extent, durability },
            };
            let at = Instant::ZERO + Duration::from_millis(1_000 + 60 * step);
            let took = told.serve(at, action).took();
            assert_eq!(is.serve(at, action).took(), took, "{}", entry.name);
            different += u32::from(untold.serve(at, action).took() != took);
        }
    }
    assert!(different > 0, "the switches do nothing");
}

#[test]
fn what_is_left_on_is_as_it_was_also_in_the_published_profile() {
    let entry = catalog::find("quantum-atlas-10k").expect("a shipped drive");
    let profile = entry.profile().expect("a shipped drive");
    assert!(profile.is_fitted());
    let same = profile.switched(Switch::On, Switch::On);
    assert_eq!(same.buffer, profile.buffer);
    assert_eq!(same.published().buffer, profile.published().buffer);
    let off = profile.switched(Switch::Off, Switch::On).published().buffer;
    assert_eq!(off.look_ahead, drive::firmware::LookAhead::None);
    assert_eq!(off.write_back, profile.published().buffer.write_back);
}
