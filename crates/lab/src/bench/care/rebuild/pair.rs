//! Two emulated drives as a mirror, and what lies on them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use server::mirror::DATA_OFFSET;
use server::mirror::bitmap::Bitmap;
use server::mirror::storage::{self, LegStorage};
use server::mirror::superblock::LegRecord;

use crate::{Failure, named};

/// Whether the service begins without one of the legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It does.
    Allowed,
    /// It does not.
    Refused,
}

/// A pair of emulated drives in a folder.
pub struct Pair {
    drive: String,
    policy: String,
    folder: PathBuf,
    bytes: u64,
    /// What is added to the table of the drive, and to the back end and the belief of each leg.
    pub of_drive: String,
    pub of_back_end: String,
    pub belief: String,
}

/// Bytes that are compared at once. A choice.
const COMPARED: usize = 1 << 20;

impl Pair {
    /// A new mirror of two empty drives. Leg 1 is filled when a service begins.
    ///
    /// # Errors
    /// If the drive is unknown, or its images cannot be made.
    pub fn new(drive: &str, policy: &str, folder: &Path) -> Result<Self, Failure> {
        let truth = named::drive(drive)?;
        let pair = Pair {
            drive: drive.to_owned(),
            policy: policy.to_owned(),
            folder: folder.to_owned(),
            bytes: truth.geometry.sectors().0 * u64::from(truth.block_bytes),
            of_drive: String::new(),
            of_back_end: String::new(),
            belief: "\"emulated\"".to_owned(),
        };
        for leg in 0..2 {
            let image = File::create(pair.leg(leg));
            let sized = image.and_then(|image| image.set_len(pair.bytes));
            sized.map_err(Failure::failed)?;
        }
        let legs = [pair.leg(0), pair.leg(1)];
        let made = storage::create([&legs[0], &legs[1]], [pair.bytes; 2]);
        made.map_err(Failure::failed)?;
        Ok(pair)
    }

    /// Says in both superblocks that the legs, which are empty, have the same data.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn make_equal(&self) -> Result<(), Failure> {
        let put = |leg: usize| {
            let storage = LegStorage::open(&self.leg(leg))?;
            let superblock = storage.superblock().map_err(io::Error::other)?;
            let mut superblock = superblock.of_leg(leg);
            superblock.states = [LegRecord::InSync; 2];
            superblock.events += 1;
            storage.put_superblock(&superblock)?;
            storage.put_marks(&Bitmap::empty(superblock.regions()), &superblock.mirror)
        };
        (0..2).try_for_each(put).map_err(Failure::failed)
    }

    /// The image of a leg.
    pub fn leg(&self, leg: usize) -> PathBuf {
        self.folder.join(["one.img", "two.img"][leg])
    }

    /// Bytes of the data of a leg.
    pub fn data_bytes(&self) -> u64 {
        self.bytes - DATA_OFFSET
    }

    /// How many bytes of the data differ between the legs.
    ///
    /// # Errors
    /// If a leg cannot be read.
    pub fn differing_bytes(&self) -> Result<u64, Failure> {
        let open = |leg: usize| File::open(self.leg(leg)).map_err(Failure::failed);
        let (one, other) = (open(0)?, open(1)?);
        let mut differing = 0;
        let mut both = [vec![0; COMPARED], vec![0; COMPARED]];
        for at in (DATA_OFFSET..self.bytes).step_by(COMPARED) {
            let length = (self.bytes - at).min(COMPARED as u64) as usize;
            let [mine, others] = &mut both;
            let (mine, others) = (&mut mine[..length], &mut others[..length]);
            one.read_exact_at(mine, at).map_err(Failure::failed)?;
            other.read_exact_at(others, at).map_err(Failure::failed)?;
            if mine != others {
                let pairs = mine.iter().zip(others.iter());
                differing += pairs.filter(|(one, other)| one != other).count() as u64;
            }
        }
        Ok(differing)
    }

    /// The configuration of a service.
    pub fn configuration(&self, time_scale: f64, missing: Missing) -> String {
        let Pair {
            drive,
            policy,
            of_drive,
            of_back_end,
            belief,
            ..
        } = self;
        let degraded = missing == Missing::Allowed;
        let leg = |image: &str| {
            format!(
                r#"
[[drive.leg]]
belief = {belief}
[drive.leg.back_end]
kind = "emulated"
drive = "{drive}"
image = "{image}"
time_scale = {time_scale}
{of_back_end}"#
            )
        };
        let legs = [leg("one.img"), leg("two.img")].concat();
        format!(
            r#"
[[drive]]
name = "pair"
policy = "{policy}"
back_end = {{ kind = "mirror", degraded = {degraded} }}
{of_drive}{legs}
[[drive.volume]]
name = "all"
[[drive.export]]
name = "all"
volume = "all"
class = "foreground"
[[nbd]]
unix = "pair.nbd"
[control]
socket = "pair.control"
"#
        )
    }
}
