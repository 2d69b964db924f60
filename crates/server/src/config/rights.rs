//! `group`, `mode` and `members`: the users of this machine who may open a socket, and what they may do.

use document::{DocumentError, Field, Section};
use nix::unistd::Group;

/// The users of this machine who may connect to a unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketRights {
    /// The group of the socket's file; without one it is the service's.
    pub group: Option<u32>,
    /// The mode of the socket's file.
    pub mode: u32,
}

impl Default for SocketRights {
    fn default() -> Self {
        SocketRights {
            group: None,
            mode: OWNER,
        }
    }
}

impl SocketRights {
    /// Whether the users who may connect may enter a folder with this group and mode. The owner is not asked.
    pub(crate) fn may_enter(self, group: u32, mode: u32) -> bool {
        let is_member = self.group.is_none_or(|own| own == group);
        let members = self.mode & 0o060 == 0 || mode & 0o001 != 0 || is_member && mode & 0o010 != 0;
        let others = self.mode & 0o006 == 0 || mode & 0o001 != 0;
        members && others
    }

    /// Whether users outside of the group may connect.
    pub(super) fn is_open_to_all(self) -> bool {
        self.mode & 0o006 != 0
    }
}

/// What users other than root and the service's own may ask at the control socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberRights {
    /// To have streams, and to see their own.
    #[default]
    Streams,
    /// To see everything besides.
    Status,
    /// To change everything besides, but to run no program and to name no file.
    All,
}

/// The service's user alone.
const OWNER: u32 = 0o600;

/// The same, and a group.
const WITH_GROUP: u32 = 0o660;

const GROUP: &str = "the name or the number of a group of this machine";
const MODE: &str = "octal digits with read and write for the owner, and no more than these for others, \
     such as \"0660\"";

/// The rights of the socket of a table.
pub(super) fn socket_rights(table: &Section<'_>) -> Result<SocketRights, DocumentError> {
    let group = table.get("group").map(|value| group(&value)).transpose()?;
    let mode = table.get("mode").map(|value| mode(&value)).transpose()?;
    let default = match group {
        None => OWNER,
        Some(_) => WITH_GROUP,
    };
    Ok(SocketRights {
        group,
        mode: mode.unwrap_or(default),
    })
}

/// Refuses these keys where there is no unix socket of ours.
pub(super) fn without_socket(table: &Section<'_>) -> Result<(), DocumentError> {
    match ["group", "mode"].iter().find_map(|key| table.get(key)) {
        Some(value) => Err(value.mismatch("the key only beside unix = \"PATH\"")),
        None => Ok(()),
    }
}

/// The rights of users who are neither root nor the service's own.
pub(super) fn member_rights(
    table: &Section<'_>,
    socket: SocketRights,
) -> Result<MemberRights, DocumentError> {
    let Some(value) = table.get("members") else {
        return Ok(MemberRights::default());
    };
    let rights = value.choice(&[
        ("streams", MemberRights::Streams),
        ("status", MemberRights::Status),
        ("all", MemberRights::All),
    ])?;
    if rights != MemberRights::Streams && socket.is_open_to_all() {
        return Err(
            value.mismatch("\"streams\" where mode lets users connect who are not in the group")
        );
    }
    Ok(rights)
}

fn group(value: &Field<'_>) -> Result<u32, DocumentError> {
    let Some(name) = value.as_text() else {
        // The largest number is no group, but "unchanged" for the kernel.
        return Ok(value.whole(0..=u64::from(u32::MAX - 1), GROUP)? as u32);
    };
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        _ => Err(value.mismatch(GROUP)),
    }
}

fn mode(value: &Field<'_>) -> Result<u32, DocumentError> {
    let text = value.text(MODE)?;
    let is_octal =
        (3..=4).contains(&text.len()) && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let mode = u32::from_str_radix(text, 8).ok().filter(|_| is_octal);
    mode.filter(|mode| mode & !0o666 == 0 && mode & OWNER == OWNER)
        .ok_or_else(|| value.mismatch(MODE))
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Places};
    use super::*;

    fn read(lines: &str) -> Result<Config, String> {
        let text = format!(
            "[[drive]]\nname = \"d\"\nback_end = {{ kind = \"memory\", size = \"1 MiB\" }}\n\
             volume = [{{ name = \"v\" }}]\nexport = [{{ name = \"e\", volume = \"v\" }}]\n{lines}"
        );
        let places = Places {
            data: "/data".into(),
            runtime: "/run".into(),
            base: "/etc".into(),
        };
        Config::parse("c.toml", &text, &places).map_err(|error| error.to_string())
    }

    #[test]
    fn sockets_are_of_the_service_alone_unless_a_group_or_a_mode_is_named() {
        let rights = |lines: &str| {
            let config = read(lines).expect(lines);
            (
                config.control.rights,
                config.control.members,
                config.nbd[0].rights,
            )
        };
        let alone = SocketRights {
            group: None,
            mode: 0o600,
        };
        assert_eq!(
            rights("[[nbd]]\nunix = \"a\""),
            (alone, MemberRights::Streams, alone)
        );
        let lines = "[[nbd]]\nunix = \"a\"\nmode = \"666\"\n\
                     [control]\ngroup = 1234\nmembers = \"status\"";
        let group = SocketRights {
            group: Some(1234),
            mode: 0o660,
        };
        let all = SocketRights {
            group: None,
            mode: 0o666,
        };
        assert_eq!(rights(lines), (group, MemberRights::Status, all));
        let lines = "[[nbd]]\nunix = \"a\"\ngroup = \"root\"\nmode = \"0640\"";
        let root = SocketRights {
            group: Some(0),
            mode: 0o640,
        };
        assert_eq!(rights(lines).2, root);
    }

    #[test]
    fn what_is_wrong_says_where_and_what_was_expected() {
        for (lines, part) in [
            (
                "[control]\ngroup = \"no such group\"",
                "c.toml:7: control.group: \"no such group\": expected the name",
            ),
            (
                "[control]\ngroup = -1",
                "c.toml:7: control.group: -1: expected the name",
            ),
            ("[control]\ngroup = 4294967295", "control.group"),
            ("[control]\nmode = 660", "octal digits"),
            (
                "[control]\nmode = \"0760\"",
                "control.mode: \"0760\": expected octal digits",
            ),
            ("[control]\nmode = \"0460\"", "octal digits"),
            ("[control]\nmode = \"+660\"", "octal digits"),
            ("[control]\nmode = \"00660\"", "octal digits"),
            ("[control]\nmembers = \"everything\"", "control.members"),
            (
                "[control]\nmode = \"0666\"\nmembers = \"all\"",
                "expected \"streams\" where mode",
            ),
            ("[[nbd]]\nunix = \"a\"\nmode = \"rw\"", "nbd[0].mode"),
            (
                "[[nbd]]\ntcp = \"10809\"\nmode = \"0660\"",
                "only beside unix",
            ),
            ("[[nbd]]\nactivated = \"a\"\ngroup = 0", "only beside unix"),
        ] {
            let problem = read(lines).expect_err(lines);
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn a_folder_is_entered_by_its_group_and_by_all() {
        let rights = |group, mode| SocketRights { group, mode };
        assert!(rights(None, 0o600).may_enter(7, 0o700), "only the owner");
        assert!(!rights(Some(7), 0o660).may_enter(7, 0o700));
        assert!(rights(Some(7), 0o660).may_enter(7, 0o710));
        assert!(!rights(Some(7), 0o660).may_enter(8, 0o770));
        assert!(rights(Some(7), 0o660).may_enter(8, 0o711));
        assert!(!rights(Some(7), 0o666).may_enter(7, 0o750));
    }
}
