//! The differences of a new configuration from the one in force.

use crate::config::{self, Config};
use crate::control::Changes;

/// Whether the drives differ only in settings that a reload can change.
pub(super) fn same_but_for_what_changes(old: &Config, new: &Config) -> bool {
    let fixed = |drive: &config::DriveConfig| {
        let mut drive = drive.clone();
        drive.exports.clear();
        drive.impact_ppm = 0;
        for volume in &mut drive.volumes {
            volume.size = None;
        }
        drive
    };
    old.drives
        .iter()
        .map(fixed)
        .eq(new.drives.iter().map(fixed))
}

/// Whether the listeners differ only in certificates, and in what clients may open by theirs.
pub(super) fn same_but_for_certificates(old: &Config, new: &Config) -> bool {
    let fixed = |nbd: &config::Nbd| {
        let mut nbd = nbd.clone();
        let need = nbd.tls.take().map(|tls| tls.need);
        (nbd, need)
    };
    old.nbd.iter().map(fixed).eq(new.nbd.iter().map(fixed))
}

/// The differences of a new configuration: those that a reload applies, and those that need a restart.
pub(super) fn changes(old: &Config, new: &Config) -> Changes {
    let mut changes = Changes::default();
    let later = |what: &str| format!("{what} differs from what is in force");
    let same_drives = same_but_for_what_changes(old, new);
    if !same_drives {
        changes.after_restart.push(later("[[drive]]"));
    }
    for (place, (old, new)) in old.drives.iter().zip(&new.drives).enumerate() {
        if same_drives && old.exports != new.exports {
            let name = &old.name;
            changes.applied.push(format!(
                "the exports of drive {name} (number {}), for clients that come from now on",
                place + 1
            ));
        }
        if same_drives && old.impact_ppm != new.impact_ppm {
            let percent = f64::from(new.impact_ppm) / 1e4;
            changes.applied.push(format!(
                "background tasks on drive {} may lengthen the foreground by {percent} %",
                old.name
            ));
        }
    }
    if same_drives && classified(old) != classified(new) {
        changes
            .after_restart
            .push(later("the classification of exports"));
    }
    let rest = [
        ("[[nbd]]", same_but_for_certificates(old, new)),
        ("[fuse]", old.fuse == new.fuse),
        ("[ublk]", old.ublk == new.ublk),
        ("[control]", old.control == new.control),
        ("[log]", old.log == new.log),
        ("[hooks]", old.hooks == new.hooks),
        ("[limits]", old.limits == new.limits),
    ];
    let differing = rest.iter().filter(|(_, is_same)| !is_same);
    changes
        .after_restart
        .extend(differing.map(|(what, _)| later(what)));
    changes
}

/// The classified exports, and how they are classified.
fn classified(config: &Config) -> Vec<(&str, &config::Classify)> {
    let exports = config.drives.iter().flat_map(|drive| &drive.exports);
    exports
        .filter_map(|export| Some((export.name.as_str(), export.classify.as_ref()?)))
        .collect()
}
