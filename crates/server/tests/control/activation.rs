//! Sockets that systemd opened: this test runs itself again, as what systemd would start.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use server::control::notify::Activated;

/// What systemd does between fork and exec: descriptors from 3 on, and whose they are.
const SYSTEMD: &str = "exec 3<&0; LISTEN_PID=$$ exec \"$0\" \"$@\"";

/// What the child says after this.
const SAYS: &str = "activated: ";

#[test]
fn sockets_of_systemd_are_taken_over_by_name() {
    if std::env::var_os("LISTEN_FDS").is_some() {
        let names = std::env::var_os("LISTEN_FDNAMES");
        let taken = Activated::take(names.as_ref().map(OsString::from).as_ref());
        let said = match taken {
            Ok(Activated { unix, tcp }) => {
                let unix = unix.iter().map(|(name, socket)| {
                    let path = socket.local_addr().unwrap();
                    format!("unix {name} {}", path.as_pathname().unwrap().display())
                });
                let tcp = tcp
                    .iter()
                    .map(|(name, socket)| format!("tcp {name} {}", socket.local_addr().unwrap()));
                unix.chain(tcp).collect::<Vec<_>>().join(",")
            }
            Err(_) => String::from("refused"),
        };
        println!("{SAYS}{said}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nbd.sock");
    let unix = UnixListener::bind(&path).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let file = std::fs::File::create(folder.path().join("file")).unwrap();
    let unix = OwnedFd::from(unix);
    for (socket, names, said) in [
        (
            unix.try_clone().unwrap(),
            Some("db"),
            format!("unix db {}", path.display()),
        ),
        (unix, None, format!("unix unknown {}", path.display())),
        (
            OwnedFd::from(tcp),
            Some("net:other"),
            format!("tcp net {address}"),
        ),
        (OwnedFd::from(file), Some("db"), String::from("refused")),
    ] {
        let mut child = Command::new("sh");
        child
            .args(["-c", SYSTEMD])
            .arg(std::env::current_exe().unwrap());
        child.args([
            "--exact",
            "--nocapture",
            "activation::sockets_of_systemd_are_taken_over_by_name",
        ]);
        child.env("LISTEN_FDS", "1").stdin(Stdio::from(socket));
        match names {
            Some(names) => child.env("LISTEN_FDNAMES", names),
            None => child.env_remove("LISTEN_FDNAMES"),
        };
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let found = text.lines().find_map(|line| line.split_once(SAYS));
        let found = found.unwrap_or_else(|| panic!("{text}")).1;
        assert_eq!(found, said);
    }
}
