//! An emulated drive whose image can be damaged behind the service's back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::{SECTOR, VOLUME};
use crate::{Failure, named};

/// How much faster than the drive the emulation runs while damage is searched: nothing is timed then. A choice.
const TIME_SCALE: f64 = 0.01;

/// A drive with one volume from its first byte on.
#[derive(Clone, Debug)]
pub struct Medium {
    drive: String,
    policy: String,
    volume_bytes: u64,
    image: PathBuf,
}

impl Medium {
    /// A sparse image in a folder.
    ///
    /// # Errors
    /// If the drive is unknown or smaller than the volume, or the image cannot be made.
    pub fn new(
        drive: &str,
        policy: &str,
        volume_bytes: u64,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let truth = named::drive(drive)?;
        let bytes = truth.geometry.sectors().0 * u64::from(truth.block_bytes);
        if volume_bytes > bytes {
            return Err(Failure::input(format!(
                "{} has {bytes} bytes: expected a drive of {volume_bytes} or more",
                truth.name
            )));
        }
        let image = folder.join("disk.img");
        let made = File::create(&image).and_then(|file| file.set_len(bytes));
        made.map_err(Failure::failed)?;
        Ok(Medium {
            drive: drive.to_owned(),
            policy: policy.to_owned(),
            volume_bytes,
            image,
        })
    }

    /// The configuration of a service whose drive cannot read the sectors of these bytes.
    pub fn configuration(&self, unreadable: &[u64]) -> String {
        let Medium {
            drive,
            policy,
            volume_bytes,
            ..
        } = self;
        let sectors: Vec<u64> = unreadable.iter().map(|byte| byte / SECTOR).collect();
        format!(
            r#"
[[drive]]
name = "disk"
policy = "{policy}"
belief = "emulated"
[drive.back_end]
kind = "emulated"
drive = "{drive}"
image = "disk.img"
time_scale = {TIME_SCALE}
look_ahead = false
write_cache = true
unreadable = {sectors:?}
[[drive.volume]]
name = "{VOLUME}"
size = {volume_bytes}
checksums = "disk.sums"
[[drive.export]]
name = "{VOLUME}"
volume = "{VOLUME}"
class = "foreground"
[[nbd]]
unix = "scrubbed.nbd"
[control]
socket = "scrubbed.control"
"#
        )
    }

    /// Inverts a bit of the medium.
    pub fn flip(&self, byte: u64) -> io::Result<()> {
        let image = File::options().read(true).write(true).open(&self.image)?;
        let mut one = [0];
        image.read_exact_at(&mut one, byte)?;
        image.write_all_at(&[one[0] ^ (1 << (byte % 8))], byte)
    }
}
