//! Whether a path is one that Headtime can serve, and with what profit: for `headtime doctor`.

use std::path::Path;

use server::diagnosis::Finding;

use super::facts::PathKind;
use super::look::{Beneath, PathLook};

/// The access of this user to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnAccess {
    /// The user may read and write.
    Full,
    /// The user may not.
    Refused,
}

impl OwnAccess {
    /// The access to a path, without opening it (access(2)).
    pub fn to(path: &Path) -> Self {
        use rustix::fs::Access;
        match rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK) {
            Ok(()) => OwnAccess::Full,
            Err(_) => OwnAccess::Refused,
        }
    }
}

impl PathLook {
    /// What speaks against serving this path, for a user with this access to it.
    pub fn findings(&self, access: OwnAccess) -> Vec<Finding> {
        let parts = [
            self.refusal(),
            self.use_by_others(),
            self.medium(),
            self.file(),
            self.beneath(),
            self.permission(access),
        ];
        parts.into_iter().flatten().collect()
    }

    fn finding(
        &self,
        id: &'static str,
        what: impl Into<String>,
        why: &str,
        action: impl Into<String>,
    ) -> Finding {
        Finding::wrong(id, self.target.clone(), what, why, action)
    }

    fn refusal(&self) -> Option<Finding> {
        let refused = self.refused.as_ref()?;
        Some(self.finding(
            "not-served",
            refused.clone(),
            "a service refuses it",
            match self.facts.kind {
                PathKind::Partition => {
                    "serve its whole disk; a volume can be the partition (offset, size)"
                }
                _ => "choose another disk (`lsblk` lists them)",
            },
        ))
    }

    fn use_by_others(&self) -> Option<Finding> {
        let users = &self.facts.users;
        (!users.is_empty()).then(|| {
            self.finding(
                "in-use",
                format!("in use: {}", users.join(", ")),
                "a service claims its disk alone, and refuses to start; `headtime adopt` may learn it meanwhile",
                "unmount it (`umount`), or stop what uses it (`lsblk` and `fuser -v` show that); what is on it stays, and \
                 is mounted again from the service",
            )
        })
    }

    fn medium(&self) -> Option<Finding> {
        let is_read = self.refused.is_none() && !self.is_virtual();
        let doubtful = self.facts.rotational == Some(false) && is_read;
        doubtful.then(|| {
            self.finding(
                "no-head",
                "it does not rotate: an SSD, or a device that says so",
                "without a head there is no head time to save: nothing is gained by serving it",
                "leave it to the kernel. If it is a hard disk behind a bridge or a virtual machine that says otherwise, \
                 `headtime adopt` measures what it is",
            )
        })
    }

    /// Whether the device states what a program has chosen, and not what a medium is.
    fn is_virtual(&self) -> bool {
        self.facts.kind == PathKind::Loop
    }

    fn file(&self) -> Option<Finding> {
        if self.facts.kind != PathKind::File {
            return None;
        }
        let why = "positions, gaps and guarantees need one hard disk whose blocks are where their numbers say";
        let action = "serve the disk itself, such as /dev/sdb. For a trial an emulated drive does: `headtime serve` \
                      without a configuration";
        let (id, what) = match &self.facts.no_disk {
            Some(no_disk) => ("no-disk", format!("no disk: {no_disk}")),
            None => (
                "no-disk",
                "no disk: a regular file, whose blocks may lie anywhere on the disk of its file system".to_owned(),
            ),
        };
        Some(self.finding(id, what, why, action))
    }

    fn beneath(&self) -> Option<Finding> {
        let (what, action) = match self.beneath.as_ref()? {
            Beneath::File(file) => (
                format!(
                    "a loop device over {file}: it may change its number with the next `losetup`"
                ),
                "check `losetup -l` after a restart; or serve the file or the disk beneath",
            ),
            Beneath::Devices(devices) => (
                format!("it is made of other devices ({devices}): RAID, LVM or encryption"),
                "serve the disks beneath, one drive each, and make RAID, LVM or encryption of what the service exports",
            ),
        };
        let finding = self.finding(
            "not-one-disk",
            what,
            "a position on it is not a position of one head",
            action,
        );
        Some(match self.beneath {
            Some(Beneath::File(_)) => finding.noticed(),
            _ => finding,
        })
    }

    fn permission(&self, access: OwnAccess) -> Option<Finding> {
        (access == OwnAccess::Refused && self.facts.kind != PathKind::Nbd).then(|| {
            self.finding(
                "no-permission",
                "this user may not read and write it",
                "a service of this user cannot open it",
                "start the service as root, or by systemd (`headtime@NAME`); or become a member of its group (`ls -l` \
                 shows it, mostly `disk`)",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adoption::facts::PathFacts;
    use server::diagnosis::Severity;

    /// A disk of which nothing is wrong.
    fn good() -> PathLook {
        PathLook {
            facts: PathFacts {
                kind: PathKind::Device,
                rotational: Some(true),
                users: Vec::new(),
                ..PathFacts::of_file(Path::new("/nowhere"), 1 << 30)
            },
            name: "sdb".to_owned(),
            target: "/dev/sdb".to_owned(),
            refused: None,
            beneath: None,
        }
    }

    type Change = fn(&mut PathLook);

    #[test]
    fn a_hard_disk_that_nobody_uses_has_no_finding() {
        assert_eq!(good().findings(OwnAccess::Full), []);
    }

    #[test]
    fn each_doubt_is_told_with_its_reason_and_its_remedy() {
        let cases: [(&str, &str, Change); 7] = [
            ("not-served", "a zoned drive", |look| {
                look.refused = Some("a zoned drive".to_owned())
            }),
            ("in-use", "mounted on /srv", |look| {
                look.facts.users.push("mounted on /srv".to_owned())
            }),
            ("no-head", "does not rotate", |look| {
                look.facts.rotational = Some(false)
            }),
            ("no-disk", "a regular file", |look| {
                look.facts.kind = PathKind::File;
                look.facts.no_disk = None;
            }),
            ("no-disk", "holes", |look| {
                look.facts.kind = PathKind::File;
                look.facts.no_disk = Some("99 % are holes".to_owned());
            }),
            ("not-one-disk", "(sda, sdb)", |look| {
                look.beneath = Some(Beneath::Devices("sda, sdb".to_owned()))
            }),
            ("not-one-disk", "over /srv/x.img", |look| {
                look.facts.kind = PathKind::Loop;
                look.facts.rotational = Some(false);
                look.beneath = Some(Beneath::File("/srv/x.img".to_owned()));
            }),
        ];
        for (id, what, change) in cases {
            let mut look = good();
            change(&mut look);
            let findings = look.findings(OwnAccess::Full);
            assert_eq!(findings.len(), 1, "{id}: {findings:?}");
            assert_eq!(findings[0].id, id);
            assert!(findings[0].what.contains(what), "{findings:?}");
        }
        let refused = good().findings(OwnAccess::Refused);
        assert_eq!(refused[0].id, "no-permission");
        assert_eq!(refused[0].severity, Severity::Wrong);
    }
}
