//! A first configuration of `headtime serve` for a disk: complete, commented, and valid as it is.

use std::path::PathBuf;

use super::facts::PathKind;
use super::look::PathLook;
use super::settings_file::{back_end, quoted};

/// What a first configuration has besides its disk. Paths are absolute.
#[derive(Clone, Debug, Default)]
pub struct InitialSettings {
    /// The profile of the disk. Without one the disk is served in the order of its blocks.
    pub belief: Option<PathBuf>,
    /// The folder in which the exports are files. Without one they are not.
    pub mount: Option<PathBuf>,
}

impl PathLook {
    /// The configuration that serves this path as one volume, with comments on what may be added.
    pub fn initial_configuration(&self, settings: &InitialSettings) -> String {
        let target = one_line(&self.target);
        let mut text = format!(
            "# Serves {target}\n# ({}).\n# Written by `headtime serve --init`, which has opened and changed nothing.\n",
            one_line(&self.described())
        );
        for user in &self.facts.users {
            text += &format!(
                "# In use when this was written: {}. A start is refused until nobody uses it.\n",
                one_line(user)
            );
        }
        text += NEXT;
        text += DRIVE;
        text += &learning(self.facts.kind, &target);
        let belief = match &settings.belief {
            Some(profile) => quoted(&profile.to_string_lossy()),
            None => quoted("nothing"),
        };
        text += &format!(
            "belief = {belief}\n\n[drive.back_end]\n{}\n",
            back_end(self.facts.kind, &self.target)
        );
        if matches!(self.facts.kind, PathKind::Device | PathKind::Loop) {
            text += SWITCHES;
        }
        text += VOLUME;
        let description = quoted(&one_line(&self.described()));
        text += &format!("description = {description}\n{DOORS}");
        text += &match &settings.mount {
            Some(folder) => format!("[fuse]\nmount = {}\n", quoted(&folder.to_string_lossy())),
            None => NO_MOUNT.to_owned(),
        };
        text + CONTROL
    }
}

/// What is done with the file.
const NEXT: &str = r#"#
#   headtime serve --check FILE    says what a start would do, and does nothing
#   headtime doctor FILE           says what is wrong, and what to do
#   headtime serve FILE            serves it
#
# What is on the disk stays: partitions and file systems are served as they are, and clients write to them.
# Every key with its values: docs/reference/configuration.md. A second service of one user needs other sockets.
"#;

const DRIVE: &str = r#"
[[drive]]
name = "disk"
# By how much background reads (scans, scrubs, backups) may lengthen the requests of the foreground, on average.
impact_percent = 2
# What is known of the drive. Without a profile it is served in the order of its blocks, and nothing is read in gaps.
"#;

/// How the disk gets a profile.
fn learning(kind: PathKind, target: &str) -> String {
    let adopt = match kind {
        PathKind::Device | PathKind::Loop | PathKind::Partition => {
            format!(
                "#   headtime adopt {target}\n#     before it is served: in ten minutes or more, by reads alone\n"
            )
        }
        PathKind::File | PathKind::Nbd => format!(
            "#   headtime adopt '{target}'\n#     before it is served, if it lies on one hard disk\n"
        ),
    };
    format!(
        "{adopt}#   headtime ctl profile disk\n#     while it is served, in idle time\n\
         # Both write a file such as \"disk.toml\": name it here.\n"
    )
}

/// The switches of a disk.
const SWITCHES: &str = r#"# While it is served, a SCSI or SATA disk has its write cache off and its look-ahead on. Both are as before at the end.
# After kill -9 the next start puts them back; `hdparm -W1 /dev/sdX` does so by hand.
write_cache = false
look_ahead = true
"#;

const VOLUME: &str = r#"
# A part of the drive; without offset and size all of it.
[[drive.volume]]
name = "disk"
# Memory for what was read and what will be read (docs/how-to/cache-a-volume.md):
#   cache = { size = "256 MiB" }
# Checksums that `headtime scrub` verifies; the file belongs on another disk (docs/how-to/scrub-a-volume.md):
#   checksums = "{data}/disk.sums"

# The same bytes under two names: requests of the second one wait for those of the first.
[[drive.export]]
name = "disk"
volume = "disk"
class = "foreground"
"#;

const DOORS: &str = r#"
[[drive.export]]
name = "disk-idle"
volume = "disk"
class = "background"

# nbdinfo 'nbd+unix:///disk?socket=...' shows it; {runtime} is $XDG_RUNTIME_DIR/headtime or /tmp/headtime-UID.
[[nbd]]
unix = "{runtime}/nbd.sock"

# As a file, for a mount of what is on it: `mount -o loop /mnt/headtime/disk /srv`.
"#;

const NO_MOUNT: &str = r#"#   [fuse]
#   mount = "/mnt/headtime"
"#;

const CONTROL: &str = r#"# As a block device /dev/ublkbN, if root starts the service and the kernel has ublk (`modprobe ublk_drv`):
#   [ublk]
#   exports = ["disk"]

[control]
# What `headtime ctl`, `headtime top` and `headtime doctor` ask.
socket = "{runtime}/control.sock"
# A status page in the browser, which every user of this machine reaches:
#   http = "127.0.0.1:8384"
"#;

/// A text that stays within its comment.
fn one_line(text: &str) -> String {
    let safe = |c: char| match c.is_control() {
        true => ' ',
        false => c,
    };
    text.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adoption::facts::PathFacts;
    use crate::adoption::settings_file::tests::assert_serves;
    use server::config::{Belief, Config, DriveModel, Places};
    use std::path::Path;

    fn look(kind: PathKind, target: &str) -> PathLook {
        PathLook {
            facts: PathFacts {
                kind,
                model: Some("ATA\nname = \"x\"".to_owned()),
                users: vec!["mounted on /srv\n[[drive]]".to_owned()],
                rotational: Some(true),
                ..PathFacts::of_file(Path::new("/nowhere"), 1 << 30)
            },
            name: "sdb".to_owned(),
            target: target.to_owned(),
            refused: None,
            beneath: None,
        }
    }

    #[test]
    fn each_kind_of_path_gets_a_configuration_that_a_service_reads() {
        let places = Places::of_this_user(Path::new("/etc/headtime"));
        for (kind, target) in [
            (PathKind::Device, "/dev/disk/by-id/ata-X_1"),
            (PathKind::Loop, "/dev/loop7"),
            (PathKind::File, "/srv/with \"quotes\"\nand lines.img"),
            (PathKind::Nbd, "nbd+unix:///name?socket=/run/x.sock"),
        ] {
            let text = look(kind, target).initial_configuration(&InitialSettings::default());
            let config = Config::parse("initial", &text, &places)
                .unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(config.drives.len(), 1, "{text}");
            let drive = &config.drives[0];
            assert_eq!(drive.belief, Belief::Nothing, "{text}");
            assert_eq!(drive.exports.len(), 2);
            assert_serves(&drive.back_end, kind, target);
        }
    }

    /// Each commented key is as valid as what stands without a comment.
    #[test]
    fn what_is_commented_out_is_valid_too() {
        let places = Places::of_this_user(Path::new("/etc/headtime"));
        let look = look(PathKind::File, "/srv/disk.img");
        let text = look.initial_configuration(&InitialSettings::default());
        let is_setting = |line: &str| line.contains(" = ") || line.trim_start().starts_with('[');
        let uncommented: Vec<&str> = text
            .lines()
            .map(|line| match line.strip_prefix("#   ") {
                Some(setting) if is_setting(setting) => setting,
                _ => line,
            })
            .collect();
        let text = uncommented.join("\n");
        let config = Config::parse("all", &text, &places);
        let config = config.unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(config.fuse.is_some() && config.ublk.is_some());
        assert!(config.control.http.is_some());
        assert!(config.drives[0].volumes[0].cache.is_some());
        assert!(config.drives[0].volumes[0].checksums.is_some());
    }

    #[test]
    fn a_profile_and_a_mount_are_in_it_as_they_are_given() {
        let places = Places::of_this_user(Path::new("/etc/headtime"));
        let settings = InitialSettings {
            belief: Some(PathBuf::from("/etc/headtime/my \"disk\".toml")),
            mount: Some(PathBuf::from("/mnt/a\\b")),
        };
        let text = look(PathKind::Device, "/dev/sdb").initial_configuration(&settings);
        let config = Config::parse("given", &text, &places);
        let config = config.unwrap_or_else(|error| panic!("{error}: {text}"));
        let profile = PathBuf::from("/etc/headtime/my \"disk\".toml");
        let belief = Belief::Profile(DriveModel::File(profile));
        assert_eq!(config.drives[0].belief, belief);
        let mount = config.fuse.expect("a mount").mount;
        assert_eq!(mount, Path::new("/mnt/a\\b"));
    }
}
