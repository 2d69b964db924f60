//! Beliefs of other drives: they lead to safe mode.

use std::sync::Arc;

use block::Instant;
use scheduler::ordering::Phases;
use simulator::run::PastEnd;

use crate::comparison::ComparisonSetup;
use crate::comparison::figures::PolicyRun;
use crate::comparison::load::LoadSettings;
use crate::comparison::scan::ScanSettings;
use crate::comparison::truth::{self, OnOff, TruthSettings};
use crate::named;

/// A busy Atlas 10K with a scan, for so many seconds, scheduled by the profile of another drive.
fn believing(other: &str, seconds: u64) -> PolicyRun {
    let drive = named::drive("quantum-atlas-10k").expect("a drive");
    let belief = Arc::new(named::drive(other).expect("a drive"));
    // A profile may not end before the disk does, and nothing past the disk's end is scanned.
    let blocks = drive.geometry.sectors().0;
    assert!(belief.geometry.sectors().0 >= blocks, "{other}");
    let scan = ScanSettings {
        scan: Some(format!("0..{blocks}")),
        impact_percent: Some(2.0),
        ..ScanSettings::default()
    };
    let settings = TruthSettings {
        seek_noise_us: Some(60.0),
        write_cache: Some(OnOff::Off),
        ..TruthSettings::default()
    };
    let truth = settings.truth(1).map_err(truth::refused).expect("a truth");
    let setup = ComparisonSetup {
        scan: scan.plan(&belief).expect("a plan"),
        drive: Arc::new(truth.belief(&drive)),
        belief: Some(Arc::new(truth.belief(&belief))),
        truth,
        source: LoadSettings {
            workload: Some("oltp".to_owned()),
            ..LoadSettings::default()
        }
        .source()
        .expect("a load"),
        policies: Vec::new(),
        grace: None,
        phases: Phases::Mixed,
        depth: None,
        requests: None,
        until: Some(Instant::from_nanos(seconds * 1_000_000_000)),
        past_end: PastEnd::Stop,
        preemption: None,
        slowest: 0,
        mirror: None,
        streams: None,
    };
    let policy = named::policy("sptf-sw60").expect("a policy");
    setup.run(policy, &mut ()).expect("a run")
}

/// The profile of another drive: safe mode within 10 s of the drive's time, and no loss beyond the budget, in
/// these and over five minutes.
#[test]
fn the_profile_of_another_drive_ends_in_safe_mode_within_its_budget() {
    for other in ["seagate-cheetah-15k5", "maxtor-atlas-10k5-300"] {
        let first = believing(other, 10);
        assert_eq!(
            first.tracking.map(|tracking| tracking.mode),
            Some("safe"),
            "{other}"
        );
        // No gap is filled before commands have confirmed the belief.
        let lost = first.scan.expect("a scan").foreground_loss_percent;
        assert!(lost < 2.0, "{other}: {lost}");
    }
    let whole = believing("seagate-cheetah-15k5", 300);
    assert_eq!(whole.tracking.map(|tracking| tracking.mode), Some("safe"));
    let lost = whole.scan.expect("a scan").foreground_loss_percent;
    assert!(lost < 2.0, "{lost}");
}
