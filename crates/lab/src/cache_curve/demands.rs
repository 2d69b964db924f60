//! The demands of a trace, by blocks that are numbered in order of their first demands.

use std::collections::HashMap;

use simulator::trace::objects::{self, ObjectColumns, ObjectFormat};
use simulator::trace::{Format, OnBad, TraceReader};

use super::{BLOCK_BYTES, CurveSettings};
use crate::{Failure, Progress};

/// The demands, or a sample of them.
pub(super) struct Demands {
    /// The demanded blocks of the sample.
    pub blocks: Vec<u64>,
    /// Different blocks of the sample.
    pub distinct: u64,
    /// All demands, sampled or not.
    pub all: u64,
    /// Skipped bad lines.
    pub bad_lines: u64,
}

/// The share of the blocks that is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// A block whose hash is below this is sampled.
    below: u64,
}

/// The bits of a hash that decide.
const HASH_BITS: u32 = 24;

impl Sampling {
    /// All blocks.
    pub const WHOLE: Self = Self {
        below: 1 << HASH_BITS,
    };

    /// This share of the blocks.
    ///
    /// # Errors
    /// If it is not above 0 and at most 1, or less than one in 2^24.
    pub fn of(share: f64) -> Result<Self, Failure> {
        let below = (share * Self::WHOLE.below as f64).round();
        match share > 0.0 && share <= 1.0 && below >= 1.0 {
            true => Ok(Self {
                below: below as u64,
            }),
            false => Err(Failure::input(format!(
                "a sample of {share}: expected a share of the blocks, above 0 and at most 1"
            ))),
        }
    }

    /// So much of the sample as there is of the whole.
    pub(super) fn part(self, whole: u64) -> f64 {
        whole as f64 * self.below as f64 / Self::WHOLE.below as f64
    }

    /// So much of the whole as there is of the sample.
    pub(super) fn whole(self, part: u64) -> u64 {
        (part as f64 * Self::WHOLE.below as f64 / self.below as f64).round() as u64
    }

    /// Whether a block is sampled: Steele, Lea, Flood's finaliser (splitmix64, OOPSLA 2014) of its number.
    fn takes(self, (device, block): BlockName) -> bool {
        let mut mixed = block ^ device.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) >> (u64::BITS - HASH_BITS) < self.below
    }
}

/// A block as the trace names it: its device, and its number there.
type BlockName = (u64, u64);

/// Demands while they are read.
struct Numbering {
    sampling: Sampling,
    numbers: HashMap<BlockName, u64>,
    blocks: Vec<u64>,
    all: u64,
}

impl Numbering {
    fn demand(&mut self, name: BlockName) {
        self.all += 1;
        if self.sampling.takes(name) {
            let next = self.numbers.len() as u64;
            self.blocks.push(*self.numbers.entry(name).or_insert(next));
        }
    }
}

impl Demands {
    /// Reads the trace of the settings.
    ///
    /// # Errors
    /// If it cannot be read, or the sample has no block.
    pub(super) fn read(settings: &CurveSettings, progress: &dyn Progress) -> Result<Self, Failure> {
        let mut numbering = Numbering {
            sampling: settings.sampling,
            numbers: HashMap::new(),
            blocks: Vec::new(),
            all: 0,
        };
        let bad_lines = match settings.objects()? {
            Some(format) => {
                objects::read(&settings.trace, &format, &mut |object| {
                    numbering.demand((0, object));
                })
                .map_err(Failure::input)?;
                0
            }
            None => settings.read_requests(&mut numbering, progress)?,
        };
        match numbering.blocks.is_empty() {
            true => Err(Failure::input(format!(
                "{}: no demand among {} is of a sampled block: expected a larger --sample",
                settings.trace.display(),
                numbering.all
            ))),
            false => Ok(Demands {
                distinct: numbering.numbers.len() as u64,
                blocks: numbering.blocks,
                all: numbering.all,
                bad_lines,
            }),
        }
    }
}

/// The names of the formats of objects.
const ORACLE_GENERAL: &str = "oracle-general";
const CSV: &str = "csv";

impl CurveSettings {
    /// The format of a trace of objects; `None` for one of block requests.
    pub(super) fn objects(&self) -> Result<Option<ObjectFormat>, Failure> {
        let is_named_so = || {
            let name = self.trace.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.contains("oracleGeneral"))
        };
        match (self.format.as_deref(), &self.columns) {
            (Some(CSV) | None, Some(columns)) => match ObjectColumns::parse(columns) {
                Ok(columns) => Ok(Some(ObjectFormat::Csv(columns))),
                Err(problem) => Err(Failure::input(format!("--columns: {problem}"))),
            },
            (Some(CSV), None) => Err(Failure::input(
                "--format csv: expected --columns \"obj-id-col=N\" with it",
            )),
            (Some(ORACLE_GENERAL), None) => Ok(Some(ObjectFormat::OracleGeneral)),
            (Some(name), Some(_)) => Err(Failure::input(format!(
                "--columns with --format {name}: expected csv"
            ))),
            (None, None) if is_named_so() => Ok(Some(ObjectFormat::OracleGeneral)),
            (Some(_) | None, None) => Ok(None),
        }
    }

    /// The reader of a trace of block requests.
    pub(super) fn reader(&self) -> Result<TraceReader, Failure> {
        let own = simulator::trace::ALL.iter().map(|format| format.name);
        let format = match &self.format {
            None => None,
            Some(name) => Some(Format::named(name).ok_or_else(|| {
                let names: Vec<&str> = own.chain([ORACLE_GENERAL, CSV]).collect();
                Failure::unknown("trace format", name, &names)
            })?),
        };
        let on_bad = match self.skip_bad {
            true => OnBad::Skip,
            false => OnBad::Refuse,
        };
        TraceReader::open(&self.trace, format, on_bad).map_err(Failure::input)
    }

    /// Reads a trace of block requests: each touched block is demanded. Returns the number of skipped lines.
    fn read_requests(
        &self,
        numbering: &mut Numbering,
        progress: &dyn Progress,
    ) -> Result<u64, Failure> {
        let mut reader = self.reader()?;
        for record in reader.by_ref() {
            progress.check()?;
            let record = record.map_err(Failure::input)?;
            let device = record.device.place() as u64;
            let bytes = record.bytes;
            for block in bytes.offset() / BLOCK_BYTES..=(bytes.end() - 1) / BLOCK_BYTES {
                numbering.demand((device, block));
            }
        }
        Ok(reader.skipped().total())
    }
}
