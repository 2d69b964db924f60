//! The requests of a load on a drive.

use block::{Direction, Duration, Extent, Lba, Sectors};
use document::DocumentError;

use super::dice::{Chance, Dice, Toss};
use super::placement::{DriveBlocks, Placer};
use super::small_files::{FileOpener, FileSystemLayout};
use super::{Arrivals, Placement, Sizes, Spread, Workload};

/// Generates the requests of a load, with separate random streams for directions, sizes, positions
/// and times.
#[derive(Clone, Debug)]
pub struct Generator {
    aim: RequestTarget,
    reads: Chance,
    gap: GapModel,
    direction_dice: Dice,
    size_dice: Dice,
    place_dice: Dice,
    gap_dice: Dice,
}

/// The objects that requests access.
#[derive(Clone, Debug)]
enum RequestTarget {
    /// Blocks.
    Blocks {
        sizes: Sizes,
        placer: Placer,
        ground: DriveBlocks,
        block_bytes: u64,
    },
    /// Files, with several requests each.
    Files(Box<FileOpener>),
}

/// The distribution of gaps or think times.
#[derive(Clone, Copy, Debug)]
struct GapModel {
    mean_nanos: f64,
    spread: Spread,
    /// The remainder of rounding to nanoseconds, so that rates are exact in the long run.
    carry: f64,
}

impl Generator {
    /// The requests of `workload` on a drive of `capacity` blocks.
    ///
    /// # Errors
    /// If the load does not fit the drive: too large, not whole blocks, or too many shares.
    pub fn new(
        workload: &Workload,
        block_bytes: u32,
        capacity: u64,
    ) -> Result<Self, DocumentError> {
        let seed = workload.seed;
        let (mean_nanos, spread) = match workload.arrivals {
            Arrivals::Closed {
                think_ms, think, ..
            } => (think_ms * 1e6, think),
            Arrivals::Open { per_second, gaps } => (1e9 / per_second, gaps),
        };
        Ok(Generator {
            aim: RequestTarget::new(workload, u64::from(block_bytes), capacity)?,
            reads: Chance::new(workload.read_fraction),
            gap: GapModel {
                mean_nanos,
                spread,
                carry: 0.0,
            },
            direction_dice: Dice::new(seed, DIRECTIONS),
            size_dice: Dice::new(seed, SIZES),
            place_dice: Dice::new(seed, PLACES),
            gap_dice: Dice::new(seed, GAPS),
        })
    }

    /// The next request of a client that has completed the previous operation.
    pub fn request(&mut self) -> (Direction, Extent) {
        let direction = match self.direction_dice.happens(self.reads) {
            Toss::Yes => Direction::Read,
            Toss::No => Direction::Write,
        };
        let (sizes, placer, ground, block_bytes) = match &mut self.aim {
            RequestTarget::Files(reader) => return reader.open(direction, &mut self.place_dice),
            RequestTarget::Blocks {
                sizes,
                placer,
                ground,
                block_bytes,
            } => (sizes, placer, *ground, *block_bytes),
        };
        let blocks = sizes.draw(&mut self.size_dice) / block_bytes;
        let start = placer.place(ground, blocks, &mut self.place_dice);
        let extent = Extent::new(Lba(start), Sectors(blocks))
            .expect("sizes and places were found to fit the drive");
        (direction, extent)
    }

    /// The number of the sequential reader that the last request is of, from 0; `None` if the load has none.
    pub fn stream(&self) -> Option<u32> {
        match &self.aim {
            RequestTarget::Blocks { placer, .. } => placer.stream(),
            RequestTarget::Files(_) => None,
        }
    }

    /// The immediate next request of a client after its request for `ended`. Files take several
    /// requests in sequence.
    pub fn after(&mut self, ended: Extent) -> Option<(Direction, Extent)> {
        match &mut self.aim {
            RequestTarget::Blocks { .. } => None,
            RequestTarget::Files(reader) => reader.after(ended),
        }
    }

    /// The next think time (closed loads) or gap between arrivals (open loads).
    pub fn gap(&mut self) -> Duration {
        let gap = &mut self.gap;
        let exact = match gap.spread {
            Spread::Constant => gap.mean_nanos,
            Spread::Exponential => -gap.mean_nanos * self.gap_dice.ln_uniform(),
        };
        let whole = libm::floor(exact + gap.carry);
        gap.carry += exact - whole;
        Duration::from_nanos(whole as u64)
    }
}

impl RequestTarget {
    fn new(workload: &Workload, block_bytes: u64, capacity: u64) -> Result<Self, DocumentError> {
        if let (Placement::SmallFiles(files), Sizes::Fixed { bytes }) =
            (&workload.placement, &workload.sizes)
        {
            let layout = FileSystemLayout::new(files, *bytes, block_bytes, capacity).map_err(
                |(key, problem)| {
                    let drive = drive(block_bytes, capacity);
                    workload.origins.error(key, format!("{problem}: {drive}"))
                },
            )?;
            let reader = FileOpener::new(layout, files);
            return Ok(RequestTarget::Files(Box::new(reader)));
        }
        let ground = workload.fit(block_bytes, capacity)?;
        Ok(RequestTarget::Blocks {
            sizes: workload.sizes.clone(),
            placer: Placer::new(&workload.placement, ground, block_bytes, workload.seed),
            ground,
            block_bytes,
        })
    }
}

/// The drive, for error messages.
fn drive(block_bytes: u64, capacity: u64) -> String {
    format!("the drive has {capacity} blocks of {block_bytes} bytes")
}

impl Workload {
    /// The drive for placement, if the load fits on it.
    fn fit(&self, block_bytes: u64, capacity: u64) -> Result<DriveBlocks, DocumentError> {
        let drive = drive(block_bytes, capacity);
        let size_key = match self.sizes {
            Sizes::Fixed { .. } => "size.kib",
            Sizes::Choice { .. } => "size.choices",
            Sizes::Exponential { .. } => "size.mean_kib",
            Sizes::Uniform { .. } => "size.to_kib",
        };
        if let Some(bytes) = self.sizes.not_multiple_of(block_bytes) {
            let problem = format!("{bytes} bytes: expected whole blocks: {drive}");
            return Err(self.origins.error(size_key, problem));
        }
        let largest = self.sizes.largest() / block_bytes;
        if largest > capacity {
            let problem = format!("requests of up to {largest} blocks do not fit: {drive}");
            return Err(self.origins.error(size_key, problem));
        }
        let align_bytes = self.align_bytes.unwrap_or(block_bytes);
        if !align_bytes.is_multiple_of(block_bytes) {
            let problem = format!("{align_bytes} bytes: expected whole blocks: {drive}");
            return Err(self.origins.error("placement.align_kib", problem));
        }
        let ground = DriveBlocks {
            capacity,
            align: align_bytes / block_bytes,
        };
        self.fit_placement(ground, largest, block_bytes)
            .map_err(|(key, problem)| self.origins.error(key, format!("{problem}: {drive}")))?;
        Ok(ground)
    }

    fn fit_placement(
        &self,
        ground: DriveBlocks,
        largest: u64,
        block_bytes: u64,
    ) -> Result<(), (&'static str, String)> {
        let align_bytes = ground.align * block_bytes;
        let runs = matches!(
            self.placement,
            Placement::Sequential { .. } | Placement::Streams { .. }
        );
        if runs && let Some(bytes) = self.sizes.not_multiple_of(align_bytes) {
            let problem = format!("requests of {bytes} bytes do not keep to {align_bytes} bytes");
            return Err(("placement.align_kib", problem));
        }
        match self.placement {
            Placement::Zipf { regions, .. } => {
                if ground.capacity / u64::from(regions) < ground.align {
                    let problem = format!("{regions} regions, some without a place in them");
                    return Err(("placement.regions", problem));
                }
            }
            Placement::Streams { streams } => {
                let n = u64::from(streams);
                let room = |i| {
                    ground
                        .boundary(i + 1, n)
                        .checked_sub(ground.share_start(i, n))
                };
                if (0..n).any(|i| room(i).is_none_or(|room| room < largest)) {
                    let problem = format!(
                        "{streams} shares, some too small for a request of {largest} blocks"
                    );
                    return Err(("placement.streams", problem));
                }
            }
            Placement::Local { group_bytes, .. } => {
                let fits = group_bytes / block_bytes <= ground.capacity;
                if !fits || !group_bytes.is_multiple_of(align_bytes) {
                    let problem = format!(
                        "groups of {group_bytes} bytes: expected a multiple of {align_bytes} bytes, \
                         at most the drive"
                    );
                    return Err(("placement.group_kib", problem));
                }
            }
            Placement::Uniform | Placement::Sequential { .. } | Placement::SmallFiles(_) => {}
        }
        Ok(())
    }
}

/// The ids of the random streams. Renumbering them changes every result.
const DIRECTIONS: u64 = 1;
const SIZES: u64 = 2;
const PLACES: u64 = 3;
const GAPS: u64 = 4;
