//! The service of a demonstration, in a temporary folder.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use server::clock::TimeScale;
use server::config::{Config, Places};
use server::control::notify::Activated;
use server::control::{self, Bounds, Listeners, Plane, listen, listen_http};
use server::service::Running;
use tempfile::TempDir;

use crate::{Failure, named};

/// A service with one emulated drive. Dropping this ends the service.
pub struct Demonstration {
    /// The service.
    pub service: Arc<Running>,
    /// The socket for NBD clients.
    pub socket: PathBuf,
    /// The socket for `headtime ctl`.
    pub control: PathBuf,
    /// The address of the status page.
    pub page: SocketAddr,
    /// The drive's block size.
    pub block_bytes: u32,
    /// The drive's size.
    pub blocks: u64,
    /// The slow-down of the drive.
    pub scale: f64,
    /// The control plane.
    plane: Option<Plane>,
    /// Dropped last.
    _folder: TempDir,
}

impl Demonstration {
    /// Starts the service.
    ///
    /// # Errors
    /// If the service cannot start.
    pub fn begin(scale: TimeScale) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("headtime-demo-")
            .tempdir()
            .map_err(|error| Failure::failed(format!("a temporary folder: {error}")))?;
        let drive = named::drive(DRIVE)?;
        let scale = scale.times();
        let places = Places::of_this_user(folder.path());
        let config = Config::parse("the demonstration", &configuration(scale), &places)
            .map_err(Failure::failed)?;
        let control = config.control.socket.clone();
        let service =
            Running::begin(config, None, Activated::default()).map_err(Failure::failed)?;
        let at = |error: std::io::Error| Failure::failed(format!("{}: {error}", control.display()));
        // The usual port may belong to another service of this user.
        let http = [PORT, 0].map(|port| listen_http(SocketAddr::from(([127, 0, 0, 1], port))));
        let [usual, any] = http;
        let http = usual.or(any).map_err(Failure::failed)?;
        let page = http.local_addr().map_err(Failure::failed)?;
        let listeners = Listeners {
            sockets: vec![listen(&control, server::config::SocketRights::default()).map_err(at)?],
            http: vec![http],
        };
        let asked = Arc::clone(&service) as Arc<dyn control::Service>;
        let plane = Plane::begin(asked, listeners, Bounds::default()).map_err(Failure::failed)?;
        Ok(Demonstration {
            service,
            socket: folder.path().join("nbd.sock"),
            control,
            page,
            block_bytes: drive.block_bytes,
            blocks: drive.geometry.sectors().0,
            scale,
            plane: Some(plane),
            _folder: folder,
        })
    }
}

impl Drop for Demonstration {
    fn drop(&mut self) {
        control::Service::stop(&*self.service);
        // The image is a temporary file: nothing of it is kept.
        let _ = self.service.wait();
        drop(self.plane.take());
    }
}

fn configuration(scale: f64) -> String {
    format!(
        r#"
[[drive]]
name = "disk"
policy = "{POLICY}"
belief = "emulated"
[drive.back_end]
kind = "emulated"
drive = "{DRIVE}"
image = "disk.img"
time_scale = {scale}
look_ahead = true
write_cache = false
bus_mb_s = {BUS_MB_S}
seek_noise_us = {SEEK_NOISE_US}
[[drive.volume]]
name = "{VOLUME}"
[[drive.export]]
name = "disk"
volume = "{VOLUME}"
class = "foreground"
[[nbd]]
unix = "nbd.sock"
[control]
socket = "control.sock"
"#
    )
}

/// The drive of the paper on free blocks (Lumb, Schindler, Ganger, FAST 2002).
pub const DRIVE: &str = "quantum-atlas-10k";

/// Bandwidth of Ultra2 SCSI, the drive's bus. The profile has the bus of its measurement, 5 MB/s,
/// which free reads would saturate.
pub const BUS_MB_S: f64 = 80.0;

/// The policy: positions, with a bound on waiting.
pub const POLICY: &str = "sptf-sw60";

/// Standard deviation of seek times, which the belief does not contain. A choice: the middle of the
/// sweeps in `experiments/`.
pub const SEEK_NOISE_US: u32 = 60;

/// The volume of the whole drive.
pub const VOLUME: &str = "disk";

/// The port of the status page: the service's default.
const PORT: u16 = 8384;
