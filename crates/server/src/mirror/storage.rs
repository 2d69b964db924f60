//! Superblocks and marks of legs, while no service uses them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::SeekFrom;

use super::assembly::{Assembly, FoundLeg};
use super::bitmap::{Bitmap, PAGE_BYTES};
use super::superblock::{Id, LegRecord, NoSuperblock, SUPERBLOCK_BYTES, Superblock};
use super::{DATA_OFFSET, MARKS_OFFSET, SLOTS, region_bytes};
use crate::exclusive;

/// Data of a mirror end at a multiple of this: a page, as volumes do.
const GRAIN: u64 = 4096;

/// The file or device of a leg.
pub struct LegStorage(File);

/// Why a leg has no superblock.
#[derive(Debug, thiserror::Error)]
pub enum LegError {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Both places of the superblock have none.
    #[error("{0}")]
    None(NoSuperblock),
}

impl LegStorage {
    /// Opens a file or a device.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(LegStorage(file))
    }

    /// Opens a file or a device that no service uses, and keeps others away from it.
    ///
    /// # Errors
    /// If it cannot be opened, or is in use.
    fn claim(path: &Path) -> io::Result<Self> {
        Ok(LegStorage(exclusive::open(path)?))
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// If it is not known.
    pub fn bytes(&self) -> io::Result<u64> {
        Ok(rustix::fs::seek(&self.0, SeekFrom::End(0))?)
    }

    /// The newer of its superblocks.
    ///
    /// # Errors
    /// If there is none.
    pub fn superblock(&self) -> Result<Superblock, LegError> {
        let mut newest: Result<Superblock, LegError> = Err(LegError::None(NoSuperblock::Other));
        for slot in SLOTS {
            let mut bytes = [0; SUPERBLOCK_BYTES];
            self.0.read_exact_at(&mut bytes, slot)?;
            newest = match (newest, Superblock::decoded(&bytes)) {
                (Ok(one), Ok(other)) if one.events >= other.events => Ok(one),
                (_, Ok(other)) => Ok(other),
                (Err(LegError::None(NoSuperblock::Other)), Err(error)) => {
                    Err(LegError::None(error))
                }
                (known, Err(_)) => known,
            };
        }
        newest
    }

    /// Its marks. A page that cannot be read marks all its regions.
    pub fn marks(&self, superblock: &Superblock) -> Bitmap {
        let mut marks = Bitmap::empty(superblock.regions());
        for page in 0..marks.pages() {
            let mut bytes = [0; PAGE_BYTES];
            // What is not read is not whole.
            let _ = self
                .0
                .read_exact_at(&mut bytes, MARKS_OFFSET + page * PAGE_BYTES as u64);
            marks.take_page(page, &bytes, &superblock.mirror);
        }
        marks
    }

    /// Writes a superblock, and waits until it is durable.
    ///
    /// # Errors
    /// If that fails.
    pub fn put_superblock(&self, superblock: &Superblock) -> io::Result<()> {
        let mut page = [0; GRAIN as usize];
        page[..SUPERBLOCK_BYTES].copy_from_slice(&superblock.encoded());
        self.0.write_all_at(&page, slot(superblock.events))?;
        self.0.sync_data()
    }

    /// Writes marks, and waits until they are durable.
    ///
    /// # Errors
    /// If that fails.
    pub fn put_marks(&self, marks: &Bitmap, mirror: &Id) -> io::Result<()> {
        for page in 0..marks.pages() {
            let bytes = marks.page(page, mirror);
            self.0
                .write_all_at(&bytes, MARKS_OFFSET + page * PAGE_BYTES as u64)?;
        }
        self.0.sync_data()
    }

    /// Removes earlier superblocks.
    fn wipe(&self) -> io::Result<()> {
        for slot in SLOTS {
            self.0.write_all_at(&[0; GRAIN as usize], slot)?;
        }
        self.0.sync_data()
    }
}

/// The place of the superblock with so many events.
pub fn slot(events: u64) -> u64 {
    SLOTS[(events % 2) as usize]
}

/// What is found of the leg at a path.
pub fn look(path: &Path) -> FoundLeg {
    let missing = |why: String| FoundLeg::Missing(format!("{}: {why}", path.display()));
    let leg = match LegStorage::open(path) {
        Ok(leg) => leg,
        Err(error) => return missing(error.to_string()),
    };
    match leg.superblock() {
        Ok(superblock) => {
            let needed = superblock.data_offset + superblock.data_bytes;
            match leg.bytes() {
                Ok(bytes) if bytes >= needed => {
                    FoundLeg::Whole(Box::new((superblock, leg.marks(&superblock))))
                }
                _ => missing(format!("shorter than the {needed} bytes of its mirror")),
            }
        }
        Err(error) => missing(error.to_string()),
    }
}

/// Makes a mirror of two legs with so many bytes. The data of leg 0 are those of the mirror: leg 1 is filled from it.
///
/// # Errors
/// If a leg is in use, is too short, is of a mirror, or cannot be written.
pub fn create(paths: [&Path; 2], lengths: [u64; 2]) -> Result<Superblock, String> {
    let data_bytes = lengths[0].min(lengths[1]).saturating_sub(DATA_OFFSET) / GRAIN * GRAIN;
    if data_bytes == 0 {
        return Err(format!(
            "legs of {} and {} bytes: expected more than {DATA_OFFSET}",
            lengths[0], lengths[1]
        ));
    }
    let superblock = Superblock {
        mirror: random()?,
        events: 1,
        data_offset: DATA_OFFSET,
        data_bytes,
        region_bytes: region_bytes(data_bytes),
        leg: 0,
        states: [LegRecord::InSync, LegRecord::Filling],
        legs: [random()?, random()?],
    };
    let mut legs = Vec::new();
    for path in paths {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let leg = LegStorage::claim(path).map_err(|error| named(&error))?;
        match leg.superblock() {
            Err(LegError::None(NoSuperblock::Other)) => legs.push(leg),
            Err(LegError::Io(error)) => return Err(named(&error)),
            Ok(_) | Err(LegError::None(_)) => {
                return Err(named(
                    &"it has a superblock of a mirror: expected a leg without one (`headtime mirror erase` removes it)",
                ));
            }
        }
    }
    let all = Bitmap::full(superblock.regions());
    // The superblocks come last: before, there is no mirror.
    for leg in &legs {
        let put = leg.put_marks(&all, &superblock.mirror);
        put.map_err(|error| error.to_string())?;
    }
    for (leg, place) in legs.iter().zip(0..) {
        let put = leg.put_superblock(&superblock.of_leg(place));
        put.map_err(|error| error.to_string())?;
    }
    Ok(superblock)
}

/// Makes the file or device at `new` the other leg of the mirror of `survivor`, to be filled when the mirror
/// begins. Returns the survivor's new superblock.
///
/// # Errors
/// If a leg is in use, the survivor lacks data, the new leg is too short, or one of them cannot be written.
pub fn replace(survivor: &Path, new: &Path) -> Result<Superblock, String> {
    let named = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let opened = |path: &Path| LegStorage::claim(path).map_err(|error| named(path, &error));
    let (kept, filled) = (opened(survivor)?, opened(new)?);
    let superblock = kept.superblock().map_err(|error| named(survivor, &error))?;
    let own = usize::from(superblock.leg);
    if !superblock.states[own].is_complete() {
        return Err(named(
            survivor,
            &format!(
                "it is {}: expected the leg that has all data",
                superblock.states[own].name()
            ),
        ));
    }
    let needed = superblock.data_offset + superblock.data_bytes;
    let bytes = filled.bytes().map_err(|error| named(new, &error))?;
    if bytes < needed {
        return Err(named(
            new,
            &format!("{bytes} bytes: expected at least {needed}"),
        ));
    }
    let mut changed = superblock;
    changed.events += 1;
    changed.states[own] = LegRecord::InSync;
    changed.states[1 - own] = LegRecord::Filling;
    changed.legs[1 - own] = random()?;
    let all = Bitmap::full(superblock.regions());
    let write = || -> io::Result<()> {
        kept.put_marks(&all, &superblock.mirror)?;
        kept.put_superblock(&changed)?;
        filled.wipe()?;
        filled.put_marks(&all, &superblock.mirror)?;
        filled.put_superblock(&changed.of_leg(1 - own))
    };
    write().map_err(|error| error.to_string())?;
    Ok(changed)
}

/// Lets a leg that is out begin to be filled at the next start: the regions that were marked since.
///
/// # Errors
/// If the legs are in use or not of one mirror, or the leg is not out.
pub fn attach(paths: [&Path; 2], leg: usize) -> Result<Superblock, String> {
    let mut held = Vec::new();
    for path in paths {
        let claimed = LegStorage::claim(path);
        held.push(claimed.map_err(|error| format!("{}: {error}", path.display()))?);
    }
    let found = paths.map(look);
    let assembly = super::assembly::assemble(found, block::Switch::Off)?;
    let mut superblock = assembly.superblock;
    if superblock.states[leg] != LegRecord::Out {
        return Err(format!(
            "leg {leg} is {}: expected a leg that is out",
            superblock.states[leg].name()
        ));
    }
    superblock.events += 1;
    superblock.states[leg] = LegRecord::Filling;
    let marks = assembly.marks;
    begin(paths, &Assembly { superblock, marks })?;
    Ok(superblock)
}

/// Writes what a mirror begins with to the legs that it uses: the marks of both, and then the states.
///
/// # Errors
/// If a leg cannot be written.
pub fn begin(paths: [&Path; 2], assembly: &Assembly) -> Result<(), String> {
    let superblock = assembly.superblock;
    let in_use = || {
        let each = paths.into_iter().zip(superblock.states).enumerate();
        each.filter(|(_, (_, state))| *state != LegRecord::Out)
            .map(|(leg, (path, _))| (leg, path))
    };
    let named = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    for (_, path) in in_use() {
        let put = LegStorage::open(path)
            .and_then(|leg| leg.put_marks(&assembly.marks, &superblock.mirror));
        put.map_err(|error| named(path, error))?;
    }
    for (leg, path) in in_use() {
        let put =
            LegStorage::open(path).and_then(|file| file.put_superblock(&superblock.of_leg(leg)));
        put.map_err(|error| named(path, error))?;
    }
    Ok(())
}

/// Removes the superblocks of a leg. Its data stay.
///
/// # Errors
/// If it is in use, or cannot be written.
pub fn erase(path: &Path) -> io::Result<()> {
    LegStorage::claim(path)?.wipe()
}

/// Random bytes for a name.
fn random() -> Result<Id, String> {
    let mut id = Id::default();
    let mut source = File::open("/dev/urandom").map_err(|error| error.to_string())?;
    source
        .read_exact(&mut id)
        .map_err(|error| error.to_string())?;
    Ok(id)
}
