//! Front ends, control plane, log and limits in the configuration file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use block::Switch;
use document::quantity::Unit;
use document::{DocumentError, Field, Section};

use super::exports::some_of;
use super::fields::{path, switch};
use super::rights::{member_rights, socket_rights, without_socket};
use super::size::bytes;
use super::tls::tls;
use super::{
    Actions, Control, DriveConfig, Fuse, Limits, Listen, Log, LogFormat, Nbd, Places, Ublk,
};

/// The listeners of NBD clients.
pub(super) fn nbd(
    root: &Section<'_>,
    places: &Places,
    drives: &[DriveConfig],
) -> Result<Vec<Nbd>, DocumentError> {
    let mut listeners: Vec<Nbd> = Vec::new();
    for table in root.sections("nbd")? {
        table.only(&[
            "unix",
            "tcp",
            "activated",
            "group",
            "mode",
            "tls",
            "insecure",
        ])?;
        let listen = listen(&table, places)?;
        if listeners.iter().any(|other| other.listen == listen) {
            let problem = "the same socket twice: expected another one".to_owned();
            return Err(table.error(problem));
        }
        if !matches!(listen, Listen::Unix(_)) {
            without_socket(&table)?;
        }
        let listener = Nbd {
            rights: socket_rights(&table)?,
            tls: tls(&table, places, drives)?,
            insecure: switch(&table, "insecure", Switch::Off)?,
            listen,
        };
        if let Listen::Tcp(address) = listener.listen
            && listener.insecure == Switch::Off
            && listener.is_open(address)
            && let Some(tcp) = table.get("tcp")
        {
            return Err(tcp.mismatch(NBD_OPEN));
        }
        listeners.push(listener);
    }
    Ok(listeners)
}

/// What a listener needs that other machines reach.
const NBD_OPEN: &str = "tls with required = true for other machines, an address of this machine such as \
     127.0.0.1, or insecure = true";

fn listen(table: &Section<'_>, places: &Places) -> Result<Listen, DocumentError> {
    match (table.get("unix"), table.get("tcp"), table.get("activated")) {
        (Some(value), None, None) => socket(&value, places).map(Listen::Unix),
        (None, Some(value), None) => address(&value, NBD_PORT).map(Listen::Tcp),
        (None, None, Some(value)) => {
            let name = value.text("the FileDescriptorName= of a systemd socket")?;
            Ok(Listen::Activated(name.to_owned()))
        }
        _ => Err(table.error(
            "expected one of unix = \"PATH\", tcp = \"[ADDRESS:]PORT\", activated = \"NAME\"",
        )),
    }
}

/// A unix socket, whose path fits the kernel's limit.
fn socket(value: &Field<'_>, places: &Places) -> Result<std::path::PathBuf, DocumentError> {
    let path = path(value, places)?;
    let bytes = path.as_os_str().len();
    match bytes <= SOCKET_PATH_BYTES {
        true => Ok(path),
        false => Err(value.error(format!(
            "{}: {bytes} bytes: expected a path of at most {SOCKET_PATH_BYTES} for a socket",
            path.display()
        ))),
    }
}

/// `sun_path` of unix(7) has 108 bytes with the zero at its end.
pub(super) const SOCKET_PATH_BYTES: usize = 107;

/// The port that IANA has assigned to NBD.
pub(super) const NBD_PORT: u16 = 10809;

/// A port, an address, or both. The default address is the local host.
fn address(value: &Field<'_>, port: u16) -> Result<SocketAddr, DocumentError> {
    let expected = "\"PORT\", \"ADDRESS\" or \"ADDRESS:PORT\", such as \"127.0.0.1:10809\"";
    let text = value.text(expected)?;
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Ok(address) = text.parse() {
        return Ok(SocketAddr::new(address, port));
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits => Ok(SocketAddr::new(local, port)),
        _ => Err(value.mismatch(expected)),
    }
}

/// The mount of volumes as files.
pub(super) fn fuse(root: &Section<'_>, places: &Places) -> Result<Option<Fuse>, DocumentError> {
    let Some(table) = root.section("fuse", &["mount"])? else {
        return Ok(None);
    };
    let mount = path(&table.need("mount", "the path of a folder")?, places)?;
    Ok(Some(Fuse { mount }))
}

/// Exports as block devices.
pub(super) fn ublk(
    root: &Section<'_>,
    drives: &[DriveConfig],
) -> Result<Option<Ublk>, DocumentError> {
    let Some(table) = root.section("ublk", &["exports"])? else {
        return Ok(None);
    };
    let expected = "a list of exports, such as [\"db\"]";
    let list = table.need("exports", expected)?.list(expected)?;
    let known = drives.iter().flat_map(|drive| &drive.exports);
    let known: Vec<&str> = known.map(|export| export.name.as_str()).collect();
    let exports = some_of(list, &known)?;
    Ok(Some(Ublk { exports }))
}

/// The control plane.
pub(super) fn control(root: &Section<'_>, places: &Places) -> Result<Control, DocumentError> {
    let known = [
        "socket",
        "group",
        "mode",
        "members",
        "http",
        "http_actions",
        "insecure",
    ];
    let table = root.section("control", &known)?;
    let table = table.as_ref();
    let place = table.and_then(|table| table.get("socket"));
    let socket = match place {
        Some(value) => socket(&value, places)?,
        None => places.control_socket(),
    };
    let rights = table.map(socket_rights).transpose()?.unwrap_or_default();
    let members = table.map(|table| member_rights(table, rights));
    let http_field = table.and_then(|table| table.get("http"));
    let http = (http_field.as_ref()).map(|value| address(value, HTTP_PORT));
    let http = http.transpose()?;
    let insecure = table.map(|table| switch(table, "insecure", Switch::Off));
    let insecure = insecure.transpose()?.unwrap_or(Switch::Off);
    if let (Some(address), Some(field), Switch::Off) = (http, http_field, insecure)
        && !address.ip().is_loopback()
    {
        return Err(field.mismatch(PAGE_OPEN));
    }
    let actions = table.and_then(|table| table.get("http_actions"));
    let actions = actions.map(|value| value.boolean()).transpose()?;
    Ok(Control {
        socket,
        rights,
        members: members.transpose()?.unwrap_or_default(),
        http,
        insecure,
        http_actions: match actions {
            Some(true) => Actions::Allowed,
            _ => Actions::Refused,
        },
    })
}

/// What a page needs that other machines reach.
const PAGE_OPEN: &str = "an address of this machine such as 127.0.0.1, since the page has no TLS, or \
     insecure = true";

/// The default port of the page. A choice: IANA has not assigned it.
const HTTP_PORT: u16 = 8384;

/// The log.
pub(super) fn log(root: &Section<'_>) -> Result<Log, DocumentError> {
    let table = root.section("log", &["level", "format"])?;
    let table = table.as_ref();
    let level = table.and_then(|table| table.get("level")).map(|value| {
        value.choice(&[
            ("error", tracing::Level::ERROR),
            ("warn", tracing::Level::WARN),
            ("info", tracing::Level::INFO),
            ("debug", tracing::Level::DEBUG),
            ("trace", tracing::Level::TRACE),
        ])
    });
    let format = table.and_then(|table| table.get("format"));
    let format =
        format.map(|value| value.choice(&[("text", LogFormat::Text), ("json", LogFormat::Json)]));
    Ok(Log {
        level: level.transpose()?.unwrap_or(tracing::Level::INFO),
        format: format.transpose()?.unwrap_or(LogFormat::Text),
    })
}

/// The limits of clients.
pub(super) fn limits(root: &Section<'_>) -> Result<Limits, DocumentError> {
    let table = root.section("limits", &LIMITS)?;
    let table = table.as_ref();
    let whole = |key: &str, least: u64, most: u64, default: u64| {
        let expected = format!("a whole number from {least} to {most}");
        let value = table.and_then(|table| table.get(key));
        let value = value.map(|value| value.whole(least..=most, &expected));
        Ok::<u64, DocumentError>(value.transpose()?.unwrap_or(default))
    };
    let bytes = |key: &str, least: u64, most: u64, default: u64| {
        let value = table.and_then(|table| table.get(key));
        let checked = |value: Field<'_>| match bytes(&value, 4096)? {
            bytes if (least..=most).contains(&bytes) => Ok(bytes),
            _ => Err(value.mismatch(format!("from {} to {} MiB", least >> 20, most >> 20))),
        };
        Ok::<u64, DocumentError>(value.map(checked).transpose()?.unwrap_or(default))
    };
    Ok(Limits {
        connections: whole("connections", 1, 1024, 64)? as u32,
        requests_per_connection: whole("requests_per_connection", 1, 4096, 128)? as u32,
        // The protocol promises 32 MiB to clients that did not ask.
        request_bytes: bytes("request_size", 1 << 20, 64 << 20, 32 << 20)? as u32,
        buffer_bytes: bytes("buffer_size", 64 << 20, 16 << 30, 128 << 20)?,
        handshake_s: table
            .and_then(|table| table.get("handshake_s"))
            .map(|value| {
                let expected = "a whole number from 1 to 3600";
                value.whole_quantity(Unit::Seconds, 1..=3600, expected)
            })
            .transpose()?
            .unwrap_or(10) as u32,
    })
}

const LIMITS: [&str; 5] = [
    "connections",
    "requests_per_connection",
    "request_size",
    "buffer_size",
    "handshake_s",
];
