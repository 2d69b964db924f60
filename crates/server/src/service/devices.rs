//! Exports as block devices of this kernel: the configured ones of `[ublk]`, and the remaining devices
//! of a killed predecessor.
//!
//! ```text
//!   the driver's devices with our mark      [ublk]        becomes
//!     waits, the same properties        <->  db        ->  taken over: its clients go on
//!     waits, another size or drive     <->  db        ->  refused
//!     waits                                 -         ->  removed: its clients get errors
//!     -                                     db        ->  added
//! ```
//!
//! The driver keeps a mark with each device: hashes of the service, of the export and of its contents.
//! The mark lives as long as the device, so the service needs no file for it.

use std::io;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::time::Instant;

use tracing::{info, warn};

use super::ServeError;
use super::drives::Drive;
use crate::config::{BackEnd, Config};
use crate::disk::back_end::disk::sysfs::is_claimed;
use crate::front_end::ublk::{
    Control, Device, DeviceCounters, DeviceSetting, DeviceShape, DeviceState, Exported,
    FixedProperties, ListedDevice, Orphans, UblkError,
};
use crate::status;

/// The devices of a service. If they are dropped without a stop, those of a predecessor remain for the
/// next service, and new ones are removed.
#[derive(Default)]
pub(super) struct ExportedDevices {
    served: Vec<ServedDevice>,
}

struct ServedDevice {
    device: Device,
    export: String,
    class: status::TrafficClass,
    counters: Arc<DeviceCounters>,
    since: Instant,
    origin: Origin,
}

/// The origin of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The service has added it.
    Added,
    /// The service has recovered it from a predecessor.
    TakenOver,
}

/// An export that is to become a device.
struct WantedDevice {
    name: String,
    class: status::TrafficClass,
    exported: Exported,
    shape: DeviceShape,
    service: DeviceSetting,
}

/// The mark of a device. Two exports with the same hash (1 in a million) are confused only if their
/// contents are the same, too. Otherwise the recovery of one of them is refused.
///
/// ```text
///   63           40 39           20 19            0
///   |   service    |    export     |   contents   |      hashes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark(u64);

/// Bits of the contents' hash and of the export's. The service's hash has the rest.
const CONTENTS_BITS: u32 = 20;
const EXPORT_BITS: u32 = 20;

impl ExportedDevices {
    /// Recovers the devices of a predecessor, and adds the others.
    ///
    /// # Errors
    /// The first device that fails. Then no device is added, and waiting devices are unchanged.
    pub(super) fn begin(config: &Config, drives: &[Drive]) -> Result<Self, ServeError> {
        let Some(ublk) = &config.ublk else {
            return Ok(ExportedDevices::default());
        };
        let all = |failed| failure("[ublk]", failed);
        let mut control = Control::open().map_err(all)?;
        let wanted = ublk.exports.iter().map(|name| wanted(config, drives, name));
        let wanted: Vec<WantedDevice> = wanted.collect::<Result<_, _>>()?;
        let left = left_behind(&mut control, Mark::of_service(config)).map_err(all)?;
        // Everything is looked at before anything is done.
        let mut predecessors = Vec::new();
        for export in &wanted {
            let refused = |problem| failure(&format!("[ublk] export {}", export.name), problem);
            predecessors.push(predecessor(export, &left).map_err(refused)?);
        }
        for found in &left {
            if !predecessors.contains(&Some(found.number)) {
                remove(&mut control, found).map_err(all)?;
            }
        }
        let mut devices = ExportedDevices::default();
        for (export, predecessor) in wanted.into_iter().zip(predecessors) {
            devices.served.push(export.begin(predecessor)?);
        }
        Ok(devices)
    }

    /// Stops all devices. The drives must still run.
    pub(super) fn stop(mut self) {
        for served in std::mem::take(&mut self.served) {
            served.stop();
        }
    }

    /// The paths of an export's devices.
    pub(super) fn paths(&self, export: &str) -> impl Iterator<Item = PathBuf> {
        let served = self
            .served
            .iter()
            .filter(move |served| served.export == export);
        served.map(|served| PathBuf::from(path(served.device.number())))
    }

    /// The devices as connections of the status.
    pub(super) fn connections(&self) -> Vec<status::Connection> {
        let each = self.served.iter();
        each.map(|served| status::Connection {
            id: u64::from(served.device.number()),
            front: "ublk".to_owned(),
            peer: path(served.device.number()),
            export: served.export.clone(),
            class: served.class,
            connected_s: served.since.elapsed().as_secs_f64(),
            in_flight: served.counters.in_flight(),
            requests_total: served.counters.requests(),
            bytes_total: served.counters.bytes(),
            ..status::Connection::default()
        })
        .collect()
    }
}

impl Drop for ExportedDevices {
    fn drop(&mut self) {
        for served in std::mem::take(&mut self.served) {
            match served.origin {
                Origin::Added => served.stop(),
                // It waits when this process has ended.
                Origin::TakenOver => drop(served.device),
            }
        }
    }
}

impl ServedDevice {
    fn stop(self) {
        let device = path(self.device.number());
        let claimed = is_claimed(device.as_ref());
        match self.device.stop() {
            Ok(()) => info!(device, export = self.export, "the device has ended"),
            Err(error) => {
                warn!(device, export = self.export, %error, "the device may still be there")
            }
        }
        if claimed {
            warn!(
                device,
                "it was mounted or part of another device: what had been written is on the drive, \
                 and whoever uses it gets errors; `umount` gives it up"
            );
        }
    }
}

impl WantedDevice {
    fn begin(self, predecessor: Option<u32>) -> Result<ServedDevice, ServeError> {
        let what = format!("[ublk] export {}", self.name);
        let counters = Arc::clone(&self.exported.counters);
        let (begun, origin) = match predecessor {
            Some(number) => (Device::recover(number, self.exported), Origin::TakenOver),
            None => (
                Device::start(None, &self.shape, self.service, self.exported),
                Origin::Added,
            ),
        };
        let device = begun.map_err(|failed| failure(&what, failed))?;
        let place = path(device.number());
        let export = &self.name;
        match origin {
            Origin::Added => info!(device = place, export, "an export is a block device"),
            Origin::TakenOver => info!(
                device = place,
                export, "taken over from a server that was killed: its requests go on"
            ),
        }
        Ok(ServedDevice {
            device,
            export: self.name,
            class: self.class,
            counters,
            since: Instant::now(),
            origin,
        })
    }
}

impl Mark {
    /// The mark's hash of the service, from its control socket.
    fn of_service(config: &Config) -> Mark {
        let socket = in_full(&config.control.socket);
        let bits = CONTENTS_BITS + EXPORT_BITS;
        Mark(hash(&[b"headtime", &socket]) >> bits << bits)
    }

    /// The mark of an export with these contents.
    fn with(self, export: &str, on: &BackEnd, offset: u64) -> Mark {
        let (kind, place) = match on {
            BackEnd::Memory { .. } => ("memory", Vec::new()),
            BackEnd::File { path, .. } => ("file", in_full(path)),
            BackEnd::Device(device) => ("device", in_full(&device.path)),
            BackEnd::Emulated(emulated) => ("emulated", in_full(&emulated.image)),
            BackEnd::Nbd(remote) => ("nbd", remote.uri.clone().into_bytes()),
            BackEnd::Mirror(mirror) => {
                let paths = mirror.legs.iter().filter_map(|leg| leg.path());
                ("mirror", paths.flat_map(in_full).collect())
            }
        };
        let contents = hash(&[kind.as_bytes(), &place, &offset.to_le_bytes()]);
        let export = hash(&[export.as_bytes()]) >> (64 - EXPORT_BITS);
        Mark(self.0 | export << CONTENTS_BITS | contents >> (64 - CONTENTS_BITS))
    }

    fn is_of(self, service: Mark) -> bool {
        self.0 >> (CONTENTS_BITS + EXPORT_BITS) == service.0 >> (CONTENTS_BITS + EXPORT_BITS)
    }

    fn is_same_export(self, other: Mark) -> bool {
        self.0 >> CONTENTS_BITS == other.0 >> CONTENTS_BITS
    }
}

/// The configured export of that name.
fn wanted(config: &Config, drives: &[Drive], name: &str) -> Result<WantedDevice, ServeError> {
    let refused = |problem: String| failure(&format!("[ublk] export {name}"), problem);
    let mut both = config.drives.iter().zip(drives);
    let found = both.find_map(|(config, drive)| {
        let mut exports = config.exports.iter();
        let export = exports.find(|export| export.name == name)?;
        Some((config, export, drive.device(name)?))
    });
    let Some((drive, export, (exported, shape))) = found else {
        return Err(refused("expected an export of a drive".to_owned()));
    };
    let volume = drive.volumes.iter().find(|v| v.name == export.volume);
    let offset = volume.map_or(0, |volume| volume.offset);
    Ok(WantedDevice {
        name: name.to_owned(),
        class: export.class.of_requests().into(),
        exported,
        shape,
        service: DeviceSetting {
            mark: Mark::of_service(config)
                .with(name, &drive.back_end, offset)
                .0,
            orphans: orphans(&drive.back_end),
            ..DeviceSetting::default()
        },
    })
}

/// The fate of requests when the server dies: they wait only if the contents survive.
fn orphans(on: &BackEnd) -> Orphans {
    match on {
        BackEnd::Memory { .. } => Orphans::Fail,
        BackEnd::File { .. }
        | BackEnd::Device { .. }
        | BackEnd::Emulated(_)
        | BackEnd::Nbd { .. }
        | BackEnd::Mirror(_) => Orphans::Wait,
    }
}

/// The devices of predecessors. None of them has a running server.
fn left_behind(control: &mut Control, service: Mark) -> Result<Vec<ListedDevice>, UblkError> {
    let mut left = Vec::new();
    for found in control.devices()? {
        if Mark(found.mark).is_of(service) {
            left.push(control.orphan(found.number)?);
        }
    }
    Ok(left)
}

/// The waiting device of an export's predecessor.
fn predecessor(export: &WantedDevice, left: &[ListedDevice]) -> Result<Option<u32>, String> {
    let mark = Mark(export.service.mark);
    let mut left = left.iter();
    let Some(found) = left
        .find(|found| found.state != DeviceState::Dead && Mark(found.mark).is_same_export(mark))
    else {
        return Ok(None);
    };
    let differs = match Mark(found.mark) == mark {
        true => difference(found.fixed, export.shape.fixed()),
        false => Some("was on another drive, or elsewhere on it".to_owned()),
    };
    match differs {
        None => Ok(Some(found.number)),
        Some(differs) => Err(format!(
            "{} waits for its server, and {differs}: expected the export as it was; to give the \
             device up, so that its clients get errors, begin once without the export in [ublk]",
            path(found.number)
        )),
    }
}

/// The first difference of the fixed properties, in words.
fn difference(was: FixedProperties, is: FixedProperties) -> Option<String> {
    if was.bytes != is.bytes {
        let (was, is) = (was.bytes, is.bytes);
        return Some(format!("has {was} bytes where the export has {is}"));
    }
    if was.logical_block != is.logical_block {
        let (was, is) = (was.logical_block, is.logical_block);
        return Some(format!(
            "has blocks of {was} bytes where the export has {is}"
        ));
    }
    (was.access != is.access).then(|| {
        let (was, is) = (was.access, is.access);
        format!("is {was:?} where the export is {is:?}")
    })
}

/// Removes a device that no export claims.
fn remove(control: &mut Control, found: &ListedDevice) -> Result<(), UblkError> {
    let device = path(found.number);
    control.remove(found.number)?;
    match found.state {
        // Its contents went with its server, or it had never begun.
        DeviceState::Dead => info!(device, "what was left of a device is removed"),
        _ => warn!(
            device,
            "a device of a server that was killed, of no export in [ublk], is removed: whoever \
             uses it gets errors"
        ),
    }
    Ok(())
}

fn path(number: u32) -> String {
    format!("/dev/ublkb{number}")
}

/// The canonical path, which does not depend on the configuration's spelling.
fn in_full(path: &Path) -> Vec<u8> {
    let full = absolute(path).unwrap_or_else(|_| path.to_owned());
    full.into_os_string().into_encoded_bytes()
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo; RFC 9923) of each part's length and bytes: the same in every
/// version of this program, which the library's hashes do not promise. The last bytes hardly reach
/// its upper bits, so that it is mixed by the end of MurmurHash3 (Appleby).
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        let length = (part.len() as u64).to_le_bytes();
        for &byte in length.iter().chain(*part) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ hash >> 33).wrapping_mul(factor);
    }
    hash ^ hash >> 33
}

fn failure(what: &str, problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ServeError {
    ServeError::Listen {
        what: what.to_owned(),
        error: io::Error::other(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_loop::mailbox::Mailbox;
    use crate::front_end::ublk::{Access, Medium, Trims};
    use std::collections::BTreeSet;

    const SERVICE: Mark = Mark(0xabcd_ef00_0000_0000);

    fn file(path: &str) -> BackEnd {
        BackEnd::File {
            path: PathBuf::from(path),
            size: None,
            direct: block::Switch::Off,
        }
    }

    #[test]
    fn marks_tell_services_exports_and_what_they_are_on_apart() {
        let marks: BTreeSet<u64> = (0..100)
            .map(|number| SERVICE.with(&format!("db{number}"), &file("/a"), 0))
            .inspect(|mark| assert!(mark.is_of(SERVICE)))
            .map(|mark| mark.0 >> CONTENTS_BITS)
            .collect();
        assert_eq!(marks.len(), 100);
        let db = SERVICE.with("db", &file("/a"), 0);
        assert_eq!(db, SERVICE.with("db", &file("/a"), 0));
        for other in [
            SERVICE.with("db", &file("/b"), 0),
            SERVICE.with("db", &file("/a"), 4096),
            SERVICE.with("db", &BackEnd::Memory { size: 4096 }, 0),
        ] {
            assert_ne!(db, other);
            assert!(db.is_same_export(other));
        }
        let stranger = Mark(SERVICE.0 ^ 1 << 63);
        assert!(!stranger.with("db", &file("/a"), 0).is_of(SERVICE));
        assert!(!Mark(0).is_of(SERVICE), "what others leave at zero");
    }

    /// An export of 8 KiB.
    fn wanted() -> WantedDevice {
        WantedDevice {
            name: "db".to_owned(),
            class: status::TrafficClass::Foreground,
            exported: Exported {
                mailbox: Mailbox::new().expect("a mailbox"),
                export: 0,
                access: Access::ReadWrite,
                counters: Arc::default(),
            },
            shape: DeviceShape {
                bytes: 8192,
                logical_block: 512,
                physical_block: 4096,
                medium: Medium::Solid,
                access: Access::ReadWrite,
                space: Trims::Passed,
            },
            service: DeviceSetting {
                mark: SERVICE.with("db", &file("/a"), 0).0,
                ..DeviceSetting::default()
            },
        }
    }

    fn left() -> ListedDevice {
        let wanted = wanted();
        ListedDevice {
            number: 3,
            mark: wanted.service.mark,
            state: DeviceState::Waiting,
            fixed: wanted.shape.fixed(),
        }
    }

    #[test]
    fn only_the_device_that_an_export_had_is_taken_over() {
        let export = wanted();
        assert_eq!(predecessor(&export, &[]), Ok(None));
        let other = ListedDevice {
            number: 1,
            mark: SERVICE.with("log", &file("/a"), 0).0,
            ..left()
        };
        assert_eq!(predecessor(&export, &[other, left()]), Ok(Some(3)));
        assert_eq!(predecessor(&export, &[other]), Ok(None));
        let dead = ListedDevice {
            state: DeviceState::Dead,
            ..left()
        };
        assert_eq!(predecessor(&export, &[dead]), Ok(None));
    }

    #[test]
    fn a_device_that_would_change_under_its_clients_is_refused() {
        let was = left();
        let fixed = was.fixed;
        let with = |fixed| ListedDevice { fixed, ..was };
        let elsewhere = ListedDevice {
            mark: SERVICE.with("db", &file("/b"), 0).0,
            ..was
        };
        for (found, reason) in [
            (
                with(FixedProperties {
                    bytes: 4096,
                    ..fixed
                }),
                "has 4096 bytes where the export has 8192",
            ),
            (
                with(FixedProperties {
                    logical_block: 4096,
                    ..fixed
                }),
                "has blocks of 4096 bytes where the export has 512",
            ),
            (
                with(FixedProperties {
                    access: Access::ReadOnly,
                    ..fixed
                }),
                "is ReadOnly where the export is ReadWrite",
            ),
            (elsewhere, "was on another drive, or elsewhere on it"),
        ] {
            let problem = predecessor(&wanted(), &[found]).expect_err("it changed");
            let expected = format!("/dev/ublkb3 waits for its server, and {reason}: expected");
            assert!(problem.starts_with(&expected), "{problem}");
        }
    }

    #[test]
    fn only_memory_goes_with_its_server() {
        assert_eq!(orphans(&BackEnd::Memory { size: 1 }), Orphans::Fail);
        assert_eq!(orphans(&file("/a")), Orphans::Wait);
    }
}
