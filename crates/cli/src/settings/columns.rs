//! The flags of a text trace whose columns or units its header does not state.

use clap::Args;
use clap::builder::PossibleValuesParser;
use lab::amount::amount;
use simulator::trace::{ColumnOptions, Delimiter, SizeUnit, TimeUnit};

/// The columns of a trace.
#[derive(Clone, Debug, Default, Args)]
pub struct ColumnArguments {
    /// The columns of a text trace without a header, such as time,offset,size,op or time_us,-,lba,sectors: the names
    /// that a header may have, and - for a column that is not used
    #[arg(long, value_name = "NAMES", help_heading = "Columns of a trace")]
    columns: Option<String>,
    /// What separates fields: a character, tab, or space for any number of blanks [default: that of the header, or a
    /// comma]
    #[arg(
        long,
        value_name = "CHAR|tab|space",
        value_parser = Delimiter::parse,
        allow_hyphen_values = true,
        help_heading = "Columns of a trace"
    )]
    delimiter: Option<Delimiter>,
    /// Bytes of a block, of columns that count blocks (lba, sectors) [default: 512]
    #[arg(long, value_name = "BYTES", help_heading = "Columns of a trace", value_parser = amount)]
    block_bytes: Option<u64>,
    /// The unit of a column size or length [default: bytes]
    #[arg(
        long,
        value_name = "UNIT",
        value_parser = PossibleValuesParser::new(SizeUnit::ALL.map(|(name, _)| name)),
        help_heading = "Columns of a trace"
    )]
    size_unit: Option<String>,
    /// The unit of a column of times [default: s]
    #[arg(
        long,
        value_name = "UNIT",
        value_parser = PossibleValuesParser::new(TimeUnit::ALL.map(|(name, _)| name)),
        help_heading = "Columns of a trace"
    )]
    time_unit: Option<String>,
}

impl ColumnArguments {
    /// What the flags state.
    pub fn stated(&self) -> ColumnOptions {
        ColumnOptions {
            columns: self.columns.clone(),
            delimiter: self.delimiter,
            block_bytes: self.block_bytes,
            size_unit: found(&SizeUnit::ALL, self.size_unit.as_deref()),
            time_unit: found(&TimeUnit::ALL, self.time_unit.as_deref()),
        }
    }
}

/// The unit of this name.
fn found<T: Copy>(all: &[(&str, T)], name: Option<&str>) -> Option<T> {
    let wanted = name?;
    let mut units = all.iter();
    units
        .find(|(name, _)| *name == wanted)
        .map(|(_, unit)| *unit)
}
