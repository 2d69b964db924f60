//! The columns of a text trace, as its header or its user names them.
//!
//! ```text
//!   --columns time,offset,size,op --.
//!   --delimiter, units --------------+--> HeadedLayout --> parser of headed.rs
//!   --format NAME -------------------'--> Format        --> its parser
//! ```

use super::Format;
use super::error::quoted;
use super::fields::Unit;

/// How a trace is read: as it seems to be, in a format, or by stated columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceForm(pub(super) Form);

#[derive(Clone, Debug, Default)]
pub(super) enum Form {
    /// Detected from the first lines, or else from the name.
    #[default]
    Detected,
    /// One of the formats.
    Named(&'static Format),
    /// Text with columns, whose names or units the user has stated.
    Headed(HeadedLayout),
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Form::Detected, Form::Detected) => true,
            (Form::Named(one), Form::Named(other)) => one.name == other.name,
            (Form::Headed(one), Form::Headed(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Form {}

/// What a user states of the columns of a text trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnOptions {
    /// The names of the columns, with commas, of a trace without a header.
    pub columns: Option<String>,
    /// What separates fields.
    pub delimiter: Option<Delimiter>,
    /// Bytes of a block, of columns that count blocks.
    pub block_bytes: Option<u64>,
    /// The unit of a column of lengths that does not state its own.
    pub size_unit: Option<SizeUnit>,
    /// The unit of a column of times that does not state its own.
    pub time_unit: Option<TimeUnit>,
}

/// What separates the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// This byte, each time.
    Byte(u8),
    /// Blanks and tabs, any number of them.
    Blanks,
}

/// The unit of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeUnit {
    /// Bytes.
    Bytes,
    /// Blocks of `block_bytes`.
    Blocks,
    /// 1024 bytes.
    Kibibytes,
}

/// The unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Windows file times of 100 ns.
    FileTimes,
}

/// The reason for which stated columns are refused, with what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayoutError(pub(super) String);

/// What is known of the columns before the first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadedLayout {
    /// The columns, if the trace has no header.
    pub(super) columns: Option<Columns>,
    pub(super) delimiter: Option<Delimiter>,
    pub(super) units: StatedUnits,
}

/// The units that the user has stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatedUnits {
    block_bytes: u64,
    size: Option<SizeUnit>,
    time: Option<TimeUnit>,
    /// Of addresses that do not state theirs, in a published trace.
    address: Option<SizeUnit>,
}

impl Default for StatedUnits {
    fn default() -> Self {
        StatedUnits {
            block_bytes: super::BLOCK_BYTES,
            size: None,
            time: None,
            address: None,
        }
    }
}

/// The places of the columns, from 0, and their units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) delimiter: Delimiter,
    pub(super) count: usize,
    pub(super) time: (usize, Unit),
    /// The place, and the bytes of a unit.
    pub(super) address: (usize, u64),
    /// The place, and the bytes of a unit.
    pub(super) length: (usize, u64),
    pub(super) direction: Option<usize>,
    pub(super) device: Option<usize>,
}

/// What a name of a column stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// With the unit that the name has.
    Time(Option<Unit>),
    Address(Grain),
    Length(Grain),
    Direction,
    Device,
    Other,
}

/// The unit of an address or a length, as its name states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grain {
    Bytes,
    Blocks,
    Kibibytes,
    /// Bytes, unless the user or a published trace says otherwise.
    Unstated,
}

/// A header of a published trace, with the units that its names do not state.
struct PublishedHeader {
    header: &'static str,
    time: TimeUnit,
    address: SizeUnit,
    size: SizeUnit,
}

const PUBLISHED: [PublishedHeader; 4] = [
    PublishedHeader {
        header: "device_id,opcode,offset,length,timestamp",
        time: TimeUnit::Microseconds,
        address: SizeUnit::Bytes,
        size: SizeUnit::Bytes,
    },
    PublishedHeader {
        header: "timestamp,offset,size,iotype,volumeid",
        time: TimeUnit::Seconds,
        address: SizeUnit::Blocks,
        size: SizeUnit::Blocks,
    },
    PublishedHeader {
        header: "timestamp,hostname,disknumber,type,offset,size,responsetime",
        time: TimeUnit::FileTimes,
        address: SizeUnit::Bytes,
        size: SizeUnit::Bytes,
    },
    PublishedHeader {
        header: "ts,lba,op,size",
        time: TimeUnit::Microseconds,
        address: SizeUnit::Blocks,
        size: SizeUnit::Bytes,
    },
];

/// The name of the format whose columns have names.
pub(super) const HEADED: &str = "headed";

/// The largest block. A choice: 4096 bytes are the largest of disks, and some traces count pages or stripes.
const MOST_BLOCK_BYTES: u64 = 16 << 20;

/// The names of a column that is not used.
const UNUSED: [&str; 4] = ["", "-", "_", "skip"];

impl TraceForm {
    /// The form of a trace of which a user has stated the format, the columns, or neither.
    ///
    /// # Errors
    /// If columns are stated of a format that has its own, or they are not understood.
    pub fn new(
        format: Option<&'static Format>,
        stated: &ColumnOptions,
    ) -> Result<Self, LayoutError> {
        if *stated == ColumnOptions::default() {
            return Ok(format.into());
        }
        if let Some(format) = format.filter(|format| format.name != HEADED) {
            return Err(LayoutError(format!(
                "--format {}: it has columns and units of its own: expected --format {} with --columns, --delimiter, \
                 --block-bytes, --size-unit and --time-unit, or none of these",
                format.name, HEADED
            )));
        }
        let block_bytes = stated.block_bytes.unwrap_or(super::BLOCK_BYTES);
        if !(1..=MOST_BLOCK_BYTES).contains(&block_bytes) {
            return Err(LayoutError(format!(
                "--block-bytes {block_bytes}: expected 1 to {MOST_BLOCK_BYTES}, such as 512 or 4096"
            )));
        }
        let units = StatedUnits {
            block_bytes,
            size: stated.size_unit,
            time: stated.time_unit,
            address: None,
        };
        let columns = match &stated.columns {
            None => None,
            Some(names) => {
                let delimiter = stated.delimiter.unwrap_or(Delimiter::Byte(b','));
                let names: Vec<&str> = names.split(',').map(str::trim).collect();
                if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
                    return Err(LayoutError(format!(
                        "--columns: {}: {KNOWN}",
                        shown(unknown)
                    )));
                }
                let columns = Columns::of(&names, delimiter, units);
                Some(columns.map_err(|why| LayoutError(format!("--columns: {why}")))?)
            }
        };
        Ok(TraceForm(Form::Headed(HeadedLayout {
            columns,
            delimiter: stated.delimiter,
            units,
        })))
    }
}

/// The names that `--columns` takes.
const KNOWN: &str = "expected time (or time_s, time_ms, time_us, time_ns), offset or lba, size or sectors, op, device, \
                     or - for a column that is not used";

/// A name for a message.
fn shown(name: &str) -> String {
    quoted(name.as_bytes())
}

fn is_known(name: &str) -> bool {
    UNUSED.contains(&name) || Meaning::of(name) != Meaning::Other
}

impl From<Option<&'static Format>> for TraceForm {
    fn from(format: Option<&'static Format>) -> Self {
        TraceForm(format.map_or(Form::Detected, Form::Named))
    }
}

impl Delimiter {
    /// The delimiter of this text: a character of ASCII, `tab`, or `space` for any number of blanks.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        match (text, text.as_bytes()) {
            ("space" | "blank" | " ", _) => Ok(Delimiter::Blanks),
            ("tab" | "\\t", _) => Ok(Delimiter::Byte(b'\t')),
            ("comma", _) => Ok(Delimiter::Byte(b',')),
            ("semicolon", _) => Ok(Delimiter::Byte(b';')),
            (_, &[byte]) if byte.is_ascii_punctuation() || byte == b'\t' => Ok(Delimiter::Byte(byte)),
            _ => Err("expected one character such as , ; or |, or tab, or space for any number of blanks".into()),
        }
    }
}

impl SizeUnit {
    /// All, by their names.
    pub const ALL: [(&'static str, SizeUnit); 4] = [
        ("bytes", SizeUnit::Bytes),
        ("blocks", SizeUnit::Blocks),
        ("sectors", SizeUnit::Blocks),
        ("kib", SizeUnit::Kibibytes),
    ];
}

impl TimeUnit {
    /// All, by their names.
    pub const ALL: [(&'static str, TimeUnit); 5] = [
        ("s", TimeUnit::Seconds),
        ("ms", TimeUnit::Milliseconds),
        ("us", TimeUnit::Microseconds),
        ("ns", TimeUnit::Nanoseconds),
        ("100ns", TimeUnit::FileTimes),
    ];

    fn unit(self) -> Unit {
        match self {
            TimeUnit::Seconds => Unit::Seconds,
            TimeUnit::Milliseconds => Unit::Milliseconds,
            TimeUnit::Microseconds => Unit::Microseconds,
            TimeUnit::Nanoseconds => Unit::Nanoseconds,
            TimeUnit::FileTimes => Unit::FileTimes,
        }
    }
}

impl Columns {
    /// The columns of these names.
    ///
    /// # Errors
    /// What is missing, or there twice, with what was expected.
    pub(super) fn of(
        names: &[&str],
        delimiter: Delimiter,
        units: StatedUnits,
    ) -> Result<Columns, String> {
        let (mut time, mut address, mut length) = (None, None, None);
        let (mut direction, mut device) = (None, None);
        for (place, name) in names.iter().enumerate() {
            let is_new = match Meaning::of(name) {
                Meaning::Time(unit) => time.replace((place, units.time(name, unit)?)).is_none(),
                Meaning::Address(grain) => address.replace((place, units.address(grain))).is_none(),
                Meaning::Length(grain) => length
                    .replace((place, units.length(name, grain)?))
                    .is_none(),
                Meaning::Direction => direction.replace(place).is_none(),
                Meaning::Device => device.replace(place).is_none(),
                Meaning::Other => true,
            };
            if !is_new {
                return Err(format!("a second column of its kind, {}", shown(name)));
            }
        }
        let missing = |what: &str| format!("no column of {what}");
        Ok(Columns {
            delimiter,
            count: names.len(),
            time: time.ok_or_else(|| missing("times (time)"))?,
            address: address.ok_or_else(|| missing("addresses (offset or lba)"))?,
            length: length.ok_or_else(|| missing("lengths (size or sectors)"))?,
            direction,
            device,
        })
    }
}

impl StatedUnits {
    /// These, or where nothing is stated those of a published trace with this header.
    pub(super) fn of_header(self, names: &[&str]) -> Self {
        let header = names.join(",").to_ascii_lowercase();
        let known = PUBLISHED.iter().find(|known| known.header == header);
        StatedUnits {
            time: self.time.or(known.map(|known| known.time)),
            size: self.size.or(known.map(|known| known.size)),
            address: known.map(|known| known.address),
            ..self
        }
    }

    fn time(self, name: &str, stated: Option<Unit>) -> Result<Unit, String> {
        match (stated, self.time.map(TimeUnit::unit)) {
            (Some(own), Some(asked)) if own != asked => Err(format!(
                "column {} and --time-unit state two units: expected one",
                shown(name)
            )),
            (Some(unit), _) | (None, Some(unit)) => Ok(unit),
            (None, None) => Ok(Unit::Seconds),
        }
    }

    /// Bytes of a unit of an address.
    fn address(self, grain: Grain) -> u64 {
        match grain {
            Grain::Blocks => self.block_bytes,
            Grain::Bytes => 1,
            Grain::Kibibytes => 1024,
            Grain::Unstated => self.bytes_of(self.address.unwrap_or(SizeUnit::Bytes)),
        }
    }

    fn bytes_of(self, unit: SizeUnit) -> u64 {
        match unit {
            SizeUnit::Bytes => 1,
            SizeUnit::Blocks => self.block_bytes,
            SizeUnit::Kibibytes => 1024,
        }
    }

    /// Bytes of a unit of a length.
    fn length(self, name: &str, grain: Grain) -> Result<u64, String> {
        let asked = self.size.map(|unit| self.bytes_of(unit));
        let own = match grain {
            Grain::Bytes => Some(1),
            Grain::Blocks => Some(self.block_bytes),
            Grain::Kibibytes => Some(1024),
            Grain::Unstated => None,
        };
        match (own, asked) {
            (Some(own), Some(asked)) if own != asked => Err(format!(
                "column {} and --size-unit state two units: expected one",
                shown(name)
            )),
            (Some(bytes), _) | (None, Some(bytes)) => Ok(bytes),
            (None, None) => Ok(1),
        }
    }
}

impl Meaning {
    fn of(name: &str) -> Meaning {
        let name = name.to_ascii_lowercase();
        let (stem, unit) = name.rsplit_once('_').unwrap_or((&name, ""));
        match (name.as_str(), stem, unit) {
            ("time" | "timestamp" | "ts" | "arrival", ..) => Meaning::Time(None),
            (_, "time" | "timestamp" | "ts" | "arrival", unit) => match unit {
                "s" | "seconds" => Meaning::Time(Some(Unit::Seconds)),
                "ms" => Meaning::Time(Some(Unit::Milliseconds)),
                "us" => Meaning::Time(Some(Unit::Microseconds)),
                "ns" => Meaning::Time(Some(Unit::Nanoseconds)),
                _ => Meaning::Other,
            },
            ("offset" | "address", ..) => Meaning::Address(Grain::Unstated),
            ("byte_offset", ..) | (_, "offset" | "address", "bytes") => {
                Meaning::Address(Grain::Bytes)
            }
            (_, "offset" | "address", "kib") => Meaning::Address(Grain::Kibibytes),
            ("lba" | "lbn" | "sector" | "block" | "blkno", ..)
            | (_, "offset" | "address", "sectors" | "blocks") => Meaning::Address(Grain::Blocks),
            ("size" | "length" | "len" | "io_size", ..) => Meaning::Length(Grain::Unstated),
            ("bytes" | "byte_length", ..) | (_, "size" | "length" | "len", "bytes") => {
                Meaning::Length(Grain::Bytes)
            }
            (_, "size" | "length" | "len", "kib") => Meaning::Length(Grain::Kibibytes),
            ("sectors" | "blocks" | "bcount", ..)
            | (_, "size" | "length" | "len", "sectors" | "blocks") => {
                Meaning::Length(Grain::Blocks)
            }
            (
                "op" | "type" | "rw" | "direction" | "opcode" | "io_type" | "iotype" | "operation"
                | "is_write",
                ..,
            ) => Meaning::Direction,
            (
                "device" | "dev" | "disk" | "volume" | "device_id" | "volume_id" | "volumeid"
                | "disknumber",
                ..,
            ) => Meaning::Device,
            _ => Meaning::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(options: ColumnOptions) -> Result<TraceForm, String> {
        TraceForm::new(None, &options).map_err(|error| error.to_string())
    }

    fn columns(names: &str) -> ColumnOptions {
        ColumnOptions {
            columns: Some(names.to_owned()),
            ..ColumnOptions::default()
        }
    }

    #[test]
    fn nothing_stated_is_detected_or_the_format() {
        let none = ColumnOptions::default();
        assert_eq!(form(none.clone()), Ok(TraceForm::default()));
        let msr = Format::named("msr");
        assert_eq!(TraceForm::new(msr, &none), Ok(TraceForm::from(msr)));
        let problem = TraceForm::new(msr, &columns("time,lba,size")).expect_err("a refusal");
        assert!(problem.to_string().contains("--format msr"), "{problem}");
        assert!(TraceForm::new(Format::named("headed"), &columns("time,lba,size")).is_ok());
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_was_expected() {
        for (names, problem) in [
            ("time,ofset,size", "--columns: \"ofset\": expected time"),
            ("time,size", "no column of addresses"),
            ("offset,size", "no column of times"),
            ("time,offset", "no column of lengths"),
            (
                "time,offset,lba,size",
                "a second column of its kind, \"lba\"",
            ),
        ] {
            let found = form(columns(names)).expect_err("a refusal");
            assert!(found.contains(problem), "{names}: {found}");
        }
        let blocks = ColumnOptions {
            block_bytes: Some(0),
            ..ColumnOptions::default()
        };
        assert!(
            form(blocks)
                .expect_err("a refusal")
                .contains("--block-bytes 0")
        );
        let units = ColumnOptions {
            time_unit: Some(TimeUnit::Seconds),
            ..columns("time_us,offset,size")
        };
        assert!(
            form(units)
                .expect_err("a refusal")
                .contains("\"time_us\" and --time-unit")
        );
        let units = ColumnOptions {
            size_unit: Some(SizeUnit::Bytes),
            ..columns("time,offset,sectors")
        };
        assert!(
            form(units)
                .expect_err("a refusal")
                .contains("\"sectors\" and --size-unit")
        );
    }

    #[test]
    fn delimiters_have_names_or_are_themselves() {
        for (text, delimiter) in [
            (",", Delimiter::Byte(b',')),
            ("|", Delimiter::Byte(b'|')),
            ("tab", Delimiter::Byte(b'\t')),
            ("space", Delimiter::Blanks),
        ] {
            assert_eq!(Delimiter::parse(text), Ok(delimiter));
        }
        for text in ["", ",,", "a", "ä", "1"] {
            assert!(Delimiter::parse(text).is_err(), "{text}");
        }
    }
}
