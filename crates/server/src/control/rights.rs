//! What the user at the other end of the control socket may ask. The kernel says who it is (SO_PEERCRED).
//!
//! | user | may |
//! |---|---|
//! | root, and the service's own | everything |
//! | another one, whom the socket's file lets connect | what `members` of `[control]` says |

use headtime_client::wire::Listed;

use super::protocol::Ask;
use super::{Scan, Sink};
use crate::config::MemberRights;

/// The rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserRights {
    /// Of root, and of the service's user.
    Owner,
    /// Of any other user.
    Member(MemberRights),
}

impl UserRights {
    /// The rights of `user` at a service of `owner`.
    pub(super) fn of(user: u32, owner: u32, members: MemberRights) -> Self {
        match user == 0 || user == owner {
            true => UserRights::Owner,
            false => UserRights::Member(members),
        }
    }

    /// Checks a request.
    ///
    /// # Errors
    /// If the user may not ask it.
    pub(super) fn check(self, ask: &Ask) -> Result<(), String> {
        let (is_allowed, expected) = match self {
            UserRights::Owner => return Ok(()),
            UserRights::Member(MemberRights::Streams) => (is_about_streams(ask), "streams"),
            UserRights::Member(MemberRights::Status) => {
                (is_about_streams(ask) || ask.only_looks(), "status")
            }
            UserRights::Member(MemberRights::All) => (!reaches_files(ask), "all"),
        };
        match is_allowed {
            true => Ok(()),
            false => Err(format!(
                "another user may not ask this: expected the user of the service, or more than members = \"{expected}\" \
                 in [control]; programs and files are the service's alone"
            )),
        }
    }

    /// Whether the user may see a stream.
    pub(super) fn sees(self, user: u32, stream: &Listed) -> bool {
        self != UserRights::Member(MemberRights::Streams) || stream.user == user
    }
}

fn is_about_streams(ask: &Ask) -> bool {
    matches!(
        ask,
        Ask::Attach(_) | Ask::Position(_) | Ask::Refresh(_) | Ask::Close(_) | Ask::Streams
    )
}

/// Whether a request has the service run a program, or names a file for it: with its user's rights.
pub(super) fn reaches_files(ask: &Ask) -> bool {
    match ask {
        Ask::Scan(Scan { sink, state, .. }) => *sink != Sink::Checksum || state.is_some(),
        Ask::BeginCheckpoint(order) => order.store.folder.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: u32 = 990;

    fn may(user: u32, members: MemberRights, ask: &str) -> bool {
        let ask = serde_json::from_str(ask).expect(ask);
        UserRights::of(user, OWNER, members).check(&ask).is_ok()
    }

    #[test]
    fn each_right_allows_what_it_says() {
        let attach = r#"{"ask":"attach","export":"e","rate":1,"buffer":1,"places":{"length":0,"pieces":[]}}"#;
        let program = r#"{"ask":"scan","volume":"v","sink":{"command":["sh"]}}"#;
        let buffer = r#"{"ask":"scan","volume":"v","sink":{"buffer":"/dev/shm/b"}}"#;
        let file = r#"{"ask":"scan","volume":"v","state":{"file":"/etc/passwd","every_s":1}}"#;
        let folder =
            r#"{"ask":"begin-checkpoint","volume":"v","store":{"folder":"/root","bytes":65536}}"#;
        // Streams, status, all.
        for (ask, expected) in [
            (attach, [true, true, true]),
            (r#"{"ask":"streams"}"#, [true, true, true]),
            (r#"{"ask":"status"}"#, [false, true, true]),
            (r#"{"ask":"tasks"}"#, [false, true, true]),
            (r#"{"ask":"scan","volume":"v"}"#, [false, false, true]),
            (
                r#"{"ask":"begin-checkpoint","volume":"v"}"#,
                [false, false, true],
            ),
            (r#"{"ask":"reload"}"#, [false, false, true]),
            (r#"{"ask":"drain"}"#, [false, false, true]),
            (r#"{"ask":"stop"}"#, [false, false, true]),
            (program, [false; 3]),
            (buffer, [false; 3]),
            (file, [false; 3]),
            (folder, [false; 3]),
        ] {
            let rights = [
                MemberRights::Streams,
                MemberRights::Status,
                MemberRights::All,
            ];
            assert_eq!(
                rights.map(|members| may(1000, members, ask)),
                expected,
                "{ask}"
            );
            for owner in [0, OWNER] {
                assert!(may(owner, MemberRights::Streams, ask), "{ask}");
            }
        }
    }

    #[test]
    fn streams_of_others_are_seen_with_more_than_streams() {
        let stream = Listed {
            user: 1000,
            ..Listed::default()
        };
        let sees = |user, members| UserRights::of(user, OWNER, members).sees(user, &stream);
        assert!(sees(1000, MemberRights::Streams));
        assert!(!sees(1001, MemberRights::Streams));
        assert!(sees(1001, MemberRights::Status));
        assert!(sees(0, MemberRights::Streams));
    }
}
