//! The configuration of `headtime serve` for an adopted disk.

use std::fmt::Write as _;
use std::path::Path;

use super::cpus::WakeUps;
use super::facts::PathKind;
use super::{Adoption, Failure};

impl Adoption {
    /// The configuration that serves the disk with the profile in the file `belief` of the same folder, and
    /// whose sockets begin with `stem`.
    ///
    /// # Errors
    /// If the findings contradict each other.
    pub fn configuration(&self, belief: &str, stem: &str) -> Result<String, Failure> {
        let back_end = back_end(self.facts.kind, &self.target);
        let mut text = format!(
            "# Serves {} with the profile that `headtime adopt` found. Start it with: headtime serve FILE\n",
            self.target.replace('\n', " ")
        );
        for user in &self.facts.users {
            let _ = writeln!(text, "# In use when it was adopted: {user}.");
        }
        if self.facts.kind == PathKind::Partition {
            text.push_str(
                "# A partition: `headtime serve` takes whole disks only. Adopt its disk.\n",
            );
        }
        let _ = write!(
            text,
            r#"
[[drive]]
name = "disk"
belief = {belief}
{wake_ups}
[drive.back_end]
{back_end}

[[drive.volume]]
name = "disk"

[[drive.export]]
name = "disk"
volume = "disk"
class = "foreground"

[[drive.export]]
name = "disk-idle"
volume = "disk"
class = "background"

[[nbd]]
unix = {nbd}

[control]
socket = {control}
"#,
            belief = quoted(belief),
            wake_ups = self.wake_up_key(),
            nbd = quoted(&format!("{stem}.nbd")),
            control = quoted(&format!("{stem}.control")),
        );
        Ok(text)
    }

    /// The line that keeps CPUs awake, if that makes the path more punctual.
    fn wake_up_key(&self) -> String {
        match (self.wake_ups.matter(), self.wake_ups) {
            (
                true,
                WakeUps {
                    asleep_us: Some(asleep),
                    awake_us: Some(awake),
                },
            ) => format!(
                "# One read in twenty was {asleep:.0} us late while CPUs could sleep, and {awake:.0} us while they were kept awake. This\n\
                 # keeps them awake while background reads or requests go in gaps. It costs power, and needs root.\n\
                 cpu_latency_us = 0\n"
            ),
            _ => String::new(),
        }
    }
}

/// The lines of `[drive.back_end]` for a path or URI.
pub(super) fn back_end(kind: PathKind, target: &str) -> String {
    let target = quoted(target);
    match kind {
        PathKind::Device | PathKind::Partition | PathKind::Loop => format!(
            "kind = \"device\"\npath = {target}\n# Named twice, because clients may overwrite all that is on it.\n\
             confirm = {target}"
        ),
        PathKind::File => format!("kind = \"file\"\npath = {target}"),
        PathKind::Nbd => format!("kind = \"nbd\"\nuri = {target}"),
    }
}

/// A text as TOML.
pub(super) fn quoted(text: &str) -> String {
    // A JSON string is a basic string of TOML, but for DEL, which JSON leaves as it is.
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7f}', "\\u007f")
}

/// The names of the files beside a profile: its configuration and its state.
pub fn beside(profile: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let stem = profile.file_stem().unwrap_or_default().to_string_lossy();
    let at = |name: String| profile.with_file_name(name);
    (
        at(format!("{stem}-serve.toml")),
        at(format!("{stem}.adopting")),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::adoption::cpus::WakeUps;
    use crate::adoption::facts::PathFacts;
    use crate::adoption::link::FailedReads;
    use crate::adoption::sampling::PathSamples;
    use crate::adoption::verdict::judge;
    use server::config::{BackEnd, Belief, Config, Places};

    /// A back end is of this kind of path, and of this one.
    pub(in crate::adoption) fn assert_serves(back_end: &BackEnd, kind: PathKind, target: &str) {
        match (back_end, kind) {
            (BackEnd::Device(device), PathKind::Device | PathKind::Loop) => {
                assert_eq!(device.path, Path::new(target));
            }
            (BackEnd::File { path, .. }, PathKind::File) => {
                assert_eq!(path, Path::new(target));
            }
            (BackEnd::Nbd(remote), PathKind::Nbd) => assert_eq!(remote.uri, target),
            other => panic!("{other:?}"),
        }
    }

    fn adoption(kind: PathKind, target: &str) -> Adoption {
        let samples = PathSamples::default();
        Adoption {
            facts: PathFacts {
                kind,
                users: vec!["mounted on /srv".to_owned()],
                ..PathFacts::of_file(Path::new("/nowhere"), 1 << 30)
            },
            target: target.to_owned(),
            verdict: judge(&samples),
            samples,
            found: None,
            check: None,
            forecast: None,
            unusable: None,
            failed: FailedReads::default(),
            wake_ups: WakeUps::default(),
            seconds: 1.0,
        }
    }

    #[test]
    fn each_kind_of_path_gets_a_configuration_that_a_service_reads() {
        let places = Places::of_this_user(Path::new("/etc/headtime"));
        for (kind, target) in [
            (PathKind::Device, "/dev/sdb"),
            (PathKind::Loop, "/dev/loop7"),
            (PathKind::File, "/srv/with \"quotes\".img"),
            (PathKind::Nbd, "nbd+unix:///name?socket=/run/x.sock"),
        ] {
            let text = adoption(kind, target).configuration("sdb.toml", "sdb");
            let text = text.expect("a configuration");
            let config = Config::parse("adopted", &text, &places)
                .unwrap_or_else(|error| panic!("{error}: {text}"));
            let drive = &config.drives[0];
            assert!(matches!(drive.belief, Belief::Profile(_)), "{text}");
            assert!(text.contains("# In use when it was adopted: mounted on /srv."));
            assert_serves(&drive.back_end, kind, target);
            assert_eq!(drive.cpu_latency_us, None);
        }
    }

    #[test]
    fn cpus_stay_awake_where_that_makes_a_path_punctual() {
        let places = Places::of_this_user(Path::new("/etc/headtime"));
        let adopted = Adoption {
            wake_ups: WakeUps {
                asleep_us: Some(987.0),
                awake_us: Some(47.0),
            },
            ..adoption(PathKind::Device, "/dev/sdb")
        };
        let text = adopted
            .configuration("sdb.toml", "sdb")
            .expect("a configuration");
        let config = Config::parse("adopted", &text, &places)
            .unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(config.drives[0].cpu_latency_us, Some(0));
        assert!(text.contains("987 us late"), "{text}");
    }
}
