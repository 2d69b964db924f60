//! Notifications to systemd and sockets from it: sd_notify(3), sd_listen_fds(3).
//!
//! ```text
//!   NOTIFY_SOCKET=PATH or @ABSTRACT <-- READY=1 | RELOADING=1 | STOPPING=1 | WATCHDOG=1 | STATUS=...
//!   LISTEN_FDS, LISTEN_FDNAMES      --> listening sockets, by name
//! ```

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::time::Duration;

/// A notification to systemd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// All listeners are open.
    Ready,
    /// A reload has begun. [`Message::Ready`] ends it.
    Reloading {
        /// The monotonic clock in microseconds, by which systemd tells its reloads apart.
        monotonic_us: u64,
    },
    /// The service is stopping.
    Stopping,
    /// The service is alive.
    Watchdog,
    /// The status, for people.
    Status(String),
}

impl Message {
    fn text(&self) -> String {
        match self {
            Message::Ready => String::from("READY=1\n"),
            Message::Reloading { monotonic_us } => {
                format!("RELOADING=1\nMONOTONIC_USEC={monotonic_us}\n")
            }
            Message::Stopping => String::from("STOPPING=1\n"),
            Message::Watchdog => String::from("WATCHDOG=1\n"),
            Message::Status(text) => {
                let line = text.replace(|letter: char| letter.is_control(), " ");
                format!("STATUS={line}\n")
            }
        }
    }
}

/// The socket to systemd, if it has started the service.
#[derive(Debug)]
pub struct Notifier {
    to: Option<(UnixDatagram, SocketAddr)>,
}

impl Notifier {
    /// A notifier for the socket that `NOTIFY_SOCKET` names.
    ///
    /// # Errors
    /// If the name is neither a path nor an abstract name, or no socket can be made.
    pub fn to(socket: Option<&OsStr>) -> io::Result<Notifier> {
        let Some(name) = socket.filter(|name| !name.is_empty()) else {
            return Ok(Notifier { to: None });
        };
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            _ => {
                let problem = "NOTIFY_SOCKET: expected a path that begins with / or @";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
        };
        let socket = UnixDatagram::unbound()?;
        // Whoever waits for us to be alive must not be what stops us.
        socket.set_nonblocking(true)?;
        Ok(Notifier {
            to: Some((socket, address)),
        })
    }

    /// Sends a notification, if there is a receiver.
    ///
    /// # Errors
    /// If the receiver has gone.
    pub fn say(&self, message: &Message) -> io::Result<()> {
        let Some((socket, address)) = &self.to else {
            return Ok(());
        };
        socket
            .send_to_addr(message.text().as_bytes(), address)
            .map(drop)
    }
}

/// The period of [`Message::Watchdog`]: half of `WATCHDOG_USEC`, as sd_watchdog_enabled(3) advises. `None`
/// if the variable is for another process, or no number.
pub fn watchdog(usec: Option<&str>, for_pid: Option<&str>, pid: u32) -> Option<Duration> {
    if for_pid.is_some_and(|text| text.parse() != Ok(pid)) {
        return None;
    }
    let usec: u64 = usec?.parse().ok()?;
    match usec {
        0 | u64::MAX => None,
        usec => Some(Duration::from_micros(usec / 2)),
    }
}

/// Sockets that systemd has opened, by name.
#[derive(Debug, Default)]
pub struct Activated {
    /// Unix sockets.
    pub unix: Vec<(String, UnixListener)>,
    /// TCP sockets.
    pub tcp: Vec<(String, TcpListener)>,
}

impl Activated {
    /// Takes over the sockets. `names` is the value of `LISTEN_FDNAMES`: names with colons between them.
    /// Without it all are called "unknown", as in sd_listen_fds_with_names(3). libnbd's tests and nbdkit's
    /// clients name none.
    ///
    /// # Errors
    /// If one of them is not a listening socket of these kinds.
    pub fn take(names: Option<&OsString>) -> io::Result<Activated> {
        let names = names.map(|names| names.to_string_lossy().into_owned());
        let names: Vec<&str> = names.iter().flat_map(|names| names.split(':')).collect();
        let mut sockets = listenfd::ListenFd::from_env();
        let mut activated = Activated::default();
        for index in 0..sockets.len() {
            let name = names.get(index).copied().unwrap_or(UNNAMED).to_owned();
            // A unix socket is no TCP socket, which the first attempt says and changes nothing.
            if let Ok(Some(socket)) = sockets.take_tcp_listener(index) {
                activated.tcp.push((name, socket));
            } else if let Some(socket) = sockets.take_unix_listener(index)? {
                activated.unix.push((name, socket));
            }
        }
        Ok(activated)
    }

    /// Takes the socket of this name. A single socket without a name matches every name, because clients
    /// such as libnbd name none.
    pub fn take_named(&mut self, name: &str) -> Option<OwnedFd> {
        let only = match self.names().collect::<Vec<_>>()[..] {
            [UNNAMED] => UNNAMED,
            _ => name,
        };
        let is_it = |given: &str| given == name || given == only;
        if let Some(at) = self.unix.iter().position(|(given, _)| is_it(given)) {
            return Some(self.unix.remove(at).1.into());
        }
        let at = self.tcp.iter().position(|(given, _)| is_it(given))?;
        Some(self.tcp.remove(at).1.into())
    }

    /// The names of sockets that were not taken.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let unix = self.unix.iter().map(|(name, _)| name.as_str());
        unix.chain(self.tcp.iter().map(|(name, _)| name.as_str()))
    }
}

/// The name of a socket without a name in sd_listen_fds_with_names(3).
const UNNAMED: &str = "unknown";

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn systemd_hears_what_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::to(Some(path.as_os_str())).unwrap();
        for (message, text) in [
            (Message::Ready, "READY=1\n"),
            (
                Message::Reloading { monotonic_us: 7 },
                "RELOADING=1\nMONOTONIC_USEC=7\n",
            ),
            (Message::Stopping, "STOPPING=1\n"),
            (Message::Watchdog, "WATCHDOG=1\n"),
            (
                Message::Status(String::from("2 clients\nX=1")),
                "STATUS=2 clients X=1\n",
            ),
        ] {
            notifier.say(&message).unwrap();
            assert_eq!(heard(&systemd), text);
        }
        drop(systemd);
        assert!(notifier.say(&Message::Ready).is_err(), "nobody listens");
    }

    #[test]
    fn sockets_are_taken_by_name_and_the_only_one_without_a_name_by_any() {
        let tcp = || TcpListener::bind("127.0.0.1:0").unwrap();
        let of = |names: &[&str]| Activated {
            unix: Vec::new(),
            tcp: names.iter().map(|&name| (name.into(), tcp())).collect(),
        };
        assert!(of(&["a", "b"]).take_named("b").is_some());
        assert!(of(&["unknown"]).take_named("db").is_some());
        assert!(of(&["a"]).take_named("db").is_none());
        assert!(of(&["unknown", "unknown"]).take_named("db").is_none());
        let mut two = of(&["a", "b"]);
        assert!(two.take_named("a").is_some());
        assert_eq!(two.names().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn abstract_names_are_sockets_and_no_name_is_nobody() {
        let name = format!("headtime-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let systemd = UnixDatagram::bind_addr(&address).unwrap();
        let name = OsString::from(format!("@{name}"));
        Notifier::to(Some(&name))
            .unwrap()
            .say(&Message::Ready)
            .unwrap();
        assert_eq!(heard(&systemd), "READY=1\n");
        Notifier::to(None).unwrap().say(&Message::Ready).unwrap();
        assert!(Notifier::to(Some(OsStr::new("relative"))).is_err());
    }

    #[test]
    fn the_watchdog_is_fed_twice_in_its_time_by_whom_it_watches() {
        assert_eq!(
            watchdog(Some("3000000"), None, 7),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            watchdog(Some("2"), Some("7"), 7),
            Some(Duration::from_micros(1))
        );
        for (usec, pid) in [
            (None, None),
            (Some("0"), None),
            (Some("x"), None),
            (Some("9"), Some("8")),
        ] {
            assert_eq!(watchdog(usec, pid, 7), None, "{usec:?} {pid:?}");
        }
    }
}
