//! The demands of a trace, by blocks that are numbered in order of their first demands.

use std::ops::ControlFlow;

use cache::Numbers;
use cache::numbers::TooManyNames;
use simulator::trace::objects::{self, ObjectColumns, ObjectFormat};
use simulator::trace::{Format, OnBad, TraceReader, doubts_of_first};

use super::{BLOCK_BYTES, CurveSettings};
use crate::{Failure, Progress};

/// The demands, or a sample of them.
pub(super) struct Demands {
    /// The demanded blocks of the sample.
    pub blocks: Vec<u32>,
    /// Different blocks of the sample.
    pub distinct: u32,
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

    /// Whether a block is sampled: Steele, Lea, Flood's finaliser (splitmix64, OOPSLA 2014) of its name.
    fn takes(self, name: u64) -> bool {
        let mut mixed = name;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) >> (u64::BITS - HASH_BITS) < self.below
    }
}

/// Bits of a block's number on its device: 2^48 blocks are an exabyte. The device's number is above them.
const BLOCK_BITS: u32 = 48;

/// Demands while they are read.
struct Numbering {
    sampling: Sampling,
    numbers: Numbers,
    /// The names of a piece of the trace that are sampled.
    sampled: Vec<u64>,
    blocks: Vec<u32>,
    all: u64,
}

impl Numbering {
    fn new(sampling: Sampling) -> Self {
        Self {
            sampling,
            numbers: Numbers::new(),
            sampled: Vec::new(),
            blocks: Vec::new(),
            all: 0,
        }
    }

    fn demand(&mut self, names: &[u64]) -> Result<(), TooManyNames> {
        self.all += names.len() as u64;
        if self.sampling == Sampling::WHOLE {
            return self.numbers.extend(names, &mut self.blocks);
        }
        let sampled = names.iter().copied();
        self.sampled.clear();
        self.sampled
            .extend(sampled.filter(|&name| self.sampling.takes(name)));
        self.numbers.extend(&self.sampled, &mut self.blocks)
    }

    fn end(self, settings: &CurveSettings, bad_lines: u64) -> Result<Demands, Failure> {
        match self.blocks.is_empty() {
            true => Err(Failure::input(format!(
                "{}: no demand among {} is of a sampled block: expected a larger --sample",
                settings.trace.display(),
                self.all
            ))),
            false => Ok(Demands {
                distinct: self.numbers.count(),
                blocks: self.blocks,
                all: self.all,
                bad_lines,
            }),
        }
    }
}

impl Demands {
    /// Reads the trace of the settings.
    ///
    /// # Errors
    /// If it cannot be read, the sample has no block, or the trace has too many.
    pub(super) fn read(settings: &CurveSettings, progress: &dyn Progress) -> Result<Self, Failure> {
        match settings.objects()? {
            Some(format) => settings.read_objects(&format, progress),
            None => settings.read_requests(progress),
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

    /// Why the units of a trace of block requests look wrong. Nothing is said of what can be read only once, or not at all.
    pub fn doubts(&self) -> Vec<String> {
        let is_of_blocks = matches!(self.objects(), Ok(None)) && self.trace.is_file();
        let reader = is_of_blocks.then(|| self.reader().ok()).flatten();
        reader.map_or_else(Vec::new, |mut reader| doubts_of_first(&mut reader))
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

    /// Reads a trace of objects.
    fn read_objects(
        &self,
        format: &ObjectFormat,
        progress: &dyn Progress,
    ) -> Result<Demands, Failure> {
        let mut numbering = Numbering::new(self.sampling);
        let mut ended = Ok(());
        let mut each = |objects: &[u64]| {
            ended = progress.check().and_then(|()| {
                numbering
                    .demand(objects)
                    .map_err(|many| self.too_many(many))
            });
            match ended {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        objects::read(&self.trace, format, &mut each).map_err(Failure::input)?;
        ended?;
        numbering.end(self, 0)
    }

    /// Reads a trace of block requests: each touched block is demanded.
    fn read_requests(&self, progress: &dyn Progress) -> Result<Demands, Failure> {
        let mut numbering = Numbering::new(self.sampling);
        let mut reader = self.reader()?;
        let mut names = Vec::new();
        while let Some(record) = reader.next() {
            progress.check()?;
            let record = record.map_err(Failure::input)?;
            let device = (record.device.place() as u64) << BLOCK_BITS;
            let bytes = record.bytes;
            let last = (bytes.end() - 1) / BLOCK_BYTES;
            if last >> BLOCK_BITS > 0 {
                return Err(Failure::input(format!(
                    "{}:{}: offset {}: expected one below 2^60",
                    self.trace.display(),
                    reader.line(),
                    bytes.offset()
                )));
            }
            names.clear();
            names.extend((bytes.offset() / BLOCK_BYTES..=last).map(|block| device | block));
            numbering
                .demand(&names)
                .map_err(|many| self.too_many(many))?;
        }
        numbering.end(self, reader.skipped().total())
    }

    fn too_many(&self, many: TooManyNames) -> Failure {
        Failure::input(format!("{}: {many}, or --sample", self.trace.display()))
    }
}
